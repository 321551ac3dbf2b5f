//! How a task or a run stands, in a sentence that leaves nothing to guess.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;
use signoff_core::group::{RunOutcome, RunStage};
use signoff_core::machine::Reason;
use signoff_core::view::{LoopView, QuestionRow, RunRow, Status, TaskRow, TaskState};

use crate::fit::count;
use crate::show::Report;
use crate::words;

/// Where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Standing {
    /// `passed` was signed off, `open` has an end that somebody should look at, `broken` came to nothing. Without an
    /// end, `unfinished` is what somebody is at work on, and `left` what nobody is.
    #[schemars(extend("enum" = ["passed", "open", "broken", "unfinished", "left"]))]
    pub kind: &'static str,
    /// The same for people.
    pub text: Cow<'static, str>,
    /// The sign in front of it.
    #[serde(skip)]
    pub mark: char,
}

/// Of what nobody has recorded anything about.
pub static UNKNOWN: Standing =
    Standing { kind: "left", text: Cow::Borrowed("Nothing was recorded"), mark: UNFINISHED };

/// The sign of what has no end, where no task says more.
const UNFINISHED: char = '…';

impl Standing {
    pub(super) fn new(kind: &'static str, text: String) -> Self {
        let mark = match kind {
            "passed" => TaskState::Approved.mark(),
            "broken" => TaskState::Failed.mark(),
            "open" => TaskState::NeedsYou.mark(),
            _ => UNFINISHED,
        };
        Self { kind, text: Cow::Owned(text), mark }
    }

    /// The same with the sign of a state.
    fn marked(self, state: TaskState) -> Self {
        Self { mark: state.mark(), ..self }
    }

    /// The same of a run, with a person's word in place of its final review.
    #[must_use]
    pub(super) fn accepted(self, whole: Option<&LoopView>) -> Self {
        let Some(whole) = whole.filter(|row| self.kind == "passed" && is_accepted(row)) else { return self };
        let left = words::open_findings(whole.open_findings as u64);
        Self {
            text: format!("{}; the final review was approved by a person{left}", self.text).into(),
            ..self
        }
    }

    /// Of what has no end; `driven` tells whether somebody is at work on it.
    fn endless(driven: bool, text: String) -> Self {
        Self::new(if driven { "unfinished" } else { "left" }, text)
    }

    /// Whether nothing more is to come.
    pub fn has_ended(&self) -> bool {
        matches!(self.kind, "passed" | "open" | "broken")
    }
}

/// Of a task with all that is told of it: an approval of another commit than the branch's last one is none.
pub fn of_report(report: &Report, driven: bool) -> Standing {
    let mut standing = of_task(&report.task, driven);
    if let (Status::Waiting, Some(question)) = (report.task.status, &report.question) {
        standing.text = format!("Waits for an answer: {}", asked(question)).into();
    }
    match &report.voided {
        Some(voided) => Standing::new("open", format!("{}; {voided}", standing.text)),
        None => standing,
    }
}

/// Of a task; `driven` tells whether somebody is at work on its run.
pub fn of_task(task: &TaskRow, driven: bool) -> Standing {
    in_words(task, driven).marked(task.state())
}

fn in_words(task: &TaskRow, driven: bool) -> Standing {
    let id = task.id;
    let unfinished = |text: String| Standing::endless(driven, text);
    let at_work = |what: &str| {
        if driven {
            unfinished(format!("{what}; the work goes on"))
        } else {
            unfinished(format!("{what}, and nobody is at work: `signoff work {id}` goes on"))
        }
    };
    match task.status {
        Status::Pending if task.run_id.is_none() => {
            unfinished(format!("Never started: `signoff work {id}` works it"))
        }
        Status::Pending => unfinished("Not started yet".to_owned()),
        // What was never begun waits for others; what was begun is signed off, and others of its group are not.
        Status::Blocked if task.base.is_none() => unfinished("Blocked by what it waits for".to_owned()),
        Status::Blocked => {
            unfinished(format!("Signed off, but its group waits for somebody{}", resumed(task)))
        }
        Status::Waiting => unfinished(format!("Waits for an answer: `signoff show {id}` tells the question")),
        Status::Paused => at_work(&format!("Paused{}", because(task))),
        Status::InProgress if task.state().is_approved() => {
            unfinished("Approved, waiting for its group".to_owned())
        }
        Status::InProgress => at_work(&format!("Unfinished{}", place(task))),
        Status::Completed => completed(task),
        Status::Failed => Standing::new("broken", format!("Failed{}", because(task))),
        Status::Stuck => Standing::new("broken", format!("Stuck{}", because(task))),
        Status::Cancelled => Standing::new("broken", "Cancelled".to_owned()),
    }
}

