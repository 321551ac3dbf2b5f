//! Who was not let in sees nothing and changes nothing, also through the browser of somebody who was.

use std::net::TcpListener;

use signoff_testkit::browser::{Browser, Window};

use super::{address, asking, status, visit};

#[test]
#[ignore = "needs a browser: scripts/browser"]
fn without_the_token_there_is_nothing_to_see() {
    let project = asking(1);
    let served = signoff_testkit::serve::Served::start(&project);
    let browser = Browser::start(Window::DESK);
    for path in ["/", "/tasks/1", "/tasks/1/diff", "/stats", "/add", "/events", "/?token=wrong"] {
        browser.open(&address(&served, path));
        assert!(!browser.text("body").contains("Log in"), "{path}: {}", browser.text("body"));
        assert!(browser.text("body").contains("signoff serve"), "{path}: {}", browser.text("body"));
    }
    browser.open(&served.url);
    assert!(browser.text("body").contains("Log in"));
    // The token does not stay in the address, where others could read it over a shoulder or in a history.
    assert_eq!(browser.url(), address(&served, "/"));
    assert_eq!(browser.run("return document.cookie"), "", "no script reads it");
}

/// A page of another origin, whoever serves it.
fn elsewhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            // What is asked for is all the same.
            let _asked = stream.read(&mut [0; 4096]);
            let body = "<!doctype html><title>Elsewhere</title><p>Elsewhere";
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close";
            write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).ok();
        }
    });
    format!("http://127.0.0.1:{port}/")
}

#[test]
#[ignore = "needs a browser: scripts/browser"]
fn a_page_of_another_origin_can_neither_read_nor_act() {
    let project = asking(1);
    let (served, browser) = visit(&project, Window::DESK);
    let cancel = address(&served, "/tasks/1/cancel");
    browser.open(&elsewhere());
    for (method, url) in [("GET", address(&served, "/")), ("POST", cancel.clone())] {
        let tried = browser.run_until_called(
            "const [method, url, done] = arguments; fetch(url, { method, credentials: 'include', \
             headers: method === 'POST' ? { 'content-type': 'application/x-www-form-urlencoded' } : {} })\
             .then((answer) => done('answered ' + answer.status), (error) => done('refused'));",
            vec![method.into(), url.into()],
        );
        assert_eq!(tried, "refused", "{method}");
    }
    // A form needs nobody's leave to be sent.
    browser.run(&format!(
        "const form = document.createElement('form'); form.method = 'post'; form.action = {cancel:?}; \
         document.body.append(form); form.submit();"
    ));
    browser.wait_until("location.pathname === '/tasks/1/cancel'");
    assert_eq!(status(&project, 1), "\"pending\" null");
    // Nor can it be shown in a frame.
    browser.open(&elsewhere());
    let framed = browser.run_until_called(
        "const [url, done] = arguments; const frame = document.createElement('iframe'); frame.src = url; \
         frame.onload = () => { try { done(frame.contentDocument ? 'read' : 'hidden'); } catch { done('hidden'); } }; \
         document.body.append(frame);",
        vec![address(&served, "/").into()],
    );
    assert_eq!(framed, "hidden");
}
