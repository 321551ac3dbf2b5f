//! Gates and checks: the panel, what became of each seat, and what they say together.

use std::collections::{BTreeMap, BTreeSet};

use super::outcome::{Outcome, Reason};
use super::state::{Asked, GateEnd, Loop, Panel, Scope, Seat, Slot, Stage};
use super::{CheckReport, Choice, Earlier, Policy, finish, fix, work};
use crate::ids::{AttemptId, ReviewerName};
use crate::ledger::{DecidedBy, Entry, Round, State};
use crate::policy::{Gate, OnFailure, Rereview, Rung};
use crate::review::{Bar, Finding, Review, ReviewerKind, Severity, Verdict, Violation, ViolationCode};
use crate::workflow::PhaseKind;

/// The name under which the project's checks stand in the ledger.
pub const CHECKS: &str = "checks";

/// Comes to a gate anew: its bounds begin again, the numbers of its reviews go on.
pub fn first(this: &mut Loop, policy: &Policy) {
    begin_counting(this);
    if has_nothing_to_judge(this, policy) {
        return finish::nothing_to_review(this, policy);
    }
    next_cycle(this);
    open(this, Scope::Full, policy);
}

/// A gate's own counters begin at nothing.
pub fn begin_counting(this: &mut Loop) {
    let tally = &mut this.tally;
    (tally.fixes, tally.noop_fixes, tally.granted.fixes) = (0, 0, 0);
    tally.cycle = this.cycles.get(&this.at.phase).copied().unwrap_or(0);
}

/// Reviews are numbered per gate and pass, whatever items and conflicts come between.
fn next_cycle(this: &mut Loop) {
    this.tally.cycle = this.tally.cycle.saturating_add(1);
    this.tally.discussions = 0;
    this.cycles.insert(this.at.phase, this.tally.cycle);
}

/// A gate or check that another program began goes on with its counters and findings.
pub fn imported(this: &mut Loop, (fixes, findings): (u32, Vec<Finding>), policy: &Policy) {
    if let Stage::Reviewing(_) | Stage::Checking { .. } = this.stage {
        this.tally.fixes = fixes;
        // Each fix followed a review.
        this.tally.cycle = this.tally.cycle.saturating_add(fixes);
        this.cycles.insert(this.at.phase, this.tally.cycle);
    }
    if let Some(reviewer) = finish::panel(this).and_then(|panel| panel.seats.keys().next().cloned()) {
        found_elsewhere(this, (this.at.pass, this.at.phase), reviewer, findings, policy);
    }
}

/// What another gate, or this one in another pass, found before the loop came here is still open. Whoever sits at that
/// gate closes it.
pub fn recall(this: &mut Loop, earlier: Earlier, policy: &Policy) {
    let reviewer = match policy.phase(earlier.phase).map(|phase| &phase.kind) {
        Some(PhaseKind::Gate(judge)) => judge.gate.reviewers.first().cloned(),
        Some(PhaseKind::Check(_)) => Some(CHECKS.into()),
        Some(PhaseKind::Agent { .. }) | None => None,
    };
    if let Some(reviewer) = reviewer {
        found_elsewhere(this, (earlier.pass, earlier.phase), reviewer, earlier.findings, policy);
    }
}

fn found_elsewhere(
    this: &mut Loop,
    (pass, phase): (u32, usize),
    reviewer: ReviewerName,
    findings: Vec<Finding>,
    policy: &Policy,
) {
    let verdict = Verdict::ChangesRequested;
    this.tally.has_readable |= !findings.is_empty();
    let review = Review { findings, ..Review::of(reviewer, ReviewerKind::General, verdict) };
    // It was found before the first review here.
    let here = round(this, policy);
    let item = here.item.filter(|_| (pass, phase) == (here.pass, here.phase));
    let round = Round { pass, phase, item, cycle: 0, ..here };
    this.ledger.record(&round, &[review]);
}

/// Comes back to it after a fix.
pub fn again(this: &mut Loop, policy: &Policy) {
    if has_nothing_to_judge(this, policy) {
        return finish::nothing_to_review(this, policy);
    }
    next_cycle(this);
    let scoped =
        finish::judge_here(this, policy).is_some_and(|judge| judge.gate.rereview == Rereview::Scoped);
    open(this, if scoped { Scope::Scoped } else { Scope::Full }, policy);
}

