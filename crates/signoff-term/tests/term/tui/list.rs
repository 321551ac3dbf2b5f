//! The list of all loops.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use signoff_core::ids::{AttemptId, RunId};
use signoff_core::view::Badge;
use signoff_term::tui::{ReplayControl, ReplayState, Theme, TuiData, TuiMode, TuiRequest};

use super::scene::{LARGE, SMALL, Scene, TINY, busy, checking, judged, queued, spawning};
use crate::story::{Story, id, reviewed};

fn full_scene() -> Scene {
    let mut scene = Scene::new(busy()).with_run(&judged());
    scene.tui.set_queue(queued());
    scene.tui.add_live_line(
        RunId(3),
        &id(24),
        AttemptId(1),
        "Reading \x1b[2Jsrc/mail.rs\u{202e} to see who sends mails",
    );
    // Postpone the question.
    scene.press(&[KeyCode::Esc, KeyCode::Down]);
    scene.press(&[KeyCode::Up]);
    scene
}

#[test]
fn rows_that_need_a_person_come_first() {
    let mut scene = full_scene();
    insta::assert_snapshot!("list_80x24", scene.text(SMALL));
    insta::assert_snapshot!("list_200x60", scene.text(LARGE));
    insta::assert_snapshot!("list_20x5", scene.text(TINY));
}

#[test]
fn the_smallest_screens_show_the_most_important_parts() {
    let mut scene = full_scene();
    let sizes = [(40, 10), (20, 3), (20, 2), (20, 1), (9, 2), (1, 1)];
    let shown: Vec<_> = sizes.iter().map(|size| format!("{size:?}\n{}", scene.text(*size))).collect();
    insta::assert_snapshot!("list_smallest", shown.join("\n\n"));
}

#[test]
fn every_badge_has_its_screen() {
    let bug = (signoff_core::review::Severity::Critical, "a.rs:1", "wrong");
    let new_story = || Story::task(reviewed("loops"));
    let stories = [
        (Badge::Wait, Story::new(reviewed("loops")).plan(&[&[(29, "Add user authentication")]])),
        (Badge::Spawn, spawning()),
        (Badge::Work, new_story()),
        (Badge::Check, checking()),
        (Badge::Review, new_story().works()),
        (Badge::Fix, new_story().works().objects("general", &[bug])),
        (Badge::Land, new_story().works().approves("general").then(signoff_core::machine::Event::LandingGranted)),
        (Badge::Ask, judged()),
        (Badge::Paused, super::scene::limited(new_story())),
        (
            Badge::Done,
            new_story().works().approves("general").then(signoff_core::machine::Event::LandingGranted).lands(),
        ),
        (Badge::Stuck, new_story().gives_up("no way")),
    ];
    for (badge, story) in stories {
        assert_eq!(story.view.row(&id(29)).map(|row| row.badge), Some(badge));
        let name = badge.into_str().to_lowercase();
        let mut scene = Scene::shown(story, TuiMode::Replaying, Theme::Plain);
        insta::assert_snapshot!(format!("badge_{name}_80x24"), scene.text(SMALL));
        insta::assert_snapshot!(format!("badge_{name}_200x60"), scene.text(LARGE));
    }
}

#[test]
fn the_selection_follows_its_row() {
    let chosen = |scene: &mut Scene| {
        let shown = scene.text(LARGE);
        shown.lines().find(|line| line.starts_with('>')).map(|line| line[..40].trim_end().to_owned())
    };
    let mut scene = Scene::new(busy());
    scene.draw(SMALL);
    scene.press(&[KeyCode::Down, KeyCode::Down]);
    insta::assert_snapshot!(chosen(&mut scene).unwrap(), @"> REVIEW  #22 Log in with a password");
    let mut scene = scene.then(|story| story.on(22).approves("general"));
    insta::assert_snapshot!(chosen(&mut scene).unwrap(), @"> WAIT    #22 Log in with a password");
    scene.press(&[KeyCode::Home]);
    insta::assert_snapshot!(chosen(&mut scene).unwrap(), @"> STUCK   #26 Refuse passwords that are");
    scene.press(&[KeyCode::End]);
    insta::assert_snapshot!(chosen(&mut scene).unwrap(), @"> DONE    #21 Read the configuration onc");
}

#[test]
fn a_thousand_loops_scroll() {
    let tasks: Vec<(u64, String)> = (1..=1000).map(|task| (task, format!("Task {task}"))).collect();
    let group: Vec<(u64, &str)> = tasks.iter().map(|(task, title)| (*task, title.as_str())).collect();
    let mut scene = Scene::new(Story::new(reviewed("loops")).plan(&[&group]).starts(500));
    scene.draw(SMALL);
    scene.press(&[KeyCode::PageDown, KeyCode::PageDown, KeyCode::Down]);
    insta::assert_snapshot!("list_of_a_thousand", scene.text(SMALL));
    scene.press(&[KeyCode::End]);
    assert!(scene.text(SMALL).contains("> WAIT    #1000 Task 1000"));
}

#[test]
fn the_plain_theme_has_no_colors_and_the_same_text() {
    let mut scene = Scene::shown(busy(), TuiMode::Watching, Theme::Plain);
    let buffer = scene.draw(SMALL);
    let plain = |cell: &ratatui::buffer::Cell| {
        (cell.fg, cell.bg) == (ratatui::style::Color::Reset, ratatui::style::Color::Reset)
    };
    assert!(buffer.content().iter().all(plain));
    let colored = Scene::shown(busy(), TuiMode::Watching, Theme::Color).text(SMALL);
    assert_eq!(super::scene::text(&buffer), colored);
}

