//! The terminal UI on a real terminal: keys, watching, replaying, and restoring the terminal.

use std::fs;

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::processes::signal_group;
use signoff_testkit::terminal::{TerminalSize, TestTerminal, key};

use crate::PROGRAM;
use crate::actors::{APPROVED, changes};

const HUP: i32 = 1;
const INT: i32 = 2;
const TERM: i32 = 15;

const ASKED: &str = "Esc defers it";
const ASKS: &str = "[gate]\nmax_cycles = 1\non_exhausted = \"ask\"\n";

/// The first review finds something, the second nothing.
fn strict(script: AgentScript) -> AgentScript {
    script
        .rule(ScriptRule::role("implement").write("auth.txt", "login\n").say("Done.\n"))
        .rule(ScriptRule::role("fix").append("auth.txt", "fixed\n").say("Fixed.\n"))
        .rule(ScriptRule::role("review").cycle(1).say(&changes("missing input validation")))
        .rule(ScriptRule::role("review").say(APPROVED))
}

/// One task whose implementer waits until the test lets it continue.
fn waiting() -> (TestProject, impl Fn()) {
    let project = TestProject::with_agent(PROGRAM, strict);
    let gate = project.state().with_file_name("go-on");
    let waits = ScriptRule::role("implement").write("auth.txt", "login\n").say("Reading it.\n");
    project.set_agent(|script| strict(script.rule(waits.wait_for(&gate.display().to_string()))));
    project.run(&["add", "Log in", "-a"]);
    (project, move || fs::write(&gate, "").expect("a file"))
}

/// One completed task, and its output.
fn completed_task() -> (TestProject, String) {
    let project = TestProject::with_agent(PROGRAM, strict);
    project.run(&["add", "Log in", "-a"]);
    let output = project.run(&["work", "--plain"]);
    assert_eq!(output.code, Some(0), "{output}");
    (project, output.stdout)
}

/// One task with an unanswered question.
fn asking() -> TestProject {
    let project = TestProject::with_agent(PROGRAM, strict);
    project.configure(ASKS);
    project.run(&["add", "Log in", "-a"]);
    project.run(&["work", "--plain"]);
    project
}

/// A terminal that shows the question of another program's task.
fn open_question(project: &TestProject) -> TestTerminal {
    let terminal = project.env.terminal(&["watch"]);
    terminal.wait_for(ASKED);
    terminal
}

fn assert_screen_cleared(terminal: TestTerminal, code: i32) {
    let end = terminal.finish();
    assert_eq!((end.code, end.sane), (Some(code), true), "{end}");
    assert!(!end.screen.contains("Log in  "), "something of the screen is left:\n{end}");
}

#[test]
fn keys_open_panes_and_help_and_leaving_the_screen_continues_in_line_mode() {
    let (project, release_agent) = waiting();
    let terminal = project.env.terminal(&["work"]);
    terminal.wait_for("Reading it.");
    terminal.send("?");
    terminal.wait_for("this help");
    terminal.send(key::ESC);
    terminal.wait_until("no help", |screen| !screen.contains("this help"));
    terminal.send(key::ENTER);
    terminal.wait_for("Transcript");
    terminal.send("4");
    terminal.wait_for("Reading it.");
    terminal.send("5");
    terminal.wait_for("Implementing...");
    terminal.send(key::ESC);
    terminal.wait_until("the list", |screen| !screen.contains("Transcript"));
    terminal.send("q");
    terminal.wait_for("Leave the screen?");
    terminal.send("y");
    let screen = terminal.wait_until("lines", |screen| screen.contains("[1/3] Implementing..."));
    assert!(terminal.is_sane() && !screen.contains("Leave"), "{screen}");
    release_agent();
    let end = terminal.finish();
    assert_eq!((end.code, end.sane), (Some(0), true), "{end}");
    insta::assert_snapshot!(end, @"
    exit 0
    Running task #1: Log in
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - missing input validation
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 2 cycles)
    ");
}

