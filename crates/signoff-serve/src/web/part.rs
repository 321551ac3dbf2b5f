//! The parts of an address.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;

use super::desk::Refused;
use super::site::nowhere;

/// What stands at the named places of a path. One that is no text leads nowhere, and that is told on a page as always.
pub struct Part<T>(pub T);

impl<S, T> FromRequestParts<S> for Part<T>
where
    Path<T>: FromRequestParts<S>,
    S: Send + Sync,
{
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        path.map(|Path(part)| Self(part)).map_err(|_| nowhere())
    }
}
