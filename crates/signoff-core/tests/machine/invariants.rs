//! Invariants of every reachable state of a preset under small bounds.

use std::collections::BTreeSet;

use signoff_core::ids::AttemptId;
use signoff_core::ledger::FindingState;
use signoff_core::machine::{
    Effect, Event, FinalVerdict, Job, JobKind, Loop, Outcome, Policy, Reason, Stage, outstanding, replay, step,
};
use signoff_core::review::FailThreshold;
use signoff_core::view::{TaskState, TaskStatus};
use signoff_core::workflow::{Phase, PhaseKind, Role, new_project};
use strum::VariantArray as _;

use crate::machine::builders;
use crate::machine::explore::{Cost, Explored, LoopStep, Node, PathBounds, explore, last_panel, outcome, running};

const fn bounds(disturbances: u8, repeats: u8) -> PathBounds {
    PathBounds { disturbances, repeats }
}

#[test]
fn task_keeps_the_invariants() {
    check_invariants(&builders::bounded(builders::reviewed("task"), 4, 2), bounds(2, 1), 20_000);
}

#[test]
fn slots_keep_the_invariants() {
    check_invariants(&builders::small("slots"), bounds(1, 1), 20_000);
}

#[test]
fn a_disturbed_plan_keeps_the_invariants() {
    check_invariants(&builders::small("plan"), bounds(1, 0), 20_000);
}

#[test]
fn a_repeated_plan_keeps_the_invariants() {
    check_invariants(&builders::bounded(builders::reviewed("plan"), 2, 1), bounds(0, 1), 1_000);
}

#[test]
fn plan_keeps_the_invariants_without_a_person_to_ask() {
    let mut policy = builders::small("plan");
    policy.no_ask = true;
    check_invariants(&policy, bounds(0, 1), 1_000);
}

#[test]
fn disturbed_loops_keep_the_invariants() {
    check_invariants(&builders::small("loops"), bounds(1, 0), 1_000);
}

#[test]
fn repeated_loops_keep_the_invariants() {
    check_invariants(&builders::small("loops"), bounds(0, 1), 20_000);
}

#[test]
fn phases_keep_the_invariants() {
    check_invariants(&builders::small("phases"), bounds(0, 0), 50_000);
}

#[test]
fn a_new_project_keeps_the_invariants() {
    check_invariants(&builders::bounded(Policy::new(new_project().expect("shipped")), 3, 1), bounds(0, 0), 1_000);
}

/// The same invariants with one more disturbance.
mod deeper {
    use super::*;

    #[test]
    #[ignore = "takes minutes: scripts/soak"]
    fn task_keeps_the_invariants() {
        check_invariants(&builders::bounded(builders::reviewed("task"), 4, 2), bounds(3, 1), 20_000);
    }

    #[test]
    #[ignore = "takes minutes: scripts/soak"]
    fn slots_keep_the_invariants() {
        check_invariants(&builders::small("slots"), bounds(2, 1), 50_000);
    }

    #[test]
    #[ignore = "takes minutes: scripts/soak"]
    fn a_new_project_keeps_the_invariants() {
        check_invariants(&builders::bounded(Policy::new(new_project().expect("shipped")), 3, 1), bounds(1, 0), 5_000);
    }
}

fn check_invariants(policy: &Policy, bounds: PathBounds, at_least: usize) {
    let explored = explore(policy, bounds, |step| {
        invalid_events_change_nothing(step);
        done_is_final(step);
        findings_stay_open_until_a_decision_closes_them(step);
        if step.after != &step.before.state {
            nothing_is_left_running(step);
            effects_equal_what_a_restart_resumes(step, policy);
            attempts_are_never_reused(step);
            bounds_hold(step, policy);
        }
    });
    for (index, node) in explored.nodes.iter().enumerate() {
        let why = || format!("after {:#?}", explored.path(index));
        no_state_is_stuck(node, policy, &why);
        approval_rests_on_reviews(node, policy, &why);
        nothing_approved_has_a_blocking_finding(&node.state, policy, &why);
        an_empty_diff_is_never_reviewed_nor_landed(node, policy, &why);
        nothing_is_fixed_before_a_review_is_read(node, policy, &why);
        an_approved_loop_that_waits_to_land_is_shown_as_approved(&node.state, &why);
    }
    every_repetition_ends(&explored);
    replaying_gives_the_same_state(&explored, policy);
    println!("{}: {} states, {} steps", policy.workflow.name, explored.nodes.len(), explored.steps);
    assert!(explored.nodes.len() >= at_least, "only {} states", explored.nodes.len());
}

fn done_is_final(step: &LoopStep) {
    let landed_by_person = matches!(step.event, Event::LandingGranted);
    let called_off = matches!(step.event, Event::Cancelled { .. }) && step.before.state.can_be_cancelled();
    let by_person = called_off
        || landed_by_person
        || matches!(step.event, Event::PersonRetried { .. } | Event::PersonEdited { .. });
    if step.before.state.is_done() && !by_person {
        // A checkpoint review still records its findings.
        let mut before = step.before.state.clone();
        if let Event::CheckpointEnded { .. } = step.event {
            before.ledger.clone_from(&step.after.ledger);
        }
        assert_eq!(&before, step.after, "{:?} changed an ended loop", step.event);
        assert!(step.effects.is_empty(), "{:?} made an ended loop ask for {:?}", step.event, step.effects);
    }
}

