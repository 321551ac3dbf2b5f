//! The panes of an open loop.

use crossterm::event::KeyCode;
use signoff_core::ids::{AttemptId, RunId, TaskId};
use signoff_term::tui::{DataRequest, Theme, TuiData, TuiMode, TuiRequest};

use super::scene::{LARGE, SMALL, Scene, TINY, judged};
use crate::story::{Story, id, reviewed};

/// Opens the only task at one of its panes.
fn opened(pane: char) -> Scene {
    let mut scene = Scene::new(judged());
    scene.press(&[KeyCode::Esc, KeyCode::Enter, KeyCode::Char(pane)]);
    scene
}

fn assert_snapshots(name: &str, scene: &mut Scene) {
    insta::assert_snapshot!(format!("{name}_80x24"), scene.text(SMALL));
    insta::assert_snapshot!(format!("{name}_200x60"), scene.text(LARGE));
    insta::assert_snapshot!(format!("{name}_20x5"), scene.text(TINY));
}

#[test]
fn reviews_stand_side_by_side() {
    let mut scene = opened('1');
    scene.press(&[KeyCode::Char('['), KeyCode::Char('[')]);
    assert_snapshots("reviews", &mut scene);
    insta::assert_snapshot!("reviews_stacked", scene.text((50, 30)));
    let round = |scene: &mut Scene| scene.text(SMALL).lines().nth(2).map(|line| line[..12].to_owned()).unwrap();
    assert_eq!(round(&mut scene), "Cycle 1 of 3");
    scene.press(&[KeyCode::Char('['), KeyCode::Char(']')]);
    assert_eq!(round(&mut scene), "Cycle 2 of 3");
    scene.press(&[KeyCode::Char(']'), KeyCode::Char(']')]);
    assert_eq!(round(&mut scene), "Cycle 3 of 3");
}

#[test]
fn findings_have_a_history() {
    let mut scene = opened('2');
    assert_snapshots("findings", &mut scene);
    scene.press(&[KeyCode::End]);
    insta::assert_snapshot!("findings_last", scene.text(SMALL));
}

#[test]
fn a_diff_shows_findings_at_their_lines() {
    let mut scene = opened('3');
    assert_snapshots("diff", &mut scene);
    let buffer = scene.draw(LARGE);
    let colors: std::collections::BTreeSet<String> =
        buffer.content().iter().map(|cell| format!("{:?}", cell.fg)).collect();
    assert!(colors.len() >= 6, "code is colored: {colors:?}");
    let mut plain = Scene::shown(judged(), TuiMode::Watching, Theme::Plain);
    plain.press(&[KeyCode::Esc, KeyCode::Enter, KeyCode::Char('3')]);
    assert!(plain.draw(LARGE).content().iter().all(|cell| cell.fg == ratatui::style::Color::Reset));
    assert_eq!(plain.text(SMALL), scene.text(SMALL), "without colors it says the same");
}

#[test]
fn a_transcript_follows_its_end_unless_scrolled() {
    let mut scene = opened('4');
    assert_snapshots("transcript", &mut scene);
    let attempt = match scene.press(&[KeyCode::Char('[')]).as_slice() {
        [TuiRequest::Load(DataRequest::Transcript { attempt, .. })] => *attempt,
        requests => panic!("{requests:?}"),
    };
    let more = |scene: &mut Scene, text: String| {
        scene.tui.receive(TuiData::Transcript { run: RunId(3), loop_id: id(29), attempt, text });
        scene.text(SMALL)
    };
    let many: String = (1..100).map(|line| format!("\nline {line}")).collect();
    assert!(more(&mut scene, many).contains("line 99"));
    scene.press(&[KeyCode::Up]);
    assert!(!more(&mut scene, "\nline 100".into()).contains("line 100"));
    scene.press(&[KeyCode::End]);
    assert!(more(&mut scene, "\nline 101".into()).contains("line 101"));
    let other = TuiData::Transcript { run: RunId(3), loop_id: id(29), attempt: AttemptId(77), text: "no".into() };
    scene.tui.receive(other);
    assert!(!scene.text(SMALL).lines().any(|line| line.ends_with("no")), "the request was replaced");
}

#[test]
fn live_lines_are_shown_until_the_transcript_arrives() {
    let story = Story::task(reviewed("task"));
    let mut tui = signoff_term::tui::Tui::new(TuiMode::Watching, Theme::Color);
    story.transitions.iter().for_each(|transition| tui.apply(transition));
    let now = story.view.last_at.expect("a fact");
    tui.handle_key(KeyCode::Enter, now);
    let requests = tui.handle_key(KeyCode::Char('4'), now);
    assert!(requests.contains(&TuiRequest::Load(DataRequest::Transcript {
        run: RunId(3),
        loop_id: id(29),
        attempt: AttemptId(1)
    })));
    tui.add_live_line(RunId(3), &id(29), AttemptId(1), "Reading src/auth.rs");
    let mut scene = Scene { tui, story };
    assert!(scene.text(SMALL).lines().nth(3).unwrap().contains("Reading src/auth.rs"));
}

#[test]
fn events_are_listed_in_order() {
    assert_snapshots("events", &mut opened('5'));
}

#[test]
fn a_new_event_requests_the_report_once() {
    let mut scene = opened('1');
    assert_eq!(scene.tui.requests(), []);
    let length = scene.story.log.len();
    scene.story = scene.story.person(signoff_core::machine::Choice::Stop);
    scene.story.transitions[length..].iter().for_each(|transition| scene.tui.apply(transition));
    assert_eq!(scene.tui.requests(), [TuiRequest::Load(DataRequest::Report(TaskId(29)))]);
    assert_eq!(scene.tui.requests(), [], "it is under way");
}

#[test]
fn loops_without_a_task_have_only_events_and_transcripts() {
    let workflow = reviewed("loops").workflow;
    let planning = signoff_core::machine::Policy::new(workflow.run_level_workflow(&workflow.before));
    let story = Story::new(reviewed("loops")).serves(signoff_core::ids::LoopId::planning(), planning);
    let mut scene = Scene::new(story);
    assert_eq!(scene.press(&[KeyCode::Enter]), []);
    insta::assert_snapshot!("planning_80x24", scene.text(SMALL));
    scene.press(&[KeyCode::Char('1')]);
    assert!(scene.text(SMALL).contains("run-level loops have no reviews of their own"));
}
