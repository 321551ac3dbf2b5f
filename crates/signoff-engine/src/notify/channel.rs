//! One notification channel: delivers a message or returns an error.

use std::sync::atomic::AtomicBool;

use signoff_core::notify::NotificationMessage;
use signoff_core::settings::{Channel, ChannelTarget};

use super::{ChannelContext, command, desktop, webhook};

/// A configured channel with its environment.
#[derive(Debug)]
pub struct NotifyChannel {
    channel: Channel,
    context: ChannelContext,
}

/// Why a message was not delivered, with a hint. Contains no secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryError {
    #[error("the variable {0} is not set: export it, with the address to post to")]
    Unset(String),
    #[error("the variable {0} holds no address: expected https://HOST/…, without a name or a password before the host")]
    NoAddress(String),
    #[error("{host} answered {status}; {hint}")]
    Refused { host: String, status: u16, hint: &'static str },
    #[error("{host} could not be reached: {why}; look at its address, and whether a proxy is needed")]
    Unreached { host: String, why: String },
    #[error("`{program}` {why}")]
    Command { program: String, why: String },
    #[error("there is no terminal here, and no desktop that `notify-send` reaches")]
    Nowhere,
    #[error("sounds and popups are disabled here")]
    Silenced,
}

impl NotifyChannel {
    pub fn new(channel: Channel, context: ChannelContext) -> Self {
        Self { channel, context }
    }

    pub fn name(&self) -> &str {
        &self.channel.name
    }

    /// A description for the user; of a webhook's address only the host.
    pub fn description(&self) -> String {
        match &self.channel.way {
            ChannelTarget::Bell => "bell".to_owned(),
            ChannelTarget::Desktop => "desktop".to_owned(),
            ChannelTarget::Webhook(hook) => match webhook::address(hook, &self.context) {
                Ok(address) => format!("webhook to {}", address.host()),
                Err(_) => "webhook".to_owned(),
            },
            ChannelTarget::Command(words) => format!("command {}", words.first().map_or("", String::as_str)),
        }
    }

    /// Sends a message and blocks until it is delivered or fails.
    pub fn send(&self, message: &NotificationMessage) -> Result<(), DeliveryError> {
        self.send_cancellable(message, &AtomicBool::new(false))
    }

    /// Like `send`, and stops a started program when `cancelled` is set.
    pub(super) fn send_cancellable(
        &self,
        message: &NotificationMessage,
        cancelled: &AtomicBool,
    ) -> Result<(), DeliveryError> {
        match &self.channel.way {
            ChannelTarget::Bell => desktop::ring(&self.context),
            ChannelTarget::Desktop => desktop::show(message, &self.context, cancelled),
            ChannelTarget::Webhook(hook) => webhook::post(hook, message, &self.context),
            ChannelTarget::Command(words) => command::run(words, message, (&self.context, cancelled)),
        }
    }

    pub(super) fn runs_a_program(&self) -> bool {
        match &self.channel.way {
            ChannelTarget::Desktop | ChannelTarget::Command(_) => true,
            ChannelTarget::Bell | ChannelTarget::Webhook(_) => false,
        }
    }
}
