//! A channel that posts to a URL. The URL is a secret: messages contain only its host.

use std::time::Duration;

use serde_json::{Value, json};
use signoff_core::group::RunOutcome;
use signoff_core::machine::OutcomeKind;
use signoff_core::notify::{NotificationKind, NotificationMessage, NotifiedOutcome};
use signoff_core::settings::{AddressSource, Webhook, WebhookAddress, WebhookFormat};
use ureq::http::Response;
use ureq::{Agent, Body, Error};

use super::{ChannelContext, DeliveryError, NotifyTimeouts};
use crate::process::system;

/// Maximum number of tries.
const MAX_TRIES: u32 = 3;

/// Why a request failed, and how long to wait before a retry; `None` if a retry is useless.
struct PostFailure {
    error: DeliveryError,
    retry_after: Option<Duration>,
}

/// The address of a webhook.
pub fn address(hook: &Webhook, context: &ChannelContext) -> Result<WebhookAddress, DeliveryError> {
    match &hook.address {
        AddressSource::Inline(address) => Ok(address.clone()),
        AddressSource::Variable(name) => {
            let set = context.variables.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
            let address = WebhookAddress::new(set.ok_or_else(|| DeliveryError::Unset(name.clone()))?);
            if address.is_valid() { Ok(address) } else { Err(DeliveryError::NoAddress(name.clone())) }
        }
    }
}

pub fn post(hook: &Webhook, message: &NotificationMessage, context: &ChannelContext) -> Result<(), DeliveryError> {
    let address = address(hook, context)?;
    let body = match hook.format {
        WebhookFormat::Json => serde_json::to_string(message).unwrap_or_default(),
        WebhookFormat::Slack => slack_body(message).to_string(),
    };
    let agent = agent(&context.timeouts);
    let mut tries = 1;
    loop {
        let failed = match once(&agent, hook, &address, &body, &context.timeouts) {
            Ok(()) => return Ok(()),
            Err(failed) => failed,
        };
        let Some(wait) = failed.retry_after.filter(|_| tries < MAX_TRIES) else { return Err(failed.error) };
        // Wait as long as the server asks for, otherwise longer before each retry.
        system::pause(if wait.is_zero() { context.timeouts.backoff * tries } else { wait });
        tries += 1;
    }
}

/// An HTTP client that does not follow redirects: the message is only for this host.
fn agent(timeouts: &NotifyTimeouts) -> Agent {
    Agent::config_builder()
        .timeout_connect(Some(timeouts.connect))
        .timeout_global(Some(timeouts.answer))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .user_agent(concat!("signoff/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

fn once(
    agent: &Agent,
    hook: &Webhook,
    address: &WebhookAddress,
    body: &str,
    timeouts: &NotifyTimeouts,
) -> Result<(), PostFailure> {
    let mut request = agent.post(address.expose()).header("content-type", "application/json; charset=utf-8");
    for (name, value) in &hook.headers {
        request = request.header(name, value);
    }
    let host = address.host().to_owned();
    match request.send(body) {
        Ok(response) if response.status().is_success() => Ok(()),
        Ok(response) => Err(refused(host, &response, timeouts)),
        Err(error) => Err(unreached(host, &error)),
    }
}

fn refused(host: String, response: &Response<Body>, timeouts: &NotifyTimeouts) -> PostFailure {
    let status = response.status().as_u16();
    let retry_after = response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let retry_after = retry_after.map(Duration::from_secs);
    let too_long = retry_after.is_some_and(|wait| wait > timeouts.longest);
    let busy = matches!(status, 408 | 425 | 429 | 500..=599);
    let hint = match status {
        300..=399 => "redirects are not followed; set the final URL",
        401 | 403 => "check its address and headers",
        404 | 410 => "check its address",
        408 | 425 | 429 | 500..=599 => "retry later",
        _ => "check that `format` fits the receiver",
    };
    let again = (busy && !too_long).then(|| retry_after.unwrap_or_default());
    PostFailure { error: DeliveryError::Refused { host, status, hint }, retry_after: again }
}

/// Describes an error without the client's message, which may contain the address.
fn unreached(host: String, error: &Error) -> PostFailure {
    let unusable = matches!(error, Error::BadUri(_) | Error::Http(_) | Error::InvalidProxyUrl);
    let reason = if let Error::Io(error) = error {
        error.to_string()
    } else if matches!(error, Error::Timeout(_)) {
        "no answer in time".to_owned()
    } else if matches!(error, Error::HostNotFound) {
        "the host name is unknown".to_owned()
    } else if unusable {
        "the address, a header or the proxy cannot be used".to_owned()
    } else {
        "the connection failed".to_owned()
    };
    PostFailure { error: DeliveryError::Unreached { host, reason }, retry_after: (!unusable).then_some(Duration::ZERO) }
}

/// Maximum length of a text block, in characters.
const MAX_BLOCK: usize = 2900;

fn slack_body(message: &NotificationMessage) -> Value {
    let title = format!("{} {}", sign(message), escaped(&message.title));
    let mut blocks = vec![section(&format!("*{}*\n{}", unstarred(&title), escaped(&message.text)))];
    blocks.extend(message.next.as_ref().map(|next| section(&format!("`{}`", unquoted(next)))));
    let footer = format!("{} · run {} · ${:.2}", message.project, message.run_id, message.cost_usd);
    blocks.push(json!({ "type": "context", "elements": [text(&escaped(&footer))] }));
    json!({ "text": without_mentions(&format!("{title}: {}", escaped(&message.text))), "blocks": blocks })
}

fn sign(message: &NotificationMessage) -> &'static str {
    match message.event {
        NotificationKind::Done => match message.outcome {
            None | Some(NotifiedOutcome::Run(RunOutcome::Approved)) => "✅",
            Some(NotifiedOutcome::Task(outcome)) if outcome.is_approval() => "✅",
            Some(NotifiedOutcome::Run(RunOutcome::Failed)) => "⛔",
            Some(NotifiedOutcome::Task(OutcomeKind::Failed | OutcomeKind::Stuck)) => "⛔",
            Some(NotifiedOutcome::Task(_) | NotifiedOutcome::Run(_)) => "⚠️",
        },
        NotificationKind::Stuck => "⛔",
        NotificationKind::Question => "❓",
        NotificationKind::Budget => "⏸️",
    }
}

fn section(markdown: &str) -> Value {
    json!({ "type": "section", "text": text(markdown) })
}

/// A text block without automatic mentions and link previews.
fn text(markdown: &str) -> Value {
    let bounded: String = markdown.chars().take(MAX_BLOCK).collect();
    json!({ "type": "mrkdwn", "text": bounded, "verbatim": true })
}

/// Escapes the characters of markup, which desktops and chats interpret.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Inserts invisible characters that prevent mentions and Markdown links in chats that ignore blocks.
fn without_mentions(text: &str) -> String {
    text.replace('@', "@\u{200b}").replace("](", "]\u{200b}(").replace("://", ":\u{200b}//")
}

/// Replaces stars, which would end the bold text.
fn unstarred(text: &str) -> String {
    text.replace('*', "∗")
}

fn unquoted(text: &str) -> String {
    escaped(text).replace('`', "'")
}
