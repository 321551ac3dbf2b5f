//! Fixing what a gate found: one fixer, or several side by side.

use super::outcome::{Again, Outcome, Reason};
use super::state::{Asked, Fix, FixState, Head, Loop, Order, Slot, Stage};
use super::{Choice, Policy, WorkReport, finish, independent_groups, judge, work};
use crate::ids::{AttemptId, Commit, FindingId, ReviewerName};
use crate::ledger::Claim;
use crate::policy::Rung;
use crate::workflow::{Phase, PhaseKind, Role};

/// Begins a fix of everything that keeps the gate shut, if the gate's bound allows one more.
pub fn begin(this: &mut Loop, unread: Vec<ReviewerName>, policy: &Policy) {
    let Some(judge) = finish::judge_here(this, policy) else { return };
    this.unread.clone_from(&unread);
    if !judge.gate.bound.allows_another_fix(this.tally.fixes, this.tally.granted.fixes) {
        return finish::exhausted(this, Reason::CyclesExhausted, policy);
    }
    let findings = judge::blocking(this, policy);
    let only_looks = findings.is_empty() && unread.is_empty();
    if only_looks && this.tally.fixes < work::allowed(this, policy) {
        // The cycle failed because nobody could judge: there is nothing to fix, only to look again. Where fixes have
        // no bound of their own, looks have that of attempts.
        count(this);
        return judge::again(this, policy);
    }
    if only_looks || !work::may_attempt(this, policy) {
        let outcome = finish::exhausted_as(policy.workflow.attempts_exhausted_as);
        let reason = finish::or_unclear(this, Reason::AttemptsExhausted, policy);
        return finish::end(this, outcome, reason, Again::Fix);
    }
    let together = || vec![findings.iter().map(|entry| entry.finding.id.clone()).collect()];
    let side_by_side = judge.gate.parallel_fixes && unread.is_empty() && !makes_one_thing(judge.fixer);
    let groups = if side_by_side {
        independent_groups(findings.iter().map(|entry| &entry.finding))
    } else {
        together()
    };
    count(this);
    launch(this, groups, unread, policy);
}

/// One more fix at this gate. What was counted elsewhere may be any number.
fn count(this: &mut Loop) {
    this.tally.fixes = this.tally.fixes.saturating_add(1);
}

/// Whether what somebody makes is one answer: of two that are made side by side only one could be taken.
fn makes_one_thing(role: Role) -> bool {
    match role {
        Role::Enumerate | Role::Plan => true,
        Role::Implement | Role::Fix | Role::Brainstorm | Role::Simplify => false,
    }
}

/// Starts a fixer for each group of findings.
pub fn launch(this: &mut Loop, groups: Vec<Vec<FindingId>>, unread: Vec<ReviewerName>, policy: &Policy) {
    let order = if groups.len() > 1 { Order::AtOnce } else { Order::InTurn };
    let fix = |findings| Fix { findings, unread: unread.clone(), failures: 0, state: FixState::Queued };
    let fixes: Vec<_> = groups.into_iter().map(fix).collect();
    this.stage = Stage::Fixing { fixes, order, from: this.head.tree.clone() };
    start_queued(this, Follows::Review, policy);
}

/// What a fixer's start follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Follows {
    Review,
    /// An attempt that ended without completing: a checkpoint review may be due.
    Incomplete,
}

/// Starts whatever may start: all that are queued, or the next in turn.
fn start_queued(this: &mut Loop, follows: Follows, policy: &Policy) {
    let Stage::Fixing { fixes, order, .. } = &this.stage else { return };
    let queued: Vec<_> = (0..fixes.len()).filter(|index| fixes[*index].state == FixState::Queued).collect();
    let number = match order {
        Order::AtOnce => queued.len(),
        Order::InTurn => queued.len().min(1),
    };
    if !work::may_attempt(this, policy) {
        return work::attempts_exhausted(this, policy);
    }
    // Those that start together are one attempt at what the review found.
    this.tally.uncounted += u32::try_from(number.saturating_sub(1)).unwrap_or(u32::MAX);
    for index in queued.into_iter().take(number) {
        let slot = work::slot(this, follows == Follows::Incomplete, policy);
        set(this, index, FixState::Out(slot));
    }
}

