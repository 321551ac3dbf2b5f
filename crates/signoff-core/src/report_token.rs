//! The scope of an attempt's report token: which tool may be called, how often, and about what.
//!
//! A reviewer reports once, about its own loop, and may withdraw an approval until its attempt ends. A planner writes
//! tasks or adds groups. A refusal says what to do instead.

mod planning;

use serde_json::{Map, Value, json};

use crate::contract;
use crate::contract::{Contract, ReviewAnswer, ReviewRequest};
use crate::ids::{Commit, LoopId};
use crate::review::{Review, Violation, ViolationCode};
use crate::source::planner::PlannedTask;

/// The arguments of a tool call.
pub type ReportArguments = Map<String, Value>;

/// The tools that agents report with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ReportTool {
    /// Reports the review of a loop.
    SetLoopReviewResult,
    /// Reports the review of a run's tasks, groups or final state.
    SetReviewResult,
    WriteTask,
    AddPlanGroup,
}

impl ReportTool {
    pub const ALL: [Self; 4] = [Self::SetLoopReviewResult, Self::SetReviewResult, Self::WriteTask, Self::AddPlanGroup];

    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Maximum number of recorded calls per reviewer.
pub const MAX_REPORTS: usize = 100;

/// What may still be reported with one token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportScope {
    /// One review, with its request and the calls recorded so far.
    Review { ask: Box<ReviewRequest>, calls: Vec<ReportArguments> },
    /// The tasks of a run, with the tasks written so far.
    Tasks { written: Vec<PlannedTask> },
    /// The groups of a run, with the ids of its tasks and the groups added so far.
    Groups { known: Vec<String>, added: Vec<Vec<String>> },
}

/// An accepted call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedCall {
    /// The token's scope after this call.
    pub scope: ReportScope,
    /// Everything reported with the token. Store it before replying.
    pub report: Value,
    /// The reply to the caller. A refusal means that only the objection was recorded.
    pub reply: Result<String, ReportRefusal>,
}

impl ReportScope {
    pub fn review(ask: ReviewRequest) -> Self {
        Self::Review { ask: Box::new(ask), calls: Vec::new() }
    }

    pub fn tasks() -> Self {
        Self::Tasks { written: Vec::new() }
    }

    /// Creates the scope for groups of these tasks.
    pub fn groups(known: Vec<String>) -> Self {
        Self::Groups { known, added: Vec::new() }
    }

    /// The only tool that may be called.
    pub fn tool(&self) -> ReportTool {
        match self {
            Self::Review { ask, .. } if ask.loop_id.is_some() => ReportTool::SetLoopReviewResult,
            Self::Review { .. } => ReportTool::SetReviewResult,
            Self::Tasks { .. } => ReportTool::WriteTask,
            Self::Groups { .. } => ReportTool::AddPlanGroup,
        }
    }

    /// Checks a call and applies it.
    pub fn call(&self, tool: &str, arguments: &ReportArguments) -> Result<AcceptedCall, ReportRefusal> {
        let granted = self.tool();
        let wrong = (tool != granted.as_str()).then(|| ReportRefusal::wrong_tool(tool, granted));
        match (self, wrong) {
            (Self::Review { ask, calls }, wrong) => {
                let read = wrong.map_or_else(|| read_review(ask, granted, arguments), Err);
                record_report(ReviewCall { ask, calls, tool: granted, arguments }, read)
            }
            (Self::Tasks { .. } | Self::Groups { .. }, Some(wrong)) => Err(wrong),
            (Self::Tasks { written }, None) => planning::write_task(written, arguments),
            (Self::Groups { known, added }, None) => planning::add_group(known, added, arguments),
        }
    }
}

/// Parses the review that a call reports.
fn read_review(ask: &ReviewRequest, tool: ReportTool, arguments: &ReportArguments) -> Result<Review, ReportRefusal> {
    check_task(ask, arguments)?;
    let bytes = serde_json::to_vec(arguments).unwrap_or_default();
    contract::parse(Contract::Tool, ReviewAnswer { text: b"", tool: Some(&bytes) }, ask)
        .and_then(contract::check_finding_count)
        .map_err(|violation| refusal_for(ask, tool, arguments, violation))
}

/// A call that reports a review, and the calls before it.
struct ReviewCall<'a> {
    ask: &'a ReviewRequest,
    calls: &'a [ReportArguments],
    tool: ReportTool,
    arguments: &'a ReportArguments,
}

