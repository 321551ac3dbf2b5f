//! How often each effort level has a checkpoint review in the loops preset.

use signoff_core::group::{LoopStatus, RunEvent};
use signoff_core::ids::{AttemptId, LoopId};
use signoff_core::machine::{AttemptSlot, Event, Loop, PauseReason, Policy, WorkReport, step};
use signoff_core::policy::Effort;
use signoff_core::workflow::preset;

use crate::group::builders;
use crate::group::drive::{Drive, EventOrder, Next};

fn policy(effort: Effort) -> Policy {
    Policy::new(preset("loops").expect("shipped").with_effort(effort))
}

fn running(machine: &Loop) -> AttemptId {
    machine.slots().into_iter().find_map(AttemptSlot::attempt).expect("an attempt runs")
}

fn incomplete(machine: &Loop) -> Event {
    let report = WorkReport::Incomplete { head: builders::head(machine.counters.attempts) };
    Event::WorkEnded { attempt: running(machine), report }
}

/// After which of twelve incomplete attempts a checkpoint review came.
fn reviewed_after(effort: Effort) -> Vec<u32> {
    let policy = policy(effort);
    let mut machine = step(Loop::default(), Event::Started { head: builders::head(0) }, &policy).0;
    let mut reviewed = Vec::new();
    for _ in 0..12 {
        let event = incomplete(&machine);
        machine = step(machine, event, &policy).0;
        if machine.pause_reasons().contains(&PauseReason::Checkpoint) {
            reviewed.push(machine.counters.attempts);
            machine = step(machine, Event::CheckpointEnded { findings: Vec::new(), number: Some(1) }, &policy).0;
        }
    }
    reviewed
}

#[test]
fn each_effort_has_its_checkpoint_interval() {
    assert_eq!(reviewed_after(Effort::Low), Vec::<u32>::new());
    assert_eq!(reviewed_after(Effort::Medium), [5, 10]);
    assert_eq!(reviewed_after(Effort::High), [3, 6, 9, 12]);
    assert_eq!(reviewed_after(Effort::Max), (1..=12).collect::<Vec<_>>());
}

#[test]
fn a_due_loop_has_all_loops_reviewed_and_resets_their_intervals() {
    let (a, b): (LoopId, LoopId) = ("a".into(), "b".into());
    let mut drive = Drive::new(policy(Effort::High), 2);
    drive.happen(Next::Run(RunEvent::Started));
    drive.happen(Next::Run(RunEvent::GroupsPlanned { groups: vec![vec![a.clone(), b.clone()]] }));
    let mut rows = Vec::new();
    let mut happen = |drive: &mut Drive, next: Next| {
        drive.happen(next);
        let row = |id: &LoopId| {
            let counters = drive.loops.get(id).map(|machine| machine.counters.clone()).unwrap_or_default();
            let due = if drive.run.loops[id] == LoopStatus::AtCheckpoint { ", due" } else { "" };
            format!("{id}: attempt {}, looked at {}{due}", counters.attempts, counters.last_checkpoint)
        };
        rows.push(format!("{:32}{}", row(&a), row(&b)));
    };
    for id in [&a, &b] {
        happen(&mut drive, Next::Loop(id.clone(), Event::Started { head: builders::head(0) }));
    }
    for id in [&b, &a, &a, &a] {
        let event = incomplete(&drive.loops[id]);
        happen(&mut drive, Next::Loop(id.clone(), event));
    }
    happen(&mut drive, Next::Checkpoint(b.clone(), EventOrder::LoopFirst));
    happen(&mut drive, Next::Checkpoint(a.clone(), EventOrder::RunFirst));
    insta::assert_snapshot!(rows.join("\n"), @r"
        a: attempt 1, looked at 0       b: attempt 0, looked at 0
        a: attempt 1, looked at 0       b: attempt 1, looked at 0
        a: attempt 1, looked at 0       b: attempt 2, looked at 0
        a: attempt 2, looked at 0       b: attempt 2, looked at 0
        a: attempt 3, looked at 0       b: attempt 2, looked at 0
        a: attempt 3, looked at 0, due  b: attempt 2, looked at 0
        a: attempt 3, looked at 0, due  b: attempt 2, looked at 2
        a: attempt 4, looked at 3       b: attempt 2, looked at 2
    ");
}
