//! Tracks one loop while its facts are applied: times, issues and questions.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use signoff_core::ids::{FindingId, LoopId, QuestionId, ReviewerName, RunId, TaskId};
use signoff_core::ledger::{FindingState, Ledger, LedgerEntry, Round};
use signoff_core::machine::{Choice, Event, Loop, Stage};
use signoff_core::review::{Finding, Note, Severity};
use signoff_core::similarity::fingerprint;

use super::ReceivedReview;
use super::rows::finding_columns;
use crate::record::{TableName, TableRow};

/// The type of issues that are minor notes.
const NOTE_TYPE: &str = "note";

#[derive(Default)]
pub(super) struct LoopTracker {
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub last_review: Option<String>,
    pub issues: Vec<IssueRecord>,
    pub questions: Vec<QuestionRecord>,
    /// The issues that are not linked to a ledger entry yet.
    unlinked: Vec<UnlinkedIssue>,
}

struct UnlinkedIssue {
    issue: usize,
    reviewer: ReviewerName,
    round: Round,
}

impl LoopTracker {
    pub fn update_times(&mut self, at: Timestamp, state: &Loop) {
        if state.stage != Stage::Queued {
            self.started_at = self.started_at.or(Some(at));
        }
        self.ended_at = state.is_done().then(|| self.ended_at.unwrap_or(at));
    }

    /// Closes questions that are no longer open.
    pub fn close_questions(&mut self, at: Timestamp, state: &Loop, event: &Event) {
        let now = state.open_question();
        let is_closed_now = |record: &&mut QuestionRecord| record.closed_at.is_none() && Some(record.number) != now;
        for record in self.questions.iter_mut().filter(is_closed_now) {
            record.closed_at = Some(at);
            if let Event::PersonAnswered { question, choice, by } = event
                && *question == record.number
            {
                record.answer = Some((*choice, by.clone()));
            }
        }
    }

    /// The open question, if it is a new one.
    pub fn new_question(&self, state: &Loop) -> Option<QuestionId> {
        state.open_question().filter(|number| self.questions.iter().all(|record| record.number != *number))
    }

    pub fn add_review(&mut self, received: &ReceivedReview) {
        let review = &received.review;
        self.last_review = Some(received.id.clone());
        let first = self.issues.len();
        let unlinked = |issue| {
            let (reviewer, round) = (review.reviewer.clone(), received.round.clone());
            UnlinkedIssue { issue, reviewer, round }
        };
        self.unlinked.extend((first..first + review.findings.len()).map(unlinked));
        // The minor notes are issues too. They are not in the ledger and have no state.
        let notes = review.minor.iter().map(|note| {
            let Note { file, line, description } = note.clone();
            Finding { file, line, ..Finding::new(&review.reviewer, NOTE_TYPE, Severity::Minor, description) }
        });
        for (number, finding) in (1..).zip(review.findings.iter().cloned().chain(notes)) {
            self.issues.push(IssueRecord {
                id: format!("{}-{number}", received.id),
                run: received.run,
                loop_id: received.loop_id.clone(),
                review: received.id.clone(),
                task: received.task,
                finding,
                entry: None,
            });
        }
    }

    /// Links issues to their ledger entries, once their round is in the ledger.
    pub fn link_issues(&mut self, ledger: &Ledger) {
        let rounds: BTreeSet<RoundKey> = ledger.entries().iter().filter_map(last_round).collect();
        if !self.unlinked.iter().any(|loose| rounds.contains(&round_key(&loose.round))) {
            return;
        }
        let mut reported: BTreeMap<_, &LedgerEntry> = BTreeMap::new();
        for entry in ledger.entries() {
            let Some(round) = last_round(entry) else { continue };
            for report in ledger.reports(&entry.finding.id) {
                reported.entry((round, report)).or_insert(entry);
            }
        }
        let issues = &mut self.issues;
        self.unlinked.retain(|loose| {
            let Some(issue) = issues.get_mut(loose.issue) else { return false };
            let finding = &issue.finding;
            let id = if finding.id.as_str().is_empty() {
                fingerprint(finding.file.as_deref(), &finding.kind, &finding.description)
            } else {
                finding.id.clone()
            };
            let report = (loose.reviewer.clone(), id);
            let became = reported.get(&(round_key(&loose.round), &report));
            issue.entry = became.map(|entry| (entry.finding.id.clone(), entry.state));
            became.is_none()
        });
    }

