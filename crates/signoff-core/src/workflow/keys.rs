//! The keys of a workflow file. Every key is optional here; [`super::resolve`] fills in defaults and checks the rest.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;

use super::{Completion, Landing, PRESETS, Role, Scheduling, Workflow};
use crate::contract::Contract;
use crate::ids::ReviewerName;
use crate::policy::{
    Bound, Count, Effort, EscalationPolicy, ExhaustedAs, FailureAction, Gate, GateFailure, OnExhausted, OnFailure,
    RereviewScope, TimeSpan,
};
use crate::prompt::Depth;
use crate::review::{FailThreshold, ReviewerKind};
use crate::settings::AgentKind;
use crate::settings::key;
use crate::settings::reader::{checked, either, keys_of};
use crate::settings::rules::{TextOrList, key, key_name, parts, value};
use crate::settings::values::{AttemptCount, OptionalLimit, PlainName, ResearcherCount, WorkflowPasses};

/// The keys of a gate.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename = "a gate")]
#[schemars(extend("not" = { "required": BOUNDS }))]
pub struct GateKeys {
    /// `false`: the gate is skipped, and the outcome says that there was no review.
    pub enabled: Option<bool>,
    /// The names of its reviewers, which work in parallel.
    #[schemars(with = "Option<Vec<String>>", extend("minItems" = 1, "uniqueItems" = true))]
    pub reviewers: Option<Vec<ReviewerName>>,
    /// The least severity that fails the gate.
    pub fail_on: Option<FailThreshold>,
    /// Findings: fix and review again here, begin the next pass, note and go on, or stop.
    pub on_failure: Option<OnFailure>,
    /// n reviews and n − 1 fixes.
    pub max_cycles: Option<CycleBound>,
    /// n fixes and n + 1 reviews; instead of `max_cycles`.
    pub max_fixes: Option<FixBound>,
    /// When the bound is reached; none of these is a pass.
    pub on_exhausted: Option<OnExhausted>,
    /// The outcome of a loop that stops here.
    pub exhausted_as: Option<ExhaustedAs>,
    /// An answer that cannot be read.
    pub on_unclear: Option<UnclearEscalation>,
    /// A reviewer, or the check, that does not run.
    pub on_reviewer_failure: Option<ReviewerEscalation>,
    /// A fixer that fails.
    pub on_fixer_failure: Option<WriterEscalation>,
    /// An agent that fails in the phases before this gate.
    pub on_implementer_failure: Option<WriterEscalation>,
    /// A reviewer that asks for a discussion.
    pub on_discussion: Option<UnclearEscalation>,
    /// `true`: reviewers see the implementer's output.
    pub author_output: Option<bool>,
    /// `true`: one fixer for each independent group of findings.
    pub parallel_fixes: Option<bool>,
    /// `true`: an answer without the nonce it was given is refused; `false`: it is read. Unset: refused from known kinds of agents.
    pub require_nonce: Option<bool>,
    /// Time limit of each review, or of the check.
    pub review_timeout: Option<TimeSpan>,
    /// Time limit of each fix.
    pub fix_timeout: Option<TimeSpan>,
    /// What is reviewed after a fix: the whole change, or findings and fix first.
    pub rereview: Option<RereviewScope>,
    /// How thorough reviews are.
    pub depth: Option<Depth>,
    /// Maximum number of rounds in which one finding may come back; 0 is off.
    pub max_same_finding: Option<OptionalLimit>,
    /// Maximum number of fixes in a row that change nothing; 0 is off.
    pub max_noop_fixes: Option<OptionalLimit>,
}

/// The keys that limit a gate. They exclude each other.
pub const BOUNDS: [&str; 2] = key_name!(GateKeys, [max_cycles, max_fixes]);

/// The keys of gates that checks do not have, because a check has no reviewers.
pub const REVIEWER_KEYS: [&str; 8] =
    key_name!(GateKeys, [reviewers, fail_on, on_unclear, on_discussion, author_output, require_nonce, rereview, depth]);

macro_rules! overlay {
    ($keys:expr, $gate:expr, $($key:ident),*) => {
        $(if let Some(value) = $keys.$key.clone() { $gate.$key = value.into(); })*
    };
}

