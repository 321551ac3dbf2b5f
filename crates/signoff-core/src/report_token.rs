//! The scope of an attempt's report token: which tool may be called, how often, and about what.
//!
//! A reviewer reports once, about its own loop, and may withdraw an approval until its attempt ends. A planner writes
//! tasks or adds groups. A refusal says what to do instead.
//!
//! A planner's answer is validated as a whole after the planner has ended. Errors that are visible in one call are
//! refused at once.

use serde_json::{Map, Value, json};

use crate::contract::{self, Contract, ReviewAnswer, ReviewRequest, clip};
use crate::contract::{missing, optional, optional_text, wrong_type};
use crate::ids::{Commit, LoopId};
use crate::review::{Review, Violation, ViolationCode};
use crate::source::MAX_TASKS;
use crate::source::planner::PlannedTask;

/// The arguments of a tool call.
pub type ReportArguments = Map<String, Value>;

/// The tools that agents report with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::VariantArray, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum ReportTool {
    /// Reports the review of a loop.
    SetLoopReviewResult,
    /// Reports the review of a run's tasks, groups or final state.
    SetReviewResult,
    WriteTask,
    AddPlanGroup,
}

impl ReportTool {
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;
}

/// Maximum number of recorded calls per reviewer.
pub const MAX_REPORTS: usize = 100;

/// What may still be reported with one token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportScope {
    /// One review, with its request and the calls recorded so far.
    Review { request: Box<ReviewRequest>, calls: Vec<ReportArguments> },
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
    pub fn review(request: ReviewRequest) -> Self {
        Self::Review { request: Box::new(request), calls: Vec::new() }
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
            Self::Review { request, .. } if request.loop_id.is_some() => ReportTool::SetLoopReviewResult,
            Self::Review { .. } => ReportTool::SetReviewResult,
            Self::Tasks { .. } => ReportTool::WriteTask,
            Self::Groups { .. } => ReportTool::AddPlanGroup,
        }
    }

    /// Checks a call and applies it.
    pub fn call(&self, tool: &str, arguments: &ReportArguments) -> Result<AcceptedCall, ReportRefusal> {
        let expected = self.tool();
        let checked = if tool == expected.into_str() {
            Ok(())
        } else {
            Err(ReportRefusal::WrongTool { sent: clip(tool), expected })
        };
        match self {
            Self::Review { request, calls } => {
                let read = checked.and_then(|()| read_review(request, expected, arguments));
                record_report(request, calls, expected, arguments, read)
            }
            Self::Tasks { written } => checked.and_then(|()| write_task(written, arguments)),
            Self::Groups { known, added } => checked.and_then(|()| add_group(known, added, arguments)),
        }
    }
}

/// Parses the review that a call reports.
fn read_review(
    request: &ReviewRequest,
    tool: ReportTool,
    arguments: &ReportArguments,
) -> Result<Review, ReportRefusal> {
    check_task(request, arguments)?;
    let bytes = serde_json::to_vec(arguments).unwrap_or_default();
    contract::parse(Contract::Tool, ReviewAnswer { text: b"", tool: Some(&bytes) }, request)
        .and_then(contract::check_finding_count)
        .map_err(|violation| refusal_for(request, tool, arguments, violation))
}

/// Accepts a readable report. An unreadable one is refused, so that the reviewer can correct it. A later call counts
/// only if it is stricter. A report that objects to the work counts even if it is unreadable, and after a first
/// report also if it names another tool, loop, task or commit.
fn record_report(
    request: &ReviewRequest,
    calls: &[ReportArguments],
    tool: ReportTool,
    arguments: &ReportArguments,
    read: Result<Review, ReportRefusal>,
) -> Result<AcceptedCall, ReportRefusal> {
    let reply = match read {
        Ok(review) if review.verdict.approves() && !calls.is_empty() => return Err(ReportRefusal::AlreadyReported),
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
    Ok(AcceptedCall { scope: ReportScope::Review { request: Box::new(request.clone()), calls }, report, reply })
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
        [only] => json!({ "tool": tool.into_str(), "arguments": only }),
        all => json!({ "tool": tool.into_str(), "calls": all }),
    }
}

