//! Questions to a user, and the effect of each answer.

use signoff_core::ids::RunId;
use signoff_engine::dispatcher::RunLoopOptions;
use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::story::Story;

use crate::dispatcher::scripts::{
    FEATURE, both_reviewers_approve, developer, lines, lines_after, reviewer_answers, xml_approval, xml_finding,
};

/// A plan of one task, reviewed for spec and code.
fn story(reviewers: impl FnOnce(AgentScript) -> AgentScript) -> Story {
    let story = Story::new(|script| reviewers(developer(script)));
    run(&story);
    story
}

fn run(story: &Story) {
    story.run_plan(&["Login"], RunLoopOptions::default());
}

/// The one open question: number, text and choices.
fn question(story: &Story) -> String {
    let questions = story.questions();
    assert_eq!((questions.len(), story.task(1).status.into_str()), (1, "waiting"));
    let question = &questions[0];
    format!("{} {} {:?}", question.id, question.text, question.choices)
}

/// Status, verdict, outcome and reason.
fn end(story: &Story) -> String {
    let row = story.task(1);
    let verdict = row.final_verdict.map_or("-", <&str>::from);
    let outcome = row.outcome.map_or("-", <&str>::from);
    let reason = row.reason.map_or("-", <&str>::from);
    format!("{} {verdict} {outcome} {reason}", row.status.into_str())
}

/// The number of calls of a reviewer.
fn calls(story: &Story, reviewer: &str) -> usize {
    story.calls().iter().filter(|call| call.reviewer == reviewer).count()
}

/// Answers the question, continues, and returns the result.
fn answered(story: &Story, choice: &str) -> String {
    story.answer(1, choice);
    story.resume();
    end(story)
}

/// The lines from the review's on: which of two reviewers fails first varies.
fn from_the_review(story: &Story) -> String {
    let lines = lines(story);
    lines[lines.find("  [1/3] Review: ").expect("a review")..].to_owned()
}

/// Answers the question, continues, and returns the lines of the second process.
fn lines_after_answer(story: &Story, choice: &str) -> String {
    let before = story.log(RunId(1)).len();
    story.answer(1, choice);
    let facts = story.log(RunId(1)).len();
    assert!(facts > before);
    story.resume();
    lines_after(story, facts)
}

/// One reviewer always fails.
fn failing(reviewer: &str) -> impl FnOnce(AgentScript) -> AgentScript {
    move |script| {
        both_reviewers_approve(
            script.rule(ScriptRule::role("review").reviewer(reviewer).complain("no network\n").exit(9)),
        )
    }
}