/// Calls all reviewers at once, on one commit. Where the work changes nothing there is nothing to judge.
pub fn open(this: &mut Loop, scope: Scope, policy: &Policy) {
    let Some(phase) = policy.phase(this.at.phase) else { return finish::sign_off(this, policy) };
    if has_nothing_to_judge(this, policy) {
        return finish::nothing_to_review(this, policy);
    }
    this.unread.clear();
    this.stage = match &phase.kind {
        PhaseKind::Gate(judge) => {
            this.tally.reviews += 1;
            let seats = judge.gate.reviewers.iter().map(|name| (name.clone(), called(this))).collect();
            let untold = BTreeSet::new();
            Stage::Reviewing(Panel { commit: this.head.commit.clone(), scope, seats, untold })
        }
        PhaseKind::Check(_) => Stage::Checking { slot: this.new_slot(), failures: 0 },
        PhaseKind::Agent { .. } => return finish::enter(this, policy),
    };
}

/// Whether the gate here judges the work itself, not a design or a plan for it, and the work changes nothing.
fn has_nothing_to_judge(this: &Loop, policy: &Policy) -> bool {
    let phases = &policy.workflow.phases;
    let (before, after) = phases.split_at(this.at.phase.min(phases.len()));
    let judges_work = before.iter().any(work::implements) || !after.iter().any(work::implements);
    this.is_unchanged() && judges_work && this.at.phase < phases.len()
}

fn called(this: &mut Loop) -> Seat {
    Seat::Out { slot: this.new_slot(), failures: 0, unclear: 0 }
}

/// A reviewer ended by itself.
pub fn review_arrived(this: &mut Loop, attempt: AttemptId, review: Review, policy: &Policy) {
    let (Some(judge), Stage::Reviewing(panel)) = (finish::judge_here(this, policy), &this.stage) else {
        return;
    };
    let Some((name, failures, unclear)) = seat_of(panel, attempt) else { return };
    let review = bound(review, panel);
    this.accounted_for();
    let is_readable = !matches!(review.verdict, Verdict::Inconclusive(_));
    this.tally.has_readable |= is_readable;
    this.tally.has_unclear |= !is_readable;
    let seat = match &review.verdict {
        Verdict::Inconclusive(_) => {
            let (rung, unclear) = (judge.gate.on_unclear.rung(unclear), unclear + 1);
            if rung == Rung::Retry {
                Seat::Out { slot: this.new_slot(), failures, unclear }
            } else {
                Seat::Unclear { rung, failures, unclear }
            }
        }
        Verdict::Approved
        | Verdict::ApprovedWithMinor
        | Verdict::ChangesRequested
        | Verdict::NeedsDiscussion => {
            Seat::Answered(Box::new(review.with_findings_outranking_words(judge.gate.fail_on)))
        }
    };
    take_seat(this, name, seat, policy);
}

/// An answer to another commit is no answer to this one.
fn bound(mut review: Review, panel: &Panel) -> Review {
    if review.judged.commit.as_ref().is_some_and(|commit| *commit != panel.commit) {
        let message = format!("the review judged another commit than {}", panel.commit);
        let violation = Violation::new(ViolationCode::CommitMismatch, 0, message);
        review.verdict = Verdict::Inconclusive(violation.into());
    }
    review
}

/// A reviewer, or the project's checks, ended badly.
pub fn failed(this: &mut Loop, attempt: AttemptId, policy: &Policy) {
    let Some(judge) = finish::judge_here(this, policy) else { return };
    let ladder = judge.gate.on_reviewer_failure.clone();
    if let Stage::Checking { failures, .. } = this.stage {
        return check_failed_to_run(this, failures, ladder.rung(failures), policy);
    }
    let Some((name, failures, unclear)) = finish::panel(this).and_then(|panel| seat_of(panel, attempt))
    else {
        return;
    };
    let (rung, failures) = (ladder.rung(failures), failures + 1);
    let seat = if rung == Rung::Retry {
        Seat::Out { slot: this.new_slot(), failures, unclear }
    } else {
        Seat::Failed { rung, failures, unclear }
    };
    take_seat(this, name, seat, policy);
}

