//! Statistics per role (cost and time), per reviewer (results of their findings) and per phase (working time).

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use signoff_core::ledger::FindingState;
use signoff_core::machine::AttemptRole;

use crate::show::{AttemptOutcome, AttemptRow, LedgerLine};

/// Cost and time of the attempts of one role.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct RoleStats {
    /// `implement`, `fix`, `review`, `check`, …
    pub role: String,
    pub attempts: u64,
    /// Sum of the working times; parallel attempts each count.
    pub duration_ms: u64,
    pub cost_usd: f64,
    /// At least part of the cost is computed from list prices; omitted if false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cost_is_estimated: bool,
    pub input_tokens: u64,
    pub output_tokens: u64,
}

/// The findings of one reviewer, and its cost and time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct ReviewerStats {
    pub reviewer: String,
    /// Number of attempts.
    pub attempts: u64,
    /// Number of findings it reported, alone or with others, without pending ones.
    pub raised: u64,
    /// Of these, findings that were fixed or deferred, or closed once and reopened.
    pub upheld: u64,
    pub refuted: u64,
    pub out_of_scope: u64,
    /// Findings without any decision in a loop that has ended.
    pub open: u64,
    /// Findings in a loop that has not ended.
    pub pending: u64,
    /// Upheld divided by raised; null if nothing was raised.
    pub precision: Option<f64>,
    pub duration_ms: u64,
    pub cost_usd: f64,
    /// At least part of the cost is computed from list prices; omitted if false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cost_is_estimated: bool,
}

/// Accumulates the statistics per role and per reviewer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StatsByGroup {
    roles: BTreeMap<String, RoleStats>,
    reviewers: BTreeMap<String, ReviewerStats>,
}

impl StatsByGroup {
    /// Adds a loop: its attempts, its findings, and whether it has ended.
    pub fn add_loop(&mut self, attempts: &[AttemptRow], ledger: &[LedgerLine], is_over: bool) {
        attempts.iter().for_each(|attempt| self.add_attempt(attempt));
        // Findings inherited from an earlier task count for that task.
        for line in ledger.iter().filter(|line| !line.is_inherited()) {
            for source in &line.finding.sources {
                self.reviewer(source).add_finding(line, is_over);
            }
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (role, stats) in &other.roles {
            self.roles.entry(role.clone()).or_default().add(stats);
        }
        for (name, stats) in &other.reviewers {
            self.reviewer(name).add(stats);
        }
    }

    fn add_attempt(&mut self, attempt: &AttemptRow) {
        self.roles.entry(attempt.role.clone()).or_default().add_attempt(attempt);
        // Findings of the project's checks have this source, but `check` attempts have no reviewer.
        let checks = (AttemptRole::parse(&attempt.role) == Some(AttemptRole::Check)).then_some("checks");
        if let Some(name) = attempt.reviewer.as_deref().or(checks) {
            let reviewer = self.reviewer(name);
            reviewer.attempts += 1;
            reviewer.duration_ms += attempt.duration_ms;
            reviewer.cost_usd = add_usd(reviewer.cost_usd, attempt.cost_usd);
            reviewer.cost_is_estimated |= attempt.cost_is_estimated;
        }
    }

    fn reviewer(&mut self, name: &str) -> &mut ReviewerStats {
        self.reviewers.entry(name.to_owned()).or_default()
    }

    /// The roles, longest working time first.
    pub fn roles(&self) -> Vec<RoleStats> {
        let mut roles: Vec<_> =
            self.roles.iter().map(|(role, stats)| RoleStats { role: role.clone(), ..stats.clone() }).collect();
        roles.sort_by_key(|role| std::cmp::Reverse(role.duration_ms));
        roles
    }

    /// The reviewers, by name.
    pub fn reviewers(&self) -> Vec<ReviewerStats> {
        let precise = |(name, stats): (&String, &ReviewerStats)| ReviewerStats {
            reviewer: name.clone(),
            precision: (stats.raised > 0).then(|| round_to_thousandths(stats.upheld as f64 / stats.raised as f64)),
            ..stats.clone()
        };
        self.reviewers.iter().map(precise).collect()
    }
}

impl RoleStats {
    pub fn add_attempt(&mut self, attempt: &AttemptRow) {
        self.add(&Self {
            role: String::new(),
            attempts: 1,
            duration_ms: attempt.duration_ms,
            cost_usd: attempt.cost_usd,
            cost_is_estimated: attempt.cost_is_estimated,
            input_tokens: attempt.input_tokens,
            output_tokens: attempt.output_tokens,
        });
    }