/// Accepts a readable report. An unreadable one is refused, so that the reviewer can correct it. A later call counts
/// only if it is stricter. A report that objects to the work counts even if it is unreadable, and after a first
/// report also if it names another tool, loop, task or commit.
fn record_report(call: ReviewCall<'_>, read: Result<Review, ReportRefusal>) -> Result<AcceptedCall, ReportRefusal> {
    let ReviewCall { ask, calls, tool, arguments } = call;
    let reply = match read {
        Ok(review) if review.verdict.approves() && !calls.is_empty() => {
            return Err(ReportRefusal::AlreadyReported);
        }
        Ok(_) if calls.is_empty() => Ok(RECORDED.to_owned()),
        Ok(_) => Ok(RECORDED_TOO.to_owned()),
        Err(ReportRefusal::Malformed { message, .. }) if is_objection(arguments, calls) => {
            Err(ReportRefusal::Unreadable { tool, message })
        }
        Err(refusal) if is_objection(arguments, calls) && !calls.is_empty() => {
            Err(ReportRefusal::Unreadable { tool, message: refusal.to_string() })
        }
        Err(refusal) => return Err(refusal),
    };
    if calls.len() >= MAX_REPORTS {
        return Err(ReportRefusal::AlreadyReported);
    }
    let mut calls = calls.to_vec();
    if !calls.contains(arguments) {
        calls.push(arguments.clone());
    }
    let report = report_json(tool, &calls);
    Ok(AcceptedCall { scope: ReportScope::Review { ask: Box::new(ask.clone()), calls }, report, reply })
}

const RECORDED: &str = "The result is recorded. Nothing more is to be reported: end your work now.";
const RECORDED_TOO: &str =
    "This result is recorded too, and the stricter one counts. Nothing more is to be reported: end your work now.";

/// Whether an unreadable call objects to the work: it says so, or it follows a recorded call without repeating that
/// the work passed.
fn is_objection(arguments: &ReportArguments, calls: &[ReportArguments]) -> bool {
    match arguments.get("passed") {
        Some(Value::Bool(passed)) => !passed,
        Some(_) | None => !calls.is_empty(),
    }
}

/// The recorded calls as JSON, in order.
fn report_json(tool: ReportTool, calls: &[ReportArguments]) -> Value {
    match calls {
        [only] => json!({ "tool": tool.as_str(), "arguments": only }),
        all => json!({ "tool": tool.as_str(), "calls": all }),
    }
}

/// Checks that a named task is the one under review. Checkpoint reviewers may omit it.
fn check_task(ask: &ReviewRequest, arguments: &ReportArguments) -> Result<(), ReportRefusal> {
    let (Some(granted), Some(Value::String(said))) = (&ask.task, arguments.get("taskId")) else {
        return Ok(());
    };
    if said == granted {
        return Ok(());
    }
    Err(ReportRefusal::WrongTask { said: clip(said), granted: granted.clone() })
}

fn refusal_for(
    ask: &ReviewRequest,
    tool: ReportTool,
    arguments: &ReportArguments,
    violation: Violation,
) -> ReportRefusal {
    let said = |name| arguments.get(name).and_then(Value::as_str).map(clip);
    let is_of = |code| violation.code == code;
    if let (true, Some(granted), Some(said)) = (is_of(ViolationCode::WrongLoop), &ask.loop_id, said("loopId")) {
        return ReportRefusal::WrongLoop { said, granted: granted.clone(), tool };
    }
    if let (true, Some(granted), Some(said)) = (is_of(ViolationCode::CommitMismatch), &ask.commit, said("commit")) {
        return ReportRefusal::WrongCommit { said, granted: granted.clone() };
    }
    ReportRefusal::Malformed { tool, message: violation.message }
}

/// Truncates a caller's text for a message.
fn clip(said: &str) -> String {
    const LONGEST: usize = 60;
    let shown: String = said.chars().take(LONGEST).collect();
    if shown.len() < said.len() { shown + "…" } else { shown }
}

/// Why a report call is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReportRefusal {
    #[error("this token is not known: send the one in SIGNOFF_MCP_TOKEN as `Authorization: Bearer TOKEN`")]
    UnknownToken,
    #[error("the attempt that this token was given to has ended: nothing can be reported with it any more")]
    Ended,
    #[error("the result of this review was reported already, and counts: nothing more is to be reported")]
    AlreadyReported,
    #[error("this token is for {granted}, not for {said}: call {granted}", granted = granted.as_str())]
    WrongTool { said: String, granted: ReportTool },
    #[error("this token is for loop {granted}, not {said}: call {tool} with loopId \"{granted}\"", tool = tool.as_str())]
    WrongLoop { said: String, granted: LoopId, tool: ReportTool },
    #[error("this token is for task {granted}, not {said}: send taskId \"{granted}\", or none")]
    WrongTask { said: String, granted: String },
    #[error("this token is for commit {granted}, not {said}: send commit \"{granted}\", or none")]
    WrongCommit { said: String, granted: Commit },
    #[error("{message}. Nothing was recorded: call {tool} again with that put right", tool = tool.as_str())]
    Malformed { tool: ReportTool, message: String },
    #[error("{message}. It is recorded that this review did not pass: call {tool} again with that put right", tool = tool.as_str())]
    Unreadable { tool: ReportTool, message: String },
    /// The report could not be written to disk.
    #[error("the report could not be kept: {message}. Nothing was recorded: try again")]
    NotStored { message: String },
}

impl ReportRefusal {
    fn wrong_tool(said: &str, granted: ReportTool) -> Self {
        Self::WrongTool { said: clip(said), granted }
    }
}
