//! A workflow as a table a person can read.

use std::fmt::Write;

use super::{Phase, PhaseKind, Restarting, Role, Workflow};
use crate::policy::{Bound, Gate, Span};

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
    let mut rows = vec![
        ("a task is done by", word(&workflow.completion)),
        ("tasks are worked as", word(&workflow.arrangement)),
        ("lands", word(&workflow.landing)),
        ("max_attempts", workflow.limits.max_attempts.to_string()),
        ("max_passes", workflow.limits.max_passes.to_string()),
    ];
    if let Some(interval) = workflow.checkpoint_interval {
        rows.push(("checkpoint review", format!("every {interval} attempts")));
    }
    if !workflow.modes.is_empty() {
        rows.push(("modes", workflow.modes.join(", ")));
    }
    rows
}

fn section(out: &mut String, title: &str, workflow: &Workflow, phases: &[Phase]) {
    if phases.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}");
    for (index, phase) in phases.iter().enumerate() {
        let _ = writeln!(out, "  {}. {}", index + 1, title_of(phase));
        for (key, value) in rows(workflow, phases, phase) {
            let _ = writeln!(out, "       {key:<24}{value}");
        }
    }
}

fn title_of(phase: &Phase) -> String {
    let kind = match &phase.kind {
        PhaseKind::Agent { role, .. } => format!("agent ({})", role.word()),
        PhaseKind::Gate(policy) if policy.gate.enabled => "gate".to_owned(),
        PhaseKind::Gate(_) => "gate, off unless switched on".to_owned(),
        PhaseKind::Check(_) => "check".to_owned(),
    };
    let mut title = format!("{} — {kind}", phase.name);
    let marks = [(phase.per_item, "for each item"), (phase.once, "once")];
    for (_, mark) in marks.iter().filter(|(set, _)| *set) {
        let _ = write!(title, ", {mark}");
    }
    if let Some(mode) = &phase.mode {
        let _ = write!(title, ", only in mode {mode}");
    }
    title
}

fn rows(workflow: &Workflow, phases: &[Phase], phase: &Phase) -> Vec<(&'static str, String)> {
    match &phase.kind {
        PhaseKind::Agent { timeout, researchers, .. } => {
            let mut rows = Vec::new();
            rows.extend(timeout.map(|span| ("timeout", span.to_string())));
            rows.extend((*researchers > 0).then(|| ("researchers", researchers.to_string())));
            rows
        }
        PhaseKind::Gate(policy) => {
            let mut rows = vec![
                ("reviewers", reviewers(workflow, &policy.gate)),
                ("fail_on", word(&policy.gate.fail_on)),
            ];
            rows.extend(judge_rows(phases, policy));
            rows
        }
        PhaseKind::Check(policy) => judge_rows(phases, policy),
    }
}

fn judge_rows(phases: &[Phase], policy: &Restarting) -> Vec<(&'static str, String)> {
    let gate = &policy.gate;
    let target = phases.get(policy.restart_to).map_or("", |phase| phase.name.as_str());
    let mut rows = vec![
        ("on_failure", word(&gate.on_failure)),
        bound(gate.bound),
        ("on_exhausted", format!("{}, as {}", word(&gate.on_exhausted), word(&gate.exhausted_as))),
        ("restart_to", target.to_owned()),
        ("on_unclear", gate.on_unclear.to_string()),
        ("on_reviewer_failure", gate.on_reviewer_failure.to_string()),
        ("on_fixer_failure", gate.on_fixer_failure.to_string()),
        ("on_implementer_failure", gate.on_implementer_failure.to_string()),
        ("on_discussion", gate.on_discussion.to_string()),
        ("author_output", gate.author_output.to_string()),
        ("parallel_fixes", gate.parallel_fixes.to_string()),
        ("rereview", word(&gate.rereview)),
        ("depth", word(&gate.depth)),
        ("max_same_finding", number(gate.max_same_finding)),
        ("max_noop_fixes", number(gate.max_noop_fixes)),
    ];
    rows.extend((policy.fixer != Role::Fix).then(|| ("fixer", policy.fixer.word().to_owned())));
    rows.extend(gate.require_nonce.then(|| ("require_nonce", "true".to_owned())));
    rows.extend(timeout("review_timeout", gate.review_timeout));
    rows.extend(timeout("fix_timeout", gate.fix_timeout));
    rows
}

fn reviewers(workflow: &Workflow, gate: &Gate) -> String {
    let one = |name: &crate::ids::ReviewerName| match workflow.reviewers.get(name) {
        Some(reviewer) => format!("{name} ({}, {})", reviewer.kind.word(), word(&reviewer.contract)),
        None => name.to_string(),
    };
    gate.reviewers.iter().map(one).collect::<Vec<_>>().join(" ∥ ")
}

fn bound(bound: Bound) -> (&'static str, String) {
    match bound {
        Bound::MaxCycles(cycles) => ("max_cycles", cycles.to_string()),
        Bound::MaxFixes(fixes) => ("max_fixes", fixes.to_string()),
        Bound::Unlimited => ("max_fixes", "unlimited".to_owned()),
    }
}

fn number(value: Option<u32>) -> String {
    value.map_or("off".to_owned(), |value| value.to_string())
}

fn timeout(key: &'static str, span: Option<Span>) -> Option<(&'static str, String)> {
    span.map(|span| (key, span.to_string()))
}

/// The word a value is written with in TOML.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(error) => error.to_string(),
    }
}
