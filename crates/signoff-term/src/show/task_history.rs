//! Collects rounds, attempts and decisions of loops in one pass over the log of a run.

use std::collections::BTreeMap;

use signoff_core::ids::{AttemptId, LoopId};
use signoff_core::ledger::LedgerEntry;
use signoff_core::machine::{Event, Loop, Policy};
use signoff_core::review::{FailThreshold, Usage};
use signoff_core::view::{RunView, TaskRow};
use signoff_core::wire::{Fact, LoopFact, RecordedFact};
use signoff_core::workflow::PhaseKind;

use super::attempt::{self, AttemptTimes};
use super::{AttemptRow, Cycle, LedgerLine, PersonDecision, TaskReport, question_row};
use crate::json::VERSION;
use crate::review_round::{GateRound, LoopTransition, RoundTracker, Ruling};
use crate::stats::Convergence;

/// A round with its result.
pub(super) struct FinishedRound {
    pub round: GateRound,
    pub ruling: Ruling,
    pub at: String,
    pub convergence: Convergence,
}

/// The collected data of one loop.
#[derive(Default)]
struct LoopHistory {
    tracker: RoundTracker,
    rounds: Vec<FinishedRound>,
    times: BTreeMap<AttemptId, AttemptTimes>,
    decisions: Vec<PersonDecision>,
}

/// What to collect.
enum HistoryScope<'a> {
    /// Everything, for all loops.
    All,
    /// Everything, for one loop.
    One(&'a LoopId),
    /// Only the attempts, for all loops.
    Attempts,
}

/// The log of a run, read once. Reports of all its loops are built from it without reading the log again.
#[derive(Default)]
pub struct RunHistory {
    pub view: RunView,
    loops: BTreeMap<LoopId, LoopHistory>,
}

impl RunHistory {
    /// All loops of a log.
    pub fn from_log(log: &[RecordedFact]) -> Self {
        Self::with_scope(log, &HistoryScope::All)
    }

    /// One loop of a log. Other loops only update the view.
    pub fn for_loop(log: &[RecordedFact], loop_id: &LoopId) -> Self {
        Self::with_scope(log, &HistoryScope::One(loop_id))
    }

    /// All loops without their rounds, for statistics; takes half the time.
    pub fn attempts_only(log: &[RecordedFact]) -> Self {
        Self::with_scope(log, &HistoryScope::Attempts)
    }

    /// Continues with the next part of the log, so that a long log need not be in memory at once.
    pub fn extend(&mut self, part: &[RecordedFact]) {
        self.apply_all(part, &HistoryScope::All);
    }

    /// Like `extend`, without rounds, for statistics.
    pub fn extend_attempts(&mut self, part: &[RecordedFact]) {
        self.apply_all(part, &HistoryScope::Attempts);
    }

    fn with_scope(log: &[RecordedFact], scope: &HistoryScope) -> Self {
        let mut this = Self::default();
        this.apply_all(log, scope);
        this
    }

    fn apply_all(&mut self, log: &[RecordedFact], scope: &HistoryScope) {
        for recorded in log {
            self.apply(recorded, scope);
        }
    }

    fn apply(&mut self, recorded: &RecordedFact, scope: &HistoryScope) {
        let Fact::Loop(loop_id, fact) = &recorded.fact else { return self.view.apply(recorded) };
        let with_rounds = match scope {
            HistoryScope::All => true,
            HistoryScope::One(one) if *one == loop_id => true,
            HistoryScope::One(_) => return self.view.apply(recorded),
            HistoryScope::Attempts => false,
        };
        let history = self.loops.entry(loop_id.clone()).or_default();
        attempt::apply(&mut history.times, recorded, fact);
        let (LoopFact::Transitioned(event), true) = (fact, with_rounds) else {
            return self.view.apply(recorded);
        };
        history.decisions.extend(PersonDecision::from_event(recorded, event));
        let before = self.view.loop_state(loop_id).cloned().unwrap_or_default();
        self.view.apply(recorded);
        let (Some(after), Some(policy)) = (self.view.loop_state(loop_id), self.view.loop_policy(loop_id)) else {
            return;
        };
        history.apply_transition(&LoopTransition { before: &before, event, after, policy, launch: None }, recorded);
    }