impl GateKeys {
    pub fn keys() -> Vec<&'static str> {
        keys_of::<Self>()
    }

    /// Whether a key is set.
    pub(crate) fn sets(&self, key: &str) -> bool {
        serde_json::to_value(self).is_ok_and(|keys| keys.get(key).is_some_and(|value| !value.is_null()))
    }

    /// The keys that an effort sets.
    pub(crate) fn from_effort(effort: Effort) -> Self {
        let max_fixes = Some(FixBound(Count::Number(effort.max_fixes())));
        Self { max_fixes, depth: Some(effort.depth()), ..Self::default() }
    }

    /// Sets these keys of a gate. `max_cycles` removes `max_fixes` and the other way round.
    pub fn apply_to(&self, gate: &mut Gate) {
        overlay!(self, gate, enabled, reviewers, fail_on, on_failure, on_exhausted, exhausted_as);
        overlay!(self, gate, on_unclear, on_reviewer_failure, on_fixer_failure, on_implementer_failure);
        overlay!(self, gate, on_discussion, author_output, parallel_fixes, rereview, depth);
        gate.require_nonce = self.require_nonce.or(gate.require_nonce);
        let (cycles, fixes) = (self.max_cycles.map(|bound| bound.0), self.max_fixes.map(|bound| bound.0));
        gate.bound = Bound::from_keys(cycles, fixes).unwrap_or(gate.bound);
        gate.review_timeout = self.review_timeout.or(gate.review_timeout);
        gate.fix_timeout = self.fix_timeout.or(gate.fix_timeout);
        let guard =
            |set: Option<OptionalLimit>, now| set.map_or(now, |guard| Some(guard.0).filter(|number| *number > 0));
        gate.max_same_finding = guard(self.max_same_finding, gate.max_same_finding);
        gate.max_noop_fixes = guard(self.max_noop_fixes, gate.max_noop_fixes);
    }

    /// The same keys without those that a check does not have.
    pub(crate) fn for_check(&self) -> Self {
        let mut keys = serde_json::to_value(self).unwrap_or_default();
        if let Some(keys) = keys.as_object_mut() {
            keys.retain(|key, _| !REVIEWER_KEYS.contains(&key.as_str()));
        }
        serde_json::from_value(keys).unwrap_or_default()
    }
}

/// Maximum number of reviews: at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CycleBound(pub Count);

value!(
    CycleBound,
    "a whole number from 1, for the one review, to 4294967295, or \"unlimited\"",
    { "anyOf": [{ "type": "integer", "minimum": 1, "maximum": u32::MAX }, { "enum": ["unlimited"] }] },
    |count: Count| (count != Count::Number(0)).then_some(Self(count))
);

/// Maximum number of fixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FixBound(pub Count);

value!(
    FixBound,
    "a whole number from 0 to 4294967295 or \"unlimited\"",
    { "anyOf": [{ "type": "integer", "minimum": 0, "maximum": u32::MAX }, { "enum": ["unlimited"] }] },
    |count: Count| Some(Self(count))
);

/// Escalations whose actions apply to one kind of failure.
macro_rules! escalations {
    ($($(#[$about:meta])* $name:ident, $action:ident, $failure:expr;)*) => { $(
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
        pub struct $name(EscalationPolicy);
        struct $action(FailureAction);

        impl $name {
            fn expected() -> &'static str {
                static EXPECTED: LazyLock<String> = LazyLock::new(|| {
                    format!("{}, or a list of these to be tried in turn", either(&$failure.actions()))
                });
                EXPECTED.as_str()
            }
        }

        value!($action, $name::expected(), { "enum": $failure.actions() }, |action: FailureAction| {
            action.applies_to($failure).then_some(Self(action))
        });
        value!(
            $name,
            Self::expected(),
            { "anyOf": [
                { "enum": $failure.actions() },
                { "type": "array", "items": { "enum": $failure.actions() }, "minItems": 1 },
            ] },
            |actions: TextOrList<$action, $action>| match actions {
                TextOrList::Text(action) => Some(Self(EscalationPolicy::new(&[action.0]))),
                TextOrList::List(actions) if actions.is_empty() => None,
                TextOrList::List(actions) => {
                    Some(Self(EscalationPolicy::new(&actions.iter().map(|action| action.0).collect::<Vec<_>>())))
                }
            }
        );

        impl From<$name> for EscalationPolicy {
            fn from(escalation: $name) -> Self {
                escalation.0
            }
        }
    )* };
}

escalations! {
    /// The actions after a review that cannot be parsed or asks for a discussion.
    UnclearEscalation, UnclearAction, GateFailure::UnclearReview;

    /// The actions after a reviewer or check that does not run.
    ReviewerEscalation, ReviewerAction, GateFailure::Reviewer;

    /// The actions after an implementer or fixer that fails.
    WriterEscalation, WriterAction, GateFailure::Writer;
}

