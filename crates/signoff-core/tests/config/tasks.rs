//! The workflow of one task.

use signoff_core::policy::{Bound, Count, Effort, OnFailure};
use signoff_core::review::FailThreshold;
use signoff_core::settings::{ExpectedReviews, TaskFlags};
use signoff_core::task::{TaskSpec, TaskType};
use signoff_core::workflow::{FixBound, GateKeys, Phase, PhaseKind, Workflow};
use strum::VariantArray as _;

use crate::config::configured;

fn task(kind: TaskType) -> TaskSpec {
    TaskSpec { kind, ..TaskSpec::from_text("Add login") }
}

fn flags(keys: GateKeys) -> TaskFlags {
    TaskFlags { gate: keys, ..TaskFlags::default() }
}

/// The phases, with the fields that depend on the task.
fn shown(workflow: &Workflow) -> String {
    let summary = |phase: &Phase| match &phase.kind {
        PhaseKind::Agent { role, timeout, .. } => {
            format!("{}: {} {}", phase.name, role.into_str(), timeout.map_or("-".to_owned(), |span| span.to_string()))
        }
        PhaseKind::Gate(policy) | PhaseKind::Check(policy) => {
            let gate = &policy.gate;
            let time =
                |span: Option<signoff_core::policy::TimeSpan>| span.map_or("-".to_owned(), |span| span.to_string());
            let state = if gate.enabled { "on" } else { "off" };
            format!(
                "{}: {state} {:?} {:?} {} {}",
                phase.name,
                gate.on_failure,
                gate.bound,
                time(gate.review_timeout),
                time(gate.fix_timeout)
            )
        }
    };
    workflow.phases.iter().map(summary).collect::<Vec<_>>().join("\n")
}

fn phases_of(text: &str, task: &TaskSpec, flags: &TaskFlags) -> String {
    shown(&configured(text).task_workflow(task, flags).expect("a workflow"))
}