fn resumed(task: &TaskRow) -> String {
    task.run_id.map(|run| format!(": `signoff run --resume {run}`")).unwrap_or_default()
}

fn completed(task: &TaskRow) -> Standing {
    let reviews = match task.review_cycle {
        0 => String::new(),
        cycles => format!(" after {}", count(cycles, "review")),
    };
    let left = words::open_findings(u64::from(task.open_findings));
    let open = |text: &str| Standing::new("open", format!("{text}{reviews}{}", because(task)));
    match task.outcome.as_deref() {
        Some("approved") => Standing::new("passed", format!("Approved{reviews}{left}")),
        Some("accepted") => Standing::new("passed", format!("Approved by a person{left}")),
        None => Standing::new("open", "Done, not reviewed".to_owned()),
        Some("discussion") => open("To be discussed"),
        Some("nothing_to_review") => Standing::new("open", "Nothing to review".to_owned()),
        Some(_) => open("Not approved"),
    }
}

/// In the words of a reason's code.
fn because(task: &TaskRow) -> String {
    let known =
        task.reason.as_ref().and_then(|code| serde_json::from_value::<Reason>(code.as_str().into()).ok());
    known.map(|reason| format!(": {}", words::why(reason))).unwrap_or_default()
}

fn place(task: &TaskRow) -> String {
    let phase = task.phase.as_deref().map(|phase| format!(" in phase {phase}")).unwrap_or_default();
    let cycle = if task.review_cycle > 0 { format!(", review {}", task.review_cycle) } else { String::new() };
    format!("{phase}{cycle}")
}

/// How a run ended, whatever its tables call that; none before it has. An approval that does not hold any more counts
/// for nothing.
pub fn outcome(stage: &RunStage, tasks: &[Standing], whole: Option<&LoopView>) -> Option<&'static str> {
    let holds = tasks.iter().all(|task| task.kind == "passed");
    let outcome = stage.outcome()?;
    let outcome = if outcome == RunOutcome::Approved && !holds { RunOutcome::Attention } else { outcome };
    let accepted = outcome == RunOutcome::Approved && whole.is_some_and(is_accepted);
    Some(if accepted { "accepted" } else { outcome.word() })
}

/// Whether a person approved it in place of a review.
fn is_accepted(row: &LoopView) -> bool {
    row.outcome == Some("accepted")
}

/// A question in its own words, and what answers it: `… Retry or stop? signoff answer 3 retry, or stop`.
fn asked(question: &QuestionRow) -> String {
    let whom = question.task_id.map_or_else(|| question.id.clone(), |task| task.to_string());
    let text = question.text.trim();
    let Some((first, others)) = question.choices.split_first() else { return text.to_owned() };
    let others: String = others.iter().map(|choice| format!(", or `{choice}`")).collect();
    format!("{text} Type `signoff answer {whom} {first}`{others}")
}

/// Of a look at a person's checkout, which is all that its run did.
pub fn of_checkout(row: &LoopView, driven: bool) -> Standing {
    let reviews = count(row.cycle, "review");
    let why = row.reason.map(|reason| format!(": {}", words::why(reason))).unwrap_or_default();
    match row.outcome {
        Some("approved" | "accepted") => Standing::new("passed", format!("Approved after {reviews}")),
        Some("failed" | "stuck") => Standing::new("broken", format!("The review failed{why}")),
        Some("cancelled") => Standing::new("broken", "Cancelled".to_owned()).marked(TaskState::Cancelled),
        Some(_) => Standing::new("open", format!("Not approved after {reviews}{why}")),
        None if driven => Standing::endless(driven, "Under review".to_owned()),
        None => {
            let text = "Left unfinished, and nobody is at work: `signoff review` looks again";
            Standing::endless(driven, text.to_owned())
        }
    }
}

