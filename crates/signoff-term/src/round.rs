//! The rounds at a gate, as they are told: who said what, also what nobody could read.
//!
//! The machine forgets a panel once it has ruled. What people are shown of it is kept here, from the same facts.

use std::collections::BTreeMap;

use signoff_core::ids::{AttemptId, Commit, ReviewerName};
use signoff_core::ledger::{Entry, State};
use signoff_core::machine::{
    CheckReport, Event, GateEnd, Loop, Panel, Policy, Position, Scope, Seat, Slot, Stage,
};
use signoff_core::merge::{self, Issue, Merged};
use signoff_core::review::{Bar, Inconclusive, Review, ReviewerKind, Verdict, Violation, ViolationCode};
use signoff_core::wire::Launch;
use signoff_core::workflow::PhaseKind;

use crate::words;

/// One fact about a loop, with what it was before and what became of it.
pub struct Step<'a> {
    pub before: &'a Loop,
    pub event: &'a Event,
    pub after: &'a Loop,
    pub policy: &'a Policy,
    /// The attempt that it ends, as it was started.
    pub launch: Option<&'a Launch>,
}

/// The reviewers of a gate called once, on one commit; or the project's checks run once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    pub at: Position,
    /// The phase's name.
    pub phase: String,
    pub cycle: u32,
    pub scope: Scope,
    pub commit: Commit,
    pub bar: Bar,
    /// The last word of every reviewer.
    pub said: BTreeMap<ReviewerName, Review>,
    /// The attempts in which they said it.
    pub attempts: BTreeMap<ReviewerName, AttemptId>,
    opened: u32,
}

/// What a round says in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    Approved,
    ChangesRequested,
    NeedsDiscussion,
    Inconclusive,
}

impl Ruling {
    pub fn word(self) -> &'static str {
        match self {
            Self::Approved => "APPROVED",
            Self::ChangesRequested => "CHANGES_REQUESTED",
            Self::NeedsDiscussion => "NEEDS_DISCUSSION",
            Self::Inconclusive => "INCONCLUSIVE",
        }
    }
}

/// The round under way at one loop's gate.
#[derive(Debug, Clone, Default)]
pub struct Rounds {
    current: Option<Round>,
}

impl Rounds {
    /// Takes a fact in. Gives the round when every reviewer has had its word.
    pub fn take(&mut self, step: &Step) -> Option<Round> {
        let settled = self.heard(step);
        if let Stage::Reviewing(panel) = &step.after.stage {
            let known = self.current.as_ref().is_some_and(|round| round.opened == step.after.tally.reviews);
            if !known {
                self.current = Some(Round::open(step.after, step.policy, panel.scope));
            }
        }
        settled.or_else(|| checked(step))
    }

    fn heard(&mut self, step: &Step) -> Option<Round> {
        let Stage::Reviewing(panel) = &step.before.stage else { return None };
        let round = self.current.as_mut()?;
        let (name, review) = said(step, panel, round.bar)?;
        round.attempts.extend(step.event.ends_attempt().map(|attempt| (name.clone(), attempt)));
        round.said.insert(name, review);
        let same = step.before.tally.reviews == step.after.tally.reviews;
        let goes_on = same && matches!(step.after.stage, Stage::Reviewing(_));
        (!goes_on).then(|| round.clone())
    }
}

/// Whose word an event is, and what it says.
fn said(step: &Step, panel: &Panel, bar: Bar) -> Option<(ReviewerName, Review)> {
    let name = seat_of(panel, step.event.ends_attempt()?)?;
    let kind = kind_of(step.policy, &name);
    if let Event::ReviewArrived { review, .. } = step.event {
        return Some((name, bound((**review).clone(), panel).with_findings_outranking_words(bar)));
    }
    if let Event::AttemptFailed { failure, .. } = step.event {
        let why = Inconclusive::Missing(words::failure(failure));
        return Some((name.clone(), Review::inconclusive(name, kind, why)));
    }
    None
}

/// The reviewer whose attempt this is.
pub fn seat_of(panel: &Panel, attempt: AttemptId) -> Option<ReviewerName> {
    let is_it = |seat: &Seat| matches!(seat, Seat::Out { slot: Slot::Running(at), .. } if *at == attempt);
    panel.seats.iter().find(|(_, seat)| is_it(seat)).map(|(name, _)| name.clone())
}

fn kind_of(policy: &Policy, name: &ReviewerName) -> ReviewerKind {
    policy.workflow.reviewers.get(name).map_or(ReviewerKind::General, |reviewer| reviewer.kind)
}

/// An answer to another commit is no answer to this one: so the machine takes it, so it is shown.
fn bound(mut review: Review, panel: &Panel) -> Review {
    if review.judged.commit.as_ref().is_some_and(|commit| *commit != panel.commit) {
        let message = format!("the review judged another commit than {}", panel.commit);
        let violation = Violation::new(ViolationCode::CommitMismatch, 0, message);
        review.verdict = Verdict::Inconclusive(violation.into());
    }
    review
}

