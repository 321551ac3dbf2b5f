//! Property tests of the UI over logs, keys and screen sizes.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use signoff_core::ids::{AttemptId, LoopId, RunId, TaskId};
use signoff_core::view::{LoopRow, RunState, TaskStatus};
use signoff_core::wire::{Fact, RecordedFact};
use signoff_term::show::TaskReport;
use signoff_term::tui::{Theme, TuiData, TuiMode};

use super::scene::{SMALL, Scene, busy, queued};
use crate::laws::log;
use crate::next_events::next_events;
use crate::rows::row;
use crate::story::{Story, id, reviewed, task_report};

/// The events of one loop, of its checkpoint reviews, and of the run, as the store reads them for one loop.
fn events_of_loop(log: &[RecordedFact], wanted: &LoopId) -> Vec<RecordedFact> {
    let concerns = |recorded: &&RecordedFact| match &recorded.fact {
        Fact::Loop(loop_id, _) => {
            loop_id == wanted || loop_id.checkpoint_target().is_some_and(|(reviewed, _)| reviewed == *wanted)
        }
        Fact::Run(_) | Fact::Task(..) => true,
    };
    log.iter().filter(concerns).cloned().collect()
}

fn key() -> impl Strategy<Value = KeyEvent> {
    let keys = "?aqrceyxnjkgG[]12345 +-".chars().map(|letter| KeyCode::Char(letter).into());
    let named = [
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::Left,
        KeyCode::Right,
        KeyCode::PageUp,
        KeyCode::PageDown,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::Enter,
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::Tab,
        KeyCode::BackTab,
        KeyCode::Backspace,
        KeyCode::Delete,
        KeyCode::Char('漢'),
    ];
    let control = ['c', 'u'].map(|letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL));
    proptest::sample::select(keys.chain(named.map(KeyEvent::from)).chain(control).collect::<Vec<_>>())
}

/// Text from agents, including hostile text.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "\\PC{0,12}",
        any::<char>().prop_map(String::from),
        proptest::sample::select(vec![
            "\x1b[2J",
            "\t",
            "\r",
            "\n",
            "\u{202e}",
            "\u{200f}",
            "\u{2066}",
            "漢字",
            "e\u{301}\u{301}",
            "👩‍👩‍👧",
            "\u{200d}",
            "\u{fe0f}",
            "@@ -1 +1 @@\n",
            "\n+",
            "\n-",
            "diff --git a/a.rs b/a.rs\n",
            "\0",
            "\u{9b}31m",
        ])
        .prop_map(str::to_owned),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// Checks that the screen has no control or bidi characters.
