//! The result of a task or a run, as a sentence for reports.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;
use signoff_core::group::{RunOutcome, RunStage};
use signoff_core::machine::OutcomeKind;
use signoff_core::view::{LoopRow, QuestionRow, RunRow, RunStatus, TaskRow, TaskState, TaskStatus};

use crate::fit::{count, counts};
use crate::labels;
use crate::show::TaskReport;

/// The result of a task or a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReportResult {
    /// `passed`: approved. `open`: ended, but needs a person. `broken`: failed or cancelled. `unfinished`: a process
    /// is working on it. `left`: unfinished, and no process is working on it.
    #[schemars(extend("enum" = ["passed", "open", "broken", "unfinished", "left"]))]
    pub kind: &'static str,
    /// The result as a sentence.
    pub text: Cow<'static, str>,
    /// The mark in front of the sentence.
    #[serde(skip)]
    pub mark: char,
}

/// The result if there are no events.
pub static UNKNOWN: ReportResult =
    ReportResult { kind: "left", text: Cow::Borrowed("Nothing was recorded"), mark: UNFINISHED };

/// The mark of unfinished work without a task state.
const UNFINISHED: char = '…';

impl ReportResult {
    pub(super) fn new(kind: &'static str, text: String) -> Self {
        let mark = match kind {
            "passed" => TaskState::Approved.mark(),
            "broken" => TaskState::Failed.mark(),
            "open" => TaskState::NeedsYou.mark(),
            _ => UNFINISHED,
        };
        Self { kind, text: Cow::Owned(text), mark }
    }

    /// Sets the mark of a state.
    fn marked(self, state: TaskState) -> Self {
        Self { mark: state.mark(), ..self }
    }

    /// Mentions that a person approved the run instead of its final review.
    #[must_use]
    pub(super) fn with_accepted_review(self, whole: Option<&LoopRow>) -> Self {
        let Some(whole) = whole.filter(|row| self.kind == "passed" && is_accepted(row)) else { return self };
        let left = labels::open_findings(whole.open_findings as u64);
        Self { text: format!("{}; the final review was approved by a person{left}", self.text).into(), ..self }
    }

    /// The result of unfinished work; `driven` is whether a process is working on it.
    fn unfinished(driven: bool, text: String) -> Self {
        Self::new(if driven { "unfinished" } else { "left" }, text)
    }

    /// Whether the work has ended.
    pub fn has_ended(&self) -> bool {
        matches!(self.kind, "passed" | "open" | "broken")
    }
}

/// The result of a task with its report. An approval is void if the branch has newer commits.
pub fn result_of_report(report: &TaskReport, driven: bool) -> ReportResult {
    let mut standing = result_of_task(&report.task, driven);
    if let (TaskStatus::Waiting, Some(question)) = (report.task.status, &report.question) {
        standing.text = format!("Waits for an answer: {}", question_text(question)).into();
    }
    match &report.voided {
        Some(voided) => ReportResult::new("open", format!("{}; {voided}", standing.text)),
        None => standing,
    }
}

/// The result of a task; `driven` is whether a process is working on its run.
pub fn result_of_task(task: &TaskRow, driven: bool) -> ReportResult {
    unmarked_result(task, driven).marked(task.state())
}