/// Checks that a named task is the one under review. Checkpoint reviewers may omit it.
fn check_task(request: &ReviewRequest, arguments: &ReportArguments) -> Result<(), ReportRefusal> {
    match (&request.task, arguments.get("taskId").and_then(Value::as_str)) {
        (Some(expected), Some(sent)) if sent != expected => {
            Err(ReportRefusal::WrongTask { sent: clip(sent), expected: expected.clone() })
        }
        (Some(_) | None, _) => Ok(()),
    }
}

fn refusal_for(
    request: &ReviewRequest,
    tool: ReportTool,
    arguments: &ReportArguments,
    violation: Violation,
) -> ReportRefusal {
    let sent = |name| arguments.get(name).and_then(Value::as_str).map(clip);
    let is_of = |code| violation.code == code;
    if let (true, Some(expected), Some(sent)) = (is_of(ViolationCode::WrongLoop), &request.loop_id, sent("loopId")) {
        return ReportRefusal::WrongLoop { sent, expected: expected.clone(), tool };
    }
    if let (true, Some(expected), Some(sent)) = (is_of(ViolationCode::CommitMismatch), &request.commit, sent("commit"))
    {
        return ReportRefusal::WrongCommit { sent, expected: expected.clone() };
    }
    ReportRefusal::Malformed { tool, message: violation.message }
}

/// Writes a task. A task with the same id is replaced, so that a planner can correct itself.
fn write_task(written: &[PlannedTask], arguments: &ReportArguments) -> Result<AcceptedCall, ReportRefusal> {
    let wrong = |message| ReportRefusal::Malformed { tool: ReportTool::WriteTask, message };
    let task = task(arguments).map_err(wrong)?;
    let mut tasks = written.to_vec();
    let shown = clip(&task.id);
    let reply = match tasks.iter().position(|one| one.id == task.id) {
        Some(at) => {
            tasks[at] = task;
            format!("Task {shown} is replaced.")
        }
        None if tasks.len() == MAX_TASKS => {
            return Err(wrong(format!("the maximum of {MAX_TASKS} tasks is reached")));
        }
        None => {
            tasks.push(task);
            format!("Task {shown} is written; there are {} now.", tasks.len())
        }
    };
    let report = json!({ "tasks": tasks });
    Ok(AcceptedCall { scope: ReportScope::Tasks { written: tasks }, report, reply: Ok(reply) })
}

/// Adds a group. An existing group is not added twice: a client may repeat a call whose reply it missed.
fn add_group(
    known: &[String],
    added: &[Vec<String>],
    arguments: &ReportArguments,
) -> Result<AcceptedCall, ReportRefusal> {
    let wrong = |message| ReportRefusal::Malformed { tool: ReportTool::AddPlanGroup, message };
    let group =
        ids(arguments, "tasks").and_then(|ids| ids.ok_or_else(|| missing("tasks", LIST, 0).message)).map_err(wrong)?;
    let mut groups = added.to_vec();
    let reply = match groups.iter().position(|one| *one == group) {
        Some(at) => format!("That is group {} already.", at + 1),
        None => {
            check_group(&group, known, added).map_err(wrong)?;
            groups.push(group);
            format!("It is group {}.", groups.len())
        }
    };
    let report = json!({ "groups": groups });
    Ok(AcceptedCall { scope: ReportScope::Groups { known: known.to_vec(), added: groups }, report, reply: Ok(reply) })
}

const LIST: &str = "a list of task ids";

