//! The prompts of agents that plan: brainstorm, research, write a plan, list the tasks of a run and group them.

use serde::{Serialize, Serializer};

use crate::prompt::{CHARACTER_CAP, TaskBrief, finding_list, template};
use crate::review::Finding;

/// The context of a brainstorm phase.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct BrainstormContext<'a> {
    /// Replaces the built-in opening.
    pub opening: Option<&'a str>,
    pub task: TaskBrief<'a>,
    pub worktree: &'a str,
    /// Counted from 1.
    pub pass: u32,
    /// The findings of the review that ended the previous pass.
    #[serde(serialize_with = "finding_list::numbered")]
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
    pub task: TaskBrief<'a>,
    pub worktree: &'a str,
    /// The result of the brainstorm or of the research.
    pub preparation: Option<&'a str>,
    /// Counted from 1.
    pub pass: u32,
    /// The plan of the previous pass, and the findings of its review.
    pub previous_plan: Option<&'a str>,
    #[serde(serialize_with = "finding_list::numbered")]
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

/// How a planner answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AnswerBy {
    /// As JSON in the final message.
    #[default]
    Json,
    /// Through the tools `write_task` and `add_plan_group`.
    Tools,
}

/// The result of the planner's previous answer, if it gave one.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[serde(tag = "result", rename_all = "lowercase")]
pub enum SecondTry<'a> {
    #[default]
    No,
    /// It broke a rule of the answer's format.
    Refused { reason: &'a str },
    /// It was valid, and its review has findings.
    Reviewed {
        answer: &'a str,
        #[serde(serialize_with = "finding_list::numbered")]
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
    pub second_try: SecondTry<'a>,
    pub answer_by: AnswerBy,
}

/// The context of the planner that groups tasks.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct PlanContext<'a> {
    /// Replaces the built-in opening.
    pub opening: Option<&'a str>,
    #[serde(serialize_with = "json_lines")]
    pub tasks: &'a [PromptTask<'a>],
    pub second_try: SecondTry<'a>,
    pub answer_by: AnswerBy,
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
