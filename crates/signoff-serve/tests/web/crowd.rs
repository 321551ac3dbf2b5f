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
    let site = Site::start_with(Limits { head: Duration::from_millis(400), connections: 2 });
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
