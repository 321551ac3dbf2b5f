//! Ctrl-C once, twice, three times, and other termination signals.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr};

use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::processes::{self, wait_until};
use signoff_testkit::{ProgramOutput, TestProject};

use crate::PROGRAM;
use crate::actors::clean;

const HUP: i32 = 1;
const INT: i32 = 2;
const TERM: i32 = 15;

const REFUSED: &str = "- work.txt:1 [HIGH] lacks a check\n\n**Verdict: CHANGES_REQUESTED**\n";
const APPROVED: &str = "All is well.\n\n**Verdict: APPROVED**\n";

/// The rules after the first implementer.
fn agent(script: AgentScript) -> AgentScript {
    script
        .rule(ScriptRule::role("implement").write("work.txt", "work\n"))
        .rule(ScriptRule::role("review").cycle(1).say(REFUSED))
        .rule(ScriptRule::role("fix").append("work.txt", "fixed\n"))
        .rule(ScriptRule::role("review").say(APPROVED))
}

/// The first implementer waits for the test.
fn waits() -> ScriptRule {
    let first = ScriptRule::role("implement").call(1).task("1").write("work.txt", "work\n");
    first.write("../../../../begun", "").wait_for("../../../../go")
}

struct Started {
    project: TestProject,
    program: Child,
    /// The unread rest of the standard error stream.
    errors: Option<BufReader<ChildStderr>>,
}

impl Started {
    /// Two tasks, one at a time; the agent of the first one is running.
    fn with(rule: ScriptRule) -> Self {
        let project = TestProject::with_agent(PROGRAM, |script| agent(script.rule(rule)));
        project.configure("[limits]\ngrace = \"10m\"\n");
        for title in ["One", "Two"] {
            project.run(&["add", title, "-a"]);
        }
        let program = project.env.start_group(&["work", "-j", "1"]);
        wait_until("the agent is at work", || project.env.root().join("begun").exists());
        Self { project, program, errors: None }
    }

    /// A run of one approved task whose landing is being checked.
    fn landing(command: &[&str]) -> Self {
        let project = TestProject::with_agent(PROGRAM, |script| {
            script
                .rule(ScriptRule::role("implement").write("work.txt", "work\n").say("Done.\n"))
                .rule(ScriptRule::role("review").reviewer("spec").say(&clean("spec")))
                .rule(ScriptRule::role("review").reviewer("code").say(&clean("code")))
        });
        let waits = ": > ../../../../begun; until test -e ../../../../go; do sleep 0.01; done";
        let check = format!("case $PWD in */landing) {waits};; esac");
        project.configure(&format!("[limits]\ngrace = \"10m\"\n[checks]\ntest = \"{check}\"\n"));
        project.env.write("plan.md", "# Plan\n\n### Task 1: One\n\nDo it.\n");
        project.commit("Plan");
        if command[0] != "run" {
            let output = project.run(&["run", "plan.md"]);
            assert_eq!(output.code, Some(0), "{output}");
        }
        let program = project.env.start_group(command);
        wait_until("the landing is checked", || project.env.root().join("begun").exists());
        Self { project, program, errors: None }
    }

    /// Sends a signal as a terminal does: to the process group of the program.
    fn send(&self, signal: i32) {
        processes::signal_group(self.program.id(), signal);
    }

    /// Presses Ctrl-C and waits until the program has acknowledged it.
    fn interrupt(&mut self) {
        self.send(INT);
        let mut line = String::new();
        let mut errors = BufReader::new(self.program.stderr.take().unwrap());
        errors.read_line(&mut line).unwrap();
        self.errors = Some(errors);
        assert_eq!(line, "waiting for the running agents; press Ctrl-C again to stop them\n");
    }

    fn end(self) -> (TestProject, ProgramOutput) {
        let mut output = self.project.env.finish(self.program);
        if let Some(mut errors) = self.errors {
            errors.read_to_string(&mut output.stderr).unwrap();
        }
        wait_until("nothing of ours runs", || processes::with_root(self.project.env.root()).is_empty());
        (self.project, output)
    }
}

/// The next `work` completes the rest.
fn finish_work(project: &TestProject) -> String {
    let output = project.run(&["work", "-j", "1"]);
    assert_eq!(output.code, Some(0), "{output}");
    format!("{}---\n{}", project.calls().summary(), project.run(&["status"]).stdout)
}