fn unmarked_result(task: &TaskRow, driven: bool) -> ReportResult {
    let id = task.id;
    let unfinished = |text: String| ReportResult::unfinished(driven, text);
    let at_work = |what: &str| {
        if driven {
            unfinished(format!("{what}; the work goes on"))
        } else {
            unfinished(format!("{what}, and no process is running: `signoff work {id}` goes on"))
        }
    };
    match task.status {
        TaskStatus::Pending if task.run_id.is_none() => {
            unfinished(format!("Never started: `signoff work {id}` works it"))
        }
        TaskStatus::Pending => unfinished("Not started yet".to_owned()),
        // A task that never started waits for its dependencies; one that started is approved and waits for its group.
        TaskStatus::Blocked if task.base.is_none() => unfinished("Blocked by what it waits for".to_owned()),
        TaskStatus::Blocked => {
            let hint = task.run_id.map(|run| format!(": `signoff run --resume {run}`")).unwrap_or_default();
            unfinished(format!("Signed off, but its group is blocked{hint}"))
        }
        TaskStatus::Waiting => unfinished(format!("Waits for an answer: `signoff show {id}` shows the question")),
        TaskStatus::Paused => at_work(&format!("Paused{}", labels::reason_suffix(task.reason))),
        TaskStatus::InProgress if task.state().is_approved() => {
            unfinished("Approved, waiting for its group".to_owned())
        }
        TaskStatus::InProgress => at_work(&format!("Unfinished{}", place(task))),
        TaskStatus::Completed => completed(task),
        TaskStatus::Failed => ReportResult::new("broken", format!("Failed{}", labels::reason_suffix(task.reason))),
        TaskStatus::Stuck => ReportResult::new("broken", format!("Stuck{}", labels::reason_suffix(task.reason))),
        TaskStatus::Cancelled => ReportResult::new("broken", "Cancelled".to_owned()),
    }
}

fn completed(task: &TaskRow) -> ReportResult {
    let reviews = match task.review_cycle {
        0 => String::new(),
        cycles => format!(" after {}", count(cycles, "review")),
    };
    let left = labels::open_findings(u64::from(task.open_findings));
    let open = |text: &str| ReportResult::new("open", format!("{text}{reviews}{}", labels::reason_suffix(task.reason)));
    match task.outcome {
        Some(OutcomeKind::Approved) => ReportResult::new("passed", format!("Approved{reviews}{left}")),
        Some(OutcomeKind::Accepted) => ReportResult::new("passed", format!("Approved by a person{left}")),
        None => ReportResult::new("open", "Done, not reviewed".to_owned()),
        Some(OutcomeKind::Discussion) => open("To be discussed"),
        Some(OutcomeKind::NothingToReview) => ReportResult::new("open", "Nothing to review".to_owned()),
        Some(_) => open("Not approved"),
    }
}

fn place(task: &TaskRow) -> String {
    let phase = task.phase.as_deref().map(|phase| format!(" in phase {phase}")).unwrap_or_default();
    let cycle = if task.review_cycle > 0 { format!(", review {}", task.review_cycle) } else { String::new() };
    format!("{phase}{cycle}")
}

/// The result of a run that has ended. The run is not approved if the approval of one of its tasks is void.
pub fn outcome(stage: &RunStage, tasks: &[ReportResult], whole: Option<&LoopRow>) -> Option<&'static str> {
    let holds = tasks.iter().all(|task| task.kind == "passed");
    let outcome = stage.outcome()?;
    let outcome = if outcome == RunOutcome::Approved && !holds { RunOutcome::Attention } else { outcome };
    let accepted = outcome == RunOutcome::Approved && whole.is_some_and(is_accepted);
    Some(if accepted { "accepted" } else { outcome.as_str() })
}

/// Whether a person approved it instead of a review.
fn is_accepted(row: &LoopRow) -> bool {
    row.outcome == Some(OutcomeKind::Accepted)
}

/// A question with the commands that answer it: `… Retry or stop? signoff answer 3 retry, or stop`.
fn question_text(question: &QuestionRow) -> String {
    let whom = question.task_id.map_or_else(|| question.id.clone(), |task| task.to_string());
    let text = question.text.trim();
    let Some((first, others)) = question.choices.split_first() else { return text.to_owned() };
    let others: String = others.iter().map(|choice| format!(", or `{choice}`")).collect();
    format!("{text} Type `signoff answer {whom} {first}`{others}")
}

/// The result of a run that only reviewed the checkout.
pub fn result_of_checkout(row: &LoopRow, driven: bool) -> ReportResult {
    let reviews = count(row.cycle, "review");
    let why = labels::reason_suffix(row.reason);
    match row.outcome {
        Some(outcome) if outcome.is_approval() => ReportResult::new("passed", format!("Approved after {reviews}")),
        Some(outcome) if outcome.is_failure() => ReportResult::new("broken", format!("The review failed{why}")),
        Some(OutcomeKind::Cancelled) => {
            ReportResult::new("broken", "Cancelled".to_owned()).marked(TaskState::Cancelled)
        }
        Some(_) => ReportResult::new("open", format!("Not approved after {reviews}{why}")),
        None if driven => ReportResult::unfinished(driven, "Under review".to_owned()),
        None => {
            let text = "Left unfinished, and no process is running: `signoff review` starts again";
            ReportResult::unfinished(driven, text.to_owned())
        }
    }
}