fn set(this: &mut Loop, index: usize, state: FixState) {
    if let Stage::Fixing { fixes, .. } = &mut this.stage
        && let Some(fix) = fixes.get_mut(index)
    {
        fix.state = state;
    }
}

fn index_of(this: &Loop, attempt: AttemptId) -> Option<usize> {
    let Stage::Fixing { fixes, .. } = &this.stage else { return None };
    let is_it = |fix: &Fix| matches!(&fix.state, FixState::Out(slot) if slot.attempt() == Some(attempt));
    fixes.iter().position(is_it)
}

/// A fixer ended by itself. A fix needs no marker: it is judged by the review that follows.
pub fn ended(this: &mut Loop, attempt: AttemptId, report: WorkReport, policy: &Policy) {
    let Some(index) = index_of(this, attempt) else { return };
    let Stage::Fixing { order, .. } = this.stage else { return };
    let head = match report {
        WorkReport::Complete { head } | WorkReport::Incomplete { head } | WorkReport::NoWorkLeft { head } => {
            head
        }
        WorkReport::Stuck { .. } => return work::gave_up(this),
    };
    let apart = match order {
        Order::AtOnce => Some(head.commit),
        Order::InTurn => {
            this.head = head;
            None
        }
    };
    set(this, index, FixState::Done { apart });
    settle(this, policy);
}

/// A fixer gives its account, which only reviewers and people act on.
pub fn claimed(
    this: &mut Loop,
    attempt: AttemptId,
    (commit, claims): (&Commit, Vec<Claim>),
    policy: &Policy,
) {
    if index_of(this, attempt).is_some() || is_fix_phase(this, attempt, policy) {
        this.ledger.claim((attempt, commit), claims);
    }
}

/// Whether an attempt is at work in a phase that fixes what was found before the loop.
fn is_fix_phase(this: &Loop, attempt: AttemptId, policy: &Policy) -> bool {
    let fixes = |phase: &Phase| matches!(phase.kind, PhaseKind::Agent { role: Role::Fix, .. });
    matches!(this.stage, Stage::Working { .. })
        && this.runs(attempt)
        && policy.phase(this.at.phase).is_some_and(fixes)
}

/// A fixer ended badly.
pub fn failed(this: &mut Loop, attempt: AttemptId, policy: &Policy) {
    let Some(index) = index_of(this, attempt) else { return };
    let Stage::Fixing { fixes, .. } = &mut this.stage else { return };
    let earlier = fixes[index].failures;
    fixes[index].failures += 1;
    let ladder = finish::judge_near(this, policy).map(|judge| &judge.gate.on_fixer_failure);
    match ladder.map_or(Rung::Fail, |ladder| ladder.rung(earlier)) {
        Rung::Retry => {
            set(this, index, FixState::Queued);
            start_queued(this, Follows::Incomplete, policy);
        }
        rung @ (Rung::NextAttempt
        | Rung::RequestChanges
        | Rung::NotPassed
        | Rung::Ask
        | Rung::Stop
        | Rung::Fail) => {
            set(this, index, FixState::Failed { rung });
            settle(this, policy);
        }
    }
}

/// Goes on once nobody is at work any more.
fn settle(this: &mut Loop, policy: &Policy) {
    let Stage::Fixing { fixes, order, .. } = &this.stage else { return };
    if fixes.iter().any(|fix| matches!(fix.state, FixState::Out(_))) {
        return;
    }
    let word = |fix: &Fix| match fix.state {
        FixState::Failed { rung } => Some(rung),
        FixState::Queued | FixState::Out(_) | FixState::Done { .. } => None,
    };
    let any_done = fixes.iter().any(|fix| matches!(fix.state, FixState::Done { .. }));
    let side_by_side = *order == Order::AtOnce;
    match fixes.iter().filter_map(word).max() {
        Some(Rung::Ask) => {
            finish::ask(this, Asked::FixerFailed, &[Choice::Retry, Choice::Stop], policy);
        }
        Some(Rung::Stop | Rung::Fail) => {
            let again = finish::resume(this);
            finish::end(this, Outcome::Failed, Reason::FixerFailed, again);
        }
        Some(_) if !any_done => spend(this, policy),
        Some(_) | None if side_by_side => combine(this),
        Some(_) | None if has_queued(this) => start_queued(this, Follows::Review, policy),
        Some(_) | None => fixed(this, policy),
    }
}

