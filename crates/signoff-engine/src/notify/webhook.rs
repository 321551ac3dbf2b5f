//! A channel that posts. Its address is a secret: of it only the host is ever said.

use std::time::Duration;

use signoff_core::config::{Address, Format, Webhook, Where};
use signoff_core::notify::Message;
use ureq::http::Response;
use ureq::{Agent, Body, Error};

use super::{Manners, Surroundings, Undelivered, slack};
use crate::process::door;

/// How often it is tried.
const TRIES: u32 = 3;

/// Why one try failed, and how long to wait before another; none if another would be of no use.
struct Failed {
    why: Undelivered,
    again: Option<Duration>,
}

/// Where it posts to.
pub fn address(hook: &Webhook, around: &Surroundings) -> Result<Address, Undelivered> {
    match &hook.at {
        Where::Here(address) => Ok(address.clone()),
        Where::Variable(name) => {
            let set = around.variables.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
            let address = Address::new(set.ok_or_else(|| Undelivered::Unset(name.clone()))?);
            if address.is_one() { Ok(address) } else { Err(Undelivered::NoAddress(name.clone())) }
        }
    }
}

pub fn post(hook: &Webhook, message: &Message, around: &Surroundings) -> Result<(), Undelivered> {
    let address = address(hook, around)?;
    let body = match hook.format {
        Format::Json => serde_json::to_string(message).unwrap_or_default(),
        Format::Slack => slack::body(message).to_string(),
    };
    let agent = agent(&around.manners);
    let mut tries = 1;
    loop {
        let failed = match once(&agent, (hook, &address), &body, &around.manners) {
            Ok(()) => return Ok(()),
            Err(failed) => failed,
        };
        let Some(wait) = failed.again.filter(|_| tries < TRIES) else { return Err(failed.why) };
        // A server that names a time is asked then; others after twice as long each time.
        door::pause(if wait.is_zero() { around.manners.backoff * tries } else { wait });
        tries += 1;
    }
}

/// A redirect is not followed: what stands in the message is for this host and no other.
fn agent(manners: &Manners) -> Agent {
    Agent::config_builder()
        .timeout_connect(Some(manners.connect))
        .timeout_global(Some(manners.answer))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .user_agent(concat!("signoff/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

fn once(
    agent: &Agent,
    (hook, address): (&Webhook, &Address),
    body: &str,
    manners: &Manners,
) -> Result<(), Failed> {
    let mut request = agent.post(address.expose()).header("content-type", "application/json; charset=utf-8");
    for (name, value) in &hook.headers {
        request = request.header(name, value);
    }
    let host = address.host().to_owned();
    match request.send(body) {
        Ok(response) if response.status().is_success() => Ok(()),
        Ok(response) => Err(refused(host, &response, manners)),
        Err(error) => Err(unreached(host, &error)),
    }
}

fn refused(host: String, response: &Response<Body>, manners: &Manners) -> Failed {
    let status = response.status().as_u16();
    let told =
        response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let told = told.map(Duration::from_secs);
    let too_long = told.is_some_and(|told| told > manners.longest);
    let busy = matches!(status, 408 | 425 | 429 | 500..=599);
    let hint = match status {
        300..=399 => "it is not followed elsewhere: write the address that it leads to",
        401 | 403 => "look whether its address and headers are still right",
        404 | 410 => "look whether its address is still right",
        408 | 425 | 429 | 500..=599 => "it may be better later",
        _ => "look whether `format` is what it takes",
    };
    let again = (busy && !too_long).then(|| told.unwrap_or_default());
    Failed { why: Undelivered::Refused { host, status, hint }, again }
}

/// In words of our own: what the client says may hold the address.
fn unreached(host: String, error: &Error) -> Failed {
    let unusable = matches!(error, Error::BadUri(_) | Error::Http(_) | Error::InvalidProxyUrl);
    let why = if let Error::Io(error) = error {
        error.to_string()
    } else if matches!(error, Error::Timeout(_)) {
        "no answer in time".to_owned()
    } else if matches!(error, Error::HostNotFound) {
        "nobody knows that name".to_owned()
    } else if unusable {
        "the address, a header or the proxy cannot be used".to_owned()
    } else {
        "the connection failed".to_owned()
    };
    Failed { why: Undelivered::Unreached { host, why }, again: (!unusable).then_some(Duration::ZERO) }
}
