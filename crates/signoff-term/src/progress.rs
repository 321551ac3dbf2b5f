//! One line for each loop at work, for a terminal to draw and draw again.

use signoff_core::view::{Badge, LoopView};

use crate::fit::{columns, cut, pad, shorten};
use crate::words;

/// How wide a title may be beside the rest.
const TITLE: usize = 40;

/// `REVIEW   #29 Add user authentication  review 2/3  Reading src/auth.rs`, in so many columns.
pub fn line(row: &LoopView, width: usize) -> String {
    let task = row.task.map_or_else(|| words::subject(row), |task| format!("#{task}"));
    let title = row.task.map(|_| cut(&row.title, TITLE)).unwrap_or_default();
    let mut line = format!("{} {task} {title}", pad(&badge(row), 8)).trim_end().to_owned();
    let said = row.wait.as_ref().map_or_else(|| cut(&row.last_line, width), words::wait);
    for part in [place(row), said] {
        if !part.is_empty() && columns(&line) + 2 < width {
            line = format!("{line}  {part}");
        }
    }
    shorten(line, width)
}

/// A fix says which one it is.
fn badge(row: &LoopView) -> String {
    match row.badge {
        Badge::Fix => format!("FIX {}", row.fixes.max(1)),
        Badge::Wait
        | Badge::Spawn
        | Badge::Work
        | Badge::Review
        | Badge::Check
        | Badge::Land
        | Badge::Ask
        | Badge::Paused
        | Badge::Done
        | Badge::Stuck => row.badge.word().to_owned(),
    }
}

fn place(row: &LoopView) -> String {
    match (row.phase.as_str(), row.cycle, row.max_cycles) {
        ("", ..) => String::new(),
        (phase, 0, _) => cut(phase, TITLE),
        (phase, cycle, Some(max)) => format!("{} {cycle}/{}", cut(phase, TITLE), max.max(cycle)),
        (phase, cycle, None) => format!("{} {cycle}", cut(phase, TITLE)),
    }
}