/// The keys of every phase.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, rename = "")]
pub struct CommonKeys {
    /// Its name.
    #[schemars(extend("pattern" = "\\S"))]
    pub name: Option<String>,
    /// Its kind.
    pub kind: Option<PhaseKindName>,
    /// `true`: once for each item of the plan, together with its neighbours that are `per_item` as well.
    pub per_item: Option<bool>,
    /// `true`: after it is passed it is skipped by restarts.
    pub once: Option<bool>,
    /// The only one of the workflow's `modes` in which the phase runs.
    pub mode: Option<String>,
    /// The phase's number in messages and in `[presets.NAME.phase.N]`.
    pub number: Option<u32>,
    /// Of a gate that is off: the name under [presets.NAME.gates] that configures it and switches it on.
    pub called: Option<String>,
}

/// The keys of phases that agents work on.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentKeys {
    /// The agent of this phase; of a gate, that of its reviewers.
    pub agent: Option<String>,
    /// The tool of another program that does it; `[presets.NAME.tools]` maps it to an agent.
    pub tool: Option<String>,
    /// The model of that agent.
    pub model: Option<String>,
    /// Preferred kind of agent, used if one is configured and no other is named.
    pub prefers: Option<AgentKind>,
}

/// The keys of agent phases only.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WorkKeys {
    /// What the agent is asked to do.
    pub role: Option<Role>,
    /// Time limit.
    pub timeout: Option<TimeSpan>,
    /// Number of researchers that run before the agent, in parallel.
    pub researchers: Option<ResearcherCount>,
    /// The model of these researchers.
    pub parallel_model: Option<String>,
}

/// The keys of gates and checks besides their policy.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RestartKeys {
    /// An earlier phase, where the next pass begins.
    pub restart_to: Option<String>,
    /// The role that fixes.
    pub fixer: Option<Role>,
}

/// The kinds of phases by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum PhaseKindName {
    Agent,
    Gate,
    Check,
}

impl PhaseKindName {
    /// The keys that a phase of this kind can have.
    pub fn keys(self) -> Vec<&'static str> {
        let mut gate_policy = [GateKeys::keys(), keys_of::<RestartKeys>()].concat();
        let own = match self {
            Self::Agent => [keys_of::<WorkKeys>(), keys_of::<AgentKeys>()].concat(),
            Self::Gate => [gate_policy, keys_of::<AgentKeys>()].concat(),
            Self::Check => {
                gate_policy.retain(|key| !REVIEWER_KEYS.contains(key));
                gate_policy
            }
        };
        [own, keys_of::<CommonKeys>()].concat()
    }
}

/// A phase of any kind. Which keys fit its kind is checked later.
#[derive(Debug, Clone, Default)]
pub struct PhaseKeys {
    pub common: CommonKeys,
    pub agent: AgentKeys,
    pub work: WorkKeys,
    pub gate: GateKeys,
    pub restart: RestartKeys,
}

parts!(PhaseKeys { common, agent, work, gate, restart });

/// Phases in their order.
#[derive(Debug, Clone, Default)]
pub struct PhaseList(pub Vec<PhaseKeys>);

impl<'de> Deserialize<'de> for PhaseList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        checked(deserializer, "a list of tables, each under [[KEY]]", |phases| Some(Self(phases)))
    }
}

/// Maximum number of phases in one list.
pub const MAX_PHASES: usize = 1000;

impl JsonSchema for PhaseList {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PhaseList".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": { "$ref": "#/definitions/phase" }, "maxItems": MAX_PHASES })
    }
}

/// `[workflows.NAME]`.
#[derive(Debug, Clone, Default, JsonSchema)]
#[schemars(extend("required" = ["phases"]))]
pub struct WorkflowTable {
    #[schemars(flatten)]
    pub definition: DefinitionKeys,
    #[schemars(flatten)]
    pub shared: WorkflowKeys<AttemptCount, WorkflowPasses>,
}

parts!(WorkflowTable { definition, shared });

