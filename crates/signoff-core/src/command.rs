//! From what somebody asks for to the fact that is recorded, or to why it is refused.
//!
//! The machine ignores what does not fit; a person must be told. So commands pass through here first.

use serde::{Deserialize, Serialize};

use crate::ids::{AttemptId, FindingId, QuestionId, ReviewerName};
use crate::ledger::{DecidedBy, Decision, State};
use crate::machine::{Again, Choice, Event, FinalWord, Head, Loop, Outcome, Policy, Stage, step};
use crate::review::{Finding, Severity};
use crate::similarity;

/// What a person or a finished attempt asks of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// The open question, or the one with this id.
    Answer {
        question: Option<QuestionId>,
        choice: String,
        by: String,
    },
    Retry {
        by: String,
    },
    Edit {
        verdict: String,
        by: String,
        reason: String,
        /// Where the branch is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<Head>,
    },
    Cancel {
        by: String,
    },
    /// A person says that a finding is wrong.
    Dispute {
        finding: FindingId,
        by: String,
        reason: String,
    },
    /// An attempt's report.
    Report(Event),
}

/// Why a command is not carried out. Each says what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("there is no open question")]
    NoQuestion,
    #[error("question {asked} is not open; the open one is {open}")]
    AnotherQuestion { asked: QuestionId, open: QuestionId },
    #[error("`{choice}` is not a choice here: choose one of {}", words(choices))]
    UnknownChoice { choice: String, choices: Vec<Choice> },
    #[error(
        "unknown verdict `{verdict}`: choose one of APPROVED, CHANGES_REQUESTED, MAX_CYCLES_REACHED, NEEDS_DISCUSSION"
    )]
    UnknownVerdict { verdict: String },
    #[error("a person set this verdict already")]
    Unchanged,
    #[error("it is being worked on: wait for it, or cancel it first")]
    AtWork,
    #[error("it has not ended yet: cancel it first, or wait")]
    NotEnded,
    #[error("there is nothing to retry: it ended as {outcome}")]
    NothingToRetry { outcome: &'static str },
    #[error("it has ended already")]
    Ended,
    #[error("there is no finding {finding}")]
    UnknownFinding { finding: FindingId },
    #[error("attempt {attempt} is not running: its report comes too late")]
    Stale { attempt: AttemptId },
    #[error("this does not fit the state of the task")]
    Misfit,
}

fn words(choices: &[Choice]) -> String {
    choices.iter().map(|choice| choice.word()).collect::<Vec<_>>().join(", ")
}

/// The fact that a command amounts to.
pub fn decide(this: &Loop, command: Command, policy: &Policy) -> Result<Event, Refusal> {
    match command {
        Command::Answer { question, choice, by } => answer(this, question, choice, by),
        Command::Retry { by } => retry(this, by),
        Command::Edit { verdict, by, reason, head } => match FinalWord::from_word(&verdict) {
            Some(verdict) => {
                let findings = refusal(verdict, &by, &reason);
                edit(this, Event::PersonEdited { verdict, by, reason, head, findings }, policy)
            }
            None => Err(Refusal::UnknownVerdict { verdict }),
        },
        Command::Cancel { .. } if !this.can_be_cancelled() => Err(Refusal::Ended),
        Command::Cancel { by } => Ok(Event::Cancelled { by }),
        Command::Dispute { finding, by, reason } => dispute(this, finding, by, reason),
        Command::Report(event) => report(this, event, policy),
    }
}

fn answer(this: &Loop, asked: Option<QuestionId>, choice: String, by: String) -> Result<Event, Refusal> {
    let Stage::Waiting { question, .. } = &this.stage else { return Err(Refusal::NoQuestion) };
    if let Some(asked) = asked.filter(|asked| *asked != question.id) {
        return Err(Refusal::AnotherQuestion { asked, open: question.id });
    }
    match Choice::from_word(&choice).filter(|choice| question.choices.contains(choice)) {
        Some(choice) => Ok(Event::PersonAnswered { question: question.id, choice, by }),
        None => Err(Refusal::UnknownChoice { choice, choices: question.choices.clone() }),
    }
}

/// The finding that a refusal amounts to: only a later review or a person closes it.
pub fn refusal(verdict: FinalWord, by: &str, reason: &str) -> Vec<Finding> {
    if verdict != FinalWord::ChangesRequested {
        return Vec::new();
    }
    let reason = if reason.trim().is_empty() { "refused without a reason" } else { reason.trim() };
    let mut findings = vec![Finding::of(&ReviewerName::new(by), "refusal", Severity::Critical, reason)];
    similarity::assign_ids(&mut findings);
    findings
}

/// What a writer has not committed yet would be lost with its attempt, and the verdict be about nothing.
fn edit(this: &Loop, event: Event, policy: &Policy) -> Result<Event, Refusal> {
    if this.is_being_written() {
        return Err(Refusal::AtWork);
    }
    if changes(this, &event, policy) { Ok(event) } else { Err(Refusal::Unchanged) }
}

fn changes(this: &Loop, event: &Event, policy: &Policy) -> bool {
    step(this.clone(), event.clone(), policy).0 != *this
}

fn retry(this: &Loop, by: String) -> Result<Event, Refusal> {
    let Stage::Done(ending) = &this.stage else { return Err(Refusal::NotEnded) };
    if ending.again == Again::Nothing {
        return Err(Refusal::NothingToRetry { outcome: name(&ending.outcome) });
    }
    Ok(Event::PersonRetried { by })
}

fn name(outcome: &Outcome) -> &'static str {
    outcome.word().unwrap_or("completed")
}

fn dispute(this: &Loop, finding: FindingId, by: String, reason: String) -> Result<Event, Refusal> {
    if this.ledger.get(&finding).is_none() {
        return Err(Refusal::UnknownFinding { finding });
    }
    let commit = Some(this.head.commit.clone());
    let decision = Decision { state: State::Refuted, by: DecidedBy::Person(by), commit, evidence: reason };
    Ok(Event::FindingDecided { finding, decision })
}

/// A report is a fact only while its attempt runs, and only if it is of the kind that attempt can make.
fn report(this: &Loop, event: Event, policy: &Policy) -> Result<Event, Refusal> {
    if let Some(attempt) = event.ends_attempt().filter(|attempt| !this.runs(*attempt)) {
        return Err(Refusal::Stale { attempt });
    }
    if changes(this, &event, policy) { Ok(event) } else { Err(Refusal::Misfit) }
}
