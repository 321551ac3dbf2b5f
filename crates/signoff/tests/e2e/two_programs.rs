//! Two programs on one repository, and commands that run while one of them works.

use std::collections::BTreeSet;
use std::fs;
use std::process::Child;

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::processes::wait_until;

use crate::PROGRAM;

const APPROVED: &str = "All is well.\n\n**Verdict: APPROVED**\n";
const REFUSED: &str = "- work.txt:1 [HIGH] lacks a check\n\n**Verdict: CHANGES_REQUESTED**\n";

/// The implementer of each task waits for the test.
fn waits() -> ScriptRule {
    let begins = ScriptRule::role("implement").write("work.txt", "work\n").write("../../../../begun-{task}", "");
    begins.wait_for("../../../../go-{task}")
}

fn agent(script: AgentScript) -> AgentScript {
    script.rule(waits()).rule(ScriptRule::role("review").say(APPROVED))
}

fn begun(project: &TestProject, task: u64) -> bool {
    project.env.root().join(format!("begun-{task}")).exists()
}

fn release_agent(project: &TestProject, task: u64) {
    fs::write(project.env.root().join(format!("go-{task}")), "").unwrap();
}

fn queue(project: &TestProject, tasks: u64) {
    for number in 1..=tasks {
        project.run(&["add", &format!("Part {number}"), "-a"]);
    }
}

/// One task whose implementer is running.
fn at_work(script: impl FnOnce(AgentScript) -> AgentScript) -> (TestProject, Child) {
    let project = TestProject::with_agent(PROGRAM, script);
    queue(&project, 1);
    let program = project.start(&["work"]);
    wait_until("the agent is at work", || begun(&project, 1));
    (project, program)
}

#[test]
fn two_share_the_queue_and_no_task_is_worked_twice() {
    let project = TestProject::with_agent(PROGRAM, agent);
    queue(&project, 6);
    let programs = [project.start(&["work", "-j", "1"]), project.start(&["work", "-j", "1"])];
    // Both are running at the same time.
    let at_once = || (1..=6).filter(|&task| begun(&project, task)).count();
    wait_until("both have a task", || at_once() == 2);
    (1..=6).for_each(|task| release_agent(&project, task));
    for program in programs {
        let output = project.env.finish(program);
        assert_eq!(output.code, Some(0), "{output}");
    }
    let calls = project.calls();
    let worked: Vec<_> = calls.with_role("implement").map(|call| call.start.task.clone()).collect();
    assert_eq!((worked.len(), worked.iter().collect::<BTreeSet<_>>().len()), (6, 6), "{}", calls.summary());
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"
    ✓ 1. implement Part 1    completed  APPROVED (1 cycle)
    ✓ 2. implement Part 2    completed  APPROVED (1 cycle)
    ✓ 3. implement Part 3    completed  APPROVED (1 cycle)
    ✓ 4. implement Part 4    completed  APPROVED (1 cycle)
    ✓ 5. implement Part 5    completed  APPROVED (1 cycle)
    ✓ 6. implement Part 6    completed  APPROVED (1 cycle)
    ");
    assert_eq!(project.run(&["doctor"]).code, Some(0));
}

#[test]
fn many_concurrent_programs_lose_nothing() {
    let project = TestProject::with_agent(PROGRAM, agent);
    (1..=12).for_each(|task| release_agent(&project, task));
    queue(&project, 8);
    let programs: Vec<_> = (0..4).map(|_| project.start(&["work", "-j", "2"])).collect();
    let added: Vec<_> = (0..4).map(|number| project.start(&["add", &format!("Later {number}")])).collect();
    for program in programs.into_iter().chain(added) {
        let output = project.env.finish(program);
        assert_eq!(output.code, Some(0), "{output}");
    }
    let output = project.run(&["work"]);
    assert_eq!(output.code, Some(0), "{output}");
    let status = project.run(&["status"]).stdout;
    assert_eq!(status.matches("completed").count(), 12, "{status}");
    assert_eq!(project.calls().with_role("implement").count(), 12);
    assert_eq!(project.run(&["doctor"]).code, Some(0));
}

#[test]
fn the_second_program_reports_that_another_is_running() {
    let (project, program) = at_work(agent);
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 3
    --- stderr
    Nothing to do here: another signoff process is running
    ");
    insta::assert_snapshot!(project.run(&["run", "--resume", "1"]), @"
    exit 1
    --- stderr
    error: run 1 is in use by another signoff process
    hint: wait for it to end, or stop it with Ctrl-C in its terminal
    ");
    release_agent(&project, 1);
    assert_eq!(project.env.finish(program).code, Some(0));
}

#[test]
fn status_while_a_program_runs() {
    let (project, program) = at_work(agent);
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"  → 1. implement Part 1    in_progress (implement)");
    assert_eq!(project.run(&["show", "1"]).code, Some(0));
    assert_eq!(project.run(&["doctor"]).code, Some(0));
    release_agent(&project, 1);
    assert_eq!(project.env.finish(program).code, Some(0));
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"  ✓ 1. implement Part 1    completed  APPROVED (1 cycle)");
}

