//! Who is let in: a request that names us as its host, comes from no page of another origin, and carries the token.
//!
//! Any page that a browser shows, and any program of this machine, can send requests here.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, Uri, header};

use super::token::Token;

/// The port that an address without one means.
const USUAL_PORT: u16 = 80;

/// Judges requests.
#[derive(Debug)]
pub struct Door {
    pub ip: IpAddr,
    pub port: u16,
    pub token: Token,
    /// Good for one visit: what is opened for a person is named on a command line, which others may see.
    pub ticket: Mutex<Option<Token>>,
}

/// What becomes of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judged {
    In,
    /// Nobody we know, who asks for what everybody may see.
    Stranger,
    /// Let in from now on by a cookie, and sent to the same page without the token.
    Welcome {
        to: String,
    },
    Out(Denied),
}

/// Why somebody stays outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// It means another host, or none.
    Host,
    /// A page of another origin sent it.
    Origin,
    /// We answer GET and POST.
    Method,
    Token,
}

impl Door {
    /// Looks at all of a request but its body.
    pub fn judge(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Judged {
        let Some(host) = self.host(uri, headers) else { return Judged::Out(Denied::Host) };
        let bearer = bearer(headers).is_some_and(|said| self.token.is(said));
        if !is_own(method, host, headers, bearer) {
            return Judged::Out(Denied::Origin);
        }
        if method != Method::GET && method != Method::POST {
            return Judged::Out(Denied::Method);
        }
        if let Some(said) = said(uri).filter(|_| method == Method::GET) {
            let known = self.token.is(&said) || self.use_ticket(&said);
            return if known {
                Judged::Welcome { to: without_token(uri) }
            } else {
                Judged::Out(Denied::Token)
            };
        }
        match bearer || self.has_cookie(headers) {
            true => Judged::In,
            false if is_style(method, uri) => Judged::Stranger,
            false => Judged::Out(Denied::Token),
        }
    }

    /// What a browser is told to keep. Cookies know no ports, so its name does.
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
        pairs.any(|(known, said)| known == name && self.token.is(said))
    }

    fn use_ticket(&self, said: &str) -> bool {
        let mut ticket = self.ticket.lock().unwrap_or_else(PoisonError::into_inner);
        ticket.take_if(|ticket| ticket.is(said)).is_some()
    }

    /// The host that a request means, if that is us.
    fn host<'a>(&self, uri: &Uri, headers: &'a HeaderMap) -> Option<&'a str> {
        let mut hosts = headers.get_all(header::HOST).into_iter();
        let (host, more) = (hosts.next()?.to_str().ok()?, hosts.next());
        let named: Authority = host.parse().ok()?;
        // A proxy would be asked for a whole address.
        let asked = uri.authority().is_none_or(|asked| asked.as_str().eq_ignore_ascii_case(host));
        (more.is_none() && asked && !host.contains('@') && self.is_us(&named)).then_some(host)
    }

    /// Names that lead elsewhere for others are none of ours: whoever owns a name can have it lead here.
    fn is_us(&self, named: &Authority) -> bool {
        let host = named.host().to_ascii_lowercase();
        let number = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
        let is_loopback = host == "localhost" || number.is_some_and(|ip| LOOPBACK.contains(&ip));
        let is_ours = match self.ip {
            ip if ip.is_loopback() => is_loopback || number == Some(ip),
            ip if ip.is_unspecified() => is_loopback || number.is_some(),
            ip => number == Some(ip),
        };
        is_ours && named.port_u16().unwrap_or(USUAL_PORT) == self.port
    }
}

