//! Lines about the tasks of a specification, worked in groups in parallel.

use std::collections::BTreeMap;

use signoff_core::group::RunEvent;
use signoff_core::ids::{AttemptId, LoopId};
use signoff_core::machine::{AttemptFailure, Event, FinalVerdict, Outcome, Policy};
use signoff_core::review::Severity::Critical;
use signoff_core::review::{Inconclusive, Verdict};
use signoff_core::source::planner::{PlannedTask, PlannerAnswer};
use signoff_core::wire::{Fact, LoopFact, RunFact};
use signoff_core::workflow::Workflow;
use signoff_term::line::{LineNaming, LineRenderer};

use crate::story::{Story, caught_up, finding, id, review, reviewed};

/// A planned run with two groups of two tasks.
fn planned() -> Story {
    let mut policy = reviewed("loops");
    policy.workflow.checkpoint_interval = Some(2);
    Story::new(policy)
        .plan(&[&[(4, "Add the table"), (5, "Add the page")], &[(6, "Join them"), (7, "Say so in the documentation")]])
}

fn part(select: impl Fn(&Workflow) -> Policy) -> Policy {
    select(&reviewed("loops").workflow)
}

/// The review phases of a workflow, which checkpoints use.
fn gate() -> Policy {
    part(|workflow| Policy::new(workflow.checkpoint()))
}

fn final_review_policy() -> Policy {
    part(|workflow| Policy::new(workflow.run_level_workflow(&workflow.after)))
}

fn signed_off(story: Story, task: u64) -> Story {
    story.on(task).works().approves("general")
}

fn landed(story: Story, task: u64) -> Story {
    story.on(task).then(Event::LandingGranted).lands()
}

/// A conflict with an earlier landing.
fn conflicts(story: Story, task: u64, files: &[&str]) -> Story {
    let conflict = |file: &&str| {
        let mut finding = finding("landing", Critical, file, "conflicts with signoff/run-3");
        finding.kind = "conflict".to_owned();
        finding
    };
    story.on(task).then(Event::LandingGranted).landing_rejected(files.iter().map(conflict).collect())
}

