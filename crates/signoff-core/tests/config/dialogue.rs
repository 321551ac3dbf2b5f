//! The questions about review phases, without a terminal.

use signoff_core::settings::edit;
use signoff_core::settings::questions::{ConfigureDialogue, DialoguePrompt};
use signoff_core::settings::questions::{PhaseQuestion, retries};
use signoff_core::settings::{self, Layer, Settings};

fn settings(text: &str) -> Settings {
    settings::read(&[Layer::repository("signoff.toml", text)], &[], &[]).unwrap()
}

fn dialogue(text: &str) -> ConfigureDialogue {
    ConfigureDialogue::new(&settings(text)).unwrap()
}

/// The current prompt on one line.
fn prompt_line(dialogue: &ConfigureDialogue) -> String {
    match dialogue.ask() {
        DialoguePrompt::Choose { heading, words, options, chosen } => {
            format!("{} | {words} | {}", heading.unwrap_or_default(), options[chosen])
        }
        DialoguePrompt::Number { heading, words, now } => {
            format!(
                "{} | {words} | {}",
                heading.unwrap_or_default(),
                now.map(|now| now.to_string()).unwrap_or_default()
            )
        }
        DialoguePrompt::Confirm { summary } => summary.join("\n"),
        DialoguePrompt::Nothing => "nothing".to_owned(),
    }
}

/// Confirms all preselected options.
fn enter(dialogue: &mut ConfigureDialogue) -> Vec<String> {
    let mut all = Vec::new();
    while let DialoguePrompt::Choose { chosen, .. } = dialogue.ask() {
        all.push(prompt_line(dialogue));
        dialogue.choose(chosen);
    }
    all
}

fn written(text: &str, dialogue: &ConfigureDialogue) -> String {
    edit::set("signoff.toml", text, &dialogue.changes()).unwrap().text
}