    fn add(&mut self, other: &Self) {
        let Self { role: _, attempts, duration_ms, cost_usd, cost_is_estimated, input_tokens, output_tokens } = other;
        self.attempts += attempts;
        self.duration_ms += duration_ms;
        self.cost_usd = add_usd(self.cost_usd, *cost_usd);
        self.cost_is_estimated |= cost_is_estimated;
        self.input_tokens += input_tokens;
        self.output_tokens += output_tokens;
    }
}

impl ReviewerStats {
    fn add(&mut self, other: &Self) {
        // The precision is computed at the end.
        let Self { reviewer: _, precision: _, attempts, raised, upheld, refuted, .. } = other;
        let Self { out_of_scope, open, pending, duration_ms, cost_usd, cost_is_estimated, .. } = other;
        self.attempts += attempts;
        self.raised += raised;
        self.upheld += upheld;
        self.refuted += refuted;
        self.out_of_scope += out_of_scope;
        self.open += open;
        self.pending += pending;
        self.duration_ms += duration_ms;
        self.cost_usd = add_usd(self.cost_usd, *cost_usd);
        self.cost_is_estimated |= cost_is_estimated;
    }

    fn add_finding(&mut self, line: &LedgerLine, is_over: bool) {
        let counter = match line.state {
            FindingState::Fixed | FindingState::Deferred => &mut self.upheld,
            FindingState::Refuted => &mut self.refuted,
            FindingState::OutOfScope => &mut self.out_of_scope,
            FindingState::Open if !is_over => {
                self.pending += 1;
                return;
            }
            FindingState::Open if line.decisions.is_empty() => &mut self.open,
            FindingState::Open => &mut self.upheld,
        };
        *counter += 1;
        self.raised += 1;
    }
}

/// Adds dollars and rounds to millionths, to hide floating-point errors.
pub(crate) fn add_usd(sum: f64, more: f64) -> f64 {
    ((sum + more) * 1_000_000.0).round() / 1_000_000.0
}

pub(crate) fn round_to_thousandths(share: f64) -> f64 {
    (share * 1_000.0).round() / 1_000.0
}

/// The time one phase took, over all visits of all loops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PhaseStats {
    pub phase: String,
    /// Number of times a loop went through it. Fixes are part of their gate.
    pub visits: u64,
    /// The median; for an even number of visits, the mean of the two in the middle.
    pub median_ms: u64,
    /// The 90th percentile.
    pub p90_ms: u64,
    pub max_ms: u64,
}

/// The durations of all visits by phase, eight bytes each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PhaseTimes {
    visits: BTreeMap<String, Vec<u64>>,
}

impl PhaseTimes {
    /// Adds the attempts of one loop.
    pub fn add_attempts(&mut self, attempts: &[AttemptRow]) {
        for (phase, took) in visits(attempts) {
            self.visits.entry(phase).or_default().push(took);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (phase, visits) in &other.visits {
            self.visits.entry(phase.clone()).or_default().extend(visits);
        }
    }

    /// The phases, slowest first.
    pub fn all(&self) -> Vec<PhaseStats> {
        let stats = |(phase, visits): (&String, &Vec<u64>)| {
            let mut sorted = visits.clone();
            sorted.sort_unstable();
            let rank = |percent: usize| percentile(&sorted, percent);
            PhaseStats {
                phase: phase.clone(),
                visits: sorted.len() as u64,
                median_ms: median(&sorted),
                p90_ms: rank(90),
                max_ms: rank(100),
            }
        };
        let total = |phase: &str| self.visits.get(phase).map_or(0, |visits| visits.iter().sum::<u64>());
        let mut phases: Vec<_> = self.visits.iter().map(stats).collect();
        phases.sort_by_key(|stats| std::cmp::Reverse((stats.median_ms, total(&stats.phase))));
        phases
    }
}

/// The median of a sorted list.
fn median(sorted: &[u64]) -> u64 {
    let middle = sorted.len() / 2;
    let upper = sorted.get(middle).copied().unwrap_or(0);
    let lower = middle.checked_sub(1).and_then(|at| sorted.get(at)).copied().unwrap_or(upper);
    if sorted.len().is_multiple_of(2) { lower.midpoint(upper) } else { upper }
}

/// The percentile of a sorted list, by the nearest-rank method.
pub(crate) fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

/// Each visit of a phase with its working time. Overlapping attempts, such as parallel reviewers, count once.
/// Idle time, waiting for a person and interrupted attempts do not count.
fn visits(attempts: &[AttemptRow]) -> Vec<(String, u64)> {
    let mut worked: Vec<_> = attempts.iter().filter_map(working_time).collect();
    worked.sort_by_key(|(_, from, to)| (*from, *to));
    let mut visits: Vec<(String, u64)> = Vec::new();
    let mut until: Option<Timestamp> = None;
    for (phase, from, to) in worked {
        if visits.last().is_none_or(|(previous, _)| previous != phase) {
            visits.push((phase.to_owned(), 0));
            until = None;
        }
        let from = until.map_or(from, |until| from.max(until));
        if let (Some((_, took)), Ok(more)) = (visits.last_mut(), u64::try_from(to.duration_since(from).as_millis())) {
            *took += more;
        }
        until = Some(until.map_or(to, |until| until.max(to)));
    }
    visits
}

fn working_time(attempt: &AttemptRow) -> Option<(&str, Timestamp, Timestamp)> {
    let cut_off = attempt.outcome.is_none_or(AttemptOutcome::is_cut_off);
    let (from, to) = (attempt.started_at.parse().ok()?, attempt.ended_at.as_ref()?.parse().ok()?);
    (!cut_off).then_some((attempt.phase.as_str(), from, to))
}
