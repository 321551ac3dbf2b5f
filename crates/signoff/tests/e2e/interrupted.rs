//! Ctrl-C once, twice, three times; and being told to end in other ways.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr};

use signoff_testkit::processes::{self, until};
use signoff_testkit::script::{Rule, Script};
use signoff_testkit::{Output, Project};

use crate::PROGRAM;
use crate::actors::clean;

const HUP: i32 = 1;
const INT: i32 = 2;
const TERM: i32 = 15;

const REFUSED: &str = "- work.txt:1 [HIGH] lacks a check\n\n**Verdict: CHANGES_REQUESTED**\n";
const APPROVED: &str = "All is well.\n\n**Verdict: APPROVED**\n";

/// What comes after the first implementer, whatever that one does.
fn agent(script: Script) -> Script {
    script
        .rule(Rule::role("implement").write("work.txt", "work\n"))
        .rule(Rule::role("review").cycle(1).say(REFUSED))
        .rule(Rule::role("fix").append("work.txt", "fixed\n"))
        .rule(Rule::role("review").say(APPROVED))
}

/// The first implementer waits for the test.
fn waits() -> Rule {
    let first = Rule::role("implement").call(1).task("1").write("work.txt", "work\n");
    first.write("../../../../begun", "").wait_for("../../../../go")
}

struct Started {
    project: Project,
    program: Child,
    /// What is left of the errors once somebody listened to them.
    errors: Option<BufReader<ChildStderr>>,
}

impl Started {
    /// Two tasks, one at a time; the agent of the first one is at work.
    fn with(rule: Rule) -> Self {
        let project = Project::with_agent(PROGRAM, |script| agent(script.rule(rule)));
        project.configure("[limits]\ngrace = \"10m\"\n");
        for title in ["One", "Two"] {
            project.run(&["add", title, "-a"]);
        }
        let program = project.env.start_group(&["work", "-j", "1"]);
        until("the agent is at work", || project.env.root().join("begun").exists());
        Self { project, program, errors: None }
    }