#[test]
fn an_answer_while_watching_resumes_the_other_program() {
    let project = TestProject::with_agent(PROGRAM, strict);
    project.configure(ASKS);
    project.run(&["add", "Log in", "-a"]);
    let worker = project.env.start_group(&["work", "--watch"]);
    let terminal = open_question(&project);
    terminal.send("1");
    terminal.wait_for("› 1 continue");
    terminal.send(key::ENTER);
    terminal.wait_for("DONE");
    terminal.send("q");
    assert_screen_cleared(terminal, 0);
    signal_group(worker.id(), INT);
    let output = project.env.finish(worker);
    assert!(output.stdout.contains("Task #1 completed (APPROVED after 2 cycles)"), "{output}");
}

#[test]
fn findings_are_disputed_and_verdicts_edited_with_keys() {
    let project = asking();
    let terminal = open_question(&project);
    terminal.send(key::ESC);
    terminal.wait_until("no question", |screen| !screen.contains(ASKED));
    terminal.send(key::ENTER);
    terminal.send("2");
    terminal.wait_for("missing input validation");
    terminal.send("x");
    terminal.wait_for("Why is it wrong?");
    terminal.send("generated");
    terminal.wait_for("generated");
    terminal.send(key::ENTER);
    terminal.wait_for("is refuted by");
    terminal.send("e");
    terminal.wait_for("APPROVED");
    terminal.send("1");
    terminal.send(key::ENTER);
    terminal.send("seen");
    terminal.send(key::ENTER);
    terminal.wait_for("is APPROVED by");
    terminal.send("q");
    assert_screen_cleared(terminal, 0);
    let shown = project.run(&["show", "1", "--json"]).json();
    assert_eq!(shown["task"]["final_verdict"], "APPROVED", "{shown:#}");
    assert_eq!(shown["ledger"][0]["state"], "refuted", "{shown:#}");
}

#[test]
fn an_empty_queue_is_watched_until_a_task_is_added() {
    let project = TestProject::with_agent(PROGRAM, strict);
    let terminal = project.env.terminal(&["watch"]);
    terminal.wait_for("q leave");
    project.run(&["add", "Log in", "-a"]);
    terminal.wait_for("Log in");
    project.run(&["work"]);
    terminal.wait_for("DONE");
    terminal.send("q");
    assert_screen_cleared(terminal, 0);
}

#[test]
fn a_terminal_can_become_tiny_and_large_again() {
    let (project, release_agent) = waiting();
    let terminal = project.env.terminal(&["work"]);
    terminal.wait_for("Reading it.");
    terminal.resize(TerminalSize::new(20, 5));
    terminal.wait_until("a small screen", |screen| screen.contains("WORK") && !screen.contains("Reading it."));
    terminal.resize(TerminalSize::DEFAULT);
    terminal.wait_for("Reading it.");
    release_agent();
    let end = terminal.finish();
    assert_eq!((end.code, end.sane), (Some(0), true), "{end}");
}

#[test]
fn a_dumb_terminal_gets_line_output() {
    for kind in ["dumb", ""] {
        let (project, release_agent) = waiting();
        release_agent();
        let end = project.env.terminal_with(TerminalSize::DEFAULT, &["work"], &[("TERM", kind)]).finish();
        assert_eq!((end.code, end.sane), (Some(0), true), "{end}");
        assert!(end.screen.text().starts_with("Running task #1: Log in\n  [1/3] Implementing..."), "{end}");
    }
}

#[test]
fn without_colours_there_are_none() {
    let project = asking();
    for (variables, coloured) in [(&[][..], true), (&[("NO_COLOR", "1")][..], false)] {
        let terminal = project.env.terminal_with(TerminalSize::DEFAULT, &["watch"], variables);
        terminal.wait_for(ASKED);
        assert_eq!(terminal.has_colour(), coloured, "{}", terminal.screen());
        terminal.send(&format!("{}q", key::ESC));
        assert_screen_cleared(terminal, 0);
    }
}

