//! Slots that take tasks from the queue: failures, and the tasks that start after them.

use signoff_core::ids::RunId;
use signoff_core::policy::Count;
use signoff_core::settings::TaskFlags;
use signoff_core::task::TaskSpec;
use signoff_core::workflow::{FixBound, GateKeys};
use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::story::Story;

use crate::dispatcher::scripts::{call_list, lines, lines_after};

const PASS: &str = r#"Looked at all of it. {"verdict": "pass", "followUpPrompt": "All is well."}"#;
const DRIFT: &str = r#"{"verdict": "drift", "followUpPrompt": "work.txt lacks a check"}"#;

/// Every task writes its own file.
fn works() -> ScriptRule {
    ScriptRule::role("implement").write("{task}.txt", "work\n").say("Wrote {task}.txt.\n")
}

/// A queue of tasks.
fn queue(titles: &[&str], script: impl FnOnce(AgentScript) -> AgentScript) -> Story {
    let story = Story::new(script);
    for title in titles {
        story.add_task(TaskSpec::from_text(title));
    }
    story
}

/// Flags that turn the review on.
fn reviewed() -> TaskFlags {
    TaskFlags { review: Some(true), ..TaskFlags::default() }
}

/// Runs one reviewed task with at most two fixes, and returns the lines and the calls.
fn one(rules: impl FnOnce(AgentScript) -> AgentScript) -> (Story, String) {
    let story = queue(&["Add a greeting"], rules);
    let gate = GateKeys { max_fixes: Some(FixBound(Count::Number(2))), ..GateKeys::default() };
    story.run_queue(4, false, TaskFlags { gate, ..reviewed() });
    let printed = format!("{}\n{}", lines(&story), call_list(&story));
    (story, printed)
}

/// The numbers of the tasks with this status.
fn with_status(story: &Story, status: &str) -> Vec<u64> {
    let tasks = story.tasks();
    tasks.iter().filter(|row| row.status.into_str() == status).map(|row| row.id).collect()
}

