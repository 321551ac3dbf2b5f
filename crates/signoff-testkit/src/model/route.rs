//! Classifies a request by its method and path.

use axum::http::Method;

use super::dialect::Dialect;
use super::gemini::model_and_method;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModelRoute {
    Reply(Dialect),
    Count(Dialect),
    Models,
    /// A health check.
    HealthCheck,
    Unknown,
}

impl ModelRoute {
    /// Uses only the end of the path, because clients use different prefixes.
    pub fn parse(method: &Method, path: &str) -> Self {
        let path = path.trim_end_matches('/');
        if *method == Method::HEAD {
            return Self::HealthCheck;
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
