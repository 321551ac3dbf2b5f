//! A workflow as a table a person can read.

use std::fmt::Write;

use serde_json::Value;

use super::keys::{BOUNDS, DefinitionKeys, REVIEWER_KEYS, RestartKeys, WorkKeys, WorkflowKeys};
use super::{Completion, GateKeys, GatePolicy, Landing, Phase, PhaseKind, Role, Scheduling, Workflow};
use crate::policy::{Bound, FailureAction, Gate};
use crate::settings::key;
use crate::settings::rules::key_name;

/// The keys that workflows and presets share.
type SharedKeys = WorkflowKeys<(), ()>;

/// The whole workflow, phase by phase.
pub fn render(workflow: &Workflow) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{} — {}", workflow.name, workflow.description);
    for (label, value) in head(workflow) {
        let _ = writeln!(out, "  {label:<24}{value}");
    }
    section(&mut out, "before the tasks", workflow, &workflow.before);
    section(&mut out, "phases", workflow, &workflow.phases);
    section(&mut out, "after the tasks", workflow, &workflow.after);
    out
}

fn head(workflow: &Workflow) -> Vec<(&'static str, String)> {
    let limits = &workflow.limits;
    let exhausted = toml_value(&workflow.attempts_exhausted_as);
    let mut rows = vec![
        ("arrangement", explained(&workflow.arrangement, arrangement(workflow.arrangement))),
        ("completion", explained(&workflow.completion, completion(workflow.completion))),
        ("landing", explained(&workflow.landing, landing(workflow.landing))),
        (key_name!(SharedKeys, max_attempts), format!("{}, then {exhausted}", limits.max_attempts)),
        (key_name!(SharedKeys, max_passes), limits.max_passes.to_string()),
        (key_name!(SharedKeys, max_recoveries), limits.max_recoveries.to_string()),
        (key_name!(SharedKeys, max_conflicts), limits.max_conflicts.to_string()),
    ];
    if let Some(interval) = workflow.checkpoint_interval {
        let explanation = format!("{interval}: review all loops every {interval} attempts");
        rows.push((key_name!(SharedKeys, checkpoint_interval), explanation));
    }
    if !workflow.modes.is_empty() {
        rows.push((key::MODES, workflow.modes.join(", ")));
    }
    if let Some(mode) = &workflow.tools_in {
        let explanation = format!("{mode}: in other modes no phase uses a tool of another program");
        rows.push((key_name!(DefinitionKeys, tools_in), explanation));
    }
    if !workflow.prompts.is_empty() {
        let prompts = workflow.prompts.iter().map(|(role, path)| format!("{role} {path}"));
        rows.push((key::PROMPTS, prompts.collect::<Vec<_>>().join(", ")));
    }
    rows
}

fn arrangement(arrangement: Scheduling) -> &'static str {
    match arrangement {
        Scheduling::Queue => "independent tasks, several at once",
        Scheduling::Slots => "tasks are picked while slots are free",
        Scheduling::Chain => "one task after the other, each on top of the one before",
        Scheduling::Groups => "all tasks of a group at once, group after group",
    }
}

fn completion(completion: Completion) -> &'static str {
    match completion {
        Completion::Exit => "the task is done when its agent exits successfully",
        Completion::Marker => "the last line of the agent's final message says whether its task is done",
    }
}

fn landing(landing: Landing) -> &'static str {
    match landing {
        Landing::None => "signed-off work stays on its branch",
        Landing::Each => "signed-off work joins the run's branch at once",
        Landing::Group => "a group's work joins the run's branch when all of it is signed off",
    }
}

fn explained(value: &impl serde::Serialize, why: &str) -> String {
    format!("{}: {why}", toml_value(value))
}

fn section(out: &mut String, title: &str, workflow: &Workflow, phases: &[Phase]) {
    if phases.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}");
    let mut number = 0;
    for phase in phases {
        // An item's own gate belongs to the phase that works the item.
        let belongs = phase.per_item && phase.policy().is_some();
        number = phase.number.unwrap_or(number + u32::from(!belongs));
        let mark = if belongs { " +".to_owned() } else { format!("{number}.") };
        let _ = writeln!(out, "  {mark} {}", title_of(phase));
        for (key, value) in rows(workflow, phases, phase) {
            let _ = writeln!(out, "       {key:<24}{value}");
        }
    }
}

fn title_of(phase: &Phase) -> String {
    let kind = match &phase.kind {
        PhaseKind::Agent { role, .. } => format!("agent ({})", role.into_str()),
        PhaseKind::Gate(_) => "gate".to_owned(),
        PhaseKind::Check(_) => "check".to_owned(),
    };
    let mut title = format!("{} — {kind}", phase.name);
    let marks = [(phase.is_off(), "off unless switched on"), (phase.per_item, "for each item"), (phase.once, "once")];
    for (_, mark) in marks.iter().filter(|(set, _)| *set) {
        let _ = write!(title, ", {mark}");
    }
    if let Some(mode) = &phase.mode {
        let _ = write!(title, ", only in mode {mode}");
    }
    title
}