fn invalid_events_change_nothing(step: &LoopStep) {
    if step.cost == Cost::Invalid {
        assert_eq!(&step.before.state, step.after, "{:?} does not fit here", step.event);
        assert!(step.effects.is_empty());
    }
}

fn nothing_is_left_running(step: &LoopStep) {
    let still = running(step.after);
    let killed: BTreeSet<_> = step
        .effects
        .iter()
        .filter_map(|effect| if let Effect::Kill { attempt } = effect { Some(*attempt) } else { None })
        .collect();
    for attempt in running(&step.before.state) {
        let ended = step.event.ends_attempt() == Some(attempt);
        assert!(
            still.contains(&attempt) || ended || killed.contains(&attempt),
            "{attempt} goes on spending after {:?}",
            step.event
        );
    }
    if step.after.is_done() {
        assert!(still.is_empty(), "something runs after the end");
    }
}

fn effects_equal_what_a_restart_resumes(step: &LoopStep, policy: &Policy) {
    let resumed = outstanding(step.after, policy);
    for effect in step.effects {
        let asks = matches!(effect, Effect::Spawn(_) | Effect::Ask(_) | Effect::Wait { .. } | Effect::AwaitLanding);
        assert!(!asks || resumed.contains(effect), "a crash would forget {effect:?}");
    }
    for effect in resumed {
        let known = step.outstanding.contains(&effect) || step.effects.contains(&effect);
        assert!(known, "{effect:?} is outstanding but was never requested");
    }
}

fn attempts_are_never_reused(step: &LoopStep) {
    for attempt in running(step.after).difference(&running(&step.before.state)) {
        assert!(*attempt > step.before.newest, "{attempt} was used before");
    }
}

fn bounds_hold(step: &LoopStep, policy: &Policy) {
    let Loop { counters, position: at, .. } = step.after;
    let limits = &policy.workflow.limits;
    let counted = counters.attempts.saturating_sub(counters.uncounted);
    assert!(counted <= limits.max_attempts + counters.granted.attempts, "{counters:?}");
    assert!(at.pass <= limits.max_passes + counters.granted.passes);
    assert!(counters.conflicts <= limits.max_conflicts + counters.granted.conflicts);
    assert!(counters.losses <= limits.max_recoveries + 1);
    for limited in &counters.limited {
        let agent = limited.agents.get(&limited.agent_index);
        assert!(agent.is_none_or(|agent| agent.times <= limits.max_rate_limits), "{counters:?}");
        assert!(limited.lost_sessions <= limits.max_recoveries, "{counters:?}");
    }
    let gate_policy = policy.workflow.phases.get(at.phase).and_then(|phase| phase.policy());
    if let Some(fixes) = gate_policy.and_then(|gate_policy| gate_policy.gate.bound.fixes()) {
        assert!(counters.fixes <= fixes + counters.granted.fixes, "{counters:?} {at:?}");
    }
}

fn no_state_is_stuck(node: &Node, policy: &Policy, why: &dyn Fn() -> String) {
    let fresh = node.state.stage == Stage::Queued && node.newest == AttemptId(0);
    let moves = !outstanding(&node.state, policy).is_empty();
    assert!(fresh || moves != node.state.is_done(), "stuck in {:?} {}", node.state.stage, why());
}

fn approval_rests_on_reviews(node: &Node, policy: &Policy, why: &dyn Fn() -> String) {
    let Some(Outcome::Approved { commit }) = outcome(&node.state) else { return };
    assert_eq!(*commit, node.state.head.commit, "an approval of another commit {}", why());
    assert_ne!(node.state.base.as_ref(), Some(&node.state.head.tree), "an approval of nothing {}", why());
    for reviewer in last_panel(policy) {
        let approved = node.approved.get(&reviewer);
        assert_eq!(approved, Some(commit), "approved without {reviewer}'s full review of {commit} {}", why());
    }
}

/// Only a review, a check, a landing, a failed attempt or a person closes a finding. Reviewers who started before the
/// finding arrived do not close it.
fn findings_stay_open_until_a_decision_closes_them(step: &LoopStep) {
    let (before, after) = (&step.before.state, step.after);
    for entry in before.ledger.entries() {
        let id = &entry.finding.id;
        let now = after.ledger.get(id).unwrap_or_else(|| panic!("{id} is lost after {:?}", step.event));
        let closed = entry.state == FindingState::Open && now.state != FindingState::Open;
        if !closed {
            continue;
        }
        let judged = matches!(
            step.event,
            Event::ReviewArrived { .. }
                | Event::CheckEnded { .. }
                | Event::LandingEnded { .. }
                | Event::AttemptFailed { .. }
                | Event::PersonAnswered { .. }
                | Event::FindingDecided { .. }
        );
        assert!(judged, "{id} is closed by {:?}", step.event);
        let arrived_late = step.before.late.get(id).is_some_and(|panel| *panel == before.counters.reviews);
        let panel = matches!(before.stage, Stage::Reviewing(_) | Stage::Waiting { .. });
        assert!(!(arrived_late && panel), "{id} is closed by reviewers that started before it arrived");
    }
}

