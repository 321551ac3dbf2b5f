//! The terminal's bell, and messages that the terminal or the desktop shows.

use std::sync::atomic::AtomicBool;

use signoff_core::merge::render::plain_text::misleads;
use signoff_core::notify::Message;

use super::{Person, Surroundings, Undelivered};
use crate::process::{Question, ask};

/// The longest message, in characters.
const LONGEST: usize = 250;

/// One of these says that there is a desktop to talk to.
const DESKTOPS: [&str; 3] = ["DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"];

pub fn ring(around: &Surroundings) -> Result<(), Undelivered> {
    match &around.person {
        Person::AtTerminal(terminal) => {
            terminal(b"\x07");
            Ok(())
        }
        Person::Elsewhere => Err(Undelivered::Nowhere),
        Person::Undisturbed => Err(Undelivered::Silenced),
    }
}

/// Through the terminal where there is one, which may be on another machine than this program.
pub fn show(message: &Message, around: &Surroundings, recalled: &AtomicBool) -> Result<(), Undelivered> {
    match &around.person {
        Person::AtTerminal(terminal) => {
            terminal(&sequence(message, around.variables.contains_key("TMUX")));
            Ok(())
        }
        Person::Elsewhere => send(message, around, recalled),
        Person::Undisturbed => Err(Undelivered::Silenced),
    }
}

/// `OSC 9`. What stands first is ours: a number there would mean something else.
fn sequence(message: &Message, in_tmux: bool) -> Vec<u8> {
    let text = plain(&format!("signoff: {}. {}", message.title, message.text));
    let bare = format!("\x1b]9;{text}\x07");
    let whole = if in_tmux { format!("\x1bPtmux;{}\x1b\\", bare.replace('\x1b', "\x1b\x1b")) } else { bare };
    whole.into_bytes()
}

/// Nothing in it steers a terminal.
fn plain(text: &str) -> String {
    text.chars().filter(|char| !char.is_control() && !misleads(*char)).take(LONGEST).collect()
}

fn send(message: &Message, around: &Surroundings, recalled: &AtomicBool) -> Result<(), Undelivered> {
    if !DESKTOPS.iter().any(|name| around.variables.contains_key(*name)) {
        return Err(Undelivered::Nowhere);
    }
    let (title, text) = (plain(&message.title), marked_up(&plain(&message.text)));
    let answer = ask(&Question {
        program: "notify-send",
        arguments: &["--app-name=signoff", "--", &title, &text],
        directory: &around.directory,
        environment: &[],
        input: &[],
        limit: around.manners.answer,
        most: 1 << 16,
        recalled: Some(recalled),
        escort: Some(&around.program),
    });
    match answer {
        Ok(answer) if answer.status.success() => Ok(()),
        Ok(_) | Err(_) => Err(Undelivered::Nowhere),
    }
}

/// Desktops read the text as markup.
fn marked_up(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