/// The result of a run, from its outcome, the results of its tasks and its open questions.
pub fn result_of_run(
    run: &RunRow,
    outcome: Option<&str>,
    tasks: &[ReportResult],
    questions: &[QuestionRow],
    driven: bool,
) -> ReportResult {
    let id = run.id;
    let number = count(tasks.len() as u64, "task");
    let of = if tasks.is_empty() { "without a task".to_owned() } else { format!("with {number}") };
    match run.status {
        RunStatus::Completed if matches!(outcome, Some("approved" | "accepted")) => {
            ReportResult::new("passed", format!("Completed {of}"))
        }
        RunStatus::Completed => not_approved(&of, tasks),
        RunStatus::Cancelled => ReportResult::new("broken", format!("Cancelled {of}")).marked(TaskState::Cancelled),
        RunStatus::Failed if run.groups == Some(0) => ReportResult::new("broken", "Failed in planning".to_owned()),
        RunStatus::Failed => ReportResult::new("broken", failure_text(&of, tasks)),
        RunStatus::Running | RunStatus::Blocked if !questions.is_empty() => {
            ReportResult::unfinished(driven, waiting_text(id, questions, driven))
        }
        RunStatus::Blocked => ReportResult::unfinished(
            driven,
            format!("Blocked: a person has to decide, then `signoff run --resume {id}`"),
        ),
        RunStatus::Running if driven => ReportResult::unfinished(driven, format!("At work ({}) {of}", run.stage)),
        RunStatus::Running => ReportResult::unfinished(
            driven,
            format!(
                "Left unfinished ({}) {of}, and no process is running: `signoff run --resume {id}` goes on",
                run.stage
            ),
        ),
    }
}

/// `Failed: 2 of 9 tasks did not pass (1 failed or was stopped, 1 unfinished)`.
fn failure_text(of: &str, tasks: &[ReportResult]) -> String {
    let number = |kinds: &[&str]| tasks.iter().filter(|task| kinds.contains(&task.kind)).count();
    let others = tasks.len() - number(&["passed"]);
    if others == 0 {
        return if tasks.is_empty() { format!("Failed {of}") } else { format!("Failed {of}, which all passed") };
    }
    let kinds = counts([
        (number(&["broken"]), "failed or stopped"),
        (number(&["open"]), "not signed off"),
        (number(&["unfinished", "left"]), "unfinished"),
    ]);
    format!("Failed: {others} of {} did not pass ({kinds})", count(tasks.len() as u64, "task"))
}

/// The first question in full, and the number of the others.
fn waiting_text(run: u64, questions: &[QuestionRow], driven: bool) -> String {
    let first = questions.first().map(question_text).unwrap_or_default();
    let task = questions.first().and_then(|question| question.task_id);
    let waits = task.map_or_else(|| "Waits".to_owned(), |task| format!("Task {task} waits"));
    let more = match questions.len() {
        0 | 1 => String::new(),
        all => format!("; {} besides", count(all as u64 - 1, "question")),
    };
    let then = if driven { String::new() } else { format!("; then `signoff run --resume {run}` goes on") };
    format!("{waits} for an answer: {first}{more}{then}")
}

/// The result of a completed run that is not approved: `broken` if one of its tasks is.
fn not_approved(of: &str, tasks: &[ReportResult]) -> ReportResult {
    let others = tasks.iter().filter(|task| task.kind != "passed").count();
    let kind = if tasks.iter().any(|task| task.kind == "broken") { "broken" } else { "open" };
    let why = match others {
        0 => "but the whole was not approved".to_owned(),
        others => format!("{others} of them not signed off"),
    };
    ReportResult::new(kind, format!("Ended {of}, {why}"))
}
