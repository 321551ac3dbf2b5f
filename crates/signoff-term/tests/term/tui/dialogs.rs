//! What lies over the screen while a person decides something.

use signoff_core::ids::TaskId;
use signoff_core::machine::{Choice, FinalWord};
use signoff_term::dialogue::Decided;
use signoff_term::tui::{Decision, Ink, Mode, Press, Wish};

use super::scene::{LARGE, SMALL, Scene, TINY, judged};
use crate::story::{Story, reviewed};

const ENTER: [Press; 1] = [Press::Enter];

/// The wishes that are no errands of the screen itself.
fn decided(wishes: Vec<Wish>) -> Vec<Wish> {
    let errand = |wish: &Wish| matches!(wish, Wish::Look(_));
    wishes.into_iter().filter(|wish| !errand(wish)).collect()
}

/// A dialogue at all sizes that are looked at.
fn shown(name: &str, scene: &mut Scene) {
    insta::assert_snapshot!(format!("{name}_80x24"), scene.text(SMALL));
    insta::assert_snapshot!(format!("{name}_200x60"), scene.text(LARGE));
    insta::assert_snapshot!(format!("{name}_20x5"), scene.text(TINY));
}

/// The question of the only task is left for later.
fn quiet() -> Scene {
    let mut scene = Scene::new(judged());
    scene.press(&[Press::Esc]);
    scene
}

#[test]
fn a_question_is_answered() {
    let mut scene = Scene::new(judged());
    shown("question", &mut scene);
    assert_eq!(
        decided(scene.press(&[Press::Enter, Press::Esc])),
        [],
        "nothing is chosen before a key chose it"
    );
    let long_after = scene.now() + jiff::SignedDuration::from_secs(1);
    assert_eq!(scene.tui.press(Press::Down, long_after), []);
    let wishes = scene.tui.press(Press::Enter, long_after);
    let [Wish::Settle(Decided::Answer { loop_id, choice, .. })] = wishes.as_slice() else {
        panic!("{wishes:?}")
    };
    assert_eq!((loop_id.as_str(), *choice), ("task-29", Choice::Continue));
    assert!(!scene.text(SMALL).contains("Question"), "it is settled until facts come");
}

#[test]
fn what_was_left_for_later_is_asked_again() {
    let mut scene = quiet();
    scene.tui.note("left");
    assert!(!scene.text(SMALL).contains("Question"));
    scene.press(&[Press::Char('a')]);
    assert!(scene.text(SMALL).contains("Question"));
    let scene = scene.then(|story| story.person(Choice::Stop));
    let mut scene = scene;
    assert!(!scene.text(SMALL).contains("Question"), "another answered it");
    scene.press(&[Press::Char('a')]);
    insta::assert_snapshot!(scene.text(SMALL).lines().last().unwrap(), @"nothing is asked");
}

#[test]
fn a_question_waits_for_who_looks_at_something() {
    let wrong = (signoff_core::review::Severity::Critical, "a.rs:1", "wrong");
    let round = |story: Story| story.works().objects("spec", &[wrong]).approves("code");
    let mut scene = Scene::new(round(round(Story::task(reviewed("plan")))));
    scene.press(&ENTER);
    let mut scene = scene.then(round);
    assert!(!scene.text(SMALL).contains(" Question "));
    scene.press(&[Press::Esc]);
    assert!(scene.text(SMALL).contains(" Question "));
}

#[test]
fn whoever_is_asked_may_look_first() {
    for key in [Press::Enter, Press::Char('o')] {
        let mut scene = Scene::new(judged());
        assert_eq!(decided(scene.press(&[key])), [], "nobody is told that it is left");
        let shown = scene.text(SMALL);
        assert!(shown.contains("1 Reviews") && !shown.contains(" Question "), "{shown}");
        scene.press(&[Press::Char('a')]);
        assert!(scene.text(SMALL).contains(" Question "), "asked for");
        scene.press(&[Press::Char('o')]);
        assert!(!scene.text(SMALL).contains(" Question "), "looked at once more");
        scene.press(&[Press::Esc]);
        assert!(scene.text(SMALL).contains(" Question "), "it comes back with the list");
    }
    let mut scene = Scene::new(judged());
    scene.press(&[Press::Char('?')]);
    assert!(scene.text(SMALL).contains(" Keys "));
    scene.press(&[Press::Esc]);
    assert!(scene.text(SMALL).contains(" Question "));
}

#[test]
fn the_last_question_says_that_leaving_it_ends_the_work() {
    let last = |scene: &mut Scene| scene.text(SMALL).lines().last().unwrap_or_default().to_owned();
    assert!(last(&mut Scene::new(judged())).contains("Esc later, and end"));
    assert!(!last(&mut Scene::new(judged()).beside(&super::scene::busy())).contains("and end"));
    assert!(!last(&mut Scene::shown(judged(), Mode::Watching, Ink::Color)).contains("and end"));
}

