//! Renders a task file for people.

use std::collections::HashMap;
use std::fmt::Write;

use super::{SourceState, SourceTask, TaskFile, TaskFormat};
use crate::merge::render::plain_text::is_misleading;

/// Renders a parsed file as text for a terminal. Control characters of the file are escaped.
pub fn render_text(file: &TaskFile) -> String {
    let mut out = String::new();
    header(&mut out, file);
    let tasks: HashMap<&str, &SourceTask> = file.tasks.iter().map(|task| (task.id.as_str(), task)).collect();
    for (index, group) in file.groups.iter().enumerate() {
        let how = if group.len() > 1 { ", in parallel" } else { "" };
        line(&mut out, &format!("\nGroup {}{how}", index + 1));
        for task in group.iter().filter_map(|id| tasks.get(id.as_str())) {
            line(&mut out, &task_line(task));
        }
    }
    others(&mut out, file);
    if !file.warnings.is_empty() {
        line(&mut out, "\nWarnings");
        for warning in &file.warnings {
            line(&mut out, &format!("  line {}: {}", warning.line, plain(&warning.message)));
        }
    }
    out
}

fn header(out: &mut String, file: &TaskFile) {
    let title = file.title.as_deref().map(|title| format!(": {}", plain(title))).unwrap_or_default();
    line(out, &format!("{}{title}", file.format.name()));
    if let Some(goal) = &file.goal {
        line(out, &format!("Goal: {}", plain(goal)));
    }
    let done = file.tasks.iter().filter(|task| task.state == SourceState::Done).count();
    let left: usize = file.groups.iter().map(Vec::len).sum();
    if file.format != TaskFormat::Text {
        let (count, groups) = (counted(file.tasks.len(), "task"), counted(file.groups.len(), "group"));
        line(out, &format!("{count}: {left} to do in {groups}, {done} done"));
    }
}

/// Lists the tasks that are in no group.
fn others(out: &mut String, file: &TaskFile) {
    let grouped: std::collections::HashSet<&str> = file.groups.iter().flatten().map(String::as_str).collect();
    let rest: Vec<&SourceTask> = file.tasks.iter().filter(|task| !grouped.contains(task.id.as_str())).collect();
    if !rest.is_empty() {
        line(out, "\nNot scheduled");
        rest.iter().for_each(|task| line(out, &task_line(task)));
    }
}

fn task_line(task: &SourceTask) -> String {
    let mut text = format!("  [{}] {}  {}", sign(task.state), plain(&task.id), plain(&task.title));
    let mut notes = Vec::new();
    if !matches!(task.state, SourceState::Open | SourceState::Done) {
        notes.push(task.state.into_str().replace('_', " "));
    }
    notes.extend(task.optional.then(|| "optional".to_owned()));
    notes.extend((!task.files.is_empty()).then(|| counted(task.files.len(), "file")));
    notes.extend((!task.steps.is_empty()).then(|| {
        let done = task.steps.iter().filter(|step| step.done).count();
        format!("{done}/{}", counted(task.steps.len(), "step"))
    }));
    notes.extend((!task.depends_on.is_empty()).then(|| format!("after {}", plain(&some(&task.depends_on)))));
    if !notes.is_empty() {
        // Writing into a String cannot fail.
        let _ = write!(text, " ({})", notes.join(", "));
    }
    text
}

fn some(ids: &[String]) -> String {
    const SHOWN: usize = 8;
    let more = if ids.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", ids.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", "))
}

fn sign(state: SourceState) -> char {
    match state {
        SourceState::Open => ' ',
        SourceState::InProgress => '-',
        SourceState::Done => 'x',
        SourceState::Blocked
        | SourceState::Deferred
        | SourceState::Review
        | SourceState::Cancelled
        | SourceState::NotWork => '/',
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// Formats text on one line, with control and bidirectional characters escaped.
fn plain(text: &str) -> String {
    let hidden = |c: char| c.is_control() || is_misleading(c) || matches!(c, '\u{200c}' | '\u{200d}');
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\n' || c == '\t' {
            shown.push(' ');
        } else if hidden(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}
