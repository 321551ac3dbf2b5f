//! Candidate answers: which of them count, and whether they agree, within one contract and across all of them.

use std::rc::Rc;

use super::markdown_structure::MarkupKind;
use super::message::FinalMessage;
use super::{Parsed, ReviewRequest, truncate_texts};
use crate::review::{Review, Violation, ViolationCode};
use crate::similarity;
use crate::text::shortened;

/// Maximum number of candidate answers in one message.
pub(super) const MAX_CANDIDATES: usize = 1000;

/// The review and commit that an answer names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Binding {
    pub nonce: Option<String>,
    pub commit: Option<String>,
}

impl Binding {
    pub fn has_nonce_of(&self, request: &ReviewRequest) -> bool {
        let asked = expected_nonce(request);
        asked.is_some() && self.nonce.as_deref() == asked
    }

    /// Whether it carries the nonce of another review. An empty nonce counts as missing.
    fn mismatches(&self, request: &ReviewRequest) -> bool {
        let nonce = self.nonce.as_deref().filter(|nonce| !nonce.is_empty());
        nonce.is_some() && expected_nonce(request).is_some() && nonce != expected_nonce(request)
    }
}

fn expected_nonce(request: &ReviewRequest) -> Option<&str> {
    request.nonce.as_ref().map(|nonce| nonce.as_str()).filter(|nonce| !nonce.is_empty())
}

fn mismatch(offset: usize) -> Violation {
    let message = "the answer carries the nonce of another review; copy the one of this review";
    Violation::new(ViolationCode::NonceMismatch, offset, message)
}

/// Returns a violation if a nonce comment outside quotes names another review.
pub(super) fn check_nonces(message: &FinalMessage<'_>, request: &ReviewRequest) -> Parsed<()> {
    const MARK: &str = "signoff:";
    let text = message.text();
    if expected_nonce(request).is_none() || !text.contains(MARK) {
        return Ok(());
    }
    let mut from = 0;
    while let Some(at) = text[from..].find("<!--").map(|at| from + at) {
        let Some(end) = text[at..].find("-->").map(|end| at + end + "-->".len()) else { break };
        from = end;
        let wrong = parse_nonce_comment(&text[at..end]).is_some_and(|binding| binding.mismatches(request));
        let is_readable = || matches!(message.markup_at(at), None | Some(MarkupKind::Html | MarkupKind::Comment));
        if wrong && is_readable() {
            return Err(mismatch(at));
        }
    }
    Ok(())
}

/// Returns a violation if the answer is bound to another commit than the one under review.
pub(super) fn check_commit(binding: &Binding, request: &ReviewRequest, offset: usize) -> Parsed<()> {
    let (Some(commit), Some(asked)) = (&binding.commit, &request.commit) else { return Ok(()) };
    if same_commit(commit, asked.as_str()) {
        return Ok(());
    }
    let message = format!("the answer is bound to commit `{}`, not to the one under review", clip(commit));
    Err(Violation::new(ViolationCode::CommitMismatch, offset, message))
}

/// Whether the ids are equal, or one abbreviates the other as git does.
fn same_commit(a: &str, b: &str) -> bool {
    const SHORTEST: usize = 7;
    let length = a.len().min(b.len());
    let prefixes = a.as_bytes().get(..length).zip(b.as_bytes().get(..length));
    let alike = prefixes.is_some_and(|(a, b)| a.eq_ignore_ascii_case(b));
    alike && (a.len() == b.len() || length >= SHORTEST)
}

/// How a candidate counts, by the text around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CandidateKind {
    Plain,
    /// A bare "nothing found", as reviews in other contracts contain it. A verdict takes precedence.
    Remark,
    /// Inside a block quote, inline code, a diff or similar. It can contradict an answer but is not one.
    Quoted,
    /// Inside a broken text. Counts as quoted, unless it carries the nonce.
    Fragment,
    /// Possibly a damaged answer. It is not an answer, but it rejects an approval in the same contract.
    Doubt,
    /// Objects to the work without being an answer. It rejects an approval in any contract.
    Denial,
}

impl CandidateKind {
    /// Whether it can only reject approvals.
    pub fn is_objection(self) -> bool {
        matches!(self, Self::Doubt | Self::Denial)
    }