/// A run of the project's checks, told like a review.
fn checked(step: &Step) -> Option<Round> {
    let Stage::Checking { slot, .. } = &step.before.stage else { return None };
    let attempt = step.event.ends_attempt()?;
    if slot.attempt() != Some(attempt) {
        return None;
    }
    let given_up = !matches!(step.after.stage, Stage::Checking { .. });
    let (verdict, findings) = if let Event::CheckEnded { report, .. } = step.event {
        match report {
            CheckReport::Passed => (Verdict::Approved, Vec::new()),
            CheckReport::Failed { findings } => (Verdict::ChangesRequested, findings.clone()),
            CheckReport::NothingToCheck => return None,
        }
    } else if let (Event::AttemptFailed { failure, .. }, true) = (step.event, given_up) {
        (Verdict::Inconclusive(Inconclusive::Missing(words::failure(failure))), Vec::new())
    } else {
        return None;
    };
    let mut round = Round::open(step.before, step.policy, Scope::Full);
    let name = ReviewerName::from("checks");
    let review = Review { findings, ..Review::of(name.clone(), ReviewerKind::Tests, verdict) };
    round.attempts.insert(name.clone(), attempt);
    round.said.insert(name, review);
    Some(round)
}

impl Round {
    fn open(this: &Loop, policy: &Policy, scope: Scope) -> Self {
        let phase = policy.workflow.phases.get(this.at.phase);
        let bar = match phase.map(|phase| &phase.kind) {
            Some(PhaseKind::Gate(judge)) => judge.gate.fail_on,
            Some(PhaseKind::Check(_) | PhaseKind::Agent { .. }) | None => Bar::Low,
        };
        Self {
            at: this.at,
            phase: phase.map(|phase| phase.name.clone()).unwrap_or_default(),
            cycle: this.tally.cycle,
            scope,
            commit: this.head.commit.clone(),
            bar,
            said: BTreeMap::new(),
            attempts: BTreeMap::new(),
            opened: this.tally.reviews,
        }
    }

    /// The words together.
    pub fn merged(&self) -> Merged {
        merge::merge(&self.said.values().cloned().collect::<Vec<_>>(), self.bar)
    }

    /// How many findings keep it from passing.
    pub fn blocking(&self) -> usize {
        self.merged().blocking(self.bar).count()
    }

    /// What became of it. Whether a gate passed, the machine says: findings of earlier rounds count too.
    pub fn ruling(&self, step: &Step) -> Ruling {
        let any = |test: fn(&Verdict) -> bool| self.said.values().any(|review| test(&review.verdict));
        if any(|verdict| matches!(verdict, Verdict::Inconclusive(_))) {
            Ruling::Inconclusive
        } else if any(|verdict| *verdict == Verdict::NeedsDiscussion) {
            Ruling::NeedsDiscussion
        } else if self.passed(step) {
            Ruling::Approved
        } else {
            Ruling::ChangesRequested
        }
    }

    fn passed(&self, step: &Step) -> bool {
        if let Event::CheckEnded { report, .. } = step.event {
            return *report == CheckReport::Passed;
        }
        let here = (self.at.phase, self.at.item);
        let through = step.after.gates.iter().filter(|gate| (gate.phase, gate.item) == here).any(|gate| {
            match gate.end {
                GateEnd::Approved { .. } | GateEnd::Unheard => true,
                GateEnd::Noted { .. } | GateEnd::Unchecked => false,
            }
        });
        let full = matches!(&step.after.stage, Stage::Reviewing(panel) if panel.scope == Scope::Full);
        let confirms = self.scope == Scope::Scoped && full && step.after.tally.cycle == self.cycle;
        through || confirms
    }

    /// The first thing to know about it: the first finding in merge order, one still open, or a summary.
    pub fn gist(&self, merged: &Merged, step: &Step) -> Option<String> {
        let unheard = self.said.values().find_map(|review| {
            words::unheard(&review.verdict).map(|why| format!("{}: {why}", review.reviewer))
        });
        // Skip findings that are already closed.
        let closed = |issue: &&Issue| {
            let entry = step.after.ledger.reported_as(&issue.finding.id);
            entry.is_some_and(|entry| entry.state != State::Open)
        };
        let first = || merged.issues.iter().find(|issue| !closed(issue));
        let blocking = merged.blocking(self.bar).find(|issue| !closed(issue)).or_else(first);
        let found = || blocking.map(|issue| issue.finding.description.clone());
        let still_open = || self.still_open(step).map(|entry| entry.finding.description.clone());
        let summary = || {
            let not = self.said.values().filter(|review| !review.verdict.approves());
            not.map(|review| review.summary.clone()).find(|summary| !summary.trim().is_empty())
        };
        unheard.or_else(found).or_else(still_open).or_else(summary)
    }

    /// How many findings of this gate are open after it. Those of a landing are closed by the next one.
    pub fn left_open(&self, step: &Step) -> usize {
        let here = |entry: &&Entry| entry.seen.iter().any(|round| round.phase == self.at.phase);
        step.after.ledger.open(Bar::Low).filter(here).count()
    }

    fn still_open<'a>(&self, step: &Step<'a>) -> Option<&'a Entry> {
        let here = |entry: &&Entry| entry.seen.iter().any(|round| round.phase == self.at.phase);
        step.after.ledger.findings_for_fix(self.bar).into_iter().find(here)
    }
}
