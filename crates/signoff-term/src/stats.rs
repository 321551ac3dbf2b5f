//! Statistics over all runs: reviews until approval, stop reasons, findings per reviewer, cost and time.

mod breakdown;
mod report;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use signoff_core::ids::{LoopId, TaskId};
use signoff_core::ledger::{FindingState, Ledger, LedgerEntry};
use signoff_core::machine::{OutcomeKind, Reason};
use signoff_core::view::LoopRow;

pub(crate) use breakdown::add_usd;
pub use breakdown::{PhaseStats, PhaseTimes, ReviewerStats, RoleStats, StatsByGroup};
pub use report::{AgentFailures, CostTotals, CycleCount, CyclesToApproval, StatsReport, StopReason, TaskCounts, text};

use crate::show::{AttemptOutcome, AttemptRow, RunHistory, usd};

/// Selects the work to count.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Only loops that started at this time or later.
    pub since: Option<Timestamp>,
    /// Only runs of this preset.
    pub preset: Option<String>,
}

/// Accumulates the statistics, one run at a time. Only numbers are kept of each log.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StatsCollector {
    filter: Filter,
    voided: BTreeSet<TaskId>,
    runs: u64,
    tasks: TaskCounts,
    /// Number of approved tasks by number of reviews.
    cycles: BTreeMap<u32, u64>,
    stops: BTreeMap<(Option<OutcomeKind>, Option<Reason>), u64>,
    money: CostTotals,
    approved_usd: f64,
    groups: StatsByGroup,
    phases: PhaseTimes,
    failures: BTreeMap<(String, AttemptOutcome), u64>,
}

impl StatsCollector {
    pub fn new(filter: Filter) -> Self {
        Self { filter, ..Self::default() }
    }

    /// Counts these tasks as not approved: their branch has changed since, which is not in any log.
    #[must_use]
    pub fn with_voided(self, voided: BTreeSet<TaskId>) -> Self {
        Self { voided, ..self }
    }

    /// Adds one run, whose log was read with `RunHistory::extend_attempts`.
    pub fn add_run(&mut self, history: &RunHistory) {
        let preset = history.state.preset();
        if preset.is_none() || self.filter.preset.as_deref().is_some_and(|wanted| preset != Some(wanted)) {
            return;
        }
        let mut counts = false;
        for loop_id in history.loops() {
            counts |= self.add_loop(history, loop_id);
        }
        self.runs += u64::from(counts);
    }

    /// Adds one loop, unless it started too early. Loops of checkpoints count too.
    fn add_loop(&mut self, history: &RunHistory, loop_id: &LoopId) -> bool {
        let attempts = history.attempts(loop_id);
        let begun = attempts.iter().filter_map(|attempt| attempt.started_at.parse::<Timestamp>().ok()).min();
        if self.filter.since.is_some_and(|since| begun.is_none_or(|begun| begun < since)) {
            return false;
        }
        let row = history.state.row(loop_id);
        let is_over = row.as_ref().is_some_and(|row| row.status.is_over());
        self.groups.add_loop(&attempts, &history.ledger(loop_id), is_over);
        self.phases.add_attempts(&attempts);
        attempts.iter().for_each(|attempt| self.add_attempt(attempt));
        if let Some(row) = row.filter(|row| row.task.is_some()) {
            self.add_task(&row, usd(row.usage));
        }
        true
    }

    /// Adds all runs of `other`.
    pub fn merge(&mut self, other: &Self) {
        // Both have the same filter, so it is not applied again.
        let Self { filter: _, voided: _, runs, tasks, cycles, stops, money, approved_usd, groups, phases, failures } =
            other;
        self.runs += runs;
        self.tasks.add(tasks);
        self.money.add(money);
        self.approved_usd = add_usd(self.approved_usd, *approved_usd);
        self.groups.merge(groups);
        self.phases.merge(phases);
        cycles.iter().for_each(|(cycles, tasks)| *self.cycles.entry(*cycles).or_default() += tasks);
        stops.iter().for_each(|(stop, tasks)| *self.stops.entry(*stop).or_default() += tasks);
        failures.iter().for_each(|(failure, times)| *self.failures.entry(failure.clone()).or_default() += times);
    }

