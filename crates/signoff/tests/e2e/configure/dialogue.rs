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
