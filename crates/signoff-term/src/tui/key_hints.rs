//! The key hints of the last line and of the help.

use ratatui::text::Line;

use super::canvas::{Theme, span};
use crate::fit::columns;

/// A key, and its effect.
pub type KeyHint = (&'static str, &'static str);

const HELP_KEY: KeyHint = ("?", "help");
const OPEN_KEY: KeyHint = ("Enter", "open");
const BACK: KeyHint = ("Esc", "back");
const ANSWER: KeyHint = ("a", "answer");
const RETRY: KeyHint = ("r", "retry");
const CANCEL: KeyHint = ("c", "cancel");
const EDIT: KeyHint = ("e", "edit verdict");
const LEAVE: KeyHint = ("q", "leave");
const STOP: KeyHint = ("^C", "stop");
const CHOOSE_KEYS: KeyHint = ("↑↓", "choose");
const SCROLL: KeyHint = ("↑↓", "scroll");
const PANES: KeyHint = ("1-5", "panes");
const PAUSE: KeyHint = ("Space", "pause");
const SPEED: KeyHint = ("+ -", "speed");

pub const LIST: [KeyHint; 9] = [HELP_KEY, OPEN_KEY, ANSWER, LEAVE, CHOOSE_KEYS, RETRY, CANCEL, EDIT, STOP];
pub const OPEN: [KeyHint; 9] = [HELP_KEY, BACK, PANES, SCROLL, ANSWER, RETRY, CANCEL, EDIT, LEAVE];
/// An open loop in a replay, where no actions are possible.
pub const OPEN_REPLAY: [KeyHint; 7] = [HELP_KEY, BACK, PANES, SCROLL, PAUSE, SPEED, LEAVE];
pub const CYCLES: [KeyHint; 1] = [("[ ]", "older, newer")];
pub const FINDINGS: [KeyHint; 1] = [("x", "dispute")];
pub const REPLAY: [KeyHint; 6] = [HELP_KEY, PAUSE, SPEED, OPEN_KEY, LEAVE, CHOOSE_KEYS];
pub const CONFIRM: [KeyHint; 2] = [("y", "yes"), ("n", "no")];
pub const CHOOSE: [KeyHint; 3] = [CHOOSE_KEYS, ("Enter", "continue"), BACK];
pub const QUESTION: [KeyHint; 6] = question("later");
/// The last open question when nothing else is active: postponing it ends the program.
pub const LAST_QUESTION: [KeyHint; 6] = question("later, and exit");
pub const TYPE: [KeyHint; 2] = [("Enter", "send"), BACK];
pub const HELP: [KeyHint; 2] = [BACK, SCROLL];

const fn question(escape: &'static str) -> [KeyHint; 6] {
    [("↑↓ 1-9", "choose"), ("Enter", "answer"), ("o", "open task"), ("Esc", escape), HELP_KEY, STOP]
}

/// All keys, for the help.
pub const ALL: [(&str, &[KeyHint]); 5] = [
    (
        "Everywhere",
        &[
            ("?", "this help"),
            ("a", "answer the question of the chosen task, or the oldest one"),
            ("r", "retry the chosen task"),
            ("c", "cancel the chosen task"),
            ("e", "set the verdict of the chosen task yourself"),
            ("q", "leave the screen; the work continues"),
            ("Ctrl-C", "finish running agents and stop; twice stops the agents"),
        ],
    ),
    (
        "The list",
        &[
            ("↑ ↓, k j", "choose a task"),
            ("PgUp PgDn", "a page up or down"),
            ("Home End, g G", "the first, the last"),
            ("Enter", "open it"),
        ],
    ),
    (
        "One task",
        &[
            ("1-5, Tab", "reviews, findings, diff, transcript, events"),
            ("↑ ↓, PgUp PgDn", "scroll; in findings choose one"),
            ("Home End, g G", "to the top; to the end, and follow"),
            ("[ ]", "previous/next cycle or attempt"),
            ("x", "findings: dispute the chosen one"),
            ("Esc", "back to the list"),
        ],
    ),
    (
        "A question",
        &[
            ("↑ ↓, 1-9", "choose an answer"),
            ("Enter", "send answer"),
            ("o", "open the task; `a` shows the question again"),
            ("Esc", "answer later; if nothing else runs, signoff exits"),
        ],
    ),
    ("A replay", &[("Space", "pause, resume"), ("+ -", "faster, slower")]),
];

/// As many keys as fit in one line, the most important first.
pub fn line(keys: &[KeyHint], theme: Theme, width: usize) -> Line<'static> {
    let mut spans = Vec::new();
    let mut used = 0;
    for (key, what) in keys {
        let wide = columns(key) + 1 + columns(what) + if used > 0 { 2 } else { 0 };
        if used + wide > width {
            continue;
        }
        if used > 0 {
            spans.push(span("  ", theme.faint()));
        }
        used += wide;
        spans.push(span(*key, theme.bold()));
        spans.push(span(format!(" {what}"), theme.faint()));
    }
    if spans.is_empty() {
        spans.extend(keys.first().map(|(key, _)| span(*key, theme.bold())));
    }
    Line::from(spans)
}
