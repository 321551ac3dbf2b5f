//! Reads workflows: turns their keys into a workflow, or reports what is wrong with it.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::keys::{
    BOUNDS, DefinitionKeys, GateKeys, MAX_PHASES, PhaseKeys, PhaseKindName, REVIEWER_KEYS, RestartKeys, ReviewerKeys,
    WorkflowTable,
};
use super::{Completion, GatePolicy, Landing, Phase, PhaseKind, Role, Workflow, WorkflowReviewer};
use crate::contract::Contract;
use crate::ids::ReviewerName;
use crate::policy::{
    Bound, EscalationPolicy, ExhaustedAs, FailureAction, Gate, LoopLimits, OnExhausted, OnFailure, RereviewScope,
};
use crate::prompt::Depth;
use crate::review::{FailThreshold, ReviewerKind};
use crate::settings::formats::{self, PositionedText};
use crate::settings::key;
use crate::settings::layer::{ConfigNode, check_exclusive};
use crate::settings::reader::{check_keys, did_you_mean, either};
use crate::settings::rules::key_name;
use crate::settings::{ConfigError, SettingOrigin};

pub type Reviewers = BTreeMap<ReviewerName, WorkflowReviewer>;

/// A gate that sets no key.
pub fn default_gate() -> Gate {
    Gate {
        enabled: true,
        reviewers: Vec::new(),
        fail_on: FailThreshold::Medium,
        on_failure: OnFailure::MiniLoop,
        bound: Bound::MaxCycles(3),
        on_exhausted: OnExhausted::Stop,
        exhausted_as: ExhaustedAs::Failed,
        on_unclear: EscalationPolicy::new(&[FailureAction::Retry, FailureAction::Ask]),
        on_reviewer_failure: EscalationPolicy::new(&[FailureAction::Retry, FailureAction::Ask]),
        on_fixer_failure: EscalationPolicy::new(&[FailureAction::Retry, FailureAction::Ask]),
        on_implementer_failure: EscalationPolicy::new(&[FailureAction::Fail]),
        on_discussion: EscalationPolicy::new(&[FailureAction::Ask]),
        author_output: false,
        parallel_fixes: false,
        require_nonce: None,
        review_timeout: None,
        fix_timeout: None,
        rereview: RereviewScope::Full,
        depth: Depth::Standard,
        max_same_finding: Some(3),
        max_noop_fixes: Some(1),
    }
}

/// Reads a workflow file: one workflow, or each `[workflows.NAME]` of a `signoff.toml`.
pub fn parse(file: &str, text: &str) -> Result<Vec<Workflow>, ConfigError> {
    let origin = |line| SettingOrigin::Repository { file: file.to_owned(), line };
    let root = formats::toml(PositionedText { text, origin: &origin })?;
    let Some(tables) = root.get(&[key::WORKFLOWS]) else {
        let name = root.get(&[key::NAME]).and_then(ConfigNode::text).unwrap_or("unnamed");
        return Ok(vec![workflow(name, &root, &Reviewers::new())?]);
    };
    root.read_key::<BTreeMap<String, WorkflowTable>>(key::WORKFLOWS)?;
    let mut shared = Reviewers::new();
    for (name, table) in root.get(&[key::REVIEWERS]).map(ConfigNode::entries).unwrap_or_default() {
        let reviewer = ReviewerKeys { kind: table.read_key(key::KIND)?, contract: table.read_key(key::CONTRACT)? };
        shared.insert(name.into(), own_reviewer(name, &reviewer, table)?);
    }
    tables.entries().into_iter().map(|(name, node)| workflow(name, node, &shared)).collect()
}

