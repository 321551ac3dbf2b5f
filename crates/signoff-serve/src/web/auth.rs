//! Authenticates requests: the host must be this server, the origin must not be another site, the token must match.
//!
//! Any page in a browser and any program on this machine can send requests here.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::{fmt, io};

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, Uri, header};
use subtle::ConstantTimeEq;

/// The port of a URL that names none.
const DEFAULT_HTTP_PORT: u16 = 80;

/// Checks the host, origin and token of requests.
#[derive(Debug)]
pub struct RequestAuth {
    pub ip: IpAddr,
    pub port: u16,
    pub token: SecretToken,
    /// A token that is valid once. It is passed to the browser on a command line, which other users can read.
    pub one_time_token: Mutex<Option<SecretToken>>,
}

/// The decision about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthDecision {
    Allow,
    /// No token, but the resource is public.
    AllowPublic,
    /// The URL has a valid token: set the cookie and redirect to the same page without the token.
    SetCookie {
        redirect_to: String,
    },
    Deny(DenyReason),
}

/// Why a request is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DenyReason {
    /// The `Host` header is missing or names another host.
    Host,
    /// The request comes from a page of another origin.
    Origin,
    /// The method is neither GET nor POST.
    Method,
    Token,
}

impl RequestAuth {
    /// Checks everything but the body.
    pub fn check(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> AuthDecision {
        let Some(host) = self.matching_host(uri, headers) else {
            return AuthDecision::Deny(DenyReason::Host);
        };
        let bearer = bearer(headers).is_some_and(|token| self.token.matches(token));
        if !is_same_origin(method, host, headers, bearer) {
            return AuthDecision::Deny(DenyReason::Origin);
        }
        if method != Method::GET && method != Method::POST {
            return AuthDecision::Deny(DenyReason::Method);
        }
        if let Some(token) = query_token(uri).filter(|_| method == Method::GET) {
            let is_valid = self.token.matches(&token) || self.use_one_time_token(&token);
            return if is_valid {
                AuthDecision::SetCookie { redirect_to: without_token(uri) }
            } else {
                AuthDecision::Deny(DenyReason::Token)
            };
        }
        match bearer || self.has_cookie(headers) {
            true => AuthDecision::Allow,
            false if is_stylesheet(method, uri) => AuthDecision::AllowPublic,
            false => AuthDecision::Deny(DenyReason::Token),
        }
    }

    /// The `Set-Cookie` value. Cookies are not scoped to a port, so the name contains it.
    pub fn cookie(&self) -> String {
        format!("{}={}; HttpOnly; SameSite=Strict; Path=/", self.cookie_name(), self.token.reveal())
    }

    fn cookie_name(&self) -> String {
        format!("signoff-{}", self.port)
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let name = self.cookie_name();
        let lines = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(cookie, value)| cookie == name && self.token.matches(value))
    }

    fn use_one_time_token(&self, token: &str) -> bool {
        let mut one_time_token = self.one_time_token.lock().unwrap_or_else(PoisonError::into_inner);
        one_time_token.take_if(|stored| stored.matches(token)).is_some()
    }

    /// The `Host` of the request, if it is this server.
    fn matching_host<'a>(&self, uri: &Uri, headers: &'a HeaderMap) -> Option<&'a str> {
        let mut hosts = headers.get_all(header::HOST).into_iter();
        let (host, more) = (hosts.next()?.to_str().ok()?, hosts.next());
        let named: Authority = host.parse().ok()?;
        // Only a request to a proxy has an authority in its target; it must match the header.
        let is_same = uri.authority().is_none_or(|target| target.as_str().eq_ignore_ascii_case(host));
        (more.is_none() && is_same && !host.contains('@') && self.is_own_host(&named)).then_some(host)
    }

    /// Accepts only `localhost` and IP addresses. The owner of any other name could point it at this machine (DNS
    /// rebinding).
    fn is_own_host(&self, named: &Authority) -> bool {
        let host = named.host().to_ascii_lowercase();
        let number = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
        let is_loopback = host == "localhost" || number.is_some_and(|ip| LOOPBACK.contains(&ip));
        let is_ours = match self.ip {
            ip if ip.is_loopback() => is_loopback || number == Some(ip),
            ip if ip.is_unspecified() => is_loopback || number.is_some(),
            ip => number == Some(ip),
        };
        is_ours && named.port_u16().unwrap_or(DEFAULT_HTTP_PORT) == self.port
    }
}