    /// Whether it is an answer itself: neither quoted nor an objection.
    pub fn is_answer(self) -> bool {
        matches!(self, Self::Plain | Self::Remark | Self::Fragment)
    }

    /// Whether the text around it keeps it from being an answer.
    pub fn is_quoted_or_fragment(self) -> bool {
        matches!(self, Self::Quoted | Self::Fragment)
    }
}

/// A candidate answer in a message.
#[derive(Debug, Clone)]
pub(super) struct AnswerCandidate {
    pub offset: usize,
    pub binding: Binding,
    pub kind: CandidateKind,
    /// Shared: the same verdict stated twice gives the same review.
    pub answer: Parsed<Rc<Review>>,
}

pub(super) type Candidates = Vec<AnswerCandidate>;

impl AnswerCandidate {
    /// Whether its review approves. `None` if it is broken.
    pub fn approves(&self) -> Option<bool> {
        self.answer.as_ref().ok().map(|review| review.verdict.approves())
    }
}

/// Objections to an approval. Keeps only the first of each kind, since a message can hold any number of broken
/// texts.
#[derive(Debug, Default)]
pub(super) struct ObjectionSet {
    pub first: Vec<AnswerCandidate>,
}

impl ObjectionSet {
    pub fn insert(&mut self, objection: Option<AnswerCandidate>, request: &ReviewRequest) {
        let Some(objection) = objection else { return };
        let sort = |candidate: &AnswerCandidate| (candidate.kind, candidate.binding.has_nonce_of(request));
        if self.first.iter().all(|known| sort(known) != sort(&objection)) {
            self.first.push(objection);
        }
    }
}

/// Keeps only the candidates with the right nonce if there are any. If the nonce is required, all others are
/// dropped. An answer with the nonce of another review is a violation.
pub(super) fn filter_by_nonce(mut candidates: Candidates, request: &ReviewRequest) -> Parsed<Candidates> {
    check_candidates(&candidates, request)?;
    if candidates.iter().any(|candidate| candidate.binding.has_nonce_of(request)) {
        candidates.retain(|candidate| candidate.binding.has_nonce_of(request));
        for candidate in candidates.iter_mut().filter(|candidate| candidate.kind == CandidateKind::Fragment) {
            candidate.kind = CandidateKind::Plain;
        }
    } else if request.require_nonce && !candidates.is_empty() {
        let violation = nonce_missing(&candidates);
        // The nonce protects approvals. A refusal counts without it.
        candidates.retain(|candidate| candidate.approves() == Some(false) && candidate.kind.is_answer());
        return if candidates.is_empty() { Err(violation) } else { Ok(candidates) };
    }
    Ok(candidates)
}

/// Returns a violation if an answer carries the nonce of another review.
pub(super) fn check_candidates<'c>(
    candidates: impl IntoIterator<Item = &'c AnswerCandidate>,
    request: &ReviewRequest,
) -> Parsed<()> {
    let mut answers = candidates.into_iter().filter(|candidate| candidate.kind.is_answer());
    answers
        .find(|candidate| candidate.binding.mismatches(request))
        .map_or(Ok(()), |candidate| Err(mismatch(candidate.offset)))
}

/// The violation of the first answer that broke before its nonce, or else `NonceMissing`.
fn nonce_missing(candidates: &[AnswerCandidate]) -> Violation {
    let broken = candidates.iter().filter(|candidate| !candidate.kind.is_quoted_or_fragment()).find_map(|candidate| {
        candidate.answer.as_ref().err().filter(|violation| {
            matches!(violation.code, ViolationCode::Malformed | ViolationCode::Truncated | ViolationCode::TooDeep)
        })
    });
    broken.cloned().unwrap_or_else(|| {
        let offset = candidates.first().map_or(0, |candidate| candidate.offset);
        Violation::new(ViolationCode::NonceMissing, offset, "no answer carries the nonce of this review")
    })
}