fn is_clean(buffer: &Buffer) -> bool {
    let bad = |c: char| {
        c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
    };
    !buffer.content().iter().any(|cell| cell.symbol().chars().any(bad))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn no_key_or_size_panics(
        story in log(),
        cut in any::<prop::sample::Index>(),
        mode in proptest::sample::select(vec![TuiMode::Driving, TuiMode::Watching, TuiMode::Replaying]),
        keys in proptest::collection::vec((key(), 0..=250u16, 0..=80u16), 1..12),
    ) {
        let mut story = story;
        let cut = cut.index(story.log.len()).max(1);
        story.log.truncate(cut);
        let rest = story.transitions.split_off(cut);
        let mut scene = Scene::shown(story, mode, Theme::Color);
        let mut rest = rest.into_iter();
        for (key, width, height) in keys {
            scene.press(&[key]);
            prop_assert!(is_clean(&scene.draw((width, height))));
            rest.by_ref().take(3).for_each(|transition| scene.tui.apply(&transition));
        }
        rest.for_each(|transition| scene.tui.apply(&transition));
        prop_assert!(is_clean(&scene.draw(SMALL)));
    }

    #[test]
    fn agent_text_is_only_text(text in text(), size in (1..=120u16, 1..=30u16), theme in proptest::bool::ANY) {
        let theme = if theme { Theme::Color } else { Theme::Plain };
        let story = Story::new(reviewed("plan")).plan(&[&[(29, &text)]]).starts(29).works();
        let bug = (signoff_core::review::Severity::Critical, "a.rs:1", text.as_str());
        let story = story.objects("spec", &[bug]).approves("code");
        let mut scene = Scene::shown(story, TuiMode::Watching, theme);
        scene.tui.set_project(&text);
        scene.tui.add_live_line(RunId(3), &id(29), AttemptId(4), &text);
        prop_assert!(is_clean(&scene.draw(size)));
        scene.press(&[KeyCode::Enter]);
        for pane in '1'..='5' {
            scene.press(&[KeyCode::Char(pane)]);
            let patch = format!("diff --git a/a.rs b/a.rs\n@@ -1 +1 @@\n+{text}\n");
            scene.tui.receive(TuiData::Diff { task: TaskId(29), patch, stat: text.clone() });
            for attempt in 1..5 {
                let (run, loop_id, attempt) = (RunId(3), id(29), AttemptId(attempt));
                scene.tui.receive(TuiData::Transcript { run, loop_id, attempt, text: text.clone() });
            }
            prop_assert!(is_clean(&scene.draw(size)));
        }
        scene.tui.show_note(&text);
        prop_assert!(is_clean(&scene.draw(size)));
        scene.press(&[KeyCode::Char('e'), KeyCode::Char('1'), KeyCode::Enter]);
        scene.type_in(&text);
        prop_assert!(is_clean(&scene.draw(size)));
    }

    #[test]
    fn the_selection_stays_on_the_same_task(
        down in 0..12usize,
        queue_first in any::<bool>(),
        chances in proptest::collection::vec(any::<(u8, u16)>(), 1..20),
    ) {
        let (before, after) = chosen_before_and_after(down, queue_first, chances);
        prop_assert_eq!(after, before);
    }

    #[test]
    fn the_events_of_a_loop_give_its_full_state(chances in proptest::collection::vec(any::<(u8, u16)>(), 0..20)) {
        let story = chances.into_iter().fold(busy(), random_event);
        for task in 21..=30 {
            let row = row(task, "Log in", TaskStatus::InProgress);
            // Question ids are counted over all loops.
            let report_of = |log: &[_]| TaskReport { question: None, ..task_report(row.clone(), log.to_vec(), &id(task), Vec::new()) };
            let own = events_of_loop(&story.log, &id(task));
            prop_assert_eq!(report_of(&own), report_of(&story.log));
            let seen = |log: &[_]| RunState::from_log(log).row(&id(task)).map(|row| LoopRow { question: None, ..row });
            prop_assert_eq!(seen(&own), seen(&story.log));
        }
    }
}

/// A fixed case of `the_selection_stays_on_the_same_task` that failed once.
#[test]
fn the_selection_stays_on_the_same_task_when_another_one_asks() {
    let (before, after) = chosen_before_and_after(11, false, vec![(60, 7928)]);
    assert_eq!((after, before.as_deref()), (before.clone(), Some("#21")));
}

/// The number of the selected task before and after the events of `chances` and the start of the first queued task.
/// `queue_first`: the queue shrinks before the run starts.
fn chosen_before_and_after(
    down: usize,
    queue_first: bool,
    chances: Vec<(u8, u16)>,
) -> (Option<String>, Option<String>) {
    let mut scene = Scene::new(busy());
    scene.tui.set_queue(queued());
    scene.draw(SMALL);
    scene.press(&vec![KeyCode::Down; down]);
    let before = marked_task(&mut scene);
    let taken_up = Story::new(reviewed("loops")).plan(&[&[(40, "Greet people by name")]]).starts(40);
    if queue_first {
        scene.tui.set_queue(queued().split_off(1));
        scene.draw(SMALL);
    }
    let mut scene = scene.then(|story| chances.into_iter().fold(story, random_event)).with_run(&taken_up);
    scene.draw(SMALL);
    scene.tui.set_queue(queued().split_off(1));
    (before, marked_task(&mut scene))
}

/// The number of the task whose row is marked.
fn marked_task(scene: &mut Scene) -> Option<String> {
    let shown = scene.text((60, 40));
    let row = shown.lines().find(|line| line.starts_with("> "))?;
    row.split_whitespace().find(|word| word.starts_with('#')).map(str::to_owned)
}

/// Applies a random event to one of the loops.
fn random_event(story: Story, (task, chance): (u8, u16)) -> Story {
    let story = story.on(21 + u64::from(task % 8));
    let id = id(21 + u64::from(task % 8));
    let events =
        story.view.loop_state(&id).zip(story.view.policy(&id)).map(|(machine, policy)| next_events(machine, policy));
    let Some(events) = events.filter(|events| !events.is_empty()) else { return story };
    let next = events[usize::from(chance) % events.len()].clone();
    story.then(next)
}
