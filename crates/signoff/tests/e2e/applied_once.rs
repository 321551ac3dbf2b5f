//! Each event is applied once per process, however many parts of the program show it or react to it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::serve::ServeProcess;
use signoff_testkit::terminal::{TerminalSize, TestTerminal, key};
use signoff_testkit::{ProgramOutput, TestProject};

use crate::PROGRAM;
use crate::actors::{APPROVED, FEATURE, changes};
use crate::groups::refused_run;
use crate::tables::query;

const TERM: i32 = 15;

/// Notifications are on, so that the process watches the run for them too.
const CONFIG: &str = "[gate]\nmax_cycles = 1\non_exhausted = \"ask\"\n\
                      [notify]\nquestion = [\"log\"]\ndone = [\"log\"]\n\
                      [notify.channels.log]\nkind = \"command\"\ncommand = [\"true\"]\n";

/// A task whose only review leads to a question.
fn project() -> TestProject {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write(FEATURE, "login\n").say("Done.\n"))
            .rule(ScriptRule::role("fix").append(FEATURE, "fixed\n").say("Fixed.\n"))
            .rule(ScriptRule::role("review").cycle(1).say(&changes("missing input validation")))
            .rule(ScriptRule::role("review").say(APPROVED))
    });
    project.configure(CONFIG);
    project.run(&["add", "Log in", "-a"]);
    project
}

/// Runs a command, and returns its output and the file with what its process applied.
fn run_counted(project: &TestProject, arguments: &[&str]) -> (ProgramOutput, PathBuf) {
    let count = count_file(project);
    let output = project.env.run_with(arguments, &[("SIGNOFF_TEST_APPLIED", &count.display().to_string())]);
    (output, count)
}

/// The file for the applied events.
fn count_file(project: &TestProject) -> PathBuf {
    project.env.work().join(".git/applied-events")
}

/// Fails unless the process that wrote this file applied each event of each run exactly once.
fn assert_applied_once(project: &TestProject, count_file: &Path) {
    let text = fs::read_to_string(count_file).expect("the applied events");
    let numbers = |line: &str| line.split(' ').map(|number| number.parse().expect("a number")).collect::<Vec<u64>>();
    let applied: BTreeSet<Vec<u64>> = text.lines().map(numbers).collect();
    let logged: BTreeSet<Vec<u64>> = logged(project).into_iter().map(|[run, seq]| vec![run, seq, 1]).collect();
    assert!(logged.len() > 10, "{} events", logged.len());
    let wrong: Vec<_> = applied.symmetric_difference(&logged).collect();
    assert!(wrong.is_empty(), "run, event and how often: {wrong:?}");
}

/// The events of all runs.
fn logged(project: &TestProject) -> Vec<[u64; 2]> {
    let database = project.env.work().join(".signoff/signoff.db");
    let connection = rusqlite::Connection::open(database).expect("the database");
    let mut statement = connection.prepare("SELECT run_id, seq FROM events WHERE run_id > 0").expect("a statement");
    let number = |row: &rusqlite::Row<'_>, column| row.get::<_, i64>(column).map(i64::unsigned_abs);
    let rows = statement.query_map([], |row| Ok([number(row, 0)?, number(row, 1)?])).expect("rows");
    rows.map(|row| row.expect("a row")).collect()
}

#[test]
fn a_run_applies_each_event_once() {
    let project = project();
    let (output, applied) = run_counted(&project, &["work"]);
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    assert_applied_once(&project, &applied);
}

#[test]
fn a_run_that_ends_without_a_verdict_applies_each_event_once() {
    let project = project();
    project.set_agent(|script| {
        script
            .rule(ScriptRule::role("implement").write(FEATURE, "login\n").say("Done.\n"))
            .rule(ScriptRule::role("review").say("Hard to tell.\n"))
    });
    let (output, applied) = run_counted(&project, &["work", "--no-ask"]);
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    assert_applied_once(&project, &applied);
}

