//! Effects of one loop on the others: due checkpoints, and the order of the landing queue.

use signoff_core::group::{LoopStatus, Run, RunEffect, RunEvent, RunPolicy, step};
use signoff_core::ids::LoopId;
use signoff_core::machine::Outcome;
use signoff_core::workflow::preset;

fn policy() -> RunPolicy {
    RunPolicy { has_planning: false, ..RunPolicy::new(&preset("loops").expect("shipped"), 4) }
}

fn apply_all(run: Run, events: Vec<RunEvent>) -> (Run, Vec<RunEffect>) {
    let mut last = (run, Vec::new());
    for event in events {
        last = step(last.0, event, &policy());
    }
    last
}

fn moved(loop_id: &str, status: LoopStatus) -> RunEvent {
    RunEvent::LoopStatusChanged { loop_id: loop_id.into(), status }
}

fn all(status: &LoopStatus) -> Vec<RunEvent> {
    ["a", "b", "c"].map(|loop_id| moved(loop_id, status.clone())).into()
}

fn working() -> Run {
    let group: Vec<LoopId> = ["a", "b", "c"].map(LoopId::from).into();
    let begin = vec![RunEvent::Started, RunEvent::GroupsPlanned { groups: vec![group] }];
    apply_all(apply_all(Run::default(), begin).0, all(&LoopStatus::Active)).0
}

fn spent(attempts: [u32; 3]) -> RunEvent {
    let loops = ["a", "b", "c"].map(LoopId::from).into_iter();
    RunEvent::AttemptSpent { since_checkpoint: loops.zip(attempts).collect() }
}

#[test]
fn any_ended_attempt_starts_a_due_checkpoint_review() {
    let (run, effects) = apply_all(working(), vec![spent([4, 1, 2])]);
    assert_eq!(effects, [], "medium effort looks every five attempts");
    let (run, effects) = apply_all(run, vec![spent([5, 1, 2])]);
    let loops: Vec<LoopId> = ["a", "b", "c"].map(LoopId::from).into();
    assert_eq!(effects, [RunEffect::ReviewCheckpoint { loops }], "all active loops are looked at");
    let (_, effects) = apply_all(run, vec![spent([5, 5, 5])]);
    assert_eq!(effects, [], "one round at a time");
}

#[test]
fn a_loop_that_is_sent_back_does_not_block_the_queue() {
    let (run, effects) = apply_all(working(), all(&LoopStatus::Ready));
    assert_eq!(effects, [RunEffect::GrantLanding { loop_id: "a".into() }]);
    let (run, effects) = apply_all(run, vec![moved("a", LoopStatus::Landing), moved("a", LoopStatus::Active)]);
    assert_eq!(effects, [RunEffect::GrantLanding { loop_id: "b".into() }]);
    let landed = || LoopStatus::Ended(Outcome::Approved { commit: "c1".into() });
    let (run, effects) = apply_all(run, vec![moved("b", LoopStatus::Landing), moved("b", landed())]);
    assert_eq!(effects, [RunEffect::GrantLanding { loop_id: "c".into() }]);
    let (run, effects) = apply_all(run, vec![moved("c", landed()), moved("a", LoopStatus::Ready)]);
    assert_eq!(effects, [RunEffect::GrantLanding { loop_id: "a".into() }]);
    let (_, effects) = apply_all(run, vec![moved("a", landed())]);
    assert_eq!(effects, [RunEffect::FinalReview]);
}
