//! The bell and the desktop disturb whoever sits there, and are silenced for them alone.

use signoff_testkit::Output;

use super::*;

const DESKTOP: &str = "[notify]\nquestion = [\"desktop\"]\n";

/// A desktop whose messages end up in a file.
fn with_desktop(project: &Project) {
    project.env.stand_in("notify-send", "printf '%s|' \"$@\" >> \"$HOME/shown.txt\"");
}

fn run(project: &Project, words: &[&str]) -> Output {
    project.env.run_with(words, &[("DISPLAY", ":0")])
}

fn shown(project: &Project) -> String {
    fs::read_to_string(project.env.root().join("home/shown.txt")).unwrap_or_default()
}

#[test]
fn without_a_terminal_the_desktop_shows_it() {
    let project = project(DESKTOP);
    with_desktop(&project);
    assert_eq!(run(&project, &["work"]).code, Some(3));
    insta::assert_snapshot!(shown(&project), @"--app-name=signoff|--|Task #1 asks you: Log in|1 review did not lead to approval. One more fix and review, proceed with the findings open, or stop?|");
}

#[test]
fn quiet_silences_the_desktop_and_the_message_waits_for_a_program_that_is_not() {
    let project = project(DESKTOP);
    with_desktop(&project);
    let quiet = run(&project, &["work", "--quiet"]);
    assert_eq!((quiet.code, quiet.stderr.as_str(), shown(&project).as_str()), (Some(3), "", ""));
    run(&project, &["work"]);
    assert!(shown(&project).contains("Task #1 asks you"), "{}", shown(&project));
}

/// Quiet is what it says itself, not what it was asked to do.
#[test]
fn a_test_of_the_desktop_is_one_however_quiet() {
    let project = project(DESKTOP);
    with_desktop(&project);
    let tried = run(&project, &["notify", "desktop", "--quiet"]);
    assert_eq!(tried.to_string(), "exit 0\n--- stdout\n✓ desktop (desktop), on question: told\n");
    assert!(shown(&project).contains("A test of signoff: done"), "{}", shown(&project));
    let terminal = project.env.terminal(&["notify", "bell", "--quiet"]);
    terminal.wait_for("✓ bell (bell), on stuck, budget: told");
    assert_eq!(terminal.finish_and_rings(), 1);
}
