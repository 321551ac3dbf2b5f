//! The bell and desktop notifications: `--quiet` silences them, except for a test of the channel.

use signoff_testkit::ProgramOutput;

use super::*;

const DESKTOP: &str = "[notify]\nquestion = [\"desktop\"]\n";

/// A desktop that writes its messages to a file.
fn with_desktop(project: &TestProject) {
    project.env.stub_program("notify-send", "printf '%s|' \"$@\" >> \"$HOME/shown.txt\"");
}

fn run(project: &TestProject, words: &[&str]) -> ProgramOutput {
    project.env.run_with(words, &[("DISPLAY", ":0")])
}

fn shown(project: &TestProject) -> String {
    fs::read_to_string(project.env.root().join("home/shown.txt")).unwrap_or_default()
}

#[test]
fn without_a_terminal_the_desktop_shows_the_message() {
    let project = project(DESKTOP);
    with_desktop(&project);
    assert_eq!(run(&project, &["work"]).code, Some(3));
    insta::assert_snapshot!(shown(&project), @"--app-name=signoff|--|Task #1 needs an answer: Log in|1 review did not lead to approval. One more fix and review, proceed with the findings open, or stop?|");
}

#[test]
fn quiet_silences_the_desktop_and_the_next_program_without_it_sends_the_message() {
    let project = project(DESKTOP);
    with_desktop(&project);
    let quiet = run(&project, &["work", "--quiet"]);
    assert_eq!((quiet.code, quiet.stderr.as_str(), shown(&project).as_str()), (Some(3), "", ""));
    run(&project, &["work"]);
    assert!(shown(&project).contains("Task #1 needs an answer"), "{}", shown(&project));
}

/// `--quiet` limits the output; the test message was requested.
#[test]
fn a_test_message_is_sent_even_with_quiet() {
    let project = project(DESKTOP);
    with_desktop(&project);
    let tried = run(&project, &["notify", "desktop", "--quiet"]);
    assert_eq!(tried.to_string(), "exit 0\n--- stdout\n✓ desktop (desktop), on question: sent\n");
    assert!(shown(&project).contains("A test of signoff: done"), "{}", shown(&project));
    let terminal = project.env.terminal(&["notify", "bell", "--quiet"]);
    terminal.wait_for("✓ bell (bell), on stuck, budget: sent");
    assert_eq!(terminal.finish_and_count_bells(), 1);
}
