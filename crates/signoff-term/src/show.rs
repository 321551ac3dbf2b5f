//! Everything about one task, told from its log.

mod attempt;
mod shape;
mod text;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use signoff_core::ids::{AttemptId, LoopId};
use signoff_core::ledger::DecidedBy;
use signoff_core::machine::{Event, Loop, Policy};
use signoff_core::review::Usage;
use signoff_core::view::{QuestionRow, QuestionView, RunView, TaskRow};
use signoff_core::wire::{Fact, LoopFact, Recorded};

pub use attempt::Attempt;
pub use shape::{Cycle, FindingLine, LedgerLine, NoteLine, ReviewLine, Seen, Settled};
pub use text::text;

use crate::json::VERSION;
use crate::round::{Round, Rounds, Ruling, Step};

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
            Event::Started { .. }
            | Event::Imported { .. }
            | Event::ItemsPlanned { .. }
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
            | Event::CheckpointEnded { .. }
            | Event::LandingGranted
            | Event::HeadMoved { .. } => return None,
        };
        Some(Self { at: recorded.at.to_string(), by: by.clone(), what, choice, reason })
    }
}

/// What people decided about a loop.
fn decisions(log: &[Recorded], loop_id: &LoopId) -> Vec<PersonsDecision> {
    let decided = |recorded: &Recorded| match &recorded.fact {
        Fact::Loop(id, LoopFact::Moved(event)) if id == loop_id => PersonsDecision::of(recorded, event),
        Fact::Task(..) | Fact::Run(_) | Fact::Loop(..) => None,
    };
    log.iter().filter_map(decided).collect()
}

/// The commit that was approved, if the loop ended so.
/// A round with what became of it.
struct Told {
    round: Round,
    ruling: Ruling,
    at: String,
}

impl Report {
    /// Folds the log of the run that works the task; one that no run has taken up has an empty one.
    pub fn of(task: TaskRow, log: &[Recorded], loop_id: &LoopId, artifacts: Vec<String>) -> Self {
        let (view, told) = rounds(log, loop_id);
        let usage: BTreeMap<AttemptId, Usage> =
            view.attempts(loop_id).into_iter().map(|(attempt, _, usage)| (attempt, usage)).collect();
        let phases = view.loop_policy(loop_id).map(phase_names).unwrap_or_default();
        let mut ledger: Vec<_> = view.loop_state(loop_id).map_or_else(Vec::new, |this| {
            this.ledger.entries().iter().map(|entry| LedgerLine::of(entry, &phases)).collect()
        });
        ledger.sort_by_key(|line| line.state != "open");
        let row = view.row(loop_id);
        let place = task.place.or_else(|| row.as_ref().and_then(|row| row.place));
        let (task, question) = (TaskRow { place, ..task }, row.and_then(|row| row.question));
        Self {
            version: VERSION,
            cycles: told.into_iter().map(|told| Cycle::of(told, &usage)).collect(),
            ledger,
            attempts: attempt::all(log, loop_id, &view),
            artifacts,
            decisions: decisions(log, loop_id),
            approved_commit: view
                .loop_state(loop_id)
                .and_then(Loop::approved_commit)
                .map(ToString::to_string),
            voided: None,
            question: question.map(|question| asked(question, &view, &task)),
            task,
        }
    }
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

fn phase_names(policy: &Policy) -> Vec<String> {
    policy.workflow.phases.iter().map(|phase| phase.name.clone()).collect()
}

/// The whole log, with the rounds of one loop picked out.
fn rounds(log: &[Recorded], loop_id: &LoopId) -> (RunView, Vec<Told>) {
    let (mut view, mut rounds, mut told) = (RunView::default(), Rounds::default(), Vec::new());
    for recorded in log {
        let moved = match &recorded.fact {
            Fact::Loop(id, LoopFact::Moved(event)) if id == loop_id => Some(event),
            Fact::Task(..) | Fact::Run(_) | Fact::Loop(..) => None,
        };
        let before = moved.map(|_| view.loop_state(loop_id).cloned().unwrap_or_default());
        view.apply(recorded);
        let (Some(event), Some(before)) = (moved, before) else { continue };
        let (Some(after), Some(policy)) = (view.loop_state(loop_id), view.loop_policy(loop_id)) else {
            continue;
        };
        let step = Step { before: &before, event, after, policy, agent: None };
        if let Some(round) = rounds.take(&step) {
            let ruling = round.ruling(&step);
            told.push(Told { round, ruling, at: recorded.at.to_string() });
        }
    }
    (view, told)
}
