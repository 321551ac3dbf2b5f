//! The report of `signoff stats`: its types, and its text.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use signoff_core::machine::{OutcomeKind, Reason};
use signoff_core::view::inbox::Action;

use super::breakdown::round_to_thousandths;
use super::{PhaseStats, ReviewerStats, RoleStats, StatsCollector};
use crate::fit::{align_rows, count, counts, dollars, format_duration, truncate_line};
use crate::json::VERSION;
use crate::show::AttemptOutcome;

/// `stats --json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StatsReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    /// Only work that started at this time or later; null: everything.
    pub since: Option<String>,
    /// Only runs of this preset; null: all.
    pub preset: Option<String>,
    /// Number of runs with at least one counted loop.
    pub runs: u64,
    pub tasks: TaskCounts,
    pub cycles_to_approval: CyclesToApproval,
    /// How tasks ended, most frequent first.
    pub stop_reasons: Vec<StopReason>,
    pub cost: CostTotals,
    pub reviewers: Vec<ReviewerStats>,
    pub roles: Vec<RoleStats>,
    /// Slowest first.
    pub phases: Vec<PhaseStats>,
    /// Failed attempts, most frequent first.
    pub failures: Vec<AgentFailures>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct TaskCounts {
    pub all: u64,
    /// By their reviewers.
    pub approved: u64,
    /// By a person.
    pub accepted: u64,
    /// Ended in any other way.
    pub not_approved: u64,
    pub unfinished: u64,
}

/// Number of reviews until the reviewers approved.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CyclesToApproval {
    /// Null if nothing was approved.
    pub median: Option<f64>,
    pub mean: Option<f64>,
    pub distribution: Vec<CycleCount>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CycleCount {
    pub cycles: u32,
    pub tasks: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StopReason {
    /// `approved`, `accepted`, `unreviewed`, `exhausted`, `failed`, …
    #[serde(serialize_with = "outcome_name")]
    #[schemars(with = "String")]
    pub outcome: Option<OutcomeKind>,
    /// A documented reason code; null if there is no reason.
    #[schemars(with = "Option<String>")]
    pub reason: Option<Reason>,
    pub tasks: u64,
}

impl StopReason {
    pub fn outcome_as_str(&self) -> &'static str {
        self.outcome.map_or("unreviewed", <&str>::from)
    }

    pub fn reason_as_str(&self) -> Option<&'static str> {
        self.reason.map(<&str>::from)
    }
}

fn outcome_name<S: Serializer>(outcome: &Option<OutcomeKind>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(outcome.map_or("unreviewed", <&str>::from))
}

