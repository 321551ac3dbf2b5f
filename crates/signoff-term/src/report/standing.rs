//! How a task or a run stands, in a sentence that leaves nothing to guess.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;
use signoff_core::machine::Reason;
use signoff_core::view::{RunRow, Status, TaskRow};

use crate::fit::count;
use crate::words;

/// Where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Standing {
    /// `passed` was signed off, `open` has an end that somebody should look at, `broken` came to nothing, and
    /// `unfinished` has no end yet.
    #[schemars(extend("enum" = ["passed", "open", "broken", "unfinished"]))]
    pub kind: &'static str,
    /// The same for people.
    pub text: Cow<'static, str>,
}

/// Of what nobody has recorded anything about.
pub static UNKNOWN: Standing = Standing { kind: "unfinished", text: Cow::Borrowed("Nothing was recorded") };

impl Standing {
    fn new(kind: &'static str, text: String) -> Self {
        Self { kind, text: Cow::Owned(text) }
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

/// Of a task; `driven` tells whether somebody is at work on its run.
pub fn of_task(task: &TaskRow, driven: bool) -> Standing {
    let id = task.id;
    let unfinished = |text: String| Standing::new("unfinished", text);
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
        Status::Blocked => unfinished("Blocked by what it waits for".to_owned()),
        Status::Waiting => unfinished(format!("Waits for an answer: `signoff answer {id}`")),
        Status::Paused => at_work(&format!("Paused{}", because(task))),
        Status::InProgress => at_work(&format!("Unfinished{}", place(task))),
        Status::Completed => completed(task),
        Status::Failed => Standing::new("broken", format!("Failed{}", because(task))),
        Status::Stuck => Standing::new("broken", format!("Stuck{}", because(task))),
        Status::Cancelled => Standing::new("broken", "Cancelled".to_owned()),
    }
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

/// Of a run with so many tasks.
pub fn of_run(run: &RunRow, tasks: usize, driven: bool) -> Standing {
    let id = run.id;
    let of = if tasks == 0 {
        "without a task".to_owned()
    } else {
        format!("with {}", count(tasks as u64, "task"))
    };
    match run.status.as_str() {
        "completed" => Standing::new("passed", format!("Completed {of}")),
        "cancelled" => Standing::new("broken", format!("Cancelled {of}")),
        "failed" if run.groups == Some(0) => Standing::new("broken", "Failed in planning".to_owned()),
        "failed" => Standing::new("broken", format!("Failed {of}")),
        "blocked" => Standing::new(
            "unfinished",
            format!("Blocked: somebody has to decide, then `signoff run --resume {id}`"),
        ),
        _ if driven => Standing::new("unfinished", format!("At work ({}) {of}", run.stage)),
        _ => Standing::new(
            "unfinished",
            format!(
                "Left unfinished ({}) {of}, and nobody is at work: `signoff run --resume {id}` goes on",
                run.stage
            ),
        ),
    }
}
