//! What people are told who are not looking, in words: what happened, why, and what to type next.

use signoff_core::group::{RunOutcome, RunStage};
use signoff_core::machine::FinalWord;
use signoff_core::merge::render::plain_text::one_line;
use signoff_core::notify::{Cap, Message, MessageQuestion, Notification, Occasion, VERSION, Whose};
use signoff_core::policy::Refusal;
use signoff_core::view::{Counts, LoopView, Status};

use crate::fit::{count, cut};
use crate::words;

/// Titles are cut where a phone would.
const TITLE: usize = 120;

/// The longest text, in columns: it fits what desktops show, and a pipe.
const TEXT: usize = 1000;

/// What only the program knows.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// The name of the repository's directory.
    pub project: &'a str,
    /// The name of the question it is about, `q1`.
    pub question: Option<&'a str>,
}

/// A notification in words.
pub fn message(told: &Notification, known: Known<'_>) -> Message {
    let (row, overview) = (told.about.as_deref(), &told.overview);
    let usage = row.map_or(overview.usage, |row| row.usage);
    let (title, text) = row.map_or_else(|| of_run(told), |row| of_loop(told, row));
    let branch = row.map(|row| row.branch.clone()).filter(|branch| !branch.is_empty());
    Message {
        version: VERSION,
        event: told.occasion,
        project: cut(known.project, TITLE),
        run_id: told.run.0,
        task_id: row.and_then(|row| row.task).map(|task| task.0),
        title: cut(&title.chars().take(TITLE * 2).collect::<String>(), TITLE),
        text: bounded(&text),
        question: row.and_then(|row| question(row, known)),
        outcome: outcome(row, &overview.stage),
        final_verdict: row.and_then(|row| row.final_verdict).map(|verdict| verdict.word().to_owned()),
        reason: row.and_then(|row| row.reason).map(words::code),
        cost_usd: usage.cost_micro_usd as f64 / 1e6,
        branch: branch.or_else(|| overview.branch.clone()),
        next: next(told, known),
        at: told.at.to_string(),
    }
}

/// Also where it consists of characters that take no room.
fn bounded(text: &str) -> String {
    cut(&one_line(text).chars().take(TEXT * 2).collect::<String>(), TEXT)
}

fn question(row: &LoopView, known: Known<'_>) -> Option<MessageQuestion> {
    let asked = row.question.as_ref()?;
    Some(MessageQuestion {
        id: known.question.map_or_else(|| format!("q{}", asked.id.0), str::to_owned),
        text: bounded(&asked.text),
        choices: choices(row),
    })
}

fn choices(row: &LoopView) -> Vec<String> {
    let asked = row.question.as_ref().map(|asked| asked.choices.as_slice()).unwrap_or_default();
    asked.iter().map(|choice| choice.word().to_owned()).collect()
}

/// Title and text about one loop.
fn of_loop(told: &Notification, row: &LoopView) -> (String, String) {
    let subject = words::subject(row);
    let why = row.reason.map(|reason| words::reason(reason).to_owned());
    let (what, text) = match told.occasion {
        Occasion::Question => {
            let asked = row.question.as_ref().map(|asked| asked.text.clone());
            ("asks you", asked.unwrap_or_default())
        }
        Occasion::Stuck => (how_badly(row), why.map_or_else(String::new, |why| sentence(&why))),
        Occasion::Budget => ("is paused", told.cap.map_or_else(|| unknown_cap(row), reached)),
        Occasion::Done => ("is done", how_well(row)),
    };
    let title = if row.task.is_some() { format!(": {}", row.title) } else { String::new() };
    (format!("{subject} {what}{title}"), text)
}

/// `In the whole run $5.00 of $6.00 is spent: another attempt may go over it.`
fn reached(cap: Cap) -> String {
    let place = match cap.whose {
        Whose::Task => "For this task",
        Whose::Run => "In the whole run",
    };
    let (used, most) = (amount(cap.what, cap.used), amount(cap.what, cap.most));
    let verb = match cap.what {
        Refusal::Cost => "is spent",
        Refusal::Tokens => "are used",
        Refusal::Minutes => "are over",
    };
    let why = if cap.used < cap.most { ": another attempt may go over it" } else { "" };
    format!("{place} {used} of {most} {verb}{why}.")
}

fn amount(what: Refusal, number: u64) -> String {
    match what {
        Refusal::Cost => format!("${:.2}", number as f64 / 1e6),
        Refusal::Tokens => count(number, "token"),
        Refusal::Minutes => count(number / 60_000, "minute"),
    }
}

