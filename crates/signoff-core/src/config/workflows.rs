//! The workflow that a preset or a person's own one becomes under the configuration.

use std::collections::BTreeSet;

use super::gate::{GateSettings, PresetSettings, other_bound};
use super::tables::ReviewerSettings;
use super::value::Text;
use super::{ConfigError, Origin, Setting, Settings};
use crate::contract::Contract;
use crate::ids::ReviewerName;
use crate::policy::{Bound, OnExhausted, OnFailure};
use crate::review::ReviewerKind;
use crate::workflow::problem::nearest;
use crate::workflow::resolve::nothing_to_restart;
use crate::workflow::words::Reviewers;
use crate::workflow::{self, PRESETS, Phase, PhaseKind, Restarting, Reviewer, Workflow};

/// The preset whose keys may stand at the top of the file.
pub(super) const SLOTS: &str = "slots";

impl Settings {
    /// A preset, or a workflow of one's own, with what the configuration says about it.
    pub fn workflow(&self, name: &str) -> Result<Workflow, ConfigError> {
        let mut workflow = self.untouched(name)?;
        self.introduce_reviewers(&mut workflow);
        if name == self.preset() {
            self.lay_defaults(&mut workflow);
            each_judge(&mut workflow, |phase| self.written.gate.lay_over(phase));
        }
        if name == SLOTS {
            self.lay_slot_keys(&mut workflow);
        }
        if let Some(preset) = self.written.presets.0.get(name) {
            workflow = lay_preset(workflow, preset);
        }
        self.seat_checks(&mut workflow);
        workflow.limits.max_rate_limits = self.written.limits.max_rate_limits.value.small();
        self.check_gates(&workflow)?;
        leave_the_named(&mut workflow);
        Ok(workflow)
    }

    /// The names one can ask [`Settings::workflow`] for.
    pub fn workflow_names(&self) -> Vec<&str> {
        PRESETS.into_iter().chain(self.workflows.keys().map(String::as_str)).collect()
    }

    pub(super) fn untouched(&self, name: &str) -> Result<Workflow, ConfigError> {
        let own = self.workflows.get(name).map(|own| own.workflow.clone());
        own.or_else(|| workflow::preset(name)).ok_or_else(|| ConfigError::UnknownWorkflow {
            name: name.to_owned(),
            expected: self.expected_workflow(name),
        })
    }