#[test]
fn one_ctrl_c_lets_the_agent_finish_and_starts_no_other() {
    let mut started = Started::with(waits());
    started.interrupt();
    fs::write(started.project.env.root().join("go"), "").unwrap();
    let (project, output) = started.end();
    insta::assert_snapshot!(output, @"
    exit 130
    --- stdout
    Running task #1: One
      [1/3] Implementing...
      [1/3] Implementation complete
    --- stderr
    Interrupted: `signoff work` continues
    ");
    insta::assert_snapshot!(project.calls().summary(), @"implement task 1 cycle 0: exit 0");
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"
    → 1. implement One    in_progress (cycle 1/3)
    · 2. implement Two    pending
    ");
    insta::assert_snapshot!(project.run(&[]).stdout, @"
    Interrupted:
      → 1. One: in_progress (cycle 1/3)
          signoff work 1

    1 pending, 1 in_progress
      signoff work    works what is pending
    ");
    assert!(project.run(&["show", "1"]).stdout.ends_with("Next: signoff work 1\n"));
    insta::assert_snapshot!(finish_work(&project), @"
    implement task 1 cycle 0: exit 0
    review general task 1 cycle 1: exit 0
    fix task 1 cycle 1: exit 0
    review general task 1 cycle 2: exit 0
    implement task 2 cycle 0: exit 0
    review general task 2 cycle 1: exit 0
    fix task 2 cycle 1: exit 0
    review general task 2 cycle 2: exit 0
    ---
      ✓ 1. implement One    completed  APPROVED (2 cycles)
      ✓ 2. implement Two    completed  APPROVED (2 cycles)
    ");
}

#[test]
fn two_ctrl_c_stop_the_agent() {
    let mut started = Started::with(waits());
    started.interrupt();
    started.send(INT);
    let (project, output) = started.end();
    insta::assert_snapshot!(output, @"
    exit 130
    --- stdout
    Running task #1: One
      [1/3] Implementing...
      [1/3] An attempt was interrupted
    --- stderr
    Interrupted: `signoff work` continues
    ");
    insta::assert_snapshot!(finish_work(&project), @"
    implement task 1 cycle 0: did not end
    implement task 1 cycle 0: exit 0
    review general task 1 cycle 1: exit 0
    fix task 1 cycle 1: exit 0
    review general task 1 cycle 2: exit 0
    implement task 2 cycle 0: exit 0
    review general task 2 cycle 1: exit 0
    fix task 2 cycle 1: exit 0
    review general task 2 cycle 2: exit 0
    ---
      ✓ 1. implement One    completed  APPROVED (2 cycles)
      ✓ 2. implement Two    completed  APPROVED (2 cycles)
    ");
}

#[test]
fn three_ctrl_c_do_not_wait_for_an_agent_that_does_not_end() {
    let deaf = "trap ': > ../../../../asked' TERM; : > ../../../../begun; while :; do sleep 1; done";
    let mut started = Started::with(ScriptRule::role("implement").ignore_term().shell(deaf));
    started.interrupt();
    started.send(INT);
    let asked_file = started.project.env.root().join("asked");
    wait_until("the agent was asked to end", || asked_file.exists());
    started.send(INT);
    let (project, output) = started.end();
    assert_eq!(output.code, Some(130), "{output}");
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"
    → 1. implement One    in_progress (implement)
    · 2. implement Two    pending
    ");
}

#[test]
fn a_termination_signal_stops_the_agent() {
    for signal in [TERM, HUP] {
        let started = Started::with(waits());
        started.send(signal);
        let (project, output) = started.end();
        assert_eq!(output.code, Some(130), "{signal}: {output}");
        assert!(project.calls().all().iter().all(|call| call.end.is_none()), "{signal}");
        assert_eq!(finish_work(&project).matches("did not end").count(), 1, "{signal}");
    }
}

#[test]
fn one_ctrl_c_is_enough_if_no_agent_runs() {
    let project = TestProject::with_agent(PROGRAM, agent);
    project.run(&["add", "One", "-a"]);
    let program = project.env.start_group(&["work", "--watch"]);
    let started = Started { project, program, errors: None };
    let project = &started.project;
    wait_until("the task is done", || project.run(&["status"]).stdout.contains("APPROVED"));
    started.send(INT);
    let (_, output) = started.end();
    insta::assert_snapshot!(output, @"
    exit 130
    --- stdout
    Running task #1: One
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - lacks a check
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 2 cycles)
    --- stderr
    waiting for the running agents; press Ctrl-C again to stop them
    Interrupted: nothing is left to do
    ");
}

#[test]
fn reviewers_that_have_answered_are_not_called_again() {
    let waits = ScriptRule::role("review")
        .reviewer("code")
        .call(1)
        .write("../../../../begun", "")
        .wait_for("../../../../go")
        .say(APPROVED);
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write("work.txt", "work\n"))
            .rule(waits)
            .rule(ScriptRule::role("review").say(APPROVED))
    });
    project.configure(
        "[reviewers.spec]\nkind = \"spec\"\ncontract = \"markdown\"\n[reviewers.code]\nkind = \"code\"\ncontract = \"markdown\"\n[gate]\nreviewers = [\"spec\", \"code\"]\n",
    );
    project.run(&["add", "One", "-a"]);
    let program = project.env.start_group(&["work"]);
    let mut started = Started { project, program, errors: None };
    let root = started.project.env.root().to_owned();
    // When its answer is stored, the agent process has exited.
    let kept = |name: &String| name.ends_with(".spec.txt");
    let answered = |project: &TestProject| project.list(".signoff/reviews").iter().any(kept);
    wait_until("one has answered", || root.join("begun").exists() && answered(&started.project));
    started.interrupt();
    started.send(INT);
    let (project, _) = started.end();
    assert_eq!(project.run(&["work"]).code, Some(0));
    let story = project.calls().summary();
    let mut lines: Vec<&str> = story.lines().collect();
    lines.sort_unstable();
    insta::assert_snapshot!(lines.join("\n"), @"
    implement task 1 cycle 0: exit 0
    review code task 1 cycle 1: did not end
    review code task 1 cycle 1: exit 0
    review spec task 1 cycle 1: exit 0
    ");
}

#[test]
fn an_interrupted_plan_prints_how_to_continue() {
    let project = TestProject::with_agent(PROGRAM, |script| agent(script.rule(waits())));
    project.env.write("plan.md", "# Plan\n\n### Task 1: One\n\nDo it.\n\n### Task 2: Two\n\nDo more.\n");
    let program = project.env.start_group(&["run", "plan.md"]);
    wait_until("the agent is at work", || project.env.root().join("begun").exists());
    let started = Started { project, program, errors: None };
    started.send(TERM);
    let (project, output) = started.end();
    insta::assert_snapshot!(output, @"
    exit 130
    --- stdout
    Running task #1: One
      [1/3] Implementing...
      [1/3] An attempt was interrupted
    --- stderr
    Interrupted: `signoff run --resume` continues
    ");
    insta::assert_snapshot!(project.run(&[]).stdout, @"
    Interrupted:
      → 1. One: in_progress (implement)
          signoff run --resume

    1 pending, 1 in_progress
    ");
}

#[test]
fn two_ctrl_c_stop_the_landing_of_a_run_and_it_lands_after_resuming() {
    let mut started = Started::landing(&["run", "plan.md", "--land"]);
    let before = started.project.git("rev-parse main");
    started.interrupt();
    started.send(INT);
    let (project, output) = started.end();
    insta::assert_snapshot!(output, @"
    exit 130
    --- stdout
    Running task #1: One
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: APPROVED
        Review Results:
          Spec Review: APPROVED (high confidence)
          Code Review: APPROVED (high confidence)
          Checks Review: APPROVED (high confidence)

        Action: Proceed
    ✓ Task #1 completed (APPROVED after 1 cycle)
    Landing on the default branch
    --- stderr
    Interrupted: `signoff run --resume` continues
    ");
    assert_eq!(project.git("rev-parse main"), before);
    fs::write(project.env.root().join("go"), "").unwrap();
    let output = project.run(&["run", "--resume"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(project.git("log -1 --format=%s main"), "Merge run 1\n");
}

#[test]
fn one_ctrl_c_lets_the_landing_of_a_run_finish() {
    let mut started = Started::landing(&["run", "plan.md", "--land"]);
    started.interrupt();
    fs::write(started.project.env.root().join("go"), "").unwrap();
    let (project, output) = started.end();
    assert_eq!(output.code, Some(130), "{output}");
    assert_eq!(project.git("log -1 --format=%s main"), "Merge run 1\n");
}

#[test]
fn an_interrupted_land_command_ends_at_once_and_leaves_nothing_running() {
    for command in [&["land"][..], &["merge", "1"]] {
        let started = Started::landing(command);
        let before = started.project.git("rev-parse main");
        started.send(INT);
        let (project, output) = started.end();
        assert_eq!(output.signal, Some(INT), "{output}");
        assert_eq!(project.git("rev-parse main"), before);
        fs::write(project.env.root().join("go"), "").unwrap();
        let output = project.run(command);
        assert_eq!(output.code, Some(0), "{output}");
        assert_ne!(project.git("rev-parse main"), before);
    }
}