fn seat_of(panel: &Panel, attempt: AttemptId) -> Option<(ReviewerName, u32, u32)> {
    panel.seats.iter().find_map(|(name, seat)| match seat {
        Seat::Out { slot, failures, unclear } if slot.attempt() == Some(attempt) => {
            Some((name.clone(), *failures, *unclear))
        }
        Seat::Out { .. } | Seat::Answered(_) | Seat::Unclear { .. } | Seat::Failed { .. } => None,
    })
}

fn take_seat(this: &mut Loop, name: ReviewerName, seat: Seat, policy: &Policy) {
    if let Stage::Reviewing(panel) = &mut this.stage {
        panel.seats.insert(name, seat);
        if !panel.is_open() {
            settle(this, policy);
        }
    }
}

/// Every seat has its word. The unheard ones come first; only then do the answers count.
fn settle(this: &mut Loop, policy: &Policy) {
    let Some(panel) = finish::panel(this) else { return };
    let word = |seat: &Seat| match seat {
        Seat::Unclear { rung, .. } | Seat::Failed { rung, .. } => Some(*rung),
        Seat::Out { .. } | Seat::Answered(_) => None,
    };
    match panel.seats.values().filter_map(word).max() {
        None => weigh(this, Heard::All, policy),
        Some(Rung::Fail | Rung::Stop | Rung::Retry) => {
            let reason = unheard_reason(panel);
            record(this, policy);
            let again = finish::resume(this);
            finish::end(this, Outcome::Failed, reason, again);
        }
        Some(Rung::Ask) => {
            record(this, policy);
            ask(this, policy);
        }
        Some(Rung::NotPassed | Rung::RequestChanges | Rung::NextAttempt) => {
            let unread = unread(panel);
            record(this, policy);
            let looks_again = unread.is_empty()
                && finish::judge_here(this, policy)
                    .is_some_and(|judge| judge.gate.on_failure == OnFailure::MiniLoop);
            if policy.fix_needs_review && this.has_only_unclear_reviews() && !looks_again {
                return finish::unclear(this, policy);
            }
            not_passed(this, unread, policy);
        }
    }
}

fn unheard_reason(panel: &Panel) -> Reason {
    let unclear = panel.seats.values().any(|seat| matches!(seat, Seat::Unclear { .. }));
    if unclear { Reason::UnclearReview } else { Reason::ReviewerFailed }
}

/// The reviewers whose text nobody could read, but a fixer may.
fn unread(panel: &Panel) -> Vec<ReviewerName> {
    let raw = |seat: &Seat| matches!(seat, Seat::Unclear { rung: Rung::RequestChanges, .. });
    panel.seats.iter().filter(|(_, seat)| raw(seat)).map(|(name, _)| name.clone()).collect()
}

fn ask(this: &mut Loop, policy: &Policy) {
    let Some(panel) = finish::panel(this) else { return };
    let missing = panel.missing();
    let all_missing = missing.len() == panel.seats.len();
    let all_failed = panel.seats.values().all(|seat| matches!(seat, Seat::Failed { .. }));
    let (about, second) = if all_failed {
        (Asked::NoReview { missing }, Choice::Skip)
    } else if all_missing {
        (Asked::UnclearReview { missing }, Choice::Proceed)
    } else {
        (Asked::PartialReview { missing }, Choice::Proceed)
    };
    finish::ask(this, about, &[Choice::Retry, second, Choice::Stop], policy);
}

/// Whether every seat was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    All,
    Some,
}

/// What the answers say together.
pub fn weigh(this: &mut Loop, heard: Heard, policy: &Policy) {
    let answers = record(this, policy);
    let discussing: Vec<_> = answers
        .iter()
        .filter(|review| review.verdict == Verdict::NeedsDiscussion)
        .map(|review| review.reviewer.clone())
        .collect();
    let bar = finish::judge_here(this, policy).map(|judge| judge.gate.fail_on);
    let unexplained = |review: &Review| {
        review.verdict == Verdict::ChangesRequested && review.findings.is_empty() && bar != Some(Bar::None)
    };
    if !discussing.is_empty() {
        discuss(this, discussing, policy);
    } else if answers.iter().any(unexplained) || !blocking(this, policy).is_empty() {
        not_passed(this, Vec::new(), policy);
    } else {
        passed(this, heard, policy);
    }
}

/// Takes the panel's answers into the ledger.
fn record(this: &mut Loop, policy: &Policy) -> Vec<Review> {
    let answers = finish::panel(this).map(Panel::answers).unwrap_or_default();
    let untold = finish::panel(this).map(|panel| panel.untold.clone()).unwrap_or_default();
    let round = round(this, policy);
    this.ledger.record_beside(&round, &answers, &untold);
    answers
}

