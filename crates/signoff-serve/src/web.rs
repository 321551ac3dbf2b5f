//! The web UI's HTTP server, with its checks of token, host, origin and size.
//!
//! It has no access to the store or to agents: a `Backend` supplies the pages and performs the actions.

mod actions;
mod app_state;
mod auth;
mod backend;
mod connections;
mod extract;
mod live_updates;
mod pages;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use app_state::{AppState, error_response, page_not_found};
pub(crate) use auth::bearer;
use auth::{AuthDecision, DenyReason, RequestAuth, SecretToken};
pub use backend::{
    ActionOutcome, AddTask, Backend, ChangeSet, ReportSubject, RequestError, RequestErrorKind, Watcher, WebAction,
};
pub use connections::ConnectionLimits;
use live_updates::LiveUpdates;

/// Maximum size of a submitted form.
const MAX_FORM_BYTES: usize = 64 * 1024;

/// How long shutdown waits for responses in progress.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(500);

/// A running web server. It stops when this value is dropped.
#[derive(Debug)]
pub struct WebServer {
    addr: SocketAddr,
    token: SecretToken,
    one_time_token: SecretToken,
    live: Arc<LiveUpdates>,
    serving: JoinHandle<()>,
}

impl WebServer {
    /// Starts the server on the current tokio runtime. Port 0 picks a free port.
    pub async fn start(backend: Arc<dyn Backend>, addr: SocketAddr, limits: ConnectionLimits) -> io::Result<Self> {
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        let (token, one_time_token) = (SecretToken::random()?, SecretToken::random()?);
        let auth = RequestAuth {
            ip: addr.ip(),
            port: addr.port(),
            token: token.clone(),
            one_time_token: Mutex::new(Some(one_time_token.clone())),
        };
        let live = LiveUpdates::start(backend.watcher(), limits.heartbeat)?;
        let router = router(Arc::new(AppState::new(auth, live.clone(), backend)));
        let serving = tokio::spawn(connections::serve(listener, router, live.clone(), limits));
        Ok(Self { addr, token, one_time_token, live, serving })
    }

    pub fn port(&self) -> u16 {
        self.addr.port()
    }

    /// The URL with the access token. It grants full access.
    pub fn url(&self) -> String {
        self.url_with_token(&self.token)
    }

    /// A URL whose token is valid for a single visit.
    pub fn one_time_url(&self) -> String {
        self.url_with_token(&self.one_time_token)
    }

    fn url_with_token(&self, token: &SecretToken) -> String {
        let ip = match self.addr.ip() {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED) => IpAddr::V6(Ipv6Addr::LOCALHOST),
            ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
        };
        format!("http://{}/?token={}", SocketAddr::new(ip, self.addr.port()), token.reveal())
    }

    /// Shuts the server down, with a short grace period for open connections.
    pub async fn shutdown(mut self) {
        self.live.stop();
        tokio::time::timeout(SHUTDOWN_GRACE, &mut self.serving).await.ok();
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        self.live.stop();
        self.serving.abort();
    }
}

/// A path and its handler.
pub struct WebRoute {
    /// `/tasks/{task}`.
    pub path: &'static str,
    handler: fn() -> MethodRouter<Arc<AppState>>,
}

const fn route(path: &'static str, handler: fn() -> MethodRouter<Arc<AppState>>) -> WebRoute {
    WebRoute { path, handler }
}

/// All routes. Tests iterate over them.
pub const ROUTES: [WebRoute; 17] = [
    route("/", || get(pages::home)),
    route("/stats", || get(pages::stats)),
    route("/add", || get(pages::add)),
    route("/runs/{run}", || get(pages::run)),
    route("/runs/{run}/report.html", || get(pages::run_report)),
    route("/tasks/{task}", || get(pages::task)),
    route("/tasks/{task}/diff", || get(pages::diff)),
    route("/tasks/{task}/transcript/{attempt}", || get(pages::transcript)),
    route("/tasks/{task}/report.html", || get(pages::task_report)),
    route("/events", || get(pages::events)),
    route("/assets/{name}", || get(pages::asset)),
    route("/tasks", || post(actions::add)),
    route("/questions/{question}/answer", || post(actions::answer)),
    route("/tasks/{task}/retry", || post(actions::retry)),
    route("/tasks/{task}/cancel", || post(actions::cancel)),
    route("/tasks/{task}/edit", || post(actions::edit)),
    route("/findings/{finding}/dispute", || post(actions::dispute)),
];

fn router(state: Arc<AppState>) -> Router {
    let add = |router: Router<Arc<AppState>>, route: WebRoute| router.route(route.path, (route.handler)());
    ROUTES
        .into_iter()
        .fold(Router::new(), add)
        .fallback(|| async { page_not_found() })
        .method_not_allowed_fallback(|| async { deny_response(DenyReason::Method) })
        .layer(DefaultBodyLimit::max(MAX_FORM_BYTES))
        .layer(middleware::from_fn_with_state(state.clone(), authenticate))
        .with_state(state)
}

/// Authenticates each request and adds the default headers to each response.
async fn authenticate(State(state): State<Arc<AppState>>, request: Request, next: Next) -> Response {
    let response = match state.auth.check(request.method(), request.uri(), request.headers()) {
        AuthDecision::Allow => next.run(request).await,
        AuthDecision::AllowPublic => app_state::close_connection(next.run(request).await),
        AuthDecision::SetCookie { redirect_to: to } => set_cookie_and_redirect(&state.auth, &to),
        AuthDecision::Deny(denied) => app_state::close_connection(self::deny_response(denied)),
    };
    app_state::add_default_headers(response)
}

/// Sets the session cookie and redirects to the same page without the token. The URL with the token is not sent as a
/// referrer.
fn set_cookie_and_redirect(auth: &RequestAuth, to: &str) -> Response {
    let no_referrer = (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    let headers = [(header::LOCATION, to.to_owned()), (header::SET_COOKIE, auth.cookie())];
    (StatusCode::SEE_OTHER, [no_referrer], headers).into_response()
}

fn deny_response(denied: DenyReason) -> Response {
    let (status, message, hint) = match denied {
        DenyReason::Host => {
            (StatusCode::MISDIRECTED_REQUEST, "wrong Host header", "open the address printed by `signoff serve`")
        }
        DenyReason::Origin => (
            StatusCode::FORBIDDEN,
            "this request comes from another page",
            "open the address printed by `signoff serve`",
        ),
        DenyReason::Method => {
            (StatusCode::METHOD_NOT_ALLOWED, "this method is not allowed here", "go back to the page you came from")
        }
        DenyReason::Token => (
            StatusCode::UNAUTHORIZED,
            "the token is missing or expired",
            "open the address printed by `signoff serve`; each start creates a new token",
        ),
    };
    let mut response = error_response(status, message, Some(hint));
    match denied {
        DenyReason::Token => {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
        }
        DenyReason::Method => response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, POST")),
        DenyReason::Host | DenyReason::Origin => None,
    };
    response
}
