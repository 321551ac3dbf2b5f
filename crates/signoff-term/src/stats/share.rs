//! Who took how much: roles by cost and time, reviewers by what became of their findings.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::show::{Attempt, LedgerLine};

/// What the attempts of one role took.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct ByRole {
    /// `implement`, `fix`, `review`, `check`, …
    pub role: String,
    pub attempts: u64,
    /// How long they worked, added up: some work at the same time.
    pub duration_ms: u64,
    pub cost_usd: f64,
    /// The cost is worked out from list prices, at least in part; left out where it is not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cost_is_estimated: bool,
    pub input_tokens: u64,
    pub output_tokens: u64,
}

/// What one reviewer found, and what it took.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct ByReviewer {
    pub reviewer: String,
    /// How often it was started.
    pub attempts: u64,
    /// Findings it reported, alone or with others, without those that are still being worked on.
    pub raised: u64,
    /// Of these, what turned out right: it was fixed or deferred, or it was settled once and is open again.
    pub upheld: u64,
    pub refuted: u64,
    pub out_of_scope: u64,
    /// Nobody ever decided about it, and its loop is over.
    pub open: u64,
    /// What is still being worked on.
    pub pending: u64,
    /// Upheld by raised; null where nothing was raised.
    pub precision: Option<f64>,
    pub duration_ms: u64,
    pub cost_usd: f64,
    /// The cost is worked out from list prices, at least in part; left out where it is not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cost_is_estimated: bool,
}

/// Both, while they are being added up.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Shares {
    roles: BTreeMap<String, ByRole>,
    reviewers: BTreeMap<String, ByReviewer>,
}

impl Shares {
    /// Takes in a loop: its attempts, its findings, and whether it is over.
    pub fn take(&mut self, attempts: &[Attempt], ledger: &[LedgerLine], is_over: bool) {
        attempts.iter().for_each(|attempt| self.attempt(attempt));
        // What an earlier task reported counts there.
        for line in ledger.iter().filter(|line| !line.is_inherited()) {
            for source in &line.finding.sources {
                self.reviewer(source).found(line, is_over);
            }
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (role, one) in &other.roles {
            self.roles.entry(role.clone()).or_default().add(one);
        }
        for (name, one) in &other.reviewers {
            self.reviewer(name).add(one);
        }
    }

    fn attempt(&mut self, attempt: &Attempt) {
        let role = self.roles.entry(attempt.role.clone()).or_default();
        role.attempts += 1;
        role.duration_ms += attempt.duration_ms;
        role.cost_usd = plus(role.cost_usd, attempt.cost_usd);
        role.cost_is_estimated |= attempt.cost_is_estimated;
        role.input_tokens += attempt.input_tokens;
        role.output_tokens += attempt.output_tokens;
        // The project's checks report findings under this name, without being a reviewer that is started.
        let checks = (attempt.role == "check").then_some("checks");
        if let Some(name) = attempt.reviewer.as_deref().or(checks) {
            let reviewer = self.reviewer(name);
            reviewer.attempts += 1;
            reviewer.duration_ms += attempt.duration_ms;
            reviewer.cost_usd = plus(reviewer.cost_usd, attempt.cost_usd);
            reviewer.cost_is_estimated |= attempt.cost_is_estimated;
        }
    }

    fn reviewer(&mut self, name: &str) -> &mut ByReviewer {
        self.reviewers.entry(name.to_owned()).or_default()
    }

    /// The roles, what took longest first.
    pub fn roles(&self) -> Vec<ByRole> {
        let mut roles: Vec<_> =
            self.roles.iter().map(|(role, one)| ByRole { role: role.clone(), ..one.clone() }).collect();
        roles.sort_by_key(|role| std::cmp::Reverse(role.duration_ms));
        roles
    }

    /// The reviewers, by name.
    pub fn reviewers(&self) -> Vec<ByReviewer> {
        let precise = |(name, one): (&String, &ByReviewer)| ByReviewer {
            reviewer: name.clone(),
            precision: (one.raised > 0).then(|| thousandths(one.upheld as f64 / one.raised as f64)),
            ..one.clone()
        };
        self.reviewers.iter().map(precise).collect()
    }
}

impl ByRole {
    fn add(&mut self, other: &Self) {
        let Self { role: _, attempts, duration_ms, cost_usd, cost_is_estimated, input_tokens, output_tokens } =
            other;
        self.attempts += attempts;
        self.duration_ms += duration_ms;
        self.cost_usd = plus(self.cost_usd, *cost_usd);
        self.cost_is_estimated |= cost_is_estimated;
        self.input_tokens += input_tokens;
        self.output_tokens += output_tokens;
    }
}

impl ByReviewer {
    fn add(&mut self, other: &Self) {
        // The precision is worked out at the end.
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
        self.cost_usd = plus(self.cost_usd, *cost_usd);
        self.cost_is_estimated |= cost_is_estimated;
    }

    fn found(&mut self, line: &LedgerLine, is_over: bool) {
        let place = match line.state {
            "fixed" | "deferred" => &mut self.upheld,
            "refuted" => &mut self.refuted,
            "out_of_scope" => &mut self.out_of_scope,
            _ if !is_over => {
                self.pending += 1;
                return;
            }
            _ if line.decisions.is_empty() => &mut self.open,
            _ => &mut self.upheld,
        };
        *place += 1;
        self.raised += 1;
    }
}

/// Dollars are added in millionths, so that no sum shows what only floating point knows.
pub(crate) fn plus(sum: f64, more: f64) -> f64 {
    ((sum + more) * 1_000_000.0).round() / 1_000_000.0
}

pub(crate) fn thousandths(share: f64) -> f64 {
    (share * 1_000.0).round() / 1_000.0
}