#[test]
fn a_task_is_cancelled_while_it_runs() {
    let (project, program) = at_work(agent);
    insta::assert_snapshot!(project.run(&["cancel", "1"]), @"
    exit 0
    --- stdout
    Task #1 cancelled
    ");
    insta::assert_snapshot!(project.env.finish(program), @"
    exit 0
    --- stdout
    Running task #1: Part 1
      [1/3] Implementing...
    - Task #1 cancelled
    ");
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"  - 1. implement Part 1    cancelled");
    insta::assert_snapshot!(project.calls().summary(), @"implement task 1 cycle 0: did not end");
}

#[test]
fn a_verdict_is_not_set_while_files_are_being_changed() {
    let (project, program) = at_work(agent);
    let edit = ["edit", "1", "--verdict", "APPROVED"];
    insta::assert_snapshot!(project.run(&edit), @"
    exit 2
    --- stderr
    error: an agent is changing the files of task 1
    hint: wait for it (`signoff logs 1 -f`), or cancel it with `signoff cancel 1`
    ");
    release_agent(&project, 1);
    insta::assert_snapshot!(project.env.finish(program), @"
    exit 0
    --- stdout
    Running task #1: Part 1
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 1 cycle)
    ");
    // The agent's work is on the branch.
    insta::assert_snapshot!(project.git("show --format= --name-only signoff/task-1-part-1"), @"work.txt");
}

#[test]
fn a_verdict_is_not_set_after_a_writer_was_killed_with_its_program() {
    let (project, mut program) = at_work(agent);
    program.kill().unwrap();
    program.wait().unwrap();
    insta::assert_snapshot!(project.run(&["edit", "1", "--verdict", "APPROVED"]), @"
    exit 2
    --- stderr
    error: an agent is changing the files of task 1
    hint: `signoff work 1` continues it; `signoff cancel 1` cancels it
    ");
    release_agent(&project, 1);
    assert_eq!(project.run(&["work"]).code, Some(0));
}

#[test]
fn a_verdict_is_set_while_a_review_runs() {
    let (project, program) = at_work(|script| {
        script.rule(waits()).rule(ScriptRule::role("review").wait_for("../../../../go-review").say(APPROVED))
    });
    release_agent(&project, 1);
    wait_until("it is reviewed", || project.calls().with_role("review").count() == 1);
    let reason = ["edit", "1", "--verdict", "APPROVED", "--reason", "seen"];
    insta::assert_snapshot!(project.env.run_with(&reason, &[("SIGNOFF_USER", "ann")]), @"
    exit 0
    --- stdout
    Task #1 is APPROVED by ann
    ");
    insta::assert_snapshot!(project.env.finish(program), @"
    exit 0
    --- stdout
    Running task #1: Part 1
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Verdict set to APPROVED by ann - seen
    ✓ Task #1 completed (APPROVED by ann, not by a review)
    ");
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"  ✓ 1. implement Part 1    completed  APPROVED (by a person)");
}

#[test]
fn a_question_is_answered_while_others_run() {
    let script = |script: AgentScript| {
        script
            .rule(ScriptRule::role("implement").task("1").write("work.txt", "work\n"))
            .rule(waits())
            .rule(ScriptRule::role("review").task("1").cycle(1).say(REFUSED))
            .rule(ScriptRule::role("fix").append("work.txt", "fixed\n"))
            .rule(ScriptRule::role("review").say(APPROVED))
    };
    let project = TestProject::with_agent(PROGRAM, script);
    project.configure("[gate]\nmax_cycles = 1\non_exhausted = \"ask\"\n");
    queue(&project, 2);
    let program = project.start(&["work", "-j", "2"]);
    let has_question =
        || project.run(&["status", "--json"]).json()["questions"].as_array().is_some_and(|all| all.len() == 1);
    wait_until("the question is asked and the other one is at work", || begun(&project, 2) && has_question());
    let question = project.run(&["status", "--json"]).json()["questions"][0].clone();
    insta::assert_snapshot!(question["choices"], @r#"["continue","proceed","stop","restart"]"#);
    insta::assert_snapshot!(project.run(&["answer", "1", "continue"]), @"
    exit 0
    --- stdout
    q1 answered: continue
    ");
    wait_until("the answer is taken in", || project.calls().with_role("fix").count() == 1);
    release_agent(&project, 2);
    assert_eq!(project.env.finish(program).code, Some(0));
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"
    ✓ 1. implement Part 1    completed  APPROVED (2 cycles)
    ✓ 2. implement Part 2    completed  APPROVED (1 cycle)
    ");
}

#[test]
fn the_running_program_refuses_an_invalid_command() {
    let (project, program) = at_work(agent);
    insta::assert_snapshot!(project.run(&["retry", "1"]), @"
    exit 2
    --- stderr
    error: it has not ended yet: cancel it first, or wait
    hint: `signoff show ID` shows the state of the task
    ");
    release_agent(&project, 1);
    assert_eq!(project.env.finish(program).code, Some(0));
}

#[test]
fn an_added_task_is_picked_up_by_a_watching_program() {
    let project = TestProject::with_agent(PROGRAM, agent);
    let mut program = project.start(&["work", "--watch"]);
    release_agent(&project, 1);
    queue(&project, 1);
    wait_until("the task is done", || project.run(&["status"]).stdout.contains("APPROVED"));
    release_agent(&project, 2);
    project.run(&["add", "Second"]);
    wait_until("the second is done", || project.run(&["status"]).stdout.contains("not reviewed"));
    program.kill().unwrap();
    program.wait().unwrap();
}
