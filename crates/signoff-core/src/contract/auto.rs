//! Whichever contract the message satisfies.

use super::binding::{self, Candidate, Standing};
use super::message::Message;
use super::{Ask, json, markdown, severity, xml};
use crate::review::{Review, Violation, ViolationCode};

pub(super) const NOTHING: &str = "the message is no answer in any of the known formats";

pub(super) fn review(message: &Message<'_>, ask: &Ask) -> Result<Review, Violation> {
    weigh(dialects(message, ask)?, ask)
}

/// What each contract finds in the message, in the order in which they are preferred: the ones that say
/// more first.
fn dialects(message: &Message<'_>, ask: &Ask) -> Result<Vec<Vec<Candidate>>, Violation> {
    Ok(vec![
        xml::candidates_or_prefix(message, ask)?,
        markdown::candidates(message, ask)?,
        json::candidates(message, ask)?,
        severity::candidates(message, ask)?,
    ])
}

/// The nonce counts across contracts; then an approval stands only if no other contract contradicts it.
fn weigh(dialects: Vec<Vec<Candidate>>, ask: &Ask) -> Result<Review, Violation> {
    let dialects = counted(dialects, ask)?;
    let broken = doubt(&dialects, Standing::only_doubts);
    let denial = doubt(&dialects, |standing| standing == Standing::Denial);
    match agreed(dialects, ask)? {
        Some(review) if review.verdict.approves() => denial.map_or(Ok(review), Err),
        Some(review) => Ok(review),
        None => Err(binding::unanswered(broken, NOTHING)),
    }
}

fn doubt(dialects: &[Vec<Candidate>], counts: impl Fn(Standing) -> bool) -> Option<Violation> {
    let mut doubts = dialects.iter().flatten().filter(|candidate| counts(candidate.standing));
    doubts.find_map(|candidate| candidate.answer.as_ref().err().cloned())
}

/// What the contracts come to that found an answer. None if none of them did.
fn agreed(dialects: Vec<Vec<Candidate>>, ask: &Ask) -> Result<Option<Review>, Violation> {
    let answers = |candidates: &Vec<Candidate>| candidates.iter().any(|one| !one.standing.only_doubts());
    let results =
        dialects.into_iter().filter(answers).map(|candidates| binding::settle(candidates, ask, NOTHING));
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
        (Some(_), Some(_), _) => Err(binding::disagreement(0)),
        (_, _, Some(violation)) => Err(violation),
        (review @ Some(_), None, None) | (None, review, None) => Ok(review),
    }
}

/// Applies the nonce to all contracts at once, and drops remarks where there is a verdict.
fn counted(mut dialects: Vec<Vec<Candidate>>, ask: &Ask) -> Result<Vec<Vec<Candidate>>, Violation> {
    binding::check_candidates(dialects.iter().flatten(), ask)?;
    let bound = dialects.iter().flatten().any(|candidate| candidate.binding.carries(ask));
    for candidates in &mut dialects {
        if bound {
            candidates.retain(|candidate| candidate.binding.carries(ask));
        }
    }
    let says_more = |candidate: &Candidate| candidate.standing == Standing::Plain;
    if dialects.iter().flatten().any(says_more) {
        for candidates in &mut dialects {
            candidates.retain(|candidate| candidate.standing != Standing::Remark);
        }
    }
    dialects.into_iter().map(|candidates| binding::counted(candidates, ask)).collect()
}