    /// A run of one task, all approved, whose landing is being checked.
    fn landing(command: &[&str]) -> Self {
        let project = Project::with_agent(PROGRAM, |script| {
            script
                .rule(Rule::role("implement").write("work.txt", "work\n").say("Done.\n"))
                .rule(Rule::role("review").reviewer("spec").say(&clean("spec")))
                .rule(Rule::role("review").reviewer("code").say(&clean("code")))
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
        until("the landing is checked", || project.env.root().join("begun").exists());
        Self { project, program, errors: None }
    }

    /// Sends a signal as a terminal does: to all that stayed with the program.
    fn send(&self, signal: i32) {
        processes::signal_group(self.program.id(), signal);
    }

    /// Presses Ctrl-C, and waits until it was heard.
    fn interrupt(&mut self) {
        self.send(INT);
        let mut heard = String::new();
        let mut errors = BufReader::new(self.program.stderr.take().unwrap());
        errors.read_line(&mut heard).unwrap();
        self.errors = Some(errors);
        assert_eq!(heard, "Finishing what is at work; press Ctrl-C again to stop the agents now.\n");
    }

    fn end(self) -> (Project, Output) {
        let mut output = self.project.env.finish(self.program);
        if let Some(mut errors) = self.errors {
            errors.read_to_string(&mut output.stderr).unwrap();
        }
        until("nothing of ours runs", || processes::of(self.project.env.root()).is_empty());
        (self.project, output)
    }
}

/// The next `work` does what is left.
fn goes_on(project: &Project) -> String {
    let output = project.run(&["work", "-j", "1"]);
    assert_eq!(output.code, Some(0), "{output}");
    format!("{}---\n{}", project.calls().story(), project.run(&["status"]).stdout)
}

#[test]
fn once_lets_the_agent_finish_and_starts_no_other() {
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
    Interrupted: `signoff work` goes on where it was
    ");
    insta::assert_snapshot!(project.calls().story(), @"implement task 1 cycle 0: exit 0");
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
    insta::assert_snapshot!(goes_on(&project), @"
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
fn twice_stops_the_agent() {
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
    Interrupted: `signoff work` goes on where it was
    ");
    insta::assert_snapshot!(goes_on(&project), @"
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
fn three_times_does_not_wait_for_an_agent_that_will_not_end() {
    let deaf = "trap ': > ../../../../asked' TERM; : > ../../../../begun; while :; do sleep 1; done";
    let mut started = Started::with(Rule::role("implement").ignore_term().shell(deaf));
    started.interrupt();
    started.send(INT);
    let asked = started.project.env.root().join("asked");
    until("the agent was asked to end", || asked.exists());
    started.send(INT);
    let (project, output) = started.end();
    assert_eq!(output.code, Some(130), "{output}");
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"
    → 1. implement One    in_progress (implement)
    · 2. implement Two    pending
    ");
}

#[test]
fn being_told_to_end_stops_the_agent() {
    for signal in [TERM, HUP] {
        let started = Started::with(waits());
        started.send(signal);
        let (project, output) = started.end();
        assert_eq!(output.code, Some(130), "{signal}: {output}");
        assert!(project.calls().all().iter().all(|call| call.end.is_none()), "{signal}");
        assert_eq!(goes_on(&project).matches("did not end").count(), 1, "{signal}");
    }
}

#[test]
fn once_is_enough_where_nobody_works() {
    let project = Project::with_agent(PROGRAM, agent);
    project.run(&["add", "One", "-a"]);
    let program = project.env.start_group(&["work", "--watch"]);
    let started = Started { project, program, errors: None };
    let project = &started.project;
    until("the task is done", || project.run(&["status"]).stdout.contains("APPROVED"));
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
    Finishing what is at work; press Ctrl-C again to stop the agents now.
    Interrupted: nothing is left to do
    ");
}

#[test]
fn reviewers_that_had_answered_are_not_asked_again() {
    let waits = Rule::role("review")
        .reviewer("code")
        .call(1)
        .write("../../../../begun", "")
        .wait_for("../../../../go")
        .say(APPROVED);
    let project = Project::with_agent(PROGRAM, |script| {
        script
            .rule(Rule::role("implement").write("work.txt", "work\n"))
            .rule(waits)
            .rule(Rule::role("review").say(APPROVED))
    });
    project.configure(
        "[reviewers.spec]\nkind = \"spec\"\ncontract = \"markdown\"\n[reviewers.code]\nkind = \"code\"\ncontract = \"markdown\"\n[gate]\nreviewers = [\"spec\", \"code\"]\n",
    );
    project.run(&["add", "One", "-a"]);
    let program = project.env.start_group(&["work"]);
    let mut started = Started { project, program, errors: None };
    let root = started.project.env.root().to_owned();
    // The agent is gone, not only about to go, when its answer is kept.
    let kept = |name: &String| name.ends_with(".spec.txt");
    let answered = |project: &Project| project.list(".signoff/reviews").iter().any(kept);
    until("one has answered", || root.join("begun").exists() && answered(&started.project));
    started.interrupt();
    started.send(INT);
    let (project, _) = started.end();
    assert_eq!(project.run(&["work"]).code, Some(0));
    let story = project.calls().story();
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
fn a_plan_says_how_it_goes_on() {
    let project = Project::with_agent(PROGRAM, |script| agent(script.rule(waits())));
    project.env.write("plan.md", "# Plan\n\n### Task 1: One\n\nDo it.\n\n### Task 2: Two\n\nDo more.\n");
    let program = project.env.start_group(&["run", "plan.md"]);
    until("the agent is at work", || project.env.root().join("begun").exists());
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
    Interrupted: `signoff run --resume` goes on where it was
    ");
    insta::assert_snapshot!(project.run(&[]).stdout, @"
    Interrupted:
      → 1. One: in_progress (implement)
          signoff run --resume

    1 pending, 1 in_progress
    ");
}

#[test]
fn twice_stops_the_landing_of_a_run_and_it_lands_when_it_goes_on() {
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
    Interrupted: `signoff run --resume` goes on where it was
    ");
    assert_eq!(project.git("rev-parse main"), before);
    fs::write(project.env.root().join("go"), "").unwrap();
    let output = project.run(&["run", "--resume"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(project.git("log -1 --format=%s main"), "Merge run 1\n");
}

#[test]
fn once_lets_the_landing_of_a_run_finish() {
    let mut started = Started::landing(&["run", "plan.md", "--land"]);
    started.interrupt();
    fs::write(started.project.env.root().join("go"), "").unwrap();
    let (project, output) = started.end();
    assert_eq!(output.code, Some(130), "{output}");
    assert_eq!(project.git("log -1 --format=%s main"), "Merge run 1\n");
}

#[test]
fn a_person_s_own_landing_ends_at_once_and_leaves_nothing_running() {
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
