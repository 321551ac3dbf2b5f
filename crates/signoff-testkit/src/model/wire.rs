//! HTTP responses of the model server, complete or interrupted.

use std::{future, io, vec};

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use futures_util::stream;
use serde_json::Value;

use super::fault::{ModelError, WirePiece};

pub(super) fn json(status: StatusCode, value: &Value) -> Response {
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(super) fn error_response(error: &ModelError, body: &Value) -> Response {
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(status, body);
    if let Some(seconds) = error.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// A response that sends the pieces in order.
pub(super) fn pieces_response(kind: &'static str, pieces: Vec<WirePiece>) -> Response {
    let mut response = Response::new(Body::from_stream(stream::unfold(pieces.into_iter(), next_piece)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

async fn next_piece(mut pieces: vec::IntoIter<WirePiece>) -> Option<(io::Result<String>, vec::IntoIter<WirePiece>)> {
    loop {
        match pieces.next()? {
            WirePiece::Send(text) => return Some((Ok(text), pieces)),
            WirePiece::Wait(time) => tokio::time::sleep(time).await,
            WirePiece::Break => {
                // hyper closes a connection whose body fails. Yield first, so that it flushes the earlier pieces.
                tokio::task::yield_now().await;
                return Some((Err(io::ErrorKind::ConnectionReset.into()), pieces));
            }
            WirePiece::Hang => future::pending().await,
        }
    }
}

/// Splits a body in two parts, so that a fault can happen between them.
pub(super) fn halves(body: &str) -> Vec<String> {
    super::reply::halves(body).into_iter().map(str::to_owned).collect()
}