/// The loopback addresses.
const LOOPBACK: [IpAddr; 2] = [IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// Whether the request comes from this origin. A browser sends `Origin` with every POST; a program that sends the
/// bearer token may omit it.
fn is_same_origin(method: &Method, host: &str, headers: &HeaderMap, bearer: bool) -> bool {
    let mut origins = headers.get_all(header::ORIGIN).into_iter();
    if let Some(origin) = origins.next() {
        let own = format!("http://{host}");
        return origins.next().is_none() && origin.as_bytes().eq_ignore_ascii_case(own.as_bytes());
    }
    let mut sites = headers.get_all("sec-fetch-site").into_iter();
    let is_own = sites.all(|site| site == "same-origin" || site == "none");
    is_own && (bearer || method != Method::POST)
}

/// Whether the request is for a stylesheet. Those are public: the page that denies access needs them, too.
fn is_stylesheet(method: &Method, uri: &Uri) -> bool {
    method == Method::GET && uri.path().starts_with("/assets/style")
}

/// The token of an `Authorization: Bearer` header.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

const TOKEN_PARAMETER: &str = "token";

/// The token in the query of a URL.
fn query_token(uri: &Uri) -> Option<String> {
    let mut pairs = form_urlencoded::parse(uri.query()?.as_bytes());
    pairs.find(|(name, _)| name == TOKEN_PARAMETER).map(|(_, value)| value.into_owned())
}

/// The path and query without the token.
fn without_token(uri: &Uri) -> String {
    let pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let others = pairs.filter(|(name, _)| name != TOKEN_PARAMETER);
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(others).finish();
    // A path that begins with two slashes would name another host.
    let path = format!("/{}", uri.path().trim_start_matches(['/', '\\']));
    if query.is_empty() { path } else { format!("{path}?{query}") }
}

/// An unguessable token. Its `Debug` output does not contain it.
#[derive(Clone)]
pub struct SecretToken(String);

/// Number of random bytes in a token.
const TOKEN_BYTES: usize = 32;

impl SecretToken {
    /// Creates a random token.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The token itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Compares in constant time.
    pub fn matches(&self, candidate: &str) -> bool {
        self.0.as_bytes().ct_eq(candidate.as_bytes()).into()
    }
}

impl fmt::Debug for SecretToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretToken")
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn test_auth(ip: impl Into<IpAddr>, port: u16) -> RequestAuth {
        let one_time_token = Mutex::new(Some(SecretToken::random().expect("randomness")));
        RequestAuth { ip: ip.into(), port, token: SecretToken::random().expect("randomness"), one_time_token }
    }

    fn accepts_host(auth: &RequestAuth, host: &str) -> bool {
        let headers = HeaderMap::from_iter([(header::HOST, host.parse().expect("a header"))]);
        auth.matching_host(&Uri::from_static("/"), &headers).is_some()
    }

    #[test]
    fn loopback_hosts_are_accepted_with_the_port() {
        let auth = test_auth(Ipv4Addr::LOCALHOST, 7447);
        for ours in ["127.0.0.1:7447", "localhost:7447", "LOCALHOST:7447", "[::1]:7447"] {
            assert!(accepts_host(&auth, ours), "{ours}");
        }
        for other in [
            "127.0.0.1",
            "127.0.0.1:7448",
            "localhost",
            "evil.example:7447",
            "localhost.evil.example:7447",
            "me@localhost:7447",
            "192.168.1.5:7447",
            "0.0.0.0:7447",
            "127.0.0.1:7447:7447",
            "",
        ] {
            assert!(!accepts_host(&auth, other), "{other}");
        }
    }

    #[test]
    fn the_default_port_may_be_omitted() {
        assert!(accepts_host(&test_auth(Ipv4Addr::LOCALHOST, 80), "localhost"));
    }

    #[test]
    fn unspecified_address_accepts_ips_but_no_names() {
        let auth = test_auth(Ipv4Addr::UNSPECIFIED, 7447);
        assert!(accepts_host(&auth, "192.168.1.5:7447") && accepts_host(&auth, "[fe80::1]:7447"));
        assert!(accepts_host(&auth, "localhost:7447") && !accepts_host(&auth, "evil.example:7447"));
        let auth = self::test_auth([192, 168, 1, 5], 7447);
        assert!(accepts_host(&auth, "192.168.1.5:7447") && !accepts_host(&auth, "localhost:7447"));
    }

    #[test]
    fn a_one_time_token_is_valid_once() {
        let auth = test_auth(Ipv4Addr::LOCALHOST, 7447);
        let token = auth.one_time_token.lock().expect("a lock").clone().expect("a token");
        assert!(!auth.use_one_time_token("another"));
        assert!(auth.use_one_time_token(token.reveal()));
        assert!(!auth.use_one_time_token(token.reveal()));
    }

    #[test]
    fn the_redirect_stays_on_this_host() {
        let to = |uri: &'static str| without_token(&Uri::from_static(uri));
        assert_eq!(to("/?token=abc"), "/");
        assert_eq!(to("/tasks/3?all=1&token=abc&token=d&x=%26"), "/tasks/3?all=1&x=%26");
        assert_eq!(to("http://h//evil.example/?token=abc"), "/evil.example/");
    }

    #[test]
    fn only_the_full_token_matches() {
        let token = SecretToken::random().expect("randomness");
        let word = token.reveal();
        assert_eq!(word.len(), 2 * TOKEN_BYTES);
        assert!(token.matches(word));
        assert!((0..word.len()).all(|end| !token.matches(&word[..end])), "a part of it");
        assert!(!token.matches(&format!("{word}0")) && !token.matches(&word.to_uppercase().replace('0', "O")));
        assert!(!token.matches(SecretToken::random().expect("randomness").reveal()));
        assert_eq!(format!("{token:?}"), "SecretToken");
    }
}