#[test]
fn a_review_that_times_out_is_retried_once_then_a_person_is_asked() {
    let hangs = |call: u32| ScriptRule::role("review").reviewer("code").call(call).hang();
    let story = Story::configured("[reviewers.code]\ntimeout = \"1s\"\n", |script| {
        both_reviewers_approve(developer(script).rule(hangs(1)).rule(hangs(2)))
    });
    run(&story);
    assert_eq!(
        question(&story),
        "q1 code gave no usable review; the others did. Retry, proceed without, or stop? \
         [\"retry\", \"proceed\", \"stop\", \"restart\"]"
    );
    insta::assert_snapshot!(lines(&story), @"
    Running task #1: Login
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Reviewer code failed: timed out; trying again
        hint: `[reviewers.code] timeout` sets the timeout; `signoff config` shows the settings in effect
      [1/3] Review: INCONCLUSIVE - code: timed out
        Review Results:
          Spec Review: APPROVED (high confidence)
          Code Review: INCONCLUSIVE - no answer: timed out
        hint: `[reviewers.code] timeout` sets the timeout; `signoff config` shows the settings in effect
      [1/3] Question: code gave no usable review; the others did. Retry, proceed without, or stop?
        signoff answer 1 CHOICE (retry, proceed, stop, restart)
    ");
    insta::assert_snapshot!(lines_after_answer(&story, "retry"), @"
    Resuming task #1: Login
      [1/3] Ann answers: retry
      [1/3] Asking code again...
      [1/3] Review: APPROVED
        Review Results:
          Spec Review: APPROVED (high confidence)
          Code Review: APPROVED (high confidence)

        Action: Proceed
    ✓ Task #1 completed (APPROVED after 1 cycle)
    ");
    assert_eq!(end(&story), "completed APPROVED approved -");
    assert_eq!((calls(&story, "spec"), calls(&story, "code")), (1, 3), "successful reviewers are not called again");
}

#[test]
fn a_missing_review_can_be_skipped_but_never_counts_as_approval() {
    let story = story(failing("code"));
    assert_eq!(answered(&story, "proceed"), "completed - completed_with_issues review_skipped");
}

#[test]
fn a_missing_review_can_stop_the_task() {
    let story = story(failing("code"));
    insta::assert_snapshot!(from_the_review(&story), @"
      [1/3] Review: INCONCLUSIVE - code: exit code 9
        Review Results:
          Spec Review: APPROVED (high confidence)
          Code Review: INCONCLUSIVE - no answer: exit code 9
      [1/3] Question: code gave no usable review; the others did. Retry, proceed without, or stop?
        signoff answer 1 CHOICE (retry, proceed, stop, restart)
    ");
    assert_eq!(answered(&story, "stop"), "failed CHANGES_REQUESTED failed stopped_by_person");
}

#[test]
fn findings_of_the_successful_review_are_fixed_before_it_goes_on() {
    let story = story(|script| {
        both_reviewers_approve(
            script
                .rule(ScriptRule::role("review").reviewer("code").cycle(1).exit(9))
                .rule(reviewer_answers("spec", &xml_finding("spec", 1, "critical", "No logout")).cycle(1)),
        )
    });
    insta::assert_snapshot!(lines_after_answer(&story, "proceed"), @"
    Resuming task #1: Login
      [1/3] Ann answers: proceed
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: APPROVED
        Review Results:
          Spec Review: APPROVED (high confidence)
          Code Review: APPROVED (high confidence)

        Action: Proceed
    ✓ Task #1 completed (APPROVED after 2 cycles)
    ");
    assert_eq!(end(&story), "completed APPROVED approved -");
    assert_eq!((story.task(1).review_cycle, story.calls_as("fix").len()), (2, 1));
}

#[test]
fn an_answer_in_the_old_format_is_understood() {
    let story = story(|script| {
        script
            .rule(reviewer_answers("spec", "APPROVED: all requirements are met\n"))
            .rule(reviewer_answers("code", "ISSUES:\n- [Critical] auth.txt:1 the password is logged\n").cycle(1))
            .rule(reviewer_answers("code", "APPROVED: well done\n"))
    });
    insta::assert_snapshot!(lines(&story), @"
    Running task #1: Login
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - the password is logged
        Review Results:
          Spec Review: APPROVED
          Code Review: ISSUES

        Issues to Fix (1):

          1. [Code Critical] auth.txt:1
             the password is logged

        Action: Fix issues and re-run reviews
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: APPROVED
        Review Results:
          Spec Review: APPROVED
          Code Review: APPROVED

        Action: Proceed
    ✓ Task #1 completed (APPROVED after 2 cycles)
    ");
    assert_eq!((calls(&story, "spec"), calls(&story, "code")), (2, 2), "no retry");
}

#[test]
fn an_unreadable_answer_is_requested_once_more() {
    let story = story(|script| {
        both_reviewers_approve(script.rule(ScriptRule::role("review").reviewer("spec").call(1).say("I like it.\n")))
    });
    insta::assert_snapshot!(lines(&story), @"
    Running task #1: Login
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review by spec is unclear: there is no review element, and the message does not start with APPROVED: or ISSUES:; trying again
      [1/3] Review: APPROVED
        Review Results:
          Spec Review: APPROVED (high confidence)
          Code Review: APPROVED (high confidence)

        Action: Proceed
    ✓ Task #1 completed (APPROVED after 1 cycle)
    ");
    assert_eq!(end(&story), "completed APPROVED approved -");
    assert_eq!((calls(&story, "spec"), calls(&story, "code")), (2, 1));
}

#[test]
fn a_second_unreadable_answer_leads_to_a_question() {
    let unclear = || {
        story(|script| {
            script.rule(reviewer_answers("spec", "I like it.\n")).rule(reviewer_answers("code", "Me too.\n"))
        })
    };
    let asked = "The answer of code and spec could not be understood. Retry, proceed without it, or stop? \
                 [\"retry\", \"proceed\", \"stop\", \"restart\"]";
    let story = unclear();
    assert_eq!(question(&story), format!("q1 {asked}"));
    insta::assert_snapshot!(from_the_review(&story), @"
      [1/3] Review: INCONCLUSIVE - code: there is no review element, and the message does not start with APPROVED: or ISSUES:
        Review Results:
          Spec Review: INCONCLUSIVE - no_verdict: there is no review element, and the message does not start with APPROVED: or ISSUES: (at byte 0)
          Code Review: INCONCLUSIVE - no_verdict: there is no review element, and the message does not start with APPROVED: or ISSUES: (at byte 0)
      [1/3] Question: The answer of code and spec could not be understood. Retry, proceed without it, or stop?
        signoff answer 1 CHOICE (retry, proceed, stop, restart)
    ");
    assert_eq!(answered(&story, "retry"), "waiting - - -");
    assert_eq!(question(&story), format!("q2 {asked}"));
    assert_eq!(answered(&story, "proceed"), "completed - completed_with_issues review_skipped");
    assert_eq!(answered(&unclear(), "stop"), "failed - failed stopped_by_person");
}

/// Both reviewers fail twice.
fn both_failing() -> Story {
    story(|script| {
        let fails = |reviewer: &str, call: u32| ScriptRule::role("review").reviewer(reviewer).call(call).exit(9);
        let rules = ["spec", "code"].into_iter().flat_map(|name| [fails(name, 1), fails(name, 2)]);
        both_reviewers_approve(rules.fold(script, AgentScript::rule))
    })
}

#[test]
fn if_both_reviews_fail_they_can_be_retried_skipped_or_the_task_stopped() {
    let story = both_failing();
    assert_eq!(
        question(&story),
        "q1 code and spec gave no review. Retry, skip the review, or stop? \
         [\"retry\", \"skip\", \"stop\", \"restart\"]"
    );
    insta::assert_snapshot!(from_the_review(&story), @"
    [1/3] Review: INCONCLUSIVE - code: exit code 9
      Review Results:
        Spec Review: INCONCLUSIVE - no answer: exit code 9
        Code Review: INCONCLUSIVE - no answer: exit code 9
    [1/3] Question: code and spec gave no review. Retry, skip the review, or stop?
      signoff answer 1 CHOICE (retry, skip, stop, restart)
    ");
    assert_eq!(answered(&story, "retry"), "completed APPROVED approved -");
    assert_eq!((calls(&story, "spec"), calls(&story, "code")), (3, 3));
    assert_eq!(answered(&both_failing(), "skip"), "completed - completed_with_issues review_skipped");
    assert_eq!(answered(&both_failing(), "stop"), "failed CHANGES_REQUESTED failed stopped_by_person");
}

/// A reviewer that never approves.
fn never_approves(script: AgentScript) -> AgentScript {
    script
        .rule(reviewer_answers("spec", &xml_approval("spec")))
        .rule(reviewer_answers("code", &xml_finding("code", 1, "critical", "Still wrong")))
}

#[test]
fn after_three_reviews_a_person_decides() {
    let asked = |number: u32, reviews: u32| {
        format!(
            "q{number} {reviews} reviews did not lead to approval. One more fix and review, proceed with the findings \
             open, or stop? [\"continue\", \"proceed\", \"stop\", \"restart\"]"
        )
    };
    let one = story(never_approves);
    assert_eq!(question(&one), asked(1, 3));
    let printed = lines(&one);
    let last: Vec<_> = printed.lines().rev().take(3).collect();
    insta::assert_snapshot!(last.into_iter().rev().collect::<Vec<_>>().join("\n"), @"
             Fix: Do it right
      [3/3] Question: 3 reviews did not lead to approval. One more fix and review, proceed with the findings open, or stop?
        signoff answer 1 CHOICE (continue, proceed, stop, restart)
    ");
    assert_eq!(answered(&one, "continue"), "waiting - - -");
    assert_eq!(calls(&one, "code"), 4, "one more fix and review");
    assert_eq!(question(&one), asked(2, 4));
    assert_eq!(answered(&one, "proceed"), "completed MAX_CYCLES_REACHED completed_with_issues cycles_exhausted");
    assert_eq!(answered(&story(never_approves), "stop"), "failed CHANGES_REQUESTED failed cycles_exhausted");
}

#[test]
fn a_failed_developer_leads_to_a_question() {
    let story = Story::new(|script| {
        both_reviewers_approve(
            script
                .rule(ScriptRule::role("implement").call(1).exit(5))
                .rule(ScriptRule::role("implement").write(FEATURE, "login\n"))
                .rule(ScriptRule::role("fix").call(1).exit(6))
                .rule(ScriptRule::role("fix").append(FEATURE, "fixed\n"))
                .rule(reviewer_answers("spec", &xml_finding("spec", 1, "critical", "No logout")).cycle(1)),
        )
    });
    run(&story);
    assert_eq!(question(&story), "q1 The implementer failed. Retry or stop? [\"retry\", \"stop\"]");
    assert_eq!(answered(&story, "retry"), "waiting - - -");
    assert_eq!(question(&story), "q2 The fixer failed. Retry or stop? [\"retry\", \"stop\", \"restart\"]");
    assert_eq!(answered(&story, "retry"), "completed APPROVED approved -");
    let roles: Vec<_> = story.calls().iter().map(|call| call.role.clone()).collect();
    assert_eq!(roles, ["implement", "implement", "review", "review", "fix", "fix", "review", "review"]);
}

#[test]
fn with_no_ask_a_question_stops_the_task() {
    let no_ask = || RunLoopOptions { no_ask: true, ..RunLoopOptions::default() };
    let story = Story::new(|script| failing("code")(developer(script)));
    story.run_plan(&["Login"], no_ask());
    assert_eq!(end(&story), "failed CHANGES_REQUESTED failed no_one_to_ask");
    insta::assert_snapshot!(from_the_review(&story), @"
      [1/3] Review: INCONCLUSIVE - code: exit code 9
        Review Results:
          Spec Review: APPROVED (high confidence)
          Code Review: INCONCLUSIVE - no answer: exit code 9
    ✗ Task #1 failed: a question was open with --no-ask (no_one_to_ask)
        Next: signoff show 1, then signoff retry 1
    ");
    let story = Story::new(|script| never_approves(developer(script)));
    story.run_plan(&["Login"], no_ask());
    assert_eq!((story.task(1).status.into_str(), story.questions().len()), ("failed", 0));
}

#[test]
fn the_next_task_of_a_plan_starts_when_the_question_is_answered() {
    let story = Story::new(|script| {
        let fails = ScriptRule::role("review").reviewer("code").task("1").exit(9);
        let works = ScriptRule::role("implement").write("{task}.txt", "done\n").say("Done.\n");
        both_reviewers_approve(script.rule(works).rule(fails))
    });
    story.run_plan(&["Login", "Logout"], RunLoopOptions::default());
    assert_eq!(story.outcome(2), "2 pending - - - 0");
    story.answer(1, "proceed");
    story.resume();
    assert_eq!((story.task(1).status.into_str(), story.task(2).status.into_str()), ("completed", "completed"));
}
