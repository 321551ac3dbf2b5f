//! Questions to a person, and the effect of each answer.

use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::{ProgramOutput, TestProject};

use crate::PROGRAM;
use crate::actors::{approving_agent, clean, developer, issue, sees};

/// A plan of one task, reviewed for spec and code.
fn project(reviewers: impl FnOnce(AgentScript) -> AgentScript) -> TestProject {
    let project = TestProject::with_agent(PROGRAM, |script| reviewers(developer(script)));
    project.env.write("plan.md", "# Plan\n\n### Task 1: Login\n\nPeople log in.\n");
    project.commit("Plan");
    project
}

/// The one open question: number, text and choices.
fn question(project: &TestProject) -> String {
    let status = project.run(&["status", "--json"]).json();
    let questions = status["questions"].as_array().expect("a list of questions");
    assert_eq!(questions.len(), 1, "{status:#}");
    let question = &questions[0];
    assert_eq!((&question["task_id"], &status["tasks"][0]["status"]), (&1.into(), &"waiting".into()));
    format!("{} {} {}", question["id"], question["text"], question["choices"])
}

fn task_outcome(project: &TestProject) -> String {
    let shown = project.run(&["show", "1", "--json"]).json();
    let task = &shown["task"];
    format!("{} {} {} {}", task["status"], task["final_verdict"], task["outcome"], task["reason"])
}

/// The output from the review's line on: which of two reviewers fails first varies.
fn from_the_review(output: &ProgramOutput) -> String {
    let start = output.stdout.find("  [1/3] Review: ").expect("a review");
    format!("exit {}\n{}", output.code.expect("an exit code"), &output.stdout[start..])
}

/// The number of calls of a reviewer.
fn calls(project: &TestProject, reviewer: &str) -> usize {
    project.calls().all().iter().filter(|call| call.start.reviewer == reviewer).count()
}

/// One reviewer fails twice, then works.
fn failing_twice(reviewer: &str) -> TestProject {
    project(|script| {
        let fails = |call: u32| ScriptRule::role("review").reviewer(reviewer).call(call).exit(9);
        approving_agent(script.rule(fails(1)).rule(fails(2)))
    })
}

