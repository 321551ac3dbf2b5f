//! The dialogue of `signoff configure`, answered with keys.

use signoff_testkit::TestProject;
use signoff_testkit::terminal::{TerminalScreen, TestTerminal, key};

use super::{FILE, project};
use crate::PROGRAM;

/// Presses keys, then waits for a question with these words. The last line of a question lists its keys: once it is
/// visible, the question is complete.
fn press(terminal: &TestTerminal, keys: &[&str], then: &str) -> TerminalScreen {
    keys.iter().for_each(|key| terminal.send(key));
    let keys = |line: &str| line.starts_with('[') && line.trim_end().ends_with(']');
    let whole = |screen: &TerminalScreen| screen.lines().last().is_some_and(keys);
    terminal.wait_until(then, |screen| screen.contains(then) && whole(screen))
}

/// Goes to the first question about the code review.
fn at_code_review(project: &TestProject) -> TestTerminal {
    let terminal = project.env.terminal(&["configure"]);
    press(&terminal, &[], "Which phases");
    press(&terminal, &[key::DOWN, key::DOWN, key::ENTER], "Stop (halt");
    terminal
}

#[test]
fn every_question_is_answered_with_keys() {
    let project = project();
    let terminal = project.env.terminal(&["configure"]);
    insta::assert_snapshot!(press(&terminal, &[], "Which phases"), @"
    ? Which phases do you want to configure?
    > All review phases
      Phase 3: Plan Review
      Phase 5: Code Review
      Phase 6: Test
      Phase 8: Final Review
    [↑↓ to move, Enter to choose, Esc to go back]
    ");
    insta::assert_snapshot!(press(&terminal, &[key::DOWN, key::DOWN, key::ENTER], "Stop (halt"), @"
    > Which phases do you want to configure? Phase 5: Code Review

    Phase 5: Code Review
    ? What should happen when issues are found?
      Restart iteration (go back to Phase 1)
    > Mini-loop (fix and re-review within phase)
      Proceed (note issues, continue anyway)
      Stop (halt workflow)
    [↑↓ to move, Enter to choose, Esc to go back]
    ");
    insta::assert_snapshot!(press(&terminal, &[key::UP, key::ENTER], "NONE (never"), @"
    > Which phases do you want to configure? Phase 5: Code Review

    Phase 5: Code Review
    > What should happen when issues are found? Restart iteration
    ? Minimum severity that causes failure?
    > LOW (any issue fails) [default]
      MEDIUM (MEDIUM and HIGH fail)
      HIGH (only HIGH fails)
      NONE (never fail)
    [↑↓ to move, Enter to choose, Esc to go back]
    ");
    insta::assert_snapshot!(press(&terminal, &[key::DOWN, key::DOWN, key::ENTER], "Yes (rec"), @"
    > Which phases do you want to configure? Phase 5: Code Review

    Phase 5: Code Review
    > What should happen when issues are found? Restart iteration
    > Minimum severity that causes failure? HIGH
    ? Enable parallel agents for fixing issues?
    > Yes (recommended)
      No
    [↑↓ to move, Enter to choose, Esc to go back]
    ");
    insta::assert_snapshot!(press(&terminal, &[key::DOWN, key::ENTER], "Custom"), @"
    > Which phases do you want to configure? Phase 5: Code Review

    Phase 5: Code Review
    > What should happen when issues are found? Restart iteration
    > Minimum severity that causes failure? HIGH
    > Enable parallel agents for fixing issues? No
    ? Retry limit for mini-loop?
      10 retries (default)
      5 retries
      3 retries
      No limit
    > Custom
    [↑↓ to move, Enter to choose, Esc to go back]
    ");
    insta::assert_snapshot!(press(&terminal, &[key::UP, key::UP, key::UP, key::ENTER], "Ask me"), @"
    > Which phases do you want to configure? Phase 5: Code Review

    Phase 5: Code Review
    > What should happen when issues are found? Restart iteration
    > Minimum severity that causes failure? HIGH
    > Enable parallel agents for fixing issues? No
    > Retry limit for mini-loop? 5 retries
    ? What happens when retry limit is reached?
    > Stop workflow (default)
      Ask me what to do
      Restart iteration
      Proceed with issues noted
    [↑↓ to move, Enter to choose, Esc to go back]
    ");
    insta::assert_snapshot!(press(&terminal, &[key::DOWN, key::ENTER], "Write this"), @"
    > Which phases do you want to configure? Phase 5: Code Review

    Phase 5: Code Review
    > What should happen when issues are found? Restart iteration
    > Minimum severity that causes failure? HIGH
    > Enable parallel agents for fixing issues? No
    > Retry limit for mini-loop? 5 retries
    > What happens when retry limit is reached? Ask me what to do

    3 Plan Review: unchanged
    5 Code Review: onFailure mini-loop → restart, failOnSeverity LOW → HIGH, paralle
    lFixes true → false, maxRetries 2 → 5, onMaxRetries stop → ask
    6 Test: unchanged
    8 Final Review: unchanged
    ? Write this to signoff.toml? (Y/n)
    [Esc to go back]
    ");
    terminal.send(key::ENTER);
    let end = terminal.finish();
    assert!(end.sane);
    insta::assert_snapshot!(end, @r#"
    exit 0
    > Which phases do you want to configure? Phase 5: Code Review

    Phase 5: Code Review
    > What should happen when issues are found? Restart iteration
    > Minimum severity that causes failure? HIGH
    > Enable parallel agents for fixing issues? No
    > Retry limit for mini-loop? 5 retries
    > What happens when retry limit is reached? Ask me what to do

    3 Plan Review: unchanged
    5 Code Review: onFailure mini-loop → restart, failOnSeverity LOW → HIGH, paralle
    lFixes true → false, maxRetries 2 → 5, onMaxRetries stop → ask
    6 Test: unchanged
    8 Final Review: unchanged
    > Write this to signoff.toml? Yes
    wrote signoff.toml
      presets.phases.gates.code_review.on_failure: (not set) → "restart"
      presets.phases.gates.code_review.fail_on: (not set) → "HIGH"
      presets.phases.gates.code_review.parallel_fixes: (not set) → false
      presets.phases.gates.code_review.max_cycles: 3 → (not set)
      presets.phases.gates.code_review.max_fixes: (not set) → 5
      presets.phases.gates.code_review.on_exhausted: (not set) → "ask"
    "#);
    insta::assert_snapshot!(project.read("signoff.toml"), @r#"
    # Ours. Ask Ann.
    jobs = 2 # enough

    [agents.claude]
    model = "opus"

    # How strict we are.
    [presets.phases.gates.code_review]
    on_failure = "restart"
    fail_on = "HIGH"
    parallel_fixes = false
    max_fixes = 5 # three rounds
    on_exhausted = "ask"
    "#);
}

#[test]
fn enter_goes_through_all_phases_and_changes_nothing() {
    let project = project();
    let terminal = project.env.terminal(&["configure", "--plain"]);
    press(&terminal, &[], "All review phases");
    terminal.send(key::ENTER);
    // The code review has a limit of its own, so it is asked for; a failed test has no severity.
    let phases =
        [("Phase 3: Plan Review", 5), ("Phase 5: Code Review", 6), ("Phase 6: Test", 4), ("Phase 8: Final Review", 5)];
    for (phase, questions) in phases {
        press(&terminal, &[], phase);
        for question in 1..=questions {
            terminal.wait_until(phase, |screen| question_count(screen, phase) == question);
            terminal.send(key::ENTER);
        }
    }
    let end = terminal.finish();
    insta::assert_snapshot!(end, @"
    exit 0
    ? Minimum severity that causes failure? LOW
    ? Enable parallel agents for fixing issues? Yes
    ? Retry limit for mini-loop? Custom
    ? How many retries? 2
    ? What happens when retry limit is reached? Stop workflow

    Phase 6: Test
    ? What should happen when issues are found? Restart iteration
    ? Enable parallel agents for fixing issues? Yes
    ? Retry limit for mini-loop? 10 retries
    ? What happens when retry limit is reached? Stop workflow

    Phase 8: Final Review
    ? What should happen when issues are found? Restart iteration
    ? Minimum severity that causes failure? LOW
    ? Enable parallel agents for fixing issues? Yes
    ? Retry limit for mini-loop? 10 retries
    ? What happens when retry limit is reached? Stop workflow
    No changes.
    nothing was written
    ");
    assert_eq!(project.read("signoff.toml"), FILE);
}

/// The number of questions asked about a phase.
fn question_count(screen: &TerminalScreen, phase: &str) -> usize {
    let since = screen.lines().skip_while(|line| *line != phase).skip(1);
    since.take_while(|line| !line.starts_with("Phase")).filter(|line| line.starts_with('?')).count()
}

#[test]
fn a_custom_limit_must_be_a_number() {
    let project = TestProject::new(PROGRAM);
    let terminal = at_code_review(&project);
    press(&terminal, &[key::ENTER], "NONE (never");
    press(&terminal, &[key::ENTER], "Yes (rec");
    press(&terminal, &[key::ENTER], "Custom");
    press(&terminal, &[key::UP, key::ENTER], "How many");
    press(&terminal, &["ten", key::ENTER], "expected a whole number");
    insta::assert_snapshot!(press(&terminal, &[], "How many retries? ten"), @"
    > Which phases do you want to configure? Phase 5: Code Review

    Phase 5: Code Review
    > What should happen when issues are found? Mini-loop
    > Minimum severity that causes failure? LOW
    > Enable parallel agents for fixing issues? Yes
    > Retry limit for mini-loop? Custom
    # expected a whole number from 0 to 4294967295
    ? How many retries? ten
    [a whole number, Esc to go back]
    ");
    press(&terminal, &[key::BACKSPACE, key::BACKSPACE, key::BACKSPACE, "12", key::ENTER], "Ask me");
    insta::assert_snapshot!(press(&terminal, &[key::ENTER], "Write this"), @"
    > Which phases do you want to configure? Phase 5: Code Review

    Phase 5: Code Review
    > What should happen when issues are found? Mini-loop
    > Minimum severity that causes failure? LOW
    > Enable parallel agents for fixing issues? Yes
    > Retry limit for mini-loop? Custom
    > How many retries? 12
    > What happens when retry limit is reached? Stop workflow

    3 Plan Review: unchanged
    5 Code Review: maxRetries 10 → 12
    6 Test: unchanged
    8 Final Review: unchanged
    ? Write this to signoff.toml? (Y/n)
    [Esc to go back]
    ");
    terminal.send("y\r");
    let end = terminal.finish();
    assert_eq!((end.code, end.sane), (Some(0), true));
    assert_eq!(project.read("signoff.toml"), "[presets.phases.gates.code_review]\nmax_fixes = 12\n");
}

#[test]
fn declining_leaves_the_file_unchanged() {
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
    insta::assert_snapshot!(end, @"
    exit 0
    > Which phases do you want to configure? Phase 5: Code Review

    Phase 5: Code Review
    > What should happen when issues are found? Proceed
    > Minimum severity that causes failure? LOW
    > Enable parallel agents for fixing issues? Yes
    > Retry limit for mini-loop? Custom
    > How many retries? 2
    > What happens when retry limit is reached? Stop workflow

    3 Plan Review: unchanged
    5 Code Review: onFailure mini-loop → proceed
    6 Test: unchanged
    8 Final Review: unchanged
    > Write this to signoff.toml? No
    nothing was written
    ");
    assert_eq!(project.read("signoff.toml"), FILE);
}

#[test]
fn interrupting_writes_nothing_and_restores_the_terminal() {
    let project = project();
    let terminal = at_code_review(&project);
    press(&terminal, &[key::DOWN, key::ENTER], "NONE (never");
    press(&terminal, &[key::DOWN], "> MEDIUM");
    terminal.send(key::CTRL_C);
    let end = terminal.finish();
    assert!(end.sane);
    insta::assert_snapshot!(end, @"
    exit 130
    > Which phases do you want to configure? Phase 5: Code Review

    Phase 5: Code Review
    > What should happen when issues are found? Proceed
    ? Minimum severity that causes failure?
      LOW (any issue fails) [default]
    > MEDIUM (MEDIUM and HIGH fail)
      HIGH (only HIGH fails)
      NONE (never fail)
    [↑↓ to move, Enter to choose, Esc to go back]

    nothing was written
    ");
    assert_eq!(project.read("signoff.toml"), FILE);
    assert_eq!(project.list("."), [".git", "README.md", "signoff.toml"]);
}

#[test]
fn escape_goes_back_and_leaves_at_the_first_question() {
    let project = project();
    let terminal = at_code_review(&project);
    press(&terminal, &[key::DOWN, key::ENTER], "NONE (never");
    insta::assert_snapshot!(press(&terminal, &[key::ESC], "> Proceed (note"), @"
    > Which phases do you want to configure? Phase 5: Code Review

    Phase 5: Code Review
    > What should happen when issues are found? Proceed
    ? Minimum severity that causes failure? (back)
    ? What should happen when issues are found?
      Restart iteration (go back to Phase 1)
      Mini-loop (fix and re-review within phase)
    > Proceed (note issues, continue anyway)
      Stop (halt workflow)
    [↑↓ to move, Enter to choose, Esc to go back]
    ");
    insta::assert_snapshot!(press(&terminal, &[key::ESC], "> Phase 5"), @"
    > Which phases do you want to configure? Phase 5: Code Review

    Phase 5: Code Review
    > What should happen when issues are found? Proceed
    ? Minimum severity that causes failure? (back)
    ? What should happen when issues are found? (back)
    ? Which phases do you want to configure?
      All review phases
      Phase 3: Plan Review
    > Phase 5: Code Review
      Phase 6: Test
      Phase 8: Final Review
    [↑↓ to move, Enter to choose, Esc to go back]
    ");
    terminal.send(key::ESC);
    let end = terminal.finish();
    insta::assert_snapshot!(end, @"
    exit 0
    > Which phases do you want to configure? Phase 5: Code Review

    Phase 5: Code Review
    > What should happen when issues are found? Proceed
    ? Minimum severity that causes failure? (back)
    ? What should happen when issues are found? (back)
    ? Which phases do you want to configure? (back)
    nothing was written
    ");
    assert_eq!(project.read("signoff.toml"), FILE);
}

#[test]
fn a_file_changed_by_another_program_is_not_overwritten() {
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
    insta::assert_snapshot!(end.screen.lines().skip_while(|line| !line.starts_with("error")).collect::<Vec<_>>().join("\n"), @"
    error: signoff.toml was changed by another program
    hint: nothing was written: check the file, then run the command again
    ");
    assert_eq!(project.read("signoff.toml"), "jobs = 3\n");
}

#[test]
fn reset_asks_for_confirmation_on_a_terminal() {
    let project = project();
    let terminal = project.env.terminal(&["configure", "--reset"]);
    insta::assert_snapshot!(terminal.wait_for("settings? (Y/n)"), @"
      presets.phases.gates.code_review.max_cycles: 3 → (not set)
    ? Remove these settings? (Y/n)
    ");
    terminal.send("n\r");
    insta::assert_snapshot!(terminal.finish(), @"
    exit 0
      presets.phases.gates.code_review.max_cycles: 3 → (not set)
    > Remove these settings? No
    nothing was written
    ");
    assert_eq!(project.read("signoff.toml"), FILE);
    let terminal = project.env.terminal(&["configure", "--reset"]);
    terminal.wait_for("settings? (Y/n)");
    terminal.send(key::ENTER);
    assert_eq!(terminal.finish().code, Some(0));
    assert!(!project.read("signoff.toml").contains("presets"));
}
