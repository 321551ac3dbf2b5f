//! Working time per phase.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::show::AttemptRow;

/// The time one phase took, over all visits of all loops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ByPhase {
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
            match self.visits.get_mut(&phase) {
                Some(known) => known.push(took),
                None => drop(self.visits.insert(phase, vec![took])),
            }
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (phase, visits) in &other.visits {
            self.visits.entry(phase.clone()).or_default().extend(visits);
        }
    }

    /// The phases, slowest first.
    pub fn all(&self) -> Vec<ByPhase> {
        let stats = |(phase, visits): (&String, &Vec<u64>)| {
            let mut sorted = visits.clone();
            sorted.sort_unstable();
            let rank = |percent: usize| percentile(&sorted, percent);
            ByPhase {
                phase: phase.clone(),
                visits: sorted.len() as u64,
                median_ms: median(&sorted),
                p90_ms: rank(90),
                max_ms: rank(100),
            }
        };
        let total = |phase: &str| self.visits.get(phase).map_or(0, |visits| visits.iter().sum::<u64>());
        let mut phases: Vec<_> = self.visits.iter().map(stats).collect();
        phases.sort_by_key(|one| std::cmp::Reverse((one.median_ms, total(&one.phase))));
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
        if visits.last().is_none_or(|(known, _)| known != phase) {
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
    let cut_off = matches!(attempt.outcome, None | Some("lost" | "interrupted" | "stopped"));
    let (from, to) = (attempt.started_at.parse().ok()?, attempt.ended_at.as_ref()?.parse().ok()?);
    (!cut_off).then_some((attempt.phase.as_str(), from, to))
}