/// Requires all answers to be complete, bound to this commit and equal. An approval also requires that there is no
/// objection.
pub(super) fn resolve(candidates: Candidates, request: &ReviewRequest, nothing: &str) -> Parsed<Review> {
    let (objections, answers): (Vec<_>, Vec<_>) =
        candidates.into_iter().partition(|candidate| candidate.kind.is_objection());
    let objection = objections.into_iter().find_map(|candidate| candidate.answer.err());
    if answers.is_empty() {
        return Err(no_answer(objection, nothing));
    }
    let review = require_agreement(answers, request, nothing)?;
    match objection {
        Some(violation) if review.verdict.approves() => Err(violation),
        Some(_) | None => Ok(review),
    }
}

/// The violation for a message without an answer: the broken answer if there is one, or else `NoVerdict`.
pub(super) fn no_answer(objection: Option<Violation>, nothing: &str) -> Violation {
    let broken = objection.filter(|violation| violation.code != ViolationCode::Disagreement);
    broken.unwrap_or_else(|| Violation::new(ViolationCode::NoVerdict, 0, nothing))
}

fn require_agreement(candidates: Candidates, request: &ReviewRequest, nothing: &str) -> Parsed<Review> {
    let has_own_answer = candidates.iter().any(|candidate| !candidate.kind.is_quoted_or_fragment());
    if let (Some(first), false) = (candidates.first(), has_own_answer) {
        let message = "the only answer is quoted text; state it as the answer itself";
        return Err(Violation::new(ViolationCode::NoVerdict, first.offset, message));
    }
    let mut agreed: Option<Rc<Review>> = None;
    for candidate in candidates {
        check_commit(&candidate.binding, request, candidate.offset)?;
        let review = candidate.answer?;
        if agreed.as_ref().is_some_and(|first| !Rc::ptr_eq(first, &review) && **first != *review) {
            return Err(disagreement(candidate.offset));
        }
        agreed.get_or_insert(review);
    }
    let review = agreed.ok_or_else(|| Violation::new(ViolationCode::NoVerdict, 0, nothing))?;
    Ok(finish(Rc::unwrap_or_clone(review), request))
}

pub(super) fn disagreement(offset: usize) -> Violation {
    Violation::new(ViolationCode::Disagreement, offset, "two answers in one message say different things")
}

pub(super) fn too_many(offset: usize) -> Violation {
    let message = format!("the message holds more than {MAX_CANDIDATES} answers");
    Violation::new(ViolationCode::TooLarge, offset, message)
}

/// Completes a review in any format: lets findings override the verdict, truncates texts, assigns ids and sets the
/// judged commit.
pub(super) fn finish(review: Review, request: &ReviewRequest) -> Review {
    let mut review = review.with_verdict_from_findings(request.fail_on);
    truncate_texts(&mut review);
    similarity::assign_ids(&mut review.findings);
    review.judged.commit.clone_from(&request.commit);
    review
}

/// Shortens a reviewer's text for use in an error message.
pub(crate) fn clip(text: &str) -> String {
    shortened(text, 60)
}

/// Parses `<!-- signoff:NONCE -->` or `<!-- signoff:NONCE COMMIT -->`, alone on its line.
pub(super) fn parse_nonce_comment(line: &str) -> Option<Binding> {
    let inner = line.trim().strip_prefix("<!--")?.strip_suffix("-->")?.trim().strip_prefix("signoff:")?;
    let mut words = inner.split_whitespace();
    let binding = Binding { nonce: words.next().map(str::to_owned), commit: words.next().map(str::to_owned) };
    words.next().is_none().then_some(binding)
}

/// The lines of a text that are not nonce comments.
pub(super) fn lines_without_nonce(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n').filter(|line| parse_nonce_comment(line).is_none())
}

