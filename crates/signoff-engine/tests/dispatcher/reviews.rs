//! Reviewers that ask for a discussion, fail, or cannot be understood, and users who dispute findings.

use signoff_core::ids::{LoopId, RunId};
use signoff_core::ledger::FindingState;
use signoff_core::task::{TaskSpec, TaskType};
use signoff_core::view::RunState;
use signoff_term::status::status_line;
use signoff_testkit::agent_script::ScriptRule;
use signoff_testkit::story::Story;

use crate::dispatcher::limits::attempts;
use crate::dispatcher::scripts::{APPROVED, FEATURE, approves, call_list, changes_requested, developer};
use crate::dispatcher::scripts::{lines, lines_after};

const DISCUSSION: &str = "Should this be public?\n\n**Verdict: NEEDS_DISCUSSION**\n";

/// The states of a task's findings.
fn ledger(story: &Story, task: &str) -> Vec<FindingState> {
    let state = RunState::from_log(&story.log(RunId(1)));
    let entries = state.loops[&LoopId::new(task)].machine.ledger.entries();
    entries.iter().map(|entry| entry.state).collect()
}

#[test]
fn a_discussion_stops_at_once() {
    let story = Story::new(|script| developer(script).rule(ScriptRule::role("review").say(DISCUSSION)));
    story.add("Add feature Y");
    story.work();
    insta::assert_snapshot!(lines(&story), @"
    Running task #1: Add feature Y
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: NEEDS_DISCUSSION - Should this be public?
    ! Task #1 completed (NEEDS_DISCUSSION after 1 cycle)
        Next: signoff show 1, then signoff retry 1 or signoff edit 1 --verdict APPROVED
    ");
    assert_eq!(status_line(&story.task(1)), "completed NEEDS_DISCUSSION (1 cycle)");
    assert_eq!(story.outcome(1), "1 completed discussion NEEDS_DISCUSSION discussion 1");
    assert_eq!(story.calls_as("fix").len(), 0);
}

/// The fixer reads what the program could not parse.
#[test]
fn an_answer_without_a_verdict_after_a_readable_one_goes_to_the_fixer_unparsed() {
    let (story, _project) = Story::with_files("", |script| {
        developer(script)
            .rule(ScriptRule::role("review").cycle(1).say(&changes_requested("more")))
            .rule(ScriptRule::role("review").cycle(2).say("The passwords are stored in the clear!\n"))
            .rule(ScriptRule::role("review").say(APPROVED))
    });
    story.add("Add feature Y");
    story.work();
    insta::assert_snapshot!(lines(&story), @"
    Running task #1: Add feature Y
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - more
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review by general is unclear: there is no line `**Verdict: APPROVED**`, `**Verdict: CHANGES_REQUESTED**` or `**Verdict: NEEDS_DIS…; trying again
      [2/3] Review: INCONCLUSIVE - general: there is no line `**Verdict: APPROVED**`, `**Verdict: CHANGES_REQUESTED**` or `**Verdict:…
      [3/3] Improving...
      [3/3] Running review...
      [3/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 3 cycles)
    ");
    let fix = &story.calls_as("fix")[1];
    assert!(fix.prompt.contains("The passwords are stored in the clear!"), "{}", fix.prompt);
    let mut headings: Vec<&str> = fix.prompt.lines().filter(|line| line.starts_with("## ")).collect();
    headings.sort_unstable();
    assert!(headings.is_sorted_by(|one, other| one < other), "{headings:?}");
    assert_eq!(story.outcome(1), "1 completed approved APPROVED - 3");
}

#[test]
fn a_second_try_contains_the_parse_error() {
    let (story, _project) = Story::with_files("", |script| {
        developer(script)
            .rule(ScriptRule::role("review").call(1).say("It is a mess.\n\nI would not merge this.\n"))
            .rule(ScriptRule::role("review").say(APPROVED))
    });
    story.add("Add feature Y");
    story.work();
    assert_eq!(story.outcome(1), "1 completed approved APPROVED - 1");
    let calls = story.calls_as("review");
    assert_eq!(calls.len(), 2);
    assert!(!calls[0].prompt.contains("Your Last Answer Could Not Be Read"), "{}", calls[0].prompt);
    for words in ["## Your Last Answer Could Not Be Read", "there is no line", "I would not merge this."] {
        assert!(calls[1].prompt.contains(words), "{words} is not in\n{}", calls[1].prompt);
    }
}

#[test]
fn a_reviewer_that_fails_stops_the_loop_and_retry_resumes_there() {
    let story = Story::new(|script| {
        developer(script)
            .rule(ScriptRule::role("review").call(1).say(&changes_requested("more")))
            .rule(ScriptRule::role("review").call(2).complain("no network\n").exit(7))
            .rule(ScriptRule::role("review").say(APPROVED))
    });
    story.add("Add feature Y");
    story.work();
    insta::assert_snapshot!(lines(&story), @"
    Running task #1: Add feature Y
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - more
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: INCONCLUSIVE - general: exit code 7
    ✗ Task #1 failed: a reviewer or check failed (reviewer_failed)
        Next: signoff show 1, then signoff retry 1
    ");
    assert_eq!(status_line(&story.task(1)), "failed CHANGES_REQUESTED (2 cycles) reviewer_failed");
    assert_eq!(story.outcome(1), "1 failed failed CHANGES_REQUESTED reviewer_failed 2");
    let facts = story.log(RunId(1)).len();
    story.retry(1);
    story.resume();
    insta::assert_snapshot!(lines_after(&story, facts), @"
    Retrying task #1: Add feature Y
      [2/3] Asking general again...
      [2/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 2 cycles)
    ");
    assert_eq!(story.outcome(1), "1 completed approved APPROVED - 2");
    insta::assert_snapshot!(call_list(&story), @"
    implement task 1 cycle 0
    review general task 1 cycle 1
    fix task 1 cycle 1
    review general task 1 cycle 2
    review general task 1 cycle 2
    ");
    let expected = ["complete", "reviewed", "complete", "exit_code", "reviewed"].map(|end| format!("scripted {end}"));
    assert_eq!(attempts(&story), expected);
}

/// The reviewer repeats its finding, which a user disputed.
#[test]
fn a_disputed_finding_is_not_opened_again_and_no_longer_blocks() {
    let story = Story::configured("[gate]\nmax_cycles = 1\n", |script| {
        developer(script).rule(ScriptRule::role("review").say(&changes_requested("missing input validation")))
    });
    story.add("One");
    story.work();
    assert_eq!(ledger(&story, "1"), [FindingState::Open]);
    story.dispute("f-", "the caller validates");
    assert_eq!(ledger(&story, "1"), [FindingState::Refuted]);
    let facts = story.log(RunId(1)).len();
    story.retry(1);
    story.resume();
    insta::assert_snapshot!(lines_after(&story, facts), @"
    Retrying task #1: One
      [2/2] Running review...
      [2/2] Review: APPROVED, 1 finding overruled by a person
    ✓ Task #1 completed (APPROVED after 2 cycles, 1 finding overruled by a person)
    ");
    let last = story.calls_as("review").pop().expect("a second review").prompt;
    assert!(last.contains("the caller validates"), "reviewers do not see the reason:\n{last}");
    assert_eq!(ledger(&story, "1"), [FindingState::Refuted]);
}

/// With a reviewer in the configuration, work is reviewed by default, and an improvement like an implementation.
#[test]
fn every_type_that_changes_code_is_reviewed() {
    let story = Story::configured("[reviewers.general]\nagent = \"scripted\"\n", |script| {
        let script = script.rule(ScriptRule::role("fix").task("2").say("Nothing to do.\n"));
        approves(script.rule(ScriptRule::role("fix").append(FEATURE, "more\n").say("Improved.\n")))
    });
    let improve = |title: &str, auto_review| {
        story.add_task(TaskSpec { kind: TaskType::Improve, auto_review, ..TaskSpec::from_text(title) });
    };
    improve("Add login", None);
    improve("Add nothing", None);
    improve("Add tea", Some(false));
    story.work();
    assert_eq!(story.outcome(1), "1 completed approved APPROVED - 1");
    assert_ne!(story.task(2).final_verdict.map(<&str>::from), Some("APPROVED"));
    assert_eq!(story.outcome(3), "3 completed - - - 0", "not reviewed");
    assert_eq!(story.calls_as("review").iter().filter(|call| call.task == "3").count(), 0);
}
