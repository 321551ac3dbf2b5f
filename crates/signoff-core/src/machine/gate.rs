//! Gates and checks: the panel of reviewers, their answers and the combined result.

use std::collections::{BTreeMap, BTreeSet};

use super::outcome::{Outcome, Reason};
use super::state::{AttemptSlot, GateEnd, Loop, Panel, QuestionTopic, ReviewScope, ReviewerState, Stage};
use super::{CheckReport, Choice, Policy, fix, phases, work};
use crate::ids::{AttemptId, ReviewerName};
use crate::ledger::{DecidedBy, LedgerEntry, Round};
use crate::policy::{FailureAction, FailureStep, Gate, OnFailure, RereviewScope};
use crate::review::{FailThreshold, Finding, Review, ReviewerKind, Severity, Verdict};
use crate::settings::CHECKS;
use crate::workflow::PhaseKind;

/// The finding for checks that failed without naming a location.
const NO_LOCATION: &str = "the project's checks failed without naming a location";

/// Enters a gate: its limits start over, its review numbers continue.
pub fn begin(machine: &mut Loop, policy: &Policy) {
    reset_counters(machine);
    if has_nothing_to_judge(machine, policy) {
        return phases::nothing_to_review(machine, policy);
    }
    next_cycle(machine);
    open_round(machine, ReviewScope::Full, policy);
}

/// Resets the counters of the current gate.
pub fn reset_counters(machine: &mut Loop) {
    let counters = &mut machine.counters;
    (counters.fixes, counters.noop_fixes, counters.granted.fixes) = (0, 0, 0);
    counters.cycle = machine.cycles.get(&machine.position.phase).copied().unwrap_or(0);
}

/// Reviews are numbered per gate and pass, across items and conflicts.
fn next_cycle(machine: &mut Loop) {
    machine.counters.cycle = machine.counters.cycle.saturating_add(1);
    machine.counters.discussions = 0;
    machine.cycles.insert(machine.position.phase, machine.counters.cycle);
}

/// Reviews again after a fix.
pub fn review_again(machine: &mut Loop, policy: &Policy) {
    if has_nothing_to_judge(machine, policy) {
        return phases::nothing_to_review(machine, policy);
    }
    next_cycle(machine);
    let scoped = phases::current_gate_policy(machine, policy)
        .is_some_and(|gate_policy| gate_policy.gate.rereview == RereviewScope::Scoped);
    open_round(machine, if scoped { ReviewScope::Scoped } else { ReviewScope::Full }, policy);
}

/// Starts all reviewers on one commit. If the work changes nothing there is nothing to judge.
pub fn open_round(machine: &mut Loop, scope: ReviewScope, policy: &Policy) {
    let Some(phase) = policy.phase(machine.position.phase) else { return phases::sign_off(machine, policy) };
    if has_nothing_to_judge(machine, policy) {
        return phases::nothing_to_review(machine, policy);
    }
    machine.unparsed_reviewers.clear();
    machine.stage = match &phase.kind {
        PhaseKind::Gate(gate_policy) => {
            machine.counters.reviews += 1;
            let reviewers =
                gate_policy.gate.reviewers.iter().map(|name| (name.clone(), new_reviewer_state(machine))).collect();
            let unlisted = BTreeSet::new();
            Stage::Reviewing(Panel { commit: machine.head.commit.clone(), scope, reviewers, unlisted })
        }
        PhaseKind::Check(_) => Stage::Checking { slot: machine.new_slot(), failures: 0 },
        PhaseKind::Agent { .. } => return phases::enter(machine, policy),
    };
}

/// Whether the current gate judges the work itself, not a design or a plan, and the work changes nothing.
fn has_nothing_to_judge(machine: &Loop, policy: &Policy) -> bool {
    let phases = &policy.workflow.phases;
    let (before, after) = phases.split_at(machine.position.phase.min(phases.len()));
    let judges_work = before.iter().any(work::implements) || !after.iter().any(work::implements);
    machine.is_unchanged() && judges_work && machine.position.phase < phases.len()
}

fn new_reviewer_state(machine: &mut Loop) -> ReviewerState {
    ReviewerState::Assigned { slot: machine.new_slot(), failures: 0, unclear: 0 }
}

