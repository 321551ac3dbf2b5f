//! The prompt that has a loop resolve, in its own worktree, what keeps its work from landing.

use crate::prompt::material::{fenced, one_line};
use crate::prompt::pieces::{Pieces, paths};
use crate::prompt::{TaskBrief, text};

/// A landing that failed.
#[derive(Debug, Clone, Copy, Default)]
pub struct ConflictContext<'a> {
    /// A person's own words in place of the built-in opening.
    pub opening: Option<&'a str>,
    pub task: TaskBrief<'a>,
    pub worktree: &'a str,
    /// The branch or commit the work has to stand on.
    pub onto: &'a str,
    pub files: &'a [&'a str],
    /// What git printed.
    pub output: Option<&'a str>,
}

/// Writes the prompt of an attempt that resolves a conflict.
pub fn conflict(context: &ConflictContext<'_>) -> String {
    let mut pieces = Pieces::opening(context.opening, text::CONFLICT);
    pieces.add(context.task.assignment());
    pieces.add_some(context.task.plan_to_follow());
    pieces.add(text::WorkingDirectory { worktree: &one_line(context.worktree) }.fill());
    pieces.add(text::ConflictOnto { onto: &one_line(context.onto) }.fill());
    if !context.files.is_empty() {
        pieces.add(text::ConflictFiles { files: &fenced(&paths(context.files), "") }.fill());
    }
    let output = |output| text::ConflictOutput { output: &fenced(output, "") }.fill();
    pieces.add_some(context.output.map(output));
    pieces.prompt()
}