#[test]
fn a_signal_restores_the_terminal() {
    let (project, _) = completed_task();
    for command in [&["watch"][..], &["replay", "1"]] {
        for signal in [HUP, TERM, INT] {
            let terminal = project.env.terminal(command);
            terminal.wait_for("q leave");
            terminal.signal(signal);
            assert_screen_cleared(terminal, 130);
        }
        let terminal = project.env.terminal(command);
        terminal.wait_for("q leave");
        terminal.send(key::CTRL_C);
        assert_screen_cleared(terminal, 130);
    }
}

#[test]
fn a_closed_window_ends_the_program_normally() {
    let (project, _) = completed_task();
    for command in [&["watch"][..], &["replay", "1"]] {
        let terminal = project.env.terminal(command);
        terminal.wait_for("q leave");
        assert_eq!(terminal.hang_up(), Some(0), "{command:?}");
    }
}

#[test]
fn a_stalled_terminal_does_not_prevent_the_end() {
    let (project, _) = waiting();
    for command in [&["work"][..], &["watch"], &["replay", "1"]] {
        let terminal = project.env.terminal(command);
        terminal.wait_for("Log in");
        terminal.stall();
        terminal.signal(TERM);
        assert_eq!(terminal.finish_stalled(), (Some(130), true), "{command:?}");
    }
}

#[test]
fn pasted_text_is_input_and_not_keys() {
    let project = asking();
    let terminal = open_question(&project);
    terminal.send(key::ESC);
    terminal.wait_until("no question", |screen| !screen.contains(ASKED));
    let pasted = "\x1b[200~wrong because\ncheck your facts\x1b[201~";
    terminal.send(pasted);
    terminal.send(key::ENTER);
    terminal.send("2");
    terminal.wait_for("missing input validation");
    terminal.send("x");
    terminal.wait_for("Why is it wrong?");
    terminal.send(pasted);
    terminal.wait_for("> wrong because check your facts_");
}

#[test]
fn a_panic_restores_the_terminal_and_is_readable() {
    let project = asking();
    for (place, code) in [("drawing", 1), ("watching", 101)] {
        let terminal = project.env.terminal_with(TerminalSize::DEFAULT, &["watch"], &[("SIGNOFF_TEST_PANIC", place)]);
        let end = terminal.finish();
        assert_eq!((end.code, end.sane), (Some(code), true), "{place}: {end}");
        assert!(end.screen.contains("panic requested by a test"), "{place}: {end}");
    }
}

#[test]
fn work_continues_in_line_mode_after_a_panic_of_the_screen() {
    let (project, release_agent) = waiting();
    let terminal = project.env.terminal_with(TerminalSize::DEFAULT, &["work"], &[("SIGNOFF_TEST_PANIC", "drawing")]);
    terminal.wait_for("[1/3] Implementing...");
    release_agent();
    let end = terminal.finish();
    assert_eq!((end.code, end.sane), (Some(0), true), "{end}");
    assert!(end.screen.contains("Task #1 completed (APPROVED after 2 cycles)"), "{end}");
}

#[test]
fn a_replay_prints_the_original_output() {
    let (project, printed) = completed_task();
    for run in ["1", "run-1"] {
        let output = project.run(&["replay", run, "--speed", "max"]);
        assert_eq!((output.code, output.stdout.as_str()), (Some(0), printed.as_str()), "{output}");
    }
    let watched = project.run(&["watch", "1"]);
    assert_eq!((watched.code, watched.stdout.as_str()), (Some(0), printed.as_str()), "{watched}");
    let events = project.run(&["replay", "1", "--speed", "max", "--json-events"]).stdout;
    assert!(events.lines().all(|line| line.starts_with("{\"version\":1,\"run_id\":1,\"seq\":")), "{events}");
}

