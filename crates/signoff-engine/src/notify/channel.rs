//! One notification channel: delivers a message to the terminal, the desktop, a webhook or a command.

use std::sync::atomic::AtomicBool;

use signoff_core::merge::render::plain_text::is_misleading;
use signoff_core::notify::NotificationMessage;
use signoff_core::settings::{Channel, ChannelTarget};

use super::{ChannelContext, TerminalPresence, webhook};
use crate::process::{CommandError, CommandOutput, ShortCommand, run_command};

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
    #[error(
        "the variable {0} has no valid address: expected https://HOST/…, without a name or a password before the host"
    )]
    NoAddress(String),
    #[error("{host} answered {status}; {hint}")]
    Refused { host: String, status: u16, hint: &'static str },
    #[error("{host} could not be reached: {reason}; check its address and whether a proxy is needed")]
    Unreached { host: String, reason: String },
    #[error("`{program}` {reason}")]
    Command { program: String, reason: String },
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
        match &self.channel.target {
            ChannelTarget::Bell => "bell".to_owned(),
            ChannelTarget::Desktop => "desktop".to_owned(),
            ChannelTarget::Webhook(hook) => match webhook::address(hook, &self.context) {
                Ok(address) => format!("webhook to {}", address.host()),
                Err(_) => "webhook".to_owned(),
            },
            ChannelTarget::Command(command) => format!("command {}", command.first().map_or("", String::as_str)),
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
        match &self.channel.target {
            ChannelTarget::Bell => ring(&self.context),
            ChannelTarget::Desktop => show_popup(message, &self.context, cancelled),
            ChannelTarget::Webhook(hook) => webhook::post(hook, message, &self.context),
            ChannelTarget::Command(command) => run_program(command, message, &self.context, cancelled),
        }
    }

    pub(super) fn runs_a_program(&self) -> bool {
        match &self.channel.target {
            ChannelTarget::Desktop | ChannelTarget::Command(_) => true,
            ChannelTarget::Bell | ChannelTarget::Webhook(_) => false,
        }
    }
}

/// Maximum bytes of output. The output is ignored.
const MAX_OUTPUT: usize = 1 << 20;

/// Maximum length of a quoted error message, in characters.
const MAX_ERROR: usize = 200;

fn run_program(
    command: &[String],
    message: &NotificationMessage,
    context: &ChannelContext,
    cancelled: &AtomicBool,
) -> Result<(), DeliveryError> {
    let (program, arguments) = command.split_first().ok_or(DeliveryError::Nowhere)?;
    let input = serde_json::to_string(message).unwrap_or_default() + "\n";
    let (run, task) = (message.run_id.to_string(), message.task_id.map(|task| task.to_string()));
    let question = message.question.as_ref().map_or("", |question| question.id.as_str());
    let end = run_command(&ShortCommand {
        program,
        arguments: &arguments.iter().map(String::as_str).collect::<Vec<_>>(),
        directory: &context.directory,
        environment: &[
            ("SIGNOFF_EVENT", message.event.into_str()),
            ("SIGNOFF_RUN_ID", &run),
            ("SIGNOFF_TASK_ID", task.as_deref().unwrap_or_default()),
            ("SIGNOFF_QUESTION_ID", question),
        ],
        input: input.as_bytes(),
        limit: context.timeouts.answer,
        max_stdout: MAX_OUTPUT,
        cancelled: Some(cancelled),
        // If signoff is killed, only the reaper is left to end the command and what it started, also in groups of
        // their own, as the test `a_signal_ends_the_processes_of_channels_too` in signoff/tests/e2e/notify/outlived.rs
        // expects.
        reaper: Some(&context.program),
    });
    let reason = match end {
        Ok(answer) if answer.status.success() => return Ok(()),
        Ok(answer) => describe_failure(&answer),
        Err(CommandError::Missing) => "was not found; check `command`".to_owned(),
        Err(
            error @ (CommandError::TimedOut(_)
            | CommandError::Cancelled
            | CommandError::TooMuchOutput(_)
            | CommandError::Io(_)),
        ) => {
            format!("failed: {error}")
        }
    };
    Err(DeliveryError::Command { program: program.clone(), reason })
}

fn describe_failure(answer: &CommandOutput) -> String {
    let how = match answer.status.code() {
        Some(code) => format!("ended with exit code {code}"),
        None => "was killed by a signal".to_owned(),
    };
    let stderr = String::from_utf8_lossy(&answer.stderr);
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
    let last = last.map(|line| format!(": {}", line.trim().chars().take(MAX_ERROR).collect::<String>()));
    how + &last.unwrap_or_default()
}

/// The longest message, in characters.
const MAX_POPUP_CHARS: usize = 250;

/// Variables that are set if there is a desktop.
const DESKTOPS: [&str; 3] = ["DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"];

fn ring(context: &ChannelContext) -> Result<(), DeliveryError> {
    match &context.presence {
        TerminalPresence::AtTerminal(terminal) => {
            terminal(b"\x07");
            Ok(())
        }
        TerminalPresence::Elsewhere => Err(DeliveryError::Nowhere),
        TerminalPresence::Undisturbed => Err(DeliveryError::Silenced),
    }
}

/// Shows a popup through the terminal if there is one, since it may be on another machine.
fn show_popup(
    message: &NotificationMessage,
    context: &ChannelContext,
    cancelled: &AtomicBool,
) -> Result<(), DeliveryError> {
    match &context.presence {
        TerminalPresence::AtTerminal(terminal) => {
            terminal(&popup_sequence(message, context.variables.contains_key("TMUX")));
            Ok(())
        }
        TerminalPresence::Elsewhere => show_on_desktop(message, context, cancelled),
        TerminalPresence::Undisturbed => Err(DeliveryError::Silenced),
    }
}

/// The `OSC 9` escape sequence. The text starts with a fixed word: a number there would have another meaning.
fn popup_sequence(message: &NotificationMessage, in_tmux: bool) -> Vec<u8> {
    let text = plain(&format!("signoff: {}. {}", message.title, message.text));
    let bare = format!("\x1b]9;{text}\x07");
    let sequence = if in_tmux { format!("\x1bPtmux;{}\x1b\\", bare.replace('\x1b', "\x1b\x1b")) } else { bare };
    sequence.into_bytes()
}

/// Removes control characters and other characters that affect a terminal.
fn plain(text: &str) -> String {
    text.chars().filter(|char| !char.is_control() && !is_misleading(*char)).take(MAX_POPUP_CHARS).collect()
}

fn show_on_desktop(
    message: &NotificationMessage,
    context: &ChannelContext,
    cancelled: &AtomicBool,
) -> Result<(), DeliveryError> {
    if !DESKTOPS.iter().any(|name| context.variables.contains_key(*name)) {
        return Err(DeliveryError::Nowhere);
    }
    let (title, text) = (plain(&message.title), webhook::escaped(&plain(&message.text)));
    let answer = run_command(&ShortCommand {
        program: "notify-send",
        arguments: &["--app-name=signoff", "--", &title, &text],
        directory: &context.directory,
        environment: &[],
        input: &[],
        limit: context.timeouts.answer,
        max_stdout: 1 << 16,
        cancelled: Some(cancelled),
        reaper: Some(&context.program),
    });
    match answer {
        Ok(answer) if answer.status.success() => Ok(()),
        Ok(_) | Err(_) => Err(DeliveryError::Nowhere),
    }
}