pub fn round(this: &Loop, policy: &Policy) -> Round {
    let per_item = policy.phase(this.at.phase).is_some_and(|phase| phase.per_item);
    Round {
        pass: this.at.pass,
        phase: this.at.phase,
        item: per_item.then_some(this.at.item),
        cycle: this.tally.cycle,
        commit: Some(this.head.commit.clone()),
        checkpoint: None,
        task: None,
    }
}

/// The open findings that keep this gate shut, worst first: at or above its bar, and raised here.
pub fn blocking<'a>(this: &'a Loop, policy: &Policy) -> Vec<&'a Entry> {
    // A check is judged by its exit code alone: whatever it reports has to be fixed.
    let bar = match policy.phase(this.at.phase).map(|phase| &phase.kind) {
        Some(PhaseKind::Gate(judge)) => judge.gate.fail_on,
        Some(PhaseKind::Check(_) | PhaseKind::Agent { .. }) | None => Bar::Low,
    };
    let here = round(this, policy);
    let here =
        |entry: &&Entry| here.concerns(entry) && entry.seen.iter().any(|round| round.phase == this.at.phase);
    this.ledger.findings_for_fix(bar).into_iter().filter(here).collect()
}

/// The findings that reviewers reported in the last round and that would block, had a person not decided about them.
pub fn overruled<'a>(this: &'a Loop, policy: &Policy) -> Vec<&'a Entry> {
    let phases = policy.workflow.phases.iter().enumerate().take(this.at.phase + 1);
    let mut gates = phases.rev().filter_map(|(index, phase)| Some((index, phase.judge()?.gate.fail_on)));
    let Some((gate, bar)) = gates.next() else { return Vec::new() };
    let last = (this.at.pass, gate, this.tally.cycle);
    let is_overruled = |entry: &&Entry| {
        let by_person = entry.decisions.last().is_some_and(|one| matches!(one.by, DecidedBy::Person(_)));
        let is_closed = match entry.state {
            State::Open | State::Fixed => false,
            State::Refuted | State::Deferred | State::OutOfScope => true,
        };
        let reported = entry.seen.iter().rev().find(|round| round.checkpoint.is_none());
        let reported = reported.is_some_and(|round| (round.pass, round.phase, round.cycle) == last);
        by_person && is_closed && reported && bar.is_reached_by(entry.finding.severity)
    };
    this.ledger.entries().iter().filter(is_overruled).collect()
}

fn discuss(this: &mut Loop, by: Vec<ReviewerName>, policy: &Policy) {
    let Some(judge) = finish::judge_here(this, policy) else { return };
    let rung = judge.gate.on_discussion.rung(this.tally.discussions);
    this.tally.discussions += 1;
    match rung {
        Rung::Retry => {
            let scope = finish::panel(this).map_or(Scope::Full, |panel| panel.scope);
            open(this, scope, policy);
        }
        Rung::Ask => {
            let choices = [Choice::Fix, Choice::Proceed, Choice::Stop];
            finish::ask(this, Asked::Discussion { by }, &choices, policy);
        }
        Rung::RequestChanges | Rung::NotPassed | Rung::NextAttempt => not_passed(this, by, policy),
        Rung::Stop | Rung::Fail => {
            let outcome = if rung == Rung::Stop { Outcome::Discussion } else { Outcome::Failed };
            let again = finish::resume(this);
            finish::end(this, outcome, Reason::Discussion, again);
        }
    }
}

/// Nothing at or above the bar is open. What was only judged in part is judged once more as a whole.
fn passed(this: &mut Loop, heard: Heard, policy: &Policy) {
    let Some(panel) = finish::panel(this) else { return };
    if panel.scope == Scope::Scoped {
        return open(this, Scope::Full, policy);
    }
    let end = match heard {
        Heard::All => GateEnd::Approved { commit: panel.commit.clone() },
        Heard::Some => GateEnd::Unheard,
    };
    finish::record(this, end);
    finish::advance(this, policy);
}

