//! What all runs together tell: how many reviews it takes, why work stops, who finds what, what it costs.

mod convergence;
mod phase;
mod shape;
mod share;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use signoff_core::ids::{LoopId, TaskId};
use signoff_core::machine::Reason;
use signoff_core::view::{LoopView, Status};
use signoff_core::wire::Recorded;

pub use convergence::Convergence;
pub use phase::{ByPhase, Phases};
pub use shape::{AgentFailures, CyclesToApproval, Money, StatsReport, StopReason, TaskCounts, WithCycles};
pub(crate) use share::plus;
pub use share::{ByReviewer, ByRole, Shares};
pub use text::text;

use crate::show::{Attempt, Folded, usd};

/// Which work counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// What was begun at that time or later.
    pub since: Option<Timestamp>,
    /// Runs of this preset.
    pub preset: Option<String>,
}

/// The fold over the logs of all runs, one at a time: of a log nothing is kept but numbers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stats {
    filter: Filter,
    voided: BTreeSet<TaskId>,
    runs: u64,
    tasks: TaskCounts,
    /// How many tasks were approved after so many reviews.
    cycles: BTreeMap<u32, u64>,
    stops: BTreeMap<(String, Option<String>), u64>,
    money: Money,
    approved_usd: f64,
    shares: Shares,
    phases: Phases,
    failures: BTreeMap<(String, &'static str), u64>,
}

impl Stats {
    pub fn new(filter: Filter) -> Self {
        Self { filter, ..Self::default() }
    }

    /// Takes the approval from tasks whose branch has moved since: no log tells that.
    #[must_use]
    pub fn without(self, voided: BTreeSet<TaskId>) -> Self {
        Self { voided, ..self }
    }

    /// Takes in the whole log of one run.
    pub fn take(&mut self, log: &[Recorded]) {
        self.take_run(&Folded::counted(log));
    }

    /// Takes in one run, whose log was [counted](Folded::go_on_counting).
    pub fn take_run(&mut self, folded: &Folded) {
        let preset = folded.view.preset();
        if preset.is_none() || self.filter.preset.as_deref().is_some_and(|wanted| preset != Some(wanted)) {
            return;
        }
        let mut counts = false;
        for loop_id in folded.loops() {
            counts |= self.take_loop(folded, loop_id);
        }
        self.runs += u64::from(counts);
    }

    /// Takes in one loop, unless it was begun too early. A checkpoint's is one as well.
    fn take_loop(&mut self, folded: &Folded, loop_id: &LoopId) -> bool {
        let attempts = folded.attempts(loop_id);
        let begun = attempts.iter().filter_map(|one| one.started_at.parse::<Timestamp>().ok()).min();
        if self.filter.since.is_some_and(|since| begun.is_none_or(|begun| begun < since)) {
            return false;
        }
        let row = folded.view.row(loop_id);
        let is_over = row.as_ref().is_some_and(|row| is_over(row.status));
        self.shares.take(&attempts, &folded.ledger(loop_id), is_over);
        self.phases.take(&attempts);
        attempts.iter().for_each(|attempt| self.attempt(attempt));
        if let Some(row) = row.filter(|row| row.task.is_some()) {
            self.task(&row, usd(row.usage));
        }
        true
    }

    /// Both, as if all runs of the other had been taken in here.
    pub fn add(&mut self, other: &Self) {
        // Who counts is not asked again: the filter is the same.
        let Self {
            filter: _,
            voided: _,
            runs,
            tasks,
            cycles,
            stops,
            money,
            approved_usd,
            shares,
            phases,
            failures,
        } = other;
        self.runs += runs;
        self.tasks.add(tasks);
        self.money.add(money);
        self.approved_usd = plus(self.approved_usd, *approved_usd);
        self.shares.add(shares);
        self.phases.add(phases);
        cycles.iter().for_each(|(cycles, tasks)| *self.cycles.entry(*cycles).or_default() += tasks);
        stops.iter().for_each(|(stop, tasks)| *self.stops.entry(stop.clone()).or_default() += tasks);
        failures
            .iter()
            .for_each(|(failure, times)| *self.failures.entry(failure.clone()).or_default() += times);
    }

    fn attempt(&mut self, attempt: &Attempt) {
        self.money.total_usd = plus(self.money.total_usd, attempt.cost_usd);
        self.money.is_estimated |= attempt.cost_is_estimated;
        self.money.input_tokens += attempt.input_tokens;
        self.money.output_tokens += attempt.output_tokens;
        if let Some(outcome) = attempt.outcome.filter(|outcome| is_failure(outcome)) {
            *self.failures.entry((attempt.agent.clone(), outcome)).or_default() += 1;
        }
    }

    fn task(&mut self, row: &LoopView, cost: f64) {
        self.tasks.all += 1;
        if !is_over(row.status) {
            self.tasks.unfinished += 1;
            return;
        }
        let is_voided = row.task.is_some_and(|task| self.voided.contains(&task));
        let (outcome, reason) = if is_voided {
            ("completed_with_issues", Some(Reason::ChangedAfterReview))
        } else {
            (row.outcome.unwrap_or("unreviewed"), row.reason)
        };
        match outcome {
            "approved" => {
                self.tasks.approved += 1;
                self.approved_usd = plus(self.approved_usd, cost);
                *self.cycles.entry(row.cycle).or_default() += 1;
            }
            "accepted" => self.tasks.accepted += 1,
            _ => self.tasks.not_approved += 1,
        }
        let reason = reason.map(crate::words::code);
        *self.stops.entry((outcome.to_owned(), reason)).or_default() += 1;
    }

    /// What it comes to.
    pub fn report(&self) -> StatsReport {
        shape::report(self)
    }
}

fn is_over(status: Status) -> bool {
    match status {
        Status::Completed | Status::Failed | Status::Stuck | Status::Cancelled => true,
        Status::Pending | Status::InProgress | Status::Waiting | Status::Paused | Status::Blocked => false,
    }
}

/// Whether an attempt ended in a way that helps nobody. What a person stopped is none.
fn is_failure(outcome: &str) -> bool {
    const FAILURES: [&str; 14] = [
        "gave_up",
        "unclear",
        "exit_code",
        "signal",
        "timed_out",
        "silent",
        "nothing_done",
        "unusable",
        "bad_answer",
        "not_started",
        "agent_trouble",
        "lost",
        "session_gone",
        "rate_limited",
    ];
    FAILURES.contains(&outcome)
}