#[test]
fn a_review_of_the_checkout_applies_each_event_once() {
    let project = project();
    project.env.write(FEATURE, "login\n");
    let (output, applied) = run_counted(&project, &["review"]);
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    assert_applied_once(&project, &applied);
}

/// A task that failed: no review has a verdict.
fn failed() -> TestProject {
    let project = project();
    project.set_agent(|script| {
        script
            .rule(ScriptRule::role("implement").write(FEATURE, "login\n").say("Done.\n"))
            .rule(ScriptRule::role("review").say("Hard to tell.\n"))
    });
    assert_eq!(project.run(&["work", "--no-ask"]).code, Some(3));
    project.set_agent(approving);
    project
}

/// An agent whose work is approved at once.
fn approving(script: AgentScript) -> AgentScript {
    script
        .rule(ScriptRule::role("implement").append(FEATURE, "login\n").say("Done.\n"))
        .rule(ScriptRule::role("review").say(APPROVED))
}

/// An approved task.
fn approved() -> TestProject {
    let project = project();
    project.set_agent(approving);
    assert_eq!(project.run(&["work"]).code, Some(0));
    project
}

#[test]
fn a_retry_applies_each_event_once() {
    let project = failed();
    let (output, applied) = run_counted(&project, &["retry", "1"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_applied_once(&project, &applied);
}

#[test]
fn a_resumed_run_applies_each_event_once() {
    let project = failed();
    assert_eq!(project.run(&["retry", "1", "--queue"]).code, Some(0));
    let (output, applied) = run_counted(&project, &["run", "--resume", "1"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_applied_once(&project, &applied);
}

#[test]
fn resumed_work_applies_each_event_once() {
    let project = failed();
    assert_eq!(project.run(&["retry", "1", "--queue"]).code, Some(0));
    let (output, applied) = run_counted(&project, &["work"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_applied_once(&project, &applied);
}

#[test]
fn a_merge_applies_each_event_once() {
    let project = approved();
    let (output, applied) = run_counted(&project, &["merge", "1"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_applied_once(&project, &applied);
}

#[test]
fn landing_applies_each_event_once() {
    let project = approved();
    let (output, applied) = run_counted(&project, &["land"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_applied_once(&project, &applied);
}

#[test]
fn a_screen_applies_each_event_once() {
    let project = failed();
    assert_eq!(project.run(&["retry", "1", "--queue"]).code, Some(0));
    let count = count_file(&project);
    let variables = [("SIGNOFF_TEST_APPLIED", count.to_str().expect("a path"))];
    let exit = project.env.terminal_with(TerminalSize::DEFAULT, &["work"], &variables).finish();
    assert_eq!(exit.code, Some(0));
    assert_applied_once(&project, &count);
}

#[test]
fn an_answer_applies_each_event_once() {
    let project = project();
    assert_eq!(project.run(&["work"]).code, Some(3));
    let (output, applied) = run_counted(&project, &["answer", "1", "stop"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_applied_once(&project, &applied);
}

#[test]
fn dependent_tasks_apply_each_event_once() {
    let project = project();
    project.set_agent(approving);
    project.run(&["add", "Log out", "-a", "--depends-on", "1"]);
    project.run(&["add", "Reset the password", "-a", "--depends-on", "2"]);
    let (output, applied) = run_counted(&project, &["work"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_applied_once(&project, &applied);
}

#[test]
fn an_edit_applies_each_event_once() {
    let project = project();
    assert_eq!(project.run(&["work"]).code, Some(3));
    let (output, applied) = run_counted(&project, &["edit", "1", "--verdict", "APPROVED", "--reason", "it is fine"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_applied_once(&project, &applied);
}

#[test]
fn a_dispute_applies_each_event_once() {
    let project = project();
    assert_eq!(project.run(&["work"]).code, Some(3));
    let finding = query(&project, "select id from findings");
    let (output, applied) = run_counted(&project, &["dispute", &finding, "--reason", "the caller validates it"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_applied_once(&project, &applied);
}

#[test]
fn decisions_about_a_final_review_apply_each_event_once() {
    let finding = |project: &TestProject| query(project, "select id from findings where loop_id = 'final'");
    let project = refused_run();
    let dispute = ["dispute", &finding(&project), "--reason", "it does fit"];
    let edit = ["edit", "run-1", "--verdict", "APPROVED", "--reason", "it fits"];
    let commands: [&[&str]; 3] = [&dispute, &["retry", "run-1"], &edit];
    for command in commands {
        let (output, applied) = run_counted(&project, command);
        assert!(matches!(output.code, Some(0 | 1)), "{command:?}: {output}");
        assert_applied_once(&project, &applied);
    }
}

#[test]
fn a_notification_that_is_sent_again_applies_each_event_once() {
    let project = project();
    project.configure(&CONFIG.replace("done =", "stuck =").replace("\"true\"", "\"false\""));
    project.set_agent(|script| script.rule(ScriptRule::role("implement").exit(1)));
    project.run(&["work"]);
    project.set_agent(approving);
    project.run(&["add", "Log out", "-a"]);
    let (output, applied) = run_counted(&project, &["work"]);
    assert!(output.stderr.contains("notify: log"), "{output}");
    assert_applied_once(&project, &applied);
}

#[test]
fn a_screen_with_an_open_report_applies_each_event_once() {
    let project = project();
    let gate = project.state().with_file_name("go-on");
    let waits = ScriptRule::role("implement").write(FEATURE, "login\n").say("Reading it.\n");
    project.set_agent(|script| approving(script.rule(waits.wait_for(&gate.display().to_string()))));
    let count = count_file(&project);
    let variables = [("SIGNOFF_TEST_APPLIED", count.to_str().expect("a path"))];
    let terminal = project.env.terminal_with(TerminalSize::DEFAULT, &["work"], &variables);
    terminal.wait_for("Reading it.");
    terminal.send(key::ENTER);
    terminal.wait_for("Transcript");
    terminal.send("2");
    terminal.send("3");
    fs::write(&gate, "").expect("a file");
    let exit = terminal.finish();
    assert_eq!(exit.code, Some(0), "{exit}");
    assert_applied_once(&project, &count);
}

/// `watch` on a terminal, and the file with what its process applied.
fn watching(project: &TestProject, arguments: &[&str]) -> (TestTerminal, PathBuf) {
    let count = count_file(project);
    let variables = [("SIGNOFF_TEST_APPLIED", count.to_str().expect("a path"))];
    (project.env.terminal_with(TerminalSize::DEFAULT, &[&["watch"], arguments].concat(), &variables), count)
}

#[test]
fn watching_with_open_panes_applies_each_event_once() {
    let project = project();
    assert_eq!(project.run(&["work", "--no-ask"]).code, Some(1));
    for arguments in [&[][..], &["1"]] {
        let (terminal, count) = watching(&project, arguments);
        terminal.wait_for("Log in");
        terminal.send(key::ENTER);
        terminal.wait_for("Transcript");
        terminal.send("2");
        terminal.wait_for("missing input validation");
        terminal.send("3");
        terminal.wait_for("+login");
        terminal.send("q");
        let exit = terminal.finish();
        assert_eq!(exit.code, Some(0), "{exit}");
        assert_applied_once(&project, &count);
    }
}

#[test]
fn an_answer_while_watching_applies_each_event_once() {
    let project = project();
    assert_eq!(project.run(&["work"]).code, Some(3));
    let (terminal, count) = watching(&project, &[]);
    terminal.wait_for("Esc defers it");
    terminal.send("1");
    terminal.wait_for("› 1 continue");
    terminal.send(key::ENTER);
    terminal.wait_for("Answered continue");
    terminal.send("q");
    let exit = terminal.finish();
    assert_eq!(exit.code, Some(0), "{exit}");
    assert_applied_once(&project, &count);
}

#[test]
fn watching_another_process_applies_each_event_once() {
    let project = project();
    let (terminal, count) = watching(&project, &[]);
    terminal.wait_for("Log in");
    assert_eq!(project.run(&["work"]).code, Some(3));
    terminal.wait_for("Esc defers it");
    terminal.send(key::ESC);
    terminal.send(key::ENTER);
    terminal.send("2");
    terminal.wait_for("missing input validation");
    project.run(&["answer", "1", "continue"]);
    assert_eq!(project.run(&["work"]).code, Some(0));
    terminal.wait_for("DONE");
    terminal.send("q");
    let exit = terminal.finish();
    assert_eq!(exit.code, Some(0), "{exit}");
    assert_applied_once(&project, &count);
}

/// An iteration with an open question: its first phase failed.
fn asking_iteration() -> TestProject {
    let project = TestProject::with_agent(PROGRAM, |script| script.rule(ScriptRule::role("brainstorm").exit(1)));
    assert_eq!(project.run(&["iterate", "Greet"]).code, Some(3));
    project.set_agent(|script| {
        script
            .rule(ScriptRule::role("implement").write(FEATURE, "login\n").say("Done.\n"))
            .rule(ScriptRule::role("brainstorm").say("# Design\n\nOne file.\n"))
            .rule(ScriptRule::role("plan").say("# Greeting\n\n### Task 1: Say hello\n\nWrite hello.txt.\n"))
            .rule(ScriptRule::role("simplify").say("Nothing to do.\n"))
            .rule(ScriptRule::role("review").say("NO ISSUES\n"))
    });
    project
}

#[test]
fn watching_an_iteration_in_lines_applies_each_event_once() {
    let project = asking_iteration();
    for arguments in ["", "1 --json-events"] {
        let count = count_file(&project);
        let command = format!("SIGNOFF_TEST_APPLIED={} signoff watch --plain {arguments} | true", count.display());
        assert_eq!(project.env.shell(&command).code, Some(0));
        assert_applied_once(&project, &count);
    }
}

#[test]
fn commands_about_an_open_iteration_apply_each_event_once() {
    let project = asking_iteration();
    let commands: [&[&str]; 12] = [
        &["status"],
        &["logs", "1"],
        &["show", "1"],
        &["report", "1"],
        &["report", "run-1"],
        &["stats"],
        &["export", "1", "--format", "sarif"],
        &["export", "1", "--format", "state-v4"],
        &["merge", "1"],
        &["retry", "1"],
        &["answer", "1", "retry"],
        &["work"],
    ];
    for command in commands {
        let (output, applied) = run_counted(&project, command);
        assert!(matches!(output.code, Some(0..=2)), "{command:?}: {output}");
        assert_applied_once(&project, &applied);
    }
}

#[test]
fn a_server_applies_each_event_once() {
    let project = project();
    assert_eq!(project.run(&["work"]).code, Some(3));
    let count = count_file(&project);
    let page = ServeProcess::start_with(&project, &[("SIGNOFF_TEST_APPLIED", count.to_str().expect("a path"))]);
    for path in ["/", "/tasks/1", "/tasks/1", "/runs/1", "/tasks/1/transcript/a1", "/stats", "/tasks/1/report.html"] {
        assert_eq!(page.get(path).status, 200, "{path}");
    }
    let finding = query(&project, "select id from findings");
    for (path, form) in
        [(format!("/findings/{finding}/dispute"), "reason=so"), ("/questions/q1/answer".to_owned(), "choice=stop")]
    {
        let answer = page.post(&path, form);
        assert!(answer.status < 400, "{path}: {}", answer.body);
    }
    for path in ["/tasks/1", "/stats", "/runs/1/report.html"] {
        assert_eq!(page.get(path).status, 200, "{path}");
    }
    assert_eq!(page.end_with_signal(&project, TERM).code, Some(0));
    assert_applied_once(&project, &count);
}
