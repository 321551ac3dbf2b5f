//! Notifications: each one is sent once, with the command to type next.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::json;
use signoff_core::machine::{AttemptFailure, Choice, Event, LimitPlan, PauseReason};
use signoff_core::notify::{Notification, NotificationKind, NotificationMessage, NotificationWatcher};
use signoff_core::policy::{Caps, ExhaustedAs, OnExhausted, OnFailure};
use signoff_core::review::Severity;
use signoff_core::view::{RunState, Transition};
use signoff_core::workflow::PhaseKind;
use signoff_term::notification::{MessageContext, message, sample};

use crate::fits::{fits, schema};
use crate::laws::log;
use crate::story::{Story, reviewed};

/// The notifications of each event, after the watch has caught up with the first ones.
fn sent_after(log: &[Transition], already_applied: usize) -> Vec<Vec<Notification>> {
    let mut watch = NotificationWatcher::default();
    caught_up(&mut watch, &log[..already_applied]);
    log[already_applied..].iter().map(|transition| watch.apply(transition)).collect()
}

/// The pending notifications of a run that is resumed after these events.
fn caught_up(watch: &mut NotificationWatcher, past: &[Transition]) -> Vec<Notification> {
    past.iter().for_each(|transition| watch.replay(transition));
    watch.pending_notifications()
}

fn messages(story: &Story) -> Vec<NotificationMessage> {
    let context = MessageContext { project: "shop", question: None };
    sent_after(&story.transitions, 0).iter().flatten().map(|notification| message(notification, context)).collect()
}

/// `question | Task #29 needs an answer: … | text | command`.
fn message_lines(story: &Story) -> String {
    let line = |message: &NotificationMessage| {
        let next = message.next.clone().unwrap_or_default();
        format!("{} | {} | {} | {next}", message.event.into_str(), message.title, message.text)
    };
    messages(story).iter().map(line).collect::<Vec<_>>().join("\n")
}

fn task() -> Story {
    Story::task(reviewed("task"))
}

const BUG: [(Severity, &str, &str); 1] = [(Severity::Critical, "a.rs:1", "No name")];

#[test]
fn a_finished_task_is_notified_once() {
    let story = task().works().objects("general", &BUG).works().approves("general");
    insta::assert_snapshot!(message_lines(&story), @"done | Task #29 is done: Add user authentication | APPROVED after 2 reviews. | signoff show 29");
}

#[test]
fn a_stuck_task_is_not_also_notified_as_done() {
    insta::assert_snapshot!(message_lines(&task().gives_up("no such table")), @"stuck | Task #29 is stuck: Add user authentication | The agent reports that it is stuck. | signoff show 29, then signoff retry 29");
}

#[test]
fn a_review_that_did_not_approve_is_improved_and_not_retried() {
    let mut policy = reviewed("task");
    policy.workflow.phases.retain(|phase| phase.policy().is_some());
    for judge in policy.workflow.phases.iter_mut().filter_map(|phase| phase.policy_mut()) {
        judge.gate.on_failure = OnFailure::Stop;
    }
    let story = Story::task(policy).objects("general", &BUG);
    insta::assert_snapshot!(message_lines(&story), @"stuck | Task #29 failed: Add user authentication | The review found something. | signoff show 29, then signoff improve 29 --review");
}

