//! Fixes the findings of a gate, with one fixer or several in parallel.

use super::outcome::{Outcome, Reason, RetryAction};
use super::state::{AttemptSlot, Fix, FixOrder, FixState, Head, Loop, QuestionTopic, Stage};
use super::{Choice, Policy, WorkReport, gate, phases, work};
use crate::ids::{AttemptId, Commit, FindingId, ReviewerName};
use crate::ledger::FixClaim;
use crate::policy::{FailureAction, FailureStep};
use crate::review::{Finding, is_repository_path};
use crate::workflow::{Phase, PhaseKind, Role};

/// Starts a fix of all blocking findings, if the gate's limit allows one more.
pub fn begin(machine: &mut Loop, unparsed_reviewers: Vec<ReviewerName>, policy: &Policy) {
    let Some(gate_policy) = phases::current_gate_policy(machine, policy) else { return };
    machine.unparsed_reviewers.clone_from(&unparsed_reviewers);
    if !gate_policy.gate.bound.allows_another_fix(machine.counters.fixes, machine.counters.granted.fixes) {
        return phases::exhausted(machine, Reason::CyclesExhausted, policy);
    }
    let findings = gate::blocking(machine, policy);
    let only_looks = findings.is_empty() && unparsed_reviewers.is_empty();
    if only_looks && machine.counters.fixes < work::max_attempts(machine, policy) {
        // No reviewer could judge, so there is nothing to fix: review again. If fixes are unlimited, the limit on
        // attempts applies.
        count_fix(machine);
        return gate::review_again(machine, policy);
    }
    if only_looks || !work::may_attempt(machine, policy) {
        let outcome = phases::outcome_for(policy.workflow.attempts_exhausted_as);
        let reason = phases::or_unclear(machine, Reason::AttemptsExhausted, policy);
        return phases::end(machine, outcome, reason, RetryAction::Fix);
    }
    let together = || vec![findings.iter().map(|entry| entry.finding.id.clone()).collect()];
    // Planners produce a single answer, so parallel results could not be combined.
    let has_single_result = matches!(gate_policy.fixer, Role::Enumerate | Role::Plan);
    let parallel = gate_policy.gate.parallel_fixes && unparsed_reviewers.is_empty() && !has_single_result;
    let groups = if parallel { independent_groups(findings.iter().map(|entry| &entry.finding)) } else { together() };
    count_fix(machine);
    launch(machine, groups, unparsed_reviewers, policy);
}

/// Counts one more fix at this gate. Saturates, because an imported count may be any number.
fn count_fix(machine: &mut Loop) {
    machine.counters.fixes = machine.counters.fixes.saturating_add(1);
}

/// Starts a fixer for each group of findings.
pub fn launch(machine: &mut Loop, groups: Vec<Vec<FindingId>>, unparsed_reviewers: Vec<ReviewerName>, policy: &Policy) {
    let order = if groups.len() > 1 { FixOrder::Parallel } else { FixOrder::Sequential };
    let fix = |findings| Fix {
        findings,
        unparsed_reviewers: unparsed_reviewers.clone(),
        failures: 0,
        state: FixState::Queued,
    };
    let fixes: Vec<_> = groups.into_iter().map(fix).collect();
    machine.stage = Stage::Fixing { fixes, order, from: machine.head.tree.clone() };
    start_queued(machine, FixTrigger::Review, policy);
}

/// What triggered a fixer's start.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FixTrigger {
    Review,
    /// An attempt ended without completing: a checkpoint review may be due.
    Incomplete,
}

/// Starts all queued fixers if they are parallel, else the next one.
fn start_queued(machine: &mut Loop, follows: FixTrigger, policy: &Policy) {
    let Stage::Fixing { fixes, order, .. } = &machine.stage else { return };
    let queued: Vec<_> = (0..fixes.len()).filter(|index| fixes[*index].state == FixState::Queued).collect();
    let number = match order {
        FixOrder::Parallel => queued.len(),
        FixOrder::Sequential => queued.len().min(1),
    };
    if !work::may_attempt(machine, policy) {
        return work::attempts_exhausted(machine, policy);
    }
    // Fixers that start together count as one attempt.
    machine.counters.uncounted += u32::try_from(number.saturating_sub(1)).unwrap_or(u32::MAX);
    for index in queued.into_iter().take(number) {
        let slot = work::attempt_slot(machine, follows == FixTrigger::Incomplete, policy);
        set_state(machine, index, FixState::Assigned(slot));
    }
}