/// The keys of a workflow that `[presets.NAME]` does not have.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, rename = "a workflow")]
pub struct DefinitionKeys {
    /// Its name.
    pub name: Option<String>,
    /// What the workflow is for.
    pub description: Option<String>,
    /// How tasks are worked: from a queue, in slots, one on top of the other, or in groups.
    pub arrangement: Option<Scheduling>,
    /// Names, of which a run picks one.
    #[schemars(extend("uniqueItems" = true))]
    pub modes: Option<Vec<String>>,
    /// The mode in which phases are done by the tools they name.
    pub tools_in: Option<String>,
    /// A table for each reviewer of this workflow alone.
    pub reviewers: BTreeMap<String, ReviewerKeys>,
    /// Phases of the run before its tasks.
    pub before: PhaseList,
    /// The phases of each task.
    #[schemars(extend("minItems" = 1))]
    pub phases: PhaseList,
    /// Phases of the run after its tasks.
    pub after: PhaseList,
}

/// The keys that `[workflows.NAME]` and `[presets.NAME]` share. `A` counts attempts and `P` counts passes.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WorkflowKeys<A: Default, P: Default> {
    /// When a task is done: when its agent exits successfully, or when the last line of its final message says so.
    pub completion: Option<Completion>,
    /// When signed-off work lands: never by itself, each alone, or a whole group.
    pub landing: Option<Landing>,
    /// The number of attempts after which all active loops are reviewed; 0 is never.
    pub checkpoint_interval: Option<OptionalLimit>,
    /// Maximum number of implement and fix attempts of a loop.
    pub max_attempts: Option<A>,
    /// Maximum number of passes through the workflow.
    pub max_passes: Option<P>,
    /// Maximum number of attempts lost in a row to crashes of the program.
    pub max_recoveries: Option<u32>,
    /// Maximum number of landings that fail with a conflict or failing checks.
    pub max_conflicts: Option<u32>,
    /// The outcome of a loop that is out of attempts.
    pub attempts_exhausted_as: Option<ExhaustedAs>,
}

impl<A: Copy + Default + Into<u32>, P: Copy + Default + Into<u32>> WorkflowKeys<A, P> {
    /// Sets these keys of a workflow.
    pub fn apply_to(&self, workflow: &mut Workflow) {
        overlay!(self, workflow, completion, landing, attempts_exhausted_as);
        overlay!(self, workflow.limits, max_attempts, max_passes, max_recoveries, max_conflicts);
        workflow.checkpoint_interval =
            self.checkpoint_interval.map_or(workflow.checkpoint_interval, OptionalLimit::number);
    }
}

/// A reviewer of a workflow.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, rename = "a reviewer")]
#[schemars(extend("required" = ["kind"]))]
pub struct ReviewerKeys {
    /// What it looks for.
    pub kind: Option<ReviewerKind>,
    /// How it answers.
    pub contract: Option<Contract>,
}

key! {
    /// The name of a workflow that is no preset.
    OwnWorkflowName,
    { "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", "not": { "enum": PRESETS } },
    |name| PlainName::try_from(name.to_owned()).is_ok() && !PRESETS.contains(&name),
    |name| match PlainName::try_from(name.to_owned()) {
        Ok(_) => {
            format!("`{name}` is a preset: write [presets.{name}] to change it, or choose another name")
        }
        Err(problem) => problem,
    };
}

/// The schema of a phase, which is of one of three kinds.
pub fn phase_schema(generator: &mut SchemaGenerator) -> Schema {
    let parts = [
        CommonKeys::json_schema(generator),
        GateKeys::json_schema(generator),
        RestartKeys::json_schema(generator),
        WorkKeys::json_schema(generator),
        AgentKeys::json_schema(generator),
    ];
    let kinds = [PhaseKindName::Agent, PhaseKindName::Gate, PhaseKindName::Check].map(|kind| {
        let (word, known): (&str, _) = (kind.into(), kind.keys());
        let mut phase = CommonKeys::json_schema(generator).to_value();
        let properties = parts.iter().filter_map(|part| part.get("properties")?.as_object()).flatten();
        for (key, property) in properties.filter(|(key, _)| known.contains(&key.as_str())) {
            phase["properties"][key] = property.clone();
        }
        phase["properties"][key::KIND]["enum"] = json!([word]);
        phase["required"] = match kind {
            PhaseKindName::Gate => json!([key::NAME, key::KIND, key::REVIEWERS]),
            PhaseKindName::Agent | PhaseKindName::Check => json!([key::NAME, key::KIND]),
        };
        if kind != PhaseKindName::Agent {
            phase["not"] = json!({ "required": BOUNDS });
        }
        phase
    });
    json_schema!({ "oneOf": kinds })
}
