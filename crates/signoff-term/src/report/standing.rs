//! How a task or a run stands, in a sentence that leaves nothing to guess.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;
use signoff_core::group::{RunOutcome, RunStage};
use signoff_core::machine::Reason;
use signoff_core::view::{RunRow, Status, TaskRow};

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
}

/// Of what nobody has recorded anything about.
pub static UNKNOWN: Standing = Standing { kind: "left", text: Cow::Borrowed("Nothing was recorded") };

impl Standing {
    fn new(kind: &'static str, text: String) -> Self {
        Self { kind, text: Cow::Owned(text) }
    }

    /// Of what has no end; `driven` tells whether somebody is at work on it.
    fn endless(driven: bool, text: String) -> Self {
        Self::new(if driven { "unfinished" } else { "left" }, text)
    }

    /// Whether nothing more is to come.
    pub fn has_ended(&self) -> bool {
        matches!(self.kind, "passed" | "open" | "broken")
    }

    /// The sign in front of it.
    pub fn mark(&self) -> char {
        match self.kind {
            "passed" => '✓',
            "broken" => '✗',
            "open" => '!',
            _ => '…',
        }
    }
}

/// Of a task with all that is told of it: an approval of another commit than the branch's last one is none.
pub fn of_report(report: &Report, driven: bool) -> Standing {
    let standing = of_task(&report.task, driven);
    match &report.voided {
        Some(voided) => Standing::new("open", format!("{}; {voided}", standing.text)),
        None => standing,
    }
}

/// Of a task; `driven` tells whether somebody is at work on its run.
pub fn of_task(task: &TaskRow, driven: bool) -> Standing {
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
        Status::Waiting => unfinished(format!("Waits for an answer: `signoff answer {id}`")),
        Status::Paused => at_work(&format!("Paused{}", because(task))),
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
    let open = |text: &str| Standing::new("open", format!("{text}{reviews}{}", because(task)));
    match task.outcome.as_deref() {
        Some("approved") => Standing::new("passed", format!("Approved{reviews}")),
        Some("accepted") => Standing::new("passed", "Approved by a person".to_owned()),
        None => Standing::new("open", "Done, not reviewed".to_owned()),
        Some("discussion") => open("To be discussed"),
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
pub fn outcome(stage: &RunStage, tasks: &[Standing]) -> Option<&'static str> {
    let holds = tasks.iter().all(|task| task.kind == "passed");
    let outcome = stage.outcome()?;
    let told = if outcome == RunOutcome::Approved && !holds { RunOutcome::Attention } else { outcome };
    Some(told.word())
}

/// Of a run with these tasks, which ended so.
pub fn of_run(run: &RunRow, outcome: Option<&str>, tasks: &[Standing], driven: bool) -> Standing {
    let id = run.id;
    let of = if tasks.is_empty() {
        "without a task".to_owned()
    } else {
        format!("with {}", count(tasks.len() as u64, "task"))
    };
    match run.status.as_str() {
        "completed" if outcome == Some("approved") => Standing::new("passed", format!("Completed {of}")),
        "completed" => unsigned(&of, tasks),
        "cancelled" => Standing::new("broken", format!("Cancelled {of}")),
        "failed" if run.groups == Some(0) => Standing::new("broken", "Failed in planning".to_owned()),
        "failed" => Standing::new("broken", format!("Failed {of}")),
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
