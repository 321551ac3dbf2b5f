//! Questions on a terminal, and their keys.

use crossterm::event::KeyCode;
use proptest::prelude::*;
use signoff_core::ids::{LoopId, QuestionId, RunId};
use signoff_core::machine::{AttemptFailure, Choice, Policy};
use signoff_core::policy::{Bound, ExhaustedAs, OnExhausted, OnFailure};
use signoff_core::review::Severity::{self, Critical, Important, Minor};
use signoff_core::review::Verdict;
use signoff_core::workflow::PhaseKind;
use signoff_term::fit::columns;
use signoff_term::progress::DisplaySize;
use signoff_term::question_queue::{OpenQuestion, QuestionDecision, QuestionQueue};

use crate::story::{Story, id, review, reviewed};

const WIDE: DisplaySize = DisplaySize { columns: 79, lines: 21 };
const NARROW: DisplaySize = DisplaySize { columns: 39, lines: 7 };
const EXIT: AttemptFailure = AttemptFailure::Exit { code: 5 };

/// The question of task 29.
fn question(story: &Story) -> OpenQuestion {
    OpenQuestion::from_state(&story.view, &id(29)).unwrap_or_else(|| panic!("no open question:\n{story:?}"))
}

fn asked(questions: impl IntoIterator<Item = OpenQuestion>) -> QuestionQueue {
    let mut queue = QuestionQueue::default();
    for question in questions {
        queue.update(question.run, &question.loop_id.clone(), Some(question));
    }
    queue
}

fn shown(story: &Story) -> String {
    asked([question(story)]).lines(WIDE).join("\n")
}

/// A gate of the preset that asks when its cycles are used up.
fn asking(preset: &str, gate: &str, bound: Bound) -> Policy {
    let mut policy = reviewed(preset);
    for phase in policy.workflow.phases.iter_mut().filter(|phase| phase.name == gate) {
        if let PhaseKind::Gate(gate_policy) = &mut phase.kind {
            (gate_policy.gate.on_exhausted, gate_policy.gate.bound) = (OnExhausted::Ask, bound);
            gate_policy.gate.on_failure = OnFailure::MiniLoop;
        }
    }
    policy
}

const FOUND: &[(Severity, &str, &str)] = &[
    (Important, "src/b.rs:7", "no test"),
    (Critical, "src/auth.rs:12", "the password is logged"),
    (Important, "src/c.rs:3", "not said how it fails"),
    (Minor, "", "a typo"),
    (Important, "src/d.rs:9", "not closed"),
];

/// The only allowed review has many findings.
fn exhausted() -> Story {
    Story::task(asking("plan", "review", Bound::MaxCycles(1))).works().objects("spec", &[]).objects("code", FOUND)
}

