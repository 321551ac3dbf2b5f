//! Laws that hold in every state a preset can reach under small bounds.

use std::collections::BTreeSet;

use signoff_core::ids::AttemptId;
use signoff_core::ledger::State;
use signoff_core::machine::{
    Effect, Event, FinalWord, Job, JobKind, Loop, Outcome, Policy, Reason, Slot, Stage, outstanding, replay,
    step,
};
use signoff_core::review::Bar;
use signoff_core::view::{Status, TaskState};
use signoff_core::workflow::{Phase, PhaseKind, Role, new_project};

use crate::explore::{Cost, Explored, Node, Patience, Taken, explore, last_panel, outcome};
use crate::say;

const fn patience(disturbances: u8, repeats: u8) -> Patience {
    Patience { disturbances, repeats }
}

#[test]
fn task_keeps_the_laws() {
    hold(&say::bounded(say::reviewed("task"), 4, 2), patience(2, 1), 20_000);
}

#[test]
fn slots_keep_the_laws() {
    hold(&say::small("slots"), patience(1, 1), 20_000);
}

#[test]
fn plan_keeps_the_laws() {
    hold(&say::small("plan"), patience(1, 0), 20_000);
    hold(&say::bounded(say::reviewed("plan"), 2, 1), patience(0, 1), 1_000);
}

#[test]
fn plan_keeps_the_laws_when_nobody_can_be_asked() {
    let mut policy = say::small("plan");
    policy.no_ask = true;
    hold(&policy, patience(0, 1), 1_000);
}

#[test]
fn loops_keep_the_laws() {
    hold(&say::small("loops"), patience(1, 0), 1_000);
    hold(&say::small("loops"), patience(0, 1), 20_000);
}

#[test]
fn phases_keep_the_laws() {
    hold(&say::small("phases"), patience(0, 0), 50_000);
}

#[test]
fn a_new_project_keeps_the_laws() {
    hold(&say::bounded(Policy::of(new_project().expect("shipped")), 3, 1), patience(0, 0), 1_000);
}

fn hold(policy: &Policy, patience: Patience, at_least: usize) {
    let explored = explore(policy, patience, |step| {
        misfits_change_nothing(step);
        done_is_final(step);
        findings_stay_open_until_a_judgement_closes_them(step);
        if step.after != &step.before.state {
            nothing_is_left_running(step);
            wishes_are_what_a_crash_would_resume(step, policy);
            attempts_are_never_reused(step);
            bounds_hold(step, policy);
        }
    });
    for (index, node) in explored.nodes.iter().enumerate() {
        let why = || format!("after {:#?}", explored.path(index));
        no_state_is_stuck(node, policy, &why);
        approval_rests_on_reviews(node, policy, &why);
        nothing_approved_has_a_blocking_finding(&node.state, policy, &why);
        an_empty_diff_is_never_judged_nor_landed(node, policy, &why);
        nothing_is_fixed_before_a_review_is_read(node, policy, &why);
        what_is_approved_and_waits_says_so(&node.state, &why);
    }
    every_repetition_ends(&explored);
    replaying_gives_the_same_state(&explored, policy);
    println!("{}: {} states, {} steps", policy.workflow.name, explored.nodes.len(), explored.steps);
    assert!(explored.nodes.len() >= at_least, "only {} states", explored.nodes.len());
}