/// The gate stays shut.
pub fn not_passed(this: &mut Loop, unread: Vec<ReviewerName>, policy: &Policy) {
    let Some(judge) = finish::judge_here(this, policy) else { return };
    match judge.gate.on_failure {
        OnFailure::MiniLoop if repeats(this, &judge.gate, policy) => {
            finish::exhausted(this, Reason::SameFinding, policy)
        }
        OnFailure::MiniLoop => fix::begin(this, unread, policy),
        OnFailure::Restart if may_restart(this, &judge.gate, policy) => {
            *this.tally.restarts.entry(this.at.phase).or_default() += 1;
            finish::restart(this, policy);
        }
        OnFailure::Restart => finish::restarts_exhausted(this, policy),
        OnFailure::Proceed => finish::note(this, Reason::FindingsNoted, policy),
        OnFailure::Stop => {
            finish::end(this, Outcome::Failed, Reason::GateFailed, super::Again::Fix);
        }
    }
}

/// Whether a gate whose failure begins the next pass may do so once more. Its bound counts restarts as that of another
/// gate counts fixes.
fn may_restart(this: &Loop, gate: &Gate, policy: &Policy) -> bool {
    let restarts = this.tally.restarts.get(&this.at.phase).copied().unwrap_or(0);
    !policy.workflow.limits.bounds_restarts || gate.bound.fixes().is_none_or(|bound| restarts < bound)
}

fn repeats(this: &Loop, gate: &Gate, policy: &Policy) -> bool {
    let reviews = |entry: &&Entry| entry.seen.iter().filter(|round| round.checkpoint.is_none()).count();
    let times = blocking(this, policy).iter().map(reviews).max().unwrap_or(0);
    gate.max_same_finding.is_some_and(|bound| times >= bound as usize)
}

/// The project's checks ended.
pub fn check_ended(this: &mut Loop, attempt: AttemptId, report: CheckReport, policy: &Policy) {
    if !this.runs(attempt) || !matches!(this.stage, Stage::Checking { .. }) {
        return;
    }
    this.accounted_for();
    let verdict = |verdict| Review::of(CHECKS.into(), ReviewerKind::Tests, verdict);
    let round = round(this, policy);
    this.tally.has_readable |= report != CheckReport::NothingToCheck;
    match report {
        CheckReport::Passed => {
            this.ledger.record(&round, &[verdict(Verdict::Approved)]);
            finish::advance(this, policy);
        }
        CheckReport::Failed { findings } => {
            let findings = if findings.is_empty() { vec![unexplained_check()] } else { findings };
            let review = Review { findings, ..verdict(Verdict::ChangesRequested) };
            this.ledger.record(&round, &[review]);
            not_passed(this, Vec::new(), policy);
        }
        // A fix that takes the checks away leaves what they found open.
        CheckReport::NothingToCheck if !blocking(this, policy).is_empty() => {
            not_passed(this, Vec::new(), policy);
        }
        CheckReport::NothingToCheck => {
            finish::record(this, GateEnd::Unchecked);
            finish::advance(this, policy);
        }
    }
}

/// A check that fails and names nothing still failed.
fn unexplained_check() -> Finding {
    Finding::of(&CHECKS.into(), "check", Severity::Critical, "the project's checks failed and named no place")
}

fn check_failed_to_run(this: &mut Loop, failures: u32, rung: Rung, policy: &Policy) {
    match rung {
        Rung::Retry => this.stage = Stage::Checking { slot: this.new_slot(), failures: failures + 1 },
        Rung::Ask => {
            this.stage = Stage::Checking { slot: Slot::Vacant, failures: failures + 1 };
            let missing = vec![CHECKS.into()];
            let choices = [Choice::Retry, Choice::Skip, Choice::Stop];
            finish::ask(this, Asked::NoReview { missing }, &choices, policy);
        }
        Rung::NotPassed | Rung::NextAttempt | Rung::RequestChanges => not_passed(this, Vec::new(), policy),
        Rung::Stop | Rung::Fail => {
            let again = finish::resume(this);
            finish::end(this, Outcome::Failed, Reason::ReviewerFailed, again);
        }
    }
}

/// Calls those again who were not heard; the others' answers stand, the code is the same.
pub fn call_missing(this: &mut Loop, mut panel: Panel) {
    let missing: Vec<_> = panel.missing();
    let calls: BTreeMap<_, _> = missing.into_iter().map(|name| (name, called(this))).collect();
    panel.seats.extend(calls);
    this.stage = Stage::Reviewing(panel);
}
