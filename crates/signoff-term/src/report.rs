//! A run or a task as one document to keep: what was asked, found, fixed and left, by whom, at what cost.
//!
//! An [`Account`] is the value; beside it stands a file for each form it is written in. Text of agents is data in each
//! of them.

mod changes;
pub mod junit;
pub mod markdown;
mod part;
pub mod sarif;
mod standing;
mod totals;

use schemars::JsonSchema;
use serde::Serialize;
use signoff_core::merge::render::plain_text::escaped_json;

pub use changes::{COUNTED, Changes};
pub use part::{Part, RunAccount, TaskAccount};
pub use standing::{Standing, of_report, of_task};
pub use totals::{FindingCounts, Totals};

use crate::json::VERSION;

/// What was asked for: one task, or a run with all its tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct About {
    #[schemars(extend("enum" = ["task", "run"]))]
    pub kind: &'static str,
    pub id: u64,
}

impl About {
    pub fn task(id: u64) -> Self {
        Self { kind: "task", id }
    }

    pub fn run(id: u64) -> Self {
        Self { kind: "run", id }
    }

    /// What to type for the same in another form.
    pub fn command(&self) -> String {
        let id = self.id;
        if self.kind == "run" { format!("signoff report run-{id}") } else { format!("signoff report {id}") }
    }
}

/// `report --format json`: all that is known, in one document.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Account {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    pub about: About,
    /// When it was written, UTC: work may have gone on since.
    pub made_at: String,
    /// The run; null where none has taken the task up.
    pub run: Option<RunAccount>,
    /// What served the run as a whole: planning, looks at work under way, the final review.
    pub parts: Vec<Part>,
    pub tasks: Vec<TaskAccount>,
    pub totals: Totals,
}

impl Account {
    pub fn of(
        about: About,
        made_at: String,
        run: Option<RunAccount>,
        held: (Vec<Part>, Vec<TaskAccount>),
    ) -> Self {
        let (parts, tasks) = held;
        let totals = Totals::of(&parts, &tasks);
        Self { version: VERSION, about, made_at, run, parts, tasks, totals }
    }

    /// As JSON, with one line break at its end.
    pub fn json(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("an account is JSON");
        escaped_json(&text) + "\n"
    }

    /// What people call it.
    pub fn title(&self) -> String {
        match (self.about.kind, self.tasks.first(), &self.run) {
            ("task", Some(task), _) => task.report.task.title.clone(),
            (_, _, Some(run)) => match &run.specification {
                Some(name) => format!("Run {}: {name}", run.id),
                None => format!("Run {}", run.id),
            },
            (_, _, None) => format!("Run {}", self.about.id),
        }
    }

    /// How it stands as a whole.
    pub fn standing(&self) -> &Standing {
        match (self.about.kind, self.tasks.first(), &self.run) {
            ("task", Some(task), _) => &task.standing,
            (_, _, Some(run)) => &run.standing,
            (_, Some(task), None) => &task.standing,
            (_, None, None) => &standing::UNKNOWN,
        }
    }
}
