//! Applying the configuration to presets and custom workflows.

use signoff_core::policy::{Bound, OnFailure};
use signoff_core::prompt::Depth;
use signoff_core::review::{FailThreshold, ReviewerKind};
use signoff_core::settings::{ConfigError, SettingOrigin, Settings};
use signoff_core::workflow::{Completion, GatePolicy, PRESETS, Phase, Workflow, preset};

use crate::config::{configured, try_configured};

fn gate<'w>(workflow: &'w Workflow, name: &str) -> &'w GatePolicy {
    let mut phases = workflow.before.iter().chain(&workflow.phases).chain(&workflow.after);
    phases.find(|phase| phase.name == name).and_then(Phase::policy).expect(name)
}

fn review(settings: &Settings, name: &str) -> GatePolicy {
    gate(&settings.workflow(name).expect(name), "review").clone()
}

#[test]
fn an_unconfigured_preset_is_unchanged() {
    let settings = configured("jobs = 2\n");
    for name in PRESETS {
        assert_eq!(settings.workflow(name).unwrap(), preset(name).unwrap());
    }
}

#[test]
fn the_gate_table_changes_the_preset_in_use_only() {
    let settings = configured("preset = \"plan\"\n[gate]\nfail_on = \"HIGH\"\n");
    assert_eq!(review(&settings, "plan").gate.fail_on, FailThreshold::High);
    assert_eq!(settings.workflow("task").unwrap(), preset("task").unwrap());
}

#[test]
fn setting_one_bound_removes_the_other() {
    let settings = configured("[gate]\nmax_fixes = 2\n");
    assert_eq!(review(&settings, "task").gate.bound, Bound::MaxFixes(2));
    let settings = configured("[gate]\nmax_fixes = 2\n[presets.task]\nmax_cycles = 4\n");
    assert_eq!(review(&settings, "task").gate.bound, Bound::MaxCycles(4));
}

/// Precedence: gate by name, preset, `[gate]`, `[defaults]`, built in.
#[test]
fn the_most_specific_gate_key_wins() {
    let mut text = "[defaults]\nmax_review_cycles = 2\n".to_owned();
    let bound = |text: &str| review(&configured(text), "task").gate.bound;
    assert_eq!(bound(""), Bound::MaxCycles(3));
    assert_eq!(bound(&text), Bound::MaxCycles(2));
    text += "[gate]\nmax_cycles = 4\n";
    assert_eq!(bound(&text), Bound::MaxCycles(4));
    text += "[presets.task]\neffort = \"max\"\n";
    assert_eq!(bound(&text), Bound::MaxFixes(5));
    text += "max_cycles = 6\n";
    assert_eq!(bound(&text), Bound::MaxCycles(6));
    text += "[presets.task.gates.review]\nmax_cycles = 7\n";
    assert_eq!(bound(&text), Bound::MaxCycles(7));
}

#[test]
fn a_preset_accepts_workflow_keys() {
    let settings = configured(
        "[presets.loops]\neffort = \"high\"\ncompletion = \"exit\"\nmax_attempts = 7\nfail_on = \"MEDIUM\"\n",
    );
    let loops = settings.workflow("loops").unwrap();
    assert_eq!(
        (loops.checkpoint_interval, loops.completion, loops.limits.max_attempts),
        (Some(3), Completion::Exit, 7)
    );
    for name in ["enumerate_review", "plan_review", "review", "final_review"] {
        let gate = &gate(&loops, name).gate;
        assert_eq!(
            (gate.bound, gate.depth, gate.fail_on),
            (Bound::MaxFixes(4), Depth::Deep, FailThreshold::Medium),
            "{name}"
        );
    }
}

#[test]
fn a_check_ignores_reviewer_keys() {
    let settings = configured(
        "[presets.phases]\nfail_on = \"NONE\"\nmax_fixes = 1\n[presets.phases.gates.test]\non_failure = \"mini-loop\"\n",
    );
    let phases = settings.workflow("phases").unwrap();
    let test = gate(&phases, "test");
    assert_eq!(
        (test.gate.fail_on, test.gate.bound, test.gate.on_failure),
        (FailThreshold::Low, Bound::MaxFixes(1), OnFailure::MiniLoop)
    );
    assert_eq!(gate(&phases, "code_review").gate.fail_on, FailThreshold::None);
}

