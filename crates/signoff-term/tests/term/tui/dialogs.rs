//! Dialogs over the screen.

use crossterm::event::KeyCode;
use signoff_core::ids::TaskId;
use signoff_core::machine::{Choice, FinalVerdict};
use signoff_term::question_queue::QuestionDecision;
use signoff_term::tui::{TaskDecision, Theme, TuiMode, TuiRequest};

use super::scene::{LARGE, SMALL, Scene, TINY, judged};
use crate::story::{Story, reviewed};

const ENTER: [KeyCode; 1] = [KeyCode::Enter];

/// The requests without those for data.
fn decided(requests: Vec<TuiRequest>) -> Vec<TuiRequest> {
    let is_load = |request: &TuiRequest| matches!(request, TuiRequest::Load(_));
    requests.into_iter().filter(|request| !is_load(request)).collect()
}

/// Snapshots of a dialog at all tested sizes.
fn assert_snapshots(name: &str, scene: &mut Scene) {
    insta::assert_snapshot!(format!("{name}_80x24"), scene.text(SMALL));
    insta::assert_snapshot!(format!("{name}_200x60"), scene.text(LARGE));
    insta::assert_snapshot!(format!("{name}_20x5"), scene.text(TINY));
}

/// Postpones the question of the only task.
fn question_postponed() -> Scene {
    let mut scene = Scene::new(judged());
    scene.press(&[KeyCode::Esc]);
    scene
}

#[test]
fn a_question_is_answered() {
    let mut scene = Scene::new(judged());
    assert_snapshots("question", &mut scene);
    assert_eq!(decided(scene.press(&[KeyCode::Enter, KeyCode::Esc])), [], "nothing is chosen before a key chose it");
    let long_after = scene.now() + jiff::SignedDuration::from_secs(1);
    assert_eq!(scene.tui.handle_key(KeyCode::Down, long_after), []);
    let requests = scene.tui.handle_key(KeyCode::Enter, long_after);
    let [TuiRequest::QuestionDecided(QuestionDecision::Answer { loop_id, choice, .. })] = requests.as_slice() else {
        panic!("{requests:?}")
    };
    assert_eq!((loop_id.as_str(), *choice), ("task-29", Choice::Continue));
    assert!(!scene.text(SMALL).contains("Question"), "it is settled until facts come");
}

#[test]
fn a_postponed_question_is_asked_again() {
    let mut scene = question_postponed();
    scene.tui.show_note("left");
    assert!(!scene.text(SMALL).contains("Question"));
    scene.press(&[KeyCode::Char('a')]);
    assert!(scene.text(SMALL).contains("Question"));
    let scene = scene.then(|story| story.person(Choice::Stop));
    let mut scene = scene;
    assert!(!scene.text(SMALL).contains("Question"), "another answered it");
    scene.press(&[KeyCode::Char('a')]);
    insta::assert_snapshot!(scene.text(SMALL).lines().last().unwrap(), @"there is no open question");
}

#[test]
fn a_question_waits_while_a_loop_is_open() {
    let bug = (signoff_core::review::Severity::Critical, "a.rs:1", "wrong");
    let round = |story: Story| story.works().objects("spec", &[bug]).approves("code");
    let mut scene = Scene::new(round(round(Story::task(reviewed("plan")))));
    scene.press(&ENTER);
    let mut scene = scene.then(round);
    assert!(!scene.text(SMALL).contains(" Question "));
    scene.press(&[KeyCode::Esc]);
    assert!(scene.text(SMALL).contains(" Question "));
}

#[test]
fn the_task_of_a_question_can_be_opened_first() {
    for key in [KeyCode::Enter, KeyCode::Char('o')] {
        let mut scene = Scene::new(judged());
        assert_eq!(decided(scene.press(&[key])), [], "looking is not reported as a decision");
        let shown = scene.text(SMALL);
        assert!(shown.contains("1 Reviews") && !shown.contains(" Question "), "{shown}");
        scene.press(&[KeyCode::Char('a')]);
        assert!(scene.text(SMALL).contains(" Question "), "asked for");
        scene.press(&[KeyCode::Char('o')]);
        assert!(!scene.text(SMALL).contains(" Question "), "looked at once more");
        scene.press(&[KeyCode::Esc]);
        assert!(scene.text(SMALL).contains(" Question "), "it comes back with the list");
    }
    let mut scene = Scene::new(judged());
    scene.press(&[KeyCode::Char('?')]);
    assert!(scene.text(SMALL).contains(" Keys "));
    scene.press(&[KeyCode::Esc]);
    assert!(scene.text(SMALL).contains(" Question "));
}

#[test]
fn postponing_the_last_question_warns_that_the_work_ends() {
    let last = |scene: &mut Scene| scene.text(SMALL).lines().last().unwrap_or_default().to_owned();
    assert!(last(&mut Scene::new(judged())).contains("Esc later, and exit"));
    assert!(!last(&mut Scene::new(judged()).with_run(&super::scene::busy())).contains("and end"));
    assert!(!last(&mut Scene::shown(judged(), TuiMode::Watching, Theme::Color)).contains("and end"));
}

