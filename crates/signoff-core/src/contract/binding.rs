//! Which candidate answers count, and whether they agree.

use std::rc::Rc;

use super::message::Message;
use super::outline::Shown;
use super::{Ask, reason};
use crate::review::{Review, Violation, ViolationCode};
use crate::similarity;

/// More answers than this in one message are not an answer.
pub(super) const MAX_CANDIDATES: usize = 1000;

/// What an answer says it belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Binding {
    pub nonce: Option<String>,
    pub commit: Option<String>,
}

impl Binding {
    pub fn carries(&self, ask: &Ask) -> bool {
        let asked = asked(ask);
        asked.is_some() && self.nonce.as_deref() == asked
    }

    /// Whether it carries the nonce of another review. An empty nonce is a missing one.
    fn mismatches(&self, ask: &Ask) -> bool {
        let said = self.nonce.as_deref().filter(|nonce| !nonce.is_empty());
        said.is_some() && asked(ask).is_some() && said != asked(ask)
    }
}

fn asked(ask: &Ask) -> Option<&str> {
    ask.nonce.as_ref().map(|nonce| nonce.as_str()).filter(|nonce| !nonce.is_empty())
}

fn mismatch(offset: usize) -> Violation {
    let message = "the answer carries the nonce of another review; copy the one of this review";
    Violation::new(ViolationCode::NonceMismatch, offset, message)
}

/// A violation if a nonce comment that is not quoted names another review, wherever it stands.
pub(super) fn check_nonces(message: &Message<'_>, ask: &Ask) -> Result<(), Violation> {
    const MARK: &str = "signoff:";
    let text = message.text();
    if asked(ask).is_none() || !text.contains(MARK) {
        return Ok(());
    }
    let mut from = 0;
    while let Some(at) = text[from..].find("<!--").map(|at| from + at) {
        let Some(end) = text[at..].find("-->").map(|end| at + end + "-->".len()) else { break };
        from = end;
        let wrong = comment_line(&text[at..end]).is_some_and(|binding| binding.mismatches(ask));
        let said = || matches!(message.outline().shown(at), None | Some(Shown::Html | Shown::Comment));
        if wrong && said() {
            return Err(mismatch(at));
        }
    }
    Ok(())
}

/// An answer bound to another commit than the one under review answers another question.
pub(super) fn check_commit(binding: &Binding, ask: &Ask, offset: usize) -> Result<(), Violation> {
    let (Some(said), Some(asked)) = (&binding.commit, &ask.commit) else { return Ok(()) };
    if same_commit(said, asked.as_str()) {
        return Ok(());
    }
    let message = format!("the answer is bound to commit `{}`, not to the one under review", clip(said));
    Err(Violation::new(ViolationCode::CommitMismatch, offset, message))
}

/// Equal, or one the other's abbreviation as git prints them.
fn same_commit(a: &str, b: &str) -> bool {
    const SHORTEST: usize = 7;
    let length = a.len().min(b.len());
    let prefixes = a.as_bytes().get(..length).zip(b.as_bytes().get(..length));
    let alike = prefixes.is_some_and(|(a, b)| a.eq_ignore_ascii_case(b));
    alike && (a.len() == b.len() || length >= SHORTEST)
}

/// How much a candidate's surroundings let it say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Plain,
    /// A bare "nothing found" that other contracts' reviews contain in passing: a verdict goes before it.
    Remark,
    /// Shown, not said: inside a block quote, inline code, a diff, … It can contradict, it cannot answer.
    Quoted,
    /// Inside a broken text, so nobody knows what it was a part of: the same, unless it carries the nonce.
    Fragment,
    /// Perhaps the ruin of an answer: it does not answer, but no approval in the same contract stands beside it.
    Doubt,
    /// Speaks against the work without being an answer: no approval in any contract stands beside it.
    Denial,
}

impl Standing {
    /// Whether it only keeps others from approving.
    pub fn only_doubts(self) -> bool {
        match self {
            Self::Doubt | Self::Denial => true,
            Self::Plain | Self::Remark | Self::Quoted | Self::Fragment => false,
        }
    }

