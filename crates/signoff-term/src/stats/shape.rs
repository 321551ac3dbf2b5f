//! The shape of `stats --json`.

use schemars::JsonSchema;
use serde::Serialize;

use super::share::thousandths;
use super::{ByPhase, ByReviewer, ByRole, Stats};
use crate::json::VERSION;

/// `stats --json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StatsReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    /// Only what was begun at that time or later; null is everything.
    pub since: Option<String>,
    /// Only runs of this preset; null is all.
    pub preset: Option<String>,
    /// The runs of which something counts.
    pub runs: u64,
    pub tasks: TaskCounts,
    pub cycles_to_approval: CyclesToApproval,
    /// How tasks ended, the most frequent first.
    pub stop_reasons: Vec<StopReason>,
    pub cost: Money,
    pub reviewers: Vec<ByReviewer>,
    pub roles: Vec<ByRole>,
    /// The slowest first.
    pub phases: Vec<ByPhase>,
    /// Attempts that came to nothing, the most frequent first.
    pub failures: Vec<AgentFailures>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct TaskCounts {
    pub all: u64,
    /// By their reviewers.
    pub approved: u64,
    /// By a person.
    pub accepted: u64,
    /// They ended some other way.
    pub not_approved: u64,
    pub unfinished: u64,
}

/// How many reviews it took until the reviewers approved.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CyclesToApproval {
    /// Null where nothing was approved.
    pub median: Option<f64>,
    pub mean: Option<f64>,
    pub distribution: Vec<WithCycles>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WithCycles {
    pub cycles: u32,
    pub tasks: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StopReason {
    /// `approved`, `accepted`, `unreviewed`, `exhausted`, `failed`, …
    pub outcome: String,
    /// A code of the documented list; null where there is nothing to explain.
    pub reason: Option<String>,
    pub tasks: u64,
}

/// What all of it cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct Money {
    pub total_usd: f64,
    /// The cost is worked out from list prices, at least in part.
    pub is_estimated: bool,
    /// What the approved tasks themselves cost, on average; null where nothing was approved.
    pub per_approved_usd: Option<f64>,
    /// All that was spent by the number of approved tasks: what came to nothing, what is unfinished and what a person
    /// accepted has to be paid too.
    pub all_in_per_approved_usd: Option<f64>,
    pub input_tokens: u64,
    pub output_tokens: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AgentFailures {
    pub agent: String,
    /// How the attempts ended, as `show --json` says it.
    pub outcome: &'static str,
    pub times: u64,
}

impl TaskCounts {
    pub(super) fn add(&mut self, other: &Self) {
        let Self { all, approved, accepted, not_approved, unfinished } = other;
        self.all += all;
        self.approved += approved;
        self.accepted += accepted;
        self.not_approved += not_approved;
        self.unfinished += unfinished;
    }
}

impl Money {
    /// Adds what was spent; what it comes to for each is worked out at the end.
    pub(super) fn add(&mut self, other: &Self) {
        self.total_usd = super::plus(self.total_usd, other.total_usd);
        self.is_estimated |= other.is_estimated;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
    }
}

pub(super) fn report(stats: &Stats) -> StatsReport {
    let approved = stats.tasks.approved;
    let each = |sum: f64| (approved > 0).then(|| super::plus(sum / approved as f64, 0.0));
    StatsReport {
        version: VERSION,
        since: stats.filter.since.map(|since| since.to_string()),
        preset: stats.filter.preset.clone(),
        runs: stats.runs,
        tasks: stats.tasks,
        cycles_to_approval: cycles(stats),
        stop_reasons: stops(stats),
        cost: Money {
            per_approved_usd: each(stats.approved_usd),
            all_in_per_approved_usd: each(stats.money.total_usd),
            ..stats.money
        },
        reviewers: stats.shares.reviewers(),
        roles: stats.shares.roles(),
        phases: stats.phases.all(),
        failures: failures(stats),
    }
}

fn cycles(stats: &Stats) -> CyclesToApproval {
    let all: u64 = stats.cycles.values().sum();
    let sum: u64 = stats.cycles.iter().map(|(cycles, tasks)| u64::from(*cycles) * tasks).sum();
    let distribution = stats.cycles.iter().map(|(&cycles, &tasks)| WithCycles { cycles, tasks });
    let some = |number: f64| (all > 0).then_some(number);
    CyclesToApproval {
        median: some((at(stats, all.saturating_sub(1) / 2) + at(stats, all / 2)) / 2.0),
        mean: some(thousandths(sum as f64 / all.max(1) as f64)),
        distribution: distribution.collect(),
    }
}

/// The cycles of the task at this place, counted from 0, were they all in order.
fn at(stats: &Stats, place: u64) -> f64 {
    let mut passed = 0;
    let reached = stats.cycles.iter().find(|(_, tasks)| {
        passed += **tasks;
        passed > place
    });
    reached.map_or(0.0, |(cycles, _)| f64::from(*cycles))
}

fn stops(stats: &Stats) -> Vec<StopReason> {
    let of = |((outcome, reason), tasks): (&(String, Option<String>), &u64)| StopReason {
        outcome: outcome.clone(),
        reason: reason.clone(),
        tasks: *tasks,
    };
    let mut stops: Vec<_> = stats.stops.iter().map(of).collect();
    stops.sort_by_key(|stop| std::cmp::Reverse(stop.tasks));
    stops
}

fn failures(stats: &Stats) -> Vec<AgentFailures> {
    let of = |((agent, outcome), times): (&(String, &'static str), &u64)| AgentFailures {
        agent: agent.clone(),
        outcome,
        times: *times,
    };
    let mut failures: Vec<_> = stats.failures.iter().map(of).collect();
    failures.sort_by_key(|failure| std::cmp::Reverse(failure.times));
    failures
}
