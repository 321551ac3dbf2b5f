//! What stands at the head of every answer.

use axum::http::header::{self, HeaderName, HeaderValue};
use axum::response::Response;

/// Nothing but what this server sends itself, and nowhere but within itself.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// For a file that is whole in itself: its own style, and nothing that acts.
pub const POLICY_OF_FILES: &str = "default-src 'none'; script-src 'none'; style-src 'unsafe-inline'; img-src data:; \
                                   form-action 'none'; base-uri 'none'; frame-ancestors 'none'; sandbox";

/// With `no-referrer` browsers would send our own forms with `Origin: null`, as they send those of strangers.
const REFERRER: &str = "same-origin";

const ALWAYS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, REFERRER),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
];

/// Adds what an answer does not say itself.
pub fn dress(mut response: Response) -> Response {
    for (name, value) in ALWAYS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// The last answer on its connection.
pub fn parting(mut answer: Response) -> Response {
    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}
