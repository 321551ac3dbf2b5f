//! After an attempt: what it left is committed or read, and becomes an event.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use signoff_core::checks::{self, Ran};
use signoff_core::config::AgentKind;
use signoff_core::contract::{self, Answer, MAX_BYTES};
use signoff_core::ids::{Commit, ReviewerName};
use signoff_core::machine::{CheckReport, Event, Failure, Head, JobKind, WorkReport};
use signoff_core::prompt::{commit_message, marker};
use signoff_core::review::{Finding, Judged, Review, Usage, Verdict, Violation, ViolationCode};
use signoff_core::task::TaskType;
use signoff_core::wire::LoopFact;
use signoff_core::workflow::{Completion, Role};

use super::planner;
use super::prepare::{self, Memo};
use super::reading::Undone;
use super::{End, Workshop};
use crate::agent;
use crate::artifact;
use crate::assignment::Assignment;
use crate::error::EngineError;
use crate::failpoint;
use crate::git::{Change, GitError, Worktree};
use crate::process::{AttemptDir, Ended, Exit};
use crate::reports;

/// An attempt's end with what it used and what people should be told.
pub struct Concluded {
    pub end: End,
    pub usage: Usage,
    pub notes: Vec<String>,
    /// What is to be put on record with it.
    pub facts: Vec<LoopFact>,
}

/// Makes an event of an attempt's end. Doing it twice gives the same.
pub fn conclude(
    shop: &Workshop,
    task: &Assignment,
    dir: &AttemptDir,
    ended: &Ended,
) -> Result<Concluded, EngineError> {
    if let Exit::Unkept { message } = &ended.exit {
        return Err(EngineError::io(
            "keep what the agent says in",
            dir.path(),
            io::Error::other(message.clone()),
        ));
    }
    let mut notes: Vec<String> = shop.damage(task).map(str::to_owned).into_iter().collect();
    if task.is_planning() {
        let (end, facts) = planner::conclude(shop, task, (dir, ended), &mut notes)?;
        return Ok(Concluded { end, usage: usage(dir, ended), notes, facts });
    }
    let end = match end(shop, task, (dir, ended), &mut notes) {
        // Whatever it did to its worktree, other tasks are none the worse for it.
        Err(EngineError::Git(error)) if error.may_be_an_agents_doing() => unusable(task, ended, &error),
        end => end?,
    };
    notes.extend(kept_plan(shop, task));
    Ok(Concluded { end, usage: usage(dir, ended), notes, facts: Vec::new() })
}

fn end(
    shop: &Workshop,
    task: &Assignment,
    (dir, ended): (&AttemptDir, &Ended),
    notes: &mut Vec<String>,
) -> Result<End, EngineError> {
    let worktree = shop.worktree(task)?;
    match &task.job.kind {
        JobKind::Review { reviewer, commit, .. } => {
            let undone = undo(shop, &worktree, commit, (reviewer, notes))?;
            review(shop, task, (dir, ended), (reviewer, commit), undone)
        }
        JobKind::Check => {
            let checks = ReviewerName::new("checks");
            undo(shop, &worktree, &task.state.head.commit, (&checks, notes))?;
            Ok(check(task, dir, ended))
        }
        JobKind::Work { .. }
        | JobKind::Research { .. }
        | JobKind::Fix { .. }
        | JobKind::Combine
        | JobKind::Land => work(shop, task, &shop.worktree_with_files(task)?, (dir, ended)),
    }
}

/// An attempt whose worktree nobody can go on from.
fn unusable(task: &Assignment, ended: &Ended, error: &GitError) -> End {
    if is_stopped(&ended.exit) {
        return End::Stopped;
    }
    failed(task, Failure::Unusable { message: error.to_string() })
}

/// Puts back what somebody changed who should only have looked; the changes, in words.
fn undo(
    shop: &Workshop,
    worktree: &Worktree,
    commit: &Commit,
    (who, notes): (&ReviewerName, &mut Vec<String>),
) -> Result<Undone, EngineError> {
    let undone = shop.readings.end(worktree, commit, who)?;
    let names: Vec<&str> = undone.by.iter().map(|name| name.as_str()).collect();
    let by = if names.len() > 1 { format!("one of {}", names.join(", ")) } else { names.join("") };
    let (put_back, left): (Vec<&Change>, Vec<&Change>) =
        undone.changes.iter().partition(|change| change.is_undone());
    if !put_back.is_empty() {
        notes.push(format!("{by} changed files while reviewing; undone: {}", listed(&put_back)));
    }
    if !left.is_empty() {
        // The person, or an agent of another task, may have done it.
        notes.push(format!("while {by} was reviewing, somebody {}; left so", listed(&left)));
    }
    Ok(undone)
}