/// Applies to every gate and check, in every pass and item. Landing closes the findings of the merge queue.
fn nothing_approved_has_a_blocking_finding(machine: &Loop, policy: &Policy, why: &dyn Fn() -> String) {
    let Some(Outcome::Approved { .. }) = outcome(machine) else { return };
    if machine.checkpoint.is_some() {
        return;
    }
    for (phase, kind) in policy.workflow.phases.iter().map(|phase| &phase.kind).enumerate() {
        let threshold = match kind {
            PhaseKind::Gate(gate_policy) => gate_policy.gate.fail_on,
            PhaseKind::Check(_) => FailThreshold::Low,
            PhaseKind::Agent { .. } => continue,
        };
        let open: Vec<_> = machine
            .ledger
            .open(threshold)
            .filter(|entry| entry.seen.iter().any(|round| round.phase == phase))
            .map(|entry| &entry.finding.id)
            .collect();
        assert!(open.is_empty(), "approved with {open:?} open {}", why());
    }
}

fn an_empty_diff_is_never_reviewed_nor_landed(node: &Node, policy: &Policy, why: &dyn Fn() -> String) {
    let machine = &node.state;
    let changes = machine.base.as_ref() != Some(&machine.head.tree);
    // A plan is reviewed before there is any work.
    let works = |phase: &Phase| matches!(phase.kind, PhaseKind::Agent { role: Role::Implement, .. });
    let begun = policy.workflow.phases.iter().take(machine.position.phase).any(works);
    let judged = begun && matches!(machine.stage, Stage::Reviewing(_));
    let lands = matches!(machine.stage, Stage::Landing { .. } | Stage::AwaitingLanding { .. });
    assert!(changes || !judged && !lands, "nothing was changed in {:?} {}", machine.stage, why());
}

fn nothing_is_fixed_before_a_review_is_read(node: &Node, policy: &Policy, why: &dyn Fn() -> String) {
    for effect in outstanding(&node.state, policy) {
        if let Effect::Spawn(Job { kind: JobKind::Fix { findings, unparsed_reviewers, .. }, .. }) = effect {
            let asked_for = !findings.is_empty() && unparsed_reviewers.is_empty() || node.state.counters.has_readable;
            assert!(asked_for, "a fix of unreadable reviews alone {}", why());
        }
    }
}

/// In tables, in its state and in the prompts of other loops, whether or not its group is blocked.
fn an_approved_loop_that_waits_to_land_is_shown_as_approved(machine: &Loop, why: &dyn Fn() -> String) {
    let Stage::AwaitingLanding { outcome, .. } = &machine.stage else { return };
    if !outcome.is_approval() || machine.checkpoint.is_some() {
        return;
    }
    assert_eq!(machine.final_verdict(), Some(FinalVerdict::Approved), "{}", why());
    assert_eq!(TaskStatus::for_other_loops(machine), TaskStatus::Completed, "{}", why());
    for blocked in [true, false] {
        assert_eq!(TaskState::for_loop(machine, blocked), TaskState::Approved, "{}", why());
    }
}

/// A cycle in the graph of states could repeat forever.
fn every_repetition_ends(explored: &Explored) {
    let mut incoming = vec![0usize; explored.nodes.len()];
    let mut next = vec![Vec::new(); explored.nodes.len()];
    for (from, to) in &explored.edges {
        incoming[*to] += 1;
        next[*from].push(*to);
    }
    let mut free: Vec<_> = (0..incoming.len()).filter(|index| incoming[*index] == 0).collect();
    let mut sorted = 0;
    while let Some(index) = free.pop() {
        sorted += 1;
        for target in &next[index] {
            incoming[*target] -= 1;
            if incoming[*target] == 0 {
                free.push(*target);
            }
        }
    }
    let looping = (0..incoming.len()).find(|index| incoming[*index] > 0);
    assert_eq!(
        sorted,
        explored.nodes.len(),
        "an endless repetition: {:#?}",
        looping.map(|index| (explored.path(index), &explored.nodes[index].state))
    );
}

fn replaying_gives_the_same_state(explored: &Explored, policy: &Policy) {
    for index in (0..explored.nodes.len()).step_by(97) {
        let events = explored.path(index);
        let mut stepped = Loop::default();
        for event in &events {
            stepped = step(stepped, event.clone(), policy).0;
        }
        assert_eq!(replay(events, policy), explored.nodes[index].state);
        assert_eq!(stepped, explored.nodes[index].state);
    }
}

#[test]
fn every_reason_is_documented() {
    let documented: Vec<_> = include_str!("../../../../docs/guide/src/reference/reasons.md")
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(code, _)| code)
        .collect();
    let known: Vec<_> = Reason::VARIANTS.iter().map(crate::machine::story::text).collect();
    assert_eq!(documented, known);
}
