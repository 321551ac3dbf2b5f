//! What holds for every log, every key and every size.

use proptest::prelude::*;
use ratatui::buffer::Buffer;
use signoff_core::ids::{AttemptId, RunId, TaskId};
use signoff_core::view::{LoopView, RunView, Status};
use signoff_term::show::{Report, concerning};
use signoff_term::tui::{Ink, Material, Mode, Press};

use super::scene::{SMALL, Scene, busy, queued};
use crate::laws::log;
use crate::rows::row;
use crate::story::{Story, id, reviewed};
use crate::world;

fn key() -> impl Strategy<Value = Press> {
    let keys = "?aqrceyxnjkgG[]12345 +-".chars().map(Press::Char);
    let named = [
        Press::Up,
        Press::Down,
        Press::Left,
        Press::Right,
        Press::PageUp,
        Press::PageDown,
        Press::Home,
        Press::End,
        Press::Enter,
        Press::Enter,
        Press::Esc,
        Press::Tab,
        Press::BackTab,
        Press::Backspace,
        Press::Delete,
        Press::Ctrl('c'),
        Press::Ctrl('u'),
        Press::Char('漢'),
    ];
    proptest::sample::select(keys.chain(named).collect::<Vec<_>>())
}

/// Text as agents write it, and worse.
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

/// Nothing on the screen steers a terminal or turns its text around.
fn is_clean(buffer: &Buffer) -> bool {
    let bad = |c: char| {
        c.is_control()
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
    };
    !buffer.content().iter().any(|cell| cell.symbol().chars().any(bad))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn no_key_and_no_size_is_too_much(
        story in log(),
        cut in any::<prop::sample::Index>(),
        mode in proptest::sample::select(vec![Mode::Driving, Mode::Watching, Mode::Replaying]),
        keys in proptest::collection::vec((key(), 0..=250u16, 0..=80u16), 1..12),
    ) {
        let mut story = story;
        let rest = story.log.split_off(cut.index(story.log.len()).max(1));
        let mut scene = Scene::shown(story, mode, Ink::Color);
        let mut rest = rest.into_iter();
        for (key, width, height) in keys {
            scene.press(&[key]);
            prop_assert!(is_clean(&scene.draw((width, height))));
            rest.by_ref().take(3).for_each(|recorded| scene.tui.take(&recorded));
        }
        rest.for_each(|recorded| scene.tui.take(&recorded));
        prop_assert!(is_clean(&scene.draw(SMALL)));
    }

    #[test]
    fn whatever_agents_write_is_only_text(text in text(), size in (1..=120u16, 1..=30u16), ink in proptest::bool::ANY) {
        let ink = if ink { Ink::Color } else { Ink::Plain };
        let story = Story::of(reviewed("plan")).plan(&[&[(29, &text)]]).starts(29).works();
        let wrong = (signoff_core::review::Severity::Critical, "a.rs:1", text.as_str());
        let story = story.objects("spec", &[wrong]).approves("code");
        let mut scene = Scene::shown(story, Mode::Watching, ink);
        scene.tui.name(&text);
        scene.tui.said(RunId(3), &id(29), AttemptId(4), &text);
        prop_assert!(is_clean(&scene.draw(size)));
        scene.press(&[Press::Enter]);
        for pane in '1'..='5' {
            scene.press(&[Press::Char(pane)]);
            let patch = format!("diff --git a/a.rs b/a.rs\n@@ -1 +1 @@\n+{text}\n");
            scene.tui.supply(Material::Diff { task: TaskId(29), patch, stat: text.clone() });
            for attempt in 1..5 {
                let (run, loop_id, attempt) = (RunId(3), id(29), AttemptId(attempt));
                scene.tui.supply(Material::Transcript { run, loop_id, attempt, text: text.clone() });
            }
            prop_assert!(is_clean(&scene.draw(size)));
        }
        scene.tui.note(&text);
        prop_assert!(is_clean(&scene.draw(size)));
        scene.press(&[Press::Char('e'), Press::Char('1'), Press::Enter]);
        scene.type_in(&text);
        prop_assert!(is_clean(&scene.draw(size)));
    }

    #[test]
    fn the_chosen_row_stays_the_same_task(
        down in 0..12usize,
        queue_first in any::<bool>(),
        chances in proptest::collection::vec(any::<(u8, u16)>(), 1..20),
    ) {
        let (before, after) = chosen_before_and_after(down, queue_first, chances);
        prop_assert_eq!(after, before);
    }

    #[test]
    fn what_concerns_a_loop_tells_all_of_it(chances in proptest::collection::vec(any::<(u8, u16)>(), 0..20)) {
        let story = chances.into_iter().fold(busy(), chance);
        for task in 21..=30 {
            let row = row(task, "Log in", Status::InProgress);
            // Questions are numbered over all loops.
            let of = |log: &[_]| Report { question: None, ..Report::of(row.clone(), log, &id(task), Vec::new()) };
            let own = concerning(&story.log, &id(task));
            prop_assert_eq!(of(&own), of(&story.log));
            let seen = |log: &[_]| RunView::of(log).row(&id(task)).map(|row| LoopView { question: None, ..row });
            prop_assert_eq!(seen(&own), seen(&story.log));
        }
    }
}

/// A fixed case of `the_chosen_row_stays_the_same_task` that failed once.
#[test]
fn the_chosen_row_stays_the_same_task_when_another_one_asks() {
    let (before, after) = chosen_before_and_after(11, false, vec![(60, 7928)]);
    assert_eq!((after, before.as_deref()), (before.clone(), Some("#21")));
}

/// The number of the chosen task before and after `chances` happen and the first task of the queue is taken up;
/// `queue_first` says whether the queue shrinks before the run starts.
fn chosen_before_and_after(
    down: usize,
    queue_first: bool,
    chances: Vec<(u8, u16)>,
) -> (Option<String>, Option<String>) {
    let mut scene = Scene::new(busy());
    scene.tui.queue(queued());
    scene.draw(SMALL);
    scene.press(&vec![Press::Down; down]);
    let before = chosen(&mut scene);
    let taken_up = Story::of(reviewed("loops")).plan(&[&[(40, "Greet people by name")]]).starts(40);
    if queue_first {
        scene.tui.queue(queued().split_off(1));
        scene.draw(SMALL);
    }
    let mut scene = scene.then(|story| chances.into_iter().fold(story, chance)).beside(&taken_up);
    scene.draw(SMALL);
    scene.tui.queue(queued().split_off(1));
    (before, chosen(&mut scene))
}

/// The number of the task whose row is marked.
fn chosen(scene: &mut Scene) -> Option<String> {
    let shown = scene.text((60, 40));
    let row = shown.lines().find(|line| line.starts_with("> "))?;
    row.split_whitespace().find(|word| word.starts_with('#')).map(str::to_owned)
}

/// Something happens to one of the loops.
fn chance(story: Story, (task, chance): (u8, u16)) -> Story {
    let story = story.on(21 + u64::from(task % 8));
    let id = id(21 + u64::from(task % 8));
    let nexts = story
        .view
        .loop_state(&id)
        .zip(story.view.loop_policy(&id))
        .map(|(this, policy)| world::nexts(this, policy));
    let Some(nexts) = nexts.filter(|nexts| !nexts.is_empty()) else { return story };
    let next = nexts[usize::from(chance) % nexts.len()].clone();
    story.then(next)
}
