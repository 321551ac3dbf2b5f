//! The server of the pages, and its door: token, host, origin, size.
//!
//! It knows nothing of stores and agents; what is shown and done comes from a [`Desk`].

mod connections;
mod desk;
mod door;
mod form;
mod headers;
mod live;
mod pages;
mod part;
mod patience;
mod routes;
mod site;
mod token;
mod wishes;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use connections::Limits;
pub use desk::{Change, Desk, Done, NewTask, Refused, Reported, Watcher, Why, Wish};
use door::{Denied, Door, Judged};
use live::Live;
pub use routes::{ROUTES, Route};
use site::{Site, nowhere, problem};
use token::Token;

/// The longest form: more than any text that somebody types.
const LONGEST: usize = 64 * 1024;

/// How long those are waited for who are being answered when it ends.
const PARTING: Duration = Duration::from_millis(500);

/// The pages, being served. They end with it.
#[derive(Debug)]
pub struct Web {
    at: SocketAddr,
    token: Token,
    ticket: Token,
    live: Arc<Live>,
    serving: JoinHandle<()>,
}

impl Web {
    /// Starts to serve, within the runtime at hand. The port 0 is a free one.
    pub async fn start(desk: Arc<dyn Desk>, at: SocketAddr) -> io::Result<Self> {
        Self::start_with(desk, at, Limits::default()).await
    }

    /// The same, with other limits than usual.
    pub async fn start_with(desk: Arc<dyn Desk>, at: SocketAddr, limits: Limits) -> io::Result<Self> {
        let listener = TcpListener::bind(at).await?;
        let at = listener.local_addr()?;
        let (token, ticket) = (Token::fresh()?, Token::fresh()?);
        let door = Door {
            ip: at.ip(),
            port: at.port(),
            token: token.clone(),
            ticket: Mutex::new(Some(ticket.clone())),
        };
        let live = Live::start(desk.watcher(), limits.heartbeat)?;
        let router = router(Arc::new(Site::new(door, live.clone(), desk)));
        let serving = tokio::spawn(connections::serve(listener, router, live.clone(), limits));
        Ok(Self { at, token, ticket, live, serving })
    }

    pub fn port(&self) -> u16 {
        self.at.port()
    }

    /// Where it is, with all that is needed to get in. Whoever has it may decide everything.
    pub fn url(&self) -> String {
        self.address(&self.token)
    }

    /// The same for one visit.
    pub fn url_for_once(&self) -> String {
        self.address(&self.ticket)
    }

    fn address(&self, token: &Token) -> String {
        let ip = match self.at.ip() {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED) => IpAddr::V6(Ipv6Addr::LOCALHOST),
            ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
        };
        format!("http://{}/?token={}", SocketAddr::new(ip, self.at.port()), token.reveal())
    }

    /// Ends it, whoever still looks.
    pub async fn end(mut self) {
        self.live.end();
        tokio::time::timeout(PARTING, &mut self.serving).await.ok();
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.live.end();
        self.serving.abort();
    }
}

fn router(site: Arc<Site>) -> Router {
    routes::router()
        .fallback(|| async { nowhere() })
        .method_not_allowed_fallback(|| async { denied(Denied::Method) })
        .layer(DefaultBodyLimit::max(LONGEST))
        .layer(middleware::from_fn_with_state(site.clone(), admit))
        .with_state(site)
}

/// Lets in who may come in. Every answer is dressed, whatever it is.
async fn admit(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let answer = match site.door.judge(request.method(), request.uri(), request.headers()) {
        Judged::In => next.run(request).await,
        Judged::Stranger => headers::parting(next.run(request).await),
        Judged::Welcome { to } => welcome(&site.door, &to),
        Judged::Out(denied) => headers::parting(self::denied(denied)),
    };
    headers::dress(answer)
}

/// On to the same page, which the browser may show from now on. The address with the token is told to nobody.
fn welcome(door: &Door, to: &str) -> Response {
    let quiet = (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    let headers = [(header::LOCATION, to.to_owned()), (header::SET_COOKIE, door.cookie())];
    (StatusCode::SEE_OTHER, [quiet], headers).into_response()
}

fn denied(denied: Denied) -> Response {
    let (status, message, hint) = match denied {
        Denied::Host => (
            StatusCode::MISDIRECTED_REQUEST,
            "this request is for another host",
            "use the address that `signoff serve` prints where it was started",
        ),
        Denied::Origin => (
            StatusCode::FORBIDDEN,
            "this request comes from another page",
            "type the address, or open it from where `signoff serve` prints it",
        ),
        Denied::Method => {
            (StatusCode::METHOD_NOT_ALLOWED, "this cannot be done here", "go back to the page you came from")
        }
        Denied::Token => (
            StatusCode::UNAUTHORIZED,
            "this page is only for those who have its whole address",
            "open the address that `signoff serve` prints where it was started; each start makes a new one",
        ),
    };
    let mut response = problem(status, message, Some(hint));
    match denied {
        Denied::Token => {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
        }
        Denied::Method => response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, POST")),
        Denied::Host | Denied::Origin => None,
    };
    response
}