#[test]
fn a_question_is_shown_until_it_is_answered() {
    let project = failing_twice("code");
    insta::assert_snapshot!(from_the_review(&project.run(&["run", "plan.md"])), @"
    exit 3
      [1/3] Review: INCONCLUSIVE - code: exit code 9
        Review Results:
          Spec Review: APPROVED (high confidence)
          Code Review: INCONCLUSIVE - no answer: exit code 9
      [1/3] Question: code gave no usable review; the others did. Retry, proceed without, or stop?
        signoff answer 1 CHOICE (retry, proceed, stop, restart)
    ");
    insta::assert_snapshot!(question(&project), @r#""q1" "code gave no usable review; the others did. Retry, proceed without, or stop?" ["retry","proceed","stop","restart"]"#);
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"
      ! 1. implement Login    waiting     (cycle 1/3)

    Questions:
      q1 task 1: code gave no usable review; the others did. Retry, proceed without, or stop?
          signoff answer 1 CHOICE (retry, proceed, stop, restart)
    ");
    insta::assert_snapshot!(project.run(&["work", "--strict"]), @"
    exit 3
    --- stderr
    Task #1 waits for you (q1): code gave no usable review; the others did. Retry, proceed without, or stop?
      signoff answer 1 CHOICE (retry, proceed, stop, restart)
    ");
    insta::assert_snapshot!(project.run(&[]).stdout, @"
    Needs attention:
      q1 task 1: code gave no usable review; the others did. Retry, proceed without, or stop?
          signoff answer 1 CHOICE (retry, proceed, stop, restart)

    1 waiting
    ");
    insta::assert_snapshot!(project.run(&["answer", "q1", "retry"]), @"
    exit 0
    --- stdout
    q1 answered: retry
    --- stderr
    `signoff work` continues
    ");
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 0
    --- stdout
    Resuming task #1: Login
      [1/3] a person answers: retry
      [1/3] Asking code again...
      [1/3] Review: APPROVED
        Review Results:
          Spec Review: APPROVED (high confidence)
          Code Review: APPROVED (high confidence)

        Action: Proceed
    ✓ Task #1 completed (APPROVED after 1 cycle)
    ");
    assert_eq!(
        (calls(&project, "spec"), calls(&project, "code")),
        (1, 3),
        "a reviewer that answered does not run again"
    );
    insta::assert_snapshot!(task_outcome(&project), @r#""completed" "APPROVED" "approved" null"#);
}

/// One reviewer always fails.
fn failing_reviewer(reviewer: &str) -> TestProject {
    project(|script| {
        approving_agent(script.rule(ScriptRule::role("review").reviewer(reviewer).complain("no network\n").exit(9)))
    })
}

/// A reviewer that never approves.
fn never_approving_reviewer() -> TestProject {
    project(|script| {
        script.rule(sees("spec", &clean("spec"))).rule(sees("code", &issue("code", 1, "critical", "Still wrong")))
    })
}

#[test]
fn an_invalid_answer_names_the_choices() {
    let project = failing_reviewer("code");
    insta::assert_snapshot!(project.run(&["answer", "1", "retry"]), @"
    exit 2
    --- stderr
    error: there is no open question 1
    hint: `signoff status` shows what each task waits for
    ");
    project.run(&["run", "plan.md"]);
    insta::assert_snapshot!(project.run(&["answer", "1", "maybe"]), @"
    exit 2
    --- stderr
    error: `maybe` is not a choice of q1
    hint: choose one of retry, proceed, stop, restart
    ");
    insta::assert_snapshot!(project.run(&["answer", "q9", "retry"]), @"
    exit 2
    --- stderr
    error: there is no open question q9
    hint: open questions: q1
    ");
    insta::assert_snapshot!(project.run(&["answer", "7", "retry"]), @"
    exit 2
    --- stderr
    error: there is no open question 7
    hint: open questions: q1
    ");
    insta::assert_snapshot!(project.run(&["answer", "q1", "proceed", "--json"]).json(), @r#"{"version":1,"question":"q1","task_id":1,"choice":"proceed"}"#);
    insta::assert_snapshot!(project.run(&["answer", "q1", "proceed"]), @"
    exit 2
    --- stderr
    error: there is no open question q1
    hint: `signoff status` shows what each task waits for
    ");
}

#[test]
fn no_ask_is_a_flag_and_a_setting() {
    let project = failing_reviewer("code");
    insta::assert_snapshot!(from_the_review(&project.run(&["run", "plan.md", "--no-ask"])), @"
    exit 1
      [1/3] Review: INCONCLUSIVE - code: exit code 9
        Review Results:
          Spec Review: APPROVED (high confidence)
          Code Review: INCONCLUSIVE - no answer: exit code 9
    ✗ Task #1 failed: a question was open with --no-ask (no_one_to_ask)
        Next: signoff show 1, then signoff retry 1
    ");
    let project = failing_reviewer("code");
    project.configure("no_ask = true\n");
    assert_eq!(project.run(&["run", "plan.md"]).code, Some(1));
    insta::assert_snapshot!(task_outcome(&project), @r#""failed" "CHANGES_REQUESTED" "failed" "no_one_to_ask""#);
}

/// The second task waits for a file that is created only after the first task's question was answered and its
/// review was requested again: the answer is applied while the other task is running.
#[test]
fn a_running_program_applies_an_answer_at_once() {
    let project = TestProject::new(PROGRAM);
    let gate = project.state().with_file_name("go-on");
    project.set_agent(|script| {
        approving_agent(
            script
                .rule(
                    ScriptRule::role("implement").task("2").write("b.txt", "b\n").wait_for(&gate.display().to_string()),
                )
                .rule(ScriptRule::role("implement").write("a.txt", "a\n"))
                .rule(ScriptRule::role("review").task("1").reviewer("spec").call(3).say(&clean("spec")))
                .rule(ScriptRule::role("review").task("1").reviewer("spec").exit(9)),
        )
    });
    project.configure("preset = \"plan\"\njobs = 2\n");
    project.run(&["add", "First", "-a"]);
    project.run(&["add", "Second", "-a"]);
    let work = project.start(&["work"]);
    wait_until(|| project.run(&["status", "--json"]).json()["questions"][0]["id"] == "q1");
    insta::assert_snapshot!(project.run(&["answer", "q1", "retry"]), @"
    exit 0
    --- stdout
    q1 answered: retry
    ");
    wait_until(|| project.run(&["status"]).code == Some(0) && calls(&project, "spec") == 3);
    std::fs::write(&gate, "").unwrap();
    let worked = project.env.finish(work);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert_eq!(task_outcome(&project), r#""completed" "APPROVED" "approved" null"#);
}

/// Polls a condition. Every poll runs the program, so many polls take a while.
fn wait_until(is_so: impl Fn() -> bool) {
    assert!((0..2_000).any(|_| is_so()), "waited in vain");
}

#[test]
fn an_answer_that_ends_the_task_reports_the_result() {
    let project = never_approving_reviewer();
    project.run(&["run", "plan.md"]);
    insta::assert_snapshot!(project.run(&["answer", "q1", "stop"]), @"
    exit 0
    --- stdout
    q1 answered: stop
    Max review cycles (3) reached without approval
    ✗ Task #1 failed: the review cycles are used up (cycles_exhausted)
        Next: signoff show 1, then signoff retry 1
    ");
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 1
    --- stderr
    Task #1 is not approved (failed CHANGES_REQUESTED (3 cycles) cycles_exhausted): signoff show 1, then signoff retry 1
    Nothing to do: resolve the tasks that block the run first (`signoff` shows them)
    ");
    assert_eq!(project.run(&["run", "--resume"]).to_string(), project.run(&["work"]).to_string());
    let project = never_approving_reviewer();
    project.run(&["run", "plan.md"]);
    insta::assert_snapshot!(project.run(&["answer", "q1", "proceed"]), @"
    exit 0
    --- stdout
    q1 answered: proceed
    ! Task #1 completed with issues (MAX_CYCLES_REACHED after 3 cycles): the review cycles are used up (cycles_exhausted)
        Next: signoff show 1, then signoff improve 1 --review
    ");
    insta::assert_snapshot!(project.run(&["work"]), @r#"
    exit 3
    --- stderr
    Nothing to do: these tasks need a decision:
      task 1 is not approved (completed MAX_CYCLES_REACHED (3 cycles)): signoff show 1, then signoff improve 1 --review
    "#);
}
