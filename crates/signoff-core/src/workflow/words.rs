//! A workflow as it is written: every key optional, every unknown key an error with its line.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::problem::{Place, WorkflowError};
use super::{Arrangement, Completion, Landing, Reviewer, Role, Workflow, resolve};
use crate::ids::ReviewerName;
use crate::policy::{Bound, ExhaustedAs, Gate, Ladder, OnExhausted, OnFailure, Rereview, Span};
use crate::prompt::Depth;
use crate::review::Bar;

/// A number, or `"unlimited"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    Of(u32),
    Unlimited,
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a whole number or \"unlimited\"")]
        enum Written {
            Number(u32),
            Word(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Number(number) => Ok(Self::Of(number)),
            Written::Word(word) if word == "unlimited" => Ok(Self::Unlimited),
            Written::Word(word) => Err(serde::de::Error::custom(format!(
                "`{word}` is not a bound: write a whole number or \"unlimited\""
            ))),
        }
    }
}

/// The gate's keys, each of which may be left out. Layers of configuration are laid over a gate with these.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GateWords {
    pub enabled: Option<bool>,
    pub reviewers: Option<Vec<ReviewerName>>,
    pub fail_on: Option<Bar>,
    pub on_failure: Option<OnFailure>,
    pub max_cycles: Option<Count>,
    pub max_fixes: Option<Count>,
    pub on_exhausted: Option<OnExhausted>,
    pub exhausted_as: Option<ExhaustedAs>,
    pub on_unclear: Option<Ladder>,
    pub on_reviewer_failure: Option<Ladder>,
    pub on_fixer_failure: Option<Ladder>,
    pub on_implementer_failure: Option<Ladder>,
    pub on_discussion: Option<Ladder>,
    pub author_output: Option<bool>,
    pub parallel_fixes: Option<bool>,
    pub require_nonce: Option<bool>,
    pub review_timeout: Option<Span>,
    pub fix_timeout: Option<Span>,
    pub rereview: Option<Rereview>,
    pub depth: Option<Depth>,
    pub max_same_finding: Option<u32>,
    pub max_noop_fixes: Option<u32>,
}

macro_rules! lay {
    ($words:expr, $gate:expr, $($key:ident),*) => {
        $(if let Some(value) = $words.$key.clone() { $gate.$key = value; })*
    };
}

impl GateWords {
    /// Lays these words over a gate. `max_cycles` removes `max_fixes` and the other way round.
    pub fn lay_over(&self, gate: &mut Gate) {
        lay!(self, gate, enabled, reviewers, fail_on, on_failure, on_exhausted, exhausted_as);
        lay!(self, gate, on_unclear, on_reviewer_failure, on_fixer_failure, on_implementer_failure);
        lay!(self, gate, on_discussion, author_output, parallel_fixes, require_nonce, rereview, depth);
        if let Some(bound) = self.bound() {
            gate.bound = bound;
        }
        gate.review_timeout = self.review_timeout.or(gate.review_timeout);
        gate.fix_timeout = self.fix_timeout.or(gate.fix_timeout);
        lay_switch(self.max_same_finding, &mut gate.max_same_finding);
        lay_switch(self.max_noop_fixes, &mut gate.max_noop_fixes);
    }

    fn bound(&self) -> Option<Bound> {
        match (self.max_cycles, self.max_fixes) {
            (Some(Count::Of(cycles)), _) => Some(Bound::MaxCycles(cycles)),
            (_, Some(Count::Of(fixes))) => Some(Bound::MaxFixes(fixes)),
            (Some(Count::Unlimited), _) | (_, Some(Count::Unlimited)) => Some(Bound::Unlimited),
            (None, None) => None,
        }
    }
}

/// Zero switches a guard off.
fn lay_switch(written: Option<u32>, guard: &mut Option<u32>) {
    if let Some(number) = written {
        *guard = (number > 0).then_some(number);
    }
}

/// The kinds of phases by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KindWord {
    Agent,
    Gate,
    Check,
}

/// A phase as written.
#[derive(Debug, Clone, Deserialize)]
pub struct PhaseWords {
    pub name: String,
    pub kind: KindWord,
    pub per_item: Option<bool>,
    pub once: Option<bool>,
    pub mode: Option<String>,
    pub role: Option<Role>,
    pub timeout: Option<Span>,
    pub researchers: Option<u32>,
    pub restart_to: Option<String>,
    pub fixer: Option<Role>,
    /// Everything else must be a gate's key.
    #[serde(flatten)]
    pub gate: toml::Table,
}

/// A workflow as written.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkflowWords {
    pub name: Option<String>,
    pub description: Option<String>,
    pub completion: Completion,
    pub landing: Landing,
    pub arrangement: Arrangement,
    pub checkpoint_interval: Option<u32>,
    pub max_attempts: Option<Count>,
    pub max_passes: Option<u32>,
    pub max_recoveries: Option<u32>,
    pub max_conflicts: Option<u32>,
    pub attempts_exhausted_as: Option<ExhaustedAs>,
    pub modes: Vec<String>,
    pub reviewers: BTreeMap<ReviewerName, Reviewer>,
    pub before: Vec<Spanned<toml::Table>>,
    pub phases: Vec<Spanned<toml::Table>>,
    pub after: Vec<Spanned<toml::Table>>,
}

/// Reads a workflow of one's own: a file that holds one, or each `[workflows.NAME]` of a `signoff.toml`.
pub fn parse(file: &str, text: &str) -> Result<Vec<Workflow>, WorkflowError> {
    #[derive(Deserialize)]
    struct Configuration {
        workflows: Option<BTreeMap<String, Spanned<WorkflowWords>>>,
    }
    let place = Place { file, text };
    let read: Configuration = toml::from_str(text).map_err(|error| place.unreadable(&error))?;
    match read.workflows {
        Some(workflows) => workflows
            .into_iter()
            .map(|(name, words)| resolve::workflow(&place, &name, words.into_inner()))
            .collect(),
        None => one(&place).map(|workflow| vec![workflow]),
    }
}

/// Reads a file that is one workflow.
fn one(place: &Place<'_>) -> Result<Workflow, WorkflowError> {
    let words: WorkflowWords = toml::from_str(place.text).map_err(|error| place.unreadable(&error))?;
    let name = words.name.clone().unwrap_or_else(|| "unnamed".to_owned());
    resolve::workflow(place, &name, words)
}
