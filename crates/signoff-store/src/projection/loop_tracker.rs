//! Tracks one loop while its facts are applied: times, issues and questions.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Deserialize;
use signoff_core::ids::{FindingId, LoopId, QuestionId, ReviewerName, RunId, TaskId};
use signoff_core::ledger::{Ledger, LedgerEntry, Round};
use signoff_core::machine::{Event, Loop, Stage};
use signoff_core::review::{Finding, Note, Severity};
use signoff_core::similarity::fingerprint;
use signoff_core::view::QuestionView;

use super::ReceivedReview;
use crate::record::{IssueRecord, QuestionRecord, ReviewRecord};

/// The type of issues that are minor notes.
const NOTE_TYPE: &str = "note";

#[derive(Default)]
pub(super) struct LoopTracker {
    pub task: Option<TaskId>,
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

/// The serialized part of a ledger that maps entries to the reviewers and ids that reported them.
#[derive(Deserialize)]
struct LedgerReports {
    #[serde(default)]
    said: BTreeMap<FindingId, BTreeSet<(ReviewerName, FindingId)>>,
}

/// A new question: its run, its number over all runs, and when it was asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AskedQuestion {
    pub run: RunId,
    pub id: u64,
    pub at: Timestamp,
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
        let gone = |record: &&mut QuestionRecord| record.closed_at.is_none() && Some(record.number) != now;
        for record in self.questions.iter_mut().filter(gone) {
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

    /// Adds the open question of a loop.
    pub fn add_question(&mut self, loop_id: &LoopId, state: &Loop, asked: AskedQuestion) {
        let AskedQuestion { run, id, at } = asked;
        let view = QuestionView::for_loop(state, QuestionId(id), self.task);
        let (Some(number), Some(view)) = (state.open_question(), view) else { return };
        self.questions.push(QuestionRecord {
            id,
            run,
            loop_id: loop_id.clone(),
            number,
            task: self.task,
            text: view.text,
            choices: view.choices,
            asked_at: at,
            closed_at: None,
            answer: None,
        });
    }

    pub fn add_review(&mut self, review: &ReceivedReview) {
        let record = &review.record;
        self.last_review = Some(record.id.clone());
        for (index, finding) in record.review.findings.iter().enumerate() {
            let (reviewer, round) = (record.review.reviewer.clone(), review.round.clone());
            self.unlinked.push(UnlinkedIssue { issue: self.issues.len(), reviewer, round });
            self.issues.push(IssueRecord {
                id: format!("{}-{}", record.id, index + 1),
                run: record.run,
                loop_id: record.loop_id.clone(),
                review: record.id.clone(),
                task: record.task,
                finding: finding.clone(),
                entry: None,
            });
        }
        self.add_notes(record);
    }

    /// Adds the minor notes as issues. They are not in the ledger and have no state.
    fn add_notes(&mut self, record: &ReviewRecord) {
        let first = record.review.findings.len() + 1;
        for (number, note) in (first..).zip(&record.review.minor) {
            let Note { file, line, description } = note.clone();
            let finding = Finding::new(&record.review.reviewer, NOTE_TYPE, Severity::Minor, description);
            self.issues.push(IssueRecord {
                id: format!("{}-{number}", record.id),
                run: record.run,
                loop_id: record.loop_id.clone(),
                review: record.id.clone(),
                task: record.task,
                finding: Finding { file, line, ..finding },
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
        let form = serde_json::to_value(ledger).and_then(serde_json::from_value::<LedgerReports>);
        let Ok(LedgerReports { said }) = form else { return };
        let mut reported: BTreeMap<_, &LedgerEntry> = BTreeMap::new();
        for entry in ledger.entries() {
            let Some(place) = last_round(entry) else { continue };
            for report in said.get(&entry.finding.id).into_iter().flatten() {
                reported.entry((place, report)).or_insert(entry);
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

/// Identifies a round apart from its commit: pass, phase, cycle, and whether it is a checkpoint.
type RoundKey = (u32, usize, u32, bool);

fn round_key(round: &Round) -> RoundKey {
    (round.pass, round.phase, round.cycle, round.checkpoint.is_some())
}

/// The round in which an entry was last reported.
fn last_round(entry: &LedgerEntry) -> Option<RoundKey> {
    entry.seen.last().map(round_key)
}