fn has_queued(this: &Loop) -> bool {
    matches!(&this.stage, Stage::Fixing { fixes, .. } if fixes.iter().any(|fix| fix.state == FixState::Queued))
}

/// The attempt is spent: another one, if the gate's bound has one left.
fn spend(this: &mut Loop, policy: &Policy) {
    let bound = finish::judge_near(this, policy).map(|judge| judge.gate.bound);
    if bound.is_some_and(|bound| !bound.allows_another_fix(this.tally.fixes, this.tally.granted.fixes)) {
        return finish::exhausted(this, Reason::FixerFailed, policy);
    }
    count(this);
    requeue_failed(this);
    start_queued(this, Follows::Incomplete, policy);
}

fn requeue_failed(this: &mut Loop) {
    if let Stage::Fixing { fixes, .. } = &mut this.stage {
        for fix in fixes.iter_mut().filter(|fix| matches!(fix.state, FixState::Failed { .. })) {
            fix.state = FixState::Queued;
        }
    }
}

/// A person said: the failed ones once more.
pub fn retry(this: &mut Loop, policy: &Policy) {
    requeue_failed(this);
    if has_queued(this) { start_queued(this, Follows::Review, policy) } else { settle(this, policy) }
}

fn combine(this: &mut Loop) {
    let slot = this.new_slot();
    if let Stage::Fixing { fixes, from, .. } = &this.stage {
        this.stage = Stage::Combining { slot, fixes: fixes.clone(), from: from.clone() };
    }
}

/// Fixes made side by side fit together. Whoever failed beside them has another go, as long as there is one.
pub fn combined(this: &mut Loop, attempt: AttemptId, head: Head, policy: &Policy) {
    let Stage::Combining { fixes, .. } = &this.stage else { return };
    let once_more = work::may_attempt(this, policy);
    let stays = |index: &usize| !once_more || matches!(fixes[*index].state, FixState::Done { .. });
    let kept: Vec<_> = (0..fixes.len()).filter(stays).collect();
    overlapped(this, attempt, &kept, head, policy);
}

/// They did not: what could not be kept is done again, one after the other.
pub fn overlapped(this: &mut Loop, attempt: AttemptId, kept: &[usize], head: Head, policy: &Policy) {
    let Stage::Combining { slot, fixes, from } = &this.stage else { return };
    if slot.attempt() != Some(attempt) {
        return;
    }
    let again = |(index, fix): (usize, &Fix)| {
        let state = if kept.contains(&index) { FixState::Done { apart: None } } else { FixState::Queued };
        Fix { state, ..fix.clone() }
    };
    let fixes = fixes.iter().enumerate().map(again).collect();
    this.stage = Stage::Fixing { fixes, order: Order::InTurn, from: from.clone() };
    this.head = head;
    this.accounted_for();
    if has_queued(this) { start_queued(this, Follows::Review, policy) } else { fixed(this, policy) }
}

/// The fix is made. If it changed nothing, looking again would find the same.
fn fixed(this: &mut Loop, policy: &Policy) {
    let (Stage::Fixing { from, .. } | Stage::Combining { from, .. }) = &this.stage else { return };
    let changed = *from != this.head.tree;
    this.tally.noop_fixes = if changed { 0 } else { this.tally.noop_fixes + 1 };
    let bound = finish::judge_here(this, policy).and_then(|judge| judge.gate.max_noop_fixes);
    if bound.is_some_and(|bound| this.tally.noop_fixes >= bound) {
        return finish::exhausted(this, Reason::NoopFix, policy);
    }
    judge::again(this, policy);
}

/// Takes fixes up again: those that were under way or failed start anew, the others stay done.
pub fn revive(this: &mut Loop, stage: Stage, policy: &Policy) {
    this.stage = stage;
    if let Stage::Fixing { fixes, .. } = &mut this.stage {
        let stopped = |fix: &&mut Fix| matches!(fix.state, FixState::Out(Slot::Held(_) | Slot::Running(_)));
        for fix in fixes.iter_mut().filter(stopped) {
            fix.state = FixState::Queued;
        }
    }
    retry(this, policy);
}
