//! Inbox hints in the UI: interrupted runs, and tasks that need a person.

use crossterm::event::KeyCode;
use std::collections::BTreeSet;

use jiff::SignedDuration;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use signoff_core::ids::RunId;
use signoff_core::machine::OutcomeKind;
use signoff_core::machine::{Event, FinalVerdict};
use signoff_core::view::inbox::{InboxHints, ProjectSnapshot as Listed};
use signoff_core::view::{Badge, TaskRow, TaskStatus};
use signoff_core::wire::{Fact, LoopFact};
use signoff_term::tui::{Theme, TuiMode};

use super::scene::{LARGE, SMALL, Scene, busy, judged, limited, queued, text};
use crate::rows::{ended, row};
use crate::story::{Story, id, reviewed};

/// Run 3 with or without a running process.
fn inbox_hints(tasks: &[TaskRow], is_driven: bool) -> InboxHints {
    let runs = BTreeSet::from([3]);
    let driven = if is_driven { runs.clone() } else { BTreeSet::new() };
    let left = runs.difference(&driven).copied().map(RunId).collect();
    InboxHints::new(&Listed { tasks, runs: &[], driven: &driven }, left)
}

/// The tasks of a story as store rows.
fn rows(story: &Story) -> Vec<TaskRow> {
    let row_of = |view: signoff_core::view::LoopRow| {
        let row = row(view.task?.0, &view.title, view.status);
        Some(TaskRow { outcome: view.outcome, reason: view.reason, ..row })
    };
    story.view.rows().into_iter().filter_map(row_of).collect()
}

fn watched(story: Story) -> Scene {
    Scene::shown(story, TuiMode::Watching, Theme::Plain)
}

/// The screen a minute later.
fn a_minute_later(scene: &mut Scene) -> String {
    let now = scene.now() + SignedDuration::from_mins(1);
    let mut terminal = Terminal::new(TestBackend::new(SMALL.0, SMALL.1)).expect("a screen");
    terminal.draw(|frame| scene.tui.draw(frame, now)).expect("a frame");
    text(terminal.backend().buffer())
}

#[test]
fn runs_without_a_process_are_interrupted_and_their_clock_stops() {
    let mut scene = watched(busy());
    let tasks = rows(&scene.story);
    scene.tui.set_inbox_hints(inbox_hints(&tasks, false));
    insta::assert_snapshot!("interrupted_80x24", scene.text(SMALL));
    insta::assert_snapshot!("interrupted_200x60", scene.text(LARGE));
    let screen = scene.text(LARGE);
    assert!(screen.contains("5 interrupted") && !screen.contains("at work"), "{screen}");
    assert!(screen.contains("interrupted: signoff work 22"), "{screen}");
    assert_eq!(a_minute_later(&mut scene), scene.text(SMALL));
}

#[test]
fn a_new_process_resumes_interrupted_runs() {
    let mut scene = watched(Story::task(reviewed("loops")));
    let tasks = rows(&scene.story);
    scene.tui.set_inbox_hints(inbox_hints(&tasks, false));
    assert!(scene.text(SMALL).contains("! 1 needs you"), "{}", scene.text(SMALL));
    scene.tui.set_inbox_hints(inbox_hints(&tasks, true));
    let screen = scene.text(SMALL);
    assert!(screen.contains("no attention needed") && screen.contains("1 at work"), "{screen}");
    assert!(!screen.contains("interrupted"), "{screen}");
    assert_ne!(a_minute_later(&mut scene), screen, "its clock continues");
}

/// The process that works on a run knows it before the store does.
#[test]
fn own_runs_are_never_interrupted() {
    let mut scene = Scene::new(Story::task(reviewed("loops")));
    let tasks = rows(&scene.story);
    scene.tui.set_inbox_hints(inbox_hints(&tasks, false));
    assert!(scene.text(SMALL).contains("1 at work"), "{}", scene.text(SMALL));
}

/// A story whose only task ended without approval.
fn exhausted() -> Story {
    let missing = (signoff_core::review::Severity::Critical, "src/auth.rs:12", "missing input validation");
    let mut story = Story::task(reviewed("task"));
    while !story.view.loop_state(&id(29)).is_some_and(|machine| machine.is_done()) {
        story = story.works().objects("general", &[missing]);
    }
    assert_eq!(story.view.row(&id(29)).and_then(|row| row.outcome), Some(OutcomeKind::Exhausted));
    assert_eq!(story.view.row(&id(29)).map(|row| row.badge), Some(Badge::Done));
    story
}

#[test]
fn row_and_run_agree_about_an_ended_task() {
    let mut scene = watched(exhausted());
    let screen = scene.text(SMALL);
    assert!(screen.contains("! 1 needs you") && screen.contains("1 unsettled"), "{screen}");
    assert!(!screen.contains("stuck"), "{screen}");
}

#[test]
fn a_task_continued_by_a_later_one_needs_no_person() {
    let mut scene = watched(exhausted());
    let old =
        ended(row(29, "Add user authentication", TaskStatus::Completed), "exhausted", "MAX_CYCLES_REACHED", "", 3);
    let next = row(31, "Improve it", TaskStatus::Completed);
    let next = TaskRow { continues: Some(29), run_id: Some(4), ..ended(next, "approved", "APPROVED", "", 1) };
    scene.tui.set_inbox_hints(inbox_hints(std::slice::from_ref(&old), false));
    assert!(scene.text(SMALL).contains("! 1 needs you"), "{}", scene.text(SMALL));
    scene.tui.set_inbox_hints(inbox_hints(&[old, next], false));
    let screen = scene.text(SMALL);
    assert!(screen.contains("no attention needed") && screen.contains("1/1  1 done"), "{screen}");
}