/// Of a run: how it ended, how its tasks stand, and what it waits for.
pub fn of_run(
    run: &RunRow,
    (outcome, tasks, questions): (Option<&str>, &[Standing], &[QuestionRow]),
    driven: bool,
) -> Standing {
    let id = run.id;
    let of = if tasks.is_empty() {
        "without a task".to_owned()
    } else {
        format!("with {}", count(tasks.len() as u64, "task"))
    };
    match run.status.as_str() {
        "completed" if matches!(outcome, Some("approved" | "accepted")) => {
            Standing::new("passed", format!("Completed {of}"))
        }
        "completed" => unsigned(&of, tasks),
        "cancelled" => Standing::new("broken", format!("Cancelled {of}")).marked(TaskState::Cancelled),
        "failed" if run.groups == Some(0) => Standing::new("broken", "Failed in planning".to_owned()),
        "failed" => Standing::new("broken", failed(&of, tasks)),
        _ if !questions.is_empty() => Standing::endless(driven, waiting(id, questions, driven)),
        "blocked" => Standing::endless(
            driven,
            format!("Blocked: somebody has to decide, then `signoff run --resume {id}`"),
        ),
        _ if driven => Standing::endless(driven, format!("At work ({}) {of}", run.stage)),
        _ => Standing::endless(
            driven,
            format!(
                "Left unfinished ({}) {of}, and nobody is at work: `signoff run --resume {id}` goes on",
                run.stage
            ),
        ),
    }
}

/// `Failed: 2 of 9 tasks did not pass (1 failed or was stopped, 1 unfinished)`.
fn failed(of: &str, tasks: &[Standing]) -> String {
    let number = |kinds: &[&str]| tasks.iter().filter(|task| kinds.contains(&task.kind)).count();
    let others = tasks.len() - number(&["passed"]);
    if others == 0 {
        return if tasks.is_empty() {
            format!("Failed {of}")
        } else {
            format!("Failed {of}, which all passed")
        };
    }
    let kinds = [
        (number(&["broken"]), "failed or stopped"),
        (number(&["open"]), "not signed off"),
        (number(&["unfinished", "left"]), "unfinished"),
    ];
    let kinds = kinds.into_iter().filter(|(number, _)| *number > 0);
    let kinds: Vec<_> = kinds.map(|(number, words)| format!("{number} {words}")).collect();
    let all = count(tasks.len() as u64, "task");
    format!("Failed: {others} of {all} did not pass ({})", kinds.join(", "))
}

/// What a run waits for: the first question in full, and how many there are besides.
fn waiting(run: u64, questions: &[QuestionRow], driven: bool) -> String {
    let first = questions.first().map(asked).unwrap_or_default();
    let task = questions.first().and_then(|question| question.task_id);
    let waits = task.map_or_else(|| "Waits".to_owned(), |task| format!("Task {task} waits"));
    let more = match questions.len() {
        0 | 1 => String::new(),
        all => format!("; {} besides", count(all as u64 - 1, "question")),
    };
    let then = if driven { String::new() } else { format!("; then `signoff run --resume {run}` goes on") };
    format!("{waits} for an answer: {first}{more}{then}")
}

/// Of a run that went through and was not signed off as a whole: it is as bad as the worst of its tasks.
fn unsigned(of: &str, tasks: &[Standing]) -> Standing {
    let others = tasks.iter().filter(|task| task.kind != "passed").count();
    let kind = if tasks.iter().any(|task| task.kind == "broken") { "broken" } else { "open" };
    let why = match others {
        0 => "but the whole was not approved".to_owned(),
        others => format!("{others} of them not signed off"),
    };
    Standing::new(kind, format!("Ended {of}, {why}"))
}