fn set_state(machine: &mut Loop, index: usize, state: FixState) {
    if let Stage::Fixing { fixes, .. } = &mut machine.stage
        && let Some(fix) = fixes.get_mut(index)
    {
        fix.state = state;
    }
}

fn index_of(machine: &Loop, attempt: AttemptId) -> Option<usize> {
    let Stage::Fixing { fixes, .. } = &machine.stage else { return None };
    let is_it = |fix: &Fix| matches!(&fix.state, FixState::Assigned(slot) if slot.attempt() == Some(attempt));
    fixes.iter().position(is_it)
}

/// A fixer ended by itself. It needs no completion marker: the next review judges the fix.
pub fn ended(machine: &mut Loop, attempt: AttemptId, report: WorkReport, policy: &Policy) {
    let Some(index) = index_of(machine, attempt) else { return };
    let Stage::Fixing { order, .. } = machine.stage else { return };
    let head = match report {
        WorkReport::Complete { head } | WorkReport::Incomplete { head } | WorkReport::NoWorkLeft { head } => head,
        WorkReport::Stuck { .. } => return work::gave_up(machine),
    };
    let unmerged_commit = (order == FixOrder::Parallel).then(|| head.commit.clone());
    if unmerged_commit.is_none() {
        machine.head = head;
    }
    set_state(machine, index, FixState::Done { unmerged_commit });
    finish_fixes(machine, policy);
}

/// Records a fixer's claims. Only reviewers and people act on them.
pub fn claimed(machine: &mut Loop, attempt: AttemptId, commit: &Commit, claims: Vec<FixClaim>, policy: &Policy) {
    if index_of(machine, attempt).is_some() || is_fix_phase(machine, attempt, policy) {
        machine.ledger_mut().claim(attempt, commit, claims);
    }
}

/// Whether an attempt runs in an agent phase that fixes inherited findings.
fn is_fix_phase(machine: &Loop, attempt: AttemptId, policy: &Policy) -> bool {
    let fixes = |phase: &Phase| matches!(phase.kind, PhaseKind::Agent { role: Role::Fix, .. });
    matches!(machine.stage, Stage::Working { .. })
        && machine.runs(attempt)
        && policy.phase(machine.position.phase).is_some_and(fixes)
}

/// A fixer failed.
pub fn failed(machine: &mut Loop, attempt: AttemptId, policy: &Policy) {
    let Some(index) = index_of(machine, attempt) else { return };
    let Stage::Fixing { fixes, .. } = &mut machine.stage else { return };
    let earlier = fixes[index].failures;
    fixes[index].failures += 1;
    let escalation = phases::nearest_gate_policy(machine, policy).map(|gate_policy| &gate_policy.gate.on_fixer_failure);
    let action = escalation.map_or(FailureAction::Fail, |escalation| escalation.action(earlier));
    if action.step() == FailureStep::Retry {
        set_state(machine, index, FixState::Queued);
        start_queued(machine, FixTrigger::Incomplete, policy);
    } else {
        set_state(machine, index, FixState::Failed { action });
        finish_fixes(machine, policy);
    }
}