#[test]
fn the_clock_of_an_idle_run_stops_when_a_person_ends_its_last_task() {
    // No process works on the run, so only the task changes.
    let (by, reason) = ("ann".to_owned(), String::new());
    let edited = Event::PersonEdited { verdict: FinalVerdict::Approved, by, reason, head: None, findings: Vec::new() };
    let mut story = judged();
    story.record(Fact::Loop(id(29), LoopFact::Transitioned(edited)));
    let mut scene = watched(story);
    let tasks = rows(&scene.story);
    scene.tui.set_inbox_hints(inbox_hints(&tasks, false));
    assert_eq!(a_minute_later(&mut scene), scene.text(SMALL));
}

#[test]
fn a_rate_limited_task_of_a_running_process_needs_no_person() {
    let mut scene = watched(limited(Story::task(reviewed("loops"))));
    assert!(scene.text(SMALL).contains("! 1 needs you"), "{}", scene.text(SMALL));
    let tasks = rows(&scene.story);
    scene.tui.set_inbox_hints(inbox_hints(&tasks, true));
    let screen = scene.text(SMALL);
    assert!(screen.contains("no attention needed") && screen.contains("PAUSED"), "{screen}");
    scene.tui.set_inbox_hints(inbox_hints(&tasks, false));
    assert!(scene.text(SMALL).contains("! 1 needs you"), "{}", scene.text(SMALL));
}

#[test]
fn a_queued_task_that_depends_on_a_failed_one_needs_a_person() {
    let mut scene = watched(Story::task(reviewed("loops")).gives_up("no way"));
    let waits = TaskRow { depends_on: vec![29], run_id: None, ..row(40, "Greet people by name", TaskStatus::Pending) };
    let mut tasks = rows(&scene.story);
    tasks.push(TaskRow { status: TaskStatus::Blocked, ..waits.clone() });
    scene.tui.set_queue(vec![waits]);
    scene.tui.set_inbox_hints(inbox_hints(&tasks, false));
    let screen = scene.text(LARGE);
    assert!(screen.contains("! 2 need you") && screen.contains("waits for #29 (stuck): signoff retry 29"), "{screen}");
}

/// A process starts a run with the first task of the queue.
fn take_task_from_queue(scene: &mut Scene) {
    let story = Story::new(reviewed("loops")).plan(&[&[(40, "Greet people by name")]]).starts(40);
    story.in_run(4).iter().for_each(|transition| scene.tui.apply(transition));
}

fn selected_row(scene: &mut Scene) -> String {
    let shown = scene.text(LARGE);
    shown.lines().find(|line| line.starts_with('>')).map(|line| line[..30].trim_end().to_owned()).unwrap_or_default()
}

/// The events of the run may arrive before or after the new queue.
#[test]
fn the_selection_follows_a_task_out_of_the_queue() {
    for facts_first in [true, false] {
        let mut scene = watched(busy());
        scene.tui.set_queue(queued());
        scene.draw(SMALL);
        scene.press(&[KeyCode::End, KeyCode::Up, KeyCode::Up]);
        assert_eq!(selected_row(&mut scene), "> WAIT    #40 Greet people by");
        if facts_first {
            take_task_from_queue(&mut scene);
            assert_eq!(selected_row(&mut scene), "> WORK    #40 Greet people by");
        }
        scene.tui.set_queue(queued().split_off(1));
        scene.draw(LARGE);
        if !facts_first {
            take_task_from_queue(&mut scene);
        }
        assert_eq!(selected_row(&mut scene), "> WORK    #40 Greet people by");
        scene.press(&[KeyCode::Char('c')]);
        assert!(scene.text(LARGE).contains("#40"), "{}", scene.text(LARGE));
    }
}

#[test]
fn a_neighbour_is_selected_when_a_task_is_cancelled() {
    let mut scene = watched(busy());
    scene.tui.set_queue(queued());
    scene.draw(SMALL);
    scene.press(&[KeyCode::End, KeyCode::Up, KeyCode::Up]);
    scene.tui.set_queue(queued().split_off(1));
    assert_eq!(selected_row(&mut scene), "> WAIT    #41 Say goodbye");
}

#[test]
fn an_open_queued_task_switches_to_its_loop() {
    let mut scene = watched(busy());
    scene.tui.set_queue(queued());
    scene.draw(SMALL);
    scene.press(&[KeyCode::End, KeyCode::Up, KeyCode::Up, KeyCode::Enter, KeyCode::Char('5')]);
    assert!(scene.text(SMALL).contains("no events yet"), "{}", scene.text(SMALL));
    take_task_from_queue(&mut scene);
    let screen = scene.text(SMALL);
    assert!(screen.starts_with("WORK  #40 Greet people by name"), "{screen}");
    assert!(screen.contains("started: implement"), "{screen}");
}

#[test]
fn reset_clears_the_screen() {
    let mut scene = watched(judged());
    scene.tui.set_queue(queued());
    scene.draw(SMALL);
    scene.press(&[KeyCode::Char('o'), KeyCode::Char('2')]);
    scene.tui.reset();
    let screen = scene.text(SMALL);
    assert!(screen.contains("signoff shop  nothing to show yet  watching"), "{screen}");
    assert!(!screen.contains('#'), "{screen}");
}
