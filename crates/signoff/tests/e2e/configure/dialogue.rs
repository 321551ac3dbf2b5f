//! The questions, answered by keys.

use signoff_testkit::Project;
use signoff_testkit::terminal::{Screen, Terminal, key};

use super::{FILE, project};
use crate::PROGRAM;

/// Presses keys, then waits for a text.
fn press(terminal: &Terminal, keys: &[&str], then: &str) -> Screen {
    keys.iter().for_each(|key| terminal.send(key));
    terminal.wait_for(then)
}

/// At the first question about the code review.
fn at_code_review(project: &Project) -> Terminal {
    let terminal = project.env.terminal(&["configure"]);
    terminal.wait_for("Esc to go back");
    press(&terminal, &[key::DOWN, key::DOWN, key::ENTER], "Stop (halt");
    terminal
}

#[test]
fn every_question_is_answered_by_keys() {
    let project = project();
    let terminal = project.env.terminal(&["configure"]);
    insta::assert_snapshot!(terminal.wait_for("Esc to go back"), @"");
    insta::assert_snapshot!(press(&terminal, &[key::DOWN, key::DOWN, key::ENTER], "Stop (halt"), @"");
    insta::assert_snapshot!(press(&terminal, &[key::UP, key::ENTER], "NONE (never"), @"");
    insta::assert_snapshot!(press(&terminal, &[key::DOWN, key::DOWN, key::ENTER], "Yes (rec"), @"");
    insta::assert_snapshot!(press(&terminal, &[key::DOWN, key::ENTER], "Custom"), @"");
    insta::assert_snapshot!(press(&terminal, &[key::UP, key::UP, key::UP, key::ENTER], "Ask me"), @"");
    insta::assert_snapshot!(press(&terminal, &[key::DOWN, key::ENTER], "Write this"), @"");
    terminal.send(key::ENTER);
    let end = terminal.finish();
    assert!(end.sane);
    insta::assert_snapshot!(end, @"");
    insta::assert_snapshot!(project.read("signoff.toml"), @"");
}

#[test]
fn enter_goes_through_all_phases_and_changes_nothing() {
    let project = project();
    let terminal = project.env.terminal(&["configure", "--plain"]);
    press(&terminal, &[], "All review phases");
    terminal.send(key::ENTER);
    for phase in ["Phase 3: Plan Review", "Phase 5: Code Review", "Phase 6: Test", "Phase 8: Final Review"] {
        let questions = if phase == "Phase 6: Test" { 4 } else { 5 };
        press(&terminal, &[], phase);
        for question in 1..=questions {
            terminal.wait_until(phase, |screen| asked(screen, phase) == question);
            terminal.send(key::ENTER);
        }
    }
    let end = terminal.finish();
    insta::assert_snapshot!(end, @"");
    assert_eq!(project.read("signoff.toml"), FILE);
}

/// How many questions about a phase have been asked.
fn asked(screen: &Screen, phase: &str) -> usize {
    let since = screen.lines().skip_while(|line| *line != phase).skip(1);
    since.take_while(|line| !line.starts_with("Phase")).filter(|line| line.starts_with('?')).count()
}

#[test]
fn a_limit_of_ones_own_is_a_number() {
    let project = Project::new(PROGRAM);
    let terminal = at_code_review(&project);
    press(&terminal, &[key::ENTER], "NONE (never");
    press(&terminal, &[key::ENTER], "Yes (rec");
    press(&terminal, &[key::ENTER], "Custom");
    press(&terminal, &[key::UP, key::ENTER], "How many");
    insta::assert_snapshot!(press(&terminal, &["ten", key::ENTER], "please"), @"");
    press(&terminal, &[key::BACKSPACE, key::BACKSPACE, key::BACKSPACE, "12", key::ENTER], "Ask me");
    insta::assert_snapshot!(press(&terminal, &[key::ENTER], "Write this"), @"");
    terminal.send("y\r");
    let end = terminal.finish();
    assert_eq!((end.code, end.sane), (Some(0), true));
    assert_eq!(project.read("signoff.toml"), "[presets.phases.gates.code_review]\nmax_fixes = 12\n");
}

#[test]
fn who_declines_leaves_the_file_as_it_was() {
    let project = project();
    let terminal = at_code_review(&project);
    press(&terminal, &[key::DOWN, key::ENTER], "NONE (never");
    press(&terminal, &[key::ENTER], "Yes (rec");
    press(&terminal, &[key::ENTER], "Custom");
    press(&terminal, &[key::ENTER], "How many");
    press(&terminal, &[key::ENTER], "Ask me");
    press(&terminal, &[key::ENTER], "Write this");
    terminal.send("n\r");
    let end = terminal.finish();
    assert!(end.sane);
    insta::assert_snapshot!(end, @"");
    assert_eq!(project.read("signoff.toml"), FILE);
}

#[test]
fn interrupting_writes_nothing_and_leaves_the_terminal_as_it_was() {
    let project = project();
    let terminal = at_code_review(&project);
    press(&terminal, &[key::DOWN, key::ENTER], "NONE (never");
    press(&terminal, &[key::DOWN], "> MEDIUM");
    terminal.send(key::CTRL_C);
    let end = terminal.finish();
    assert!(end.sane);
    insta::assert_snapshot!(end, @"");
    assert_eq!(project.read("signoff.toml"), FILE);
    assert_eq!(project.list("."), [".git", "README.md", "signoff.toml"]);
}

#[test]
fn escape_goes_back_and_out_at_the_beginning() {
    let project = project();
    let terminal = at_code_review(&project);
    press(&terminal, &[key::DOWN, key::ENTER], "NONE (never");
    terminal.send(key::ESC);
    insta::assert_snapshot!(terminal.wait_for("> Proceed (note"), @"");
    terminal.send(key::ESC);
    insta::assert_snapshot!(terminal.wait_for("> Phase 5"), @"");
    terminal.send(key::ESC);
    let end = terminal.finish();
    insta::assert_snapshot!(end, @"");
    assert_eq!(project.read("signoff.toml"), FILE);
}

#[test]
fn a_file_that_somebody_else_changed_meanwhile_is_not_written() {
    let project = project();
    let terminal = at_code_review(&project);
    press(&terminal, &[key::DOWN, key::ENTER], "NONE (never");
    press(&terminal, &[key::ENTER], "Yes (rec");
    press(&terminal, &[key::ENTER], "Custom");
    press(&terminal, &[key::UP, key::ENTER], "Ask me");
    press(&terminal, &[key::ENTER], "Write this");
    project.env.write("signoff.toml", "jobs = 3\n");
    terminal.send(key::ENTER);
    let end = terminal.finish();
    assert_eq!(end.code, Some(1));
    insta::assert_snapshot!(end.screen.lines().skip_while(|line| !line.starts_with("error")).collect::<Vec<_>>().join("\n"), @"");
    assert_eq!(project.read("signoff.toml"), "jobs = 3\n");
}

#[test]
fn taking_back_is_asked_about_on_a_terminal() {
    let project = project();
    let terminal = project.env.terminal(&["configure", "--reset"]);
    insta::assert_snapshot!(terminal.wait_for("Take all of this back?"), @"");
    terminal.send("n\r");
    insta::assert_snapshot!(terminal.finish(), @"");
    assert_eq!(project.read("signoff.toml"), FILE);
    let terminal = project.env.terminal(&["configure", "--reset"]);
    terminal.wait_for("Take all of this back?");
    terminal.send(key::ENTER);
    assert_eq!(terminal.finish().code, Some(0));
    assert!(!project.read("signoff.toml").contains("presets"));
}
