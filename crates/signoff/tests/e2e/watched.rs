//! `signoff watch` on a real terminal: killed programs, replaced stores, and tasks that need a person.

use std::fs;

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::processes::signal_group;
use signoff_testkit::terminal::TestTerminal;

use crate::PROGRAM;
use crate::actors::{APPROVED, changes};

const KILL: i32 = 9;

fn approving_agent(script: AgentScript) -> AgentScript {
    script
        .rule(ScriptRule::role("implement").write("auth.txt", "login\n").say("Done.\n"))
        .rule(ScriptRule::role("review").say(APPROVED))
}

fn strict(script: AgentScript) -> AgentScript {
    script
        .rule(ScriptRule::role("implement").write("auth.txt", "login\n").say("Done.\n"))
        .rule(ScriptRule::role("fix").append("auth.txt", "fixed\n").say("Fixed.\n"))
        .rule(ScriptRule::role("review").say(&changes("missing input validation")))
}

fn quit(terminal: TestTerminal) {
    terminal.send("q");
    let end = terminal.finish();
    assert_eq!((end.code, end.sane), (Some(0), true), "{end}");
}

#[test]
fn a_killed_program_is_detected_and_its_successor_is_shown() {
    let project = TestProject::with_agent(PROGRAM, approving_agent);
    let gate = project.state().with_file_name("go-on");
    let waits = ScriptRule::role("implement").write("auth.txt", "login\n").say("Reading it.\n");
    project.set_agent(|script| approving_agent(script.rule(waits.wait_for(&gate.display().to_string()))));
    project.run(&["add", "Log in", "-a"]);
    let worker = project.env.start_group(&["work"]);
    let terminal = project.env.terminal(&["watch"]);
    terminal.wait_until("work", |screen| screen.contains("Reading it.") && screen.contains("1 at work"));
    signal_group(worker.id(), KILL);
    project.env.finish(worker);
    let is_cleared = |screen: &signoff_testkit::terminal::TerminalScreen| {
        screen.contains("interrupted: signoff work 1") && screen.contains("! 1 needs you")
    };
    let screen = terminal.wait_until("no agent at work", is_cleared);
    assert!(screen.contains("1 interrupted") && !screen.contains("at work"), "{screen}");
    // A new `watch` shows the same.
    let other = project.env.terminal(&["watch"]);
    other.wait_until("no agent at work", is_cleared);
    quit(other);
    fs::write(&gate, "").expect("a file");
    project.run(&["work"]);
    terminal.wait_until("the end", |screen| screen.contains("DONE") && screen.contains("no attention needed"));
    quit(terminal);
}

#[test]
fn a_task_settled_by_a_later_one_no_longer_needs_a_person() {
    let project = TestProject::with_agent(PROGRAM, strict);
    project.configure("[gate]\nmax_cycles = 1\n");
    project.run(&["add", "Log in", "-a"]);
    project.run(&["work", "--plain"]);
    let terminal = project.env.terminal(&["watch"]);
    let screen = terminal.wait_for("! 1 needs you");
    assert!(screen.contains("1 unsettled") && !screen.contains("stuck"), "{screen}");
    project.run(&["improve", "1", "--review"]);
    terminal.wait_for("#2 ");
    project.run(&["edit", "2", "--verdict", "APPROVED"]);
    terminal.wait_for("no attention needed");
    let alone = project.run(&[]);
    assert!(!alone.stdout.contains("Needs attention"), "{alone}");
    quit(terminal);
}

#[test]
fn a_replaced_store_is_read_from_its_beginning() {
    let project = TestProject::with_agent(PROGRAM, approving_agent);
    project.run(&["add", "Log in", "-a"]);
    let terminal = project.env.terminal(&["watch"]);
    terminal.wait_for("Log in");
    project.env.shell("rm -rf .signoff");
    terminal.wait_until("nothing", |screen| !screen.contains("Log in"));
    project.run(&["add", "Sign up", "-a"]);
    terminal.wait_for("Sign up");
    project.run(&["work"]);
    let screen = terminal.wait_for("DONE");
    assert!(screen.contains("1/1 done") && !screen.contains("Log in"), "{screen}");
    quit(terminal);
}

#[test]
fn a_closed_pipe_is_detected_without_further_output() {
    let project = TestProject::with_agent(PROGRAM, approving_agent);
    let output = project.env.shell("{ signoff watch --plain; echo $? >&2; } | true");
    assert_eq!(output.stderr.lines().last(), Some("0"), "{output}");
}

#[test]
fn a_specification_runs_on_the_screen() {
    let planned = |script: AgentScript| {
        let tasks = r#"{"tasks": [{"id": "login", "title": "Log in", "description": "Write it.", "depends_on": []}]}"#;
        let plan = script
            .rule(ScriptRule::role("enumerate").say(tasks))
            .rule(ScriptRule::role("plan").say(r#"{"groups": [["login"]]}"#));
        plan.rule(ScriptRule::role("review").say(APPROVED))
    };
    let project = TestProject::with_agent(PROGRAM, planned);
    let gate = project.state().with_file_name("go-on");
    let waits = ScriptRule::role("implement").write("auth.txt", "login\n").say("Done.\nTASK_COMPLETE\n");
    project.set_agent(|script| planned(script.rule(waits.wait_for(&gate.display().to_string()))));
    project.env.write("SPEC.md", "# Accounts\n\nPeople log in.\n");
    project.commit("Specify");
    let terminal = project.env.terminal(&["run", "SPEC.md"]);
    let shows = |screen: &signoff_testkit::terminal::TerminalScreen| {
        screen.contains("TASK_COMPLETE") && screen.contains("group 1/1") && screen.contains("Planning SPEC.md")
    };
    terminal.wait_until("the task at work", shows);
    fs::write(&gate, "").expect("a file");
    let end = terminal.finish();
    assert_eq!((end.code, end.sane), (Some(0), true), "{end}");
}

#[test]
fn iterate_runs_on_the_screen() {
    let team = |script: AgentScript| {
        script
            .rule(ScriptRule::role("brainstorm").say("# Design\n\nOne file.\n"))
            .rule(ScriptRule::role("plan").say("# Greeting\n\n### Task 1: Say hello\n\nWrite hello.txt.\n"))
            .rule(ScriptRule::role("implement").write("hello.txt", "hello\n").say("Done.\n"))
            .rule(ScriptRule::role("simplify").say("Nothing to do.\n"))
            .rule(ScriptRule::role("review").say("NO ISSUES\n"))
    };
    let project = TestProject::with_agent(PROGRAM, team);
    let gate = project.state().with_file_name("go-on");
    let waits = ScriptRule::role("implement").write("hello.txt", "hello\n").say("Reading it.\n");
    project.set_agent(|script| team(script.rule(waits.wait_for(&gate.display().to_string()))));
    let terminal = project.env.terminal(&["iterate", "Add a greeting"]);
    terminal.wait_until("the phase at work", |screen| {
        screen.contains("Reading it.") && screen.contains("#1 Add a greeting") && screen.contains("phase ")
    });
    fs::write(&gate, "").expect("a file");
    let end = terminal.finish();
    assert_eq!((end.code, end.sane), (Some(0), true), "{end}");
}
