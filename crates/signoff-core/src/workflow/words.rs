//! A workflow as it is written: every key optional, every unknown key an error with its line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::de::DeTable;

use super::problem::Place;
use super::schema::Properties;
use super::table::{Checked, Table};
use super::value::Value;
use super::{Arrangement, Completion, Landing, Reviewer, Role, Workflow, WorkflowError, resolve};
use crate::config::AgentKind;
use crate::contract::Contract;
use crate::ids::ReviewerName;
use crate::policy::{Bound, Count, ExhaustedAs, Gate, Ladder, OnExhausted, OnFailure, Rereview, Span};
use crate::prompt::Depth;
use crate::review::{Bar, ReviewerKind};

/// A table's keys as a structure, each of which may be left out.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[doc = $doc:literal])+ $key:ident: $kind:ty,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $($(#[doc = $doc])+ pub $key: Option<$kind>,)*
        }

        impl $name {
            pub const KEYS: &'static [&'static str] = &[$(stringify!($key)),*];

            pub(crate) fn read(table: &Table<'_>) -> Checked<Self> {
                Ok(Self { $($key: table.get(stringify!($key))?,)* })
            }

            /// Every key with what can be written after it, and what it is for.
            pub(crate) fn properties() -> Properties {
                let mut known = Properties::default();
                $({
                    let key = stringify!($key);
                    known.add(key, <$kind as Value>::schema(key), concat!($($doc),+), None);
                })*
                known
            }
        }
    };
}

words! {
    /// The gate's keys. Layers of configuration are laid over a gate with these.
    GateWords {
        /// `false`: passed over, and the outcome says that nobody reviewed.
        enabled: bool,
        /// The names of its reviewers, all called at once.
        reviewers: Vec<ReviewerName>,
        /// The least severity that fails the gate.
        fail_on: Bar,
        /// Findings: fix and review again here, begin the next pass, note and go on, or stop.
        on_failure: OnFailure,
        /// n reviews and n − 1 fixes.
        max_cycles: Count,
        /// n fixes and n + 1 reviews; instead of `max_cycles`.
        max_fixes: Count,
        /// When the bound is reached; none of these is a pass.
        on_exhausted: OnExhausted,
        /// What a loop that stops here is called.
        exhausted_as: ExhaustedAs,
        /// An answer that cannot be read.
        on_unclear: Ladder,
        /// A reviewer, or the check, that does not run.
        on_reviewer_failure: Ladder,
        /// A fixer that fails.
        on_fixer_failure: Ladder,
        /// An agent that fails in the phases before this gate.
        on_implementer_failure: Ladder,
        /// A reviewer that wants to talk.
        on_discussion: Ladder,
        /// `true`: reviewers see what the implementer said.
        author_output: bool,
        /// `true`: one fixer for each independent group of findings.
        parallel_fixes: bool,
        /// `true`: an answer without the nonce it was given is refused; `false`: it is read. Unset: refused from known kinds of agents.
        require_nonce: bool,
        /// How long each review, or the check, may take.
        review_timeout: Span,
        /// How long each fix may take.
        fix_timeout: Span,
        /// What is reviewed after a fix: the whole change, or findings and fix first.
        rereview: Rereview,
        /// How deep reviewers are asked to look.
        depth: Depth,
        /// In how many rounds one finding may come back; 0 is off.
        max_same_finding: u32,
        /// How many fixes in a row may change nothing; 0 is off.
        max_noop_fixes: u32,
    }
}

words! {
    /// What every phase may say.
    PhaseWords {
        /// What it is called.
        name: String,
        /// What kind it is.
        kind: KindWord,
        /// `true`: once for each item of the plan, together with its neighbours that say the same.
        per_item: bool,
        /// `true`: once it is passed it does not come again, whatever restarts.
        once: bool,
        /// One of the workflow's `modes`, in which alone the phase takes place.
        mode: String,
        /// A number under which people know the phase.
        number: u32,
        /// Of a gate that is off: the name under [presets.NAME.gates] that configures it and switches it on.
        called: String,
    }
}

words! {
    /// Who does a phase; the project's commands need nobody.
    WhoWords {
        /// The agent that does this phase; of a gate, its reviewers.
        agent: String,
        /// The tool of another program that does it; `[presets.NAME.tools]` says which agent stands for it.
        tool: String,
        /// The model of that agent.
        model: String,
        /// The kind of agent that does it best, where one is there and nobody names another.
        prefers: AgentKind,
    }
}

words! {
    /// What an agent phase may say besides.
    AgentWords {
        /// What the agent is asked to do.
        role: Role,
        /// How long it may take.
        timeout: Span,
        /// Helpers that look into it first, all at once.
        researchers: u32,
        /// The model of these helpers.
        parallel_model: String,
    }
}

words! {
    /// What a gate or check may say besides its policy.
    RestartWords {
        /// An earlier phase, where the next pass begins.
        restart_to: String,
        /// The role that fixes.
        fixer: Role,
    }
}

words! {
    /// What a workflow says about all of its phases.
    WorkflowWords {
        /// What it is called.
        name: String,
        /// What the workflow is for.
        description: String,
        /// When a task is done: when its agent ends well, or when its last line says so.
        completion: Completion,
        /// When signed-off work lands: never by itself, each alone, or a whole group.
        landing: Landing,
        /// How tasks are worked: from a queue, in slots, one on top of the other, or in groups.
        arrangement: Arrangement,
        /// After how many attempts all active loops are reviewed; 0 is never.
        checkpoint_interval: u32,
        /// Implement and fix attempts of a loop, all in all.
        max_attempts: Count,
        /// How often the workflow may be gone through.
        max_passes: u32,
        /// Attempts lost in a row to crashes of the program.
        max_recoveries: u32,
        /// Landings that came back with a conflict or failing checks.
        max_conflicts: u32,
        /// What a loop out of attempts is called.
        attempts_exhausted_as: ExhaustedAs,
        /// Names, of which a run picks one.
        modes: Vec<String>,
        /// The mode in which phases are done by the tools they name.
        tools_in: String,
    }
}

words! {
    /// What a workflow knows of a reviewer.
    ReviewerWords {
        /// What kind it is.
        kind: ReviewerKind,
        /// How a reviewer answers.
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
        lay!(self, gate, on_discussion, author_output, parallel_fixes, rereview, depth);
        gate.require_nonce = self.require_nonce.or(gate.require_nonce);
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

impl KindWord {
    pub fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Gate => "gate",
            Self::Check => "check",
        }
    }
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
