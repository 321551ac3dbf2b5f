//! What the token of an attempt is good for: which tool may be called with it, how often, and about what.
//!
//! A reviewer reports once, about its own loop; a planner writes tasks or adds groups until its attempt ends. A
//! refusal says what to do instead, for the agent that called; it changes nothing.

mod planned;
mod refusal;

use serde_json::{Map, Value, json};

use crate::contract::{self, Answer, Ask, Contract};
use crate::review::{Violation, ViolationCode};
use crate::source::planner::PlannedTask;

pub use refusal::Refusal;

/// The arguments of a call.
pub type Arguments = Map<String, Value>;

/// The tools that agents report with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReportTool {
    /// The review of a loop.
    SetLoopReviewResult,
    /// The review of a run's tasks, groups or whole.
    SetReviewResult,
    WriteTask,
    AddPlanGroup,
}

impl ReportTool {
    pub const ALL: [Self; 4] =
        [Self::SetLoopReviewResult, Self::SetReviewResult, Self::WriteTask, Self::AddPlanGroup];

    pub fn word(self) -> &'static str {
        match self {
            Self::SetLoopReviewResult => "set_loop_review_result",
            Self::SetReviewResult => "set_review_result",
            Self::WriteTask => "write_task",
            Self::AddPlanGroup => "add_plan_group",
        }
    }
}

/// What may still be reported with one token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// One review, as it was asked for.
    Review { ask: Box<Ask>, reported: bool },
    /// The tasks of a run, with those that were written so far.
    Tasks { written: Vec<PlannedTask> },
    /// The groups of a run, with those that were added so far.
    Groups { added: Vec<Vec<String>> },
}

/// A call that may be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// What the token is good for from now on.
    pub grant: Grant,
    /// All that was reported with it, to be kept before the caller is told so.
    pub report: Value,
    /// The answer to the caller.
    pub told: String,
}

impl Grant {
    pub fn review(ask: Ask) -> Self {
        Self::Review { ask: Box::new(ask), reported: false }
    }

    pub fn tasks() -> Self {
        Self::Tasks { written: Vec::new() }
    }

    pub fn groups() -> Self {
        Self::Groups { added: Vec::new() }
    }

    /// The one tool that may be called.
    pub fn tool(&self) -> ReportTool {
        match self {
            Self::Review { ask, .. } if ask.loop_id.is_some() => ReportTool::SetLoopReviewResult,
            Self::Review { .. } => ReportTool::SetReviewResult,
            Self::Tasks { .. } => ReportTool::WriteTask,
            Self::Groups { .. } => ReportTool::AddPlanGroup,
        }
    }

    /// Decides a call.
    pub fn call(&self, tool: &str, arguments: &Arguments) -> Result<Accepted, Refusal> {
        let granted = self.tool();
        if tool != granted.word() {
            return Err(Refusal::wrong_tool(tool, granted));
        }
        match self {
            Self::Review { reported: true, .. } => Err(Refusal::Reported),
            Self::Review { ask, reported: false } => report(ask, granted, arguments),
            Self::Tasks { written } => planned::write_task(written, arguments),
            Self::Groups { added } => planned::add_group(added, arguments),
        }
    }
}

/// Only a report that can be read is taken: one that cannot is the reviewer's to put right, not the gate's to judge.
fn report(ask: &Ask, tool: ReportTool, arguments: &Arguments) -> Result<Accepted, Refusal> {
    let bytes = serde_json::to_vec(arguments).unwrap_or_default();
    check_task(ask, arguments)?;
    contract::parse(Contract::Tool, Answer { text: b"", tool: Some(&bytes) }, ask)
        .and_then(contract::within_reason)
        .map_err(|violation| refused(ask, tool, arguments, violation))?;
    Ok(Accepted {
        grant: Grant::Review { ask: Box::new(ask.clone()), reported: true },
        report: json!({ "tool": tool.word(), "arguments": arguments }),
        told: "The result is recorded. Nothing more is to be reported: end your work now.".to_owned(),
    })
}

/// A task that is named is the one under review. Whoever looks at work in progress may name it or not.
fn check_task(ask: &Ask, arguments: &Arguments) -> Result<(), Refusal> {
    let (Some(granted), Some(Value::String(said))) = (&ask.task, arguments.get("taskId")) else {
        return Ok(());
    };
    if said == granted {
        return Ok(());
    }
    Err(Refusal::WrongTask { said: clip(said), granted: granted.clone() })
}

fn refused(ask: &Ask, tool: ReportTool, arguments: &Arguments, violation: Violation) -> Refusal {
    let said = |name| arguments.get(name).and_then(Value::as_str).map(clip);
    let is_of = |code| violation.code == code;
    if let (true, Some(granted), Some(said)) = (is_of(ViolationCode::WrongLoop), &ask.loop_id, said("loopId"))
    {
        return Refusal::WrongLoop { said, granted: granted.clone(), tool };
    }
    if let (true, Some(granted), Some(said)) =
        (is_of(ViolationCode::CommitMismatch), &ask.commit, said("commit"))
    {
        return Refusal::WrongCommit { said, granted: granted.clone() };
    }
    Refusal::Malformed { tool, message: violation.message }
}

/// What a caller said, short enough for a message.
fn clip(said: &str) -> String {
    const LONGEST: usize = 60;
    let shown: String = said.chars().take(LONGEST).collect();
    if shown.len() < said.len() { shown + "…" } else { shown }
}
