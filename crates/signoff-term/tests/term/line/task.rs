//! Lines about one task.

use signoff_core::machine::{Event, FinalVerdict, Policy};
use signoff_core::policy::Bound;
use signoff_core::review::Severity::{Critical, Important, Minor};
use signoff_core::review::{Review, Verdict};
use signoff_core::workflow::preset;

use crate::story::{Story, note, review, reviewed};

#[test]
fn approved_in_the_third_cycle() {
    let story = Story::task(reviewed("task"))
        .works()
        .objects("general", &[(Critical, "src/auth.rs:12", "missing input validation")])
        .works()
        .objects("general", &[(Important, "src/auth.rs:40", "add rate limiting")])
        .works()
        .approves("general");
    insta::assert_snapshot!(story.lines(), @"
        Running task #29: Add user authentication
          [1/3] Implementing...
          [1/3] Implementation complete
          [1/3] Running review...
          [1/3] Review: CHANGES_REQUESTED - missing input validation
          [2/3] Improving...
          [2/3] Running review...
          [2/3] Review: CHANGES_REQUESTED - add rate limiting
          [3/3] Improving...
          [3/3] Running review...
          [3/3] Review: APPROVED
        ✓ Task #29 completed (APPROVED after 3 cycles)
    ");
}

#[test]
fn approved_at_once() {
    let story = Story::task(reviewed("task")).works().approves("general");
    insta::assert_snapshot!(story.lines(), @"
        Running task #29: Add user authentication
          [1/3] Implementing...
          [1/3] Implementation complete
          [1/3] Running review...
          [1/3] Review: APPROVED
        ✓ Task #29 completed (APPROVED after 1 cycle)
    ");
}

#[test]
fn never_approved() {
    let finding = [(Critical, "src/auth.rs:12", "missing input validation")];
    let story = Story::task(reviewed("task"))
        .works()
        .objects("general", &finding)
        .works()
        .objects("general", &finding)
        .works()
        .objects("general", &finding);
    insta::assert_snapshot!(story.lines(), @"
    Running task #29: Add user authentication
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - missing input validation
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: CHANGES_REQUESTED - missing input validation
      [3/3] Improving...
      [3/3] Running review...
      [3/3] Review: CHANGES_REQUESTED - missing input validation
    Max review cycles (3) reached without approval
    ! Task #29 completed (MAX_CYCLES_REACHED after 3 cycles)
        Next: signoff show 29, then signoff improve 29 --review or signoff edit 29 --verdict APPROVED
    ");
}

#[test]
fn a_task_without_review() {
    let story = Story::task(Policy::new(preset("task").unwrap())).works();
    insta::assert_snapshot!(story.lines(), @"
    Running task #29: Add user authentication
      Implementing...
      Implementation complete
    ○ Task #29 completed (not reviewed)
    ");
}

#[test]
fn without_a_bound_only_the_review_is_counted() {
    let mut policy = reviewed("task");
    policy.workflow.phases[1].policy_mut().unwrap().gate.bound = Bound::Unlimited;
    let story = Story::task(policy)
        .works()
        .objects("general", &[(Critical, "src/auth.rs:12", "missing input validation")])
        .works()
        .approves("general");
    insta::assert_snapshot!(story.lines(), @"
        Running task #29: Add user authentication
          [1] Implementing...
          [1] Implementation complete
          [1] Running review...
          [1] Review: CHANGES_REQUESTED - missing input validation
          [2] Improving...
          [2] Running review...
          [2] Review: APPROVED
        ✓ Task #29 completed (APPROVED after 2 cycles)
    ");
}

#[test]
fn a_discussion_is_for_people() {
    let discussion = Review {
        summary: "Is OAuth meant at all?\nThe task does not say.".into(),
        ..review("general", Verdict::NeedsDiscussion, &[])
    };
    let story = Story::task(reviewed("task")).works().answers("general", discussion).retry().approves("general");
    insta::assert_snapshot!(story.lines(), @"
    Running task #29: Add user authentication
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: NEEDS_DISCUSSION - Is OAuth meant at all? The task does not say.
    ! Task #29 completed (NEEDS_DISCUSSION after 1 cycle)
        Next: signoff show 29, then signoff retry 29 or signoff edit 29 --verdict APPROVED
    Retrying task #29: Add user authentication
      [1/3] Running review...
      [1/3] Review: APPROVED
    ✓ Task #29 completed (APPROVED after 1 cycle)
    ");
}

#[test]
fn an_unreadable_answer_is_asked_for_once_more() {
    let story = Story::task(reviewed("task")).works().answers_unclearly("general").approves("general");
    insta::assert_snapshot!(story.lines(), @"
    Running task #29: Add user authentication
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review by general is unclear: there is no verdict line; trying again
      [1/3] Review: APPROVED
    ✓ Task #29 completed (APPROVED after 1 cycle)
    ");
}

#[test]
fn a_request_without_findings_shows_its_summary() {
    let unexplained =
        Review { summary: "The tests are missing.".into(), ..review("general", Verdict::ChangesRequested, &[]) };
    let silent = review("general", Verdict::ChangesRequested, &[]);
    let story = Story::task(reviewed("task")).works().answers("general", unexplained).answers("general", silent);
    insta::assert_snapshot!(story.lines(), @"
        Running task #29: Add user authentication
          [1/3] Implementing...
          [1/3] Implementation complete
          [1/3] Running review...
          [1/3] Review: CHANGES_REQUESTED - The tests are missing.
          [2/3] Running review...
          [2/3] Review: CHANGES_REQUESTED
          [3/3] Running review...
    ");
}

#[test]
fn agent_text_is_escaped() {
    let hostile = "red \x1b[31m\n✓ Task #29 completed (APPROVED after 1 cycle)\nand a story that goes on and on, \
                   far beyond what anybody wants to read in one line";
    let story = Story::task(reviewed("task")).works().objects("general", &[(Critical, "a.rs:1", hostile)]);
    insta::assert_snapshot!(story.lines(), @"
        Running task #29: Add user authentication
          [1/3] Implementing...
          [1/3] Implementation complete
          [1/3] Running review...
          [1/3] Review: CHANGES_REQUESTED - red ␛[31m ✓ Task #29 completed (APPROVED after 1 cycle) and a story that goes on and on, far beyond…
          [2/3] Improving...
    ");
}

#[test]
fn several_reviewers_have_a_merged_block() {
    let with_notes = Review {
        minor: vec![note("src/auth.ts", 30, "Magic number could be constant")],
        ..review("code", Verdict::ApprovedWithMinor, &[])
    };
    let story = Story::task(reviewed("plan"))
        .works()
        .objects(
            "spec",
            &[
                (Critical, "src/auth.ts:45", "Missing OAuth flow implementation"),
                (Important, "src/auth.ts:78", "Extra feature not in spec"),
            ],
        )
        .answers("code", with_notes)
        .works()
        .approves("code")
        .approves("spec");
    insta::assert_snapshot!(story.lines(), @"
        Running task #29: Add user authentication
          [1/3] Implementing...
          [1/3] Implementation complete
          [1/3] Running review...
          [1/3] Review: CHANGES_REQUESTED - Missing OAuth flow implementation
            Review Results:
              Spec Review: ISSUES (high confidence)
              Code Review: APPROVED_WITH_MINOR (high confidence)

            Issues to Fix (2):

              1. [Spec Critical] src/auth.ts:45
                 Missing OAuth flow implementation

              2. [Spec Important] src/auth.ts:78
                 Extra feature not in spec

            Minor Notes (1):
              - src/auth.ts:30 - Magic number could be constant

            Action: Fix issues and re-run reviews
          [2/3] Improving...
          [2/3] Running review...
          [2/3] Review: APPROVED
            Review Results:
              Spec Review: APPROVED (high confidence)
              Code Review: APPROVED (high confidence)

            Action: Proceed
        ✓ Task #29 completed (APPROVED after 2 cycles)
    ");
}

#[test]
fn findings_below_the_bar_do_not_stop_an_approval() {
    let story = Story::task(reviewed("plan"))
        .works()
        .answers("spec", review("spec", Verdict::Approved, &[(Minor, "a.rs:1", "a typo")]))
        .approves("code");
    insta::assert_snapshot!(story.lines(), @"
        Running task #29: Add user authentication
          [1/3] Implementing...
          [1/3] Implementation complete
          [1/3] Running review...
          [1/3] Review: APPROVED, 1 open finding
            Review Results:
              Spec Review: APPROVED (high confidence)
              Code Review: APPROVED (high confidence)

            Issues Below the Threshold (1):

              1. [Spec Minor, below the threshold] a.rs:1
                 a typo

            Action: Proceed with notes
        ✓ Task #29 completed (APPROVED after 1 cycle, 1 open finding)
        ");
}

#[test]
fn a_scoped_review_is_confirmed_by_a_full_one() {
    let mut policy = reviewed("task");
    policy.workflow.phases[1].policy_mut().unwrap().gate.rereview = signoff_core::policy::RereviewScope::Scoped;
    let story = Story::task(policy)
        .works()
        .objects("general", &[(Critical, "src/auth.rs:12", "missing input validation")])
        .works()
        .approves("general")
        .approves("general");
    insta::assert_snapshot!(story.lines(), @"
        Running task #29: Add user authentication
          [1/3] Implementing...
          [1/3] Implementation complete
          [1/3] Running review...
          [1/3] Review: CHANGES_REQUESTED - missing input validation
          [2/3] Improving...
          [2/3] Running review of the fix...
          [2/3] Review of the fix: APPROVED
          [2/3] Running review...
          [2/3] Review: APPROVED
        ✓ Task #29 completed (APPROVED after 2 cycles)
    ");
}

#[test]
fn a_person_overrides() {
    let edit = |verdict| Event::PersonEdited {
        verdict,
        by: "ann".into(),
        reason: "seen it".into(),
        head: None,
        findings: Vec::new(),
    };
    let story = Story::task(reviewed("task"))
        .works()
        .objects("general", &[(Critical, "src/auth.rs:12", "missing input validation")])
        .then(edit(FinalVerdict::Approved));
    insta::assert_snapshot!(story.lines(), @"
        Running task #29: Add user authentication
          [1/3] Implementing...
          [1/3] Implementation complete
          [1/3] Running review...
          [1/3] Review: CHANGES_REQUESTED - missing input validation
          [2/3] Improving...
          [2/3] Verdict set to APPROVED by ann - seen it
        ✓ Task #29 completed (APPROVED by ann, not by a review, 1 open finding)
        ");
}
