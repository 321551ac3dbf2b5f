//! `signoff iterate`: a task goes through the phases until its last review approves, or a user decides.

use signoff_core::ids::{LoopId, RunId};
use signoff_core::view::{PhaseProgress, RunState, TaskRow};
use signoff_term::status::status_line;
use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::story::Story;

use crate::dispatcher::scripts::{lines, lines_after};

/// No researchers.
const QUICK: &str = "[presets.phases.phase.1]\nparallel = false\n[presets.phases.phase.2]\nparallel = false\n";

/// A team whose plan depends on the design, and whose design depends on the findings.
fn team(script: AgentScript) -> AgentScript {
    let plan = "# Greeting\n\n### Task 1: Say hello\n\nWrite hello.txt.\n\n### Task 2: Say goodbye\n\nWrite bye.txt.\n";
    script
        .rule(ScriptRule::role("brainstorm").prompt_contains("nobody can leave").say("# Design\n\nTwo files.\n"))
        .rule(ScriptRule::role("brainstorm").say("# Design\n\nOne file.\n"))
        .rule(ScriptRule::role("plan").prompt_contains("Two files").say(plan))
        .rule(ScriptRule::role("plan").say("# Greeting\n\n### Task 1: Say hello\n\nWrite hello.txt.\n"))
        .rule(ScriptRule::role("implement").prompt_contains("number 2 of 2").write("bye.txt", "bye\n").say("Done.\n"))
        .rule(ScriptRule::role("implement").write("hello.txt", "hello\n").say("Done.\n"))
        .rule(ScriptRule::role("fix").write("fix-{cycle}.txt", "fixed\n").say("Fixed.\n"))
        .rule(ScriptRule::role("simplify").write("simple.txt", "simple\n").say("Simpler.\n"))
        .rule(ScriptRule::role("review").say("NO ISSUES\n"))
}

/// The state of the task as `signoff status` prints it.
fn status(story: &Story) -> String {
    let (state, loop_id) = (RunState::from_log(&story.log(RunId(1))), LoopId::new("1"));
    let policy = state.policy(&loop_id).expect("a policy");
    let progress = PhaseProgress::for_loop(&state.loops[&loop_id].machine, policy);
    status_line(&TaskRow { progress, ..story.task(1) })
}