fn rows(workflow: &Workflow, phases: &[Phase], phase: &Phase) -> Vec<(&'static str, String)> {
    let who = [
        (key::AGENT, &phase.agent),
        (key::TOOL, &phase.tool),
        (key::MODEL, &phase.model),
        (key_name!(WorkKeys, parallel_model), &phase.parallel_model),
    ];
    let mut rows: Vec<_> = who.into_iter().filter_map(|(key, name)| Some((key, name.clone()?))).collect();
    rows.extend(phase.prefers.map(|kind| ("prefers", format!("an agent of kind {}", kind.into_str()))));
    rows.extend(policy_rows(workflow, phases, phase));
    rows
}

fn policy_rows(workflow: &Workflow, phases: &[Phase], phase: &Phase) -> Vec<(&'static str, String)> {
    match &phase.kind {
        PhaseKind::Agent { timeout, researchers, .. } => {
            let mut rows = Vec::new();
            rows.extend(timeout.map(|span| (key::TIMEOUT, span.to_string())));
            rows.extend((*researchers > 0).then(|| (key::RESEARCHERS, researchers.to_string())));
            rows
        }
        PhaseKind::Gate(policy) => judge_rows(workflow, phases, policy),
        PhaseKind::Check(policy) => {
            let mut rows = judge_rows(workflow, phases, policy);
            rows.retain(|(key, _)| !REVIEWER_KEYS.contains(key));
            rows
        }
    }
}

fn judge_rows(workflow: &Workflow, phases: &[Phase], policy: &GatePolicy) -> Vec<(&'static str, String)> {
    let gate = &policy.gate;
    let explained = [(key_name!(GateKeys, reviewers), reviewers(workflow, gate)), bound(gate), on_exhausted(gate)];
    let hidden = key_name!(GateKeys, [enabled, exhausted_as]);
    let values = serde_json::to_value(gate).unwrap_or_default();
    let row = |key: &'static str| {
        let value = text_of(key, values.get(key)?)?;
        let explained = explained.iter().find(|(known, _)| *known == key);
        Some((key, explained.map_or(value, |(_, text)| text.clone())))
    };
    let keys = GateKeys::keys().into_iter().filter(|key| !hidden.contains(key));
    let mut rows: Vec<_> = keys.filter_map(row).collect();
    let leads_back = |target: &&Phase| may_restart(gate) && target.policy() != Some(policy);
    let target = phases.get(policy.restart_to).filter(leads_back);
    rows.extend(target.map(|phase| (key_name!(RestartKeys, restart_to), phase.name.clone())));
    rows.extend((policy.fixer != Role::Fix).then(|| ("fixer", policy.fixer.into_str().to_owned())));
    rows
}

/// The value of a key for people. None: it is not set.
fn text_of(key: &str, value: &Value) -> Option<String> {
    Some(match value {
        Value::Null if key.starts_with("max_") => "off".to_owned(),
        Value::Null => return None,
        Value::Bool(flag) => if *flag { "yes" } else { "no" }.to_owned(),
        Value::String(word) => word.clone(),
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        Value::Number(_) | Value::Object(_) => value.to_string(),
    })
}

fn on_exhausted(gate: &Gate) -> (&'static str, String) {
    let what = toml_value(&gate.on_exhausted);
    let outcome = gate.on_exhausted.stops().then(|| format!(", as {}", toml_value(&gate.exhausted_as)));
    (key_name!(GateKeys, on_exhausted), what + &outcome.unwrap_or_default())
}

/// Whether a restart is possible, by the policy or by a person's answer.
fn may_restart(gate: &Gate) -> bool {
    gate.on_failure.restarts()
        || gate.on_exhausted.may_restart()
        || gate.escalations().iter().any(|escalation| escalation.actions().contains(&FailureAction::Ask))
}

fn reviewers(workflow: &Workflow, gate: &Gate) -> String {
    let one = |name: &crate::ids::ReviewerName| match workflow.reviewers.get(name) {
        Some(reviewer) => format!("{name} ({}, {})", reviewer.kind.into_str(), toml_value(&reviewer.contract)),
        None => name.to_string(),
    };
    gate.reviewers.iter().map(one).collect::<Vec<_>>().join(" ∥ ")
}

/// The limit of the gate, with reviews and fixes if this gate fixes and reviews again.
fn bound(gate: &Gate) -> (&'static str, String) {
    let [max_cycles, max_fixes] = BOUNDS;
    let (key, number) = match gate.bound {
        Bound::MaxCycles(cycles) => (max_cycles, cycles),
        Bound::MaxFixes(fixes) => (max_fixes, fixes),
        Bound::Unlimited => return (max_fixes, "unlimited".to_owned()),
    };
    if !gate.on_failure.fixes_in_place() {
        return (key, number.to_string());
    }
    let (reviews, fixes) = (gate.bound.reviews().unwrap_or(0), gate.bound.fixes().unwrap_or(0));
    let reviews = if reviews == 1 { "1 review".to_owned() } else { format!("{reviews} reviews") };
    let fixes = if fixes == 1 { "1 fix".to_owned() } else { format!("{fixes} fixes") };
    (key, format!("{number} ({reviews}, {fixes})"))
}

/// Formats a value as it is written in TOML.
fn toml_value(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(error) => error.to_string(),
    }
}
