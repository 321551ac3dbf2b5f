//! The report of `signoff show`: everything about one task, from its log.

mod attempt;
mod report_types;
mod task_history;
mod text;

use schemars::JsonSchema;
use serde::Serialize;
use signoff_core::ids::RunId;
use signoff_core::ledger::DecidedBy;
use signoff_core::machine::Event;
use signoff_core::view::{QuestionRow, QuestionView, TaskRow};
use signoff_core::wire::RecordedFact;

use crate::fit::timestamp;
pub use crate::review_round::RoundVerdict;
pub use attempt::{AttemptOutcome, AttemptRow};
pub(crate) use report_types::usd;
pub use report_types::{ClaimLine, Cycle, DeciderKind, FindingLine, LedgerLine, ReviewReport, Sighting, StateChange};
pub use task_history::RunHistory;
pub use text::text;

/// `show ID --json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TaskReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    pub task: TaskRow,
    /// Every review round and every run of the checks, in order.
    pub cycles: Vec<Cycle>,
    /// Every finding over all cycles, open ones first.
    pub ledger: Vec<LedgerLine>,
    pub attempts: Vec<AttemptRow>,
    /// Paths of the artifact files.
    pub artifacts: Vec<String>,
    /// Decisions of people about the task, in order.
    pub decisions: Vec<PersonDecision>,
    /// The commit its reviewers approved. Later commits are not reviewed.
    pub approved_commit: Option<String>,
    /// Why the approval is no longer valid: the branch has changed since.
    pub voided: Option<String>,
    /// The open question of the task.
    pub question: Option<QuestionRow>,
    /// Whether an attempt writes to the worktree, or did so when the program was killed.
    #[serde(skip)]
    pub is_being_written: bool,
}

/// A decision of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PersonDecision {
    pub at: String,
    pub by: String,
    /// `answer`, `retry`, `edit`, `cancel` or `dispute`.
    #[schemars(with = "String")]
    pub what: PersonDecisionKind,
    /// The choice, the verdict or the finding.
    pub choice: Option<String>,
    pub reason: Option<String>,
}

/// The kind of a person's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum PersonDecisionKind {
    Answer,
    Retry,
    Edit,
    Cancel,
    Dispute,
}

impl PersonDecision {
    /// `2026-01-29 10:00:00 ann: edit APPROVED - the finding is about generated code`; the separator is ` - ` here.
    pub(crate) fn text(&self, separator: &str) -> String {
        let choice = self.choice.as_deref().map(|choice| format!(" {choice}")).unwrap_or_default();
        let reason = self.reason.as_deref().map(|reason| format!("{separator}{reason}")).unwrap_or_default();
        format!("{} {}: {}{choice}{reason}", timestamp(&self.at), self.by, self.what.into_str())
    }

    fn from_event(recorded: &RecordedFact, event: &Event) -> Option<Self> {
        let non_empty = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let (what, by, choice, reason) = if let Event::PersonAnswered { choice, by, .. } = event {
            (PersonDecisionKind::Answer, by, non_empty(choice.into_str()), None)
        } else if let Event::PersonRetried { by } = event {
            (PersonDecisionKind::Retry, by, None, None)
        } else if let Event::PersonEdited { verdict, by, reason, .. } = event {
            (PersonDecisionKind::Edit, by, non_empty(verdict.into_str()), non_empty(reason))
        } else if let Event::Cancelled { by } = event {
            (PersonDecisionKind::Cancel, by, None, None)
        } else if let Event::FindingDecided { finding, decision } = event {
            let DecidedBy::Person(by) = &decision.by else { return None };
            (PersonDecisionKind::Dispute, by, non_empty(finding.as_str()), non_empty(&decision.evidence))
        } else {
            return None;
        };
        Some(Self { at: recorded.at.to_string(), by: by.clone(), what, choice, reason })
    }
}

/// The question, with the id that its run gave it.
fn question_row(question: QuestionView, run: RunId, task: &TaskRow) -> QuestionRow {
    QuestionRow {
        id: question.id.to_string(),
        run_id: run.0,
        task_id: Some(task.id),
        text: question.text,
        choices: question.choices.iter().map(|choice| choice.into_str().to_owned()).collect(),
    }
}