#[test]
fn the_defaults_switch_a_gate_on_and_never_off() {
    let on = |text: &str, name: &str| review(&configured(text), name).gate.enabled;
    assert!(!on("", "task"));
    assert!(on("[defaults]\nauto_review = true\n", "task"));
    assert!(on("preset = \"plan\"\n[defaults]\nauto_review = false\n", "plan"));
    assert!(!on("[defaults]\nauto_review = true\n", "slots"), "not the preset in use");
}

#[test]
fn reviewers_can_be_added_and_changed_key_by_key() {
    let settings = configured(
        "\
[reviewers.spec]
kind = \"spec\"

[reviewers.safety]
kind = \"security\"
contract = \"severity\"

[reviewers.general]
contract = \"json\"

[reviewers.unused]
kind = \"code\"

[gate]
reviewers = [\"spec\", \"safety\"]
",
    );
    let task = settings.workflow("task").unwrap();
    let kinds: Vec<_> = task
        .reviewers
        .iter()
        .map(|(name, one)| format!("{name} {} {}", one.kind.into_str(), one.contract.into_str()))
        .collect();
    assert_eq!(kinds, ["safety security severity", "spec spec auto"]);
    let slots = settings.workflow("slots").unwrap();
    assert_eq!(slots.reviewers[&"general".into()].kind, ReviewerKind::General);
    assert_eq!(settings.workflow("plan").unwrap().reviewers[&"spec".into()].contract.into_str(), "xml");
}

#[test]
fn a_custom_workflow_may_name_the_reviewers_of_every_layer() {
    let text = "\
preset = \"mine\"

[reviewers.code]
contract = \"xml\"

[workflows.mine]
description = \"one look\"
phases = [
  { name = \"implement\", kind = \"agent\" },
  { name = \"look\", kind = \"gate\", reviewers = [\"code\"], max_cycles = 1 },
]

[presets.mine.gates.look]
fail_on = \"NONE\"
";
    let settings = configured(text);
    let mine = settings.workflow("mine").unwrap();
    assert_eq!(gate(&mine, "look").gate.fail_on, FailThreshold::None);
    assert_eq!(mine.reviewers[&"code".into()].contract.into_str(), "xml");
}

#[test]
fn values_of_a_custom_workflow_come_from_their_lines_or_are_built_in() {
    let text = "\
preset = \"mine\"
[reviewers.code]
[workflows.mine]
[[workflows.mine.phases]]
name = \"implement\"
kind = \"agent\"
[[workflows.mine.phases]]
name = \"look\"
kind = \"gate\"
reviewers = [\"code\"]
max_fixes = 2
fail_on = \"HIGH\"
[presets.mine.gates.look]
on_failure = \"stop\"
";
    let rows = configured(text).origins();
    let own = rows.iter().filter(|row| row.key.contains("mine."));
    let of_people = own.clone().filter(|row| row.origin != SettingOrigin::Default);
    let lines = of_people.map(|row| format!("{} = {} ({})", row.key, row.text(), row.origin));
    let mut lines: Vec<_> = lines.collect();
    lines.sort();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    presets.mine.gates.look.fail_on = "HIGH" (signoff.toml:12)
    presets.mine.gates.look.max_fixes = 2 (signoff.toml:11)
    presets.mine.gates.look.on_failure = "stop" (signoff.toml:14)
    presets.mine.gates.look.reviewers = ["code"] (signoff.toml:10)
    "#);
    assert!(own.count() > 10, "built-in settings are listed too");
    let mine = rows.iter().find(|row| row.key == "workflows.mine").unwrap();
    assert_eq!(mine.text(), r#"["implement", "look"]"#);
}

#[test]
fn an_unknown_workflow_is_refused() {
    let error = configured("").workflow("tsak").unwrap_err();
    assert!(matches!(error, ConfigError::UnknownWorkflow { .. }));
    insta::assert_snapshot!(error, @"unknown workflow `tsak`: did you mean `task`?");
    insta::assert_snapshot!(configured("").workflow("waterfall").unwrap_err(), @"unknown workflow `waterfall`: expected one of task, slots, plan, loops, phases");
    assert!(try_configured("[workflows.task]\nphases = []\n").is_err());
}