/// The numbers under which this machine knows itself.
const LOOPBACK: [IpAddr; 2] = [IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// Whether no page of another origin had a hand in it. A browser says with every POST where it comes from; a program that
/// knows the token need not.
fn is_own(method: &Method, host: &str, headers: &HeaderMap, bearer: bool) -> bool {
    let mut origins = headers.get_all(header::ORIGIN).into_iter();
    if let Some(origin) = origins.next() {
        let own = format!("http://{host}");
        return origins.next().is_none() && origin.as_bytes().eq_ignore_ascii_case(own.as_bytes());
    }
    let mut sites = headers.get_all("sec-fetch-site").into_iter();
    let is_own = sites.all(|site| site == "same-origin" || site == "none");
    is_own && (bearer || method != Method::POST)
}

/// Whether it is for how pages look, which tells nothing of what they say: the page that refuses somebody needs it too.
fn is_style(method: &Method, uri: &Uri) -> bool {
    method == Method::GET && uri.path().starts_with("/assets/style")
}

/// The token of an `Authorization: Bearer` header.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

const TOKEN: &str = "token";

/// The token in an address.
fn said(uri: &Uri) -> Option<String> {
    let mut pairs = form_urlencoded::parse(uri.query()?.as_bytes());
    pairs.find(|(name, _)| name == TOKEN).map(|(_, said)| said.into_owned())
}

/// The same page, by an address that may be seen.
fn without_token(uri: &Uri) -> String {
    let pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let others = pairs.filter(|(name, _)| name != TOKEN);
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(others).finish();
    // Two slashes would begin the name of a host.
    let path = format!("/{}", uri.path().trim_start_matches(['/', '\\']));
    if query.is_empty() { path } else { format!("{path}?{query}") }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn door(ip: impl Into<IpAddr>, port: u16) -> Door {
        let ticket = Mutex::new(Some(Token::fresh().expect("randomness")));
        Door { ip: ip.into(), port, token: Token::fresh().expect("randomness"), ticket }
    }

    fn is_us(door: &Door, host: &str) -> bool {
        let headers = HeaderMap::from_iter([(header::HOST, host.parse().expect("a header"))]);
        door.host(&Uri::from_static("/"), &headers).is_some()
    }

    #[test]
    fn on_loopback_three_names_are_ours_with_the_port() {
        let door = door(Ipv4Addr::LOCALHOST, 7447);
        for ours in ["127.0.0.1:7447", "localhost:7447", "LOCALHOST:7447", "[::1]:7447"] {
            assert!(is_us(&door, ours), "{ours}");
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
            assert!(!is_us(&door, other), "{other}");
        }
    }

    #[test]
    fn the_usual_port_need_not_be_named() {
        assert!(is_us(&door(Ipv4Addr::LOCALHOST, 80), "localhost"));
    }

    #[test]
    fn everywhere_numbers_are_ours_and_names_are_not() {
        let door = door(Ipv4Addr::UNSPECIFIED, 7447);
        assert!(is_us(&door, "192.168.1.5:7447") && is_us(&door, "[fe80::1]:7447"));
        assert!(is_us(&door, "localhost:7447") && !is_us(&door, "evil.example:7447"));
        let one = self::door([192, 168, 1, 5], 7447);
        assert!(is_us(&one, "192.168.1.5:7447") && !is_us(&one, "localhost:7447"));
    }

    #[test]
    fn a_ticket_is_good_once() {
        let door = door(Ipv4Addr::LOCALHOST, 7447);
        let ticket = door.ticket.lock().expect("a lock").clone().expect("a ticket");
        assert!(!door.use_ticket("another"));
        assert!(door.use_ticket(ticket.reveal()));
        assert!(!door.use_ticket(ticket.reveal()));
    }

    #[test]
    fn the_way_on_is_the_same_page_here() {
        let to = |uri: &'static str| without_token(&Uri::from_static(uri));
        assert_eq!(to("/?token=abc"), "/");
        assert_eq!(to("/tasks/3?all=1&token=abc&token=d&x=%26"), "/tasks/3?all=1&x=%26");
        assert_eq!(to("http://h//evil.example/?token=abc"), "/evil.example/");
    }
}
