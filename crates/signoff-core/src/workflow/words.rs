//! A workflow as it is written: every key optional, every unknown key an error with its line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::de::DeTable;

use super::problem::Place;
use super::table::{Checked, Table};
use super::{Arrangement, Completion, Landing, Reviewer, Role, Workflow, WorkflowError, resolve};
use crate::config::AgentKind;
use crate::contract::Contract;
use crate::ids::ReviewerName;
use crate::policy::{Bound, Count, ExhaustedAs, Gate, Ladder, OnExhausted, OnFailure, Rereview, Span};
use crate::prompt::Depth;
use crate::review::{Bar, ReviewerKind};

/// A table's keys as a structure, each of which may be left out.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($key:ident: $kind:ty,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $(pub $key: Option<$kind>,)*
        }

        impl $name {
            pub const KEYS: &'static [&'static str] = &[$(stringify!($key)),*];

            pub(crate) fn read(table: &Table<'_>) -> Checked<Self> {
                Ok(Self { $($key: table.get(stringify!($key))?,)* })
            }
        }
    };
}

words! {
    /// The gate's keys. Layers of configuration are laid over a gate with these.
    GateWords {
        enabled: bool,
        reviewers: Vec<ReviewerName>,
        fail_on: Bar,
        on_failure: OnFailure,
        max_cycles: Count,
        max_fixes: Count,
        on_exhausted: OnExhausted,
        exhausted_as: ExhaustedAs,
        on_unclear: Ladder,
        on_reviewer_failure: Ladder,
        on_fixer_failure: Ladder,
        on_implementer_failure: Ladder,
        on_discussion: Ladder,
        author_output: bool,
        parallel_fixes: bool,
        require_nonce: bool,
        review_timeout: Span,
        fix_timeout: Span,
        rereview: Rereview,
        depth: Depth,
        max_same_finding: u32,
        max_noop_fixes: u32,
    }
}

words! {
    /// What every phase may say.
    PhaseWords {
        name: String,
        kind: KindWord,
        per_item: bool,
        once: bool,
        mode: String,
        number: u32,
        called: String,
    }
}

words! {
    /// Who does a phase; the project's commands need nobody.
    WhoWords {
        agent: String,
        tool: String,
        model: String,
        prefers: AgentKind,
    }
}

words! {
    /// What an agent phase may say besides.
    AgentWords {
        role: Role,
        timeout: Span,
        researchers: u32,
        parallel_model: String,
    }
}

words! {
    /// What a gate or check may say besides its policy.
    RestartWords {
        restart_to: String,
        fixer: Role,
    }
}

words! {
    /// What a workflow says about all of its phases.
    WorkflowWords {
        name: String,
        description: String,
        completion: Completion,
        landing: Landing,
        arrangement: Arrangement,
        checkpoint_interval: u32,
        max_attempts: Count,
        max_passes: u32,
        max_recoveries: u32,
        max_conflicts: u32,
        attempts_exhausted_as: ExhaustedAs,
        modes: Vec<String>,
        tools_in: String,
    }
}

words! {
    /// What a workflow knows of a reviewer.
    ReviewerWords {
        kind: ReviewerKind,
        contract: Contract,
    }
}

/// The tables of a workflow, beside its words.
pub const TABLES: [&str; 4] = ["reviewers", "before", "phases", "after"];

/// A gate's keys that say something about reviewers, of which a check has none.
pub const OF_REVIEWERS: [&str; 8] = [
    "reviewers",
    "fail_on",
    "on_unclear",
    "on_discussion",
    "author_output",
    "require_nonce",
    "rereview",
    "depth",
];

/// Every key a workflow can be written with, by the table it stands in.
pub fn keys() -> [(&'static str, Vec<&'static str>); 5] {
    [
        ("workflow", [WorkflowWords::KEYS, &TABLES].concat()),
        ("reviewer", ReviewerWords::KEYS.to_vec()),
        ("phase", PhaseWords::KEYS.to_vec()),
        ("agent", [AgentWords::KEYS, WhoWords::KEYS].concat()),
        ("gate", [GateWords::KEYS, RestartWords::KEYS, WhoWords::KEYS].concat()),
    ]
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
        if let Some(bound) = Bound::of(self.max_cycles, self.max_fixes) {
            gate.bound = bound;
        }
        gate.review_timeout = self.review_timeout.or(gate.review_timeout);
        gate.fix_timeout = self.fix_timeout.or(gate.fix_timeout);
        lay_switch(self.max_same_finding, &mut gate.max_same_finding);
        lay_switch(self.max_noop_fixes, &mut gate.max_noop_fixes);
    }

    /// What of these words concerns a check, which has no reviewers.
    pub(crate) fn of_a_check(&self) -> Self {
        Self {
            reviewers: None,
            fail_on: None,
            on_unclear: None,
            on_discussion: None,
            author_output: None,
            require_nonce: None,
            rereview: None,
            depth: None,
            ..self.clone()
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KindWord {
    Agent,
    Gate,
    Check,
}

pub type Reviewers = BTreeMap<ReviewerName, Reviewer>;

/// Reads a workflow of one's own: a file that holds one, or each `[workflows.NAME]` of a `signoff.toml`.
pub fn parse(file: &str, text: &str) -> Result<Vec<Workflow>, WorkflowError> {
    let place = Place { file, text };
    let read = DeTable::parse(text).map_err(|error| place.unreadable(&error))?;
    let whole = Table::whole(place, read.get_ref());
    match whole.table("workflows")? {
        Some(workflows) => configured(&whole, &workflows),
        None => one(&whole).map(|workflow| vec![workflow]),
    }
}

/// Reads the workflows of a configuration file. They may name the file's reviewers as well as their own.
fn configured(whole: &Table<'_>, workflows: &Table<'_>) -> Checked<Vec<Workflow>> {
    let shared = match whole.table("reviewers")? {
        Some(reviewers) => resolve::reviewers(&reviewers)?,
        None => Reviewers::new(),
    };
    let read = |(name, table): (&str, Table<'_>)| resolve::workflow(&table, name, &shared);
    workflows.children()?.into_iter().map(read).collect()
}

/// Reads a file that is one workflow.
fn one(whole: &Table<'_>) -> Checked<Workflow> {
    let name: Option<String> = whole.get("name")?;
    resolve::workflow(whole, name.as_deref().unwrap_or("unnamed"), &Reviewers::new())
}