/// A reviewer ended by itself.
pub fn review_arrived(machine: &mut Loop, attempt: AttemptId, review: Review, policy: &Policy) {
    let (Some(gate_policy), Stage::Reviewing(panel)) = (phases::current_gate_policy(machine, policy), &machine.stage)
    else {
        return;
    };
    let Some((name, failures, unclear)) = assigned_reviewer(panel, attempt) else { return };
    let review = review.counted(&panel.commit, gate_policy.gate.fail_on);
    machine.reset_losses();
    let is_readable = !matches!(review.verdict, Verdict::Inconclusive(_));
    machine.counters.has_readable |= is_readable;
    machine.counters.has_unclear |= !is_readable;
    let state = match &review.verdict {
        Verdict::Inconclusive(_) => {
            let (action, unclear) = (gate_policy.gate.on_unclear.action(unclear), unclear + 1);
            if action == FailureAction::Retry {
                ReviewerState::Assigned { slot: machine.new_slot(), failures, unclear }
            } else {
                ReviewerState::Unclear { action, failures, unclear }
            }
        }
        Verdict::Approved | Verdict::ApprovedWithMinor | Verdict::ChangesRequested | Verdict::NeedsDiscussion => {
            ReviewerState::Answered(Box::new(review))
        }
    };
    set_reviewer_state(machine, name, state, policy);
}

/// A reviewer or the project's checks failed.
pub fn failed(machine: &mut Loop, attempt: AttemptId, policy: &Policy) {
    let Some(gate_policy) = phases::current_gate_policy(machine, policy) else { return };
    let escalation = gate_policy.gate.on_reviewer_failure.clone();
    if let Stage::Checking { failures, .. } = machine.stage {
        return check_failed_to_run(machine, failures, escalation.action(failures), policy);
    }
    let Some((name, failures, unclear)) = phases::panel(machine).and_then(|panel| assigned_reviewer(panel, attempt))
    else {
        return;
    };
    let (action, failures) = (escalation.action(failures), failures + 1);
    let state = if action == FailureAction::Retry {
        ReviewerState::Assigned { slot: machine.new_slot(), failures, unclear }
    } else {
        ReviewerState::Failed { action, failures, unclear }
    };
    set_reviewer_state(machine, name, state, policy);
}

/// The reviewer of an attempt, with the number of failures and of unclear answers so far.
fn assigned_reviewer(panel: &Panel, attempt: AttemptId) -> Option<(ReviewerName, u32, u32)> {
    panel.reviewers.iter().find_map(|(name, state)| {
        let ReviewerState::Assigned { slot, failures, unclear } = state else { return None };
        (slot.attempt() == Some(attempt)).then(|| (name.clone(), *failures, *unclear))
    })
}

fn set_reviewer_state(machine: &mut Loop, name: ReviewerName, state: ReviewerState, policy: &Policy) {
    if let Stage::Reviewing(panel) = &mut machine.stage {
        panel.reviewers.insert(name, state);
        if !panel.is_open() {
            settle_panel(machine, policy);
        }
    }
}

/// Every reviewer has ended. Missing answers are handled first; only then do the answers count.
fn settle_panel(machine: &mut Loop, policy: &Policy) {
    let Some(panel) = phases::panel(machine) else { return };
    let action = |state: &ReviewerState| match state {
        ReviewerState::Unclear { action, .. } | ReviewerState::Failed { action, .. } => Some(*action),
        ReviewerState::Assigned { .. } | ReviewerState::Answered(_) => None,
    };
    match panel.reviewers.values().filter_map(action).max().map(FailureAction::step) {
        None => evaluate_answers(machine, PanelCoverage::Complete, policy),
        Some(FailureStep::End | FailureStep::Retry) => {
            let is_unclear = panel.reviewers.values().any(|state| matches!(state, ReviewerState::Unclear { .. }));
            let reason = if is_unclear { Reason::UnclearReview } else { Reason::ReviewerFailed };
            record(machine, policy);
            phases::end_resumable(machine, Outcome::Failed, reason);
        }
        Some(FailureStep::Ask) => {
            record(machine, policy);
            ask(machine, policy);
        }
        Some(FailureStep::NotPassed) => {
            let unparsed_reviewers = unparsed_reviewers(panel);
            record(machine, policy);
            let looks_again = unparsed_reviewers.is_empty()
                && phases::current_gate_policy(machine, policy)
                    .is_some_and(|gate_policy| gate_policy.gate.on_failure.fixes_in_place());
            if policy.fix_needs_review && machine.has_only_unclear_reviews() && !looks_again {
                return phases::end_unclear(machine, policy);
            }
            not_passed(machine, unparsed_reviewers, policy);
        }
    }
}

