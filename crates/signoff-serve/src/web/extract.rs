//! Extracts the input of handlers: path parameters and submitted forms, in which each field may occur once.

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::app_state::{error_response, page_not_found};
use super::backend::{RequestError, RequestErrorKind};

/// The fields of a submitted form.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FormFields(BTreeMap<String, String>);

const CONTENT_TYPE: &str = "application/x-www-form-urlencoded";

impl FormFields {
    fn parse(body: &[u8]) -> Result<Self, RequestError> {
        let mut fields = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(body) {
            if fields.contains_key(&*name) {
                return Err(invalid(format!("field `{name}` is repeated")));
            }
            // Browsers end lines with CRLF.
            fields.insert(name.into_owned(), value.replace("\r\n", "\n"));
        }
        Ok(Self(fields))
    }

    /// The value of a field; empty if it was not sent.
    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// The value of a required field.
    pub fn required(&self, name: &str) -> Result<String, RequestError> {
        let text = self.text(name).trim();
        if text.is_empty() { Err(invalid(format!("field `{name}` is missing"))) } else { Ok(text.to_owned()) }
    }

    /// The value of an optional numeric field.
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, RequestError> {
        match self.text(name).trim() {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| invalid(format!("`{text}` in field `{name}` is not a number"))),
        }
    }

    /// A list of task numbers, separated by commas or spaces: `3, 4` or `#3 #4`.
    pub fn task_ids(&self, name: &str) -> Result<Vec<u64>, RequestError> {
        let words = self.text(name).split([',', ' ']).map(|word| word.trim().trim_start_matches('#'));
        let number =
            |word: &str| word.parse().map_err(|_| invalid(format!("`{word}` in field `{name}` is not a task number")));
        words.filter(|word| !word.is_empty()).map(number).collect()
    }
}

pub fn invalid(message: String) -> RequestError {
    RequestError { kind: RequestErrorKind::Invalid, message, hint: None }
}

impl<S: Send + Sync> FromRequest<S> for FormFields {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        if !is_form(request.headers()) {
            let message = format!("expected a form ({CONTENT_TYPE})");
            return Err(error_response(StatusCode::UNSUPPORTED_MEDIA_TYPE, &message, None));
        }
        let body = Bytes::from_request(request, state).await.map_err(|rejection| {
            error_response(rejection.status(), "the form is too long", Some("`signoff add -` takes longer texts"))
        })?;
        Self::parse(&body).map_err(IntoResponse::into_response)
    }
}

fn is_form(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    content_type.split(';').next().is_some_and(|mime| mime.trim().eq_ignore_ascii_case(CONTENT_TYPE))
}

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn task_ids_allow_commas_spaces_and_hashes() {
        let form = |text: &str| FormFields(BTreeMap::from([("after".to_owned(), text.to_owned())]));
        assert_eq!(form("3, 4").task_ids("after").expect("numbers"), [3, 4]);
        assert_eq!(form("#3 #4,").task_ids("after").expect("numbers"), [3, 4]);
        assert_eq!(form(" ").task_ids("after").expect("none"), [0u64; 0]);
        assert_eq!(
            form("the first").task_ids("after").expect_err("no number").message,
            "`the` in field `after` is not a task number"
        );
    }

    #[test]
    fn a_repeated_field_is_rejected() {
        let error = FormFields::parse(b"choice=retry&choice=stop").expect_err("twice");
        assert_eq!((error.kind, error.message.as_str()), (RequestErrorKind::Invalid, "field `choice` is repeated"));
    }

    proptest! {
        #[test]
        fn any_body_is_parsed_or_rejected(body in prop::collection::vec(any::<u8>(), 0..200)) {
            FormFields::parse(&body).ok();
        }
    }
}
