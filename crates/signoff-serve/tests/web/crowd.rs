//! Those who come in crowds, without a token: they keep nobody out.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use signoff_serve::web::Limits;

use crate::Site;

/// Somebody who connects and says no more than this.
fn silent(site: &Site, says: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", site.visitor.port)).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
    stream.write_all(says.as_bytes()).expect("a connection");
    stream
}

#[test]
fn whoever_does_not_say_what_they_want_has_to_go() {
    let site = Site::start_with(Limits { head: Duration::from_millis(50), ..Limits::default() });
    for says in ["", "GET / HT", "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "] {
        let mut told = String::new();
        let ended = silent(&site, says).read_to_string(&mut told);
        // Some systems say that it was closed on what they had sent.
        let gone = ended.as_ref().is_err_and(|error| error.kind() == ErrorKind::ConnectionReset);
        assert!(ended.is_ok() || gone, "{says:?}: {ended:?}");
        assert!(!told.contains("200 OK"), "{told}");
    }
}

#[test]
fn more_than_may_be_connected_at_once_wait_for_their_turn() {
    let site =
        Site::start_with(Limits { head: Duration::from_millis(400), connections: 2, ..Limits::default() });
    let crowd: Vec<TcpStream> = (0..4).map(|_| silent(&site, "GET / HT")).collect();
    assert_eq!(site.visitor.get("/").status, 200);
    drop(crowd);
}

#[test]
fn it_ends_while_a_crowd_is_there() {
    let site = Site::start_with(Limits { connections: 2, ..Limits::default() });
    let mut crowd: Vec<TcpStream> = (0..4).map(|_| silent(&site, "GET / HT")).collect();
    let Site { runtime, web, .. } = site;
    runtime.block_on(web.end());
    drop(runtime);
    for stream in &mut crowd {
        assert!(matches!(stream.read(&mut [0; 64]), Ok(0) | Err(_)));
    }
}

#[test]
fn those_who_want_numbers_keep_nobody_from_looking() {
    let site = Site::start();
    let held = site.told.counting.lock().expect("a lock");
    let (host, cookie) = (site.visitor.host(), site.visitor.cookie());
    let asked =
        format!("GET /stats HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n");
    let mut crowd: Vec<TcpStream> = (0..16).map(|_| silent(&site, &asked)).collect();
    assert_eq!(site.visitor.get("/").status, 200);
    assert_eq!(site.visitor.get("/tasks/1").status, 404);
    // Half of them leave; the others are answered in the end.
    crowd.truncate(8);
    drop(held);
    for stream in &mut crowd {
        let mut told = String::new();
        stream.read_to_string(&mut told).expect("an answer");
        assert!(told.starts_with("HTTP/1.1 200 OK"), "{told}");
    }
}

/// Places are short, and whoever has one may keep it for longer than the test waits.
fn small() -> Site {
    let long = Duration::from_secs(300);
    Site::start_with(Limits { connections: 3, head: long, answer: long, ..Limits::default() })
}

/// A request that leaves its connection open.
fn asks(site: &Site, path: &str, cookie: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{cookie}\r\n", site.visitor.host())
}

fn known(site: &Site) -> String {
    format!("Cookie: {}\r\n", site.visitor.cookie())
}

#[test]
fn whoever_is_refused_has_to_go() {
    let site = small();
    for path in ["/", "/events", "/assets/style.css"] {
        let mut crowd: Vec<TcpStream> = (0..8).map(|_| silent(&site, &asks(&site, path, ""))).collect();
        assert_eq!(site.visitor.get("/").status, 200, "{path}");
        for stream in &mut crowd {
            let mut told = String::new();
            stream.read_to_string(&mut told).expect("an answer, and the end");
            assert!(told.contains("connection: close\r\n"), "{path}: {told}");
        }
    }
}

#[test]
fn who_asks_ever_more_and_hears_nothing_keeps_no_place() {
    let site = small();
    let much = asks(&site, "/", "").repeat(200);
    let crowd: Vec<TcpStream> = (0..8).map(|_| silent(&site, &much)).collect();
    assert_eq!(site.visitor.get("/").status, 200);
    drop(crowd);
}

#[test]
fn whoever_does_not_take_an_answer_has_to_go() {
    let site = Site::start_with(Limits { answer: Duration::from_millis(50), ..Limits::default() });
    let much = asks(&site, "/assets/style.css", &known(&site)).repeat(100);
    let mut stream = silent(&site, "");
    stream.set_write_timeout(Some(Duration::from_secs(60))).expect("a socket");
    // What nobody takes fills up the way there, and then the way back.
    let error = loop {
        if let Err(error) = stream.write_all(much.as_bytes()) {
            break error;
        }
    };
    assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error:?}");
}

#[test]
fn who_was_answered_makes_room_for_who_was_not() {
    let site = small();
    let mut crowd: Vec<TcpStream> = (0..3).map(|_| silent(&site, &asks(&site, "/", &known(&site)))).collect();
    for stream in &mut crowd {
        assert!(stream.read(&mut [0; 64]).expect("an answer") > 0);
    }
    assert_eq!(site.visitor.get("/").status, 200);
}