pub(super) fn listed(changes: &[&Change]) -> String {
    changes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Files that changed under a reviewer are not what it was to review: its approval is of something else. What it
/// found stands. Checks may change files; that is known, and put back.
fn of_the_commit(shop: &Workshop, task: &Assignment, review: Review, undone: &Undone) -> Review {
    let place = task.job_place();
    let is_check = |name: &ReviewerName| {
        let assigned = place.and_then(|place| shop.settings.reviewer(name, place).ok());
        assigned.is_some_and(|one| one.agent.kind == AgentKind::Checks)
    };
    if !undone.is_changed || !review.verdict.approves() || undone.by.iter().any(is_check) {
        return review;
    }
    let message = "files were changed while it was reviewed, so this approval is not of the commit";
    let violation = Violation::new(ViolationCode::CommitMismatch, 0, message);
    Review { verdict: Verdict::Inconclusive(violation.into()), ..review }
}

pub(super) fn failed(task: &Assignment, failure: Failure) -> End {
    End::Event(Box::new(Event::AttemptFailed { attempt: task.job.attempt, failure }))
}

/// How a process ended badly; none if it ended well or was stopped by us.
pub(super) fn failure(exit: &Exit) -> Option<Failure> {
    match exit {
        Exit::Code(0) | Exit::Stopped | Exit::Orphaned | Exit::Unkept { .. } => None,
        Exit::Code(code) => Some(Failure::Exit { code: *code }),
        Exit::Signal(number) => Some(Failure::Signal { number: *number }),
        Exit::TimedOut => Some(Failure::TimedOut),
        Exit::Silent => Some(Failure::Silent),
        Exit::NotStarted { message, .. } => Some(Failure::NotStarted { message: message.clone() }),
    }
}

pub(super) fn is_stopped(exit: &Exit) -> bool {
    match exit {
        Exit::Stopped | Exit::Orphaned => true,
        Exit::Code(_)
        | Exit::Signal(_)
        | Exit::TimedOut
        | Exit::Silent
        | Exit::Unkept { .. }
        | Exit::NotStarted { .. } => false,
    }
}

/// A writer's end: its work is committed however it ended, so that nothing is lost.
fn work(
    shop: &Workshop,
    task: &Assignment,
    worktree: &Worktree,
    (dir, ended): (&AttemptDir, &Ended),
) -> Result<End, EngineError> {
    if is_stopped(&ended.exit) {
        return Ok(End::Stopped);
    }
    failpoint::pass("commit");
    let failure = failure(&ended.exit);
    let message = if failure.is_some() { unfinished(task) } else { finished(task) };
    let committed = match worktree.commit_all(&message) {
        Err(GitError::BranchGone(_)) => {
            shop.revive_branch(task)?;
            worktree.commit_all(&message)?
        }
        committed => committed?,
    };
    shop.readings.committed(worktree, &committed)?;
    let head = committed.head;
    failpoint::pass("committed");
    if let Some(failure) = failure {
        return Ok(failed(task, failure));
    }
    let nothing =
        if is_plan(task) { !keep_plan(shop, task, dir)? } else { nothing_done(task, worktree, &head)? };
    if nothing {
        return Ok(failed(task, Failure::NothingDone));
    }
    Ok(End::Event(Box::new(Event::WorkEnded { attempt: task.job.attempt, report: report(task, dir, head) })))
}

/// Whether the work is a document, and no file of the repository.
fn is_plan(task: &Assignment) -> bool {
    task.spec.kind == TaskType::Plan && matches!(task.job.kind, JobKind::Work { role: Role::Plan, .. })
}

/// Where the plan of a plan task is, in words.
fn kept_plan(shop: &Workshop, task: &Assignment) -> Option<String> {
    let plan = artifact::of_task(&shop.layout.plans(), task.task.filter(|_| is_plan(task))?).pop()?;
    let shown = plan.strip_prefix(shop.repository.root()).unwrap_or(&plan).display();
    Some(format!("the plan is in {shown}"))
}

/// Keeps the plan, which is the agent's final message; whether there is one.
fn keep_plan(shop: &Workshop, task: &Assignment, dir: &AttemptDir) -> Result<bool, EngineError> {
    let text = String::from_utf8_lossy(&stdout(dir)).into_owned();
    let Some(id) = task.task.filter(|_| !text.trim().is_empty()) else { return Ok(false) };
    let plans = shop.layout.plans();
    artifact::write_plan(&plans, id, task.started, &text)
        .map_err(|error| EngineError::io("write", &plans, error))?;
    Ok(true)
}

/// An agent that says it is done and changed nothing has not done the task, unless an earlier attempt had. A fix
/// that changes nothing is the gate's to judge, and where work goes on in attempts the marker tells.
fn nothing_done(task: &Assignment, worktree: &Worktree, head: &Head) -> Result<bool, EngineError> {
    let by_exit = task.policy.workflow.completion == Completion::Exit;
    let writes = matches!(&task.job.kind, JobKind::Work { role, .. } if *role != Role::Fix);
    let same = by_exit && writes && head.tree == task.state.head.tree;
    Ok(same && worktree.diff(&task.place.base)?.is_empty())
}

fn report(task: &Assignment, dir: &AttemptDir, head: Head) -> WorkReport {
    let marked = task.policy.workflow.completion == Completion::Marker
        && matches!(task.job.kind, JobKind::Work { .. });
    if !marked {
        return WorkReport::Complete { head };
    }
    match marker::read(&String::from_utf8_lossy(&stdout(dir))) {
        marker::Marker::Complete => WorkReport::Complete { head },
        marker::Marker::Stuck(reason) => WorkReport::Stuck { head, reason },
        marker::Marker::IterationDone | marker::Marker::None => WorkReport::Incomplete { head },
    }
}

fn finished(task: &Assignment) -> String {
    match &task.job.kind {
        JobKind::Fix { .. } | JobKind::Work { role: Role::Fix, .. } => commit_message::feedback(task.cycle()),
        JobKind::Work { .. }
        | JobKind::Research { .. }
        | JobKind::Review { .. }
        | JobKind::Check
        | JobKind::Combine
        | JobKind::Land => commit_message::initial(&task.spec.title),
    }
}

fn unfinished(task: &Assignment) -> String {
    commit_message::unfinished(&task.spec.title)
}

/// A reviewer's end: what it reported, or else its final message, is read under the contract, and by nothing else.
fn review(
    shop: &Workshop,
    task: &Assignment,
    (dir, ended): (&AttemptDir, &Ended),
    (reviewer, commit): (&ReviewerName, &Commit),
    undone: Undone,
) -> Result<End, EngineError> {
    if is_stopped(&ended.exit) {
        return Ok(End::Stopped);
    }
    if let Some(failure) = failure(&ended.exit) {
        return Ok(failed(task, failure));
    }
    let Some(place) = task.job_place() else { return Ok(End::Stopped) };
    let assigned = match shop.settings.reviewer(reviewer, place) {
        Ok(assigned) => assigned,
        Err(error) => return Ok(failed(task, Failure::NotStarted { message: error.to_string() })),
    };
    let text = stdout(dir);
    let memo = memo(dir);
    let reviews = shop.layout.reviews();
    let reported = reports::reviewed(dir);
    let raw = artifact::write_raw(&reviews, &task.artifact(), reviewer, &answer(&text, reported.as_deref()))
        .map_err(|error| EngineError::io("write", &reviews, error))?;
    let review = if assigned.agent.kind == AgentKind::Checks {
        checks::review(reviewer, assigned.kind, &ran(&text))
    } else {
        let Some(agent) = agent::of(assigned.agent.kind) else {
            let message = "this kind of agent cannot be driven here".to_owned();
            return Ok(failed(task, Failure::NotStarted { message }));
        };
        let message = agent.final_message(text);
        let ask = prepare::ask(task, &assigned, commit, memo.nonce.clone());
        contract::parse(assigned.contract, Answer { text: &message, tool: reported.as_deref() }, &ask)
            .and_then(contract::within_reason)
            .unwrap_or_else(|violation| Review::inconclusive(reviewer.clone(), assigned.kind, violation))
    };
    let review = Review {
        usage: usage(dir, ended),
        judged: Judged { commit: Some(commit.clone()), diff_digest: memo.diff_digest },
        raw: Some(raw),
        ..review
    };
    let review = of_the_commit(shop, task, review, &undone);
    Ok(End::Event(Box::new(Event::ReviewArrived { attempt: task.job.attempt, review: Box::new(review) })))
}

/// All that a reviewer answered, for people: what it reported with a tool stands behind its message.
fn answer<'a>(text: &'a [u8], reported: Option<&[u8]>) -> Cow<'a, [u8]> {
    let Some(reported) = reported else { return Cow::Borrowed(text) };
    let shown = serde_json::from_slice::<serde_json::Value>(reported)
        .and_then(|report| serde_json::to_vec_pretty(&report))
        .unwrap_or_else(|_| reported.to_vec());
    let before = if text.is_empty() { "Reported:\n\n" } else { "\n\nReported:\n\n" };
    Cow::Owned([text, before.as_bytes(), &shown, b"\n"].concat())
}