/// A person who is scrolling the list when a question pops up does not answer it.
#[test]
fn type_ahead_answers_no_question() {
    let bug = (signoff_core::review::Severity::Critical, "a.rs:1", "wrong");
    let round = |story: Story| story.works().objects("spec", &[bug]).approves("code");
    let mut scene = Scene::new(round(round(Story::task(reviewed("plan")))));
    let later = |milliseconds| jiff::SignedDuration::from_millis(milliseconds);
    let begun = scene.now();
    scene.tui.handle_key(KeyCode::Down, begun);
    let mut scene = scene.then(round);
    assert!(scene.text(SMALL).contains(" Question "));
    let (down, enter) = (KeyCode::Down, KeyCode::Enter);
    for (key, at) in [(down, 100), (enter, 300), (KeyCode::Char('1'), 600), (KeyCode::Esc, 900)] {
        assert_eq!(scene.tui.handle_key(key, begun + later(at)), [], "{key:?}");
        assert!(scene.text(SMALL).contains(" Question "));
    }
    scene.tui.handle_key(down, begun + later(2000));
    let requests = scene.tui.handle_key(enter, begun + later(2010));
    assert!(
        matches!(requests.as_slice(), [TuiRequest::QuestionDecided(QuestionDecision::Answer { .. })]),
        "{requests:?}"
    );
}

#[test]
fn pasted_text_triggers_no_action() {
    let mut scene = question_postponed();
    let now = scene.now();
    scene.tui.paste("cyrq", now);
    assert_eq!(scene.tui.requests(), []);
    scene.press(&[KeyCode::Char('c')]);
    scene.tui.paste("yes", now);
    assert_eq!(scene.tui.requests(), []);
    assert!(scene.text(SMALL).contains(" Cancel "), "a pasted y is no yes");
}

/// One key too many when leaving a pane does not answer the question behind it.
#[test]
fn the_key_that_leaves_a_pane_answers_no_question() {
    let mut scene = Scene::new(judged());
    scene.press(&[KeyCode::Char('o'), KeyCode::Char('2')]);
    assert_eq!(decided(scene.press(&[KeyCode::Esc, KeyCode::Esc])), []);
    assert!(scene.text(SMALL).contains(" Question "));
}

#[test]
fn retry_and_cancel_are_confirmed() {
    let mut running = question_postponed();
    running.press(&[KeyCode::Char('r')]);
    assert!(running.text(SMALL).contains("nothing to retry: the task has not stopped"));
    let mut scene = Scene::new(Story::task(reviewed("task")).gives_up("no such table"));
    assert_eq!(scene.press(&[KeyCode::Char('r')]), []);
    assert_snapshots("retry", &mut scene);
    assert_eq!(scene.press(&[KeyCode::Enter, KeyCode::Char('n'), KeyCode::Char('y')]), [], "no is no");
    assert_eq!(
        scene.press(&[KeyCode::Char('r'), KeyCode::Char('y')]),
        [TuiRequest::Decide(TaskId(29), TaskDecision::Retry)]
    );
    scene.press(&[KeyCode::Char('c')]);
    assert_snapshots("cancel", &mut scene);
    assert_eq!(scene.press(&[KeyCode::Char('y')]), [TuiRequest::Decide(TaskId(29), TaskDecision::Cancel)]);
}

#[test]
fn a_verdict_is_edited() {
    let mut scene = question_postponed();
    scene.press(&[KeyCode::Char('e'), KeyCode::Enter, KeyCode::Down]);
    assert_snapshots("edit", &mut scene);
    scene.press(&[KeyCode::Char('4'), KeyCode::Char('1'), KeyCode::Enter]);
    scene.type_in("Seen on 3 machines\u{7}?");
    scene.press(&[KeyCode::Backspace]);
    assert_snapshots("edit_reason", &mut scene);
    let (task, reason) = (TaskId(29), "Seen on 3 machines".to_owned());
    assert_eq!(
        scene.press(&ENTER),
        [TuiRequest::Decide(task, TaskDecision::Edit { verdict: FinalVerdict::Approved, reason })]
    );
}

#[test]
fn a_finding_is_disputed() {
    let mut scene = question_postponed();
    scene.press(&[KeyCode::Enter, KeyCode::Char('x')]);
    assert!(scene.text(SMALL).contains("choose a finding first: pane 2"));
    scene.press(&[KeyCode::Char('2'), KeyCode::Down, KeyCode::Char('x')]);
    assert_snapshots("dispute", &mut scene);
    assert_eq!(scene.press(&ENTER), []);
    assert!(scene.text(SMALL).contains("enter a reason"));
    scene.type_in("it is spelled so");
    let requests = decided(scene.press(&ENTER));
    let [TuiRequest::Decide(task, TaskDecision::Dispute { finding, reason })] = requests.as_slice() else {
        panic!("{requests:?}")
    };
    assert!(finding.as_str().starts_with("f-"));
    assert_eq!((*task, reason.as_str()), (TaskId(29), "it is spelled so"));
}

#[test]
fn help_names_all_keys() {
    let mut scene = question_postponed();
    scene.press(&[KeyCode::Char('?')]);
    assert_snapshots("help", &mut scene);
    scene.press(&[KeyCode::Down, KeyCode::Down, KeyCode::Esc]);
    assert!(!scene.text(SMALL).contains("this help"));
}

#[test]
fn quitting_is_confirmed_only_while_driving() {
    let mut scene = question_postponed();
    assert_eq!(scene.press(&[KeyCode::Char('q')]), []);
    assert_snapshots("leave", &mut scene);
    assert_eq!(scene.press(&[KeyCode::Char('y')]), [TuiRequest::Quit]);
    for mode in [TuiMode::Watching, TuiMode::Replaying] {
        let mut scene = Scene::shown(judged(), mode, Theme::Color);
        scene.press(&[KeyCode::Esc]);
        assert_eq!(scene.press(&[KeyCode::Char('q')]), [TuiRequest::Quit]);
    }
}