/// Builds and checks a workflow. `shared` are the reviewers it may name besides its own.
pub fn workflow(name: &str, node: &ConfigNode, shared: &Reviewers) -> Result<Workflow, ConfigError> {
    let WorkflowTable { definition: keys, shared: shared_keys } = node.read()?;
    let mut known = shared.clone();
    for (name, reviewer) in &keys.reviewers {
        let table = node.get(&[key::REVIEWERS, name]).unwrap_or(node);
        known.insert(name.as_str().into(), own_reviewer(name, reviewer, table)?);
    }
    let modes = keys.modes.clone().unwrap_or_default();
    let mut seen = HashSet::new();
    if let Some(mode) = modes.iter().find(|mode| !seen.insert(*mode)) {
        return Err(node.error(key::MODES, format!("mode `{mode}` is listed twice: write it once")));
    }
    check_mode(node, key_name!(DefinitionKeys, tools_in), keys.tools_in.as_deref(), &modes)?;
    let lists = [(key::BEFORE, &keys.before), (key::PHASES, &keys.phases), (key::AFTER, &keys.after)];
    let [before, phases, after] = lists.map(|(key, list)| {
        let tables = node.get(&[key]).map(ConfigNode::list).unwrap_or_default();
        let list = PhaseListReader { key, tables, phases: &list.0, reviewers: &known, modes: &modes };
        list.phases()
    });
    let (before, phases, after) = (before?, phases?, after?);
    if phases.is_empty() {
        return Err(node.error(key::PHASES, "no phases: write at least one [[phases]] table"));
    }
    let judges = [&before, &phases, &after].into_iter().flatten().filter_map(Phase::policy);
    let named: BTreeSet<_> = judges.flat_map(|gate_policy| &gate_policy.gate.reviewers).collect();
    known.retain(|name, _| named.contains(name) || !shared.contains_key(name));
    let mut workflow = Workflow {
        name: name.to_owned(),
        description: keys.description.unwrap_or_default(),
        completion: Completion::default(),
        landing: Landing::default(),
        arrangement: keys.arrangement.unwrap_or_default(),
        checkpoint_interval: None,
        limits: LoopLimits::default(),
        attempts_exhausted_as: ExhaustedAs::Failed,
        reviewers: known,
        prompts: BTreeMap::new(),
        modes,
        tools_in: keys.tools_in,
        before,
        phases,
        after,
    };
    shared_keys.apply_to(&mut workflow);
    Ok(workflow)
}

/// A reviewer of a workflow.
fn own_reviewer(name: &str, reviewer: &ReviewerKeys, table: &ConfigNode) -> Result<WorkflowReviewer, ConfigError> {
    let kind = reviewer.kind.ok_or_else(|| {
        let kinds = either(<ReviewerKind as strum::VariantNames>::VARIANTS);
        table.error(key::KIND, format!("reviewer `{name}` has no `kind`: expected {kinds}"))
    })?;
    Ok(WorkflowReviewer { kind, contract: reviewer.contract.unwrap_or(Contract::Auto) })
}

/// A mode that is named must be one of the workflow's.
fn check_mode(table: &ConfigNode, key: &str, mode: Option<&str>, modes: &[String]) -> Result<(), ConfigError> {
    let Some(mode) = mode.filter(|mode| !modes.iter().any(|known| known == mode)) else { return Ok(()) };
    let expected = if modes.is_empty() {
        format!("write `modes = [\"{mode}\"]` in the workflow")
    } else {
        format!("expected one of the workflow's `modes`, {}", modes.join(", "))
    };
    Err(table.error(key, format!("unknown mode `{mode}`: {expected}")))
}

/// One of the three lists of phases.
struct PhaseListReader<'a> {
    key: &'static str,
    tables: &'a [ConfigNode],
    phases: &'a [PhaseKeys],
    reviewers: &'a Reviewers,
    modes: &'a [String],
}

impl PhaseListReader<'_> {
    fn phases(&self) -> Result<Vec<Phase>, ConfigError> {
        if let Some(table) = self.tables.get(MAX_PHASES) {
            let (key, count) = (self.key, self.tables.len());
            let message = format!("`{key}` has {count} phases: expected at most {MAX_PHASES}");
            return Err(table.error(key::NAME, message));
        }
        let mut taken = HashSet::new();
        let mut phases = Vec::new();
        for (table, keys) in self.tables.iter().zip(self.phases) {
            let phase = PhaseReader { list: self, table, keys, earlier: &phases }.phase()?;
            if !taken.insert(phase.name.clone()) {
                let message = format!("two phases are called `{}`: write another name", phase.name);
                return Err(table.error(key::NAME, message));
            }
            phases.push(phase);
        }
        // A workflow without work judges work from elsewhere.
        let work = phases.iter().position(Phase::is_work).filter(|_| self.key == key::PHASES).unwrap_or(0);
        let early = phases.iter().zip(self.tables).take(work).find(|(phase, _)| phase.is_gate());
        if let Some((phase, table)) = early {
            let message = format!("gate `{}` has nothing to judge yet: write an agent phase before it", phase.name);
            return Err(table.error(key::NAME, message));
        }
        Ok(phases)
    }
}

