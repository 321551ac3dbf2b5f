//! Extracts path parameters; invalid ones give the "not found" page.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;

use super::app_state::page_not_found;
use super::backend::RequestError;

/// The parameters of a path. If they are not valid UTF-8, the response is our own "not found" page.
pub struct PathParams<T>(pub T);

impl<S, T> FromRequestParts<S> for PathParams<T>
where
    Path<T>: FromRequestParts<S>,
    S: Send + Sync,
{
    type Rejection = RequestError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, RequestError> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        path.map(|Path(part)| Self(part)).map_err(|_| page_not_found())
    }
}
