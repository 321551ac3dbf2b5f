//! Answers as they go over the wire, whole or broken.

use std::{future, io, vec};

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use futures_util::stream;
use serde_json::Value;

use super::fault::{Piece, Refusal};

pub(super) fn json(status: StatusCode, value: &Value) -> Response {
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(super) fn refuse(refusal: &Refusal, body: &Value) -> Response {
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(status, body);
    if let Some(seconds) = refusal.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Sends one piece after the other.
pub(super) fn send(kind: &'static str, pieces: Vec<Piece>) -> Response {
    let mut response = Response::new(Body::from_stream(stream::unfold(pieces.into_iter(), next)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

async fn next(mut pieces: vec::IntoIter<Piece>) -> Option<(io::Result<String>, vec::IntoIter<Piece>)> {
    loop {
        match pieces.next()? {
            Piece::Send(text) => return Some((Ok(text), pieces)),
            Piece::Wait(time) => tokio::time::sleep(time).await,
            Piece::Break => {
                // hyper closes a connection whose body fails. What came before is sent only if it has to wait.
                tokio::task::yield_now().await;
                return Some((Err(io::ErrorKind::ConnectionReset.into()), pieces));
            }
            Piece::Hang => future::pending().await,
        }
    }
}

/// A body in two parts, between which something can go wrong.
pub(super) fn halves(body: &str) -> Vec<String> {
    super::reply::halves(body).into_iter().map(str::to_owned).collect()
}
