//! The server of the pages, spoken to over a real connection.

mod crowd;
mod desk;
mod door;
mod forms;
mod listening;

use std::sync::Arc;

use signoff_serve::web::{Limits, ROUTES, Web};
use signoff_testkit::visitor::{Answer, Visitor};
use tokio::runtime::Runtime;

use desk::{Bare, Told};

/// A server on a free port, its desk, and somebody who may come in.
struct Site {
    runtime: Runtime,
    web: Web,
    told: Arc<Told>,
    visitor: Visitor,
}

impl Site {
    fn start() -> Self {
        Self::start_with(Limits::default())
    }

    fn start_with(limits: Limits) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let told = Arc::new(Told::default());
        let desk = Arc::new(Bare { told: told.clone() });
        let at = "127.0.0.1:0".parse().expect("an address");
        let web = runtime.block_on(Web::start_with(desk, at, limits)).expect("a server");
        let visitor = Visitor::of(&web.url());
        Self { runtime, web, told, visitor }
    }
}

/// Addresses that are none, or are more than one.
const MORE_PAGES: [&str; 8] = [
    "/?all=1",
    "/assets/live.js",
    "/assets/icon.svg",
    "/assets/none",
    "/nowhere",
    "/tasks",
    "/tasks/1/retry?all=1",
    "//evil.example/",
];

/// What is sent with a form that needs to be filled in.
const FILLED: [(&str, &str); 4] = [
    ("/tasks", "text=Greet"),
    ("/questions/q1/answer", "choice=retry"),
    ("/tasks/1/edit", "verdict=APPROVED"),
    ("/findings/f-1/dispute", "reason=wrong"),
];

/// An address of the table, with its places filled in.
fn filled(path: &str) -> String {
    let places = [("{attempt}", "a1"), ("{name}", "style.css"), ("{question}", "q1"), ("{finding}", "f-1")];
    let path = places.iter().fold(path.to_owned(), |path, (place, value)| path.replace(place, value));
    path.replace("{task}", "1").replace("{run}", "1")
}

/// Every page there is, and some there are not.
fn pages() -> Vec<String> {
    let known = ROUTES.iter().filter(|route| !route.is_form).map(|route| filled(route.path));
    known.chain(MORE_PAGES.map(str::to_owned)).collect()
}

/// Every form there is, filled in as it should be.
fn forms() -> Vec<(String, &'static str)> {
    let paths = ROUTES.iter().filter(|route| route.is_form).map(|route| filled(route.path));
    let sent = |path: &str| FILLED.iter().find(|(known, _)| *known == path).map_or("", |(_, form)| *form);
    paths.map(|path| (path.clone(), sent(&path))).collect()
}

/// What stands at the head of every answer, whatever it is.
fn check_head(what: &str, answer: &Answer) {
    let policy = answer.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; script-src '"), "{what}: {policy}");
    assert!(policy.contains("base-uri 'none'; frame-ancestors 'none'"), "{what}: {policy}");
    assert_eq!(policy.contains("unsafe"), what.ends_with("report.html") && answer.status == 200, "{what}");
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(answer.header(name), value, "{what}: {name}");
    }
    let referrer = answer.header("referrer-policy");
    assert!(["same-origin", "no-referrer"].contains(&referrer), "{what}: {referrer}");
    let cached = answer.header("cache-control");
    let asset = !answer.header("etag").is_empty();
    assert_eq!(
        cached,
        if asset {
            "private, no-cache"
        } else if what.ends_with("/events") && answer.status == 200 {
            "no-cache"
        } else {
            "no-store"
        },
        "{what}"
    );
    assert_eq!(answer.header("access-control-allow-origin"), "", "{what}");
}
