//! Each event is applied once per process, however many parts of the program show it or react to it.

use std::fs;
use std::path::{Path, PathBuf};

use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::terminal::TerminalSize;
use signoff_testkit::{ProgramOutput, TestProject};

use crate::PROGRAM;
use crate::actors::{APPROVED, FEATURE, changes};

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

/// Runs a command, and returns its output and the number of events that its process applied.
fn run_counted(project: &TestProject, arguments: &[&str]) -> (ProgramOutput, u64) {
    let count = count_file(project);
    let output = project.env.run_with(arguments, &[("SIGNOFF_TEST_APPLIED", &count.display().to_string())]);
    (output, applied(&count))
}

/// The file for the number of applied events.
fn count_file(project: &TestProject) -> PathBuf {
    project.env.work().join(".git/applied-events")
}

fn applied(count_file: &Path) -> u64 {
    let text = fs::read_to_string(count_file).expect("the number of applied events");
    text.parse().expect("a number")
}

/// The number of events in the log of the run.
fn logged(project: &TestProject) -> u64 {
    let database = project.env.work().join(".signoff/signoff.db");
    let connection = rusqlite::Connection::open(database).expect("the database");
    let count = "SELECT count(*) FROM events WHERE run_id = 1";
    let rows: i64 = connection.query_row(count, [], |row| row.get(0)).expect("a count");
    u64::try_from(rows).expect("a count")
}

#[test]
fn a_run_applies_each_event_once() {
    let project = project();
    let (output, applied) = run_counted(&project, &["work"]);
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    let logged = logged(&project);
    assert!(logged > 10, "{logged} events");
    assert_eq!(applied, logged, "{}", output.stderr);
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
    assert_eq!(applied, logged(&project), "{}", output.stderr);
}

#[test]
fn a_review_of_the_checkout_applies_each_event_once() {
    let project = project();
    project.env.write(FEATURE, "login\n");
    let (output, applied) = run_counted(&project, &["review"]);
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    assert_eq!(applied, logged(&project), "{}", output.stderr);
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
    assert_eq!(applied, logged(&project), "{output}");
}

#[test]
fn a_resumed_run_applies_each_event_once() {
    let project = failed();
    assert_eq!(project.run(&["retry", "1", "--queue"]).code, Some(0));
    let (output, applied) = run_counted(&project, &["run", "--resume", "1"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(applied, logged(&project), "{output}");
}

#[test]
fn resumed_work_applies_each_event_once() {
    let project = failed();
    assert_eq!(project.run(&["retry", "1", "--queue"]).code, Some(0));
    let (output, applied) = run_counted(&project, &["work"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(applied, logged(&project), "{output}");
}

#[test]
fn a_merge_applies_each_event_once() {
    let project = approved();
    let (output, applied) = run_counted(&project, &["merge", "1"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(applied, logged(&project), "{output}");
}

#[test]
fn landing_applies_each_event_once() {
    let project = approved();
    let (output, applied) = run_counted(&project, &["land"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(applied, logged(&project), "{output}");
}

#[test]
fn a_screen_applies_each_event_once() {
    let project = failed();
    assert_eq!(project.run(&["retry", "1", "--queue"]).code, Some(0));
    let count = count_file(&project);
    let variables = [("SIGNOFF_TEST_APPLIED", count.to_str().expect("a path"))];
    let exit = project.env.terminal_with(TerminalSize::DEFAULT, &["work"], &variables).finish();
    assert_eq!(exit.code, Some(0));
    assert_eq!(applied(&count), logged(&project));
}

#[test]
fn an_answer_applies_each_event_once() {
    let project = project();
    assert_eq!(project.run(&["work"]).code, Some(3));
    let (output, applied) = run_counted(&project, &["answer", "1", "stop"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(applied, logged(&project), "{output}");
}

#[test]
fn dependent_tasks_apply_each_event_once() {
    let project = project();
    project.set_agent(approving);
    project.run(&["add", "Log out", "-a", "--depends-on", "1"]);
    project.run(&["add", "Reset the password", "-a", "--depends-on", "2"]);
    let (output, applied) = run_counted(&project, &["work"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(applied, logged(&project), "{output}");
}
