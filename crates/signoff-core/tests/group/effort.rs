//! How often an effort looks: stories of the loops preset.

use signoff_core::group::{RunEvent, Standing};
use signoff_core::ids::{AttemptId, LoopId};
use signoff_core::machine::{Event, Hold, Loop, Policy, Slot, WorkReport, step};
use signoff_core::policy::Effort;
use signoff_core::workflow::preset;

use crate::drive::{Drive, Next, Told};
use crate::say;

fn policy(effort: Effort) -> Policy {
    Policy::of(preset("loops").expect("shipped").with_effort(effort))
}

fn running(this: &Loop) -> AttemptId {
    this.slots().into_iter().find_map(Slot::attempt).expect("an attempt runs")
}

fn incomplete(this: &Loop) -> Event {
    let report = WorkReport::Incomplete { head: say::head(this.tally.iteration) };
    Event::WorkEnded { attempt: running(this), report }
}

/// After which of twelve incomplete attempts a checkpoint review came.
fn reviewed_after(effort: Effort) -> Vec<u32> {
    let policy = policy(effort);
    let mut this = step(Loop::default(), Event::Started { head: say::head(0) }, &policy).0;
    let mut reviewed = Vec::new();
    for _ in 0..12 {
        let event = incomplete(&this);
        this = step(this, event, &policy).0;
        if this.holds().contains(&Hold::Checkpoint) {
            reviewed.push(this.tally.iteration);
            this = step(this, Event::CheckpointEnded { findings: Vec::new(), number: Some(1) }, &policy).0;
        }
    }
    reviewed
}

#[test]
fn each_effort_looks_as_often_as_it_says() {
    assert_eq!(reviewed_after(Effort::Low), Vec::<u32>::new());
    assert_eq!(reviewed_after(Effort::Medium), [5, 10]);
    assert_eq!(reviewed_after(Effort::High), [3, 6, 9, 12]);
    assert_eq!(reviewed_after(Effort::Max), (1..=12).collect::<Vec<_>>());
}

#[test]
fn one_that_is_due_has_all_reviewed_and_all_count_from_there() {
    let (a, b): (LoopId, LoopId) = ("a".into(), "b".into());
    let mut drive = Drive::new(policy(Effort::High), 2);
    drive.happen(Next::Run(RunEvent::Started));
    drive.happen(Next::Run(RunEvent::GroupsPlanned { groups: vec![vec![a.clone(), b.clone()]] }));
    let mut told = Vec::new();
    let mut happen = |drive: &mut Drive, next: Next| {
        drive.happen(next);
        let row = |id: &LoopId| {
            let tally = drive.loops.get(id).map(|this| this.tally.clone()).unwrap_or_default();
            let due = if drive.run.loops[id] == Standing::AtCheckpoint { ", due" } else { "" };
            format!("{id}: attempt {}, looked at {}{due}", tally.iteration, tally.last_checkpoint)
        };
        told.push(format!("{:32}{}", row(&a), row(&b)));
    };
    for id in [&a, &b] {
        happen(&mut drive, Next::Loop(id.clone(), Event::Started { head: say::head(0) }));
    }
    for id in [&b, &a, &a, &a] {
        let event = incomplete(&drive.loops[id]);
        happen(&mut drive, Next::Loop(id.clone(), event));
    }
    happen(&mut drive, Next::Checkpoint(b.clone(), Told::LoopFirst));
    happen(&mut drive, Next::Checkpoint(a.clone(), Told::RunFirst));
    insta::assert_snapshot!(told.join("\n"), @r"
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