fn check(task: &Assignment, dir: &AttemptDir, ended: &Ended) -> End {
    let report = match checked(dir, ended) {
        Checks::Stopped => return End::Stopped,
        Checks::Failed(failure) => return failed(task, failure),
        Checks::Found(findings) if findings.is_empty() => CheckReport::Passed,
        Checks::Found(findings) => CheckReport::Failed { findings },
    };
    End::Event(Box::new(Event::CheckEnded { attempt: task.job.attempt, report }))
}

/// What the project's commands came to.
#[derive(Debug)]
pub enum Checks {
    Stopped,
    Failed(Failure),
    /// What is wrong; nothing if they passed.
    Found(Vec<Finding>),
}

/// Reads what the project's commands left.
pub fn checked(dir: &AttemptDir, ended: &Ended) -> Checks {
    if is_stopped(&ended.exit) {
        return Checks::Stopped;
    }
    match failure(&ended.exit) {
        Some(failure) => Checks::Failed(failure),
        None => Checks::Found(checks::findings(&ReviewerName::new("checks"), &ran(&stdout(dir)))),
    }
}

fn ran(text: &[u8]) -> Vec<Ran> {
    serde_json::from_slice(text).unwrap_or_default()
}

/// What the agent wrote to stdout; one byte more than any answer may have tells that there was more.
pub(super) fn stdout(dir: &AttemptDir) -> Vec<u8> {
    start_of(&dir.stdout(), MAX_BYTES as u64 + 1)
}

