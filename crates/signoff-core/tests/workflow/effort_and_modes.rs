//! Effort levels set checkpoint interval, fixes and depth; modes select phases.

use signoff_core::policy::{Bound, Effort};
use signoff_core::prompt::Depth;
use signoff_core::workflow::{Phase, Workflow, parse, preset};

fn review_phases(workflow: &Workflow) -> impl Iterator<Item = &Phase> {
    let phases = workflow.before.iter().chain(&workflow.phases).chain(&workflow.after);
    phases.filter(|phase| phase.policy().is_some())
}

#[test]
fn the_effort_table() {
    let table = [
        (Effort::Low, None, 2, Depth::Shallow),
        (Effort::Medium, Some(5), 3, Depth::Standard),
        (Effort::High, Some(3), 4, Depth::Deep),
        (Effort::Max, Some(1), 5, Depth::Comprehensive),
    ];
    for (effort, checkpoint_interval, max_fixes, depth) in table {
        let loops = preset("loops").expect("shipped").with_effort(effort);
        assert_eq!(loops.checkpoint_interval, checkpoint_interval, "{effort:?}");
        assert_eq!(review_phases(&loops).count(), 4);
        for phase in review_phases(&loops) {
            let gate = &phase.policy().expect("a gate").gate;
            assert_eq!((gate.bound, gate.depth), (Bound::MaxFixes(max_fixes), depth), "{effort:?} {}", phase.name);
        }
    }
}

#[test]
fn loops_as_shipped_is_medium_effort() {
    let loops = preset("loops").expect("shipped");
    assert_eq!(loops.clone().with_effort(Effort::Medium), loops);
}

#[test]
fn effort_changes_nothing_else() {
    let loops = preset("loops").expect("shipped");
    let there_and_back = loops.clone().with_effort(Effort::Max).with_effort(Effort::Medium);
    assert_eq!(there_and_back, loops);
}

fn names(workflow: &Workflow) -> Vec<&str> {
    workflow.phases.iter().map(|phase| phase.name.as_str()).collect()
}

#[test]
fn the_full_mode_of_phases_is_all_of_it_and_lite_leaves_out_the_ninth() {
    let phases = preset("phases").expect("shipped");
    let full = phases.clone().in_mode("full").expect("a mode");
    assert_eq!(full, phases);
    let lite = phases.clone().in_mode("lite").expect("a mode");
    assert_eq!(names(&lite), names(&phases)[..9]);
    assert_eq!(names(&lite).last(), Some(&"final_review"));
    assert_eq!(lite.phases[..], phases.phases[..9]);
}

#[test]
fn a_workflow_without_modes_has_none() {
    assert!(preset("task").expect("shipped").in_mode("full").is_none());
    assert!(preset("phases").expect("shipped").in_mode("fast").is_none());
}

#[test]
fn a_restart_goes_to_the_same_phase_when_a_mode_leaves_out_others() {
    let text = include_str!("../../../../testdata/workflows/good/modes_and_restarts.toml");
    let workflow = parse("modes.toml", text).expect("a good file").remove(0);
    let targets = |workflow: &Workflow| -> Vec<(String, String)> {
        let target = |phase: &Phase| workflow.phases[phase.policy().expect("a gate").restart_to].name.clone();
        review_phases(workflow).map(|phase| (phase.name.clone(), target(phase))).collect()
    };
    let pair = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    assert_eq!(targets(&workflow), [pair("review", "implement"), pair("tests", "brainstorm")]);
    let lite = workflow.in_mode("lite").expect("a mode");
    assert_eq!(names(&lite), ["implement", "review", "tests"]);
    assert_eq!(targets(&lite), [pair("review", "implement"), pair("tests", "implement")]);
}