/// Whoever goes down the list when a question comes up does not answer it.
#[test]
fn keys_meant_for_the_list_answer_no_question() {
    let wrong = (signoff_core::review::Severity::Critical, "a.rs:1", "wrong");
    let round = |story: Story| story.works().objects("spec", &[wrong]).approves("code");
    let mut scene = Scene::new(round(round(Story::task(reviewed("plan")))));
    let later = |milliseconds| jiff::SignedDuration::from_millis(milliseconds);
    let begun = scene.now();
    scene.tui.press(Press::Down, begun);
    let mut scene = scene.then(round);
    assert!(scene.text(SMALL).contains(" Question "));
    let (down, enter) = (Press::Down, Press::Enter);
    for (key, at) in [(down, 100), (enter, 300), (Press::Char('1'), 600), (Press::Esc, 900)] {
        assert_eq!(scene.tui.press(key, begun + later(at)), [], "{key:?}");
        assert!(scene.text(SMALL).contains(" Question "));
    }
    scene.tui.press(down, begun + later(2000));
    let wishes = scene.tui.press(enter, begun + later(2010));
    assert!(matches!(wishes.as_slice(), [Wish::Settle(Decided::Answer { .. })]), "{wishes:?}");
}

#[test]
fn what_is_pasted_decides_nothing() {
    let paste = |text: &str| text.chars().map(Press::Pasted).collect::<Vec<_>>();
    let mut scene = quiet();
    assert_eq!(decided(scene.press(&paste("cyrq"))), []);
    scene.press(&[Press::Char('c')]);
    assert_eq!(scene.press(&paste("yes")), []);
    assert!(scene.text(SMALL).contains(" Cancel "), "a pasted y is no yes");
}

/// Whoever leaves a pane with one key too many has not answered the question behind it.
#[test]
fn the_key_that_leaves_a_pane_answers_no_question() {
    let mut scene = Scene::new(judged());
    scene.press(&[Press::Char('o'), Press::Char('2')]);
    assert_eq!(decided(scene.press(&[Press::Esc, Press::Esc])), []);
    assert!(scene.text(SMALL).contains(" Question "));
}

#[test]
fn retry_and_cancel_are_confirmed() {
    let mut scene = quiet();
    assert_eq!(scene.press(&[Press::Char('r')]), []);
    shown("retry", &mut scene);
    assert_eq!(scene.press(&[Press::Enter, Press::Char('n'), Press::Char('y')]), [], "no is no");
    assert_eq!(
        scene.press(&[Press::Char('r'), Press::Char('y')]),
        [Wish::Decide(TaskId(29), Decision::Retry)]
    );
    scene.press(&[Press::Char('c')]);
    shown("cancel", &mut scene);
    assert_eq!(scene.press(&[Press::Char('y')]), [Wish::Decide(TaskId(29), Decision::Cancel)]);
}

#[test]
fn a_verdict_is_edited() {
    let mut scene = quiet();
    scene.press(&[Press::Char('e'), Press::Enter, Press::Down]);
    shown("edit", &mut scene);
    scene.press(&[Press::Char('4'), Press::Char('1'), Press::Enter]);
    scene.type_in("Seen on 3 machines\u{7}?");
    scene.press(&[Press::Backspace]);
    shown("edit_reason", &mut scene);
    let (task, reason) = (TaskId(29), "Seen on 3 machines".to_owned());
    assert_eq!(
        scene.press(&ENTER),
        [Wish::Decide(task, Decision::Edit { verdict: FinalWord::Approved, reason })]
    );
}

#[test]
fn a_finding_is_disputed() {
    let mut scene = quiet();
    scene.press(&[Press::Enter, Press::Char('x')]);
    assert!(scene.text(SMALL).contains("choose a finding first: pane 2"));
    scene.press(&[Press::Char('2'), Press::Down, Press::Char('x')]);
    shown("dispute", &mut scene);
    assert_eq!(scene.press(&ENTER), []);
    assert!(scene.text(SMALL).contains("say why it is wrong"));
    scene.type_in("it is spelled so");
    let wishes = decided(scene.press(&ENTER));
    let [Wish::Decide(task, Decision::Dispute { finding, reason })] = wishes.as_slice() else {
        panic!("{wishes:?}")
    };
    assert!(finding.as_str().starts_with("f-"));
    assert_eq!((*task, reason.as_str()), (TaskId(29), "it is spelled so"));
}

#[test]
fn help_names_all_keys() {
    let mut scene = quiet();
    scene.press(&[Press::Char('?')]);
    shown("help", &mut scene);
    scene.press(&[Press::Down, Press::Down, Press::Esc]);
    assert!(!scene.text(SMALL).contains("this help"));
}

#[test]
fn leaving_is_confirmed_only_where_work_is_done() {
    let mut scene = quiet();
    assert_eq!(scene.press(&[Press::Char('q')]), []);
    shown("leave", &mut scene);
    assert_eq!(scene.press(&[Press::Char('y')]), [Wish::Quit]);
    for mode in [Mode::Watching, Mode::Replaying] {
        let mut scene = Scene::shown(judged(), mode, Ink::Color);
        scene.press(&[Press::Esc]);
        assert_eq!(scene.press(&[Press::Char('q')]), [Wish::Quit]);
    }
}
