//! Visitors without the token see and change nothing, not even through the browser of a visitor with the token.

use std::net::TcpListener;

use signoff_testkit::browser::{Browser, BrowserWindow};

use super::{address, asking, status, visit};

#[test]
#[ignore = "needs a browser: scripts/browser"]
fn without_the_token_no_page_is_shown() {
    let project = asking(1);
    let served = signoff_testkit::serve::ServeProcess::start(&project);
    let browser = Browser::start(BrowserWindow::DESKTOP);
    for path in ["/", "/tasks/1", "/tasks/1/diff", "/stats", "/add", "/events", "/?token=wrong"] {
        browser.open(&address(&served, path));
        assert!(!browser.text("body").contains("Log in"), "{path}: {}", browser.text("body"));
        assert!(browser.text("body").contains("signoff serve"), "{path}: {}", browser.text("body"));
    }
    browser.open(&served.url);
    assert!(browser.text("body").contains("Log in"));
    // The token is removed from the address, so it is not in the history.
    assert_eq!(browser.url(), address(&served, "/"));
    assert_eq!(browser.run("return document.cookie"), "", "no script reads it");
}

/// Serves a page from another origin and returns its URL.
fn foreign_page() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            // Every request gets the same answer.
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
    let (served, browser) = visit(&project, BrowserWindow::DESKTOP);
    let cancel = address(&served, "/tasks/1/cancel");
    browser.open(&foreign_page());
    for (method, url) in [("GET", address(&served, "/")), ("POST", cancel.clone())] {
        let tried = browser.run_until_called(
            "const [method, url, done] = arguments; fetch(url, { method, credentials: 'include', \
             headers: method === 'POST' ? { 'content-type': 'application/x-www-form-urlencoded' } : {} })\
             .then((answer) => done('answered ' + answer.status), (error) => done('refused'));",
            vec![method.into(), url.into()],
        );
        assert_eq!(tried, "refused", "{method}");
    }
    // A form can be sent to another origin without permission.
    browser.run(&format!(
        "const form = document.createElement('form'); form.method = 'post'; form.action = {cancel:?}; \
         document.body.append(form); form.submit();"
    ));
    browser.wait_until("location.pathname === '/tasks/1/cancel'");
    assert_eq!(status(&project, 1), "\"pending\" null");
    // The page cannot be shown in a frame.
    browser.open(&foreign_page());
    let framed = browser.run_until_called(
        "const [url, done] = arguments; const frame = document.createElement('iframe'); frame.src = url; \
         frame.onload = () => { try { done(frame.contentDocument ? 'read' : 'hidden'); } catch { done('hidden'); } }; \
         document.body.append(frame);",
        vec![address(&served, "/").into()],
    );
    assert_eq!(framed, "hidden");
}
