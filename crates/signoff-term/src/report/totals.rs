//! The totals of a report: findings by state, cost and time.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use signoff_core::ledger::FindingState;

use super::{PartSection, TaskSection};
use crate::show::{AttemptRow, LedgerLine};
use crate::stats::{ByReviewer, ByRole, Shares, add_usd};

/// The totals of a report.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Totals {
    pub findings: FindingCounts,
    /// Rounds of reviews, and runs of the checks.
    pub cycles: u64,
    pub attempts: u64,
    pub cost_usd: f64,
    /// At least part of the cost is computed from list prices.
    pub cost_is_estimated: bool,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Sum of the working times of agents and checks.
    pub worked_ms: u64,
    /// From the first start to the last end; null before the first end.
    pub passed_ms: Option<u64>,
    pub roles: Vec<ByRole>,
    pub reviewers: Vec<ByReviewer>,
}

/// Number of findings by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct FindingCounts {
    pub open: u64,
    /// The open findings that block a gate.
    pub blocking: u64,
    pub fixed: u64,
    pub refuted: u64,
    pub deferred: u64,
    pub out_of_scope: u64,
}

impl FindingCounts {
    fn add(&mut self, line: &LedgerLine) {
        self.blocking += u64::from(line.blocks);
        *match line.state {
            FindingState::Fixed => &mut self.fixed,
            FindingState::Refuted => &mut self.refuted,
            FindingState::Deferred => &mut self.deferred,
            FindingState::OutOfScope => &mut self.out_of_scope,
            FindingState::Open => &mut self.open,
        } += 1;
    }

    /// `1 open, 2 fixed`; empty if there are no findings.
    pub fn text(&self) -> String {
        let all = [
            (self.open, "open"),
            (self.fixed, "fixed"),
            (self.refuted, "refuted"),
            (self.deferred, "deferred"),
            (self.out_of_scope, "out of scope"),
        ];
        let some: Vec<_> = all.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
        some.join(", ")
    }
}

impl Totals {
    pub(super) fn new(parts: &[PartSection], tasks: &[TaskSection]) -> Self {
        let mut shares = Shares::default();
        let mut findings = FindingCounts::default();
        for part in parts {
            shares.add_loop(&part.attempts, &part.ledger, part.outcome.is_some());
        }
        for task in tasks {
            shares.add_loop(&task.report.attempts, &task.report.ledger, task.result.has_ended());
        }
        let ledgers = parts.iter().map(|part| &part.ledger).chain(tasks.iter().map(|task| &task.report.ledger));
        ledgers.flatten().for_each(|line| findings.add(line));
        let cycles =
            parts.iter().map(|part| part.cycles.len()).chain(tasks.iter().map(|task| task.report.cycles.len()));
        let attempts: Vec<&AttemptRow> = parts
            .iter()
            .flat_map(|part| &part.attempts)
            .chain(tasks.iter().flat_map(|task| &task.report.attempts))
            .collect();
        Self {
            findings,
            cycles: cycles.sum::<usize>() as u64,
            attempts: attempts.len() as u64,
            cost_usd: attempts.iter().fold(0.0, |sum, one| add_usd(sum, one.cost_usd)),
            cost_is_estimated: attempts.iter().any(|one| one.cost_is_estimated),
            input_tokens: attempts.iter().map(|one| one.input_tokens).sum(),
            output_tokens: attempts.iter().map(|one| one.output_tokens).sum(),
            worked_ms: attempts.iter().map(|one| one.duration_ms).sum(),
            passed_ms: elapsed_ms(&attempts),
            roles: shares.roles(),
            reviewers: shares.reviewers(),
        }
    }

    /// `$0.84`, or `~$0.84` if computed from list prices.
    pub fn cost(&self) -> String {
        format!("{}${:.2}", if self.cost_is_estimated { "~" } else { "" }, self.cost_usd)
    }
}

fn elapsed_ms(attempts: &[&AttemptRow]) -> Option<u64> {
    let first = attempts.iter().filter_map(|one| one.started_at.parse::<Timestamp>().ok()).min()?;
    let ended = attempts.iter().filter_map(|one| one.ended_at.as_ref()?.parse::<Timestamp>().ok()).max()?;
    u64::try_from(ended.duration_since(first).as_millis()).ok()
}