    /// Updates the states of linked issues.
    pub fn update_states(&mut self, ledger: &Ledger) {
        for (id, state) in self.issues.iter_mut().filter_map(|issue| issue.entry.as_mut()) {
            if let Some(entry) = ledger.get(id) {
                *state = entry.state;
            }
        }
    }
}

/// A finding as one review reported it.
pub(super) struct IssueRecord {
    id: String,
    run: RunId,
    loop_id: LoopId,
    review: String,
    task: Option<TaskId>,
    finding: Finding,
    /// Its ledger entry and the state of that entry.
    entry: Option<(FindingId, FindingState)>,
}

impl IssueRecord {
    pub fn row(&self) -> TableRow {
        let of_loop = !self.loop_id.is_run_level();
        let own = || Some(self.finding.id.as_str()).filter(|id| !id.is_empty());
        let id = self.entry.as_ref().map(|(id, _)| id.as_str()).or_else(own);
        let mut columns = vec![
            ("run_id", self.run.0.into()),
            ("loop_id", of_loop.then_some(self.loop_id.as_str()).into()),
            ("loop_review_id", of_loop.then_some(self.review.as_str()).into()),
            ("task_id", self.task.map(|task| task.0).into()),
            ("state", self.entry.as_ref().map(|(_, state)| state.into_str()).into()),
            ("finding_id", id.into()),
        ];
        columns.extend(finding_columns(&self.finding));
        TableRow::put(TableName::ReviewIssues, vec![self.id.as_str().into()], columns)
    }
}

pub(super) struct QuestionRecord {
    /// The id that users see.
    pub id: u64,
    pub run: RunId,
    pub loop_id: LoopId,
    /// The number within the loop.
    pub number: QuestionId,
    pub task: Option<TaskId>,
    pub text: String,
    pub choices: Vec<Choice>,
    pub asked_at: Timestamp,
    pub closed_at: Option<Timestamp>,
    pub answer: Option<(Choice, String)>,
}

impl QuestionRecord {
    pub fn row(&self) -> TableRow {
        let choices: Vec<_> = self.choices.iter().map(|choice| choice.into_str()).collect();
        let columns = vec![
            ("run_id", self.run.0.into()),
            ("loop_id", self.loop_id.as_str().into()),
            ("number", self.number.0.into()),
            ("task_id", self.task.map(|task| task.0).into()),
            ("text", self.text.as_str().into()),
            ("choices", serde_json::json!(choices).to_string().into()),
            ("asked_at", self.asked_at.into()),
            ("closed_at", self.closed_at.into()),
            ("answer", self.answer.as_ref().map(|(choice, _)| choice.into_str()).into()),
            ("answered_by", self.answer.as_ref().map(|(_, by)| by.as_str()).into()),
        ];
        TableRow::put(TableName::Questions, vec![self.id.into()], columns)
    }
}

/// Identifies a round apart from its commit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RoundKey {
    pass: u32,
    phase: usize,
    cycle: u32,
    is_checkpoint: bool,
}

fn round_key(round: &Round) -> RoundKey {
    let Round { pass, phase, cycle, .. } = *round;
    RoundKey { pass, phase, cycle, is_checkpoint: round.checkpoint.is_some() }
}

/// The round in which an entry was last reported.
fn last_round(entry: &LedgerEntry) -> Option<RoundKey> {
    entry.seen.last().map(round_key)
}
