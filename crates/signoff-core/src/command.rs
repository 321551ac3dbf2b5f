//! Turns a command into the event to record, or into a refusal.
//!
//! The state machine ignores events that do not fit the state, but the caller must learn why nothing happened. So
//! every command is checked here first.

use serde::{Deserialize, Serialize};

use crate::ids::{AttemptId, FindingId, QuestionId, ReviewerName};
use crate::ledger::{DecidedBy, FindingDecision, FindingState};
use crate::machine::{Choice, Event, FinalVerdict, Head, Loop, OutcomeKind, Policy, RetryAction, Stage, step};
use crate::review::{Finding, Severity};
use crate::similarity;
use crate::view::{QuestionRow, inbox};

/// A command for a loop, from a person or from a finished attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopCommand {
    /// Answers the open question; `question` must match its id if given.
    Answer { question: Option<QuestionId>, choice: Choice, by: String },
    /// Continues an ended loop.
    Retry { by: String },
    /// Sets the verdict.
    Edit {
        verdict: FinalVerdict,
        by: String,
        reason: String,
        /// The current tip of the branch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<Head>,
    },
    /// Cancels the loop.
    Cancel { by: String },
    /// A person disputes a finding.
    Dispute { finding: FindingId, by: String, reason: String },
    /// The report of an attempt.
    Report(Event),
}

/// Why a command is refused. Each message says what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandRefusal {
    #[error("there is no open question")]
    NoQuestion,
    #[error("question {asked} is not open; the open one is {open}")]
    AnotherQuestion { asked: QuestionId, open: QuestionId },
    #[error("`{choice}` is not a choice here: choose one of {}", choice_names(choices))]
    UnknownChoice { choice: String, choices: Vec<Choice> },
    #[error(
        "unknown verdict `{verdict}`: choose one of APPROVED, CHANGES_REQUESTED, MAX_CYCLES_REACHED, NEEDS_DISCUSSION"
    )]
    UnknownVerdict { verdict: String },
    #[error("a person set this verdict already")]
    Unchanged,
    #[error("it has not started: there is nothing to judge")]
    NotStarted,
    #[error("the task is running: wait for it, or cancel it first")]
    AtWork,
    #[error("it has not ended yet: cancel it first, or wait")]
    NotEnded,
    #[error("there is nothing to retry: it ended as {}", outcome.map_or("completed", |kind| kind.into_str()))]
    NothingToRetry { outcome: Option<OutcomeKind> },
    #[error("it has ended already")]
    Ended,
    #[error("there is no finding {finding}")]
    UnknownFinding { finding: FindingId },
    #[error("finding {finding} is {} already: no review opens it again", state.label())]
    FindingSettled { finding: FindingId, state: FindingState },
    #[error("attempt {attempt} is not running: its report comes too late")]
    StaleReport { attempt: AttemptId },
    #[error("this does not fit the state of the task")]
    InvalidState,
}

fn choice_names(choices: &[Choice]) -> String {
    choices.iter().map(|choice| choice.into_str()).collect::<Vec<_>>().join(", ")
}

/// Parses the verdict that a person typed, in upper or lower case.
pub fn parse_verdict(word: &str) -> Result<FinalVerdict, CommandRefusal> {
    let verdict = word.to_ascii_uppercase();
    verdict.parse::<FinalVerdict>().map_err(|_| CommandRefusal::UnknownVerdict { verdict })
}

/// Parses the choice that a person typed.
pub fn parse_choice(word: &str, question: &QuestionRow) -> Result<Choice, CommandRefusal> {
    let choices = || question.choices.iter().filter_map(|choice| choice.parse::<Choice>().ok()).collect();
    word.parse::<Choice>().map_err(|_| CommandRefusal::UnknownChoice { choice: word.to_owned(), choices: choices() })
}