    /// Whether it is an answer of its own, neither quoted nor a doubt about others.
    pub fn is_said(self) -> bool {
        match self {
            Self::Plain | Self::Remark | Self::Fragment => true,
            Self::Quoted | Self::Doubt | Self::Denial => false,
        }
    }

    /// Whether it is no answer because of what is around it.
    pub fn is_shown(self) -> bool {
        matches!(self, Self::Quoted | Self::Fragment)
    }
}

/// One answer found in a message.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub offset: usize,
    pub binding: Binding,
    pub standing: Standing,
    /// Shared, because the same verdict said twice is the same review of the same body.
    pub answer: Result<Rc<Review>, Violation>,
}

/// What speaks against an approval: a message can hold any number of ruins, the first of each sort will do.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    pub first: Vec<Candidate>,
}

impl Doubts {
    pub fn take(&mut self, doubt: Option<Candidate>, ask: &Ask) {
        let Some(doubt) = doubt else { return };
        let sort = |one: &Candidate| (one.standing, one.binding.carries(ask));
        if self.first.iter().all(|known| sort(known) != sort(&doubt)) {
            self.first.push(doubt);
        }
    }
}

/// The whole way from the candidates of one contract to its review.
pub(super) fn select(candidates: Vec<Candidate>, ask: &Ask, nothing: &str) -> Result<Review, Violation> {
    settle(counted(candidates, ask)?, ask, nothing)
}

/// Where any candidate carries the right nonce, only those count; where it is required, no others do. An answer with the
/// nonce of another review makes the message inconclusive.
pub(super) fn counted(mut candidates: Vec<Candidate>, ask: &Ask) -> Result<Vec<Candidate>, Violation> {
    check_candidates(&candidates, ask)?;
    if candidates.iter().any(|candidate| candidate.binding.carries(ask)) {
        candidates.retain(|candidate| candidate.binding.carries(ask));
        for candidate in candidates.iter_mut().filter(|one| one.standing == Standing::Fragment) {
            candidate.standing = Standing::Plain;
        }
    } else if ask.require_nonce && !candidates.is_empty() {
        let violation = unbound(&candidates);
        // The nonce protects approvals; a refusal needs none.
        candidates.retain(refuses);
        return if candidates.is_empty() { Err(violation) } else { Ok(candidates) };
    }
    Ok(candidates)
}

/// A violation if an answer carries the nonce of another review.
pub(super) fn check_candidates<'c>(
    candidates: impl IntoIterator<Item = &'c Candidate>,
    ask: &Ask,
) -> Result<(), Violation> {
    let mut answers = candidates.into_iter().filter(|one| one.standing.is_said());
    let wrong = answers.find(|one| one.binding.mismatches(ask));
    wrong.map_or(Ok(()), |one| Err(mismatch(one.offset)))
}

fn refuses(candidate: &Candidate) -> bool {
    let refused = candidate.answer.as_ref().is_ok_and(|review| !review.verdict.approves());
    refused && candidate.standing.is_said()
}

/// Says what is broken where an answer broke before its nonce, and otherwise that the nonce is missing.
fn unbound(candidates: &[Candidate]) -> Violation {
    let broken = candidates.iter().filter(|candidate| !candidate.standing.is_shown()).find_map(|one| {
        one.answer.as_ref().err().filter(|violation| {
            matches!(
                violation.code,
                ViolationCode::Malformed | ViolationCode::Truncated | ViolationCode::TooDeep
            )
        })
    });
    broken.cloned().unwrap_or_else(|| {
        let offset = candidates.first().map_or(0, |candidate| candidate.offset);
        Violation::new(ViolationCode::NonceMissing, offset, "no answer carries the nonce of this review")
    })
}

/// All that count must be whole, bound to this commit, and say the same; an approval must be beyond doubt.
pub(super) fn settle(candidates: Vec<Candidate>, ask: &Ask, nothing: &str) -> Result<Review, Violation> {
    let (doubts, answers): (Vec<_>, Vec<_>) =
        candidates.into_iter().partition(|candidate| candidate.standing.only_doubts());
    let doubt = doubts.into_iter().find_map(|candidate| candidate.answer.err());
    if answers.is_empty() {
        return Err(unanswered(doubt, nothing));
    }
    let review = agree(answers, ask, nothing)?;
    match doubt {
        Some(violation) if review.verdict.approves() => Err(violation),
        Some(_) | None => Ok(review),
    }
}

