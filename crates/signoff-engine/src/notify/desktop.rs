//! The terminal's bell, and popups of the terminal or the desktop.

use std::sync::atomic::AtomicBool;

use signoff_core::merge::render::plain_text::is_misleading;
use signoff_core::notify::NotificationMessage;

use super::{ChannelContext, DeliveryError, Presence};
use crate::process::{ShortCommand, run_command};

/// The longest message, in characters.
const LONGEST: usize = 250;

/// Variables that are set if there is a desktop.
const DESKTOPS: [&str; 3] = ["DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"];

pub fn ring(context: &ChannelContext) -> Result<(), DeliveryError> {
    match &context.presence {
        Presence::AtTerminal(terminal) => {
            terminal(b"\x07");
            Ok(())
        }
        Presence::Elsewhere => Err(DeliveryError::Nowhere),
        Presence::Undisturbed => Err(DeliveryError::Silenced),
    }
}

/// Shows a popup through the terminal if there is one, since it may be on another machine.
pub fn show(
    message: &NotificationMessage,
    context: &ChannelContext,
    cancelled: &AtomicBool,
) -> Result<(), DeliveryError> {
    match &context.presence {
        Presence::AtTerminal(terminal) => {
            terminal(&sequence(message, context.variables.contains_key("TMUX")));
            Ok(())
        }
        Presence::Elsewhere => send(message, context, cancelled),
        Presence::Undisturbed => Err(DeliveryError::Silenced),
    }
}

/// The `OSC 9` escape sequence. The text starts with a fixed word: a number there would have another meaning.
fn sequence(message: &NotificationMessage, in_tmux: bool) -> Vec<u8> {
    let text = plain(&format!("signoff: {}. {}", message.title, message.text));
    let bare = format!("\x1b]9;{text}\x07");
    let whole = if in_tmux { format!("\x1bPtmux;{}\x1b\\", bare.replace('\x1b', "\x1b\x1b")) } else { bare };
    whole.into_bytes()
}

/// Removes control characters and other characters that affect a terminal.
fn plain(text: &str) -> String {
    text.chars().filter(|char| !char.is_control() && !is_misleading(*char)).take(LONGEST).collect()
}

fn send(message: &NotificationMessage, context: &ChannelContext, cancelled: &AtomicBool) -> Result<(), DeliveryError> {
    if !DESKTOPS.iter().any(|name| context.variables.contains_key(*name)) {
        return Err(DeliveryError::Nowhere);
    }
    let (title, text) = (plain(&message.title), marked_up(&plain(&message.text)));
    let answer = run_command(&ShortCommand {
        program: "notify-send",
        arguments: &["--app-name=signoff", "--", &title, &text],
        directory: &context.directory,
        environment: &[],
        input: &[],
        limit: context.timeouts.answer,
        max_stdout: 1 << 16,
        cancelled: Some(cancelled),
        escort: Some(&context.program),
    });
    match answer {
        Ok(answer) if answer.status.success() => Ok(()),
        Ok(_) | Err(_) => Err(DeliveryError::Nowhere),
    }
}

/// Escapes markup, which desktops interpret.
fn marked_up(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
