//! The end of a reviewer: its answer is read, and what it changed is put back.

use std::borrow::Cow;
use std::path::Path;

use signoff_core::checks;
use signoff_core::config::{AgentKind, AssignedReviewer};
use signoff_core::contract::{self, Answer, Contract};
use signoff_core::heard::{Trouble, TroubleKind};
use signoff_core::hold::Hold;
use signoff_core::ids::{Commit, ReviewerName};
use signoff_core::machine::{Event, Failure};
use signoff_core::review::{Judged, Review, ReviewerKind, Verdict, Violation, ViolationCode};
use signoff_core::steering;

use super::check_results::ran;
use super::conclude::{failed, memo};
use super::hear::{closed, heard, message, message_others};
use super::reading::Undone;
use super::usage::usage;
use super::{End, Workshop, base_checks, copied, prepare};
use crate::artifact;
use crate::assignment::Assignment;
use crate::error::EngineError;
use crate::git::{Change, Worktree};
use crate::process::{AttemptDir, Ended};
use crate::reports;

/// A reviewer's end: what it reported and its final message are read under the contract, and by nothing else.
pub fn review(
    shop: &Workshop,
    task: &Assignment,
    (dir, ended): (&AttemptDir, &Ended),
    (reviewer, commit): (&ReviewerName, &Commit),
    (undone, notes): (Undone, &mut Vec<String>),
) -> Result<End, EngineError> {
    if let Some(end) = closed(shop, task, dir, ended).end(task) {
        return Ok(end);
    }
    let Some(place) = task.job_place() else { return Ok(End::Stopped) };
    let assigned = match shop.settings.reviewer_in_turn(reviewer, place, task.turn()) {
        Ok(assigned) => assigned,
        Err(error) => return Ok(failed(task, Failure::NotStarted { message: error.to_string() })),
    };
    let text = message(dir);
    let memo = memo(dir);
    let reviews = shop.layout.reviews();
    let reported = shop.reports.of(dir, reviewer.as_str(), notes).map(reports::arguments);
    if let Some(trouble) = unserved(shop, &assigned, dir, (&text, reported.as_deref())) {
        return Ok(failed(task, Failure::Trouble(trouble)));
    }
    let raw = artifact::write_raw(&reviews, &task.artifact(), reviewer, &answer(&text, reported.as_deref()))
        .map_err(|error| EngineError::io("write", &reviews, error))?;
    let others = message_others(dir);
    let unreadable = heard(dir).and_then(|heard| heard.unreadable);
    let said = Said { text, others, unreadable, reported: reported.as_deref(), nonce: memo.nonce };
    let (steering, with_secrets) = (memo.steering, memo.with_secrets);
    let review = if assigned.agent.kind == AgentKind::Checks {
        checked(shop, task, (dir, &said.text), (reviewer, assigned.kind), notes)
    } else {
        Ok(read(task, &assigned, said, (reviewer, commit)))
    };
    let review = match review {
        Ok(review) => review,
        Err(failure) => return Ok(failed(task, failure)),
    };
    let copy = copied::path(&task.place.worktree, reviewer).display().to_string();
    let review = review.with_files_from(&[copy.as_str()]);
    let review = review.with_files_from(&roots(shop, task).each_ref().map(String::as_str));
    let review = Review {
        usage: usage(shop.priced(task), dir, ended),
        judged: Judged { commit: Some(commit.clone()), diff_digest: memo.diff_digest },
        raw: Some(raw),
        ..review
    };
    let review = steering::told(of_the_commit(shop, task, review, &undone), &steering, &with_secrets);
    Ok(End::Event(Box::new(Event::ReviewArrived { attempt: task.job.attempt, review: Box::new(review) })))
}

/// Who can answer with a tool alone, and did not find it, has not answered: that is nothing a fixer could mend.
fn unserved(
    shop: &Workshop,
    assigned: &AssignedReviewer,
    dir: &AttemptDir,
    (text, reported): (&[u8], Option<&[u8]>),
) -> Option<Trouble> {
    let without = assigned.contract == Contract::Tool && reported.is_none();
    // Some do not say whether they found it; whoever was never here did not.
    let found = || heard(dir).map(|heard| heard.found_reports.or(shop.reports.was_reached(dir)));
    let lost = without && found()? == Some(false);
    let text = String::from_utf8_lossy(text);
    let words: String = text.trim().chars().take(LONGEST).collect();
    lost.then(|| Trouble::new(TroubleKind::Reports, words))
}

/// So much is told of what an agent says in place of an answer.
const LONGEST: usize = 300;

/// Where the files are that a reader speaks of: its worktree first. Both also as the system calls them.
pub(super) fn roots(shop: &Workshop, task: &Assignment) -> [String; 4] {
    let (worktree, root) = (Path::new(&task.place.worktree), shop.repository.root());
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    [worktree.to_owned(), real(worktree), root.to_owned(), real(root)].map(|path| path.display().to_string())
}