#[test]
fn a_frame_is_needed_on_changes_and_once_a_second() {
    let mut scene = Scene::new(busy());
    let now = scene.now();
    assert!(scene.tui.needs_frame(now));
    scene.draw(SMALL);
    assert!(!scene.tui.needs_frame(now));
    assert!(scene.tui.needs_frame(now + jiff::SignedDuration::from_secs(1)));
    scene.tui.add_live_line(RunId(3), &id(24), AttemptId(1), "Reading");
    assert!(scene.tui.needs_frame(now));
}

#[test]
fn a_replay_shows_its_speed_and_no_questions() {
    let mut scene = Scene::shown(judged(), TuiMode::Replaying, Theme::Color);
    scene.tui.receive(TuiData::ReplayState(ReplayState { speed: "4×".into(), paused: true, ended: false }));
    let requests = scene.press(&[KeyCode::Char(' '), KeyCode::Char('+'), KeyCode::Char('-'), KeyCode::Char('c')]);
    assert_eq!(requests, [ReplayControl::Pause, ReplayControl::Faster, ReplayControl::Slower].map(TuiRequest::Replay));
    insta::assert_snapshot!("replay_80x24", scene.text(SMALL));
}

#[test]
fn a_replay_has_no_action_keys() {
    let mut scene = Scene::shown(judged(), TuiMode::Replaying, Theme::Color);
    scene.press(&[KeyCode::Enter, KeyCode::Char('2')]);
    insta::assert_snapshot!(
        scene.text(SMALL).lines().last().unwrap(),
        @"? help  Esc back  1-5 panes  ↑↓ scroll  Space pause  + - speed  q leave"
    );
}

/// A run whose only task is done or cancelled.
fn ended_run(cancelled: bool) -> Story {
    let story = Story::task(reviewed("task"));
    if cancelled {
        return story.then(signoff_core::machine::Event::Cancelled { by: "ada".to_owned() });
    }
    let story = story.works().approves("general");
    assert!(matches!(story.view.stage(), signoff_core::group::RunStage::Done(_)));
    story
}

#[test]
fn the_clocks_of_ended_loops_stop() {
    let mut scene = Scene::shown(ended_run(false), TuiMode::Watching, Theme::Plain);
    let clocks = |shown: &str| -> Vec<String> {
        let elapsed = |line: &str| line.split("  ").find(|part| part.contains(':')).unwrap_or("none").to_owned();
        shown.lines().take(2).map(elapsed).collect()
    };
    let now = clocks(&scene.text(LARGE));
    let then = scene.now() + jiff::SignedDuration::from_hours(5);
    let mut terminal = ratatui::Terminal::new(ratatui::backend::TestBackend::new(200, 60)).unwrap();
    terminal.draw(|frame| scene.tui.draw(frame, then)).unwrap();
    assert_eq!(clocks(&super::scene::text(terminal.backend().buffer())), now);
}

#[test]
fn cancelled_tasks_count_the_same_everywhere() {
    let mut scene = Scene::shown(ended_run(true), TuiMode::Watching, Theme::Plain);
    let shown = scene.text(SMALL);
    let lines: Vec<_> = shown.lines().take(2).collect();
    assert!(lines.iter().all(|line| line.contains("1/1")), "{lines:?}");
}

#[test]
fn active_runs_come_before_ended_ones() {
    let mut scene = Scene::shown(ended_run(false), TuiMode::Watching, Theme::Plain);
    for run in 10..20 {
        ended_run(false).in_run(run).iter().for_each(|transition| scene.tui.apply(transition));
    }
    busy().in_run(30).iter().for_each(|transition| scene.tui.apply(transition));
    let shown = scene.text(SMALL);
    let lines: Vec<_> = shown.lines().skip(1).take(4).collect();
    assert!(lines[0].starts_with("run 30 "), "{shown}");
    assert!(lines[3].ends_with("  +8 more"), "{shown}");
}

#[test]
fn an_interrupt_shows_what_happens_next() {
    let mut scene = Scene::new(judged());
    assert_eq!(scene.press(&[KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)]), [TuiRequest::Interrupt]);
    scene.tui.set_shutting_down();
    let shown = scene.text(SMALL);
    insta::assert_snapshot!(shown.lines().last().unwrap(), @"finishing; Ctrl-C again stops the agents");
    assert!(!shown.contains("Question"), "no questions after an interrupt");
}

#[test]
fn a_task_that_ended_without_approval_needs_a_person() {
    let bug = (signoff_core::review::Severity::Critical, "a.rs:1", "wrong");
    let mut story = Story::task(reviewed("task"));
    while !story.jobs().is_empty() {
        story = story.works().objects("general", &[bug]);
    }
    let mut scene = Scene::shown(story, TuiMode::Watching, Theme::Plain);
    let shown = scene.text(SMALL);
    let first = shown.lines().next().unwrap();
    assert!(first.ends_with("! 1 needs you"), "{shown}");
    insta::assert_snapshot!(shown.lines().find(|line| line.starts_with("> ")).unwrap(), @"> DONE    #29 Add user authentica…  review 3/3  04:00  $0.72  MAX_CYCLES_REACHE…");
    insta::assert_snapshot!(scene.text((20, 2)), @"
    1 unsettled
    > DONE    #29 Add u…
    ");
    let signed = Scene::shown(ended_run(false), TuiMode::Watching, Theme::Plain).text(SMALL);
    assert!(signed.lines().next().unwrap().ends_with("no attention needed"), "{signed}");
}