/// The start of a file that an agent may have put anything in the place of: a pipe would be waited for in vain.
fn start_of(path: &Path, most: u64) -> Vec<u8> {
    let mut text = Vec::new();
    if path.metadata().is_ok_and(|file| file.is_file())
        && let Ok(file) = File::open(path)
    {
        file.take(most).read_to_end(&mut text).ok();
    }
    text
}

/// The final message of an attempt that changed the worktree.
pub fn writers_message(dir: &AttemptDir) -> Option<String> {
    // Readers were given a nonce, writers were not.
    if memo(dir).nonce.is_some() || !dir.result().exists() {
        return None;
    }
    Some(String::from_utf8_lossy(&stdout(dir)).into_owned())
}

fn memo(dir: &AttemptDir) -> Memo {
    let bytes = fs::read(dir.path().join("memo.json")).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

#[derive(serde::Deserialize, Default)]
#[serde(default)]
struct Told {
    cost_usd: f64,
    input_tokens: u64,
    output_tokens: u64,
}

/// What the agent says it used, and how long it took.
fn usage(dir: &AttemptDir, ended: &Ended) -> Usage {
    Usage { duration_ms: ended.duration_ms, ..told_usage(dir) }
}

/// What the agent says it used.
pub fn told_usage(dir: &AttemptDir) -> Usage {
    let text = start_of(&dir.usage(), 64 * 1024);
    let told: Told = serde_json::from_slice(&text).unwrap_or_default();
    // A negative or absurd price counts as none.
    let cost = if told.cost_usd.is_finite() { (told.cost_usd * 1e6).clamp(0.0, 1e15) } else { 0.0 };
    Usage {
        cost_micro_usd: cost as u64,
        input_tokens: told.input_tokens,
        output_tokens: told.output_tokens,
        duration_ms: 0,
    }
}