/// The reviewers whose answers could not be parsed but may help a fixer.
fn unparsed_reviewers(panel: &Panel) -> Vec<ReviewerName> {
    let raw =
        |state: &ReviewerState| matches!(state, ReviewerState::Unclear { action: FailureAction::RequestChanges, .. });
    panel.reviewers.iter().filter(|(_, state)| raw(state)).map(|(name, _)| name.clone()).collect()
}

fn ask(machine: &mut Loop, policy: &Policy) {
    let Some(panel) = phases::panel(machine) else { return };
    let missing = panel.missing();
    let all_missing = missing.len() == panel.reviewers.len();
    let all_failed = panel.reviewers.values().all(|state| matches!(state, ReviewerState::Failed { .. }));
    let (topic, second) = if all_failed {
        (QuestionTopic::NoReview { missing }, Choice::Skip)
    } else if all_missing {
        (QuestionTopic::UnclearReview { missing }, Choice::Proceed)
    } else {
        (QuestionTopic::PartialReview { missing }, Choice::Proceed)
    };
    phases::ask(machine, topic, &[Choice::Retry, second, Choice::Stop], policy);
}

/// Whether all reviewers answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PanelCoverage {
    Complete,
    Partial,
}

/// Combines the answers into the gate's result.
pub fn evaluate_answers(machine: &mut Loop, coverage: PanelCoverage, policy: &Policy) {
    let answers = record(machine, policy);
    let discussing: Vec<_> = answers
        .iter()
        .filter(|review| review.verdict == Verdict::NeedsDiscussion)
        .map(|review| review.reviewer.clone())
        .collect();
    let threshold = phases::current_gate_policy(machine, policy).map(|gate_policy| gate_policy.gate.fail_on);
    let unexplained = |review: &Review| {
        review.verdict == Verdict::ChangesRequested
            && review.findings.is_empty()
            && threshold != Some(FailThreshold::None)
    };
    if !discussing.is_empty() {
        discuss(machine, discussing, policy);
    } else if answers.iter().any(unexplained) || !blocking(machine, policy).is_empty() {
        not_passed(machine, Vec::new(), policy);
    } else {
        passed(machine, coverage, policy);
    }
}

/// Records the panel's answers in the ledger.
fn record(machine: &mut Loop, policy: &Policy) -> Vec<Review> {
    let answers = phases::panel(machine).map(Panel::answers).unwrap_or_default();
    let unlisted = phases::panel(machine).map(|panel| panel.unlisted.clone()).unwrap_or_default();
    let round = round(machine, policy);
    machine.ledger_mut().record_with_unlisted(&round, &answers, &unlisted);
    answers
}

pub fn round(machine: &Loop, policy: &Policy) -> Round {
    let per_item = policy.phase(machine.position.phase).is_some_and(|phase| phase.per_item);
    Round {
        item: per_item.then_some(machine.position.item),
        ..machine.round_at(machine.position.phase, machine.counters.cycle)
    }
}

impl Loop {
    /// A round on the head, at a phase of this pass and over all items.
    pub(super) fn round_at(&self, phase: usize, cycle: u32) -> Round {
        let commit = Some(self.head.commit.clone());
        Round { pass: self.position.pass, phase, item: None, cycle, commit, checkpoint: None, task: None }
    }
}

/// The first reviewer of a gate.
pub(super) fn first_reviewer(phase: usize, policy: &Policy) -> Option<&ReviewerName> {
    policy.phase(phase).and_then(|phase| phase.policy()).and_then(|gate_policy| gate_policy.gate.reviewers.first())
}

