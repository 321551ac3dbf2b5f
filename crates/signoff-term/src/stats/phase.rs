//! How long phases take: the time in which somebody was at work.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::show::Attempt;

/// How long one phase took, over all visits of all loops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ByPhase {
    pub phase: String,
    /// How often a loop went through it; its fixes are part of a gate.
    pub visits: u64,
    /// Half of the visits took at most this long; of an even number, between the two in the middle.
    pub median_ms: u64,
    /// Nine of ten took at most this long.
    pub p90_ms: u64,
    pub max_ms: u64,
}

/// The visits while they are being added up: eight bytes for each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Phases {
    visits: BTreeMap<String, Vec<u64>>,
}

impl Phases {
    /// Takes in the attempts of one loop.
    pub fn take(&mut self, attempts: &[Attempt]) {
        for (phase, took) in visits(attempts) {
            match self.visits.get_mut(&phase) {
                Some(known) => known.push(took),
                None => drop(self.visits.insert(phase, vec![took])),
            }
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (phase, visits) in &other.visits {
            self.visits.entry(phase.clone()).or_default().extend(visits);
        }
    }

    /// The phases, the slowest first.
    pub fn all(&self) -> Vec<ByPhase> {
        let of = |(phase, visits): (&String, &Vec<u64>)| {
            let mut sorted = visits.clone();
            sorted.sort_unstable();
            let rank = |percent: usize| nearest(&sorted, percent);
            ByPhase {
                phase: phase.clone(),
                visits: sorted.len() as u64,
                median_ms: median(&sorted),
                p90_ms: rank(90),
                max_ms: rank(100),
            }
        };
        let total = |phase: &str| self.visits.get(phase).map_or(0, |visits| visits.iter().sum::<u64>());
        let mut phases: Vec<_> = self.visits.iter().map(of).collect();
        phases.sort_by_key(|one| std::cmp::Reverse((one.median_ms, total(&one.phase))));
        phases
    }
}

/// The one in the middle, or between the two that are.
fn median(sorted: &[u64]) -> u64 {
    let middle = sorted.len() / 2;
    let upper = sorted.get(middle).copied().unwrap_or(0);
    let lower = middle.checked_sub(1).and_then(|at| sorted.get(at)).copied().unwrap_or(upper);
    if sorted.len().is_multiple_of(2) { lower.midpoint(upper) } else { upper }
}

/// The least value that so many of a hundred do not exceed.
pub(crate) fn nearest(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

/// Each stay in a phase, with how long somebody was at work in it. Reviewers work at the same time: that counts once.
/// While nobody works, while a person is waited for, and in attempts that were cut off, no phase takes any time.
fn visits(attempts: &[Attempt]) -> Vec<(String, u64)> {
    let mut worked: Vec<_> = attempts.iter().filter_map(worked).collect();
    worked.sort_by_key(|(_, from, to)| (*from, *to));
    let mut visits: Vec<(String, u64)> = Vec::new();
    let mut until: Option<Timestamp> = None;
    for (phase, from, to) in worked {
        if visits.last().is_none_or(|(known, _)| known != phase) {
            visits.push((phase.to_owned(), 0));
            until = None;
        }
        let from = until.map_or(from, |until| from.max(until));
        if let (Some((_, took)), Ok(more)) =
            (visits.last_mut(), u64::try_from(to.duration_since(from).as_millis()))
        {
            *took += more;
        }
        until = Some(until.map_or(to, |until| until.max(to)));
    }
    visits
}

fn worked(attempt: &Attempt) -> Option<(&str, Timestamp, Timestamp)> {
    let cut_off = matches!(attempt.outcome, None | Some("lost" | "interrupted" | "stopped"));
    let (from, to) = (attempt.started_at.parse().ok()?, attempt.ended_at.as_ref()?.parse().ok()?);
    (!cut_off).then_some((attempt.phase.as_str(), from, to))
}
