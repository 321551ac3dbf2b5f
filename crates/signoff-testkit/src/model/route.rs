//! What a request is for, by its method and path.

use axum::http::Method;

use super::dialect::Dialect;
use super::gemini::model_and_method;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    Reply(Dialect),
    Count(Dialect),
    Models,
    /// Whether anybody is there.
    Alive,
    Unknown,
}

impl Route {
    /// Clients put different things before the path, so its end decides.
    pub fn of(method: &Method, path: &str) -> Self {
        let path = path.trim_end_matches('/');
        if *method == Method::HEAD {
            return Self::Alive;
        }
        if *method == Method::GET {
            return if path.ends_with("/models") { Self::Models } else { Self::Unknown };
        }
        match path {
            _ if path.ends_with("/messages") => Self::Reply(Dialect::Anthropic),
            _ if path.ends_with("/messages/count_tokens") => Self::Count(Dialect::Anthropic),
            _ if path.ends_with("/chat/completions") => Self::Reply(Dialect::Chat),
            _ if path.ends_with("/responses") => Self::Reply(Dialect::Responses),
            _ if path.ends_with("/responses/input_tokens") => Self::Count(Dialect::Responses),
            _ => match model_and_method(path).1 {
                "generateContent" | "streamGenerateContent" => Self::Reply(Dialect::Gemini),
                "countTokens" => Self::Count(Dialect::Gemini),
                _ => Self::Unknown,
            },
        }
    }
}