#[test]
fn questions_and_current_values_in_order() {
    let mut dialogue = dialogue("[presets.phases.gates.code_review]\nmax_fixes = 3\non_exhausted = \"ask\"\n");
    insta::assert_snapshot!(enter(&mut dialogue).join("\n"), @"
     | Which phases do you want to configure? | All review phases
    Phase 3: Plan Review | What should happen when issues are found? | Restart iteration (go back to Phase 1)
    Phase 3: Plan Review | Minimum severity that causes failure? | LOW (any issue fails) [default]
    Phase 3: Plan Review | Enable parallel agents for fixing issues? | Yes (recommended)
    Phase 3: Plan Review | Retry limit for mini-loop? | 10 retries (default)
    Phase 3: Plan Review | What happens when retry limit is reached? | Stop workflow (default)
    Phase 5: Code Review | What should happen when issues are found? | Mini-loop (fix and re-review within phase)
    Phase 5: Code Review | Minimum severity that causes failure? | LOW (any issue fails) [default]
    Phase 5: Code Review | Enable parallel agents for fixing issues? | Yes (recommended)
    Phase 5: Code Review | Retry limit for mini-loop? | 3 retries
    Phase 5: Code Review | What happens when retry limit is reached? | Ask me what to do
    Phase 6: Test | What should happen when issues are found? | Restart iteration (go back to Phase 1)
    Phase 6: Test | Enable parallel agents for fixing issues? | Yes (recommended)
    Phase 6: Test | Retry limit for mini-loop? | 10 retries (default)
    Phase 6: Test | What happens when retry limit is reached? | Stop workflow (default)
    Phase 8: Final Review | What should happen when issues are found? | Restart iteration (go back to Phase 1)
    Phase 8: Final Review | Minimum severity that causes failure? | LOW (any issue fails) [default]
    Phase 8: Final Review | Enable parallel agents for fixing issues? | Yes (recommended)
    Phase 8: Final Review | Retry limit for mini-loop? | 10 retries (default)
    Phase 8: Final Review | What happens when retry limit is reached? | Stop workflow (default)
    ");
    assert_eq!(dialogue.ask(), DialoguePrompt::Nothing);
}

#[test]
fn all_options_of_all_questions() {
    let line = |question: PhaseQuestion| {
        let options: String = question.options().iter().map(|(words, _)| format!("   - {words}\n")).collect();
        format!("{}\n{options}", question.words())
    };
    insta::assert_snapshot!(PhaseQuestion::ALL.iter().copied().map(line).collect::<String>(), @"
    What should happen when issues are found?
       - Restart iteration (go back to Phase 1)
       - Mini-loop (fix and re-review within phase)
       - Proceed (note issues, continue anyway)
       - Stop (halt workflow)
    Minimum severity that causes failure?
       - LOW (any issue fails) [default]
       - MEDIUM (MEDIUM and HIGH fail)
       - HIGH (only HIGH fails)
       - NONE (never fail)
    Enable parallel agents for fixing issues?
       - Yes (recommended)
       - No
    Retry limit for mini-loop?
       - 10 retries (default)
       - 5 retries
       - 3 retries
       - No limit
       - Custom
    What happens when retry limit is reached?
       - Stop workflow (default)
       - Ask me what to do
       - Restart iteration
       - Proceed with issues noted
    ");
}

#[test]
fn only_changed_answers_are_written() {
    let mut dialogue = dialogue("");
    for option in [2, 1, 2, 1, 3, 1] {
        dialogue.choose(option);
    }
    insta::assert_snapshot!(prompt_line(&dialogue), @"
    3 Plan Review: unchanged
    5 Code Review: failOnSeverity LOW → HIGH, parallelFixes true → false, maxRetries 10 → no limit, onMaxRetries stop → ask
    6 Test: unchanged
    8 Final Review: unchanged
    ");
    insta::assert_snapshot!(written("", &dialogue), @r#"
    [presets.phases.gates.code_review]
    fail_on = "HIGH"
    parallel_fixes = false
    max_fixes = "unlimited"
    on_exhausted = "ask"
    "#);
}

#[test]
fn a_custom_limit_is_asked_for_and_kept() {
    let text = "[presets.phases.gates.test]\nmax_cycles = 8\n";
    let mut dialogue = dialogue(text);
    for option in [3, 0, 0, 4] {
        dialogue.choose(option);
    }
    insta::assert_snapshot!(prompt_line(&dialogue), @"Phase 6: Test | How many retries? | 7");
    dialogue.number(9);
    insta::assert_snapshot!(prompt_line(&dialogue), @"Phase 6: Test | What happens when retry limit is reached? | Stop workflow (default)");
    assert!(dialogue.back());
    insta::assert_snapshot!(prompt_line(&dialogue), @"Phase 6: Test | How many retries? | 9");
    dialogue.number(5);
    insta::assert_snapshot!(prompt_line(&dialogue), @"Phase 6: Test | What happens when retry limit is reached? | Stop workflow (default)");
    assert!(dialogue.back());
    insta::assert_snapshot!(prompt_line(&dialogue), @"Phase 6: Test | Retry limit for mini-loop? | 5 retries");
    dialogue.choose(3);
    dialogue.choose(0);
    insta::assert_snapshot!(written(text, &dialogue), @r#"
    [presets.phases.gates.test]
    max_fixes = "unlimited"
    "#);
}

#[test]
fn back_ends_at_the_first_question() {
    let mut dialogue = dialogue("");
    let mut forwards = Vec::new();
    while let DialoguePrompt::Choose { chosen, .. } = dialogue.ask() {
        forwards.push(prompt_line(&dialogue));
        dialogue.choose(chosen);
    }
    let mut backwards = Vec::new();
    while dialogue.back() {
        backwards.push(prompt_line(&dialogue));
    }
    backwards.reverse();
    assert_eq!(forwards, backwards);
}

/// Every option of every question, written and read again, is preselected next time.
#[test]
fn answers_are_preselected_next_time() {
    for phase in 1..=4 {
        let mut first = dialogue("");
        first.choose(phase);
        let mut steps = 0;
        while let DialoguePrompt::Choose { options, .. } = first.ask() {
            for option in 0..options.len() {
                let mut changed = first.clone();
                changed.choose(option);
                if let DialoguePrompt::Number { .. } = changed.ask() {
                    changed.number(77);
                }
                let text = written("", &changed);
                let mut again = dialogue(&text);
                again.choose(phase);
                for _ in 0..steps {
                    if let DialoguePrompt::Choose { chosen, .. } = again.ask() {
                        again.choose(chosen);
                    }
                }
                let DialoguePrompt::Choose { chosen, .. } = again.ask() else { panic!("{again:?}") };
                assert_eq!(chosen, option, "{text}");
            }
            if let DialoguePrompt::Choose { chosen, .. } = first.ask() {
                first.choose(chosen);
            }
            steps += 1;
        }
        assert_eq!(steps, if phase == 3 { 4 } else { 5 });
    }
}

#[test]
fn a_retry_limit_is_a_number() {
    assert_eq!(retries(" 12 "), Ok(12));
    assert_eq!(retries("0"), Ok(0));
    for legal in [5000, u32::MAX] {
        settings(&format!("[presets.phases.gates.code_review]\nmax_fixes = {legal}\n"));
        assert_eq!(retries(&legal.to_string()), Ok(legal), "every value that the file accepts can be typed");
    }
    for typed in ["", "ten", "-1", "1.5", "4294967296", "99999999999"] {
        assert_eq!(retries(typed).unwrap_err(), "expected a whole number from 0 to 4294967295", "{typed}");
    }
}
