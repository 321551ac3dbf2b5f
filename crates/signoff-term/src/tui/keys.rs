//! Which keys mean what, and where: for the last line of the screen, and for the help.

use ratatui::text::Line;

use super::ink::Ink;
use super::sheet::span;
use crate::fit::columns;

/// A key, and what it does.
pub type Key = (&'static str, &'static str);

pub const LIST: [Key; 9] = [
    ("?", "help"),
    ("Enter", "open"),
    ("a", "answer"),
    ("q", "leave"),
    ("↑↓", "choose"),
    ("r", "retry"),
    ("c", "cancel"),
    ("e", "edit verdict"),
    ("^C", "stop"),
];

pub const OPEN: [Key; 9] = [
    ("?", "help"),
    ("Esc", "back"),
    ("1-5", "panes"),
    ("↑↓", "scroll"),
    ("a", "answer"),
    ("r", "retry"),
    ("c", "cancel"),
    ("e", "edit verdict"),
    ("q", "leave"),
];

/// One loop in a replay, where nothing can be decided any more.
pub const OPEN_REPLAY: [Key; 7] = [
    ("?", "help"),
    ("Esc", "back"),
    ("1-5", "panes"),
    ("↑↓", "scroll"),
    ("Space", "pause"),
    ("+ -", "speed"),
    ("q", "leave"),
];

pub const CYCLES: [Key; 1] = [("[ ]", "older, newer")];
pub const FINDINGS: [Key; 1] = [("x", "dispute")];
pub const REPLAY: [Key; 6] = [
    ("?", "help"),
    ("Space", "pause"),
    ("+ -", "speed"),
    ("Enter", "open"),
    ("q", "leave"),
    ("↑↓", "choose"),
];
pub const CONFIRM: [Key; 2] = [("y", "yes"), ("n", "no")];
pub const CHOOSE: [Key; 3] = [("↑↓", "choose"), ("Enter", "go on"), ("Esc", "back")];
pub const QUESTION: [Key; 6] = [
    ("↑↓ 1-9", "choose"),
    ("Enter", "answer"),
    ("o", "look at it"),
    ("Esc", "later"),
    ("?", "help"),
    ("^C", "stop"),
];
/// Where nothing else is at work, nobody waits for an answer that is left for later.
pub const LAST_QUESTION: [Key; 6] = [
    ("↑↓ 1-9", "choose"),
    ("Enter", "answer"),
    ("o", "look at it"),
    ("Esc", "later, and end"),
    ("?", "help"),
    ("^C", "stop"),
];
pub const TYPE: [Key; 2] = [("Enter", "send"), ("Esc", "back")];
pub const HELP: [Key; 2] = [("Esc", "back"), ("↑↓", "scroll")];

/// Everything, for the help.
pub const ALL: [(&str, &[Key]); 5] = [
    (
        "Everywhere",
        &[
            ("?", "this help"),
            ("a", "answer the question of the chosen task, or the oldest one"),
            ("r", "retry the chosen task"),
            ("c", "cancel the chosen task"),
            ("e", "set the verdict of the chosen task yourself"),
            ("q", "leave the screen; the work goes on"),
            ("Ctrl-C", "finish what is under way and stop; twice stops the agents"),
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
            ("Home End, g G", "to the top; to the end, and follow it"),
            ("[ ]", "the cycle, or the attempt, before and after"),
            ("x", "findings: say that the chosen one is wrong"),
            ("Esc", "back to the list"),
        ],
    ),
    (
        "A question",
        &[
            ("↑ ↓, 1-9", "choose an answer"),
            ("Enter", "give it"),
            ("o", "look at the task first; a asks again, and going back does"),
            ("Esc", "leave it for later; a asks again. The last one ends the work"),
        ],
    ),
    ("A replay", &[("Space", "pause, go on"), ("+ -", "faster, slower")]),
];

/// As many keys as fit into one line, the most important first.
pub fn line(keys: &[Key], ink: Ink, width: usize) -> Line<'static> {
    let mut spans = Vec::new();
    let mut used = 0;
    for (key, what) in keys {
        let wide = columns(key) + 1 + columns(what) + if used > 0 { 2 } else { 0 };
        if used + wide > width {
            continue;
        }
        if used > 0 {
            spans.push(span("  ", ink.faint()));
        }
        used += wide;
        spans.push(span(*key, ink.bold()));
        spans.push(span(format!(" {what}"), ink.faint()));
    }
    if spans.is_empty() {
        spans.extend(keys.first().map(|(key, _)| span(*key, ink.bold())));
    }
    Line::from(spans)
}
