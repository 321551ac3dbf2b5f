//! Property tests over random logs.

use proptest::prelude::*;
use serde_json::json;
use signoff_core::view::{RunState, TaskRow, TaskStatus};
use signoff_core::workflow::PRESETS;
use signoff_term::json as shapes;
use signoff_term::line::{LineNaming, LineRenderer};

use crate::fits::{fits, schema};
use crate::next_events::next_events;
use crate::rows::{row, shown};
use crate::story::{Story, caught_up, id, reviewed, task_report};

/// A random log with one of the presets.
pub fn log() -> impl Strategy<Value = Story> {
    (proptest::sample::select(&PRESETS[..]), proptest::collection::vec(any::<u16>(), 1..60)).prop_map(
        |(name, chances)| {
            let mut story = Story::new(reviewed(name)).plan(&[&[(29, "Add\x1b[31m user\nauthentication")]]).on(29);
            for chance in chances {
                let (machine, policy) = (story.view.loop_state(&id(29)), story.view.policy(&id(29)));
                let Some(events) = machine.zip(policy).map(|(machine, policy)| next_events(machine, policy)) else {
                    break;
                };
                // Decisions of people are rare; otherwise no loop would get far.
                let common = events.len() - 2;
                let range = if chance % 16 == 0 || common == 0 { events.len() } else { common };
                story = story.then(events[usize::from(chance / 16) % range].clone());
            }
            story
        },
    )
}

fn lines(story: &Story) -> Vec<Vec<String>> {
    let mut renderer = LineRenderer::new(LineNaming::WhenNeeded);
    story.transitions.iter().map(|transition| renderer.apply(transition)).collect()
}

/// Whether a line is about a review round or a run of the checks.
fn is_round_line(line: &str) -> bool {
    let phase = line.trim_start().trim_start_matches("#29 ").strip_prefix("Phase ");
    if let Some(text) = phase.and_then(|rest| rest.split(": ").nth(2)) {
        let words = ["APPROVED", "CHANGES_REQUESTED", "NEEDS_DISCUSSION", "INCONCLUSIVE", "Review of the fix"];
        let checks = ["PASSED", "FAILED", "COULD NOT RUN"];
        return words.iter().chain(&checks).any(|word| text.starts_with(word));
    }
    ["Review: ", "Review of the fix: ", "Checks: PASSED", "Checks: FAILED", "Checks: COULD NOT RUN"]
        .iter()
        .any(|start| line.trim_start_matches([' ', '#']).split("] ").last().is_some_and(|text| text.starts_with(start)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn output_has_no_control_characters(story in log()) {
        let report = task_report(row_of(&story), story.log.clone(), &id(29), Vec::new());
        let shown = [lines(&story).concat().join("\n"), shown(&report)];
        for text in shown {
            prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        }
        prop_assert!(story.log.iter().all(|recorded| !shapes::event(recorded).contains('\n')));
    }

    #[test]
    fn every_end_is_printed_once(story in log()) {
        let mut view = RunState::default();
        for (recorded, lines) in story.log.iter().zip(lines(&story)) {
            let is_done = |view: &RunState| view.loop_state(&id(29)).is_some_and(|machine| machine.is_done());
            let before = is_done(&view);
            view.replay(recorded);
            let ends = lines.iter().filter(|line| line.contains(" Task #29 ") && !line.starts_with(' ')).count();
            prop_assert!(ends <= 1, "{lines:#?}");
            if is_done(&view) && !before {
                prop_assert_eq!(ends, 1, "{:#?} {:#?}", lines, recorded);
            }
        }
    }

    #[test]
    fn lines_and_report_have_the_same_rounds(story in log()) {
        let rounds = lines(&story).concat().into_iter().filter(|line| is_round_line(line)).count();
        let report = task_report(row_of(&story), story.log.clone(), &id(29), Vec::new());
        prop_assert_eq!(rounds, report.cycles.len(), "{:#?}", lines(&story).concat());
        let root = schema("show");
        prop_assert_eq!(fits(&json!(report), &root), Ok(()));
    }

    #[test]
    fn catching_up_changes_only_the_announcement(story in log(), cut in any::<prop::sample::Index>()) {
        let cut = cut.index(story.log.len());
        let mut renderer = LineRenderer::new(LineNaming::Always);
        caught_up(&mut renderer, &story.transitions[..cut]);
        let announced = |line: &String| ["Resuming ", "Running ", "#29 Iteration "].iter().any(|word| line.starts_with(word));
        let late = |line: &String| !announced(line);
        let resumed: Vec<_> = story.transitions[cut..].iter().flat_map(|transition| renderer.apply(transition)).filter(late).collect();
        let mut renderer = LineRenderer::new(LineNaming::Always);
        let whole: Vec<_> = story.transitions.iter().map(|transition| renderer.apply(transition)).collect();
        let whole: Vec<_> = whole[cut..].concat().into_iter().filter(late).collect();
        // The current step of a resumed loop is printed once more.
        let at_hand = resumed.first().is_some_and(|line| line.ends_with("..."));
        let rest = if at_hand && resumed != whole { &resumed[1..] } else { &resumed[..] };
        prop_assert_eq!(rest, &whole[..]);
    }
}

fn row_of(story: &Story) -> TaskRow {
    let seen = story.view.row(&id(29)).map_or(TaskStatus::Pending, |row| row.status);
    row(29, "Add\x1b[31m user\nauthentication", seen)
}

#[test]
fn property_tests_have_a_fixed_seed_unless_the_environment_sets_another() {
    let seed = ProptestConfig::default().rng_seed;
    assert_ne!(seed, proptest::test_runner::RngSeed::Random, "run this by cargo, which reads .cargo/config.toml");
}
