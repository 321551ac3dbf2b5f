//! The result of a task or a run, as a sentence for reports.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;
use signoff_core::group::{RunOutcome, RunStage};
use signoff_core::machine::OutcomeKind;
use signoff_core::view::inbox::{Action, EndKind, NextStep};
use signoff_core::view::{LoopRow, QuestionRow, RunRow, RunStatus, TaskRow, TaskState, TaskStatus};

use crate::fit::{count, counts};
use crate::labels;
use crate::show::TaskReport;

/// The kind of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReportResultKind {
    /// Approved by its reviewers or by a person.
    Passed,
    /// Ended without an approval.
    Open,
    /// Ended because an agent, a check or the program failed.
    Broken,
    /// A process works on it.
    Unfinished,
    /// Unfinished, and no process works on it.
    Left,
}

impl ReportResultKind {
    /// The kind for a loop without a task; `driven` is whether a process is working on it.
    pub(super) fn for_outcome(outcome: Option<OutcomeKind>, driven: bool) -> Self {
        outcome.map_or(Self::unfinished(driven), |outcome| Self::from_end(EndKind::for_outcome(outcome)))
    }

    fn from_end(end: EndKind) -> Self {
        match end {
            EndKind::Approved => Self::Passed,
            EndKind::NotApproved => Self::Open,
            EndKind::Broken => Self::Broken,
        }
    }

    fn unfinished(driven: bool) -> Self {
        if driven { Self::Unfinished } else { Self::Left }
    }

    /// Whether it ended with an answer of its reviewers.
    pub(super) fn is_answered(self) -> bool {
        matches!(self, Self::Passed | Self::Open)
    }

    /// Whether the work has ended.
    pub fn has_ended(self) -> bool {
        self.is_answered() || self == Self::Broken
    }
}

/// How a run ended, from its own outcome and the results of its tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum ReportOutcome {
    Approved,
    /// A person approved it instead of the final review.
    Accepted,
    Attention,
    Failed,
    Cancelled,
}

/// The result of a task or a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReportResult {
    /// `passed`: approved. `open`: ended, but needs a person. `broken`: failed or cancelled. `unfinished`: a process
    /// is working on it. `left`: unfinished, and no process is working on it.
    pub kind: ReportResultKind,
    /// The result as a sentence.
    pub text: Cow<'static, str>,
    /// The mark in front of the sentence.
    #[serde(skip)]
    pub mark: char,
}

/// The result if there are no events.
pub static UNKNOWN: ReportResult =
    ReportResult { kind: ReportResultKind::Left, text: Cow::Borrowed("Nothing was recorded"), mark: UNFINISHED };

/// The mark of unfinished work without a task state.
const UNFINISHED: char = '…';