fn check_group(group: &[String], known: &[String], added: &[Vec<String>]) -> Result<(), String> {
    if group.is_empty() {
        return Err("`tasks` is empty: at least one task id is required".to_owned());
    }
    let count: usize = added.iter().map(Vec::len).sum();
    if count + group.len() > MAX_TASKS {
        return Err(format!("there can be no more than {MAX_TASKS} tasks"));
    }
    for (at, id) in group.iter().enumerate() {
        if let Some(other) = added.iter().position(|one| one.contains(id)) {
            let id = clip(id);
            return Err(format!("`tasks[{at}]`: task {id} is in group {} already, and stays there", other + 1));
        }
        if !known.contains(id) {
            return Err(format!("`tasks[{at}]`: there is no task {}; {}", clip(id), listed(known)));
        }
        if group[..at].contains(id) {
            return Err(format!("`tasks[{at}]`: task {} is named twice", clip(id)));
        }
    }
    Ok(())
}

/// Lists the known ids, as far as they fit on one line.
fn listed(known: &[String]) -> String {
    const SHOWN: usize = 20;
    let ids: Vec<String> = known.iter().take(SHOWN).map(|id| clip(id)).collect();
    let more = if known.len() > SHOWN { format!(" and {} more", known.len() - SHOWN) } else { String::new() };
    format!("the tasks are {}{more}", ids.join(", "))
}

fn task(arguments: &ReportArguments) -> Result<PlannedTask, String> {
    let title = text(arguments, "title")?.ok_or_else(|| missing("title", "a string", 0).message)?;
    let value = arguments.get("id").filter(|value| !value.is_null());
    Ok(PlannedTask {
        id: id("id", value.ok_or_else(|| missing("id", "a string", 0).message)?)?,
        title: Some(title.trim().to_owned())
            .filter(|title| !title.is_empty())
            .ok_or_else(|| "`title` is empty: one line is required".to_owned())?,
        description: text(arguments, "description")?.unwrap_or_default(),
        depends_on: ids(arguments, "depends_on")?.unwrap_or_default(),
    })
}

fn text(arguments: &ReportArguments, key: &str) -> Result<Option<String>, String> {
    optional_text(arguments, key, 0).map(|text| text.map(str::to_owned)).map_err(|violation| violation.message)
}

fn ids(arguments: &ReportArguments, key: &str) -> Result<Option<Vec<String>>, String> {
    let items = optional(arguments, key, LIST, 0, Value::as_array).map_err(|violation| violation.message)?;
    let each = |items: &Vec<Value>| {
        items.iter().enumerate().map(|(at, item)| id(&format!("{key}[{at}]"), item)).collect::<Result<_, _>>()
    };
    items.map(each).transpose()
}

/// Parses an id: a string, or a number whose digits are the id.
fn id(path: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
        Value::Number(number) => Ok(number.to_string()),
        Value::String(_) => Err(format!("`{path}` is empty: a task id is required")),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            Err(wrong_type(path, "a string", value, 0).message)
        }
    }
}

/// Why a report call is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReportRefusal {
    #[error("this token is not known: send the one in SIGNOFF_MCP_TOKEN as `Authorization: Bearer TOKEN`")]
    UnknownToken,
    #[error("the attempt that this token was given to has ended: nothing can be reported with it any more")]
    Ended,
    #[error("the result of this review is already recorded: do not report again")]
    AlreadyReported,
    #[error("this token is for {expected}, not for {sent}: call {expected}", expected = expected.into_str())]
    WrongTool { sent: String, expected: ReportTool },
    #[error("this token is for loop {expected}, not {sent}: call {tool} with loopId \"{expected}\"", tool = tool.into_str())]
    WrongLoop { sent: String, expected: LoopId, tool: ReportTool },
    #[error("this token is for task {expected}, not {sent}: send taskId \"{expected}\", or none")]
    WrongTask { sent: String, expected: String },
    #[error("this token is for commit {expected}, not {sent}: send commit \"{expected}\", or none")]
    WrongCommit { sent: String, expected: Commit },
    #[error("{message}. Nothing was recorded: correct it and call {tool} again", tool = tool.into_str())]
    Malformed { tool: ReportTool, message: String },
    #[error("{message}. It is recorded that this review did not pass: correct it and call {tool} again", tool = tool.into_str())]
    Unreadable { tool: ReportTool, message: String },
    /// The report could not be written to disk.
    #[error("the report could not be stored: {message}. Nothing was recorded: try again")]
    NotStored { message: String },
}
