//! The prompts of the two planners: one lists tasks, one puts them into groups.

use serde::Serialize;

use crate::prompt::material::{fenced, one_line};
use crate::prompt::pieces::Pieces;
use crate::prompt::{finding_list, text};
use crate::review::Finding;

/// How a planner gives its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AnswerBy {
    /// As JSON in the final message.
    #[default]
    Json,
    /// Through the tools `write_task` and `add_plan_group`.
    Tools,
}

/// What came of the planner's last answer, where there was one.
#[derive(Debug, Clone, Copy, Default)]
pub enum SecondTry<'a> {
    #[default]
    No,
    /// It broke a rule of the answer.
    Refused { reason: &'a str },
    /// It was read, reviewed and found wanting.
    Reviewed { answer: &'a str, findings: &'a [&'a Finding] },
}

/// A specification to make tasks of.
#[derive(Debug, Clone, Copy, Default)]
pub struct EnumerateContext<'a> {
    /// A person's own words in place of the built-in opening.
    pub opening: Option<&'a str>,
    /// The specification's name, as people know it: its path.
    pub name: &'a str,
    pub specification: &'a str,
    pub second_try: SecondTry<'a>,
    pub answer_by: AnswerBy,
}

/// Tasks to put into groups.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlanContext<'a> {
    /// A person's own words in place of the built-in opening.
    pub opening: Option<&'a str>,
    pub tasks: &'a [PlannedTask<'a>],
    pub second_try: SecondTry<'a>,
    pub answer_by: AnswerBy,
}

/// A task as the first planner named it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PlannedTask<'a> {
    pub id: &'a str,
    pub title: &'a str,
    pub description: &'a str,
    pub depends_on: &'a [&'a str],
}

/// Writes the prompt that asks for the tasks of a specification.
pub fn enumerate(context: &EnumerateContext<'_>) -> String {
    let mut pieces = Pieces::opening(context.opening, text::ENUMERATE);
    let specification = fenced(context.specification, "");
    let name = one_line(context.name);
    pieces.add(text::SourceSpecification { name: &name, specification: &specification }.fill());
    again(&mut pieces, context.second_try);
    pieces.add(match context.answer_by {
        AnswerBy::Json => text::ENUMERATE_JSON,
        AnswerBy::Tools => text::ENUMERATE_TOOLS,
    });
    pieces.prompt()
}

/// Writes the prompt that asks for the groups of a run.
pub fn plan(context: &PlanContext<'_>) -> String {
    let mut pieces = Pieces::opening(context.opening, text::PLAN);
    pieces.add(text::TasksToGroup { tasks: &fenced(&tasks(context.tasks), "json") }.fill());
    again(&mut pieces, context.second_try);
    pieces.add(match context.answer_by {
        AnswerBy::Json => text::PLAN_JSON,
        AnswerBy::Tools => text::PLAN_TOOLS,
    });
    pieces.prompt()
}

/// One task a line. Where the descriptions do not fit, ids and dependencies still must: a plan that
/// lacks a task cannot be used.
fn tasks(tasks: &[PlannedTask<'_>]) -> String {
    let whole = lines(tasks.iter().copied());
    if whole.chars().count() <= crate::prompt::CHARACTER_CAP {
        return whole;
    }
    lines(tasks.iter().map(|task| PlannedTask { description: "", ..*task }))
}

fn lines<'a>(tasks: impl Iterator<Item = PlannedTask<'a>>) -> String {
    tasks.filter_map(|task| serde_json::to_string(&task).ok()).map(|line| line + "\n").collect()
}

fn again(pieces: &mut Pieces, second_try: SecondTry<'_>) {
    match second_try {
        SecondTry::No => {}
        SecondTry::Refused { reason } => {
            pieces.add(text::AnswerRefused { reason: &fenced(reason, "") }.fill());
        }
        SecondTry::Reviewed { answer, findings } => {
            pieces.add(text::LastAnswer { answer: &fenced(answer, "") }.fill());
            pieces.add(text::FindingsOnAnswer { findings: &finding_list::numbered(findings) }.fill());
        }
    }
}
