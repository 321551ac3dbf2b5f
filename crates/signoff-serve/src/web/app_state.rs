//! The state that all request handlers share (backend, authentication, live updates, pending notices), and the
//! responses that they build.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use tokio::sync::Semaphore;

use super::auth::RequestAuth;
use super::backend::{ActionOutcome, Backend, RequestError, RequestErrorKind};
use super::live_updates::LiveUpdates;
use crate::page::{self, NoticeKind, PageNotice};

/// The kinds of requests, each with its own limit of concurrent requests. None of them may block the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestClass {
    Read,
    /// Task pages, which run git.
    ReadWithGit,
    /// Reports and statistics, which read the logs of whole runs and take seconds.
    ReadSlowly,
    /// Actions, which may wait for another program.
    Act,
}

/// The limits, in the order of the variants.
const PERMITS: [usize; 4] = [8, 4, 2, 8];

/// Maximum number of pending notices.
const MAX_NOTICES: usize = 64;

pub struct AppState {
    pub auth: RequestAuth,
    pub live_updates: Arc<LiveUpdates>,
    backend: Arc<dyn Backend>,
    permits: [Arc<Semaphore>; PERMITS.len()],
    notices: Mutex<PendingNotices>,
}

/// Notices for the page after an action, each under an unguessable key.
type PendingNotices = VecDeque<(String, PageNotice)>;

impl AppState {
    pub fn new(auth: RequestAuth, live_updates: Arc<LiveUpdates>, backend: Arc<dyn Backend>) -> Self {
        let permits = PERMITS.map(|count| Arc::new(Semaphore::new(count)));
        Self { auth, live_updates, backend, permits, notices: Mutex::default() }
    }

    /// Calls the backend on a blocking thread. A client that disconnects before it has a permit is dropped; later, the
    /// call completes without it.
    pub async fn call<T: Send + 'static>(
        &self,
        class: RequestClass,
        work: impl FnOnce(&dyn Backend) -> Result<T, RequestError> + Send + 'static,
    ) -> Result<T, RequestError> {
        let internal_error = |message: String| RequestError { kind: RequestErrorKind::Internal, message, hint: None };
        let permit = self.permits[class as usize].clone().acquire_owned().await;
        let permit = permit.map_err(|error| internal_error(error.to_string()))?;
        let backend = self.backend.clone();
        let result = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work(&*backend)
        });
        result.await.map_err(|_| internal_error("internal error: a request handler panicked".to_owned()))?
    }

    /// Stores a notice and returns its key.
    pub fn add_notice(&self, notice: PageNotice) -> String {
        let mut bytes = [0; 8];
        // Without randomness the notice is lost; the action itself is done.
        if getrandom::fill(&mut bytes).is_err() {
            return String::new();
        }
        let key = format!("{:016x}", u64::from_ne_bytes(bytes));
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        notices.push_back((key.clone(), notice));
        if notices.len() > MAX_NOTICES {
            notices.pop_front();
        }
        key
    }

    /// Takes the notice with this key. Each notice is shown once.
    pub fn take_notice(&self, key: &str) -> Option<PageNotice> {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        let index = notices.iter().position(|(stored_key, _)| stored_key == key)?;
        notices.remove(index).map(|(_, notice)| notice)
    }
}

/// An HTML response.
pub fn html(status: StatusCode, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], text).into_response()
}

/// An error page.
pub fn error_response(status: StatusCode, message: &str, hint: Option<&str>) -> Response {
    html(status, page::error_page(status.as_u16(), message, hint))
}

impl From<ActionOutcome> for PageNotice {
    fn from(outcome: ActionOutcome) -> Self {
        Self { kind: NoticeKind::Done, message: outcome.message, hint: outcome.hint, typed: None }
    }
}

impl From<RequestError> for PageNotice {
    fn from(error: RequestError) -> Self {
        Self { kind: NoticeKind::Refused, message: error.message, hint: error.hint, typed: None }
    }
}

impl RequestError {
    pub fn status(&self) -> StatusCode {
        match self.kind {
            RequestErrorKind::NotFound => StatusCode::NOT_FOUND,
            RequestErrorKind::Invalid => StatusCode::BAD_REQUEST,
            RequestErrorKind::Conflict => StatusCode::CONFLICT,
            RequestErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl IntoResponse for RequestError {
    fn into_response(self) -> Response {
        error_response(self.status(), &self.message, self.hint.as_deref())
    }
}

/// The error for an unknown path.
pub fn page_not_found() -> RequestError {
    RequestError {
        kind: RequestErrorKind::NotFound,
        message: "there is no such page".to_owned(),
        hint: Some("the overview links to every page".to_owned()),
    }
}

/// Content security policy of pages: only resources of this server, and no embedding.
const PAGE_CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Content security policy of report files: inline style only, no script.
pub const REPORT_CSP: &str = "default-src 'none'; script-src 'none'; style-src 'unsafe-inline'; img-src data:; \
                                   form-action 'none'; base-uri 'none'; frame-ancestors 'none'; sandbox";

/// With `no-referrer`, browsers send our own forms with `Origin: null`, like those of other sites.
const REFERRER_POLICY: &str = "same-origin";

const DEFAULT_HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, PAGE_CSP),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, REFERRER_POLICY),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
];

/// Adds the default headers that a response does not set itself.
pub fn add_default_headers(mut response: Response) -> Response {
    for (name, value) in DEFAULT_HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// Closes the connection after this response.
pub fn close_connection(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}