/// Nothing is running, but the task needs a person.
#[test]
fn a_failed_task_of_a_finished_run_is_shown() {
    let project = TestProject::with_agent(PROGRAM, |script| script.rule(ScriptRule::role("implement").exit(3)));
    project.run(&["add", "Log in", "-a"]);
    project.run(&["work", "--plain"]);
    let terminal = project.env.terminal(&["watch"]);
    let screen = terminal.wait_for("1 needs you");
    assert!(screen.lines().any(|line| line.contains("STUCK") && line.contains("Log in")), "{screen}");
    terminal.send("q");
    assert_screen_cleared(terminal, 0);
}

/// Queued tasks count, too.
#[test]
fn work_shows_the_queue() {
    let (project, release_agent) = waiting();
    project.run(&["add", "Log out", "-a"]);
    project.run(&["add", "Sign up", "-a"]);
    let terminal = project.env.terminal(&["work"]);
    terminal.wait_until("all three", |screen| screen.contains("0/3 done") && screen.contains("Sign up"));
    release_agent();
    let end = terminal.finish();
    assert_eq!((end.code, end.sane), (Some(0), true), "{end}");
}

#[test]
fn a_replay_on_the_screen_stays_until_it_is_closed() {
    let (project, _) = completed_task();
    let terminal = project.env.terminal(&["replay", "1", "--speed", "max"]);
    terminal.wait_until("the end", |screen| screen.contains("DONE") && screen.contains("replay ended"));
    terminal.send(key::ENTER);
    terminal.wait_for("APPROVED");
    terminal.send(key::ESC);
    terminal.wait_for("q leave");
    terminal.send("q");
    assert_screen_cleared(terminal, 0);
}

#[test]
fn a_replay_can_be_paused_and_has_any_speed() {
    let (project, _) = completed_task();
    let terminal = project.env.terminal(&["replay", "1", "--speed", "0.1"]);
    terminal.wait_for("0.1×");
    terminal.send(" ");
    terminal.wait_for("paused");
    terminal.send("+");
    terminal.wait_for("0.2×");
    terminal.send(&"+".repeat(20));
    terminal.wait_for("max");
    terminal.send(" ");
    terminal.wait_for("replay ended");
    terminal.send("q");
    assert_screen_cleared(terminal, 0);
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let (project, _) = completed_task();
    let output = project.env.shell("{ signoff replay 1 --speed max --plain; echo $? >&2; } | head -n 1");
    insta::assert_snapshot!(output, @"
    exit 0
    --- stdout
    Running task #1: Log in
    --- stderr
    0
    ");
}

#[test]
fn an_unknown_run_cannot_be_replayed() {
    let project = TestProject::with_agent(PROGRAM, strict);
    insta::assert_snapshot!(project.run(&["replay", "1"]), @"
    exit 2
    --- stderr
    error: there is no run 1
    hint: there are no runs yet: `signoff work` runs the queued tasks
    ");
    project.run(&["add", "Log in", "-a"]);
    project.run(&["work"]);
    insta::assert_snapshot!(project.run(&["replay", "7"]), @"
    exit 2
    --- stderr
    error: there is no run 7
    hint: the only one is run 1
    ");
    insta::assert_snapshot!(project.run(&["replay", "x"]), @"
    exit 2
    --- stderr
    error: invalid value 'x' for '<RUN>': `x` is not a run number

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(project.run(&["replay", "1", "--speed", "0"]), @"
    exit 2
    --- stderr
    error: invalid value '0' for '--speed <N|max>': `0` is neither `max` nor a number from 0.1 to 10000

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(project.run(&["watch", "7"]), @"
    exit 2
    --- stderr
    error: there is no run 7
    hint: the only one is run 1
    ");
    insta::assert_snapshot!(project.run(&["watch", "--json"]), @"
    exit 2
    --- stderr
    error: --json is for commands that end with a result
    hint: --json-events prints every recorded event as a line of JSON
    ");
}