#[test]
fn a_reviewer_that_fails_fails_the_slot() {
    let (_, printed) = one(|script| script.rule(works()).rule(ScriptRule::role("review").say(PASS).exit(3)));
    insta::assert_snapshot!(printed, @"
    Running task #1: Add a greeting
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: INCONCLUSIVE - general: exit code 3
    ✗ Task #1 failed: a reviewer or check failed (reviewer_failed)
        Next: signoff show 1, then signoff retry 1
    implement task 1 cycle 0
    review general task 1 cycle 1
    ");
}

#[test]
fn a_fixer_that_fails_fails_the_slot() {
    let (_, printed) = one(|script| {
        script.rule(works()).rule(ScriptRule::role("review").say(DRIFT)).rule(ScriptRule::role("fix").exit(4))
    });
    insta::assert_snapshot!(printed, @"
    Running task #1: Add a greeting
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: drift - work.txt lacks a check
      [fix 1/2] Fixing...
      [fix 1/2] Fix failed: exit code 4
    ✗ Task #1 failed: the fixer failed (fixer_failed)
        Next: signoff show 1, then signoff retry 1
    implement task 1 cycle 0
    review general task 1 cycle 1
    fix task 1 cycle 1
    ");
}

#[test]
fn an_answer_that_breaks_the_contract_fails_the_slot() {
    let (_, printed) = one(|script| script.rule(works()).rule(ScriptRule::role("review").say("Looks good to me!\n")));
    insta::assert_snapshot!(printed, @"
    Running task #1: Add a greeting
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: INCONCLUSIVE - general: there is no JSON object with a `verdict` key
    ✗ Task #1 failed: a review could not be parsed (unclear_review)
        Next: signoff show 1, then signoff retry 1
    implement task 1 cycle 0
    review general task 1 cycle 1
    ");
}

#[test]
fn an_implementer_that_fails_is_not_reviewed() {
    let (_, printed) =
        one(|script| script.rule(ScriptRule::role("implement").exit(1)).rule(ScriptRule::role("review").say(PASS)));
    insta::assert_snapshot!(printed, @"
    Running task #1: Add a greeting
      [1/3] Implementing...
      [1/3] Implementation failed: exit code 1
    ✗ Task #1 failed: the implementer failed (implementer_failed)
        Next: signoff show 1, then signoff retry 1
    implement task 1 cycle 0
    ");
}

#[test]
fn drift_that_stays_fails_the_slot() {
    let (story, printed) = one(|script| {
        let fixes = ScriptRule::role("fix").append("{task}.txt", "more\n");
        script.rule(works()).rule(ScriptRule::role("review").say(DRIFT)).rule(fixes)
    });
    insta::assert_snapshot!(printed, @"
    Running task #1: Add a greeting
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: drift - work.txt lacks a check
      [fix 1/2] Fixing...
      [2/3] Running review...
      [2/3] Review: drift - work.txt lacks a check
      [fix 2/2] Fixing...
      [3/3] Running review...
      [3/3] Review: drift - work.txt lacks a check
    Max fix attempts (2) reached without approval
    ✗ Task #1 failed: the review cycles are used up (cycles_exhausted)
        Next: signoff show 1, then signoff retry 1
    implement task 1 cycle 0
    review general task 1 cycle 1
    fix task 1 cycle 1
    review general task 1 cycle 2
    fix task 1 cycle 2
    review general task 1 cycle 3
    ");
    story.set_agent(|script| {
        let fixes = ScriptRule::role("fix").append("{task}.txt", "check\n");
        script.rule(fixes).rule(ScriptRule::role("review").say(PASS))
    });
    story.retry(1);
    let facts = story.log(RunId(1)).len();
    story.resume();
    let printed = lines_after(&story, facts);
    let without_commit = printed.lines().map(|line| line.split(" as ").next().unwrap_or_default());
    insta::assert_snapshot!(without_commit.collect::<Vec<_>>().join("\n"), @"
    Retrying task #1: Add a greeting
      [fix 3/3] Fixing...
      [4/4] Running review...
      [4/4] Review: pass
      Landing...
      Landed on signoff/run-1
    ✓ Task #1 completed (APPROVED after 4 cycles)
    ");
    assert_eq!(story.outcome(1), "1 completed approved APPROVED - 4");
}

/// The second of four tasks fails.
fn second_fails(script: AgentScript) -> AgentScript {
    script.rule(ScriptRule::role("implement").task("2").exit(1)).rule(works())
}

const FOUR: [&str; 4] = ["One", "Two", "Three", "Four"];

#[test]
fn after_a_failure_no_new_task_starts() {
    let story = queue(&FOUR, second_fails);
    story.run_queue(1, false, TaskFlags::default());
    assert_eq!((with_status(&story, "completed"), with_status(&story, "failed")), (vec![1], vec![2]));
    assert_eq!(with_status(&story, "pending"), [3, 4]);
    assert_eq!(story.run_status(1), "failed");
}

#[test]
fn a_failure_does_not_stop_running_tasks() {
    let story = queue(&FOUR, |script| {
        // The first ends after the second has failed.
        let first = works().task("1").write("/met/first", "").wait_for("/met/failed");
        let fails = ScriptRule::role("implement").task("2").wait_for("/met/first").write("/met/failed", "").exit(1);
        script.rule(first).rule(fails)
    });
    story.run_queue(2, false, TaskFlags::default());
    assert_eq!((with_status(&story, "completed"), with_status(&story, "failed")), (vec![1], vec![2]));
    assert_eq!(with_status(&story, "pending"), [3, 4]);
}

#[test]
fn with_keep_going_the_remaining_tasks_start() {
    let story = queue(&FOUR, second_fails);
    story.run_queue(1, true, TaskFlags::default());
    assert_eq!((with_status(&story, "completed"), with_status(&story, "failed")), (vec![1, 3, 4], vec![2]));
    assert_eq!(story.file_names("signoff/run-1"), "1.txt 3.txt 4.txt");
}

#[test]
fn an_agent_can_report_that_no_tasks_are_left() {
    let story = queue(&["One", "Two"], |script| {
        script.rule(works().say("no_beads_available\n")).rule(ScriptRule::role("review").say(PASS))
    });
    story.run_queue(1, false, reviewed());
    assert_eq!((with_status(&story, "completed"), with_status(&story, "pending")), (vec![1], vec![2]));
    let notes = story.notes();
    assert_eq!(notes, ["an agent reports that no tasks are left; no new task is started"]);
}

#[test]
fn a_reviewer_that_quotes_the_marker_stops_nothing() {
    let story = queue(&["One", "Two"], |script| {
        script.rule(works()).rule(ScriptRule::role("review").say(&format!("no_beads_available\n{PASS}")))
    });
    story.run_queue(1, false, reviewed());
    assert_eq!(with_status(&story, "completed"), [1, 2]);
}