    pub(super) fn expected_workflow(&self, name: &str) -> String {
        let known = self.workflow_names();
        match nearest(name, &known) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("expected one of {}", known.join(", ")),
        }
    }

    /// A preset's reviewer is changed key by key. A workflow of one's own knows its reviewers already.
    fn introduce_reviewers(&self, workflow: &mut Workflow) {
        let own = self.workflows.contains_key(&workflow.name);
        for (name, settings) in &self.written.reviewers.0 {
            let name = ReviewerName::from(name.as_str());
            let known = workflow.reviewers.get(&name).cloned();
            if known.is_some() && own {
                continue;
            }
            if let Some(reviewer) = reviewer(&name, settings, known) {
                workflow.reviewers.insert(name, reviewer);
            }
        }
    }

    /// The reviewers that every workflow may name.
    pub(super) fn shared_reviewers(&self) -> Reviewers {
        let one = |(name, settings): (&String, &ReviewerSettings)| {
            let name = ReviewerName::from(name.as_str());
            reviewer(&name, settings, None).map(|reviewer| (name, reviewer))
        };
        self.written.reviewers.0.iter().filter_map(one).collect()
    }

    /// `auto_review = true` switches on a gate that is off; without a word about it a reviewer or a check does.
    fn lay_defaults(&self, workflow: &mut Workflow) {
        let defaults = &self.written.defaults;
        let said = defaults.auto_review.written().copied();
        let on = said.unwrap_or_else(|| self.reviews_by_default(&workflow.name));
        let Some(policy) = the_gate(workflow) else { return };
        policy.gate.enabled |= on;
        if let Some(cycles) = defaults.max_review_cycles.written() {
            policy.gate.bound = Bound::MaxCycles(cycles.small());
        }
    }

    /// The keys at the top of the file that speak of one preset.
    fn lay_slot_keys(&self, workflow: &mut Workflow) {
        let written = &self.written;
        if let Some(policy) = the_gate(workflow) {
            policy.gate.enabled = written.reviewEnabled.as_ref().map_or(policy.gate.enabled, |set| set.value);
            if let Some(fixes) = &written.reviewMaxFixAttempts {
                policy.gate.bound = Bound::MaxFixes(fixes.value.small());
            }
        }
        let path =
            |setting: &Option<Setting<Text>>| setting.as_ref().map(|set| set.value.as_str().to_owned());
        let (developer, reviewer) = (path(&written.developerPromptPath), path(&written.reviewerPromptPath));
        workflow.lay_prompts(developer.as_deref(), reviewer.as_deref());
    }

    /// Who decided a key of a gate, if it was not the workflow itself. Both bounds are one thing.
    pub(super) fn gate_origin(&self, workflow: &str, gate: &str, key: &str) -> Option<Origin> {
        self.gate_word(workflow, gate, key).map(|(_, origin)| origin)
    }

    /// The same, with the key that has the last word.
    pub(super) fn gate_word(&self, workflow: &str, gate: &str, key: &str) -> Option<(String, Origin)> {
        let preset = self.written.presets.0.get(workflow);
        let said = |table: &str, gate: Option<&GateSettings>| {
            let (word, origin) = gate?.last_word(key)?;
            Some((format!("{table}.{word}"), origin.clone()))
        };
        let table = format!("presets.{workflow}");
        let by_effort = || {
            let effort = preset?.whole.effort.as_ref()?;
            let concerned = other_bound(key).is_some() || key == "depth";
            concerned.then(|| (format!("{table}.effort"), effort.origin.clone()))
        };
        let general = Some(&self.written.gate).filter(|_| workflow == self.preset());
        said(&format!("{table}.gates.{gate}"), preset.and_then(|preset| preset.named(gate)))
            .or_else(|| said(&table, preset.map(|preset| &preset.gate)))
            .or_else(by_effort)
            .or_else(|| self.slot_key(key).filter(|_| workflow == SLOTS))
            .or_else(|| said("gate", general))
            .or_else(|| self.default_word(workflow, key))
    }

    fn slot_key(&self, key: &str) -> Option<(String, Origin)> {
        let written = &self.written;
        let (word, origin) = match key {
            "enabled" => ("reviewEnabled", &written.reviewEnabled.as_ref()?.origin),
            "max_fixes" | "max_cycles" => {
                ("reviewMaxFixAttempts", &written.reviewMaxFixAttempts.as_ref()?.origin)
            }
            _ => return None,
        };
        Some((word.to_owned(), origin.clone()))
    }

    fn default_word(&self, workflow: &str, key: &str) -> Option<(String, Origin)> {
        let defaults = &self.written.defaults;
        let (word, origin) = match key {
            "enabled" if defaults.auto_review.written() == Some(&true) => {
                ("auto_review", &defaults.auto_review.origin)
            }
            "max_cycles" | "max_fixes" => ("max_review_cycles", &defaults.max_review_cycles.origin),
            _ => return None,
        };
        let counts = *origin != Origin::Default && workflow == self.preset() && self.has_one_gate(workflow);
        counts.then(|| (format!("defaults.{word}"), origin.clone()))
    }

    /// Whether a workflow is one that `[defaults]` can speak of.
    pub(super) fn has_one_gate(&self, workflow: &str) -> bool {
        self.untouched(workflow).ok().is_some_and(|mut known| the_gate(&mut known).is_some())
    }

    /// Whatever was laid over the gates still has to make sense.
    pub(super) fn check_gates(&self, workflow: &Workflow) -> Result<(), ConfigError> {
        for phases in [&workflow.before, &workflow.phases, &workflow.after] {
            for (index, phase) in phases.iter().enumerate() {
                let Some(policy) = phase.judge() else { continue };
                let error = |key: &str, message: String| {
                    let origin = self.gate_origin(&workflow.name, phase.gate_name(), key);
                    origin.unwrap_or(Origin::Default).error(message)
                };
                if let Some(key) = restarts(policy).filter(|_| index == 0) {
                    return Err(error(key, nothing_to_restart(key, &phase.name)));
                }
                if let Some(stranger) = unknown_reviewer(workflow, phase) {
                    return Err(error(
                        "reviewers",
                        format!("unknown reviewer `{stranger}`: {}", expected(workflow, stranger)),
                    ));
                }
            }
        }
        Ok(())
    }
}

