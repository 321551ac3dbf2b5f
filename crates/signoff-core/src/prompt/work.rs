//! The contexts of prompts for agents that work: plan (brainstorm, research, list and group tasks), implement, fix,
//! simplify, resolve a conflict.

use serde::{Serialize, Serializer};

use crate::ledger::LedgerEntry;
use crate::prompt::{CHARACTER_CAP, DiffContext, OtherLoop, lists, template};
use crate::review::Finding;

/// A task as agents see it. Empty fields are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct TaskPromptContext<'a> {
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
pub struct PlanItemContext<'a> {
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
    pub task: TaskPromptContext<'a>,
    pub worktree: &'a str,
    /// Files at the worktree's root with the project's rules for contributors.
    pub instructions: &'a [&'a str],
    pub other_loops: &'a [OtherLoop<'a>],
    /// How many agents work in this repository at once, including this one.
    pub agents_at_once: usize,
    /// Counted from 1.
    pub attempt: u32,
    /// The final message of the previous attempt.
    pub previous_message: Option<&'a str>,
    /// The findings of a checkpoint review, or of the review that restarted the workflow.
    #[serde(serialize_with = "lists::numbered")]
    pub findings: &'a [&'a Finding],
    /// The item of the plan to implement, if the plan is worked item by item.
    pub item: Option<PlanItemContext<'a>>,
    /// Whether the last line of the final message decides if the task is done.
    pub ends_with_marker: bool,
    /// Whether the agent may report that the tracker has no work left.
    pub may_stop_picking: bool,
}

/// The context of a fix. The fixer starts a new session, so this is its only input.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct FixContext<'a> {
    /// Replaces the built-in opening.
    pub opening: Option<&'a str>,
    pub task: TaskPromptContext<'a>,
    pub worktree: &'a str,
    /// Files at the worktree's root with the project's rules for contributors.
    pub instructions: &'a [&'a str],
    #[serde(serialize_with = "lists::numbered")]
    pub findings: &'a [&'a Finding],
    /// The merged result of several reviewers, in the form that people are shown.
    pub results: Option<&'a str>,
    /// Findings of different reviewers that ask for opposite things.
    #[serde(serialize_with = "lists::pairs")]
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
    #[serde(serialize_with = "lists::settled")]
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

/// The context of an attempt that simplifies finished work.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct SimplifyContext<'a> {
    /// Replaces the built-in opening.
    pub opening: Option<&'a str>,
    pub task: TaskPromptContext<'a>,
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

/// Renders the prompt of a simplify phase.
pub fn simplify(context: &SimplifyContext<'_>) -> String {
    template::render("simplify.md", context)
}

/// The context of a brainstorm phase.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct BrainstormContext<'a> {
    /// Replaces the built-in opening.
    pub opening: Option<&'a str>,
    pub task: TaskPromptContext<'a>,
    pub worktree: &'a str,
    /// Counted from 1.
    pub pass: u32,
    /// The findings of the review that ended the previous pass.
    #[serde(serialize_with = "lists::numbered")]
    pub findings: &'a [&'a Finding],
    /// The text of that review, if it has no findings.
    pub last_review: Option<&'a str>,
    /// Why the answer of the previous attempt was refused.
    pub refused: Option<&'a str>,
    /// The file to write the result to, relative to the worktree.
    pub document: Option<&'a str>,
}

/// The context of one of several researchers.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct ResearchContext<'a> {
    #[serde(flatten)]
    pub base: BrainstormContext<'a>,
    /// Counted from 1.
    pub number: u32,
    pub researchers: u32,
    /// The question to answer. By default the researcher's number decides.
    pub question: Option<&'a str>,
}

/// The context of the agent that turns the researchers' reports into one design.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct SynthesisContext<'a> {
    #[serde(flatten)]
    pub base: BrainstormContext<'a>,
    pub reports: &'a [&'a str],
}

/// The context of a phase that plans one task.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct PlanDocumentContext<'a> {
    /// Replaces the built-in opening.
    pub opening: Option<&'a str>,
    pub task: TaskPromptContext<'a>,
    pub worktree: &'a str,
    /// The result of the brainstorm or of the research.
    pub preparation: Option<&'a str>,
    /// Counted from 1.
    pub pass: u32,
    /// The plan of the previous pass, and the findings of its review.
    pub previous_plan: Option<&'a str>,
    #[serde(serialize_with = "lists::numbered")]
    pub findings: &'a [&'a Finding],
    /// The text of that review, if it has no findings.
    pub last_review: Option<&'a str>,
    /// Why the answer of the previous attempt was refused.
    pub refused: Option<&'a str>,
    /// The reports of the researchers.
    pub reports: &'a [&'a str],
    /// The file to write the plan to, relative to the worktree. Without one, the plan is the final message.
    pub document: Option<&'a str>,
}

/// The result of the planner's previous answer, if it gave one.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[serde(tag = "result", rename_all = "lowercase")]
pub enum RetryContext<'a> {
    #[default]
    No,
    /// It broke a rule of the answer's format.
    Refused { reason: &'a str },
    /// It was valid, and its review has findings.
    Reviewed {
        answer: &'a str,
        #[serde(serialize_with = "lists::numbered")]
        findings: &'a [&'a Finding],
    },
}

/// The context of the planner that lists the tasks of a specification.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct EnumerateContext<'a> {
    /// Replaces the built-in opening.
    pub opening: Option<&'a str>,
    /// The path of the specification.
    pub name: &'a str,
    pub specification: &'a str,
    pub retry: RetryContext<'a>,
}

/// The context of the planner that groups tasks.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct PlanContext<'a> {
    /// Replaces the built-in opening.
    pub opening: Option<&'a str>,
    #[serde(serialize_with = "json_lines")]
    pub tasks: &'a [PromptTask<'a>],
    pub retry: RetryContext<'a>,
}

/// A task to group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PromptTask<'a> {
    pub id: &'a str,
    pub title: &'a str,
    pub description: &'a str,
    pub depends_on: &'a [&'a str],
}

/// Renders the prompt of a brainstorm phase.
pub fn brainstorm(context: &BrainstormContext<'_>) -> String {
    template::render("brainstorm.md", context)
}

/// Renders the prompt of one researcher.
pub fn research(context: &ResearchContext<'_>) -> String {
    template::render("research.md", context)
}

/// Renders the prompt that turns the researchers' reports into one design.
pub fn synthesis(context: &SynthesisContext<'_>) -> String {
    template::render("synthesis.md", context)
}

/// Renders the prompt of a phase that plans one task.
pub fn plan_document(context: &PlanDocumentContext<'_>) -> String {
    template::render("plan_document.md", context)
}

/// Renders the prompt that asks for the tasks of a specification.
pub fn enumerate(context: &EnumerateContext<'_>) -> String {
    template::render("enumerate.md", context)
}

/// Renders the prompt that asks for the groups of a run.
pub fn plan(context: &PlanContext<'_>) -> String {
    template::render("plan.md", context)
}

/// One task per line, without the descriptions if they exceed the cap: ids and dependencies must all be there, because
/// a plan that misses a task is refused.
fn json_lines<S: Serializer>(tasks: &[PromptTask<'_>], serializer: S) -> Result<S::Ok, S::Error> {
    let line = |task| serde_json::to_string(&task).map(|line| line + "\n").unwrap_or_default();
    let mut lines: String = tasks.iter().copied().map(line).collect();
    if lines.chars().count() > CHARACTER_CAP {
        lines = tasks.iter().map(|task| line(PromptTask { description: "", ..*task })).collect();
    }
    serializer.serialize_str(&lines)
}
