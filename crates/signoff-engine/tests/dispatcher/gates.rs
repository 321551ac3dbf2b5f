//! Gates: reviews, fixes and their bounds.

use signoff_core::task::TaskSpec;
use signoff_engine::dispatcher::RunLoopOptions;
use signoff_term::status::status_line;
use signoff_testkit::agent_script::ScriptRule;
use signoff_testkit::story::Story;

use crate::dispatcher::scripts::{
    APPROVED, FEATURE, approves, both_reviewers_approve, changes_requested, developer, lines, strict_reviewer,
    wait_for_others,
};

/// A task whose reviewer always says the same.
fn with_review(says: &str) -> Story {
    let story = Story::new(|script| developer(script).rule(ScriptRule::role("review").say(says)));
    story.add("Add feature Y");
    story
}

#[test]
fn a_task_is_fixed_until_its_reviewer_approves() {
    let story = Story::new(|script| strict_reviewer(developer(script)));
    story.add("Add user authentication");
    story.work();
    assert_eq!(story.outcome(1), "1 completed approved APPROVED - 3");
    assert!(story.reviews().iter().any(|name| name.ends_with("-task-1-review-3.md")), "{:?}", story.reviews());
    assert_eq!(story.files("signoff/task-1-add-user-authentication")[FEATURE], "login\nfixed 1\nfixed 2\n");
    assert_eq!(
        story.repository(|repository| repository.subjects("signoff/task-1-add-user-authentication")),
        [
            "Add user authentication - initial implementation",
            "Address review feedback (cycle 1)",
            "Address review feedback (cycle 2)"
        ]
    );
}

