//! What a form sends: names and values, each once.

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::desk::{Refused, Why};
use super::site::problem;

/// The fields of a form that a browser sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Form(BTreeMap<String, String>);

const CONTENT_TYPE: &str = "application/x-www-form-urlencoded";

impl Form {
    fn read(body: &[u8]) -> Result<Self, Refused> {
        let mut fields = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(body) {
            if fields.contains_key(&*name) {
                return Err(unclear(format!("the form says `{name}` twice")));
            }
            // Browsers end lines as letters do.
            fields.insert(name.into_owned(), value.replace("\r\n", "\n"));
        }
        Ok(Self(fields))
    }

    /// A field; empty where it was not sent.
    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// A field that must be there.
    pub fn needed(&self, name: &str) -> Result<String, Refused> {
        let text = self.text(name).trim();
        if text.is_empty() { Err(unclear(format!("the form lacks `{name}`"))) } else { Ok(text.to_owned()) }
    }

    /// A number that need not be there.
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Refused> {
        match self.text(name).trim() {
            "" => Ok(None),
            text => {
                text.parse().map(Some).map_err(|_| unclear(format!("`{text}` is no number for `{name}`")))
            }
        }
    }

    /// Numbers of tasks, with anything but digits between them: `3, 4` or `#3 #4`.
    pub fn tasks(&self, name: &str) -> Result<Vec<u64>, Refused> {
        let words = self.text(name).split([',', ' ']).map(|word| word.trim().trim_start_matches('#'));
        let number = |word: &str| {
            word.parse().map_err(|_| unclear(format!("`{word}` is no number of a task for `{name}`")))
        };
        words.filter(|word| !word.is_empty()).map(number).collect()
    }
}

pub fn unclear(message: String) -> Refused {
    Refused { why: Why::Unclear, message, hint: None }
}

impl<S: Send + Sync> FromRequest<S> for Form {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        if !is_form(request.headers()) {
            let message = format!("only forms are taken here, as {CONTENT_TYPE}");
            return Err(problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, &message, None));
        }
        let body = Bytes::from_request(request, state).await.map_err(|refused| {
            problem(
                refused.status(),
                "this is too long to be taken in",
                Some("`signoff add -` takes longer texts"),
            )
        })?;
        Self::read(&body).map_err(IntoResponse::into_response)
    }
}

fn is_form(headers: &HeaderMap) -> bool {
    let sent = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    sent.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(CONTENT_TYPE))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_of_tasks_are_read_as_people_write_them() {
        let form = |text: &str| Form(BTreeMap::from([("after".to_owned(), text.to_owned())]));
        assert_eq!(form("3, 4").tasks("after").expect("numbers"), [3, 4]);
        assert_eq!(form("#3 #4,").tasks("after").expect("numbers"), [3, 4]);
        assert_eq!(form(" ").tasks("after").expect("none"), [0u64; 0]);
        assert_eq!(
            form("the first").tasks("after").expect_err("no number").message,
            "`the` is no number of a task for `after`"
        );
    }

    #[test]
    fn what_is_said_twice_is_not_understood() {
        let refused = Form::read(b"choice=retry&choice=stop").expect_err("twice");
        assert_eq!((refused.why, refused.message.as_str()), (Why::Unclear, "the form says `choice` twice"));
    }

    proptest! {
        #[test]
        fn any_body_is_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..200)) {
            Form::read(&body).ok();
        }
    }
}
