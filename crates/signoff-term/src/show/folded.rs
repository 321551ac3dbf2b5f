//! One pass over the log of a run, with what is told of its loops picked out.

use std::collections::BTreeMap;

use signoff_core::ids::{AttemptId, LoopId};
use signoff_core::ledger::Entry;
use signoff_core::machine::{Event, Loop, Policy};
use signoff_core::review::{Bar, Usage};
use signoff_core::view::{RunView, TaskRow};
use signoff_core::wire::{Fact, LoopFact, Recorded};
use signoff_core::workflow::PhaseKind;

use super::attempt::{self, Times};
use super::{Attempt, Cycle, LedgerLine, PersonsDecision, Report, asked};
use crate::json::VERSION;
use crate::round::{Round, Rounds, Ruling, Step};
use crate::stats::Convergence;

/// A round with what became of it.
pub(super) struct Told {
    pub round: Round,
    pub ruling: Ruling,
    pub at: String,
    pub convergence: Convergence,
}

/// What is picked out for one loop.
#[derive(Default)]
struct Kept {
    rounds: Rounds,
    told: Vec<Told>,
    times: BTreeMap<AttemptId, Times>,
    decisions: Vec<PersonsDecision>,
}

/// What is to be picked out.
enum Wanted<'a> {
    /// All of all loops.
    All,
    /// All of one loop.
    One(&'a LoopId),
    /// Who was started and how it ended, of all loops.
    Attempts,
}

/// A log, read once: reports of any of its loops are made of it without going through it again.
#[derive(Default)]
pub struct Folded {
    pub view: RunView,
    loops: BTreeMap<LoopId, Kept>,
}

impl Folded {
    /// All loops of a log.
    pub fn of(log: &[Recorded]) -> Self {
        Self::picked(log, &Wanted::All)
    }

    /// One loop of a log, the others only as far as they concern it.
    pub fn only(log: &[Recorded], loop_id: &LoopId) -> Self {
        Self::picked(log, &Wanted::One(loop_id))
    }

    /// All loops without their rounds, for those who count: it costs half.
    pub fn counted(log: &[Recorded]) -> Self {
        Self::picked(log, &Wanted::Attempts)
    }

    /// Goes on with all loops, where the last part ended: a long log need not be held as a whole.
    pub fn go_on(&mut self, part: &[Recorded]) {
        self.take_all(part, &Wanted::All);
    }

    /// The same for those who count.
    pub fn go_on_counting(&mut self, part: &[Recorded]) {
        self.take_all(part, &Wanted::Attempts);
    }

    fn picked(log: &[Recorded], wanted: &Wanted) -> Self {
        let mut this = Self::default();
        this.take_all(log, wanted);
        this
    }

    fn take_all(&mut self, log: &[Recorded], wanted: &Wanted) {
        for recorded in log {
            self.take(recorded, wanted);
        }
    }

    fn take(&mut self, recorded: &Recorded, wanted: &Wanted) {
        let Fact::Loop(loop_id, fact) = &recorded.fact else { return self.view.apply(recorded) };
        let with_rounds = match wanted {
            Wanted::All => true,
            Wanted::One(one) if *one == loop_id => true,
            Wanted::One(_) => return self.view.apply(recorded),
            Wanted::Attempts => false,
        };
        let kept = self.loops.entry(loop_id.clone()).or_default();
        attempt::note(&mut kept.times, recorded, fact);
        let (LoopFact::Moved(event), true) = (fact, with_rounds) else { return self.view.apply(recorded) };
        kept.decisions.extend(PersonsDecision::of(recorded, event));
        let before = self.view.loop_state(loop_id).cloned().unwrap_or_default();
        self.view.apply(recorded);
        let (Some(after), Some(policy)) = (self.view.loop_state(loop_id), self.view.loop_policy(loop_id))
        else {
            return;
        };
        kept.moved(&Step { before: &before, event, after, policy, launch: None }, recorded);
    }

    /// The loops in order of their ids.
    pub fn loops(&self) -> impl Iterator<Item = &LoopId> {
        self.loops.keys()
    }