/// Returns the event that a command amounts to.
pub fn decide(machine: &Loop, command: LoopCommand, policy: &Policy) -> Result<Event, CommandRefusal> {
    match command {
        LoopCommand::Answer { question, choice, by } => answer(machine, question, choice, by),
        LoopCommand::Retry { by } => retry(machine, by),
        LoopCommand::Edit { verdict, by, reason, head } => {
            let findings = refusal_findings(verdict, &by, &reason);
            edit(machine, Event::PersonEdited { verdict, by, reason, head, findings }, policy)
        }
        LoopCommand::Cancel { .. } if !machine.can_be_cancelled() => Err(CommandRefusal::Ended),
        LoopCommand::Cancel { by } => Ok(Event::Cancelled { by }),
        LoopCommand::Dispute { finding, by, reason } => dispute(machine, finding, by, reason),
        LoopCommand::Report(event) => report(machine, event, policy),
    }
}

fn answer(machine: &Loop, asked: Option<QuestionId>, choice: Choice, by: String) -> Result<Event, CommandRefusal> {
    let Stage::Waiting { question, .. } = &machine.stage else { return Err(CommandRefusal::NoQuestion) };
    if let Some(asked) = asked.filter(|asked| *asked != question.id) {
        return Err(CommandRefusal::AnotherQuestion { asked, open: question.id });
    }
    if !question.choices.contains(&choice) {
        let choice = choice.into_str().to_owned();
        return Err(CommandRefusal::UnknownChoice { choice, choices: question.choices.clone() });
    }
    Ok(Event::PersonAnswered { question: question.id, choice, by })
}

/// The finding that records a person's refusal. Only a later review or a person closes it.
pub fn refusal_findings(verdict: FinalVerdict, by: &str, reason: &str) -> Vec<Finding> {
    if verdict != FinalVerdict::ChangesRequested {
        return Vec::new();
    }
    let reason = if reason.trim().is_empty() { "refused without a reason" } else { reason.trim() };
    let mut findings = vec![Finding::new(&ReviewerName::new(by), "refusal", Severity::Critical, reason)];
    similarity::assign_ids(&mut findings);
    findings
}

/// Refuses while an agent writes: its uncommitted work would be lost, and the verdict would judge nothing.
fn edit(machine: &Loop, event: Event, policy: &Policy) -> Result<Event, CommandRefusal> {
    if !machine.has_started() {
        return Err(CommandRefusal::NotStarted);
    }
    if machine.is_being_written() {
        return Err(CommandRefusal::AtWork);
    }
    if changes_state(machine, &event, policy) { Ok(event) } else { Err(CommandRefusal::Unchanged) }
}

fn changes_state(machine: &Loop, event: &Event, policy: &Policy) -> bool {
    step(machine.clone(), event.clone(), policy).0 != *machine
}

fn retry(machine: &Loop, by: String) -> Result<Event, CommandRefusal> {
    let Stage::Done(ending) = &machine.stage else { return Err(CommandRefusal::NotEnded) };
    if ending.retry == RetryAction::Nothing {
        return Err(CommandRefusal::NothingToRetry { outcome: ending.outcome.kind() });
    }
    Ok(Event::PersonRetried { by })
}

fn dispute(machine: &Loop, finding: FindingId, by: String, reason: String) -> Result<Event, CommandRefusal> {
    match machine.ledger.get(&finding).map(|entry| entry.state) {
        None => return Err(CommandRefusal::UnknownFinding { finding }),
        Some(state) if !inbox::can_be_disputed(state) => {
            return Err(CommandRefusal::FindingSettled { finding, state });
        }
        Some(_) => {}
    }
    let commit = Some(machine.head.commit.clone());
    let decision =
        FindingDecision { state: FindingState::Refuted, by: DecidedBy::Person(by), commit, evidence: reason };
    Ok(Event::FindingDecided { finding, decision })
}

/// Accepts a report only while its attempt runs, and only if the attempt can make such a report.
fn report(machine: &Loop, event: Event, policy: &Policy) -> Result<Event, CommandRefusal> {
    if let Some(attempt) = event.ends_attempt().filter(|attempt| !machine.runs(*attempt)) {
        return Err(CommandRefusal::StaleReport { attempt });
    }
    if changes_state(machine, &event, policy) { Ok(event) } else { Err(CommandRefusal::InvalidState) }
}
