//! One channel: a message in, told or not.

use std::sync::atomic::AtomicBool;

use signoff_core::config::{Channel, Way};
use signoff_core::notify::Message;

use super::{Surroundings, command, desktop, webhook};

/// A channel with all it needs.
#[derive(Debug)]
pub struct Outlet {
    channel: Channel,
    around: Surroundings,
}

/// Why a message did not get through, and what to do about it. Never says a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Undelivered {
    #[error("the variable {0} is not set: export it, with the address to post to")]
    Unset(String),
    #[error(
        "the variable {0} holds no address: expected https://HOST/…, without a name or a password before the host"
    )]
    NoAddress(String),
    #[error("{host} answered {status}; {hint}")]
    Refused { host: String, status: u16, hint: &'static str },
    #[error("{host} could not be reached: {why}; look at its address, and whether a proxy is needed")]
    Unreached { host: String, why: String },
    #[error("`{program}` {why}")]
    Command { program: String, why: String },
    #[error("there is no terminal here, and no desktop that `notify-send` reaches")]
    Nowhere,
    #[error("nothing is to ring or to pop up here")]
    Silenced,
}

impl Outlet {
    pub fn new(channel: Channel, around: Surroundings) -> Self {
        Self { channel, around }
    }

    pub fn name(&self) -> &str {
        &self.channel.name
    }

    /// What it is, for people: of a webhook the host alone.
    pub fn what(&self) -> String {
        match &self.channel.way {
            Way::Bell => "bell".to_owned(),
            Way::Desktop => "desktop".to_owned(),
            Way::Webhook(hook) => match webhook::address(hook, &self.around) {
                Ok(address) => format!("webhook to {}", address.host()),
                Err(_) => "webhook".to_owned(),
            },
            Way::Command(words) => format!("command {}", words.first().map_or("", String::as_str)),
        }
    }

    /// Tells it, and waits for the end of it. Blocks: for a thread of its own.
    pub fn send(&self, message: &Message) -> Result<(), Undelivered> {
        self.send_unless(message, &AtomicBool::new(false))
    }

    /// The same, but a program that it starts is ended when `recalled` says so.
    pub(super) fn send_unless(&self, message: &Message, recalled: &AtomicBool) -> Result<(), Undelivered> {
        match &self.channel.way {
            Way::Bell => desktop::ring(&self.around),
            Way::Desktop => desktop::show(message, &self.around, recalled),
            Way::Webhook(hook) => webhook::post(hook, message, &self.around),
            Way::Command(words) => command::run(words, message, (&self.around, recalled)),
        }
    }

    pub(super) fn runs_a_program(&self) -> bool {
        match &self.channel.way {
            Way::Desktop | Way::Command(_) => true,
            Way::Bell | Way::Webhook(_) => false,
        }
    }
}