#[test]
fn questions_have_choices_and_a_stop_by_a_person_is_not_notified() {
    let late = |story: Story| {
        story.reviewer_fails("code", AttemptFailure::TimedOut).reviewer_fails("code", AttemptFailure::TimedOut)
    };
    let ended = late(Story::task(reviewed("plan")).works().approves("spec"));
    insta::assert_snapshot!(message_lines(&ended), @"question | Task #29 needs an answer: Add user authentication | code gave no usable review; the others did. Retry, proceed without, or stop? | signoff answer 29 CHOICE (retry, proceed, stop, restart)");
    let again = late(ended.person(Choice::Retry));
    insta::assert_snapshot!(message_lines(&again.person(Choice::Stop)), @"
    question | Task #29 needs an answer: Add user authentication | code gave no usable review; the others did. Retry, proceed without, or stop? | signoff answer 29 CHOICE (retry, proceed, stop, restart)
    question | Task #29 needs an answer: Add user authentication | code gave no usable review; the others did. Retry, proceed without, or stop? | signoff answer 29 CHOICE (retry, proceed, stop, restart)
    ");
}

#[test]
fn a_run_is_notified_once_with_task_counts() {
    let mut story = Story::new(reviewed("task")).plan(&[&[(1, "One"), (2, "Two"), (3, "Three")]]);
    for number in 1..=3 {
        story = story.starts(number);
        story = if number == 2 { story.gives_up("no") } else { story.works().approves("general") };
    }
    insta::assert_snapshot!(message_lines(&story), @"
    stuck | Task #2 is stuck: Two | The agent reports that it is stuck. | signoff show 2, then signoff retry 2
    done | Run 3 is done | 2 of 3 tasks passed, 1 needs you. | signoff status
    ");
}

#[test]
fn a_run_budget_is_notified_once_until_resumed() {
    let short = |story: Story| story.on(1).then(Event::BudgetReached).on(2).then(Event::BudgetReached);
    let resumed = |story: Story, task| story.on(task).then(Event::Resumed { reason: PauseReason::Budget });
    let story = Story::new(reviewed("task")).plan(&[&[(1, "One"), (2, "Two")]]).starts(1).starts(2);
    let story = short(story);
    insta::assert_snapshot!(message_lines(&story), @"budget | Task #1 is paused: One | The budget is used up: this task cost $0.00 so far. | signoff config limits; signoff work");
    let story = short(resumed(resumed(story, 1), 2));
    assert_eq!(messages(&story).len(), 2);
}

#[test]
fn a_task_budget_is_notified_per_task() {
    let story = Story::new(reviewed("task")).plan(&[&[(1, "One"), (2, "Two")]]).starts(1).starts(2);
    let story = story.on(1).then(Event::BudgetReached).on(2).then(Event::BudgetReached);
    let cap = Caps { max_cost_micro_usd: Some(1), ..Caps::default() };
    let message_lines = |task, run| {
        let mut watch = NotificationWatcher::new(task, run);
        story.transitions.iter().flat_map(|transition| watch.apply(transition)).count()
    };
    let budget_message = |task, run| {
        let mut watch = NotificationWatcher::new(task, run);
        let notification = story.transitions.iter().flat_map(|transition| watch.apply(transition)).next().unwrap();
        let message = message(&notification, MessageContext { project: "shop", question: None });
        format!("{} | {}", message.text, message.next.unwrap_or_default())
    };
    let (dollars, minutes, tokens) = (
        Caps { max_cost_micro_usd: Some(2_500_000), ..Caps::default() },
        Caps { max_minutes: Some(1), ..Caps::default() },
        Caps { max_tokens: Some(0), ..Caps::default() },
    );
    insta::assert_snapshot!(budget_message(Caps::default(), dollars), @"In the whole run $0.00 of $2.50 is spent: another attempt may go over it. | signoff configure --set limits.run.max_cost_usd=DOLLARS; signoff work");
    insta::assert_snapshot!(budget_message(minutes, Caps::default()), @"For this task 0 minutes of 1 minute are over: another attempt may go over it. | signoff configure --set limits.max_minutes=MINUTES; signoff work");
    insta::assert_snapshot!(budget_message(tokens, dollars), @"For this task 0 tokens of 0 tokens are used. | signoff configure --set limits.max_tokens=TOKENS; signoff work");
    assert_eq!(message_lines(cap, Caps::default()), 2);
    assert_eq!(message_lines(Caps::default(), cap), 1);
}

/// The notifications of a watch that starts with this log.
fn still_holds(story: &Story) -> Vec<NotificationKind> {
    caught_up(&mut NotificationWatcher::default(), &story.transitions)
        .iter()
        .map(|notification| notification.kind)
        .collect()
}

#[test]
fn pending_notifications_are_sent_when_a_run_is_resumed() {
    let late = |story: Story| {
        story.reviewer_fails("code", AttemptFailure::TimedOut).reviewer_fails("code", AttemptFailure::TimedOut)
    };
    let ended = late(Story::task(reviewed("plan")).works().approves("spec"));
    assert_eq!(still_holds(&ended), [NotificationKind::Question]);
    assert_eq!(still_holds(&ended.person(Choice::Retry)), []);
    assert_eq!(still_holds(&task().gives_up("no such table")), [NotificationKind::Stuck]);
    assert_eq!(still_holds(&task().gives_up("no such table").retry()), []);
    let short = task().then(Event::BudgetReached);
    assert_eq!(still_holds(&short), [NotificationKind::Budget]);
    assert_eq!(still_holds(&short.then(Event::Resumed { reason: PauseReason::Budget })), []);
}

#[test]
fn a_rate_limit_is_not_notified_as_budget() {
    let story = task();
    let until = story.log[0].at + SignedDuration::from_mins(5);
    let attempt = story.jobs()[0].attempt;
    let plan = LimitPlan::WaitUntil(until);
    let story = story.then(Event::RateLimited { attempt, plan, error: None, next_agent: None });
    assert_eq!(message_lines(&story), "");
}

#[test]
fn a_blocking_task_needs_a_person_even_if_not_failed() {
    let mut policy = reviewed("plan");
    for phase in &mut policy.workflow.phases {
        if let PhaseKind::Gate(gate_policy) = &mut phase.kind {
            gate_policy.gate.on_exhausted = OnExhausted::Stop;
            gate_policy.gate.exhausted_as = ExhaustedAs::Attention;
        }
    }
    let story = Story::new(policy).plan(&[&[(1, "One")], &[(2, "Two")]]).starts(1).works();
    let object = |story: Story| story.objects("spec", &BUG).objects("code", &BUG);
    let story = object(object(object(story).works()).works());
    insta::assert_snapshot!(message_lines(&story), @"stuck | Task #1 needs you: One | The review cycles are used up. | signoff show 1, then signoff improve 1 --review or signoff edit 1 --verdict APPROVED");
}

#[test]
fn a_reopened_run_is_notified_again() {
    let story = task().gives_up("no such table").retry().works().approves("general");
    let events: Vec<_> = messages(&story).iter().map(|message| message.event).collect();
    assert_eq!(events, [NotificationKind::Stuck, NotificationKind::Done]);
}

#[test]
fn a_sample_fits_too() {
    for &occasion in NotificationKind::ALL {
        let sample = sample(occasion, "shop", "2026-01-29T10:00:00Z".to_owned());
        fits(&json!(sample), &schema("notification")).unwrap();
    }
}

/// The number of questions in a log.
fn questions(story: &Story) -> usize {
    let (mut view, mut seen) = (RunState::default(), BTreeSet::new());
    for recorded in &story.log {
        view.replay(recorded);
        seen.extend(view.rows().into_iter().filter_map(|row| row.question).map(|question| question.id));
    }
    seen.len()
}

proptest! {
    #[test]
    fn each_question_is_notified_once(story in log()) {
        let messages_of_questions = messages(&story).into_iter().filter(|message| message.event == NotificationKind::Question);
        let messages_of_questions: Vec<_> = messages_of_questions.collect();
        prop_assert_eq!(messages_of_questions.len(), questions(&story));
        prop_assert!(messages_of_questions.iter().all(|message| message.question.is_some()));
    }

    /// A watch that resumes a run sends the same notifications as one that watched from the start.
    #[test]
    fn past_events_are_not_notified_again(story in log(), cut in any::<prop::sample::Index>()) {
        let already_applied = cut.index(story.log.len() + 1);
        prop_assert_eq!(sent_after(&story.transitions, already_applied), &sent_after(&story.transitions, 0)[already_applied..]);
    }

    /// A pending notification has the same occurrence id as when it was sent first.
    #[test]
    fn pending_notifications_were_sent_before(story in log()) {
        let keys: Vec<_> = sent_after(&story.transitions, 0).iter().flatten().map(Notification::key).collect();
        for standing in caught_up(&mut NotificationWatcher::default(), &story.transitions) {
            prop_assert!(keys.contains(&standing.key()), "{:?}", standing.key());
        }
    }

    /// Title and text are one line each, and short enough for a pipe.
    #[test]
    fn messages_match_the_schema_and_have_no_control_characters(story in log()) {
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