fn done_is_final(step: &Taken) {
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

fn misfits_change_nothing(step: &Taken) {
    if step.cost == Cost::Misfit {
        assert_eq!(&step.before.state, step.after, "{:?} does not fit here", step.event);
        assert!(step.effects.is_empty());
    }
}

fn nothing_is_left_running(step: &Taken) {
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

fn wishes_are_what_a_crash_would_resume(step: &Taken, policy: &Policy) {
    let resumed = outstanding(step.after, policy);
    for effect in step.effects {
        let asks =
            matches!(effect, Effect::Spawn(_) | Effect::Ask(_) | Effect::Wait { .. } | Effect::AwaitLanding);
        assert!(!asks || resumed.contains(effect), "a crash would forget {effect:?}");
    }
    let before = outstanding(&step.before.state, policy);
    for wish in resumed {
        let known = before.contains(&wish) || step.effects.contains(&wish);
        assert!(known, "{wish:?} is outstanding but was never asked for");
    }
}

fn attempts_are_never_reused(step: &Taken) {
    let newest = highest(&step.before.state);
    for attempt in running(step.after).difference(&running(&step.before.state)) {
        assert!(*attempt > newest, "{attempt} was used before");
    }
}

fn bounds_hold(step: &Taken, policy: &Policy) {
    let Loop { tally, at, .. } = step.after;
    let limits = &policy.workflow.limits;
    let counted = tally.iteration.saturating_sub(tally.uncounted);
    assert!(counted <= limits.max_attempts + tally.granted.attempts, "{tally:?}");
    assert!(at.pass <= limits.max_passes + tally.granted.passes);
    assert!(tally.conflicts <= limits.max_conflicts + tally.granted.conflicts);
    assert!(tally.losses <= limits.max_recoveries + 1);
    for one in &tally.limited {
        let asked = one.agents.get(&one.turn);
        assert!(asked.is_none_or(|agent| agent.times <= limits.max_rate_limits), "{tally:?}");
        assert!(one.gone <= limits.max_recoveries, "{tally:?}");
    }
    let judge = policy.workflow.phases.get(at.phase).and_then(|phase| phase.judge());
    if let Some(fixes) = judge.and_then(|judge| judge.gate.bound.fixes()) {
        assert!(tally.fixes <= fixes + tally.granted.fixes, "{tally:?} {at:?}");
    }
}

fn running(this: &Loop) -> BTreeSet<AttemptId> {
    this.slots().into_iter().filter_map(Slot::attempt).collect()
}

fn highest(this: &Loop) -> AttemptId {
    let value = serde_json::to_value(this).expect("a state is JSON");
    AttemptId(value["next_attempt"].as_u64().expect("a number") - 1)
}

fn no_state_is_stuck(node: &Node, policy: &Policy, why: &dyn Fn() -> String) {
    let fresh = node.state.stage == Stage::Queued && highest(&node.state) == AttemptId(0);
    let moves = !outstanding(&node.state, policy).is_empty();
    assert!(fresh || moves != node.state.is_done(), "stuck in {:?} {}", node.state.stage, why());
}

fn approval_rests_on_reviews(node: &Node, policy: &Policy, why: &dyn Fn() -> String) {
    let Some(Outcome::Approved { commit }) = outcome(&node.state) else { return };
    assert_eq!(*commit, node.state.head.commit, "an approval of another commit {}", why());
    assert_ne!(node.state.base.as_ref(), Some(&node.state.head.tree), "an approval of nothing {}", why());
    for reviewer in last_panel(policy) {
        let heard = node.approved.get(&reviewer);
        assert_eq!(heard, Some(commit), "approved without {reviewer}'s full review of {commit} {}", why());
    }
}

/// Only a review, a check, a landing, a failed attempt or a person closes a finding. Reviewers who were asked before the
/// finding came do not close it.
fn findings_stay_open_until_a_judgement_closes_them(step: &Taken) {
    let (before, after) = (&step.before.state, step.after);
    for entry in before.ledger.entries() {
        let id = &entry.finding.id;
        let now = after.ledger.get(id).unwrap_or_else(|| panic!("{id} is lost after {:?}", step.event));
        let closed = entry.state == State::Open && now.state != State::Open;
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
        let untold = step.before.late.get(id).is_some_and(|panel| *panel == before.tally.reviews);
        let panel = matches!(before.stage, Stage::Reviewing(_) | Stage::Waiting { .. });
        assert!(!(untold && panel), "{id} is closed by reviewers who were asked before it came");
    }
}

/// Of every gate and check, whatever pass and item it was found in. The merge queue's own findings are closed by
/// landing.
fn nothing_approved_has_a_blocking_finding(this: &Loop, policy: &Policy, why: &dyn Fn() -> String) {
    let Some(Outcome::Approved { .. }) = outcome(this) else { return };
    if this.checkpoint.is_some() {
        return;
    }
    for (phase, kind) in policy.workflow.phases.iter().map(|phase| &phase.kind).enumerate() {
        let bar = match kind {
            PhaseKind::Gate(judge) => judge.gate.fail_on,
            PhaseKind::Check(_) => Bar::Low,
            PhaseKind::Agent { .. } => continue,
        };
        let open: Vec<_> = this
            .ledger
            .open(bar)
            .filter(|entry| entry.seen.iter().any(|round| round.phase == phase))
            .map(|entry| &entry.finding.id)
            .collect();
        assert!(open.is_empty(), "approved with {open:?} open {}", why());
    }
}

fn an_empty_diff_is_never_judged_nor_landed(node: &Node, policy: &Policy, why: &dyn Fn() -> String) {
    let this = &node.state;
    let changes = this.base.as_ref() != Some(&this.head.tree);
    // A plan for the work is judged before there is any.
    let works = |phase: &Phase| matches!(phase.kind, PhaseKind::Agent { role: Role::Implement, .. });
    let begun = policy.workflow.phases.iter().take(this.at.phase).any(works);
    let judged = begun && matches!(this.stage, Stage::Reviewing(_));
    let lands = matches!(this.stage, Stage::Landing { .. } | Stage::AwaitingLanding { .. });
    assert!(changes || !judged && !lands, "nothing was changed in {:?} {}", this.stage, why());
}

fn nothing_is_fixed_before_a_review_is_read(node: &Node, policy: &Policy, why: &dyn Fn() -> String) {
    for wish in outstanding(&node.state, policy) {
        if let Effect::Spawn(Job { kind: JobKind::Fix { findings, unread, .. }, .. }) = wish {
            let asked_for = !findings.is_empty() && unread.is_empty() || node.state.tally.has_readable;
            assert!(asked_for, "a fix of unreadable reviews alone {}", why());
        }
    }
}

/// In its tables, in its state and in the prompts of others, whether its group is blocked or not.
fn what_is_approved_and_waits_says_so(this: &Loop, why: &dyn Fn() -> String) {
    let Stage::AwaitingLanding { outcome, .. } = &this.stage else { return };
    if !outcome.is_approval() || this.checkpoint.is_some() {
        return;
    }
    assert_eq!(this.final_verdict(), Some(FinalWord::Approved), "{}", why());
    assert_eq!(Status::for_others(this), Status::Completed, "{}", why());
    for blocked in [true, false] {
        assert_eq!(TaskState::of_loop(this, blocked), TaskState::Approved, "{}", why());
    }
}

/// A way back to a state that was there before could be gone forever.
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
    let known: Vec<_> = Reason::ALL.iter().map(crate::story::text).collect();
    assert_eq!(documented, known);
}