/// The open findings that block this gate, worst first: at or above its threshold, and reported here.
pub fn blocking<'a>(machine: &'a Loop, policy: &Policy) -> Vec<&'a LedgerEntry> {
    // A check is judged by its exit code alone: everything it reports has to be fixed.
    let threshold = match policy.phase(machine.position.phase).map(|phase| &phase.kind) {
        Some(PhaseKind::Gate(gate_policy)) => gate_policy.gate.fail_on,
        Some(PhaseKind::Check(_) | PhaseKind::Agent { .. }) | None => FailThreshold::Low,
    };
    let here = round(machine, policy);
    let here = |entry: &&LedgerEntry| {
        here.covers(entry) && entry.seen.iter().any(|round| round.phase == machine.position.phase)
    };
    machine.ledger.findings_for_fix(threshold).into_iter().filter(here).collect()
}

/// Findings of the last round that would block if a person had not closed them.
pub fn overruled<'a>(machine: &'a Loop, policy: &Policy) -> Vec<&'a LedgerEntry> {
    let phases = policy.workflow.phases.iter().enumerate().take(machine.position.phase + 1);
    let mut gates = phases.rev().filter_map(|(index, phase)| Some((index, phase.policy()?.gate.fail_on)));
    let Some((gate, threshold)) = gates.next() else { return Vec::new() };
    let last = (machine.position.pass, gate, machine.counters.cycle);
    let is_overruled = |entry: &&LedgerEntry| {
        let by_person = entry.decisions.last().is_some_and(|one| matches!(one.by, DecidedBy::Person(_)));
        let reported = entry.seen.iter().rev().find(|round| round.checkpoint.is_none());
        let reported = reported.is_some_and(|round| (round.pass, round.phase, round.cycle) == last);
        by_person && entry.state.is_settled() && reported && threshold.is_reached_by(entry.finding.severity)
    };
    machine.ledger.entries().iter().filter(is_overruled).collect()
}

fn discuss(machine: &mut Loop, by: Vec<ReviewerName>, policy: &Policy) {
    let Some(gate_policy) = phases::current_gate_policy(machine, policy) else { return };
    let action = gate_policy.gate.on_discussion.action(machine.counters.discussions);
    machine.counters.discussions += 1;
    match action.step() {
        FailureStep::Retry => {
            let scope = phases::panel(machine).map_or(ReviewScope::Full, |panel| panel.scope);
            open_round(machine, scope, policy);
        }
        FailureStep::Ask => {
            let choices = [Choice::Fix, Choice::Proceed, Choice::Stop];
            phases::ask(machine, QuestionTopic::Discussion { by }, &choices, policy);
        }
        FailureStep::NotPassed => not_passed(machine, by, policy),
        FailureStep::End => {
            let outcome = if action == FailureAction::Stop { Outcome::Discussion } else { Outcome::Failed };
            phases::end_resumable(machine, outcome, Reason::Discussion);
        }
    }
}

/// No finding at or above the threshold is open. After a scoped review a full one follows.
fn passed(machine: &mut Loop, coverage: PanelCoverage, policy: &Policy) {
    let Some(panel) = phases::panel(machine) else { return };
    if panel.scope == ReviewScope::Scoped {
        return open_round(machine, ReviewScope::Full, policy);
    }
    let end = match coverage {
        PanelCoverage::Complete => GateEnd::Approved { commit: panel.commit.clone() },
        PanelCoverage::Partial => GateEnd::ReviewersMissing,
    };
    phases::record_gate_end(machine, end);
    phases::advance(machine, policy);
}