#[test]
fn running_out_of_iterations_is_not_a_pass() {
    let (story, _project) = Story::with_files(QUICK, |script| {
        team(script.rule(ScriptRule::role("review").say("HIGH plan.md:1 nobody can leave\n")))
    });
    story.run_iterations("Add a greeting", 2);
    insta::assert_snapshot!(lines(&story), @"
    Running task #1: Add a greeting
    Iteration 1/2
      Phase 1/9: Brainstorm...
      Phase 1/9: Brainstorm complete
      Phase 2/9: Plan...
      Phase 2/9: Plan complete
      Phase 3/9: Plan Review...
      Phase 3/9: Plan Review: CHANGES_REQUESTED - nobody can leave
      Phase 3/9: Plan Review: 1 issue, back to phase 1 (iteration 2/2)
    Iteration 2/2
      Phase 1/9: Brainstorm...
      Phase 1/9: Brainstorm complete
      Phase 2/9: Plan...
      Phase 2/9: Plan: 2 items planned
      Phase 2/9: Plan complete
      Phase 3/9: Plan Review...
      Phase 3/9: Plan Review: CHANGES_REQUESTED - nobody can leave
    ✗ Task #1 failed: the maximum number of passes is reached (passes_exhausted)
        Next: signoff show 1, then signoff retry 1
    ");
    assert_eq!(status(&story), "failed CHANGES_REQUESTED (2 iterations) passes_exhausted");
    assert_eq!(story.outcome(1), "1 failed failed CHANGES_REQUESTED passes_exhausted 1");
    // A retry adds one iteration.
    story.set_agent(team);
    let facts = story.log(RunId(1)).len();
    story.retry(1);
    story.resume();
    insta::assert_snapshot!(lines_after(&story, facts), @"
    Retrying task #1: Add a greeting
    Iteration 3/3
      Phase 1/9: Brainstorm...
      Phase 1/9: Brainstorm complete
      Phase 2/9: Plan...
      Phase 2/9: Plan complete
      Phase 3/9: Plan Review...
      Phase 3/9: Plan Review: APPROVED
      Phase 4/9: Implement, item 1/2...
      Phase 4/9: Implement, item 1/2 complete
      Phase 4/9: Implement, item 2/2...
      Phase 4/9: Implement, item 2/2 complete
      Phase 5/9: Code Review...
      Phase 5/9: Code Review: APPROVED
      Phase 6/9: Test...
      Phase 6/9: Test: Nothing to check: no checks are configured, and none were found
      Phase 7/9: Simplify...
      Phase 7/9: Simplify complete
      Phase 8/9: Final Review...
      Phase 8/9: Final Review: APPROVED
      Phase 9/9: Codex Final...
      Phase 9/9: Codex Final: APPROVED
    ✓ Task #1 completed (APPROVED after 6 reviews in 3 iterations): there was nothing to check (nothing_to_check)
    ");
}

/// Stops at the code review after one fix with a question, and answers it. Returns the number of facts before the next
/// process.
fn answered(answer: &str) -> (Story, usize) {
    let asks = format!("[presets.phases.gates.code_review]\nmax_fixes = 1\non_exhausted = \"ask\"\n{QUICK}");
    let (story, _project) = Story::with_files(&asks, |script| {
        let script = script.rule(ScriptRule::role("review").reviewer("code").call(3).say("NO ISSUES\n"));
        team(script.rule(ScriptRule::role("review").reviewer("code").say("HIGH hello.txt:1 greets nobody\n")))
    });
    story.run_iterations("Add a greeting", 10);
    assert_eq!((story.task(1).status.into_str(), story.questions().len()), ("waiting", 1));
    story.answer(1, answer);
    let facts = story.log(RunId(1)).len();
    (story, facts)
}

/// The lines of the process after the answer.
fn lines_after_answer(answer: &str) -> (Story, String) {
    let (story, facts) = answered(answer);
    story.resume();
    let printed = lines_after(&story, facts);
    (story, printed)
}

#[test]
fn a_person_says_continue() {
    let (story, facts) = answered("continue");
    insta::assert_snapshot!(lines(&story), @"
    Running task #1: Add a greeting
    Iteration 1/10
      Phase 1/9: Brainstorm...
      Phase 1/9: Brainstorm complete
      Phase 2/9: Plan...
      Phase 2/9: Plan complete
      Phase 3/9: Plan Review...
      Phase 3/9: Plan Review: APPROVED
      Phase 4/9: Implement...
      Phase 4/9: Implement complete
      Phase 5/9: Code Review...
      Phase 5/9: Code Review: CHANGES_REQUESTED - greets nobody
      Phase 5/9: Code Review 2/2: Improving...
      Phase 5/9: Code Review 2/2...
      Phase 5/9: Code Review 2/2: CHANGES_REQUESTED - greets nobody
      Phase 5/9: Code Review 2/2: Question: 2 reviews did not lead to approval. One more fix and review, proceed with the findings open, or stop?
        signoff answer 1 CHOICE (continue, proceed, stop, restart)
      Phase 5/9: Code Review 2/2: Ann answers: continue
      Phase 5/9: Code Review 3/3: Improving...
    ");
    story.resume();
    insta::assert_snapshot!(lines_after(&story, facts), @"
    Resuming task #1: Add a greeting
      Phase 5/9: Code Review 2/2: Ann answers: continue
      Phase 5/9: Code Review 3/3: Improving...
      Phase 5/9: Code Review 3/3...
      Phase 5/9: Code Review 3/3: APPROVED
      Phase 6/9: Test...
      Phase 6/9: Test: Nothing to check: no checks are configured, and none were found
      Phase 7/9: Simplify...
      Phase 7/9: Simplify complete
      Phase 8/9: Final Review...
      Phase 8/9: Final Review: APPROVED
      Phase 9/9: Codex Final...
      Phase 9/9: Codex Final: APPROVED
    ✓ Task #1 completed (APPROVED after 6 reviews in 1 iteration): there was nothing to check (nothing_to_check)
    ");
}

#[test]
fn a_person_says_proceed() {
    let (story, printed) = lines_after_answer("proceed");
    insta::assert_snapshot!(printed, @"
    Resuming task #1: Add a greeting
      Phase 5/9: Code Review 2/2: Ann answers: proceed
    Max fix attempts (1) reached without approval
      Phase 5/9: Code Review 2/2: Continues without approval: the review cycles are used up (cycles_exhausted)
      Phase 6/9: Test...
      Phase 6/9: Test: Nothing to check: no checks are configured, and none were found
      Phase 7/9: Simplify...
      Phase 7/9: Simplify complete
      Phase 8/9: Final Review...
      Phase 8/9: Final Review: APPROVED
      Phase 9/9: Codex Final...
      Phase 9/9: Codex Final: APPROVED
    ! Task #1 completed with issues (MAX_CYCLES_REACHED after 5 reviews in 1 iteration): the review cycles are used up (cycles_exhausted)
        Next: signoff show 1, then signoff improve 1 --review
    ");
    assert!(story.outcome(1).contains("completed_with_issues"), "{}", story.outcome(1));
}

#[test]
fn a_person_says_restart() {
    let (story, printed) = lines_after_answer("restart");
    insta::assert_snapshot!(printed, @"
    Resuming task #1: Add a greeting
      Phase 5/9: Code Review 2/2: Ann answers: restart
      Phase 5/9: Code Review 2/2: back to phase 1 (iteration 2/10)
    Iteration 2/10
      Phase 1/9: Brainstorm...
      Phase 1/9: Brainstorm complete
      Phase 2/9: Plan...
      Phase 2/9: Plan complete
      Phase 3/9: Plan Review...
      Phase 3/9: Plan Review: APPROVED
      Phase 4/9: Implement...
      Phase 4/9: Implement complete
      Phase 5/9: Code Review...
      Phase 5/9: Code Review: APPROVED
      Phase 6/9: Test...
      Phase 6/9: Test: Nothing to check: no checks are configured, and none were found
      Phase 7/9: Simplify...
      Phase 7/9: Simplify complete
      Phase 8/9: Final Review...
      Phase 8/9: Final Review: APPROVED
      Phase 9/9: Codex Final...
      Phase 9/9: Codex Final: APPROVED
    ✓ Task #1 completed (APPROVED after 7 reviews in 2 iterations): there was nothing to check (nothing_to_check)
    ");
    let unchanged = "item 1 of 1 changed nothing: Say hello".to_owned();
    assert!(story.notes().contains(&unchanged), "{:?}", story.notes());
}

#[test]
fn a_person_says_stop() {
    let (story, _) = answered("stop");
    assert_eq!(status(&story), "failed CHANGES_REQUESTED (1 iteration) cycles_exhausted");
}