impl ReportResult {
    pub(super) fn new(kind: ReportResultKind, text: String) -> Self {
        let mark = match kind {
            ReportResultKind::Passed => TaskState::Approved.mark(),
            ReportResultKind::Broken => TaskState::Failed.mark(),
            ReportResultKind::Open => TaskState::NeedsYou.mark(),
            ReportResultKind::Unfinished | ReportResultKind::Left => UNFINISHED,
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
        let Some(whole) = whole.filter(|row| self.kind == ReportResultKind::Passed && is_accepted(row)) else {
            return self;
        };
        let left = labels::open_findings(whole.open_findings as u64);
        Self { text: format!("{}; the final review was approved by a person{left}", self.text).into(), ..self }
    }

    /// The result of unfinished work; `driven` is whether a process is working on it.
    fn unfinished(driven: bool, text: String) -> Self {
        Self::new(ReportResultKind::unfinished(driven), text)
    }
}

/// The result of a task with its report. An approval is void if the branch has newer commits.
pub fn result_of_report(report: &TaskReport, next: &NextStep, driven: bool) -> ReportResult {
    let mut result = result_of_task(&report.task, next, driven);
    if let (TaskStatus::Waiting, Some(question)) = (report.task.status, &report.question) {
        result.text = format!("Waits for an answer: {}", question_text(question)).into();
    }
    match &report.voided {
        Some(voided) => ReportResult::new(ReportResultKind::Open, format!("{}; {voided}", result.text)),
        None => result,
    }
}

/// The result of a task; `driven` is whether a process is working on its run.
pub fn result_of_task(task: &TaskRow, next: &NextStep, driven: bool) -> ReportResult {
    let result = match EndKind::for_task(task) {
        Some(end) => ReportResult::new(ReportResultKind::from_end(end), end_text(task)),
        None => ReportResult::unfinished(driven, unfinished_text(task, next, driven)),
    };
    result.marked(task.state())
}

fn unfinished_text(task: &TaskRow, next: &NextStep, driven: bool) -> String {
    let at_work = |what: &str| {
        if driven {
            return format!("{what}; the work continues");
        }
        let next = if let NextStep::Do(action) = next { format!("`{action}` continues") } else { next.to_string() };
        format!("{what}, and no process is running: {next}")
    };
    match task.status {
        TaskStatus::Pending if task.run_id.is_none() => format!("Never started: `{next}` works it"),
        TaskStatus::Pending => "Not started yet".to_owned(),
        // A task that never started waits for its dependencies; one that started is approved and waits for its group.
        TaskStatus::Blocked if task.base.is_none() => "Blocked by its dependencies".to_owned(),
        TaskStatus::Blocked => {
            let resume = task.run_id.map(|run| format!(": `{}`", Action::ResumeRun(Some(run)))).unwrap_or_default();
            format!("Signed off, but its group is blocked{resume}")
        }
        TaskStatus::Waiting => format!("Waits for an answer: `{}` shows the question", Action::Show(task.id)),
        TaskStatus::Paused => at_work(&format!("Paused{}", labels::reason_suffix(task.reason))),
        TaskStatus::InProgress if task.state().is_approved() => "Approved, waiting for its group".to_owned(),
        TaskStatus::InProgress
        | TaskStatus::Completed
        | TaskStatus::Failed
        | TaskStatus::Stuck
        | TaskStatus::Cancelled => at_work(&format!("Unfinished{}", phase_suffix(task))),
    }
}

fn end_text(task: &TaskRow) -> String {
    let why = labels::reason_suffix(task.reason);
    match task.status {
        TaskStatus::Failed => format!("Failed{why}"),
        TaskStatus::Stuck => format!("Stuck{why}"),
        TaskStatus::Cancelled => "Cancelled".to_owned(),
        TaskStatus::Pending
        | TaskStatus::InProgress
        | TaskStatus::Waiting
        | TaskStatus::Paused
        | TaskStatus::Blocked
        | TaskStatus::Completed => completion_text(task, &why),
    }
}

fn completion_text(task: &TaskRow, why: &str) -> String {
    let reviews = match task.review_cycle {
        0 => String::new(),
        cycles => format!(" after {}", count(cycles, "review")),
    };
    let left = labels::open_findings(u64::from(task.open_findings));
    match task.outcome {
        Some(OutcomeKind::Approved) => format!("Approved{reviews}{left}"),
        Some(OutcomeKind::Accepted) => format!("Approved by a person{left}"),
        None => "Done, not reviewed".to_owned(),
        Some(OutcomeKind::Discussion) => format!("To be discussed{reviews}{why}"),
        Some(OutcomeKind::NothingToReview) => "Nothing to review".to_owned(),
        Some(_) => format!("Not approved{reviews}{why}"),
    }
}

fn phase_suffix(task: &TaskRow) -> String {
    let phase = task.phase.as_deref().map(|phase| format!(" in phase {phase}")).unwrap_or_default();
    let cycle = if task.review_cycle > 0 { format!(", review {}", task.review_cycle) } else { String::new() };
    format!("{phase}{cycle}")
}

/// The result of a run that has ended. The run is not approved if the approval of one of its tasks is void.
pub fn outcome(stage: &RunStage, tasks: &[ReportResult], whole: Option<&LoopRow>) -> Option<ReportOutcome> {
    let holds = tasks.iter().all(|task| task.kind == ReportResultKind::Passed);
    Some(match stage.outcome()? {
        RunOutcome::Approved if !holds => ReportOutcome::Attention,
        RunOutcome::Approved if whole.is_some_and(is_accepted) => ReportOutcome::Accepted,
        RunOutcome::Approved => ReportOutcome::Approved,
        RunOutcome::Attention => ReportOutcome::Attention,
        RunOutcome::Failed => ReportOutcome::Failed,
        RunOutcome::Cancelled => ReportOutcome::Cancelled,
    })
}

/// Whether a person approved it instead of a review.
fn is_accepted(row: &LoopRow) -> bool {
    row.outcome == Some(OutcomeKind::Accepted)
}

/// A question with the command that answers it: `… Retry or stop? Answer with signoff answer 3 retry|stop`.
fn question_text(question: &QuestionRow) -> String {
    let text = question.text.trim();
    if question.choices.is_empty() {
        text.to_owned()
    } else {
        format!("{text} Answer with `{}`", Action::answer(question))
    }
}

/// The result of a run that only reviewed the checkout.
pub fn result_of_checkout(row: &LoopRow, driven: bool) -> ReportResult {
    let reviews = count(row.cycle, "review");
    let why = labels::reason_suffix(row.reason);
    let Some(outcome) = row.outcome else {
        let again = Action::ReviewCheckout;
        let left = || format!("Left unfinished, and no process is running: `{again}` starts again");
        return ReportResult::unfinished(driven, if driven { "Under review".to_owned() } else { left() });
    };
    let text = match EndKind::for_outcome(outcome) {
        EndKind::Approved => format!("Approved after {reviews}"),
        EndKind::NotApproved => format!("Not approved after {reviews}{why}"),
        EndKind::Broken if outcome.is_failure() => format!("The review failed{why}"),
        EndKind::Broken => {
            return ReportResult::new(ReportResultKind::Broken, "Cancelled".to_owned()).marked(TaskState::Cancelled);
        }
    };
    ReportResult::new(ReportResultKind::for_outcome(row.outcome, driven), text)
}

/// The result of a run, from its outcome, the results of its tasks and its open questions.
pub fn result_of_run(
    run: &RunRow,
    outcome: Option<ReportOutcome>,
    tasks: &[ReportResult],
    questions: &[QuestionRow],
    driven: bool,
) -> ReportResult {
    let resume = Action::ResumeRun(Some(run.id));
    let number = count(tasks.len() as u64, "task");
    let with_tasks = if tasks.is_empty() { "without a task".to_owned() } else { format!("with {number}") };
    match run.status {
        RunStatus::Completed if matches!(outcome, Some(ReportOutcome::Approved | ReportOutcome::Accepted)) => {
            ReportResult::new(ReportResultKind::Passed, format!("Completed {with_tasks}"))
        }
        RunStatus::Completed => not_approved(&with_tasks, tasks),
        RunStatus::Cancelled => {
            ReportResult::new(ReportResultKind::Broken, format!("Cancelled {with_tasks}")).marked(TaskState::Cancelled)
        }
        RunStatus::Failed if run.groups == Some(0) => {
            ReportResult::new(ReportResultKind::Broken, "Failed in planning".to_owned())
        }
        RunStatus::Failed => ReportResult::new(ReportResultKind::Broken, failure_text(&with_tasks, tasks)),
        RunStatus::Running | RunStatus::Blocked if !questions.is_empty() => {
            ReportResult::unfinished(driven, waiting_text(&resume, questions, driven))
        }
        RunStatus::Blocked => {
            ReportResult::unfinished(driven, format!("Blocked: a person has to decide, then `{resume}`"))
        }
        RunStatus::Running if driven => {
            ReportResult::unfinished(driven, format!("At work ({}) {with_tasks}", run.stage.into_str()))
        }
        RunStatus::Running => ReportResult::unfinished(
            driven,
            format!(
                "Left unfinished ({}) {with_tasks}, and no process is running: `{resume}` continues",
                run.stage.into_str()
            ),
        ),
    }
}

/// `Failed: 2 of 9 tasks did not pass (1 failed or was stopped, 1 unfinished)`.
fn failure_text(with_tasks: &str, tasks: &[ReportResult]) -> String {
    let number = |kinds: &[ReportResultKind]| tasks.iter().filter(|task| kinds.contains(&task.kind)).count();
    let others = tasks.len() - number(&[ReportResultKind::Passed]);
    if others == 0 {
        return if tasks.is_empty() {
            format!("Failed {with_tasks}")
        } else {
            format!("Failed {with_tasks}, which all passed")
        };
    }
    let kinds = counts([
        (number(&[ReportResultKind::Broken]), "failed or stopped"),
        (number(&[ReportResultKind::Open]), "not signed off"),
        (number(&[ReportResultKind::Unfinished, ReportResultKind::Left]), "unfinished"),
    ]);
    format!("Failed: {others} of {} did not pass ({kinds})", count(tasks.len() as u64, "task"))
}

/// The first question in full, and the number of the others.
fn waiting_text(resume: &Action, questions: &[QuestionRow], driven: bool) -> String {
    let first = questions.first().map(question_text).unwrap_or_default();
    let task = questions.first().and_then(|question| question.task_id);
    let waits = task.map_or_else(|| "Waits".to_owned(), |task| format!("Task {task} waits"));
    let more = match questions.len() {
        0 | 1 => String::new(),
        all => format!("; and {}", count(all as u64 - 1, "more question")),
    };
    let then = if driven { String::new() } else { format!("; then `{resume}` continues") };
    format!("{waits} for an answer: {first}{more}{then}")
}

/// The result of a completed run that is not approved: `broken` if one of its tasks is.
fn not_approved(with_tasks: &str, tasks: &[ReportResult]) -> ReportResult {
    let others = tasks.iter().filter(|task| task.kind != ReportResultKind::Passed).count();
    let kind = if tasks.iter().any(|task| task.kind == ReportResultKind::Broken) {
        ReportResultKind::Broken
    } else {
        ReportResultKind::Open
    };
    let why = match others {
        0 => "the final review did not approve the run".to_owned(),
        others => format!("{others} of them not signed off"),
    };
    ReportResult::new(kind, format!("Ended {with_tasks}, {why}"))
}
