//! Interprets an agent's final message for its loop. Depends only on the message and the attempt's spec, so it does
//! not depend on where the agent ran.

use sha2::{Digest, Sha256};
use signoff_core::contract::{self, ReviewAnswer};
use signoff_core::hex::hex;
use signoff_core::ids::{Commit, ReviewerName, Tree};
use signoff_core::ledger::read_claims;
use signoff_core::machine::{AttemptFailure, AttemptRole, Event, Head, JobKind, WorkReport};
use signoff_core::prompt::marker;
use signoff_core::review::{Review, Violation};
use signoff_core::settings::AssignedReviewer;
use signoff_core::source::planner::{PlannerAnswer, read_groups, read_tasks};
use signoff_core::wire::LoopFact;
use signoff_core::workflow::{Completion, Role};

use super::AttemptEnd;
use super::finish::failed_end;
use super::prepare::review_request;
use crate::attempt_spec::{AttemptSpec, RunPart};

/// A reviewer's answer in all its forms.
#[derive(Debug, Clone, Default)]
pub struct ReviewerAnswer<'a> {
    pub text: Vec<u8>,
    /// Alternative ways to join the blocks of the text.
    pub others: Vec<String>,
    /// The start of an unparsable line that may belong to the text.
    pub unreadable: Option<String>,
    pub reported: Option<&'a [u8]>,
    pub nonce: Option<String>,
}

/// Parses a reviewer's answer. A violation of the contract makes the review inconclusive.
pub fn parse_review(
    spec: &AttemptSpec,
    assigned: &AssignedReviewer,
    answer: ReviewerAnswer<'_>,
    reviewer: &ReviewerName,
    commit: &Commit,
) -> Review {
    let request = review_request(spec, assigned, commit, answer.nonce);
    let review_answer = ReviewAnswer { text: &answer.text, tool: answer.reported };
    let others = answer.others.iter().map(String::as_bytes);
    contract::parse_split(assigned.contract, review_answer, others, &request)
        .and_then(contract::check_finding_count)
        .and_then(|review| contract::reject_unreadable_approval(review, answer.unreadable.as_deref()))
        .unwrap_or_else(|violation| Review::inconclusive(reviewer.clone(), assigned.kind, violation))
}

/// The end of a planner with this answer.
pub fn planner_end(spec: &AttemptSpec, text: &[u8]) -> (AttemptEnd, Vec<LoopFact>) {
    let attempt = spec.job.attempt;
    match parse_planner_answer(spec, text) {
        Ok(answer) => {
            let report = WorkReport::Complete { head: planner_head(spec, &answer) };
            (AttemptEnd::work(spec, report), vec![LoopFact::Answered { attempt, answer }])
        }
        Err(violation) => (failed_end(spec, AttemptFailure::BadAnswer { message: violation.to_string() }), Vec::new()),
    }
}

fn parse_planner_answer(spec: &AttemptSpec, text: &[u8]) -> Result<PlannerAnswer, Violation> {
    match (&spec.part, spec.launch.role() == Some(AttemptRole::Agent(Role::Enumerate))) {
        (Some(RunPart::Planning { tasks, .. }), false) => read_groups(text, tasks).map(PlannerAnswer::Groups),
        (_, _) => read_tasks(text).map(PlannerAnswer::Tasks),
    }
}

/// The head of a planner's work. It changes no files, so a hash of the answer is used as the tree.
fn planner_head(spec: &AttemptSpec, answer: &PlannerAnswer) -> Head {
    let tree = Tree::new(hex(&Sha256::digest(answer.to_review_text())));
    Head { commit: spec.machine.head.commit.clone(), tree }
}

/// The report of a writer that left this head.
pub fn work_report(spec: &AttemptSpec, message: &str, head: Head) -> WorkReport {
    let marked = spec.policy.workflow.completion == Completion::Marker && matches!(spec.job.kind, JobKind::Work { .. });
    if !marked {
        return WorkReport::Complete { head };
    }
    match marker::read(message) {
        marker::Marker::Complete => WorkReport::Complete { head },
        marker::Marker::Stuck(reason) => WorkReport::Stuck { head, reason },
        marker::Marker::IterationDone | marker::Marker::None => WorkReport::Incomplete { head },
    }
}

/// Whether the agent claims to be done but changed nothing. Fixes without changes are left to the gate, and workflows
/// with a completion marker to the marker.
///
/// One item of a plan may be done already, so only the last item is checked.
pub fn is_done_without_changes(spec: &AttemptSpec, head: &Head) -> bool {
    let by_exit = spec.policy.workflow.completion == Completion::Exit;
    let writes = matches!(&spec.job.kind, JobKind::Work { role: Role::Implement, .. });
    let last = spec.item().is_none_or(|(index, _)| index + 1 >= spec.items.len());
    by_exit && writes && last && head.tree == spec.machine.head.tree
}

/// The fixer's claims about the findings of its loop.
pub fn claims_fact(spec: &AttemptSpec, message: &str, end: &AttemptEnd) -> Option<LoopFact> {
    let AttemptEnd::Event(event) = end else { return None };
    let (Event::WorkEnded { attempt, report }, JobKind::Fix { .. } | JobKind::Work { role: Role::Fix, .. }) =
        (&**event, &spec.job.kind)
    else {
        return None;
    };
    let known = spec.machine.ledger.entries().iter().map(|entry| &entry.finding.id);
    let claims = read_claims(message, known);
    let (attempt, commit) = (*attempt, report.head().commit.clone());
    (!claims.is_empty()).then_some(LoopFact::Transitioned(Event::FindingsClaimed { attempt, commit, claims }))
}

/// Whether a writer reports that no tasks are left. Reviewers may quote the marker, so it is ignored in their answers.
pub fn stops_picking(spec: &AttemptSpec, message: &str) -> bool {
    spec.writes() && spec.stop_marker && marker::stops_picking(message)
}