/// The total cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct CostTotals {
    pub total_usd: f64,
    /// At least part of the cost is computed from list prices.
    pub is_estimated: bool,
    /// Mean cost of an approved task; null if nothing was approved.
    pub per_approved_usd: Option<f64>,
    /// Total cost divided by the number of approved tasks. Includes failed, unfinished and accepted tasks.
    pub all_in_per_approved_usd: Option<f64>,
    pub input_tokens: u64,
    pub output_tokens: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AgentFailures {
    pub agent: String,
    /// The outcome of the attempts, as in `show --json`.
    #[schemars(with = "String")]
    pub outcome: AttemptOutcome,
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

impl CostTotals {
    /// Adds the totals; the values per task are computed at the end.
    pub(super) fn add(&mut self, other: &Self) {
        self.total_usd = super::add_usd(self.total_usd, other.total_usd);
        self.is_estimated |= other.is_estimated;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
    }
}

pub(super) fn build(stats: &StatsCollector) -> StatsReport {
    let approved = stats.tasks.approved;
    let per_approved = |sum: f64| (approved > 0).then(|| super::add_usd(sum / approved as f64, 0.0));
    StatsReport {
        version: VERSION,
        since: stats.filter.since.map(|since| since.to_string()),
        preset: stats.filter.preset.clone(),
        runs: stats.runs,
        tasks: stats.tasks,
        cycles_to_approval: cycles(stats),
        stop_reasons: stops(stats),
        cost: CostTotals {
            per_approved_usd: per_approved(stats.approved_usd),
            all_in_per_approved_usd: per_approved(stats.money.total_usd),
            ..stats.money
        },
        reviewers: stats.groups.reviewers(),
        roles: stats.groups.roles(),
        phases: stats.phases.all(),
        failures: failures(stats),
    }
}

fn cycles(stats: &StatsCollector) -> CyclesToApproval {
    let all: u64 = stats.cycles.values().sum();
    let sum: u64 = stats.cycles.iter().map(|(cycles, tasks)| u64::from(*cycles) * tasks).sum();
    let distribution = stats.cycles.iter().map(|(&cycles, &tasks)| CycleCount { cycles, tasks });
    let some = |number: f64| (all > 0).then_some(number);
    CyclesToApproval {
        median: some((cycles_at(stats, all.saturating_sub(1) / 2) + cycles_at(stats, all / 2)) / 2.0),
        mean: some(round_to_thousandths(sum as f64 / all.max(1) as f64)),
        distribution: distribution.collect(),
    }
}

/// The number of cycles of the task at this index in sorted order.
fn cycles_at(stats: &StatsCollector, index: u64) -> f64 {
    let mut passed = 0;
    let reached = stats.cycles.iter().find(|(_, tasks)| {
        passed += **tasks;
        passed > index
    });
    reached.map_or(0.0, |(cycles, _)| f64::from(*cycles))
}

fn stops(stats: &StatsCollector) -> Vec<StopReason> {
    let stops = stats.stops.iter();
    let mut stops: Vec<StopReason> = stops
        .map(|((outcome, reason), tasks)| StopReason { outcome: *outcome, reason: *reason, tasks: *tasks })
        .collect();
    stops.sort_by_key(|stop| (std::cmp::Reverse(stop.tasks), stop.outcome_as_str(), stop.reason_as_str()));
    stops
}

fn failures(stats: &StatsCollector) -> Vec<AgentFailures> {
    let failures = stats.failures.iter();
    let mut failures: Vec<_> = failures
        .map(|((agent, outcome), times)| AgentFailures { agent: agent.clone(), outcome: *outcome, times: *times })
        .collect();
    failures
        .sort_by_key(|failure| (std::cmp::Reverse(failure.times), failure.agent.clone(), failure.outcome.into_str()));
    failures
}

/// Maximum number of rows per table; the JSON has all.
const SHOWN: usize = 20;

/// One table per topic, without empty ones.
pub fn text(report: &StatsReport) -> String {
    if report.runs == 0 {
        return format!("No runs{}.\n  {}    works the tasks\n", limits(report), Action::WorkQueue);
    }
    let mut parts = vec![head(report)];
    parts.extend(cycles_table(report));
    parts.extend(stops_table(report));
    parts.extend(reviewers(&report.reviewers));
    parts.extend(phases(&report.phases));
    parts.extend(roles(&report.roles));
    parts.extend(failures_table(report));
    parts.join("\n")
}

/// ` of review since 2026-01-29T10:00:00Z`: what the statistics are limited to.
fn limits(report: &StatsReport) -> String {
    let preset = report.preset.as_ref().map(|preset| format!(" of {}", truncate_line(preset, 40))).unwrap_or_default();
    let since = report.since.as_ref().map(|since| format!(" since {since}")).unwrap_or_default();
    format!("{preset}{since}")
}

fn head(report: &StatsReport) -> String {
    let (tasks, cost) = (&report.tasks, &report.cost);
    let ended = counts([
        (tasks.approved, "approved"),
        (tasks.accepted, "accepted by a person"),
        (tasks.not_approved, "not approved"),
        (tasks.unfinished, "unfinished"),
    ]);
    let money = |usd: f64| dollars(usd, cost.is_estimated);
    let average_line = cost.per_approved_usd.zip(cost.all_in_per_approved_usd).map(|(own, all)| {
        format!("  an approved task cost {}, {} including all other spending\n", money(own), money(all))
    });
    format!(
        "{} in {}{}: {}\n  {} in all, {} tokens in, {} out\n{}",
        count(tasks.all, "task"),
        count(report.runs, "run"),
        limits(report),
        if ended.is_empty() { "none" } else { &ended },
        money(cost.total_usd),
        cost.input_tokens,
        cost.output_tokens,
        average_line.unwrap_or_default(),
    )
}

fn cycles_table(report: &StatsReport) -> Option<String> {
    let cycles = &report.cycles_to_approval;
    let title = format!("Reviews until approval (median {}, mean {}):", cycles.median?, cycles.mean?);
    let row = |cycle_count: &CycleCount| vec![count(cycle_count.cycles, "review"), count(cycle_count.tasks, "task")];
    section(&title, &[], cycles.distribution.iter().map(row).collect())
}

fn stops_table(report: &StatsReport) -> Option<String> {
    let row = |stop: &StopReason| {
        let reason = stop.reason_as_str().unwrap_or_default();
        vec![stop.outcome_as_str().to_owned(), reason.to_owned(), count(stop.tasks, "task")]
    };
    section("Why tasks ended:", &[], report.stop_reasons.iter().map(row).collect())
}

fn reviewers(reviewers: &[ReviewerStats]) -> Option<String> {
    let row = |reviewer: &ReviewerStats| {
        vec![
            truncate_line(&reviewer.reviewer, 40),
            reviewer.raised.to_string(),
            reviewer.upheld.to_string(),
            reviewer.refuted.to_string(),
            reviewer.out_of_scope.to_string(),
            reviewer.open.to_string(),
            reviewer.precision.map_or_else(|| "-".to_owned(), |share| format!("{:.0}%", share * 100.0)),
            dollars(reviewer.cost_usd, reviewer.cost_is_estimated),
            format_duration(reviewer.duration_ms),
        ]
    };
    let head = ["reviewer", "raised", "upheld", "refuted", "out of scope", "open", "precision", "cost", "time"];
    section("Reviewers:", &head, reviewers.iter().map(row).collect())
}

fn phases(phases: &[PhaseStats]) -> Option<String> {
    let row = |phase: &PhaseStats| {
        let (name, visits) = (truncate_line(&phase.phase, 40), phase.visits.to_string());
        vec![
            name,
            visits,
            format_duration(phase.median_ms),
            format_duration(phase.p90_ms),
            format_duration(phase.max_ms),
        ]
    };
    section("Slowest phases:", &["phase", "visits", "median", "p90", "longest"], phases.iter().map(row).collect())
}

fn roles(roles: &[RoleStats]) -> Option<String> {
    let row = |role: &RoleStats| {
        let cost = dollars(role.cost_usd, role.cost_is_estimated);
        let tokens = [role.input_tokens, role.output_tokens].map(|tokens| tokens.to_string());
        let [input, output] = tokens;
        vec![
            truncate_line(&role.role, 40),
            role.attempts.to_string(),
            format_duration(role.duration_ms),
            cost,
            input,
            output,
        ]
    };
    let head = ["role", "attempts", "time", "cost", "tokens in", "out"];
    section("Roles:", &head, roles.iter().map(row).collect())
}

fn failures_table(report: &StatsReport) -> Option<String> {
    let row = |failures: &AgentFailures| {
        vec![
            truncate_line(&failures.agent, 40),
            failures.outcome.into_str().replace('_', " "),
            count(failures.times, "time"),
        ]
    };
    section("Failed attempts:", &[], report.failures.iter().map(row).collect())
}

/// A titled table. With a heading, all columns but the first are right-aligned.
fn section(title: &str, head: &[&str], mut rows: Vec<Vec<String>>) -> Option<String> {
    let more = rows.len().saturating_sub(SHOWN);
    rows.truncate(SHOWN);
    if rows.is_empty() {
        return None;
    }
    if !head.is_empty() {
        rows.insert(0, head.iter().map(|word| (*word).to_owned()).collect());
    }
    let lines = align_rows(&rows, |column| !head.is_empty() && column > 0);
    let mut out = format!("{title}\n");
    out.extend(lines.iter().map(|line| format!("  {line}\n")));
    if more > 0 {
        out.push_str(&format!("  and {more} more: `signoff stats --json` has all\n"));
    }
    Some(out)
}
