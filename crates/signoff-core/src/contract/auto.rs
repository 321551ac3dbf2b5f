//! The `auto` contract: accepts an answer in any of the text formats.

use super::candidates::{self, AnswerCandidate, CandidateKind};
use super::message::FinalMessage;
use super::{ReviewRequest, json, markdown, severity, xml};
use crate::review::{Review, Violation, ViolationCode};

pub(super) const NOTHING: &str = "the message is not an answer in any known format";

pub(super) fn review(message: &FinalMessage<'_>, ask: &ReviewRequest) -> Result<Review, Violation> {
    resolve(candidates_by_contract(message, ask)?, ask)
}

/// Returns the candidates of each contract, the most expressive contract first.
fn candidates_by_contract(
    message: &FinalMessage<'_>,
    ask: &ReviewRequest,
) -> Result<Vec<Vec<AnswerCandidate>>, Violation> {
    Ok(vec![
        xml::candidates_or_prefix(message, ask)?,
        markdown::candidates(message, ask)?,
        json::candidates(message, ask)?,
        severity::candidates(message, ask)?,
    ])
}

/// Applies the nonce across all contracts. An approval is returned only if no other contract contradicts it.
fn resolve(dialects: Vec<Vec<AnswerCandidate>>, ask: &ReviewRequest) -> Result<Review, Violation> {
    let dialects = filter_by_nonce(dialects, ask)?;
    let broken = first_violation(&dialects, CandidateKind::is_objection);
    let denial = first_violation(&dialects, |standing| standing == CandidateKind::Denial);
    match combine(dialects, ask)? {
        Some(review) if review.verdict.approves() => denial.map_or(Ok(review), Err),
        Some(review) => Ok(review),
        None => Err(candidates::no_answer(broken, NOTHING)),
    }
}

fn first_violation(dialects: &[Vec<AnswerCandidate>], counts: impl Fn(CandidateKind) -> bool) -> Option<Violation> {
    let mut doubts = dialects.iter().flatten().filter(|candidate| counts(candidate.kind));
    doubts.find_map(|candidate| candidate.answer.as_ref().err().cloned())
}

/// Combines the reviews of the contracts that found an answer. Returns `None` if none did.
fn combine(dialects: Vec<Vec<AnswerCandidate>>, ask: &ReviewRequest) -> Result<Option<Review>, Violation> {
    let answers = |candidates: &Vec<AnswerCandidate>| candidates.iter().any(|one| !one.kind.is_objection());
    let results = dialects.into_iter().filter(answers).map(|candidates| candidates::resolve(candidates, ask, NOTHING));
    let mut approval: Option<Review> = None;
    let mut request: Option<Review> = None;
    let mut broken: Option<Violation> = None;
    for result in results {
        match result {
            Ok(review) if review.verdict.approves() => drop(approval.get_or_insert(review)),
            Ok(review) => drop(request.get_or_insert(review)),
            Err(violation) if violation.code == ViolationCode::NoVerdict => {}
            Err(violation) => drop(broken.get_or_insert(violation)),
        }
    }
    match (approval, request, broken) {
        (Some(_), Some(_), _) => Err(candidates::disagreement(0)),
        (_, _, Some(violation)) => Err(violation),
        (review @ Some(_), None, None) | (None, review, None) => Ok(review),
    }
}

/// Applies the nonce to all contracts at once, and drops remarks if there is a verdict.
fn filter_by_nonce(
    mut dialects: Vec<Vec<AnswerCandidate>>,
    ask: &ReviewRequest,
) -> Result<Vec<Vec<AnswerCandidate>>, Violation> {
    candidates::check_candidates(dialects.iter().flatten(), ask)?;
    let bound = dialects.iter().flatten().any(|candidate| candidate.binding.has_nonce_of(ask));
    for candidates in &mut dialects {
        if bound {
            candidates.retain(|candidate| candidate.binding.has_nonce_of(ask));
        }
    }
    let says_more = |candidate: &AnswerCandidate| candidate.kind == CandidateKind::Plain;
    if dialects.iter().flatten().any(says_more) {
        for candidates in &mut dialects {
            candidates.retain(|candidate| candidate.kind != CandidateKind::Remark);
        }
    }
    dialects.into_iter().map(|candidates| candidates::filter_by_nonce(candidates, ask)).collect()
}
