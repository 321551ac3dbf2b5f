//! Everything about one task, told from its log.

mod attempt;
mod folded;
mod shape;
mod text;

use schemars::JsonSchema;
use serde::Serialize;
use signoff_core::ids::LoopId;
use signoff_core::ledger::DecidedBy;
use signoff_core::machine::Event;
use signoff_core::view::{QuestionRow, QuestionView, RunView, TaskRow};
use signoff_core::wire::{Fact, Recorded};

pub use attempt::Attempt;
pub use folded::Folded;
pub(crate) use shape::usd;
pub use shape::{ClaimLine, Cycle, FindingLine, LedgerLine, NoteLine, ReviewLine, Seen, Settled};
pub use text::text;

/// `show ID --json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    pub task: TaskRow,
    /// Every review round and every run of the checks, in order.
    pub cycles: Vec<Cycle>,
    /// Every finding over all cycles, open ones first.
    pub ledger: Vec<LedgerLine>,
    pub attempts: Vec<Attempt>,
    /// Paths of what is kept beside the log.
    pub artifacts: Vec<String>,
    /// What people decided about it, in order.
    pub decisions: Vec<PersonsDecision>,
    /// The commit its reviewers approved; what came after it, nobody reviewed.
    pub approved_commit: Option<String>,
    /// What is wrong with that approval now, in words: the branch has moved since.
    pub voided: Option<String>,
    /// What people are asked about it.
    pub question: Option<QuestionRow>,
}

/// What a person decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PersonsDecision {
    pub at: String,
    pub by: String,
    /// `answer`, `retry`, `edit`, `cancel` or `dispute`.
    pub what: &'static str,
    /// The choice, the verdict or the finding.
    pub choice: Option<String>,
    pub reason: Option<String>,
}

impl PersonsDecision {
    fn of(recorded: &Recorded, event: &Event) -> Option<Self> {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let (what, by, choice, reason) = match event {
            Event::PersonAnswered { choice, by, .. } => ("answer", by, some(choice.word()), None),
            Event::PersonRetried { by } => ("retry", by, None, None),
            Event::PersonEdited { verdict, by, reason, .. } => {
                ("edit", by, some(verdict.word()), some(reason))
            }
            Event::Cancelled { by } => ("cancel", by, None, None),
            Event::FindingDecided { finding, decision } => {
                let DecidedBy::Person(by) = &decision.by else { return None };
                ("dispute", by, some(finding.as_str()), some(&decision.evidence))
            }
            Event::BaseSet { .. }
            | Event::FindingsInherited { .. }
            | Event::Started { .. }
            | Event::Imported { .. }
            | Event::ItemsPlanned { .. }
            | Event::FindingsClaimed { .. }
            | Event::WorkEnded { .. }
            | Event::CheckEnded { .. }
            | Event::ReviewArrived { .. }
            | Event::FixesCombined { .. }
            | Event::FixesOverlapped { .. }
            | Event::LandingEnded { .. }
            | Event::AttemptFailed { .. }
            | Event::AttemptLost { .. }
            | Event::RateLimited { .. }
            | Event::BudgetReached
            | Event::BudgetRefused { .. }
            | Event::Resumed { .. }
            | Event::CheckpointBegan { .. }
            | Event::CheckpointEnded { .. }
            | Event::LandingGranted
            | Event::HeadMoved { .. } => return None,
        };
        Some(Self { at: recorded.at.to_string(), by: by.clone(), what, choice, reason })
    }
}

impl Report {
    /// Folds the log of the run that works the task; one that no run has taken up has an empty one.
    pub fn of(task: TaskRow, log: &[Recorded], loop_id: &LoopId, artifacts: Vec<String>) -> Self {
        Folded::only(log, loop_id).report(task, loop_id, artifacts)
    }
}

/// What is told of one loop, of the checkpoints that look at it, and of the run: in a run of many tasks it is folded in no
/// time, and tells the same of that loop. Only questions have other numbers: those are counted over all loops.
pub fn concerning(log: &[Recorded], wanted: &LoopId) -> Vec<Recorded> {
    let concerns = |recorded: &&Recorded| match &recorded.fact {
        Fact::Loop(loop_id, _) => {
            loop_id == wanted || loop_id.of_checkpoint().is_some_and(|(of, _)| of == *wanted)
        }
        Fact::Run(_) | Fact::Task(..) => true,
    };
    log.iter().filter(concerns).cloned().collect()
}

/// The question under the number its run gave it.
fn asked(question: QuestionView, view: &RunView, task: &TaskRow) -> QuestionRow {
    QuestionRow {
        id: question.id.to_string(),
        run_id: view.run.map_or(0, |run| run.0),
        task_id: Some(task.id),
        text: question.text,
        choices: question.choices.iter().map(|choice| choice.word().to_owned()).collect(),
    }
}