    fn add_attempt(&mut self, attempt: &AttemptRow) {
        self.money.total_usd = add_usd(self.money.total_usd, attempt.cost_usd);
        self.money.is_estimated |= attempt.cost_is_estimated;
        self.money.input_tokens += attempt.input_tokens;
        self.money.output_tokens += attempt.output_tokens;
        if let Some(outcome) = attempt.outcome.filter(|outcome| outcome.is_failure()) {
            *self.failures.entry((attempt.agent.clone(), outcome)).or_default() += 1;
        }
    }

    fn add_task(&mut self, row: &LoopRow, cost: f64) {
        self.tasks.all += 1;
        if !row.status.is_over() {
            self.tasks.unfinished += 1;
            return;
        }
        let is_voided = row.task.is_some_and(|task| self.voided.contains(&task));
        let (outcome, reason) = if is_voided {
            (Some(OutcomeKind::CompletedWithIssues), Some(Reason::ChangedAfterReview))
        } else {
            (row.outcome, row.reason)
        };
        match outcome {
            Some(OutcomeKind::Approved) => {
                self.tasks.approved += 1;
                self.approved_usd = add_usd(self.approved_usd, cost);
                *self.cycles.entry(row.cycle).or_default() += 1;
            }
            Some(OutcomeKind::Accepted) => self.tasks.accepted += 1,
            Some(_) | None => self.tasks.not_approved += 1,
        }
        *self.stops.entry((outcome, reason)).or_default() += 1;
    }

    /// The report of the accumulated numbers.
    pub fn report(&self) -> StatsReport {
        report::build(self)
    }
}

/// The findings by the effect of a round. Each finding is in one count, besides `open_after`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Convergence {
    /// Reported for the first time.
    pub new: u32,
    /// Open before and after.
    pub carried: u32,
    /// Closed before, open again.
    pub regressed: u32,
    /// Open before, fixed now.
    pub fixed: u32,
    /// Reported again, but still refuted.
    pub refuted: u32,
    /// Reported again, but still deferred or out of scope.
    pub out_of_scope: u32,
    /// All findings that are open after the round.
    pub open_after: u32,
}

impl Convergence {
    /// Compares two states of a ledger. New findings are always appended, so entries match by index.
    pub fn between(before: &Ledger, after: &Ledger) -> Self {
        let mut convergence = Self::default();
        let before = before.entries().iter().map(Some).chain(std::iter::repeat(None));
        for (entry, previous) in after.entries().iter().zip(before) {
            convergence.open_after += u32::from(entry.state == FindingState::Open);
            if let Some(counter) = convergence.counter(entry, previous) {
                *counter += 1;
            }
        }
        convergence
    }

    fn counter(&mut self, entry: &LedgerEntry, previous: Option<&LedgerEntry>) -> Option<&mut u32> {
        let Some(previous) = previous else { return Some(&mut self.new) };
        let again = entry.seen.len() > previous.seen.len();
        let was_open = previous.state == FindingState::Open;
        match entry.state {
            FindingState::Open if was_open => Some(&mut self.carried),
            FindingState::Open => Some(&mut self.regressed),
            FindingState::Fixed if was_open => Some(&mut self.fixed),
            FindingState::Refuted if again => Some(&mut self.refuted),
            FindingState::Deferred | FindingState::OutOfScope if again => Some(&mut self.out_of_scope),
            FindingState::Fixed | FindingState::Refuted | FindingState::Deferred | FindingState::OutOfScope => None,
        }
    }

    /// Whether the round changed anything.
    pub fn changes_something(&self) -> bool {
        let Self { new, regressed, fixed, refuted, out_of_scope, carried: _, open_after: _ } = self;
        new + regressed + fixed + refuted + out_of_scope > 0
    }
}