    /// The loops, ordered by id.
    pub fn loops(&self) -> impl Iterator<Item = &LoopId> {
        self.loops.keys()
    }

    /// Every round of a loop, in order.
    pub fn cycles(&self, loop_id: &LoopId) -> Vec<Cycle> {
        let usage: BTreeMap<AttemptId, Usage> =
            self.view.attempts(loop_id).into_iter().map(|(attempt, _, usage)| (attempt, usage)).collect();
        let told = self.loops.get(loop_id).into_iter().flat_map(|kept| &kept.rounds);
        told.map(|told| Cycle::new(told, &usage)).collect()
    }

    /// Every finding of a loop, open ones first. A finding of a checkpoint review is listed only for the loop under
    /// review.
    pub fn ledger(&self, loop_id: &LoopId) -> Vec<LedgerLine> {
        let (Some(this), Some(policy)) = (self.view.loop_state(loop_id), self.view.loop_policy(loop_id)) else {
            return Vec::new();
        };
        let looked_at = loop_id.checkpoint_target().and_then(|(of, _)| self.view.loop_state(&of));
        let is_listed_there =
            |entry: &&LedgerEntry| looked_at.is_some_and(|of| of.ledger.reported_as(&entry.finding.id).is_some());
        let own = this.ledger.entries().iter().filter(|entry| !is_listed_there(entry));
        let mut ledger: Vec<_> = own.map(|entry| LedgerLine::new(entry, policy)).collect();
        ledger.sort_by_key(|line| line.state != "open");
        ledger
    }

    /// Every attempt of a loop with a recorded start.
    pub fn attempts(&self, loop_id: &LoopId) -> Vec<AttemptRow> {
        let none = BTreeMap::new();
        let times = self.loops.get(loop_id).map_or(&none, |kept| &kept.times);
        attempt::reports(times, loop_id, &self.view)
    }

    /// Drops the data of a loop that is no longer needed, to limit memory use in large runs.
    pub fn forget(&mut self, loop_id: &LoopId) {
        self.loops.remove(loop_id);
    }

    /// The full report of a loop's task.
    pub fn report(&self, task: TaskRow, loop_id: &LoopId, artifacts: Vec<String>) -> TaskReport {
        let row = self.view.row(loop_id);
        let place = task.progress.or_else(|| row.as_ref().and_then(|row| row.progress));
        let (task, question) =
            (TaskRow { progress: place, ..task.with_current_state() }, row.and_then(|row| row.question));
        let decisions = self.loops.get(loop_id).map(|kept| kept.decisions.clone());
        let approved = self.view.loop_state(loop_id).and_then(Loop::approved_commit);
        TaskReport {
            version: VERSION,
            cycles: self.cycles(loop_id),
            ledger: self.ledger(loop_id),
            attempts: self.attempts(loop_id),
            artifacts,
            decisions: decisions.unwrap_or_default(),
            approved_commit: approved.map(ToString::to_string),
            voided: None,
            question: question.map(|question| question_row(question, &self.view, &task)),
            task,
        }
    }
}

impl LoopHistory {
    fn apply_transition(&mut self, step: &LoopTransition, recorded: &RecordedFact) {
        let convergence = Convergence::between(&step.before.ledger, &step.after.ledger);
        if let Some(round) = self.tracker.apply(step) {
            let ruling = round.ruling(step);
            self.rounds.push(FinishedRound { round, ruling, at: recorded.at.to_string(), convergence });
        } else if let (Event::PersonAnswered { .. }, true, Some(last)) =
            (step.event, convergence.changes_something(), self.rounds.last_mut())
        {
            // The findings of a partial round count once a person decides to proceed without the missing reviews.
            last.convergence = convergence;
        }
    }
}

/// The severity that blocks the gate of a phase. Findings of landings and checks always block.
pub(super) fn bar(policy: &Policy, phase: usize) -> FailThreshold {
    match policy.workflow.phases.get(phase).map(|phase| &phase.kind) {
        Some(PhaseKind::Gate(judge)) => judge.gate.fail_on,
        Some(PhaseKind::Check(_) | PhaseKind::Agent { .. }) | None => FailThreshold::Low,
    }
}
