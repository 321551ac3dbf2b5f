//! Convergence and re-review with the settings of a new project.

use signoff_core::machine::Policy;
use signoff_core::workflow::new_project;

use crate::machine::story::Story;

fn story() -> Story {
    Story::new(Policy::new(new_project().expect("shipped"))).works()
}

#[test]
fn a_scoped_review_that_passes_is_confirmed_by_a_full_one_in_the_same_cycle() {
    let story = story().objects("spec", &["a.rs"]).approves("code").works();
    let story = story.approves("spec").approves("code").approves("spec").approves("code");
    insta::assert_snapshot!(story.transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a3 review 1 of c1 by code [review]; a2 review 1 of c1 by spec [review]
    spec objects to a.rs               → –
    code approves                      → a4 fix 1 (a.rs) [review]
    the agent completes its work       → a6 scoped review 2 of c2 by code [review]; a5 scoped review 2 of c2 by spec [review]
    spec approves                      → –
    code approves                      → a8 review 2 of c2 by code [review]; a7 review 2 of c2 by spec [review]
    spec approves                      → –
    code approves                      → END approved, APPROVED
    ");
}

#[test]
fn a_fix_that_changes_nothing_ends_the_loop() {
    let story = story().objects("spec", &["a.rs"]).approves("code").changes_nothing();
    insta::assert_snapshot!(story.transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a3 review 1 of c1 by code [review]; a2 review 1 of c1 by spec [review]
    spec objects to a.rs               → –
    code approves                      → a4 fix 1 (a.rs) [review]
    the agent changes nothing          → END exhausted (noop_fix), CHANGES_REQUESTED
    ");
}

#[test]
fn the_same_finding_three_times_ends_the_loop() {
    let mut policy = Policy::new(new_project().expect("shipped"));
    for gate_policy in policy.workflow.phases.iter_mut().filter_map(|phase| phase.policy_mut()) {
        gate_policy.gate.bound = signoff_core::policy::Bound::MaxCycles(9);
    }
    let mut story = Story::new(policy).works();
    for _ in 0..2 {
        story = story.objects("spec", &["a.rs"]).approves("code").works();
    }
    let transcript = story.objects("spec", &["a.rs"]).approves("code").transcript();
    insta::assert_snapshot!(transcript.lines().last().unwrap_or_default(), @"code approves                      → END exhausted (same_finding), CHANGES_REQUESTED");
}