    /// Every round of a loop, in order.
    pub fn cycles(&self, loop_id: &LoopId) -> Vec<Cycle> {
        let usage: BTreeMap<AttemptId, Usage> =
            self.view.attempts(loop_id).into_iter().map(|(attempt, _, usage)| (attempt, usage)).collect();
        let told = self.loops.get(loop_id).into_iter().flat_map(|kept| &kept.told);
        told.map(|told| Cycle::of(told, &usage)).collect()
    }

    /// Every finding of a loop, open ones first. A finding of a checkpoint review is one of the loop it looked at, and
    /// is listed there alone.
    pub fn ledger(&self, loop_id: &LoopId) -> Vec<LedgerLine> {
        let (Some(this), Some(policy)) = (self.view.loop_state(loop_id), self.view.loop_policy(loop_id))
        else {
            return Vec::new();
        };
        let looked_at = loop_id.of_checkpoint().and_then(|(of, _)| self.view.loop_state(&of));
        let is_listed_there =
            |entry: &&Entry| looked_at.is_some_and(|of| of.ledger.reported_as(&entry.finding.id).is_some());
        let own = this.ledger.entries().iter().filter(|entry| !is_listed_there(entry));
        let mut ledger: Vec<_> = own.map(|entry| LedgerLine::of(entry, policy)).collect();
        ledger.sort_by_key(|line| line.state != "open");
        ledger
    }

    /// Every attempt of a loop whose start is on record.
    pub fn attempts(&self, loop_id: &LoopId) -> Vec<Attempt> {
        let none = BTreeMap::new();
        let times = self.loops.get(loop_id).map_or(&none, |kept| &kept.times);
        attempt::all(times, loop_id, &self.view)
    }

    /// Lets go what was picked out for a loop that has been told: there may be a thousand of them.
    pub fn forget(&mut self, loop_id: &LoopId) {
        self.loops.remove(loop_id);
    }

    /// Everything about the task that a loop carries.
    pub fn report(&self, task: TaskRow, loop_id: &LoopId, artifacts: Vec<String>) -> Report {
        let row = self.view.row(loop_id);
        let place = task.place.or_else(|| row.as_ref().and_then(|row| row.place));
        let (task, question) = (TaskRow { place, ..task.restated() }, row.and_then(|row| row.question));
        let decisions = self.loops.get(loop_id).map(|kept| kept.decisions.clone());
        let approved = self.view.loop_state(loop_id).and_then(Loop::approved_commit);
        Report {
            version: VERSION,
            cycles: self.cycles(loop_id),
            ledger: self.ledger(loop_id),
            attempts: self.attempts(loop_id),
            artifacts,
            decisions: decisions.unwrap_or_default(),
            approved_commit: approved.map(ToString::to_string),
            voided: None,
            question: question.map(|question| asked(question, &self.view, &task)),
            task,
        }
    }
}

impl Kept {
    fn moved(&mut self, step: &Step, recorded: &Recorded) {
        let convergence = Convergence::between(&step.before.ledger, &step.after.ledger);
        if let Some(round) = self.rounds.take(step) {
            let ruling = round.ruling(step);
            self.told.push(Told { round, ruling, at: recorded.at.to_string(), convergence });
        } else if let (Event::PersonAnswered { .. }, true, Some(last)) =
            (step.event, convergence.changes_something(), self.told.last_mut())
        {
            // What a panel said counts when a person lets it count without those who were not heard.
            last.convergence = convergence;
        }
    }
}

/// What a finding must reach to keep a phase's gate shut; whatever landing or a check reports has to be fixed.
pub(super) fn bar(policy: &Policy, phase: usize) -> Bar {
    match policy.workflow.phases.get(phase).map(|phase| &phase.kind) {
        Some(PhaseKind::Gate(judge)) => judge.gate.fail_on,
        Some(PhaseKind::Check(_) | PhaseKind::Agent { .. }) | None => Bar::Low,
    }
}