#[test]
fn the_cycles_can_be_used_up() {
    let story = with_review(&changes_requested("still wrong"));
    story.work();
    assert_eq!(story.outcome(1), "1 completed exhausted MAX_CYCLES_REACHED cycles_exhausted 3");
    insta::assert_snapshot!(lines(&story), @"
    Running task #1: Add feature Y
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - still wrong
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: CHANGES_REQUESTED - still wrong
      [3/3] Improving...
      [3/3] Running review...
      [3/3] Review: CHANGES_REQUESTED - still wrong
    Max review cycles (3) reached without approval
    ! Task #1 completed (MAX_CYCLES_REACHED after 3 cycles)
        Next: signoff show 1, then signoff improve 1 --review or signoff edit 1 --verdict APPROVED
    ");
    assert_eq!(story.calls_as("fix").len(), 2);
}

#[test]
fn unreadable_reviews_start_no_fix() {
    let story = with_review("I do not know.\n");
    story.work();
    assert_eq!(story.outcome(1), "1 completed exhausted - unclear_review 1");
    assert_eq!((story.calls_as("review").len(), story.calls_as("fix").len()), (2, 0));
}

#[test]
fn a_stop_before_the_last_cycle_is_not_reported_as_exhausted_cycles() {
    let story = Story::configured("[gate]\nmax_noop_fixes = 1\n", |script| {
        script
            .rule(ScriptRule::role("implement").write("work.txt", "work\n"))
            .rule(ScriptRule::role("fix").say("There is nothing to do.\n"))
            .rule(ScriptRule::role("review").say(&changes_requested("still wrong")))
    });
    story.add("Add feature Y");
    story.work();
    assert_eq!(story.outcome(1), "1 completed exhausted CHANGES_REQUESTED noop_fix 1");
    insta::assert_snapshot!(lines(&story), @"
    Running task #1: Add feature Y
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - still wrong
      [2/3] Improving...
    ! Task #1 completed (CHANGES_REQUESTED after 1 cycle): the fix changed nothing (noop_fix)
        Next: signoff show 1, then signoff improve 1 --review or signoff edit 1 --verdict APPROVED
    ");
    assert_eq!(status_line(&story.task(1)), "completed CHANGES_REQUESTED (1 cycle) noop_fix");
}

#[test]
fn a_failed_implementer_is_called_again_by_a_retry() {
    let story = Story::new(|script| approves(developer(script.rule(ScriptRule::role("implement").call(1).exit(7)))));
    story.add("Add feature Y");
    story.work();
    assert_eq!(story.outcome(1), "1 failed failed - implementer_failed 0");
    assert_eq!(story.run_status(1), "failed");
    story.retry(1);
    story.resume();
    assert_eq!(story.outcome(1), "1 completed approved APPROVED - 1");
    assert_eq!(story.run_status(1), "completed");
}

#[test]
fn an_agent_that_dies_or_is_late_fails_its_attempt() {
    for fails in [ScriptRule::role("implement").die(9), ScriptRule::role("implement").hang()] {
        let story = Story::configured("[limits]\nattempt = \"1s\"\n", |script| approves(script.rule(fails)));
        story.add("Add feature Y");
        story.work();
        assert_eq!(story.outcome(1), "1 failed failed - implementer_failed 0");
    }
}

#[test]
fn an_implementer_that_changes_nothing_has_failed() {
    let story = Story::new(|script| approves(script.rule(ScriptRule::role("implement").say("Done.\n"))));
    story.add("Add feature Y");
    story.work();
    assert_eq!(story.outcome(1), "1 failed failed - implementer_failed 0");
}

/// Each reviewer waits until the other has started: run one after the other they would never end.
#[test]
fn reviewers_of_a_round_work_at_the_same_time() {
    let two = "[gate]\nreviewers = [\"code\", \"spec\"]\n[reviewers.code]\n[reviewers.spec]\n";
    let reviewer =
        |own: &str, other: &str| wait_for_others(ScriptRule::role("review").reviewer(own), own, &[other]).say(APPROVED);
    let story = Story::configured(two, |script| {
        developer(script).rule(reviewer("code", "spec")).rule(reviewer("spec", "code"))
    });
    story.add("Add user authentication");
    story.work();
    assert_eq!(story.outcome(1), "1 completed approved APPROVED - 1");
    assert_eq!(story.executor.max_concurrent(), 2);
}

/// Every preset completes a task of the queue. The preset `phases` has its own tests.
#[test]
fn a_task_of_the_queue_completes_under_every_preset() {
    for (preset, answer) in [
        ("task", APPROVED),
        ("slots", "{\"verdict\": \"pass\", \"followUpPrompt\": \"\"}\n"),
        ("plan", ""),
        ("loops", APPROVED),
    ] {
        let story = Story::configured(&format!("preset = \"{preset}\"\n"), |script| {
            let works = ScriptRule::role("implement").write(FEATURE, "login\n").say("Done.\nTASK_COMPLETE\n");
            let script = script.rule(works);
            if preset == "plan" {
                both_reviewers_approve(script)
            } else {
                script.rule(ScriptRule::role("review").say(answer))
            }
        });
        story.add("Log in");
        story.work();
        let row = story.task(1);
        assert_eq!((row.status.into_str(), row.outcome.map(<&str>::from)), ("completed", Some("approved")), "{preset}");
        let calls = story.calls().len();
        story.work();
        assert_eq!(story.calls().len(), calls, "{preset}: nothing is left to do");
    }
}

#[test]
fn a_task_waits_for_its_dependencies_and_starts_from_their_approved_work() {
    let story = Story::new(|script| {
        let fails = ScriptRule::role("implement").task("3").exit(1);
        let works = ScriptRule::role("implement").write("{task}.txt", "work\n");
        approves(script.rule(fails).rule(works))
    });
    let first = story.add("First");
    let needs = |title: &str, task| TaskSpec { depends_on: vec![task], ..TaskSpec::from_text(title) };
    story.add_task(needs("Second", first));
    let third = story.add_task(needs("Third", first));
    story.add_task(needs("Fourth", third));
    story.work();
    assert_eq!(story.file_names("signoff/task-2-second"), "1.txt 2.txt");
    assert_eq!(story.task(3).status.into_str(), "failed");
    assert_eq!(story.task(4).run_id, None, "it never starts");
}

#[test]
fn only_the_named_tasks_are_worked_in_their_order() {
    let story = Story::new(|script| script.rule(ScriptRule::role("implement").write("{task}.txt", "work\n")));
    let [_, _, third] = ["One", "Two", "Three"].map(|title| story.add_task(TaskSpec::from_text(title)));
    let only = vec![third, signoff_core::ids::TaskId(1)];
    story.work_with(1, RunLoopOptions { only, ..RunLoopOptions::default() });
    let worked: Vec<String> = story.calls().iter().map(|call| call.task.clone()).collect();
    assert_eq!(worked, ["3", "1"]);
    assert_eq!(story.outcome(2), "2 pending - - - 0");
}

/// A review with more findings than the maximum is not parsed.
#[test]
fn a_review_with_too_many_findings_is_inconclusive() {
    let lines: String = (1..=10_001).map(|number| format!("- auth.txt:{number} fault {number}\n")).collect();
    let story = with_review(&format!("{lines}\n**Verdict: CHANGES_REQUESTED**\n"));
    story.work();
    assert_eq!(story.outcome(1), "1 completed exhausted - unclear_review 1");
}

/// Each waits until the other one has started.
#[test]
fn several_tasks_run_in_parallel() {
    let waits = |own: &str, other: &str| {
        wait_for_others(ScriptRule::role("implement").task(own), own, &[other]).write("one.txt", "done\n")
    };
    let story = Story::new(|script| script.rule(waits("1", "2")).rule(waits("2", "1")));
    for title in ["One", "Two"] {
        story.add_task(TaskSpec::from_text(title));
    }
    story.work_with(2, RunLoopOptions::default());
    assert!(story.tasks().iter().all(|row| row.status.into_str() == "completed"));
    assert_eq!(story.executor.max_concurrent(), 2);
}

#[test]
fn a_failed_task_does_not_stop_the_others() {
    let story = Story::new(|script| {
        script
            .rule(ScriptRule::role("implement").task("1").exit(4))
            .rule(ScriptRule::role("implement").task("2").say("Nothing to do.\n"))
            .rule(ScriptRule::role("implement").write(FEATURE, "login\n"))
    });
    for title in ["One", "Two", "Three"] {
        story.add_task(TaskSpec::from_text(title));
    }
    story.work();
    insta::assert_snapshot!(lines(&story), @"
    Running task #1: One
      Implementing...
      Implementation failed: exit code 4
    ✗ Task #1 failed: the implementer failed (implementer_failed)
        Next: signoff show 1, then signoff retry 1
    Running task #2: Two
      Implementing...
      Implementation failed: ended without changing anything
    ✗ Task #2 failed: the implementer failed (implementer_failed)
        Next: signoff show 2, then signoff retry 2
    Running task #3: Three
      Implementing...
      Implementation complete
    ○ Task #3 completed (not reviewed)
    ✗ Run 1 failed: 3 tasks, 1 completed, 2 failed
    ");
    assert_eq!(story.task(3).status.into_str(), "completed");
}
