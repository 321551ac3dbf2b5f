//! The prompt of an implement attempt.

use crate::prompt::material::{fenced, one_line};
use crate::prompt::other_loops::{self, OtherLoop};
use crate::prompt::pieces::{Pieces, project_instructions};
use crate::prompt::{Item, TaskBrief, finding_list, text};
use crate::review::Finding;

/// What an implementer is told.
#[derive(Debug, Clone, Copy, Default)]
pub struct ImplementContext<'a> {
    /// A person's own words in place of the built-in opening.
    pub opening: Option<&'a str>,
    pub task: TaskBrief<'a>,
    pub worktree: &'a str,
    /// The files at its root in which the project says how it is worked on.
    pub instructions: &'a [&'a str],
    pub other_loops: &'a [OtherLoop<'a>],
    /// How many agents work at once in this repository, this one included.
    pub agents_at_once: usize,
    /// Counted from 1.
    pub attempt: u32,
    /// The final message of the attempt before.
    pub previous_message: Option<&'a str>,
    /// What a checkpoint review, or the review that restarted the workflow, found.
    pub findings: &'a [&'a Finding],
    /// The part of the plan that is to be done, where it has several.
    pub item: Option<Item<'a>>,
    /// Whether the last line of the final message decides if the task is done.
    pub ends_with_marker: bool,
    /// Whether the tasks come from a tracker whose end the agent may announce.
    pub may_stop_picking: bool,
}

/// Writes the prompt of an implement attempt.
pub fn implement(context: &ImplementContext<'_>) -> String {
    let mut pieces = Pieces::opening(context.opening, text::IMPLEMENT);
    pieces.add(context.task.assignment());
    pieces.add_some(context.task.plan_to_follow());
    pieces.add_some(context.item.map(|item| item.assignment()));
    pieces.add(text::OtherLoops { summary: &other_loops::summary(context.other_loops) }.fill());
    pieces.add(text::WorkingDirectory { worktree: &one_line(context.worktree) }.fill());
    pieces.add(text::WORKPLACE);
    pieces.add_some(project_instructions(context.instructions));
    pieces.add_some(parallel(context.agents_at_once));
    earlier(&mut pieces, context);
    pieces.add_some(context.may_stop_picking.then(|| text::STOP_MARKER.to_owned()));
    pieces.add_some(context.ends_with_marker.then(|| text::MARKER.to_owned()));
    pieces.prompt()
}

pub(super) fn parallel(agents_at_once: usize) -> Option<String> {
    let warning = || text::ParallelWork { count: &agents_at_once.to_string() }.fill();
    (agents_at_once > 1).then(warning)
}

fn earlier(pieces: &mut Pieces, context: &ImplementContext<'_>) {
    if context.attempt > 1 {
        pieces.add(text::NextAttempt { attempt: &context.attempt.to_string() }.fill());
    }
    let message = |message| text::PreviousMessage { message: &fenced(message, "") }.fill();
    pieces.add_some(context.previous_message.map(message));
    if !context.findings.is_empty() {
        pieces.add(text::FindingsToHeed { findings: &finding_list::numbered(context.findings) }.fill());
    }
}
