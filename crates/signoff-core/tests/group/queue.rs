//! What one loop's fate means for the others: checkpoints that are due elsewhere, and a landing queue that moves.

use signoff_core::group::{Run, RunEffect, RunEvent, RunPolicy, Standing, step};
use signoff_core::ids::LoopId;
use signoff_core::machine::Outcome;
use signoff_core::workflow::preset;

fn policy() -> RunPolicy {
    RunPolicy { before: false, ..RunPolicy::of(&preset("loops").expect("shipped"), 4) }
}

fn told(run: Run, events: Vec<RunEvent>) -> (Run, Vec<RunEffect>) {
    let mut last = (run, Vec::new());
    for event in events {
        last = step(last.0, event, &policy());
    }
    last
}

fn moved(loop_id: &str, standing: Standing) -> RunEvent {
    RunEvent::LoopMoved { loop_id: loop_id.into(), standing }
}

fn all(standing: &Standing) -> Vec<RunEvent> {
    ["a", "b", "c"].map(|loop_id| moved(loop_id, standing.clone())).into()
}

fn working() -> Run {
    let group: Vec<LoopId> = ["a", "b", "c"].map(LoopId::from).into();
    let begin = vec![RunEvent::Started, RunEvent::GroupsPlanned { groups: vec![group] }];
    told(told(Run::default(), begin).0, all(&Standing::Active)).0
}

fn spent(attempts: [u32; 3]) -> RunEvent {
    let loops = ["a", "b", "c"].map(LoopId::from).into_iter();
    RunEvent::AttemptSpent { since_checkpoint: loops.zip(attempts).collect() }
}

#[test]
fn an_attempt_that_ends_anywhere_finds_the_loop_that_is_due() {
    let (run, effects) = told(working(), vec![spent([4, 1, 2])]);
    assert_eq!(effects, [], "medium effort looks every five attempts");
    let (run, effects) = told(run, vec![spent([5, 1, 2])]);
    let loops: Vec<LoopId> = ["a", "b", "c"].map(LoopId::from).into();
    assert_eq!(effects, [RunEffect::ReviewCheckpoint { loops }], "all active loops are looked at");
    let (_, effects) = told(run, vec![spent([5, 5, 5])]);
    assert_eq!(effects, [], "one round at a time");
}

#[test]
fn who_is_sent_back_does_not_hold_up_the_queue() {
    let (run, effects) = told(working(), all(&Standing::Ready));
    assert_eq!(effects, [RunEffect::GrantLanding { loop_id: "a".into() }]);
    let (run, effects) = told(run, vec![moved("a", Standing::Landing), moved("a", Standing::Active)]);
    assert_eq!(effects, [RunEffect::GrantLanding { loop_id: "b".into() }]);
    let landed = || Standing::Ended(Outcome::Approved { commit: "c1".into() });
    let (run, effects) = told(run, vec![moved("b", Standing::Landing), moved("b", landed())]);
    assert_eq!(effects, [RunEffect::GrantLanding { loop_id: "c".into() }]);
    let (run, effects) = told(run, vec![moved("c", landed()), moved("a", Standing::Ready)]);
    assert_eq!(effects, [RunEffect::GrantLanding { loop_id: "a".into() }]);
    let (_, effects) = told(run, vec![moved("a", landed())]);
    assert_eq!(effects, [RunEffect::ReviewWhole]);
}