/// The binding of an answer at `start..end` from comment lines next to it, with only blank lines between. Prefers a
/// binding with the right nonce, and among those one that names another commit.
pub(super) fn adjacent_binding(
    message: &FinalMessage<'_>,
    start: usize,
    end: usize,
    request: &ReviewRequest,
) -> Binding {
    const MAX_NONCE_COMMENTS: usize = 8;
    let text = message.text();
    let adjacent = |line: &&str| line.trim().is_empty() || parse_nonce_comment(line).is_some();
    let before = text[..message.line_at(start).start].rsplit('\n').take_while(adjacent);
    let after = text[message.line_at(end).end..].split('\n').take_while(adjacent);
    let before: Vec<_> = before.filter_map(parse_nonce_comment).take(MAX_NONCE_COMMENTS).collect();
    let mut found =
        before.into_iter().chain(after.filter_map(parse_nonce_comment).take(MAX_NONCE_COMMENTS)).collect::<Vec<_>>();
    if found.iter().any(|binding| binding.has_nonce_of(request)) {
        found.retain(|binding| binding.has_nonce_of(request));
    }
    let rank = |binding: &Binding| (check_commit(binding, request, start).is_err(), binding.commit.is_some());
    let first = found.iter().position(|binding| rank(binding) == found.iter().map(rank).max().unwrap_or_default());
    first.map(|at| found.swap_remove(at)).unwrap_or_default()
}

/// The error message of the `auto` contract for a message without an answer.
const NO_KNOWN_FORMAT: &str = "the message is not an answer in any known format";

/// Selects the review from the candidates of each text contract, the most expressive contract first. The nonce applies
/// across all of them. An approval is returned only if no other contract contradicts it.
pub(super) fn select_across(by_contract: Vec<Candidates>, request: &ReviewRequest) -> Parsed<Review> {
    let by_contract = filter_all_by_nonce(by_contract, request)?;
    let broken = first_violation(&by_contract, CandidateKind::is_objection);
    let denial = first_violation(&by_contract, |kind| kind == CandidateKind::Denial);
    match combine(by_contract, request)? {
        Some(review) if review.verdict.approves() => denial.map_or(Ok(review), Err),
        Some(review) => Ok(review),
        None => Err(no_answer(broken, NO_KNOWN_FORMAT)),
    }
}

fn first_violation(by_contract: &[Vec<AnswerCandidate>], counts: impl Fn(CandidateKind) -> bool) -> Option<Violation> {
    let mut objections = by_contract.iter().flatten().filter(|candidate| counts(candidate.kind));
    objections.find_map(|candidate| candidate.answer.as_ref().err().cloned())
}

/// Combines the reviews of the contracts that found an answer. Returns `None` if none did.
fn combine(by_contract: Vec<Candidates>, request: &ReviewRequest) -> Parsed<Option<Review>> {
    let answers = |candidates: &Vec<AnswerCandidate>| candidates.iter().any(|candidate| !candidate.kind.is_objection());
    let results =
        by_contract.into_iter().filter(answers).map(|candidates| resolve(candidates, request, NO_KNOWN_FORMAT));
    let mut approval: Option<Review> = None;
    let mut change_request: Option<Review> = None;
    let mut broken: Option<Violation> = None;
    for result in results {
        match result {
            Ok(review) if review.verdict.approves() => drop(approval.get_or_insert(review)),
            Ok(review) => drop(change_request.get_or_insert(review)),
            Err(violation) if violation.code == ViolationCode::NoVerdict => {}
            Err(violation) => drop(broken.get_or_insert(violation)),
        }
    }
    match (approval, change_request, broken) {
        (Some(_), Some(_), _) => Err(disagreement(0)),
        (_, _, Some(violation)) => Err(violation),
        (review @ Some(_), None, None) | (None, review, None) => Ok(review),
    }
}

/// Applies the nonce to all contracts at once, and drops remarks if there is a verdict.
fn filter_all_by_nonce(mut by_contract: Vec<Candidates>, request: &ReviewRequest) -> Parsed<Vec<Candidates>> {
    check_candidates(by_contract.iter().flatten(), request)?;
    if by_contract.iter().flatten().any(|candidate| candidate.binding.has_nonce_of(request)) {
        by_contract
            .iter_mut()
            .for_each(|candidates| candidates.retain(|candidate| candidate.binding.has_nonce_of(request)));
    }
    if by_contract.iter().flatten().any(|candidate| candidate.kind == CandidateKind::Plain) {
        by_contract
            .iter_mut()
            .for_each(|candidates| candidates.retain(|candidate| candidate.kind != CandidateKind::Remark));
    }
    by_contract.into_iter().map(|candidates| filter_by_nonce(candidates, request)).collect()
}
