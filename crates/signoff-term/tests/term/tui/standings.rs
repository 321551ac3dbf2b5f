//! What the screen is told besides the logs: who works, and what needs somebody by the rule of `signoff`.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use signoff_core::ids::RunId;
use signoff_core::machine::{Event, FinalWord};
use signoff_core::view::{Badge, Status, TaskRow};
use signoff_core::wire::{Fact, LoopFact, Recorded};
use signoff_term::attention::Scene as Listed;
use signoff_term::tui::{Ink, Mode, Press, Standings};

use super::scene::{LARGE, SMALL, Scene, busy, judged, limited, queued, text};
use crate::rows::{ended, row};
use crate::story::{Story, id, reviewed};

/// Run 3 is worked on, or by nobody.
fn standings(tasks: &[TaskRow], is_driven: bool) -> Standings {
    let runs = BTreeSet::from([3]);
    let driven = if is_driven { runs.clone() } else { BTreeSet::new() };
    let left = runs.difference(&driven).copied().map(RunId).collect();
    Standings::of(&Listed { tasks, runs: &[], driven: &driven }, left)
}

/// The tasks of a story, as the store keeps them.
fn rows(story: &Story) -> Vec<TaskRow> {
    let row_of = |view: signoff_core::view::LoopView| {
        let row = row(view.task?.0, &view.title, view.status);
        let reason = view.reason.map(|reason| reason.word());
        Some(TaskRow { outcome: view.outcome.map(str::to_owned), reason, ..row })
    };
    story.view.rows().into_iter().filter_map(row_of).collect()
}

fn watched(story: Story) -> Scene {
    Scene::shown(story, Mode::Watching, Ink::Plain)
}

/// What is drawn a minute later.
fn later(scene: &mut Scene) -> String {
    let now = scene.now() + SignedDuration::from_mins(1);
    let mut terminal = Terminal::new(TestBackend::new(SMALL.0, SMALL.1)).expect("a screen");
    terminal.draw(|frame| scene.tui.draw(frame, now)).expect("a frame");
    text(terminal.backend().buffer())
}

#[test]
fn what_nobody_works_on_is_interrupted_and_its_clock_stands() {
    let mut scene = watched(busy());
    let tasks = rows(&scene.story);
    scene.tui.standings(standings(&tasks, false));
    insta::assert_snapshot!("interrupted_80x24", scene.text(SMALL));
    insta::assert_snapshot!("interrupted_200x60", scene.text(LARGE));
    let told = scene.text(LARGE);
    assert!(told.contains("5 begun") && !told.contains("at work"), "{told}");
    assert!(told.contains("interrupted: signoff work 22"), "{told}");
    assert_eq!(later(&mut scene), scene.text(SMALL));
}

#[test]
fn a_program_that_comes_takes_up_what_was_interrupted() {
    let mut scene = watched(Story::task(reviewed("loops")));
    let tasks = rows(&scene.story);
    scene.tui.standings(standings(&tasks, false));
    assert!(scene.text(SMALL).contains("! 1 needs you"), "{}", scene.text(SMALL));
    scene.tui.standings(standings(&tasks, true));
    let told = scene.text(SMALL);
    assert!(told.contains("nothing needs you") && told.contains("1 at work"), "{told}");
    assert!(!told.contains("interrupted"), "{told}");
    assert_ne!(later(&mut scene), told, "its clock goes on");
}

/// Whoever works knows that it does, before the store has heard of it.
#[test]
fn what_this_program_works_on_is_never_interrupted() {
    let mut scene = Scene::new(Story::task(reviewed("loops")));
    let tasks = rows(&scene.story);
    scene.tui.standings(standings(&tasks, false));
    assert!(scene.text(SMALL).contains("1 at work"), "{}", scene.text(SMALL));
}

/// A story whose only task is at its end without sign-off.
fn exhausted() -> Story {
    let missing = (signoff_core::review::Severity::Critical, "src/auth.rs:12", "missing input validation");
    let mut story = Story::task(reviewed("task"));
    while !story.view.loop_state(&id(29)).is_some_and(|this| this.is_done()) {
        story = story.works().objects("general", &[missing]);
    }
    assert_eq!(story.view.row(&id(29)).and_then(|row| row.outcome), Some("exhausted"));
    assert_eq!(story.view.row(&id(29)).map(|row| row.badge), Some(Badge::Done));
    story
}

#[test]
fn what_is_at_its_end_is_called_the_same_in_its_row_and_in_its_run() {
    let mut scene = watched(exhausted());
    let told = scene.text(SMALL);
    assert!(told.contains("! 1 needs you") && told.contains("1 unsettled"), "{told}");
    assert!(!told.contains("stuck"), "{told}");
}

#[test]
fn what_a_later_task_has_settled_needs_nobody() {
    let mut scene = watched(exhausted());
    let old = ended(row(29, "Add user authentication", Status::Completed), "exhausted", "EXHAUSTED", "", 3);
    let next = row(31, "Improve it", Status::Completed);
    let next = TaskRow { continues: Some(29), run_id: Some(4), ..ended(next, "approved", "APPROVED", "", 1) };
    scene.tui.standings(standings(std::slice::from_ref(&old), false));
    assert!(scene.text(SMALL).contains("! 1 needs you"), "{}", scene.text(SMALL));
    scene.tui.standings(standings(&[old, next], false));
    let told = scene.text(SMALL);
    assert!(told.contains("nothing needs you") && told.contains("1/1  1 done"), "{told}");
}