/// Continues once no fixer is running.
fn finish_fixes(machine: &mut Loop, policy: &Policy) {
    let Stage::Fixing { fixes, order, .. } = &machine.stage else { return };
    if fixes.iter().any(|fix| matches!(fix.state, FixState::Assigned(_))) {
        return;
    }
    let action = |fix: &Fix| if let FixState::Failed { action } = fix.state { Some(action) } else { None };
    let any_done = fixes.iter().any(|fix| matches!(fix.state, FixState::Done { .. }));
    let parallel = *order == FixOrder::Parallel;
    match fixes.iter().filter_map(action).max().map(FailureAction::step) {
        Some(FailureStep::Ask) => {
            phases::ask(machine, QuestionTopic::FixerFailed, &[Choice::Retry, Choice::Stop], policy);
        }
        Some(FailureStep::End) => {
            phases::end_resumable(machine, Outcome::Failed, Reason::FixerFailed);
        }
        Some(_) if !any_done => retry_or_exhaust(machine, policy),
        Some(_) | None if parallel => combine(machine),
        Some(_) | None if has_queued(machine) => start_queued(machine, FixTrigger::Review, policy),
        Some(_) | None => fixed(machine, policy),
    }
}

fn has_queued(machine: &Loop) -> bool {
    matches!(&machine.stage, Stage::Fixing { fixes, .. } if fixes.iter().any(|fix| fix.state == FixState::Queued))
}

/// Starts another attempt for the failed fixes if the gate's limit allows one.
fn retry_or_exhaust(machine: &mut Loop, policy: &Policy) {
    let bound = phases::nearest_gate_policy(machine, policy).map(|gate_policy| gate_policy.gate.bound);
    if bound.is_some_and(|bound| !bound.allows_another_fix(machine.counters.fixes, machine.counters.granted.fixes)) {
        return phases::exhausted(machine, Reason::FixerFailed, policy);
    }
    count_fix(machine);
    requeue_failed(machine);
    start_queued(machine, FixTrigger::Incomplete, policy);
}

fn requeue_failed(machine: &mut Loop) {
    if let Stage::Fixing { fixes, .. } = &mut machine.stage {
        for fix in fixes.iter_mut().filter(|fix| matches!(fix.state, FixState::Failed { .. })) {
            fix.state = FixState::Queued;
        }
    }
}

/// Retries the failed fixes after a person's answer.
pub fn retry(machine: &mut Loop, policy: &Policy) {
    requeue_failed(machine);
    if has_queued(machine) { start_queued(machine, FixTrigger::Review, policy) } else { finish_fixes(machine, policy) }
}

fn combine(machine: &mut Loop) {
    let slot = machine.new_slot();
    if let Stage::Fixing { fixes, from, .. } = &machine.stage {
        machine.stage = Stage::Combining { slot, fixes: fixes.clone(), from: from.clone() };
    }
}

/// Parallel fixes were combined. Failed fixers get another attempt if the limit allows one.
pub fn combined(machine: &mut Loop, attempt: AttemptId, head: Head, policy: &Policy) {
    let Stage::Combining { fixes, .. } = &machine.stage else { return };
    let once_more = work::may_attempt(machine, policy);
    let stays = |index: &usize| !once_more || matches!(fixes[*index].state, FixState::Done { .. });
    let kept: Vec<_> = (0..fixes.len()).filter(stays).collect();
    overlapped(machine, attempt, &kept, head, policy);
}

/// Parallel fixes conflict: repeats those that could not be kept, one after the other.
pub fn overlapped(machine: &mut Loop, attempt: AttemptId, kept: &[usize], head: Head, policy: &Policy) {
    let Stage::Combining { slot, fixes, from } = &machine.stage else { return };
    if slot.attempt() != Some(attempt) {
        return;
    }
    let mut fixes = fixes.clone();
    for (index, fix) in fixes.iter_mut().enumerate() {
        fix.state = if kept.contains(&index) { FixState::Done { unmerged_commit: None } } else { FixState::Queued };
    }
    machine.stage = Stage::Fixing { fixes, order: FixOrder::Sequential, from: from.clone() };
    machine.head = head;
    machine.reset_losses();
    if has_queued(machine) { start_queued(machine, FixTrigger::Review, policy) } else { fixed(machine, policy) }
}