/// The gate did not pass.
pub fn not_passed(machine: &mut Loop, unparsed_reviewers: Vec<ReviewerName>, policy: &Policy) {
    let Some(gate_policy) = phases::current_gate_policy(machine, policy) else { return };
    match gate_policy.gate.on_failure {
        OnFailure::MiniLoop if repeats(machine, &gate_policy.gate, policy) => {
            phases::exhausted(machine, Reason::SameFinding, policy)
        }
        OnFailure::MiniLoop => fix::begin(machine, unparsed_reviewers, policy),
        OnFailure::Restart if may_restart(machine, &gate_policy.gate, policy) => {
            *machine.counters.restarts.entry(machine.position.phase).or_default() += 1;
            phases::restart(machine, policy);
        }
        OnFailure::Restart => phases::restarts_exhausted(machine, policy),
        OnFailure::Proceed => phases::proceed_with_findings(machine, Reason::FindingsNoted, policy),
        OnFailure::Stop => {
            phases::end(machine, Outcome::Failed, Reason::GateFailed, super::RetryAction::Fix);
        }
    }
}

/// Whether a gate that restarts the workflow may do so once more. Its limit counts restarts as that of another gate
/// counts fixes.
fn may_restart(machine: &Loop, gate: &Gate, policy: &Policy) -> bool {
    let restarts = machine.counters.restarts.get(&machine.position.phase).copied().unwrap_or(0);
    !policy.workflow.limits.bounds_restarts || gate.bound.fixes().is_none_or(|bound| restarts < bound)
}

fn repeats(machine: &Loop, gate: &Gate, policy: &Policy) -> bool {
    let reviews = |entry: &&LedgerEntry| entry.seen.iter().filter(|round| round.checkpoint.is_none()).count();
    let times = blocking(machine, policy).iter().map(reviews).max().unwrap_or(0);
    gate.max_same_finding.is_some_and(|bound| times >= bound as usize)
}

/// The project's checks ended.
pub fn check_ended(machine: &mut Loop, attempt: AttemptId, report: CheckReport, policy: &Policy) {
    if !machine.runs(attempt) || !matches!(machine.stage, Stage::Checking { .. }) {
        return;
    }
    machine.reset_losses();
    let verdict = |verdict| Review::new(CHECKS.into(), ReviewerKind::Tests, verdict);
    let round = round(machine, policy);
    machine.counters.has_readable |= report != CheckReport::NothingToCheck;
    match report {
        CheckReport::Passed => {
            machine.ledger_mut().record(&round, &[verdict(Verdict::Approved)]);
            phases::advance(machine, policy);
        }
        CheckReport::Failed { findings } => {
            let unexplained = || Finding::new(&CHECKS.into(), "check", Severity::Critical, NO_LOCATION);
            let findings = if findings.is_empty() { vec![unexplained()] } else { findings };
            let review = Review { findings, ..verdict(Verdict::ChangesRequested) };
            machine.ledger_mut().record(&round, &[review]);
            not_passed(machine, Vec::new(), policy);
        }
        // A fix that removes the checks leaves their findings open.
        CheckReport::NothingToCheck if !blocking(machine, policy).is_empty() => {
            not_passed(machine, Vec::new(), policy);
        }
        CheckReport::NothingToCheck => {
            phases::record_gate_end(machine, GateEnd::Unchecked);
            phases::advance(machine, policy);
        }
    }
}

fn check_failed_to_run(machine: &mut Loop, failures: u32, action: FailureAction, policy: &Policy) {
    match action.step() {
        FailureStep::Retry => machine.stage = Stage::Checking { slot: machine.new_slot(), failures: failures + 1 },
        FailureStep::Ask => {
            machine.stage = Stage::Checking { slot: AttemptSlot::Vacant, failures: failures + 1 };
            let missing = vec![CHECKS.into()];
            let choices = [Choice::Retry, Choice::Skip, Choice::Stop];
            phases::ask(machine, QuestionTopic::NoReview { missing }, &choices, policy);
        }
        FailureStep::NotPassed => not_passed(machine, Vec::new(), policy),
        FailureStep::End => phases::end_resumable(machine, Outcome::Failed, Reason::ReviewerFailed),
    }
}

/// Starts the missing reviewers again. The other answers stay valid, as the commit is the same.
pub fn retry_missing(machine: &mut Loop, mut panel: Panel) {
    let missing: Vec<_> = panel.missing();
    let calls: BTreeMap<_, _> = missing.into_iter().map(|name| (name, new_reviewer_state(machine))).collect();
    panel.reviewers.extend(calls);
    machine.stage = Stage::Reviewing(panel);
}
