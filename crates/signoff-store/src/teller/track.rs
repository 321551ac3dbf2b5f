//! What is noted about one loop while its facts go by.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Deserialize;
use signoff_core::ids::{Commit, FindingId, LoopId, QuestionId, ReviewerName, RunId, TaskId};
use signoff_core::ledger::{Entry, Ledger, Round};
use signoff_core::machine::{Event, LandReport, Loop, Stage};
use signoff_core::review::{Finding, Note, Severity};
use signoff_core::similarity::fingerprint;
use signoff_core::view::QuestionView;

use super::Arrived;
use crate::record::{IssueRecord, QuestionRecord, ReviewRecord};

/// The type of an issue that is a minor note.
const NOTE: &str = "note";

#[derive(Default)]
pub(super) struct Track {
    pub task: Option<TaskId>,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub last_review: Option<String>,
    /// The commit with which it landed last.
    landed: Option<Commit>,
    pub issues: Vec<IssueRecord>,
    pub questions: Vec<QuestionRecord>,
    /// The issues whose place in the ledger is not known yet.
    loose: Vec<Loose>,
}

struct Loose {
    issue: usize,
    reviewer: ReviewerName,
    round: Round,
}

/// The part of a ledger that says under which ids its entries were reported, and by whom.
#[derive(Deserialize)]
struct Reported {
    #[serde(default)]
    said: BTreeMap<FindingId, BTreeSet<(ReviewerName, FindingId)>>,
}

impl Track {
    pub fn moved(&mut self, at: Timestamp, state: &Loop) {
        if state.stage != Stage::Queued {
            self.started_at = self.started_at.or(Some(at));
        }
        self.ended_at = state.is_done().then(|| self.ended_at.unwrap_or(at));
    }

    /// Notes the commit with which a loop landed.
    pub fn landed(&mut self, event: &Event) {
        if let Event::LandingEnded { report: LandReport::Landed { commit }, .. } = event {
            self.landed = Some(commit.clone());
        }
    }

    /// That commit, as long as the loop counts as landed.
    pub fn landed_commit(&self, state: &Loop) -> Option<String> {
        self.landed.as_ref().filter(|_| state.landed).map(Commit::to_string)
    }

    /// Closes the question that is not asked any more.
    pub fn closed(&mut self, at: Timestamp, state: &Loop, event: &Event) {
        let now = asked(state);
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
    pub fn unasked(&self, state: &Loop) -> Option<QuestionId> {
        asked(state).filter(|number| self.questions.iter().all(|record| record.number != *number))
    }

    pub fn asked(&mut self, of: (RunId, &LoopId), state: &Loop, id: u64, at: Timestamp) {
        let view = QuestionView::of(state, QuestionId(id), self.task);
        let (Some(number), Some(view)) = (asked(state), view) else { return };
        self.questions.push(QuestionRecord {
            id,
            run: of.0,
            loop_id: of.1.clone(),
            number,
            task: self.task,
            text: view.text,
            choices: view.choices,
            asked_at: at,
            closed_at: None,
            answer: None,
        });
    }

    pub fn arrived(&mut self, arrived: &Arrived) {
        let record = &arrived.record;
        self.last_review = Some(record.id.clone());
        for (index, finding) in record.review.findings.iter().enumerate() {
            let (reviewer, round) = (record.review.reviewer.clone(), arrived.round.clone());
            self.loose.push(Loose { issue: self.issues.len(), reviewer, round });
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
        self.noted(record);
    }

    /// Minor notes stand beside the findings; they are in no ledger and have no state.
    fn noted(&mut self, record: &ReviewRecord) {
        let first = record.review.findings.len() + 1;
        for (number, note) in (first..).zip(&record.review.minor) {
            let Note { file, line, description } = note.clone();
            let finding = Finding::of(&record.review.reviewer, NOTE, Severity::Minor, description);
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

    /// Finds the entries that issues became, once their round is in the ledger.
    pub fn link(&mut self, ledger: &Ledger) {
        let rounds: BTreeSet<Place> = ledger.entries().iter().filter_map(last_seen).collect();
        if !self.loose.iter().any(|loose| rounds.contains(&place(&loose.round))) {
            return;
        }
        let form = serde_json::to_value(ledger).and_then(serde_json::from_value::<Reported>);
        let Ok(Reported { said }) = form else { return };
        let mut reported: BTreeMap<_, &Entry> = BTreeMap::new();
        for entry in ledger.entries() {
            let Some(place) = last_seen(entry) else { continue };
            for report in said.get(&entry.finding.id).into_iter().flatten() {
                reported.entry((place, report)).or_insert(entry);
            }
        }
        let issues = &mut self.issues;
        self.loose.retain(|loose| {
            let Some(issue) = issues.get_mut(loose.issue) else { return false };
            let finding = &issue.finding;
            let id = if finding.id.as_str().is_empty() {
                fingerprint(finding.file.as_deref(), &finding.kind, &finding.description)
            } else {
                finding.id.clone()
            };
            let report = (loose.reviewer.clone(), id);
            let became = reported.get(&(place(&loose.round), &report));
            issue.entry = became.map(|entry| (entry.finding.id.clone(), entry.state));
            became.is_none()
        });
    }

    /// Takes over how linked issues stand now.
    pub fn restate(&mut self, ledger: &Ledger) {
        for (id, state) in self.issues.iter_mut().filter_map(|issue| issue.entry.as_mut()) {
            if let Some(entry) = ledger.get(id) {
                *state = entry.state;
            }
        }
    }
}

/// A round, whatever commit it was about, and whether it is a checkpoint's.
type Place = (u32, usize, u32, bool);

fn place(round: &Round) -> Place {
    (round.pass, round.phase, round.cycle, round.checkpoint.is_some())
}

/// The round in which an entry was last reported.
fn last_seen(entry: &Entry) -> Option<Place> {
    entry.seen.last().map(place)
}

/// The loop's own number of its open question.
fn asked(state: &Loop) -> Option<QuestionId> {
    if let Stage::Waiting { question, .. } = &state.stage { Some(question.id) } else { None }
}