/// One phase.
struct PhaseReader<'a> {
    list: &'a PhaseListReader<'a>,
    table: &'a ConfigNode,
    keys: &'a PhaseKeys,
    earlier: &'a [Phase],
}

impl PhaseReader<'_> {
    fn error(&self, key: &str, message: impl Into<String>) -> ConfigError {
        self.table.error(key, message)
    }

    fn phase(&self) -> Result<Phase, ConfigError> {
        let PhaseKeys { common, agent, work, .. } = self.keys;
        let name = common.name.clone().filter(|name| !name.trim().is_empty());
        let name = name.ok_or_else(|| self.error(key::NAME, "a phase needs a name: write `name = \"…\"`"))?;
        let kind = common.kind.ok_or_else(|| {
            self.error(key::KIND, format!("phase `{name}` has no `kind`: expected agent, gate or check"))
        })?;
        self.check_keys(kind)?;
        check_mode(self.table, "mode", common.mode.as_deref(), self.list.modes)?;
        Ok(Phase {
            kind: match kind {
                PhaseKindName::Agent => PhaseKind::Agent {
                    role: work.role.unwrap_or_default(),
                    timeout: work.timeout,
                    researchers: work.researchers.map_or(0, |number| number.0),
                },
                PhaseKindName::Gate => PhaseKind::Gate(self.gate(&name)?),
                PhaseKindName::Check => PhaseKind::Check(self.check(&name)?),
            },
            name,
            per_item: common.per_item.unwrap_or(false),
            once: common.once.unwrap_or(false),
            mode: common.mode.clone(),
            number: common.number,
            config_name: common.called.clone(),
            agent: agent.agent.clone(),
            tool: agent.tool.clone(),
            model: agent.model.clone(),
            prefers: agent.prefers,
            parallel_model: work.parallel_model.clone(),
        })
    }

    /// Refuses unknown keys, and those of other kinds of phases.
    fn check_keys(&self, kind: PhaseKindName) -> Result<(), ConfigError> {
        let known = kind.keys();
        let unknown = self.table.entries().into_iter().find(|(key, _)| !known.contains(key));
        let Some((key, _)) = unknown else { return Ok(()) };
        let fits = |other: PhaseKindName| other.keys().contains(&key);
        let what = match kind {
            PhaseKindName::Agent => "an agent phase",
            PhaseKindName::Gate => "a gate",
            PhaseKindName::Check => "a check",
        };
        let owner = match kind {
            PhaseKindName::Agent if fits(PhaseKindName::Gate) => "gates and checks",
            PhaseKindName::Check if REVIEWER_KEYS.contains(&key) => {
                "gates: the project's commands judge a check, not reviewers"
            }
            PhaseKindName::Check if fits(PhaseKindName::Gate) => {
                "agent phases and gates: the project's commands need no agent"
            }
            PhaseKindName::Gate | PhaseKindName::Check if fits(PhaseKindName::Agent) => "agent phases",
            PhaseKindName::Agent | PhaseKindName::Gate | PhaseKindName::Check => {
                return check_keys(self.table, what, &known);
            }
        };
        Err(self.error(key, format!("{what} has no `{key}`: expected it only in {owner}")))
    }

    fn gate(&self, name: &str) -> Result<GatePolicy, ConfigError> {
        let policy = self.judge(name)?;
        self.check_reviewers(name, &policy.gate)?;
        Ok(policy)
    }

    /// A check has no threshold: every finding of a failing command must be fixed.
    fn check(&self, name: &str) -> Result<GatePolicy, ConfigError> {
        let mut policy = self.judge(name)?;
        policy.gate.fail_on = FailThreshold::Low;
        Ok(policy)
    }

    fn judge(&self, name: &str) -> Result<GatePolicy, ConfigError> {
        let mut gate = default_gate();
        self.keys.gate.apply_to(&mut gate);
        check_exclusive(self.table, BOUNDS)?;
        let restart_to = self.restart_to(name)?;
        if let Some(key) = restart_key(&gate).filter(|_| self.earlier.is_empty()) {
            return Err(self.error(key, nothing_to_restart(key, name)));
        }
        Ok(GatePolicy { gate, restart_to, fixer: self.keys.restart.fixer.unwrap_or(Role::Fix) })
    }

    fn restart_to(&self, name: &str) -> Result<usize, ConfigError> {
        let Some(target) = self.keys.restart.restart_to.as_deref() else { return Ok(0) };
        let mode = &self.keys.common.mode;
        let Some(index) = self.earlier.iter().position(|phase| phase.name == target) else {
            return Err(self.error(key_name!(RestartKeys, restart_to), self.no_target(name, target)));
        };
        if self.earlier.get(index).is_some_and(|phase| phase.mode.is_none() || phase.mode == *mode) {
            return Ok(index);
        }
        let message = format!("restart target: a mode that runs `{name}` skips `{target}`");
        Err(self.error(key_name!(RestartKeys, restart_to), message))
    }

    fn no_target(&self, name: &str, target: &str) -> String {
        let mut names = self.list.phases.iter().filter_map(|phase| phase.common.name.as_deref());
        let wrong = if target == name {
            format!("`{target}` is the phase that restarts")
        } else if names.any(|name| name == target) {
            format!("`{target}` comes after `{name}`")
        } else {
            format!("unknown phase `{target}`")
        };
        let earlier: Vec<_> = self.earlier.iter().map(|phase| phase.name.as_str()).collect();
        let expected = if earlier.is_empty() { "but there is none".to_owned() } else { either(&earlier) };
        format!("restart target: {wrong}, expected a phase before `{name}`: {expected}")
    }

    fn check_reviewers(&self, name: &str, gate: &Gate) -> Result<(), ConfigError> {
        let known: Vec<_> = self.list.reviewers.keys().map(ReviewerName::as_str).collect();
        let expected = || match known.as_slice() {
            [] => "write a [reviewers.NAME] table for each one".to_owned(),
            known => {
                format!("expected some of {}, or write a [reviewers.NAME] table for another", known.join(", "))
            }
        };
        let unknown = gate.reviewers.iter().find(|name| !self.list.reviewers.contains_key(*name));
        let message = if gate.reviewers.is_empty() {
            format!("gate without reviewers: `{name}` needs `reviewers = [\"…\"]`; {}", expected())
        } else if let Some(reviewer) = unknown {
            format!("unknown reviewer `{reviewer}`: {}", did_you_mean(reviewer.as_str(), &known, expected))
        } else if let Some(message) = named_twice(&gate.reviewers) {
            message
        } else {
            return Ok(());
        };
        Err(self.error(key::REVIEWERS, message))
    }
}

/// The key that restarts, if the gate does.
pub fn restart_key(gate: &Gate) -> Option<&'static str> {
    if gate.on_failure.restarts() {
        Some(key_name!(GateKeys, on_failure))
    } else if gate.on_exhausted.restarts() {
        Some(key_name!(GateKeys, on_exhausted))
    } else {
        None
    }
}

/// The message about a restart with no phase before it: it would only use up the passes.
pub fn nothing_to_restart(key: &str, phase: &str) -> String {
    format!(
        "restart target: `{key}` is \"restart\", but there is no phase before `{phase}`: write another value, or \
         add a phase before it"
    )
}

/// The message about a reviewer that a gate names twice.
pub fn named_twice(reviewers: &[ReviewerName]) -> Option<String> {
    let mut seen = HashSet::new();
    let reviewer = reviewers.iter().find(|name| !seen.insert(*name))?;
    Some(format!("reviewer `{reviewer}` is named twice: write each name once"))
}