#[test]
fn each_type_has_its_phases() {
    let plain = |kind| phases_of("", &task(kind), &TaskFlags::default());
    insta::assert_snapshot!(plain(TaskType::Implement), @"
    implement: implement 1h
    review: off MiniLoop MaxCycles(3) 10m 30m
    ");
    insta::assert_snapshot!(plain(TaskType::Improve), @"
    improve: fix 30m
    review: off MiniLoop MaxCycles(3) 10m 30m
    ");
    insta::assert_snapshot!(plain(TaskType::Review), @"review: on Proceed MaxCycles(1) 10m 30m");
    insta::assert_snapshot!(plain(TaskType::Plan), @"plan: plan 1h");
}

#[test]
fn the_keys_of_a_task_type_reach_their_phases() {
    let keys = "max_review_cycles = 5\ntimeout_minutes = 20\nreview_timeout_minutes = 4\nimprove_timeout_minutes = 8\nauto_review = true\n";
    for &kind in TaskType::VARIANTS {
        let text = format!("[task_types.{}]\n{keys}", kind.into_str());
        let shown = phases_of(&text, &task(kind), &TaskFlags::default());
        insta::allow_duplicates! {
            match kind {
                TaskType::Implement => insta::assert_snapshot!(shown, @"
                implement: implement 20m
                review: on MiniLoop MaxCycles(5) 4m 8m
                "),
                TaskType::Improve => insta::assert_snapshot!(shown, @"
                improve: fix 20m
                review: on MiniLoop MaxCycles(5) 4m 8m
                "),
                TaskType::Review => insta::assert_snapshot!(shown, @"review: on Proceed MaxCycles(1) 4m 8m"),
                TaskType::Plan => insta::assert_snapshot!(shown, @"plan: plan 20m"),
            }
        }
    }
}

/// One case for each setting that switches the review on or off, in order of precedence.
#[test]
fn precedence_of_review_switches() {
    let on = |text: &str, task: &TaskSpec, review: Option<bool>| {
        let flags = TaskFlags { review, ..TaskFlags::default() };
        let workflow = configured(text).task_workflow(task, &flags).unwrap();
        workflow.phases.iter().filter_map(Phase::policy).any(|policy| policy.gate.enabled)
    };
    let silent = task(TaskType::Implement);
    let yes = TaskSpec { auto_review: Some(true), ..silent.clone() };
    let no = TaskSpec { auto_review: Some(false), ..silent.clone() };
    let defaults = "[defaults]\nauto_review = true\n";
    let type_no = "[defaults]\nauto_review = true\n[task_types.implement]\nauto_review = false\n";
    let type_yes = "[task_types.implement]\nauto_review = true\n";
    assert!(!on("", &silent, None));
    assert!(on(defaults, &silent, None));
    assert!(on("[gate]\nenabled = true\n", &silent, None));
    assert!(!on(type_no, &silent, None));
    assert!(on(type_yes, &silent, None));
    assert!(on(type_no, &yes, None));
    assert!(!on(type_yes, &no, None));
    assert!(on(type_no, &no, Some(true)));
    assert!(!on(type_yes, &yes, Some(false)));
    let improve = task(TaskType::Improve);
    assert!(on(defaults, &improve, None), "an improvement changes code as any task does");
    assert!(!on(defaults, &improve, Some(false)));
    assert!(!on(&format!("{defaults}[task_types.improve]\nauto_review = false\n"), &improve, None));
    assert!(on("", &improve, Some(true)));
    assert!(on("[task_types.improve]\nauto_review = true\n", &improve, None));
    assert!(on(type_no, &task(TaskType::Review), Some(false)), "a review is one");
}

/// One case for each setting that sets the bound, in order of precedence.
#[test]
fn precedence_of_cycle_limits() {
    let bound = |text: &str, task: &TaskSpec, flags: &TaskFlags| {
        let workflow = configured(text).task_workflow(task, flags).unwrap();
        workflow.phases.iter().find_map(Phase::policy).unwrap().gate.bound
    };
    let mut text =
        "[defaults]\nmax_review_cycles = 2\n[gate]\nmax_cycles = 4\n[presets.task]\nmax_cycles = 5\n".to_owned();
    let mut spec = task(TaskType::Implement);
    let mut flags = TaskFlags::default();
    assert_eq!(bound(&text, &spec, &flags), Bound::MaxCycles(5));
    text += "[task_types.implement]\nmax_review_cycles = 6\n";
    assert_eq!(bound(&text, &spec, &flags), Bound::MaxCycles(6));
    spec.effort = Some(Effort::Low);
    assert_eq!(bound(&text, &spec, &flags), Bound::MaxFixes(2));
    spec.max_review_cycles = Some(7);
    assert_eq!(bound(&text, &spec, &flags), Bound::MaxCycles(7));
    flags.effort = Some(Effort::Max);
    assert_eq!(bound(&text, &spec, &flags), Bound::MaxFixes(5));
    flags.gate.max_fixes = Some(FixBound(Count::Number(9)));
    assert_eq!(bound(&text, &spec, &flags), Bound::MaxFixes(9));
}

#[test]
fn a_flag_applies_to_every_gate_of_the_task() {
    let keys = GateKeys { fail_on: Some(FailThreshold::High), ..GateKeys::default() };
    let flags = TaskFlags { preset: Some("phases".to_owned()), ..flags(keys) };
    let workflow = configured("").task_workflow(&task(TaskType::Implement), &flags).unwrap();
    for phase in &workflow.phases {
        match &phase.kind {
            PhaseKind::Gate(policy) => assert_eq!(policy.gate.fail_on, FailThreshold::High, "{}", phase.name),
            PhaseKind::Check(policy) => assert_eq!(policy.gate.fail_on, FailThreshold::Low, "{}", phase.name),
            PhaseKind::Agent { .. } => {}
        }
    }
}

#[test]
fn each_gate_keeps_its_own_settings() {
    let phases = |text: &str, review| {
        let flags = TaskFlags { preset: Some("phases".to_owned()), review, ..TaskFlags::default() };
        phases_of(text, &task(TaskType::Implement), &flags)
    };
    let type_yes = "[task_types.implement]\nauto_review = true\nmax_review_cycles = 2\n";
    assert_eq!(phases(type_yes, Some(true)), phases("", None));
    assert!(!phases("", Some(false)).contains("_review: on"));
}

#[test]
fn a_review_of_the_phases_workflow_judges_the_work() {
    let flags = TaskFlags { preset: Some("phases".to_owned()), ..TaskFlags::default() };
    let workflow = configured("").task_workflow(&task(TaskType::Review), &flags).unwrap();
    let names: Vec<_> = workflow.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["code_review", "final_review", "codex_final"]);
    assert!(
        workflow.phases.iter().filter_map(Phase::policy).all(|policy| policy.gate.on_failure == OnFailure::Proceed)
    );
    assert!(workflow.before.is_empty() && workflow.after.is_empty());
}

#[test]
fn expected_reviews_of_a_new_task() {
    let expected = |text: &str, task: &TaskSpec| configured(text).expected(task).unwrap();
    let off = |max_review_cycles| ExpectedReviews { auto_review: false, max_review_cycles };
    let on = |max_review_cycles| ExpectedReviews { auto_review: true, max_review_cycles };
    let implement = task(TaskType::Implement);
    assert_eq!(expected("", &implement), off(Some(3)));
    assert_eq!(
        expected("[task_types.implement]\nauto_review = true\nmax_review_cycles = 2\n", &implement),
        on(Some(2))
    );
    let requested = TaskSpec { auto_review: Some(true), max_review_cycles: Some(5), ..implement.clone() };
    assert_eq!(expected("", &requested), on(Some(5)));
    assert_eq!(expected("[gate]\nmax_cycles = \"unlimited\"\nenabled = true\n", &implement), on(None));
    assert_eq!(expected("", &task(TaskType::Review)), off(None));
    assert_eq!(expected("", &task(TaskType::Plan)), off(None));
    assert_eq!(expected("preset = \"slots\"\n", &implement), off(Some(6)));
}

#[test]
fn the_keys_of_slots_apply_only_to_that_preset() {
    let keys = "reviewEnabled = true\nreviewMaxFixAttempts = 2\ndeveloperPromptPath = \"dev.md\"\nreviewerPromptPath = \"rev.md\"\n";
    let slots = TaskFlags { preset: Some("slots".to_owned()), ..TaskFlags::default() };
    let plain = task(TaskType::Implement);
    insta::assert_snapshot!(phases_of("", &plain, &slots), @"
    implement: implement 1h
    review: off MiniLoop MaxFixes(5) 1h 1h
    ");
    insta::assert_snapshot!(phases_of(keys, &plain, &slots), @"
    implement: implement 1h
    review: on MiniLoop MaxFixes(2) 1h 1h
    ");
    insta::assert_snapshot!(phases_of(keys, &plain, &TaskFlags::default()), @"
    implement: implement 1h
    review: off MiniLoop MaxCycles(3) 10m 30m
    ");
    let prompts = |task: &TaskSpec, flags: &TaskFlags| {
        configured(keys).task_workflow(task, flags).expect("a workflow").prompts.into_iter().collect::<Vec<_>>()
    };
    let pair = |role: &str, path: &str| (role.to_owned(), path.to_owned());
    let [fix, review] = [pair("fix", "dev.md"), pair("review", "rev.md")];
    let all = [fix.clone(), pair("implement", "dev.md"), review.clone()];
    assert_eq!(prompts(&plain, &slots), all);
    assert_eq!(prompts(&plain, &TaskFlags::default()), []);
    let own = TaskSpec { prompt: Some("Do it.".to_owned()), ..plain.clone() };
    assert_eq!(prompts(&own, &slots), [fix, review], "the task's own comes before the file's");
    let flag = TaskFlags { developer_prompt: Some("flag.md".to_owned()), ..slots };
    assert_eq!(prompts(&own, &flag)[1], pair("implement", "flag.md"), "a flag comes before all");
}

#[test]
fn the_more_specific_slots_key_wins() {
    let slots = |review| TaskFlags { preset: Some("slots".to_owned()), review, ..TaskFlags::default() };
    let gate = |text: &str, task: &TaskSpec, flags: &TaskFlags| {
        let workflow = configured(text).task_workflow(task, flags).expect("a workflow");
        let gate = workflow.phases[1].policy().expect("a gate").gate.clone();
        (gate.enabled, gate.bound)
    };
    let plain = task(TaskType::Implement);
    let asks = TaskSpec { auto_review: Some(true), ..plain.clone() };
    let fixes = Bound::MaxFixes;
    for (text, task, review, expected) in [
        ("", &plain, None, (false, fixes(5))),
        ("reviewEnabled = true", &plain, None, (true, fixes(5))),
        ("reviewEnabled = true", &plain, Some(false), (false, fixes(5))),
        ("reviewEnabled = false", &asks, None, (true, fixes(5))),
        ("reviewEnabled = false", &asks, Some(false), (false, fixes(5))),
        ("reviewEnabled = true\n[task_types.implement]\nauto_review = false", &plain, None, (false, fixes(5))),
        ("reviewMaxFixAttempts = 2\n[presets.slots]\nmax_fixes = 3", &plain, None, (false, fixes(3))),
        ("reviewMaxFixAttempts = 0", &plain, Some(true), (true, fixes(0))),
        ("preset = \"slots\"\nreviewMaxFixAttempts = 2\n[gate]\nmax_fixes = 4", &plain, None, (false, fixes(2))),
    ] {
        assert_eq!(gate(text, task, &slots(review)), expected, "{text}");
    }
}