#[test]
fn a_run_that_nobody_works_on_stands_still_when_a_person_ended_its_last_task() {
    // Nobody drives the run, so nothing but the task moves.
    let (by, reason) = ("ann".to_owned(), String::new());
    let edited =
        Event::PersonEdited { verdict: FinalWord::Approved, by, reason, head: None, findings: Vec::new() };
    let mut story = judged();
    story.record(Fact::Loop(id(29), LoopFact::Moved(edited)));
    let mut scene = watched(story);
    let tasks = rows(&scene.story);
    scene.tui.standings(standings(&tasks, false));
    assert_eq!(later(&mut scene), scene.text(SMALL));
}

#[test]
fn what_goes_on_by_itself_needs_nobody() {
    let mut scene = watched(limited(Story::task(reviewed("loops"))));
    assert!(scene.text(SMALL).contains("! 1 needs you"), "{}", scene.text(SMALL));
    let tasks = rows(&scene.story);
    scene.tui.standings(standings(&tasks, true));
    let told = scene.text(SMALL);
    assert!(told.contains("nothing needs you") && told.contains("PAUSED"), "{told}");
    scene.tui.standings(standings(&tasks, false));
    assert!(scene.text(SMALL).contains("! 1 needs you"), "{}", scene.text(SMALL));
}

#[test]
fn what_waits_in_the_queue_for_what_failed_needs_somebody() {
    let mut scene = watched(Story::task(reviewed("loops")).gives_up("no way"));
    let waits =
        TaskRow { depends_on: vec![29], run_id: None, ..row(40, "Greet people by name", Status::Pending) };
    let mut tasks = rows(&scene.story);
    tasks.push(TaskRow { status: Status::Blocked, ..waits.clone() });
    scene.tui.queue(vec![waits]);
    scene.tui.standings(standings(&tasks, false));
    let told = scene.text(LARGE);
    assert!(
        told.contains("! 2 need you") && told.contains("waits for #29 (stuck): signoff retry 29"),
        "{told}"
    );
}

/// A program takes the first task of the queue up: a run of its own.
fn taken_up(scene: &mut Scene) {
    let story = Story::of(reviewed("loops")).plan(&[&[(40, "Greet people by name")]]).starts(40);
    for recorded in &story.log {
        scene.tui.take(&Recorded { run: RunId(4), ..recorded.clone() });
    }
}

fn chosen(scene: &mut Scene) -> String {
    let shown = scene.text(LARGE);
    shown
        .lines()
        .find(|line| line.starts_with('>'))
        .map(|line| line[..30].trim_end().to_owned())
        .unwrap_or_default()
}

/// The facts may come before the queue without it, or after it.
#[test]
fn a_chosen_task_stays_chosen_when_it_is_taken_up_from_the_queue() {
    for facts_first in [true, false] {
        let mut scene = watched(busy());
        scene.tui.queue(queued());
        scene.draw(SMALL);
        scene.press(&[Press::End, Press::Up, Press::Up]);
        assert_eq!(chosen(&mut scene), "> WAIT    #40 Greet people by");
        if facts_first {
            taken_up(&mut scene);
            assert_eq!(chosen(&mut scene), "> WORK    #40 Greet people by");
        }
        scene.tui.queue(queued().split_off(1));
        scene.draw(LARGE);
        if !facts_first {
            taken_up(&mut scene);
        }
        assert_eq!(chosen(&mut scene), "> WORK    #40 Greet people by");
        scene.press(&[Press::Char('c')]);
        assert!(scene.text(LARGE).contains("#40"), "{}", scene.text(LARGE));
    }
}

#[test]
fn what_comes_near_is_chosen_when_a_task_is_called_off() {
    let mut scene = watched(busy());
    scene.tui.queue(queued());
    scene.draw(SMALL);
    scene.press(&[Press::End, Press::Up, Press::Up]);
    scene.tui.queue(queued().split_off(1));
    assert_eq!(chosen(&mut scene), "> WAIT    #41 Say goodbye");
}

#[test]
fn an_opened_task_goes_on_when_it_is_taken_up_from_the_queue() {
    let mut scene = watched(busy());
    scene.tui.queue(queued());
    scene.draw(SMALL);
    scene.press(&[Press::End, Press::Up, Press::Up, Press::Enter, Press::Char('5')]);
    assert!(scene.text(SMALL).contains("nothing has happened yet"), "{}", scene.text(SMALL));
    taken_up(&mut scene);
    let told = scene.text(SMALL);
    assert!(told.starts_with("WORK  #40 Greet people by name"), "{told}");
    assert!(told.contains("started: implement"), "{told}");
}

#[test]
fn another_store_begins_with_an_empty_screen() {
    let mut scene = watched(judged());
    scene.tui.queue(queued());
    scene.draw(SMALL);
    scene.press(&[Press::Char('o'), Press::Char('2')]);
    scene.tui.begin_anew();
    let told = scene.text(SMALL);
    assert!(told.contains("signoff shop  nothing to show yet  watching"), "{told}");
    assert!(!told.contains('#'), "{told}");
}