#[test]
fn reviews_that_are_used_up() {
    insta::assert_snapshot!(shown(&exhausted()), @"
    ? Task #29 Add user authentication  review 1/1
      1 review did not lead to approval. One more fix and review, proceed with the
      findings open, or stop?
        - critical src/auth.rs:12 the password is logged
        - important src/b.rs:7 no test
        - important src/c.rs:3 not said how it fails
        … and 1 more
        1 continue  one more fix and review
        2 proceed   continue; the findings stay open
        3 stop      end it here: failed
        4 restart   start over at implement (pass 2/10)
      ↑/↓ or 1–4 choose, Enter answers, Esc defers it
    ");
}

#[test]
fn a_bound_that_ends_as_it_is_configured() {
    let stops = |as_what| {
        let mut policy = asking("plan", "review", Bound::MaxCycles(1));
        for phase in &mut policy.workflow.phases {
            if let PhaseKind::Gate(gate_policy) = &mut phase.kind {
                gate_policy.gate.exhausted_as = as_what;
            }
        }
        let story = Story::task(policy).works().objects("spec", FOUND).approves("code");
        let lines = asked([question(&story)]).lines(WIDE);
        lines.into_iter().find(|line| line.contains(" stop ")).unwrap_or_default()
    };
    let all = [ExhaustedAs::Attention, ExhaustedAs::Failed, ExhaustedAs::Stuck].map(stops);
    insta::assert_snapshot!(all.join("\n"), @"
    3 stop      end it here: MAX_CYCLES_REACHED
    3 stop      end it here: failed
    3 stop      end it here: stuck
    ");
}

#[test]
fn unclear_reviews() {
    let story = Story::task(reviewed("plan")).works();
    let story =
        story.answers_unclearly("spec").answers_unclearly("code").answers_unclearly("spec").answers_unclearly("code");
    insta::assert_snapshot!(shown(&story), @"
    ? Task #29 Add user authentication  review 1/3
      The answer of code and spec could not be understood. Retry, proceed without
      it, or stop?
        1 retry    review it again
        2 proceed  continue without approval
        3 stop     end it here: failed
        4 restart  start over at implement (pass 2/10)
      ↑/↓ or 1–4 choose, Enter answers, Esc defers it
    ");
}

#[test]
fn a_missing_reviewer() {
    let story = Story::task(reviewed("plan")).works().objects("spec", &FOUND[..1]);
    let story = story.reviewer_fails("code", EXIT).reviewer_fails("code", EXIT);
    insta::assert_snapshot!(shown(&story), @"
    ? Task #29 Add user authentication  review 1/3
      code gave no usable review; the others did. Retry, proceed without, or stop?
        - important src/b.rs:7 no test
        1 retry    ask the missing reviewers again
        2 proceed  use the reviews that arrived
        3 stop     end it here: failed
        4 restart  start over at implement (pass 2/10)
      ↑/↓ or 1–4 choose, Enter answers, Esc defers it
    ");
}

#[test]
fn all_reviewers_failed() {
    let fail = |story: Story, name| story.reviewer_fails(name, EXIT);
    let story = ["spec", "code", "spec", "code"].into_iter().fold(Story::task(reviewed("plan")).works(), fail);
    insta::assert_snapshot!(shown(&story), @"
    ? Task #29 Add user authentication  review 1/3
      code and spec gave no review. Retry, skip the review, or stop?
        1 retry    review it again
        2 skip     continue without approval
        3 stop     end it here: failed
        4 restart  start over at implement (pass 2/10)
      ↑/↓ or 1–4 choose, Enter answers, Esc defers it
    ");
}

#[test]
fn a_failed_implementer() {
    insta::assert_snapshot!(shown(&Story::task(reviewed("plan")).writer_fails(EXIT)), @"
    ? Task #29 Add user authentication  implement
      The implementer failed. Retry or stop?
        1 retry  let the implementer try again
        2 stop   end it here: failed
      ↑/↓ or 1–2 choose, Enter answers, Esc defers it
    ");
}

#[test]
fn a_failed_fixer() {
    let story = Story::task(reviewed("plan")).works().objects("spec", &FOUND[..2]).approves("code");
    insta::assert_snapshot!(shown(&story.writer_fails(EXIT)), @"
    ? Task #29 Add user authentication  review 1/3
      The fixer failed. Retry or stop?
        - critical src/auth.rs:12 the password is logged
        - important src/b.rs:7 no test
        1 retry    let the fixer try again
        2 stop     end it here: failed
        3 restart  start over at implement (pass 2/10)
      ↑/↓ or 1–3 choose, Enter answers, Esc defers it
    ");
}

#[test]
fn a_reviewer_who_wants_to_discuss() {
    let story = Story::task(reviewed("plan")).works().approves("code");
    let story = story.answers("spec", review("spec", Verdict::NeedsDiscussion, &FOUND[..1]));
    insta::assert_snapshot!(shown(&story), @"
    ? Task #29 Add user authentication  review 1/3
      spec requests a discussion. Fix, proceed, or stop?
        - important src/b.rs:7 no test
        1 fix      hand it to the fixer, then review again
        2 proceed  continue; the findings stay open
        3 stop     end it here: NEEDS_DISCUSSION
        4 restart  start over at implement (pass 2/10)
      ↑/↓ or 1–4 choose, Enter answers, Esc defers it
    ");
}

/// Three researchers and the agent that combines their reports, twice.
fn planned(policy: Policy) -> Story {
    (0..8).fold(Story::task(policy), |story, _| story.works())
}

#[test]
fn a_phase_whose_retries_are_used_up() {
    let story = planned(asking("phases", "plan_review", Bound::MaxFixes(1)));
    let story = story.objects("plan", &FOUND[..1]).works().objects("plan", &FOUND[..1]);
    insta::assert_snapshot!(shown(&story), @"
    ? Task #29 Add user authentication  phase 3/9 plan_review 2/2, iteration 1/10
      2 reviews did not lead to approval. One more fix and review, proceed with the
      findings open, or stop?
        - important src/b.rs:7 no test
        1 continue  one more fix and review
        2 proceed   continue; the findings stay open
        3 stop      end it here: failed
        4 restart   start over at brainstorm (pass 2/10)
      ↑/↓ or 1–4 choose, Enter answers, Esc defers it
    ");
}

#[test]
fn a_phase_whose_fixer_is_stuck() {
    let story = planned(asking("phases", "plan_review", Bound::MaxFixes(1)));
    let story = story.objects("plan", &FOUND[..1]).writer_fails(EXIT).writer_fails(EXIT);
    insta::assert_snapshot!(shown(&story), @"
    ? Task #29 Add user authentication  phase 3/9 plan_review 1/2, iteration 1/10
      The fixer failed. Retry or stop?
        - important src/b.rs:7 no test
        1 retry    let the fixer try again
        2 stop     end it here: failed
        3 restart  start over at brainstorm (pass 2/10)
      ↑/↓ or 1–3 choose, Enter answers, Esc defers it
    ");
}

#[test]
fn starting_over_once_too_often_is_not_offered() {
    let mut policy = asking("plan", "review", Bound::MaxCycles(1));
    policy.workflow.limits.max_passes = 1;
    let story = Story::task(policy).works().objects("spec", FOUND).approves("code");
    let lines = asked([question(&story)]).lines(WIDE);
    insta::assert_snapshot!(lines[lines.len() - 2], @"    3 stop      end it here: failed");
}

/// The same question for another task.
fn question_about(task: u64, title: &str) -> OpenQuestion {
    let (loop_id, subject) = (id(task), format!("Task #{task}"));
    let command = format!("signoff answer {task} CHOICE (continue, proceed, stop, restart)");
    OpenQuestion { loop_id, subject, title: title.to_owned(), answer_command: command, ..question(&exhausted()) }
}

#[test]
fn several_questions_come_one_after_the_other_oldest_first() {
    let mut questions =
        asked([question_about(31, "Log in"), question_about(29, "Log out"), question_about(30, "Sign up")]);
    let mut heads = vec![questions.lines(WIDE)[0].clone()];
    assert_eq!(questions.handle_key(KeyCode::Char('1')), None);
    let decided = questions.handle_key(KeyCode::Enter);
    let answer = |loop_id| QuestionDecision::Answer {
        run: RunId(3),
        loop_id,
        question: QuestionId(1),
        choice: Choice::Continue,
    };
    assert_eq!(decided, Some(answer(id(31))));
    heads.push(questions.lines(WIDE)[0].clone());
    let later = questions.handle_key(KeyCode::Esc);
    let answer_command = "signoff answer 29 CHOICE (continue, proceed, stop, restart)".to_owned();
    assert_eq!(
        later,
        Some(QuestionDecision::Later { run: RunId(3), loop_id: id(29), question: QuestionId(1), answer_command })
    );
    heads.push(questions.lines(WIDE)[0].clone());
    insta::assert_snapshot!(heads.join("\n"), @"
    ? Task #31 Log in  review 1/1  (2 more questions)
    ? Task #29 Log out  review 1/1  (1 more question)
    ? Task #30 Sign up  review 1/1
    ");
    questions.handle_key(KeyCode::Esc);
    assert_eq!((questions.is_open(), questions.lines(WIDE)), (false, Vec::new()));
}

#[test]
fn keys_choose_and_enter_answers() {
    let mut questions = asked([question_about(29, "Log in")]);
    let mut chosen = |keys: &[KeyCode]| {
        keys.iter().for_each(|key| assert_eq!(questions.handle_key(*key), None, "{key:?}"));
        questions.lines(WIDE).iter().find(|line| line.contains('›')).map(|line| line.trim().to_owned())
    };
    assert_eq!(chosen(&[]), None, "nothing is chosen at first");
    assert_eq!(chosen(&[KeyCode::Enter]), None, "so nothing is answered");
    assert_eq!(chosen(&[KeyCode::Char('9')]), None, "there is no such choice");
    let described = |keys: &[KeyCode], chosen: Option<String>| format!("{keys:?}: {}\n", chosen.unwrap_or_default());
    let all: String = [
        &[KeyCode::Up][..],
        &[KeyCode::Down],
        &[KeyCode::Down],
        &[KeyCode::Up, KeyCode::Up],
        &[KeyCode::Char('3')],
        &[KeyCode::Char('7')],
    ]
    .into_iter()
    .map(|keys| described(keys, chosen(keys)))
    .collect();
    insta::assert_snapshot!(all, @"
    [Up]: › 4 restart   start over at implement (pass 2/10)
    [Down]: › 1 continue  one more fix and review
    [Down]: › 2 proceed   continue; the findings stay open
    [Up, Up]: › 4 restart   start over at implement (pass 2/10)
    [Char('3')]: › 3 stop      end it here: failed
    [Char('7')]: › 3 stop      end it here: failed
    ");
}

/// Otherwise an Enter that was meant for the first question would answer the second.
#[test]
fn a_replaced_question_clears_the_selected_choice() {
    let mut questions = asked([question_about(29, "Log in"), question_about(30, "Log out")]);
    questions.handle_key(KeyCode::Char('3'));
    questions.update(RunId(3), &id(29), None);
    assert!(questions.lines(WIDE)[0].contains("Log out"));
    assert_eq!(questions.handle_key(KeyCode::Enter), None);
    questions.handle_key(KeyCode::Char('3'));
    questions.update(RunId(3), &id(31), Some(question_about(31, "Sign up")));
    assert!(questions.handle_key(KeyCode::Enter).is_some(), "one that comes later changes nothing");
}

/// Events of a loop keep arriving until its answer is recorded.
#[test]
fn answered_and_postponed_questions_are_not_asked_again() {
    for keys in [&[KeyCode::Char('1'), KeyCode::Enter][..], &[KeyCode::Esc]] {
        let mut questions = asked([question_about(29, "Log in")]);
        keys.iter().for_each(|key| drop(questions.handle_key(*key)));
        questions.update(RunId(3), &id(29), Some(question_about(29, "Log in")));
        assert!(!questions.is_open());
        let next = OpenQuestion { id: QuestionId(2), ..question_about(29, "Log in") };
        questions.update(RunId(3), &id(29), Some(next));
        assert!(questions.is_open(), "the next question of the same loop");
    }
}

#[test]
fn a_closed_queue_asks_nothing() {
    let mut questions = asked([question_about(29, "Log in")]);
    questions.close();
    questions.update(RunId(3), &id(30), Some(question_about(30, "Log out")));
    assert_eq!((questions.is_open(), questions.handle_key(KeyCode::Esc)), (false, None));
}

#[test]
fn a_small_terminal_shows_what_matters_most() {
    let mut questions = asked([question_about(29, "Add user authentication"), question_about(30, "Log out")]);
    insta::assert_snapshot!(questions.lines(NARROW).join("\n"), @"
    ? Task #29 Add user…  review 1/1  (+1)
      1 review did not lead to approval. …
        1 continue  one more fix and review
        2 proceed   continue; the findings…
        3 stop      end it here: failed
        4 restart   start over at implemen…
      ↑/↓ 1–4, Enter; Esc: later
    ");
    let low = DisplaySize { columns: 39, lines: 4 };
    insta::assert_snapshot!(questions.lines(low).join("\n"), @"
    ? Task #29 Add user…  review 1/1  (+1)
      1 review did not lead to approval. …
        continue, proceed, stop, restart
      ↑/↓ 1–4, Enter; Esc: later
    ");
    questions.handle_key(KeyCode::Char('2'));
    insta::assert_snapshot!(questions.lines(low).join("\n"), @"
    ? Task #29 Add user…  review 1/1  (+1)
      1 review did not lead to approval. …
      › 2 proceed   continue; the findings…
      ↑/↓ 1–4, Enter; Esc: later
    ");
    let lower = |lines| questions.lines(DisplaySize { columns: 39, lines }).join("\n");
    insta::assert_snapshot!(format!("{}\n--\n{}\n--\n{}", lower(3), lower(2), lower(1)), @"
    ? Task #29 Add user…  review 1/1  (+1)
      › 2 proceed   continue; the findings…
      ↑/↓ 1–4, Enter; Esc: later
    --
      › 2 proceed   continue; the findings…
      ↑/↓ 1–4, Enter; Esc: later
    --
      › 2 proceed   continue; the findings…
    ");
}

#[test]
fn agent_text_is_escaped() {
    let hostile = "\x1b[2J\x1b]0;owned\x07 \u{202e}gnitiaw\r\n› 1 approve\ttab";
    let found = [(Critical, "a\x1b[31m.rs:1", hostile)];
    let story = Story::new(asking("plan", "review", Bound::MaxCycles(1))).plan(&[&[(29, hostile)]]).starts(29);
    let story = story.works().objects("spec", &found).approves("code");
    insta::assert_snapshot!(shown(&story), @"
    ? Task #29 ␛[2J␛]0;owned␇ �gnitiaw › 1 approve tab  review 1/1
      1 review did not lead to approval. One more fix and review, proceed with the
      findings open, or stop?
        - critical a␛[31m.rs:1 ␛[2J␛]0;owned␇ �gnitiaw › 1 approve tab
        1 continue  one more fix and review
        2 proceed   continue; the findings stay open
        3 stop      end it here: failed
        4 restart   start over at implement (pass 2/10)
      ↑/↓ or 1–4 choose, Enter answers, Esc defers it
    ");
}

#[test]
fn a_part_of_a_run_asks_without_a_task() {
    let of_run = OpenQuestion {
        loop_id: LoopId::final_review(),
        subject: "Final review".to_owned(),
        title: String::new(),
        ..question_about(29, "")
    };
    insta::assert_snapshot!(asked([of_run]).lines(WIDE)[0], @"? Final review  review 1/1");
}

proptest! {
    #[test]
    fn questions_fit_their_space(
        (columns_, lines) in (0usize..100, 0usize..30),
        (title, text) in (".{0,80}", ".{0,300}"),
        (findings, choices) in (prop::collection::vec(".{0,80}", 0..8), 1usize..5),
        keys in prop::collection::vec(prop_oneof![Just(KeyCode::Up), Just(KeyCode::Down), Just(KeyCode::Char('2'))], 0..4),
    ) {
        let whole = question_about(29, &title);
        let choices = whole.choices.iter().take(choices).cloned().collect();
        let mut questions = asked([OpenQuestion { text, findings, choices, ..whole }, question_about(30, "Log out")]);
        keys.into_iter().for_each(|key| drop(questions.handle_key(key)));
        let drawn = questions.lines(DisplaySize { columns: columns_, lines });
        prop_assert!(drawn.len() <= lines, "{drawn:#?}");
        for line in &drawn {
            prop_assert!(columns(line) <= columns_.max(1), "{line}");
            prop_assert!(!line.chars().any(char::is_control), "{line:?}");
        }
    }
}
