//! What the token of an attempt is good for: which tool may be called with it, how often, and about what.
//!
//! A reviewer reports once, about its own loop, and may take an approval back until its attempt ends; a planner writes
//! tasks or adds groups. A refusal says what to do instead, for the agent that called.

mod planned;
mod refusal;

use serde_json::{Map, Value, json};

use crate::contract::{self, Answer, Ask, Contract};
use crate::review::{Review, Violation, ViolationCode};
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

/// Maximum number of recorded calls per reviewer.
pub const MOST_REPORTS: usize = 100;

/// What may still be reported with one token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// One review, as it was asked for, with the calls that count so far.
    Review { ask: Box<Ask>, calls: Vec<Arguments> },
    /// The tasks of a run, with those that were written so far.
    Tasks { written: Vec<PlannedTask> },
    /// The groups of a run, with the ids of its tasks and the groups that were added so far.
    Groups { known: Vec<String>, added: Vec<Vec<String>> },
}

/// A call that may be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// What the token is good for from now on.
    pub grant: Grant,
    /// All that was reported with it, to be kept before the caller is told so.
    pub report: Value,
    /// The answer to the caller: a refusal of what is recorded only as an objection.
    pub told: Result<String, Refusal>,
}

impl Grant {
    pub fn review(ask: Ask) -> Self {
        Self::Review { ask: Box::new(ask), calls: Vec::new() }
    }

    pub fn tasks() -> Self {
        Self::Tasks { written: Vec::new() }
    }

    /// Groups of these tasks.
    pub fn groups(known: Vec<String>) -> Self {
        Self::Groups { known, added: Vec::new() }
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
        let wrong = (tool != granted.word()).then(|| Refusal::wrong_tool(tool, granted));
        match (self, wrong) {
            (Self::Review { ask, calls }, wrong) => {
                let read = wrong.map_or_else(|| read(ask, granted, arguments), Err);
                report((ask, calls), (granted, arguments), read)
            }
            (Self::Tasks { .. } | Self::Groups { .. }, Some(wrong)) => Err(wrong),
            (Self::Tasks { written }, None) => planned::write_task(written, arguments),
            (Self::Groups { known, added }, None) => planned::add_group((known, added), arguments),
        }
    }
}

/// The review that a call reports.
fn read(ask: &Ask, tool: ReportTool, arguments: &Arguments) -> Result<Review, Refusal> {
    check_task(ask, arguments)?;
    let bytes = serde_json::to_vec(arguments).unwrap_or_default();
    contract::parse(Contract::Tool, Answer { text: b"", tool: Some(&bytes) }, ask)
        .and_then(contract::within_reason)
        .map_err(|violation| refused(ask, tool, arguments, violation))
}

/// Accepts a readable report. An unreadable one is refused, so that the reviewer can correct it. A later call counts only
/// if it is stricter. A report that objects to the work counts even if it is unreadable, and after a first report also
/// if it names another tool, loop, task or commit.
fn report(
    (ask, calls): (&Ask, &[Arguments]),
    (tool, arguments): (ReportTool, &Arguments),
    read: Result<Review, Refusal>,
) -> Result<Accepted, Refusal> {
    let told = match read {
        Ok(review) if review.verdict.approves() && !calls.is_empty() => return Err(Refusal::Reported),
        Ok(_) if calls.is_empty() => Ok(RECORDED.to_owned()),
        Ok(_) => Ok(RECORDED_TOO.to_owned()),
        Err(Refusal::Malformed { message, .. }) if objects(arguments, calls) => {
            Err(Refusal::Unreadable { tool, message })
        }
        Err(refusal) if objects(arguments, calls) && !calls.is_empty() => {
            Err(Refusal::Unreadable { tool, message: refusal.to_string() })
        }
        Err(refusal) => return Err(refusal),
    };
    if calls.len() >= MOST_REPORTS {
        return Err(Refusal::Reported);
    }
    let mut calls = calls.to_vec();
    if !calls.contains(arguments) {
        calls.push(arguments.clone());
    }
    let report = recorded(tool, &calls);
    Ok(Accepted { grant: Grant::Review { ask: Box::new(ask.clone()), calls }, report, told })
}

const RECORDED: &str = "The result is recorded. Nothing more is to be reported: end your work now.";
const RECORDED_TOO: &str = "This result is recorded too, and the stricter one counts. Nothing more is to be reported: end your work now.";

/// Whether a call that cannot be read speaks against the work: it says so, or follows a call that counts without
/// repeating that the work passed.
fn objects(arguments: &Arguments, calls: &[Arguments]) -> bool {
    match arguments.get("passed") {
        Some(Value::Bool(passed)) => !passed,
        Some(_) | None => !calls.is_empty(),
    }
}

/// The calls as JSON for the record, in order.
fn recorded(tool: ReportTool, calls: &[Arguments]) -> Value {
    match calls {
        [only] => json!({ "tool": tool.word(), "arguments": only }),
        all => json!({ "tool": tool.word(), "calls": all }),
    }
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