/// The fix is done. If it changed nothing, another review would find the same.
fn fixed(machine: &mut Loop, policy: &Policy) {
    let (Stage::Fixing { from, .. } | Stage::Combining { from, .. }) = &machine.stage else { return };
    let changed = *from != machine.head.tree;
    machine.counters.noop_fixes = if changed { 0 } else { machine.counters.noop_fixes + 1 };
    let bound = phases::current_gate_policy(machine, policy).and_then(|gate_policy| gate_policy.gate.max_noop_fixes);
    if bound.is_some_and(|bound| machine.counters.noop_fixes >= bound) {
        return phases::exhausted(machine, Reason::NoopFix, policy);
    }
    gate::review_again(machine, policy);
}

/// Resumes fixes: running and failed ones start again, finished ones stay done.
pub fn resume(machine: &mut Loop, stage: Stage, policy: &Policy) {
    machine.stage = stage;
    if let Stage::Fixing { fixes, .. } = &mut machine.stage {
        let stopped =
            |fix: &&mut Fix| matches!(fix.state, FixState::Assigned(AttemptSlot::Paused(_) | AttemptSlot::Running(_)));
        for fix in fixes.iter_mut().filter(stopped) {
            fix.state = FixState::Queued;
        }
    }
    retry(machine, policy);
}

/// Maximum number of parallel fixers.
const MAX_FIXERS: usize = 8;

/// Splits findings into groups with disjoint files, in the order given. A finding without a file in the repository
/// could touch any file, so with one such finding there is only one group. Groups beyond the maximum are merged into
/// the others.
pub fn independent_groups<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Vec<Vec<FindingId>> {
    let mut groups: Vec<(Option<&str>, Vec<FindingId>)> = Vec::new();
    let mut anywhere = false;
    for finding in findings {
        let file = finding.file.as_deref().filter(|file| is_repository_path(file));
        anywhere |= file.is_none();
        match groups.iter_mut().find(|(of, _)| *of == file) {
            Some((_, group)) => group.push(finding.id.clone()),
            None => groups.push((file, vec![finding.id.clone()])),
        }
    }
    let groups: Vec<_> = groups.into_iter().map(|(_, group)| group).collect();
    if anywhere { vec![groups.concat()] } else { limit_groups(groups) }
}

fn limit_groups(mut groups: Vec<Vec<FindingId>>) -> Vec<Vec<FindingId>> {
    let further = groups.split_off(groups.len().min(MAX_FIXERS));
    for (index, group) in further.into_iter().enumerate() {
        groups[index % MAX_FIXERS].extend(group);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::Severity;

    fn finding(id: &str, file: Option<&str>) -> Finding {
        Finding {
            id: id.into(),
            sources: Vec::new(),
            kind: "bug".into(),
            severity: Severity::Critical,
            file: file.map(str::to_owned),
            line: None,
            description: String::new(),
            requirement: None,
            suggestion: None,
        }
    }

    fn groups(findings: &[Finding]) -> String {
        let group = |group: Vec<FindingId>| group.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        independent_groups(findings).into_iter().map(group).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn findings_in_three_files_are_three_groups_and_two_in_one_file_are_one() {
        let findings = [
            finding("a", Some("x.rs")),
            finding("b", Some("y.rs")),
            finding("c", Some("x.rs")),
            finding("d", Some("z.rs")),
        ];
        assert_eq!(groups(&findings), "a c | b | d");
    }

    #[test]
    fn findings_in_many_files_are_shared_by_eight() {
        let file = |number: usize| finding(&number.to_string(), Some(&format!("{number}.rs")));
        let findings: Vec<_> = (0..11).map(file).collect();
        assert_eq!(groups(&findings), "0 8 | 1 9 | 2 10 | 3 | 4 | 5 | 6 | 7");
    }

    #[test]
    fn a_finding_without_a_file_is_independent_of_nothing() {
        let findings = [finding("a", Some("x.rs")), finding("b", None), finding("c", Some("y.rs"))];
        assert_eq!(groups(&findings), "a b c");
        let findings = [finding("a", Some("x.rs")), finding("b", Some("/etc/passwd"))];
        assert_eq!(groups(&findings), "a b");
    }
}
