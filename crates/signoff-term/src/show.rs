//! Everything about one task, told from its log.

mod attempt;
mod shape;
mod text;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use signoff_core::ids::{AttemptId, LoopId};
use signoff_core::machine::Policy;
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
    /// What people are asked about it.
    pub question: Option<QuestionRow>,
}

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
        let question = view.row(loop_id).and_then(|row| row.question);
        Self {
            version: VERSION,
            cycles: told.into_iter().map(|told| Cycle::of(told, &usage)).collect(),
            ledger,
            attempts: attempt::all(log, loop_id, &view),
            artifacts,
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
        let step = Step { before: &before, event, after, policy };
        if let Some(round) = rounds.take(&step) {
            let ruling = round.ruling(&step);
            told.push(Told { round, ruling, at: recorded.at.to_string() });
        }
    }
    (view, told)
}
