//! Security and caching headers of every response.

use axum::http::header::{self, HeaderName, HeaderValue};
use axum::response::Response;

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
