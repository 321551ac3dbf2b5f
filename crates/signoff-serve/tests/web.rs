//! The web server, tested over real connections.

mod auth;
mod backend;
mod connections;
mod events;
mod forms;

use std::sync::Arc;

use signoff_serve::web::{ConnectionLimits, ROUTES, WebServer};
use signoff_testkit::web_client::{WebClient, WebResponse};
use tokio::runtime::Runtime;

use backend::{BackendProbe, EmptyBackend};

/// A server on a free port, its backend, and an authenticated client.
struct WebFixture {
    runtime: Runtime,
    web: WebServer,
    probe: Arc<BackendProbe>,
    visitor: WebClient,
}

impl WebFixture {
    fn start() -> Self {
        Self::start_with(ConnectionLimits::default())
    }

    fn start_with(limits: ConnectionLimits) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let probe = Arc::new(BackendProbe::default());
        let backend = Arc::new(EmptyBackend { probe: probe.clone() });
        let at = "127.0.0.1:0".parse().expect("an address");
        let web = runtime.block_on(WebServer::start(backend, at, limits)).expect("a server");
        let visitor = WebClient::from_url(&web.url());
        Self { runtime, web, probe, visitor }
    }
}

/// Paths that do not exist or have several forms.
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

/// The routes of submitted forms (POST); all others are pages (GET).
const FORMS: [&str; 6] = [
    "/tasks",
    "/questions/{question}/answer",
    "/tasks/{task}/retry",
    "/tasks/{task}/cancel",
    "/tasks/{task}/edit",
    "/findings/{finding}/dispute",
];

/// Field values of the forms that need any.
const FILLED: [(&str, &str); 4] = [
    ("/tasks", "text=Greet"),
    ("/questions/q1/answer", "choice=retry"),
    ("/tasks/1/edit", "verdict=APPROVED"),
    ("/findings/f-1/dispute", "reason=wrong"),
];

/// Fills in the placeholders of a route.
fn filled(path: &str) -> String {
    let places = [("{attempt}", "a1"), ("{name}", "style.css"), ("{question}", "q1"), ("{finding}", "f-1")];
    let path = places.iter().fold(path.to_owned(), |path, (place, value)| path.replace(place, value));
    path.replace("{task}", "1").replace("{run}", "1")
}

/// Lists the paths of all pages, and some that do not exist.
fn pages() -> Vec<String> {
    let get_routes = ROUTES.iter().filter(|route| !FORMS.contains(&route.path)).map(|route| filled(route.path));
    get_routes.chain(MORE_PAGES.map(str::to_owned)).collect()
}

/// Lists all forms with valid values.
fn forms() -> Vec<(String, &'static str)> {
    let paths = FORMS.iter().map(|path| filled(path));
    let sent = |path: &str| FILLED.iter().find(|(known, _)| *known == path).map_or("", |(_, form)| *form);
    paths.map(|path| (path.clone(), sent(&path))).collect()
}

/// Checks the headers that every response must have.
fn check_head(what: &str, answer: &WebResponse) {
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
