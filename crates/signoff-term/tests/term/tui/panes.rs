//! One loop, opened.

use signoff_core::ids::{AttemptId, RunId, TaskId};
use signoff_term::tui::{Errand, Ink, Material, Mode, Press, Wish};

use super::scene::{LARGE, SMALL, Scene, TINY, judged};
use crate::story::{Story, id, reviewed};

/// The only task, opened at one of its panes.
fn opened(pane: char) -> Scene {
    let mut scene = Scene::new(judged());
    scene.press(&[Press::Esc, Press::Enter, Press::Char(pane)]);
    scene
}

fn shown(name: &str, scene: &mut Scene) {
    insta::assert_snapshot!(format!("{name}_80x24"), scene.text(SMALL));
    insta::assert_snapshot!(format!("{name}_200x60"), scene.text(LARGE));
    insta::assert_snapshot!(format!("{name}_20x5"), scene.text(TINY));
}

#[test]
fn reviews_stand_side_by_side() {
    let mut scene = opened('1');
    scene.press(&[Press::Char('['), Press::Char('[')]);
    shown("reviews", &mut scene);
    insta::assert_snapshot!("reviews_stacked", scene.text((50, 30)));
    let round =
        |scene: &mut Scene| scene.text(SMALL).lines().nth(2).map(|line| line[..12].to_owned()).unwrap();
    assert_eq!(round(&mut scene), "Round 1 of 3");
    scene.press(&[Press::Char('['), Press::Char(']')]);
    assert_eq!(round(&mut scene), "Round 2 of 3");
    scene.press(&[Press::Char(']'), Press::Char(']')]);
    assert_eq!(round(&mut scene), "Round 3 of 3");
}

#[test]
fn findings_have_a_history() {
    let mut scene = opened('2');
    shown("findings", &mut scene);
    scene.press(&[Press::End]);
    insta::assert_snapshot!("findings_last", scene.text(SMALL));
}

#[test]
fn a_diff_shows_findings_at_their_lines() {
    let mut scene = opened('3');
    shown("diff", &mut scene);
    let buffer = scene.draw(LARGE);
    let colours: std::collections::BTreeSet<String> =
        buffer.content().iter().map(|cell| format!("{:?}", cell.fg)).collect();
    assert!(colours.len() >= 6, "code is coloured: {colours:?}");
    let mut plain = Scene::shown(judged(), Mode::Watching, Ink::Plain);
    plain.press(&[Press::Esc, Press::Enter, Press::Char('3')]);
    assert!(plain.draw(LARGE).content().iter().all(|cell| cell.fg == ratatui::style::Color::Reset));
    assert_eq!(plain.text(SMALL), scene.text(SMALL), "without colours it says the same");
}

#[test]
fn a_transcript_follows_its_end_unless_somebody_scrolled() {
    let mut scene = opened('4');
    shown("transcript", &mut scene);
    let attempt = match scene.press(&[Press::Char('[')]).as_slice() {
        [Wish::Look(Errand::Transcript { attempt, .. })] => *attempt,
        wishes => panic!("{wishes:?}"),
    };
    let more = |scene: &mut Scene, text: String| {
        scene.tui.supply(Material::Transcript { run: RunId(3), loop_id: id(29), attempt, text });
        scene.text(SMALL)
    };
    let many: String = (1..100).map(|line| format!("\nline {line}")).collect();
    assert!(more(&mut scene, many).contains("line 99"));
    scene.press(&[Press::Up]);
    assert!(!more(&mut scene, "\nline 100".into()).contains("line 100"));
    scene.press(&[Press::End]);
    assert!(more(&mut scene, "\nline 101".into()).contains("line 101"));
    let other =
        Material::Transcript { run: RunId(3), loop_id: id(29), attempt: AttemptId(77), text: "no".into() };
    scene.tui.supply(other);
    assert!(!scene.text(SMALL).lines().any(|line| line.ends_with("no")), "nobody wished for it any more");
}

#[test]
fn live_lines_stand_in_until_a_transcript_is_there() {
    let story = Story::task(reviewed("task"));
    let mut tui = signoff_term::tui::Tui::new(Mode::Watching, Ink::Color);
    tui.catch_up(&story.log);
    let now = story.view.last_at.expect("a fact");
    tui.press(Press::Enter, now);
    let wishes = tui.press(Press::Char('4'), now);
    assert!(wishes.contains(&Wish::Look(Errand::Transcript {
        run: RunId(3),
        loop_id: id(29),
        attempt: AttemptId(1)
    })));
    tui.said(RunId(3), &id(29), AttemptId(1), "Reading src/auth.rs");
    let mut scene = Scene { tui, story };
    assert!(scene.text(SMALL).lines().nth(3).unwrap().contains("Reading src/auth.rs"));
}

#[test]
fn events_are_told_as_they_happened() {
    shown("events", &mut opened('5'));
}

#[test]
fn a_new_fact_asks_for_a_new_report_once() {
    let mut scene = opened('1');
    assert_eq!(scene.tui.wishes(), []);
    let known = scene.story.log.len();
    scene.story = scene.story.person(signoff_core::machine::Choice::Stop);
    scene.story.log[known..].iter().for_each(|recorded| scene.tui.take(recorded));
    assert_eq!(scene.tui.wishes(), [Wish::Look(Errand::Report(TaskId(29)))]);
    assert_eq!(scene.tui.wishes(), [], "it is under way");
}

#[test]
fn what_serves_the_run_has_events_and_transcripts_alone() {
    let workflow = reviewed("loops").workflow;
    let planning = signoff_core::machine::Policy::of(workflow.part(&workflow.before));
    let story = Story::of(reviewed("loops")).serves(signoff_core::ids::LoopId::planning(), planning);
    let mut scene = Scene::new(story);
    assert_eq!(scene.press(&[Press::Enter]), []);
    insta::assert_snapshot!("planning_80x24", scene.text(SMALL));
    scene.press(&[Press::Char('1')]);
    assert!(scene.text(SMALL).contains("only tasks have reviews of their own"));
}
