//! Builds the message of a notification: what happened, why, and the command to type next.

use signoff_core::group::RunStage;
use signoff_core::merge::render::plain_text::one_line;
use signoff_core::notify::{
    BindingCap, CapOwner, MessageQuestion, Notification, NotificationKind, NotificationMessage, NotifiedOutcome,
    VERSION,
};
use signoff_core::policy::BudgetResource;
use signoff_core::view::inbox::{Action, NextStep, Urgency};
use signoff_core::view::{LoopRow, RunTaskCounts};

use crate::fit::{capitalized, count, truncate_line};
use crate::labels;

/// Maximum title width; phones truncate longer titles.
const TITLE: usize = 120;

/// Maximum text width: fits in a desktop notification and in a pipe buffer.
const TEXT: usize = 1000;

/// Values of a message that are not part of the event.
#[derive(Debug, Clone, Copy)]
pub struct MessageContext<'a> {
    /// The name of the repository's directory.
    pub project: &'a str,
    /// The id of the question, `q1`.
    pub question: Option<&'a str>,
}

/// Builds the message of a notification.
pub fn message(notification: &Notification, context: MessageContext<'_>) -> NotificationMessage {
    let (row, overview) = (notification.about.as_deref(), &notification.overview);
    let usage = row.map_or(overview.usage, |row| row.usage);
    let (title, text) = row.map_or_else(|| run_message(notification), |row| loop_message(notification, row));
    let branch = row.map(|row| row.branch.clone()).filter(|branch| !branch.is_empty());
    NotificationMessage {
        version: VERSION,
        event: notification.kind,
        project: truncate_line(context.project, TITLE),
        run_id: notification.run.0,
        task_id: row.and_then(|row| row.task).map(|task| task.0),
        title: truncate_line(&title.chars().take(TITLE * 2).collect::<String>(), TITLE),
        text: bounded(&text),
        question: row.and_then(|row| question(row, context)),
        outcome: outcome(row, &overview.stage),
        final_verdict: row.and_then(|row| row.final_verdict),
        reason: row.and_then(|row| row.reason),
        cost_usd: usage.cost_micro_usd as f64 / 1e6,
        branch: branch.or_else(|| overview.branch.clone()),
        next: Some(next_step(notification, context).to_string()),
        at: notification.at.to_string(),
    }
}

/// Limits the number of columns, and the number of characters in case they have no width.
fn bounded(text: &str) -> String {
    truncate_line(&one_line(text).chars().take(TEXT * 2).collect::<String>(), TEXT)
}

fn question(row: &LoopRow, context: MessageContext<'_>) -> Option<MessageQuestion> {
    let question = row.question.as_ref()?;
    Some(MessageQuestion {
        id: context.question.map_or_else(|| format!("q{}", question.id.0), str::to_owned),
        text: bounded(&question.text),
        choices: question.choices.iter().map(|choice| choice.into_str().to_owned()).collect(),
    })
}

/// Title and text for one loop.
fn loop_message(notification: &Notification, row: &LoopRow) -> (String, String) {
    let subject = labels::subject(row);
    let why = row.reason.map(labels::reason);
    let (event, text) = match notification.kind {
        NotificationKind::Question => {
            let question = row.question.as_ref().map(|question| question.text.clone());
            ("needs an answer", question.unwrap_or_default())
        }
        NotificationKind::Stuck => (failure_text(row), why.map(|why| capitalized(why) + ".").unwrap_or_default()),
        NotificationKind::Budget => ("is paused", notification.cap.map_or_else(|| unknown_cap(row), budget_reached)),
        NotificationKind::Done => ("is done", completion_text(row)),
    };
    let title = if row.task.is_some() { format!(": {}", row.title) } else { String::new() };
    (format!("{subject} {event}{title}"), text)
}

/// `In the whole run $5.00 of $6.00 is spent: another attempt may go over it.`
fn budget_reached(cap: BindingCap) -> String {
    let owner = match cap.owner {
        CapOwner::Task => "For this task",
        CapOwner::Run => "In the whole run",
    };
    let (used, limit) = (amount(cap.kind, cap.used), amount(cap.kind, cap.limit));
    let verb = match cap.kind {
        BudgetResource::Cost => "is spent",
        BudgetResource::Tokens => "are used",
        BudgetResource::Minutes => "are over",
    };
    let why = if cap.used < cap.limit { ": another attempt may go over it" } else { "" };
    format!("{owner} {used} of {limit} {verb}{why}.")
}