/// A reviewer as a workflow sees it. None if nothing tells what it looks for.
fn reviewer(name: &ReviewerName, settings: &ReviewerSettings, known: Option<Reviewer>) -> Option<Reviewer> {
    let kind = settings.kind.as_ref().map(|kind| kind.value);
    let kind = kind.or(known.as_ref().map(|known| known.kind)).or(ReviewerKind::from_word(name.as_str()))?;
    let contract = settings.contract.as_ref().map(|contract| contract.value);
    let contract = contract.or(known.map(|known| known.contract)).unwrap_or(Contract::Auto);
    Some(Reviewer { kind, contract })
}

fn lay_preset(mut workflow: Workflow, preset: &PresetSettings) -> Workflow {
    let whole = &preset.whole;
    if let Some(effort) = &whole.effort {
        workflow = workflow.with_effort(effort.value);
    }
    workflow.completion = whole.completion.as_ref().map_or(workflow.completion, |set| set.value);
    workflow.landing = whole.landing.as_ref().map_or(workflow.landing, |set| set.value);
    if let Some(interval) = &whole.checkpoint_interval {
        workflow.checkpoint_interval = Some(interval.value).filter(|interval| *interval > 0);
    }
    let limits = &mut workflow.limits;
    limits.max_attempts = whole.max_attempts.as_ref().map_or(limits.max_attempts, |set| set.value.small());
    limits.max_passes = whole.max_passes.as_ref().map_or(limits.max_passes, |set| set.value.small());
    limits.max_recoveries = whole.max_recoveries.as_ref().map_or(limits.max_recoveries, |set| set.value);
    limits.max_conflicts = whole.max_conflicts.as_ref().map_or(limits.max_conflicts, |set| set.value);
    if let Some(exhausted) = &whole.attempts_exhausted_as {
        workflow.attempts_exhausted_as = exhausted.value;
    }
    whole.phase.lay_over(&mut workflow);
    each_judge(&mut workflow, |phase| {
        preset.gate.lay_over(phase);
        if let Some(named) = preset.named(phase.gate_name()) {
            named.switch_on(phase);
            named.lay_over(phase);
        }
    });
    workflow
}

/// Every gate and check, those of the run included.
pub(super) fn each_judge(workflow: &mut Workflow, change: impl Fn(&mut Phase)) {
    let phases = workflow.before.iter_mut().chain(&mut workflow.phases).chain(&mut workflow.after);
    phases.filter(|phase| phase.judge().is_some()).for_each(change);
}

/// The gate of a workflow that has one. Where there are several, each speaks for itself.
pub(super) fn the_gate(workflow: &mut Workflow) -> Option<&mut Restarting> {
    let mut gates = workflow.phases.iter_mut().filter_map(|phase| match &mut phase.kind {
        PhaseKind::Gate(policy) => Some(policy),
        PhaseKind::Agent { .. } | PhaseKind::Check(_) => None,
    });
    gates.next().filter(|_| gates.next().is_none())
}

fn restarts(policy: &Restarting) -> Option<&'static str> {
    if policy.gate.on_failure == OnFailure::Restart {
        Some("on_failure")
    } else if policy.gate.on_exhausted == OnExhausted::Restart {
        Some("on_exhausted")
    } else {
        None
    }
}

fn unknown_reviewer<'w>(workflow: &'w Workflow, phase: &'w Phase) -> Option<&'w ReviewerName> {
    let reviewers = &phase.judge()?.gate.reviewers;
    reviewers.iter().find(|name| !workflow.reviewers.contains_key(*name))
}

fn expected(workflow: &Workflow, stranger: &ReviewerName) -> String {
    let known: Vec<_> = workflow.reviewers.keys().map(ReviewerName::as_str).collect();
    match nearest(stranger.as_str(), &known) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!(
            "the reviewers here are {}; write a [reviewers.{stranger}] table for another",
            known.join(", ")
        ),
    }
}

/// A workflow has the reviewers that its gates name.
fn leave_the_named(workflow: &mut Workflow) {
    let phases = workflow.before.iter().chain(&workflow.phases).chain(&workflow.after);
    let called: BTreeSet<_> =
        phases.filter_map(Phase::judge).flat_map(|judge| judge.gate.reviewers.clone()).collect();
    workflow.reviewers.retain(|name, _| called.contains(name));
}
