//! The prompt of the phase that makes finished work simpler.

use crate::prompt::implement::parallel;
use crate::prompt::material::one_line;
use crate::prompt::pieces::Pieces;
use crate::prompt::{DiffContext, TaskBrief, text};

/// Finished work, to be made simpler.
#[derive(Debug, Clone, Copy, Default)]
pub struct SimplifyContext<'a> {
    /// A person's own words in place of the built-in opening.
    pub opening: Option<&'a str>,
    pub task: TaskBrief<'a>,
    pub worktree: &'a str,
    pub agents_at_once: usize,
    pub diff: DiffContext<'a>,
}

/// Writes the prompt of a simplify phase.
pub fn simplify(context: &SimplifyContext<'_>) -> String {
    let mut pieces = Pieces::opening(context.opening, text::SIMPLIFY);
    pieces.add(context.task.assignment());
    pieces.add(text::WorkingDirectory { worktree: &one_line(context.worktree) }.fill());
    pieces.add(text::WORKPLACE);
    pieces.add_some(parallel(context.agents_at_once));
    pieces.add(text::DiffSoFar { diff: &context.diff.render() }.fill());
    pieces.prompt()
}