fn amount(resource: BudgetResource, number: u64) -> String {
    match resource {
        BudgetResource::Cost => format!("${:.2}", number as f64 / 1e6),
        BudgetResource::Tokens => count(number, "token"),
        BudgetResource::Minutes => count(number / 60_000, "minute"),
    }
}

fn unknown_cap(row: &LoopRow) -> String {
    let spent = amount(BudgetResource::Cost, row.usage.cost_micro_usd);
    format!("The budget is used up: this task cost {spent} so far.")
}

fn failure_text(row: &LoopRow) -> &'static str {
    match Urgency::for_loop(row) {
        Some(Urgency::Failed) => "failed",
        Some(Urgency::Stuck) => "is stuck",
        Some(Urgency::Exhausted | Urgency::Discussion | Urgency::NotApproved | Urgency::Blocked | Urgency::Paused)
        | None => "needs you",
    }
}

/// `APPROVED after 2 reviews.`
fn completion_text(row: &LoopRow) -> String {
    let verdict = row.final_verdict.map_or("Not reviewed", <&str>::from);
    let reviews = Some(row.cycle).filter(|cycle| *cycle > 0 && row.final_verdict.is_some());
    let reviews = reviews.map(|cycle| format!(" after {}", count(cycle, "review"))).unwrap_or_default();
    let why = row.reason.map(|reason| format!(": {}", labels::reason(reason))).unwrap_or_default();
    let open = Some(row.open_findings).filter(|open| *open > 0);
    let open = open.map(|open| format!(" {} left open.", count(open as u64, "finding"))).unwrap_or_default();
    format!("{verdict}{reviews}{why}.{open}")
}

/// Title and text for a run with several tasks.
fn run_message(notification: &Notification) -> (String, String) {
    let RunTaskCounts { done, stuck, cancelled, .. } = notification.overview.tasks;
    let all = notification.overview.tasks.all();
    let passed = format!("{done} of {} passed", count(all as u64, "task"));
    let others = [(stuck, "needs you", "need you"), (cancelled, "was cancelled", "were cancelled")];
    let others = others.into_iter().filter(|(number, ..)| *number > 0);
    let others: String = others
        .map(|(number, singular, plural)| format!(", {number} {}", if number == 1 { singular } else { plural }))
        .collect();
    (format!("Run {} is done", notification.run), format!("{passed}{others}."))
}

fn outcome(row: Option<&LoopRow>, stage: &RunStage) -> Option<NotifiedOutcome> {
    let run_outcome = || stage.outcome().map(NotifiedOutcome::Run);
    row.map_or_else(run_outcome, |row| row.outcome.map(NotifiedOutcome::Task))
}

/// What to do next.
fn next_step(notification: &Notification, context: MessageContext<'_>) -> NextStep {
    let Some(row) = notification.about.as_deref() else { return NextStep::Do(Action::Status) };
    let show = || NextStep::Do(row.task.map_or(Action::Status, |task| Action::Show(task.0)));
    match notification.kind {
        NotificationKind::Question => NextStep::for_question(row, context.question),
        NotificationKind::Budget => NextStep::after_budget(notification.cap),
        NotificationKind::Stuck => NextStep::for_loop(row).unwrap_or_else(show),
        NotificationKind::Done => show(),
    }
}

/// The test message for a channel.
pub fn sample(occasion: NotificationKind, project: &str, at: String) -> NotificationMessage {
    let asked = MessageQuestion {
        id: "q1".to_owned(),
        text: "This is a test. Retry or stop?".to_owned(),
        choices: vec!["retry".to_owned(), "stop".to_owned()],
    };
    NotificationMessage {
        version: VERSION,
        event: occasion,
        project: truncate_line(project, TITLE),
        run_id: 0,
        task_id: None,
        title: format!("A test of signoff: {}", occasion.into_str()),
        text: "If you can read this, it works.".to_owned(),
        question: Some(asked).filter(|_| occasion == NotificationKind::Question),
        outcome: None,
        final_verdict: None,
        reason: None,
        cost_usd: 0.0,
        branch: None,
        next: None,
        at,
    }
}