#[test]
fn two_groups_land_in_order_and_have_a_final_review() {
    let story = planned().starts(4).starts(5);
    let story = landed(landed(signed_off(signed_off(story, 5), 4), 4), 5);
    let story = story.starts(6).starts(7);
    let story = landed(signed_off(signed_off(story, 6), 7), 6);
    let story = conflicts(story, 7, &["docs/setup.md:3", "README.md"]).works().approves("general");
    let story = landed(story, 7).serves(LoopId::final_review(), final_review_policy());
    let story = story.objects("general", &[(Critical, "a.rs:1", "the table is never read")]);
    let mut story = story.works().approves("general");
    story.run(RunEvent::FinalReviewEnded { outcome: Outcome::Approved { commit: "c9".into() } });
    insta::assert_snapshot!(story.lines(), @"
    Planned 4 tasks in 2 groups
    Group 1/2: #4 Add the table, #5 Add the page
    Running task #4: Add the table
      #4 [1/4] Implementing...
    Running task #5: Add the page
      #5 [1/4] Implementing...
      #5 [1/4] Implementation complete
      #5 [1/4] Running review...
      #5 [1/4] Review: APPROVED
      #5 Signed off, lands with its group
      #4 [1/4] Implementation complete
      #4 [1/4] Running review...
      #4 [1/4] Review: APPROVED
      #4 Signed off, lands with its group
      #4 Landing...
      #4 Landed on signoff/run-3 as m1
    ✓ Task #4 completed (APPROVED after 1 cycle)
      #5 Landing...
      #5 Landed on signoff/run-3 as m1
    ✓ Task #5 completed (APPROVED after 1 cycle)
    Group 2/2: #6 Join them, #7 Say so in the documentation
    Running task #6: Join them
      #6 [1/4] Implementing...
    Running task #7: Say so in the documentation
      #7 [1/4] Implementing...
      #6 [1/4] Implementation complete
      #6 [1/4] Running review...
      #6 [1/4] Review: APPROVED
      #6 Signed off, lands with its group
      #7 [1/4] Implementation complete
      #7 [1/4] Running review...
      #7 [1/4] Review: APPROVED
      #7 Signed off, lands with its group
      #6 Landing...
      #6 Landed on signoff/run-3 as m1
    ✓ Task #6 completed (APPROVED after 1 cycle)
      #7 Landing...
      #7 Landing: SENT BACK - conflict in docs/setup.md, README.md
      #7 [2/4] Improving...
      #7 [2/4] Running review...
      #7 [2/4] Review: APPROVED
      #7 Signed off, lands with its group
      #7 Landing...
      #7 Landed on signoff/run-3 as m1
    ✓ Task #7 completed (APPROVED after 2 cycles)
    Run 3: final review of signoff/run-3
      run 3 [1/4] Running review...
      run 3 [1/4] Review: CHANGES_REQUESTED - the table is never read
      run 3 [2/4] Improving...
      run 3 [2/4] Running review...
      run 3 [2/4] Review: APPROVED
    ✓ Final review completed (APPROVED after 2 cycles)
    ✓ Run 3 completed, all approved: 4 tasks, 4 completed
        Its work is on signoff/run-3; `signoff land` lands it on the default branch
    ");
}

#[test]
fn a_checkpoint_reviews_all_active_tasks() {
    let story = planned().starts(4).starts(5).on(4).reports_incomplete().reports_incomplete();
    let at = |task: u64| id(task).checkpoint(1);
    let mut story = story.serves(at(4), gate()).serves(at(5), gate());
    let row = |story: &Story, task| story.view.row(&id(task)).unwrap();
    assert_eq!((row(&story, 4).badge.into_str(), row(&story, 5).badge.into_str()), ("REVIEW", "REVIEW"));
    assert_eq!((row(&story, 4).checkpoint, row(&story, 5).checkpoint), (Some(1), Some(1)));
    assert!(story.view.rows().iter().all(|row| row.id.checkpoint_target().is_none()));
    story = story.on_loop(at(4).as_str()).reviewer_fails("general", AttemptFailure::TimedOut);
    let findings = [(Critical, "a.rs:1", "no index"), (Critical, "b.rs:1", "no name")];
    let objection = review("general", Verdict::ChangesRequested, &findings);
    story = story.answers("general", objection.clone());
    story = story.checkpoint_reviewed(4, objection);
    story = story.on_loop(at(5).as_str()).approves("general");
    story = story.checkpoint_reviewed(5, review("general", Verdict::Approved, &[]));
    assert_eq!((row(&story, 4).checkpoint, row(&story, 5).checkpoint), (None, None));
    assert_eq!(row(&story, 4).attempt, 3);
    let story = signed_off(story, 4);
    insta::assert_snapshot!(story.lines(), @"
    Planned 4 tasks in 2 groups
    Group 1/2: #4 Add the table, #5 Add the page
    Running task #4: Add the table
      #4 [1/4] Implementing...
    Running task #5: Add the page
      #5 [1/4] Implementing...
      #4 [1/4] Not complete yet
      #4 [1/4] Implementing again (attempt 2)...
      #4 [1/4] Not complete yet
      #4 [1/4] Waiting for a checkpoint review
    Checkpoint review of #4, #5...
      #4 Checkpoint review: Reviewer general failed: timed out; trying again
        hint: `[reviewers.general] timeout` sets the timeout; `signoff config` shows the settings in effect
      #4 [1/4] Checkpoint review: 2 findings, for the next attempt
      #4 [1/4] Implementing again (attempt 3)...
    Checkpoint review of #4, #5: 2 findings
      #4 [1/4] Implementation complete
      #4 [1/4] Running review...
      #4 [1/4] Review: APPROVED
      #4 Signed off, lands with its group
    ");
}

#[test]
fn a_blocked_group_is_reported_until_resolved() {
    let story = planned().starts(4).starts(5);
    let story = signed_off(story, 4).on(5).gives_up("there is no page");
    insta::assert_snapshot!(story.lines(), @"
    Planned 4 tasks in 2 groups
    Group 1/2: #4 Add the table, #5 Add the page
    Running task #4: Add the table
      #4 [1/4] Implementing...
    Running task #5: Add the page
      #5 [1/4] Implementing...
      #4 [1/4] Implementation complete
      #4 [1/4] Running review...
      #4 [1/4] Review: APPROVED
      #4 Signed off, lands with its group
      #5 [1/4] The agent reports it is stuck: there is no page
    ! Task #5 is stuck: the agent reports that it is stuck (task_stuck)
        Next: signoff show 5, then signoff retry 5
    ▪ Run 3 is blocked by #5 (the agent reports that it is stuck)
        signoff retry 5, signoff edit 5 --verdict APPROVED, or signoff cancel 5
        then: signoff run --resume 3
    ");
    let again =
        |story: &Story| caught_up(&mut LineRenderer::new(LineNaming::WhenNeeded), &story.transitions).join("\n");
    insta::assert_snapshot!(again(&story), @"
    ▪ Run 3 is blocked by #5 (the agent reports that it is stuck)
        signoff retry 5, signoff edit 5 --verdict APPROVED, or signoff cancel 5
        then: signoff run --resume 3
    ");
    let story = story.retry();
    insta::assert_snapshot!(again(&story), @"Resuming run 3: group 1/2, 1 signed off, 1 at work, 2 to come");
    let facts = story.log.len();
    let mut renderer = LineRenderer::new(LineNaming::WhenNeeded);
    caught_up(&mut renderer, &story.transitions);
    let verdict = FinalVerdict::Approved;
    let story = story.gives_up("still none").then(Event::PersonEdited {
        verdict,
        by: "ann".into(),
        reason: "no page is needed".into(),
        head: None,
        findings: Vec::new(),
    });
    let story = landed(landed(story, 4), 5);
    let lines: Vec<_> = story.transitions[facts..].iter().flat_map(|transition| renderer.apply(transition)).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    Resuming task #5: Add the page
      #5 [1/4] The agent reports it is stuck: still none
    ! Task #5 is stuck: the agent reports that it is stuck (task_stuck)
        Next: signoff show 5, then signoff retry 5
    ▪ Run 3 is blocked by #5 (the agent reports that it is stuck)
        signoff retry 5, signoff edit 5 --verdict APPROVED, or signoff cancel 5
        then: signoff run --resume 3
      #5 Verdict set to APPROVED by ann - no page is needed
      #5 Signed off, lands with its group
    Resuming task #4: Add the table
      #4 Landing...
      #4 Landed on signoff/run-3 as m1
    ✓ Task #4 completed (APPROVED after 1 cycle)
      #5 Landing...
      #5 Landed on signoff/run-3 as m1
    ✓ Task #5 completed (APPROVED by ann, not by a review)
    Group 2/2: #6 Join them, #7 Say so in the documentation
    ");
}

#[test]
fn a_large_group_is_counted() {
    let tasks: Vec<(u64, String)> = (1..=64).map(|task| (task, format!("Task {task}"))).collect();
    let group: Vec<(u64, &str)> = tasks.iter().map(|(task, title)| (*task, title.as_str())).collect();
    insta::assert_snapshot!(Story::new(reviewed("loops")).plan(&[&group]).lines(), @"
    Planned 64 tasks in 1 group
    Group 1/1: #1 Task 1, #2 Task 2, #3 Task 3, #4 Task 4, #5 Task 5, #6 Task 6, #7 Task 7, #8 Task 8 and 56 more
    ");
}

#[test]
fn a_bad_answer_of_a_planner_is_reported() {
    let policy = reviewed("loops");
    let before = Policy::new(policy.workflow.run_level_workflow(&policy.workflow.before));
    let mut story = Story::new(policy);
    let (name, text) = ("SPEC.md".to_owned(), "A table and a page.".to_owned());
    story.record(Fact::Run(RunFact::Specified { name, text }));
    story.run(RunEvent::Started);
    let message = "task `b` depends on `c`, which is not there\x1b[2J".to_owned();
    let mut story = story.serves(LoopId::planning(), before).writer_fails(AttemptFailure::BadAnswer { message });
    let task = |id: &str| PlannedTask {
        id: id.to_owned(),
        title: id.to_owned(),
        description: String::new(),
        depends_on: Vec::new(),
    };
    let answer = PlannerAnswer::Tasks(vec![task("a"), task("b")]);
    story.record(Fact::Loop(LoopId::planning(), LoopFact::Answered { attempt: AttemptId(2), answer }));
    let story = story
        .works()
        .objects("general", &[(Critical, "", "a task is missing")])
        .writer_fails(AttemptFailure::BadAnswer { message: "there is no JSON object".to_owned() });
    insta::assert_snapshot!(story.lines(), @"
    Run 3: planning SPEC.md
      [enumerate] Listing the tasks...
      [enumerate] The planner's answer was refused: task `b` depends on `c`, which is not there␛[2J
      [enumerate] Listing the tasks again...
      [enumerate] Found 2 tasks
      [enumerate] Task list complete
      [enumerate_review 1/4] Running review...
      [enumerate_review 1/4] Review: CHANGES_REQUESTED - a task is missing
      [enumerate_review 2/4] Improving...
      [enumerate_review 2/4] The planner's answer was refused: there is no JSON object
      [enumerate_review 2/4] Improving again...
    ");
}

#[test]
fn a_checkpoint_that_finds_nothing_is_one_line() {
    let mut story = planned().starts(4).starts(5);
    story.run(RunEvent::AttemptSpent { since_checkpoint: BTreeMap::from([(id(4), 2), (id(5), 0)]) });
    let fine = || review("general", Verdict::Approved, &[]);
    let story = story.checkpoint_reviewed(4, fine()).checkpoint_reviewed(5, fine());
    insta::assert_snapshot!(story.lines(), @"
    Planned 4 tasks in 2 groups
    Group 1/2: #4 Add the table, #5 Add the page
    Running task #4: Add the table
      #4 [1/4] Implementing...
    Running task #5: Add the page
      #5 [1/4] Implementing...
    Checkpoint review of #4, #5...
    Checkpoint review of #4, #5: nothing found
    ");
}

#[test]
fn a_checkpoint_names_tasks_without_a_usable_review() {
    let inconclusive = || review("general", Verdict::Inconclusive(Inconclusive::Missing("timed out".into())), &[]);
    for (other, expected) in [
        (review("general", Verdict::Approved, &[]), "nothing found; no usable review of #4"),
        (inconclusive(), "no usable review arrived"),
    ] {
        let mut story = planned().starts(4).starts(5);
        story.run(RunEvent::AttemptSpent { since_checkpoint: BTreeMap::from([(id(4), 2), (id(5), 0)]) });
        let story = story.checkpoint_reviewed(4, inconclusive()).checkpoint_reviewed(5, other);
        assert!(story.lines().ends_with(&format!("Checkpoint review of #4, #5: {expected}")), "{}", story.lines());
    }
}
