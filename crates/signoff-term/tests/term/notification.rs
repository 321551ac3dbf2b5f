//! Who is not looking is told what needs them, once, with what to type next.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::json;
use signoff_core::machine::{Choice, Event, Failure, Hold, LimitPlan};
use signoff_core::notify::{Message, Notification, Occasion, Watch};
use signoff_core::policy::{Caps, ExhaustedAs, OnExhausted};
use signoff_core::review::Severity;
use signoff_core::view::RunView;
use signoff_core::wire::Recorded;
use signoff_core::workflow::PhaseKind;
use signoff_term::notification::{Known, message, sample};

use crate::fits::{fits, schema};
use crate::laws::log;
use crate::story::{Story, reviewed};

/// What each fact makes the watch say, after it has silently taken in so many.
fn told_after(log: &[Recorded], known: usize) -> Vec<Vec<Notification>> {
    let mut watch = Watch::default();
    watch.catch_up(&log[..known]);
    log[known..].iter().map(|recorded| watch.take(recorded)).collect()
}

fn messages(story: &Story) -> Vec<Message> {
    let known = Known { project: "shop", question: None };
    told_after(&story.log, 0).iter().flatten().map(|told| message(told, known)).collect()
}

/// `question | Task #29 asks you: … | text | what to type`.
fn told(story: &Story) -> String {
    let line = |message: &Message| {
        let next = message.next.clone().unwrap_or_default();
        format!("{} | {} | {} | {next}", message.event.word(), message.title, message.text)
    };
    messages(story).iter().map(line).collect::<Vec<_>>().join("\n")
}

fn task() -> Story {
    Story::task(reviewed("task"))
}

const BUG: [(Severity, &str, &str); 1] = [(Severity::Critical, "a.rs:1", "No name")];

#[test]
fn one_task_is_done_and_told_once() {
    let story = task().works().objects("general", &BUG).works().approves("general");
    insta::assert_snapshot!(told(&story), @"done | Task #29 is done: Add user authentication | APPROVED after 2 reviews. | signoff show 29");
}

#[test]
fn a_task_that_gives_up_is_told_as_stuck_and_not_as_done_too() {
    insta::assert_snapshot!(told(&task().gives_up("no such table")), @"stuck | Task #29 is stuck: Add user authentication | The agent says it cannot go on. | signoff show 29; signoff retry 29");
}

