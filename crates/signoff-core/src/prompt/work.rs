//! The prompts of agents that change code: implement, fix, simplify, resolve a conflict.

use serde::Serialize;

use crate::ledger::LedgerEntry;
use crate::prompt::{DiffContext, OtherLoop, finding_list, other_loops, template};
use crate::review::Finding;

/// A task as agents see it. Empty fields are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct TaskBrief<'a> {
    pub id: &'a str,
    pub title: &'a str,
    pub description: &'a str,
    pub status: &'a str,
    pub priority: &'a str,
    /// The text of the plan document that came with the task.
    pub plan: Option<&'a str>,
    /// The paths of its design and its plan, relative to the worktree.
    pub design_file: &'a str,
    pub plan_file: &'a str,
}

/// One task of a plan document that is worked task by task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ItemBrief<'a> {
    /// Counted from 1.
    pub number: u32,
    pub title: &'a str,
    pub description: &'a str,
    /// The titles of the items before this one, and of those after it.
    pub done: &'a [&'a str],
    pub later: &'a [&'a str],
    /// Whether another program worked on the plan before, so that it is unknown what is done.
    pub begun_elsewhere: bool,
}

/// The context of an implement attempt.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct ImplementContext<'a> {
    /// Replaces the built-in opening.
    pub opening: Option<&'a str>,
    pub task: TaskBrief<'a>,
    pub worktree: &'a str,
    /// Files at the worktree's root with the project's rules for contributors.
    pub instructions: &'a [&'a str],
    #[serde(serialize_with = "other_loops::serialize")]
    pub other_loops: &'a [OtherLoop<'a>],
    /// How many agents work in this repository at once, including this one.
    pub agents_at_once: usize,
    /// Counted from 1.
    pub attempt: u32,
    /// The final message of the previous attempt.
    pub previous_message: Option<&'a str>,
    /// The findings of a checkpoint review, or of the review that restarted the workflow.
    #[serde(serialize_with = "finding_list::numbered")]
    pub findings: &'a [&'a Finding],
    /// The item of the plan to implement, if the plan is worked item by item.
    pub item: Option<ItemBrief<'a>>,
    /// Whether the last line of the final message decides if the task is done.
    pub ends_with_marker: bool,
    /// Whether the agent may report that the tracker has no work left.
    pub may_stop_picking: bool,
}

/// The context of a fix. The fixer starts a new session and knows nothing else.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct FixContext<'a> {
    /// Replaces the built-in opening.
    pub opening: Option<&'a str>,
    pub task: TaskBrief<'a>,
    pub worktree: &'a str,
    /// Files at the worktree's root with the project's rules for contributors.
    pub instructions: &'a [&'a str],
    #[serde(serialize_with = "finding_list::numbered")]
    pub findings: &'a [&'a Finding],
    /// The merged result of several reviewers, in the form that people are shown.
    pub results: Option<&'a str>,
    /// Findings of different reviewers that ask for opposite things.
    #[serde(serialize_with = "finding_list::pairs")]
    pub conflicts: &'a [(&'a Finding, &'a Finding)],
    /// The reviewer's follow-up prompt, if the contract has one.
    pub follow_up: Option<&'a str>,
    /// The raw answer of a reviewer that could not be parsed, if the policy passes it on.
    pub unread_review: Option<&'a str>,
    /// The whole last review, if its findings are not known one by one.
    pub last_review: Option<&'a str>,
    /// What the review asks for besides its findings, if several fixers share the findings.
    pub rest: Option<&'a str>,
    /// A person's guidance for this fix.
    pub guidance: Option<&'a str>,
    /// Why the answer of the previous attempt was refused.
    pub refused: Option<&'a str>,
    pub earlier: &'a [EarlierCycle],
    /// Findings that were decided before: fixed ones must stay fixed.
    #[serde(serialize_with = "finding_list::settled")]
    pub settled: &'a [&'a LedgerEntry],
    /// The files of this fix, if others fix other findings at the same time.
    pub only_files: &'a [&'a str],
    pub diff: Option<DiffContext<'a>>,
    /// Whether the agent may report that the tracker has no work left.
    pub may_stop_picking: bool,
}

/// The counts of an earlier cycle. The fixer is shown these instead of the reviews.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct EarlierCycle {
    pub cycle: u32,
    pub reported: usize,
    pub fixed: usize,
    pub refuted: usize,
    /// Fixed in an earlier cycle and open again in this one.
    pub regressed: usize,
}

/// The context of an attempt that resolves a conflict with landed work.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct ConflictContext<'a> {
    /// Replaces the built-in opening.
    pub opening: Option<&'a str>,
    pub task: TaskBrief<'a>,
    pub worktree: &'a str,
    /// The branch or commit to rebase onto.
    pub onto: &'a str,
    pub files: &'a [&'a str],
    /// The output of git.
    pub output: Option<&'a str>,
}

/// The context of an attempt that simplifies finished work.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct SimplifyContext<'a> {
    /// Replaces the built-in opening.
    pub opening: Option<&'a str>,
    pub task: TaskBrief<'a>,
    pub worktree: &'a str,
    pub agents_at_once: usize,
    pub diff: DiffContext<'a>,
}

/// Renders the prompt of an implement attempt.
pub fn implement(context: &ImplementContext<'_>) -> String {
    template::render("implement.md", context)
}

/// Renders the prompt of a fix attempt.
pub fn fix(context: &FixContext<'_>) -> String {
    template::render("fix.md", context)
}

/// Renders the prompt of an attempt that resolves a conflict.
pub fn conflict(context: &ConflictContext<'_>) -> String {
    template::render("conflict.md", context)
}

/// Renders the prompt of a simplify phase.
pub fn simplify(context: &SimplifyContext<'_>) -> String {
    template::render("simplify.md", context)
}
