//! The report of `signoff report`: one document about a task or a run, with requests, findings, attempts and cost.
//!
//! `ReportDocument` is the value; each output format has its own module. Every format escapes text from agents.

pub mod junit;
pub mod markdown;
mod result;
pub mod sarif;
mod sections;

use schemars::JsonSchema;
use serde::Serialize;
use signoff_core::merge::render::plain_text::escaped_json;

pub use result::{ReportOutcome, ReportResult, ReportResultKind, result_of_report, result_of_task};
pub use sections::{Changes, FindingCounts, MAX_COUNTED_TASKS, PartSection, RunSection, TaskSection, Totals};

use crate::json::VERSION;

/// Whether a report is about a task or a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SubjectKind {
    Task,
    Run,
}

/// The subject of a report: one task, or a run with all its tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DocumentSubject {
    pub kind: SubjectKind,
    pub id: u64,
}

impl DocumentSubject {
    pub fn task(id: u64) -> Self {
        Self { kind: SubjectKind::Task, id }
    }

    pub fn run(id: u64) -> Self {
        Self { kind: SubjectKind::Run, id }
    }

    /// The command that prints this report; the caller adds the format.
    pub fn command(&self) -> String {
        let id = self.id;
        if self.is_run() { format!("signoff report run-{id}") } else { format!("signoff report {id}") }
    }

    pub fn is_run(&self) -> bool {
        self.kind == SubjectKind::Run
    }
}

/// `report --format json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReportDocument {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    #[serde(rename = "about")]
    pub subject: DocumentSubject,
    /// When the report was created, UTC.
    pub made_at: String,
    /// The run; null for a task without a run.
    pub run: Option<RunSection>,
    /// The loops of the run without a task: planning, checkpoint reviews, the final review.
    pub parts: Vec<PartSection>,
    pub tasks: Vec<TaskSection>,
    pub totals: Totals,
}

impl ReportDocument {
    pub fn new(
        subject: DocumentSubject,
        made_at: String,
        run: Option<RunSection>,
        parts: Vec<PartSection>,
        tasks: Vec<TaskSection>,
    ) -> Self {
        let totals = Totals::new(&parts, &tasks);
        Self { version: VERSION, subject, made_at, run, parts, tasks, totals }
    }

    /// The report as JSON, with a final line break.
    pub fn json(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("a report is JSON");
        escaped_json(&text) + "\n"
    }

    /// The title of the task, or the number and specification of the run.
    pub fn title(&self) -> String {
        match (self.subject.kind, self.tasks.first(), &self.run) {
            (SubjectKind::Task, Some(task), _) => task.report.task.title.clone(),
            (_, _, Some(run)) => match &run.specification {
                Some(name) => format!("Run {}: {name}", run.id),
                None => format!("Run {}", run.id),
            },
            (_, _, None) => format!("Run {}", self.subject.id),
        }
    }

    /// The overall result.
    pub fn result(&self) -> &ReportResult {
        match (self.subject.kind, self.tasks.first(), &self.run) {
            (SubjectKind::Task, Some(task), _) => &task.result,
            (_, _, Some(run)) => &run.result,
            (_, Some(task), None) => &task.result,
            (_, None, None) => &result::UNKNOWN,
        }
    }
}