#[test]
fn every_question_is_told_with_its_choices_and_a_person_who_stops_knows() {
    let late = |story: Story| {
        story.reviewer_fails("code", Failure::TimedOut).reviewer_fails("code", Failure::TimedOut)
    };
    let asked = late(Story::task(reviewed("plan")).works().approves("spec"));
    insta::assert_snapshot!(told(&asked), @"question | Task #29 asks you: Add user authentication | code gave no usable review; the others did. Retry, proceed without, or stop? | signoff answer 29 retry|proceed|stop|restart");
    let again = late(asked.person(Choice::Retry));
    insta::assert_snapshot!(told(&again.person(Choice::Stop)), @"
    question | Task #29 asks you: Add user authentication | code gave no usable review; the others did. Retry, proceed without, or stop? | signoff answer 29 retry|proceed|stop|restart
    question | Task #29 asks you: Add user authentication | code gave no usable review; the others did. Retry, proceed without, or stop? | signoff answer 29 retry|proceed|stop|restart
    ");
}

#[test]
fn a_run_of_many_is_told_once_with_how_many_went_through() {
    let mut story = Story::of(reviewed("task")).plan(&[&[(1, "One"), (2, "Two"), (3, "Three")]]);
    for number in 1..=3 {
        story = story.starts(number);
        story = if number == 2 { story.gives_up("no") } else { story.works().approves("general") };
    }
    insta::assert_snapshot!(told(&story), @"
    stuck | Task #2 is stuck: Two | The agent says it cannot go on. | signoff show 2; signoff retry 2
    done | Run 3 is done | 2 of 3 tasks went through, 1 needs you. | signoff status
    ");
}

#[test]
fn a_cap_that_stops_two_tasks_is_told_once_until_they_go_on() {
    let short = |story: Story| story.on(1).then(Event::BudgetReached).on(2).then(Event::BudgetReached);
    let goes_on = |story: Story, task| story.on(task).then(Event::Resumed { hold: Hold::Budget });
    let story = Story::of(reviewed("task")).plan(&[&[(1, "One"), (2, "Two")]]).starts(1).starts(2);
    let story = short(story);
    insta::assert_snapshot!(told(&story), @"budget | Task #1 is paused: One | The budget is used up: this task cost $0.00 so far. | signoff config limits; signoff work");
    let story = short(goes_on(goes_on(story, 1), 2));
    assert_eq!(messages(&story).len(), 2);
}

#[test]
fn a_cap_of_tasks_is_told_for_each_of_them() {
    let story = Story::of(reviewed("task")).plan(&[&[(1, "One"), (2, "Two")]]).starts(1).starts(2);
    let story = story.on(1).then(Event::BudgetReached).on(2).then(Event::BudgetReached);
    let cap = Caps { max_cost_micro_usd: Some(1), ..Caps::default() };
    let told = |task, run| {
        let mut watch = Watch::within(task, run);
        story.log.iter().flat_map(|recorded| watch.take(recorded)).count()
    };
    let said = |task, run| {
        let mut watch = Watch::within(task, run);
        let told = story.log.iter().flat_map(|recorded| watch.take(recorded)).next().unwrap();
        let message = message(&told, Known { project: "shop", question: None });
        format!("{} | {}", message.text, message.next.unwrap_or_default())
    };
    let (dollars, minutes, tokens) = (
        Caps { max_cost_micro_usd: Some(2_500_000), ..Caps::default() },
        Caps { max_minutes: Some(1), ..Caps::default() },
        Caps { max_tokens: Some(0), ..Caps::default() },
    );
    insta::assert_snapshot!(said(Caps::default(), dollars), @"In the whole run $0.00 of $2.50 is spent: another attempt may go over it. | signoff configure --set limits.run.max_cost_usd=DOLLARS; signoff work");
    insta::assert_snapshot!(said(minutes, Caps::default()), @"For this task 0 minutes of 1 minute are over: another attempt may go over it. | signoff configure --set limits.max_minutes=MINUTES; signoff work");
    insta::assert_snapshot!(said(tokens, dollars), @"For this task 0 tokens of 0 tokens are used. | signoff configure --set limits.max_tokens=TOKENS; signoff work");
    assert_eq!(told(cap, Caps::default()), 2);
    assert_eq!(told(Caps::default(), cap), 1);
}

/// What a watch that takes it up says of it.
fn still_holds(story: &Story) -> Vec<Occasion> {
    Watch::default().catch_up(&story.log).iter().map(|told| told.occasion).collect()
}

#[test]
fn what_still_holds_when_a_run_is_taken_up_is_said() {
    let late = |story: Story| {
        story.reviewer_fails("code", Failure::TimedOut).reviewer_fails("code", Failure::TimedOut)
    };
    let asked = late(Story::task(reviewed("plan")).works().approves("spec"));
    assert_eq!(still_holds(&asked), [Occasion::Question]);
    assert_eq!(still_holds(&asked.person(Choice::Retry)), []);
    assert_eq!(still_holds(&task().gives_up("no such table")), [Occasion::Stuck]);
    assert_eq!(still_holds(&task().gives_up("no such table").retry()), []);
    let short = task().then(Event::BudgetReached);
    assert_eq!(still_holds(&short), [Occasion::Budget]);
    assert_eq!(still_holds(&short.then(Event::Resumed { hold: Hold::Budget })), []);
}

#[test]
fn waiting_for_a_provider_is_no_budget() {
    let story = task();
    let until = story.log[0].at + SignedDuration::from_mins(5);
    let attempt = story.jobs()[0].attempt;
    let plan = LimitPlan::WaitUntil(until);
    let story = story.then(Event::RateLimited { attempt, plan, why: None, turn: None });
    assert_eq!(told(&story), "");
}

#[test]
fn a_task_that_blocks_its_group_needs_a_person_although_it_did_not_fail() {
    let mut policy = reviewed("plan");
    for phase in &mut policy.workflow.phases {
        if let PhaseKind::Gate(judge) = &mut phase.kind {
            judge.gate.on_exhausted = OnExhausted::Stop;
            judge.gate.exhausted_as = ExhaustedAs::Attention;
        }
    }
    let story = Story::of(policy).plan(&[&[(1, "One")], &[(2, "Two")]]).starts(1).works();
    let object = |story: Story| story.objects("spec", &BUG).objects("code", &BUG);
    let story = object(object(object(story).works()).works());
    insta::assert_snapshot!(told(&story), @"stuck | Task #1 needs you: One | The review cycles are used up. | signoff show 1");
}

#[test]
fn a_run_that_a_person_reopens_is_told_again_when_it_is_through() {
    let story = task().gives_up("no such table").retry().works().approves("general");
    let events: Vec<_> = messages(&story).iter().map(|message| message.event).collect();
    assert_eq!(events, [Occasion::Stuck, Occasion::Done]);
}

#[test]
fn a_sample_fits_too() {
    for occasion in Occasion::ALL {
        let sample = sample(occasion, "shop", "2026-01-29T10:00:00Z".to_owned());
        fits(&json!(sample), &schema("notification")).unwrap();
    }
}

/// The questions of a log, each by its number.
fn questions(story: &Story) -> usize {
    let (mut view, mut seen) = (RunView::default(), BTreeSet::new());
    for recorded in &story.log {
        view.apply(recorded);
        seen.extend(view.questions().into_iter().map(|question| question.id));
    }
    seen.len()
}

proptest! {
    #[test]
    fn each_question_is_told_exactly_once(story in log()) {
        let asked = messages(&story).into_iter().filter(|message| message.event == Occasion::Question);
        let asked: Vec<_> = asked.collect();
        prop_assert_eq!(asked.len(), questions(&story));
        prop_assert!(asked.iter().all(|message| message.question.is_some()));
    }

    /// Whoever takes a run up tells what happens from then on, as if it had watched from the start.
    #[test]
    fn what_was_recorded_before_is_not_told_again(story in log(), cut in any::<prop::sample::Index>()) {
        let known = cut.index(story.log.len() + 1);
        prop_assert_eq!(told_after(&story.log, known), &told_after(&story.log, 0)[known..]);
    }

    /// Whoever keeps what was delivered knows it again: it is the same as when it was new.
    #[test]
    fn what_still_holds_is_what_was_told_before(story in log()) {
        let told: Vec<_> = told_after(&story.log, 0).iter().flatten().map(Notification::occurrence).collect();
        for standing in Watch::default().catch_up(&story.log) {
            prop_assert!(told.contains(&standing.occurrence()), "{:?}", standing.occurrence());
        }
    }

    /// One line each, whatever the title is, and short enough for a pipe.
    #[test]
    fn every_message_fits_its_schema_and_steers_no_terminal(story in log()) {
        for message in messages(&story) {
            if let Err(problem) = fits(&json!(message), &schema("notification")) {
                return Err(TestCaseError::fail(problem));
            }
            for text in [&message.title, &message.text] {
                prop_assert!(!text.contains(char::is_control), "{text:?}");
            }
            prop_assert!(json!(message).to_string().len() < 20_000);
        }
    }
}