/// What a message without an answer is: a broken one, if there is a ruin, and otherwise none.
pub(super) fn unanswered(doubt: Option<Violation>, nothing: &str) -> Violation {
    let broken = doubt.filter(|violation| violation.code != ViolationCode::Disagreement);
    broken.unwrap_or_else(|| Violation::new(ViolationCode::NoVerdict, 0, nothing))
}

fn agree(candidates: Vec<Candidate>, ask: &Ask, nothing: &str) -> Result<Review, Violation> {
    let said = candidates.iter().any(|candidate| !candidate.standing.is_shown());
    if let (Some(first), false) = (candidates.first(), said) {
        let message = "the only answer is quoted text; state it as the answer itself";
        return Err(Violation::new(ViolationCode::NoVerdict, first.offset, message));
    }
    let mut agreed: Option<Rc<Review>> = None;
    for candidate in candidates {
        check_commit(&candidate.binding, ask, candidate.offset)?;
        let review = candidate.answer?;
        if agreed.as_ref().is_some_and(|first| !Rc::ptr_eq(first, &review) && **first != *review) {
            return Err(disagreement(candidate.offset));
        }
        agreed.get_or_insert(review);
    }
    let review = agreed.ok_or_else(|| Violation::new(ViolationCode::NoVerdict, 0, nothing))?;
    Ok(finish(Rc::unwrap_or_clone(review), ask))
}

pub(super) fn disagreement(offset: usize) -> Violation {
    Violation::new(ViolationCode::Disagreement, offset, "two answers in one message say different things")
}

pub(super) fn too_many(offset: usize) -> Violation {
    let message = format!("the message holds more than {MAX_CANDIDATES} answers");
    Violation::new(ViolationCode::TooLarge, offset, message)
}

/// What every review gets, whatever it was written in: findings outrank words, texts have an end, ids, what was
/// judged.
pub(super) fn finish(review: Review, ask: &Ask) -> Review {
    let mut review = review.with_findings_outranking_words(ask.fail_on);
    reason::cut_texts(&mut review);
    similarity::assign_ids(&mut review.findings);
    review.judged.commit.clone_from(&ask.commit);
    review
}

/// A short form of a reviewer's own words, for messages.
pub(super) fn clip(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut chars = text.chars();
    let mut short: String = chars.by_ref().take(LONGEST).collect();
    if chars.next().is_some() {
        short.push('…');
    }
    short
}

/// Reads `<!-- signoff:NONCE -->` or `<!-- signoff:NONCE COMMIT -->`, alone on its line.
pub(super) fn comment_line(line: &str) -> Option<Binding> {
    let inner = line.trim().strip_prefix("<!--")?.strip_suffix("-->")?.trim().strip_prefix("signoff:")?;
    let mut words = inner.split_whitespace();
    let binding = Binding { nonce: words.next().map(str::to_owned), commit: words.next().map(str::to_owned) };
    words.next().is_none().then_some(binding)
}

/// The binding of an answer at `start..end` by comment lines before or after it, with only blank lines between. Of
/// several, one with the right nonce; of those, one that names another commit.
pub(super) fn beside(message: &Message<'_>, start: usize, end: usize, ask: &Ask) -> Binding {
    const MOST: usize = 8;
    let text = message.text();
    let adjacent = |line: &&str| line.trim().is_empty() || comment_line(line).is_some();
    let before = text[..message.line_at(start).start].rsplit('\n').take_while(adjacent);
    let after = text[message.line_at(end).end..].split('\n').take_while(adjacent);
    let before: Vec<_> = before.filter_map(comment_line).take(MOST).collect();
    let mut found = before.into_iter().chain(after.filter_map(comment_line).take(MOST)).collect::<Vec<_>>();
    if found.iter().any(|binding| binding.carries(ask)) {
        found.retain(|binding| binding.carries(ask));
    }
    let rank = |binding: &Binding| (check_commit(binding, ask, start).is_err(), binding.commit.is_some());
    let first =
        found.iter().position(|binding| rank(binding) == found.iter().map(rank).max().unwrap_or_default());
    first.map(|at| found.swap_remove(at)).unwrap_or_default()
}