fn unknown_cap(row: &LoopView) -> String {
    let spent = amount(Refusal::Cost, row.usage.cost_micro_usd);
    format!("The budget is used up: this task cost {spent} so far.")
}

/// Where it is raised, and what to type then.
fn raise(cap: Option<Cap>) -> String {
    let Some(cap) = cap else { return "signoff config limits; signoff work".to_owned() };
    let table = match cap.whose {
        Whose::Task => "limits",
        Whose::Run => "limits.run",
    };
    let (key, more) = match cap.what {
        Refusal::Cost => ("max_cost_usd", "DOLLARS"),
        Refusal::Tokens => ("max_tokens", "TOKENS"),
        Refusal::Minutes => ("max_minutes", "MINUTES"),
    };
    format!("signoff configure --set {table}.{key}={more}; signoff work")
}

fn how_badly(row: &LoopView) -> &'static str {
    match row.status {
        Status::Failed => "failed",
        Status::Stuck => "is stuck",
        Status::Pending
        | Status::InProgress
        | Status::Waiting
        | Status::Paused
        | Status::Completed
        | Status::Blocked
        | Status::Cancelled => "needs you",
    }
}

/// `APPROVED after 2 reviews.`
fn how_well(row: &LoopView) -> String {
    let verdict = row.final_verdict.map_or("Not reviewed", FinalWord::word);
    let reviews = Some(row.cycle).filter(|cycle| *cycle > 0 && row.final_verdict.is_some());
    let reviews = reviews.map(|cycle| format!(" after {}", count(cycle, "review"))).unwrap_or_default();
    let why = row.reason.map(|reason| format!(": {}", words::reason(reason))).unwrap_or_default();
    let open = Some(row.open_findings).filter(|open| *open > 0);
    let open = open.map(|open| format!(" {} left open.", count(open as u64, "finding"))).unwrap_or_default();
    format!("{verdict}{reviews}{why}.{open}")
}

fn sentence(words: &str) -> String {
    let mut chars = words.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    first.chain(chars).chain(['.']).collect()
}

/// Title and text about a run of several.
fn of_run(told: &Notification) -> (String, String) {
    let Counts { done, stuck, cancelled, .. } = told.overview.tasks;
    let all = told.overview.tasks.all();
    let well = format!("{done} of {} went through", count(all as u64, "task"));
    let others = [(stuck, "needs you", "need you"), (cancelled, "was cancelled", "were cancelled")];
    let others = others.into_iter().filter(|(number, ..)| *number > 0);
    let others: String = others
        .map(|(number, one, more)| format!(", {number} {}", if number == 1 { one } else { more }))
        .collect();
    (format!("Run {} is done", told.run), format!("{well}{others}."))
}

fn outcome(row: Option<&LoopView>, stage: &RunStage) -> Option<String> {
    let of_run = || stage.outcome().map(RunOutcome::word);
    row.map_or_else(of_run, |row| row.outcome).map(str::to_owned)
}

/// What to type next.
fn next(told: &Notification, known: Known<'_>) -> Option<String> {
    let Some(row) = told.about.as_deref() else { return Some("signoff status".to_owned()) };
    let task = row.task.map(|task| task.0.to_string());
    match (told.occasion, task) {
        (Occasion::Question, task) => {
            let whom = task.or_else(|| known.question.map(str::to_owned));
            whom.map(|whom| format!("signoff answer {whom} {}", choices(row).join("|")))
        }
        (Occasion::Stuck, Some(task)) if matches!(row.status, Status::Failed | Status::Stuck) => {
            Some(format!("signoff show {task}; signoff retry {task}"))
        }
        (Occasion::Budget, _) => Some(raise(told.cap)),
        (Occasion::Stuck | Occasion::Done, Some(task)) => Some(format!("signoff show {task}")),
        (Occasion::Stuck | Occasion::Done, None) => Some("signoff status".to_owned()),
    }
}

/// What a channel is sent to see whether it works.
pub fn sample(occasion: Occasion, project: &str, at: String) -> Message {
    let asked = MessageQuestion {
        id: "q1".to_owned(),
        text: "This is a test. Retry or stop?".to_owned(),
        choices: vec!["retry".to_owned(), "stop".to_owned()],
    };
    Message {
        version: VERSION,
        event: occasion,
        project: cut(project, TITLE),
        run_id: 0,
        task_id: None,
        title: format!("A test of signoff: {}", occasion.word()),
        text: "If you can read this, it works.".to_owned(),
        question: Some(asked).filter(|_| occasion == Occasion::Question),
        outcome: None,
        final_verdict: None,
        reason: None,
        cost_usd: 0.0,
        branch: None,
        next: None,
        at,
    }
}