/// What a reviewer came up with.
struct Said<'a> {
    text: Vec<u8>,
    /// The other ways to join the blocks of the text.
    others: Vec<String>,
    /// The beginning of a line that may belong to the text and could not be read.
    unreadable: Option<String>,
    reported: Option<&'a [u8]>,
    nonce: Option<String>,
}

/// The review in an answer. One that breaks the contract is inconclusive.
fn read(
    task: &Assignment,
    assigned: &AssignedReviewer,
    said: Said<'_>,
    (reviewer, commit): (&ReviewerName, &Commit),
) -> Review {
    let ask = prepare::ask(task, assigned, commit, said.nonce);
    let answer = Answer { text: &said.text, tool: said.reported };
    let others = said.others.iter().map(String::as_bytes);
    contract::parse_split(assigned.contract, answer, others, &ask)
        .and_then(contract::within_reason)
        .and_then(|review| contract::unless_unreadable(review, said.unreadable.as_deref()))
        .unwrap_or_else(|violation| Review::inconclusive(reviewer.clone(), assigned.kind, violation))
}

/// The review of the project's checks, apart from what fails on the base too.
fn checked(
    shop: &Workshop,
    task: &Assignment,
    (dir, text): (&AttemptDir, &[u8]),
    (reviewer, kind): (&ReviewerName, ReviewerKind),
    notes: &mut Vec<String>,
) -> Result<Review, Failure> {
    let ran = ran(text)?;
    let base = base_checks::known(shop, task.base(), dir).unwrap_or_default();
    let (review, sorted) = checks::review_against_base(reviewer, kind, (&ran, &base));
    notes.extend(sorted.note(task.base().as_str()));
    Ok(review)
}

/// All that a reviewer answered, for people: what it reported with a tool stands behind its message.
fn answer<'a>(text: &'a [u8], reported: Option<&[u8]>) -> Cow<'a, [u8]> {
    let Some(reported) = reported else { return Cow::Borrowed(text) };
    let calls = serde_json::Deserializer::from_slice(reported).into_iter::<serde_json::Value>();
    let pretty = calls.map(|call| serde_json::to_string_pretty(&call?)).collect::<Result<Vec<_>, _>>();
    let shown = pretty.map_or_else(|_| reported.to_vec(), |calls| calls.join("\n\n").into_bytes());
    let before = if text.is_empty() { "Reported:\n\n" } else { "\n\nReported:\n\n" };
    Cow::Owned([text, before.as_bytes(), &shown, b"\n"].concat())
}

/// What somebody does who should only look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    Review,
    Research,
}

impl Reading {
    fn word(self) -> &'static str {
        match self {
            Self::Review => "reviewing",
            Self::Research => "researching",
        }
    }
}

/// Puts back what somebody changed who should only have looked; the changes, in words.
pub fn undo(
    shop: &Workshop,
    worktree: &Worktree,
    (commit, reading, hold): (&Commit, Reading, Option<Hold>),
    (who, notes): (&ReviewerName, &mut Vec<String>),
) -> Result<Undone, EngineError> {
    let mut undone = shop.readings.end(worktree, commit, who)?;
    let doing = reading.word();
    let names: Vec<&str> = undone.by.iter().map(|name| name.as_str()).collect();
    let by = if names.len() > 1 { format!("one of {}", names.join(", ")) } else { names.join("") };
    let (put_back, left): (Vec<&Change>, Vec<&Change>) =
        undone.changes.iter().partition(|change| change.is_undone());
    if !put_back.is_empty() {
        notes.push(format!("{by} changed files while {doing}; undone: {}", listed(&put_back)));
    }
    if !left.is_empty() {
        // The person, or an agent of another task, may have done it.
        notes.push(format!("while {by} was {doing}, somebody {}; left so", listed(&left)));
    }
    // Who was held could not: then what it looked at is what it was to look at.
    let held = matches!(hold, Some(Hold::Landlock | Hold::Bubblewrap)) && shop.power.is_whole();
    if held && put_back.is_empty() && !left.is_empty() {
        undone.is_changed = false;
    }
    Ok(undone)
}

pub fn listed(changes: &[&Change]) -> String {
    changes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Files that changed under a reviewer are not what it was to review: its approval is of something else. What it
/// found stands. Checks may change files; that is known, and put back.
fn of_the_commit(shop: &Workshop, task: &Assignment, review: Review, undone: &Undone) -> Review {
    let place = task.job_place();
    let is_check = |name: &ReviewerName| {
        let assigned = place.and_then(|place| shop.settings.reviewer(name, place).ok());
        assigned.is_some_and(|one| one.agent.kind == AgentKind::Checks)
    };
    if !undone.is_changed || !review.verdict.approves() || undone.by.iter().any(is_check) {
        return review;
    }
    let message = "files were changed while it was reviewed, so this approval is not of the commit";
    let violation = Violation::new(ViolationCode::CommitMismatch, 0, message);
    Review { verdict: Verdict::Inconclusive(violation.into()), ..review }
}
