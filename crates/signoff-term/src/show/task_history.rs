//! Collects rounds, attempts and decisions of loops in one pass over the log of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use signoff_core::ids::{AttemptId, LoopId};
use signoff_core::ledger::{FindingState, LedgerEntry};
use signoff_core::machine::{Event, Loop};
use signoff_core::review::Usage;
use signoff_core::view::{LoopTransition, RunState, TaskRow, Transition};
use signoff_core::wire::{Fact, LoopFact, RecordedFact};

use super::attempt::{self, AttemptTimes};
use super::{AttemptRow, Cycle, LedgerLine, PersonDecision, TaskReport, question_row};
use crate::json::VERSION;
use crate::review_round::{GateRound, RoundVerdict};
use crate::stats::Convergence;

/// A round with its result.
#[derive(Clone)]
pub(super) struct FinishedRound {
    pub round: GateRound,
    pub verdict: RoundVerdict,
    pub at: String,
    pub convergence: Convergence,
}

/// The collected data of one loop.
#[derive(Clone, Default)]
struct LoopHistory {
    rounds: Vec<FinishedRound>,
    times: BTreeMap<AttemptId, AttemptTimes>,
    decisions: Vec<PersonDecision>,
}

/// The log of a run, read once. Reports of all its loops are built from it without reading the log again.
#[derive(Clone, Default)]
pub struct RunHistory {
    pub state: RunState,
    loops: BTreeMap<LoopId, LoopHistory>,
}

impl RunHistory {
    /// One loop of a log. Other loops only update the state of the run.
    pub fn for_loop(log: impl IntoIterator<Item = RecordedFact>, wanted: &LoopId) -> Self {
        let mut history = Self::default();
        for recorded in log {
            match &recorded.fact {
                Fact::Loop(loop_id, _) if loop_id == wanted => drop(history.apply(recorded)),
                Fact::Loop(..) | Fact::Run(_) | Fact::Task(..) => history.state.replay(&recorded),
            }
        }
        history
    }

    /// Continues with the next part of the log, so that a long log need not be in memory at once.
    pub fn extend(&mut self, part: impl IntoIterator<Item = RecordedFact>) {
        for recorded in part {
            self.apply(recorded);
        }
    }

    /// Like `extend`, without rounds, for statistics; takes half the time.
    pub fn extend_attempts(&mut self, part: &[RecordedFact]) {
        for recorded in part {
            if let Fact::Loop(loop_id, fact) = &recorded.fact {
                let history = self.loops.entry(loop_id.clone()).or_default();
                attempt::apply(&mut history.times, recorded, fact);
            }
            self.state.replay(recorded);
        }
    }

    /// Applies the next event of the log.
    pub fn apply(&mut self, recorded: impl Into<Arc<RecordedFact>>) -> Transition {
        let transition = self.state.apply(recorded);
        self.collect(&transition);
        transition
    }

    /// Takes over an event that another state of the run applied.
    pub fn apply_transition(&mut self, transition: &Transition) {
        self.state.apply_transition(transition);
        self.collect(transition);
    }

    fn collect(&mut self, transition: &Transition) {
        if let Fact::Loop(loop_id, fact) = &transition.event.fact {
            let history = self.loops.entry(loop_id.clone()).or_default();
            attempt::apply(&mut history.times, &transition.event, fact);
            if let LoopFact::Transitioned(event) = fact {
                history.decisions.extend(PersonDecision::from_event(&transition.event, event));
            }
            if let Some(step) = transition.loop_transition() {
                history.collect_round(&step, transition);
            }
        }
    }

    /// The loops, ordered by id.
    pub fn loops(&self) -> impl Iterator<Item = &LoopId> {
        self.loops.keys()
    }

    /// Every round of a loop, in order.
    pub fn cycles(&self, loop_id: &LoopId) -> Vec<Cycle> {
        let usage: BTreeMap<AttemptId, Usage> =
            self.state.attempts(loop_id).into_iter().map(|(attempt, _, usage)| (attempt, usage)).collect();
        let rounds = self.loops.get(loop_id).into_iter().flat_map(|history| &history.rounds);
        rounds.map(|round| Cycle::new(round, &usage)).collect()
    }

    /// Every finding of a loop, open ones first. A finding of a checkpoint review is listed only for the loop under
    /// review.
    pub fn ledger(&self, loop_id: &LoopId) -> Vec<LedgerLine> {
        let (Some(machine), Some(policy)) = (self.state.loop_state(loop_id), self.state.policy(loop_id)) else {
            return Vec::new();
        };
        let reviewed = loop_id.checkpoint_target().and_then(|(reviewed, _)| self.state.loop_state(&reviewed));
        let is_listed_there = |entry: &&LedgerEntry| {
            reviewed.is_some_and(|reviewed| reviewed.ledger.reported_as(&entry.finding.id).is_some())
        };
        let own = machine.ledger.entries().iter().filter(|entry| !is_listed_there(entry));
        let mut ledger: Vec<_> = own.map(|entry| LedgerLine::new(entry, policy)).collect();
        ledger.sort_by_key(|line| line.state != FindingState::Open);
        ledger
    }

    /// Every attempt of a loop with a recorded start.
    pub fn attempts(&self, loop_id: &LoopId) -> Vec<AttemptRow> {
        let none = BTreeMap::new();
        let times = self.loops.get(loop_id).map_or(&none, |kept| &kept.times);
        attempt::reports(times, loop_id, &self.state)
    }

    /// Drops the data of a loop that is no longer needed, to limit memory use in large runs.
    pub fn drop_loop(&mut self, loop_id: &LoopId) {
        self.loops.remove(loop_id);
    }

    /// The full report of a loop's task.
    pub fn report(&self, task: TaskRow, loop_id: &LoopId, artifacts: Vec<String>) -> TaskReport {
        let row = self.state.row(loop_id);
        let (progress, wait, question) = row.map(|row| (row.progress, row.wait, row.question)).unwrap_or_default();
        let (progress, wait) = (task.progress.or(progress), task.wait.clone().or(wait));
        let task = TaskRow { progress, wait, ..task.with_current_state() };
        let decisions = self.loops.get(loop_id).map(|kept| kept.decisions.clone());
        let machine = self.state.loop_state(loop_id);
        let approved = machine.and_then(Loop::approved_commit);
        TaskReport {
            version: VERSION,
            cycles: self.cycles(loop_id),
            ledger: self.ledger(loop_id),
            attempts: self.attempts(loop_id),
            artifacts,
            decisions: decisions.unwrap_or_default(),
            approved_commit: approved.map(ToString::to_string),
            voided: None,
            question: question.map(|question| question_row(question, self.state.run, &task)),
            is_being_written: machine.is_some_and(Loop::is_being_written),
            task,
        }
    }
}

impl LoopHistory {
    fn collect_round(&mut self, step: &LoopTransition, transition: &Transition) {
        let convergence = || Convergence::between(&step.before.ledger, &step.after.ledger);
        if let Some(round) = GateRound::ended_by(transition) {
            let (verdict, convergence) = (round.verdict(step), convergence());
            self.rounds.push(FinishedRound { round, verdict, at: transition.event.at.to_string(), convergence });
        } else if let (Event::PersonAnswered { .. }, Some(last)) = (step.event, self.rounds.last_mut()) {
            // The findings of a partial round count once a person decides to proceed without the missing reviews.
            let convergence = convergence();
            if convergence.changes_something() {
                last.convergence = convergence;
            }
        }
    }
}
