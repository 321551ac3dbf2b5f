//! Invariants of every reachable state of a run.

use signoff_core::group::{
    LoopStatus, Picking, Run, RunEffect, RunEvent, RunOutcome, RunPolicy, RunStage, TaskSource, outstanding, replay,
    step,
};
use signoff_core::ids::LoopId;
use signoff_core::machine::Outcome;
use signoff_core::workflow::{Landing, Scheduling};

use crate::group::explore::{Explored, Node, RunScenario, RunStep, approved, explore, slots};

fn scenario(arrangement: Scheduling, landing: Landing, jobs: usize) -> RunScenario {
    let policy = RunPolicy {
        scheduling: arrangement,
        landing,
        jobs,
        checkpoint_interval: None,
        keep_going: false,
        task_source: TaskSource::Queue,
        flags: Box::default(),
        stop_marker: false,
        has_planning: false,
        has_final_review: false,
        onto_default: false,
    };
    RunScenario { policy, plan: Vec::new(), repeats: 1, checkpoints: false, available_tasks: 3 }
}

fn plan(text: &str) -> Vec<Vec<LoopId>> {
    let group = |group: &str| group.split_whitespace().map(LoopId::from).collect();
    text.split('|').map(group).collect()
}

#[test]
fn queues_keep_the_invariants() {
    for landing in [Landing::None, Landing::Each, Landing::Group] {
        for jobs in [1, 2] {
            let scenario = scenario(Scheduling::Queue, landing, jobs);
            check_invariants(&RunScenario { plan: plan("a b c"), ..scenario.clone() });
            check_invariants(&RunScenario { plan: plan("a | b"), ..scenario.clone() });
            check_invariants(&RunScenario { plan: plan(""), ..scenario });
        }
    }
}

#[test]
fn slots_keep_the_invariants() {
    for (jobs, keep_going) in [(1, false), (1, true), (2, false), (2, true)] {
        for landing in [Landing::Each, Landing::Group] {
            let mut scenario = scenario(Scheduling::Slots, landing, jobs);
            scenario.policy.keep_going = keep_going;
            check_invariants(&scenario);
            scenario.policy.has_final_review = true;
            scenario.policy.onto_default = true;
            scenario.repeats = 0;
            check_invariants(&scenario);
        }
    }
}

#[test]
fn slots_that_land_on_the_default_branch_keep_the_invariants() {
    let mut scenario = scenario(Scheduling::Slots, Landing::Each, 1);
    scenario.policy.keep_going = true;
    scenario.policy.onto_default = true;
    check_invariants(&RunScenario { repeats: 0, ..scenario });
}

#[test]
fn slots_of_a_tracker_keep_the_invariants() {
    for (jobs, keep_going) in [(1, true), (2, false)] {
        let mut scenario = scenario(Scheduling::Slots, Landing::Each, jobs);
        scenario.policy.task_source = TaskSource::Program { name: "bd".to_owned() };
        scenario.policy.keep_going = keep_going;
        check_invariants(&RunScenario { available_tasks: 2, ..scenario });
    }
}

#[test]
fn a_tracker_task_is_closed_when_its_loop_is_approved() {
    let mut policy = scenario(Scheduling::Slots, Landing::None, 2).policy;
    policy.task_source = TaskSource::Program { name: "bd".to_owned() };
    let moved = |id: &str, status| RunEvent::LoopStatusChanged { loop_id: id.into(), status };
    let events = [
        RunEvent::Started,
        RunEvent::TaskPicked { loop_id: "a".into() },
        RunEvent::TaskPicked { loop_id: "b".into() },
        moved("a", LoopStatus::Active),
        moved("b", LoopStatus::Active),
        moved("a", LoopStatus::Ended(Outcome::Failed)),
        moved("b", LoopStatus::Ended(approved())),
    ];
    let run = replay(events, &policy);
    assert_eq!(outstanding(&run), [RunEffect::CloseTask { loop_id: "b".into() }]);
    let closed = |id: &str| RunEvent::TaskClosed { loop_id: id.into() };
    let (run, effects) = step(run, closed("b"), &policy);
    assert_eq!(effects, [RunEffect::Finish(RunOutcome::Failed)], "the run ends after the tracker is updated");
    let reopened = replay_on(run, [moved("a", LoopStatus::Active), moved("a", LoopStatus::Ended(approved()))], &policy);
    assert_eq!(outstanding(&reopened), [RunEffect::CloseTask { loop_id: "a".into() }]);
    assert_eq!(outstanding(&step(reopened, closed("a"), &policy).0), []);
}

fn replay_on(run: Run, events: impl IntoIterator<Item = RunEvent>, policy: &RunPolicy) -> Run {
    events.into_iter().fold(run, |run, event| step(run, event, policy).0)
}

#[test]
fn a_closed_task_makes_others_ready() {
    let mut policy = scenario(Scheduling::Slots, Landing::None, 1).policy;
    policy.task_source = TaskSource::Program { name: "bd".to_owned() };
    let events = [
        RunEvent::Started,
        RunEvent::TaskPicked { loop_id: "a".into() },
        RunEvent::LoopStatusChanged { loop_id: "a".into(), status: LoopStatus::Ended(approved()) },
        RunEvent::NothingToPick,
    ];
    let run = replay(events, &policy);
    assert_eq!((run.picks, run.picking), (0, Picking::SourceEmpty));
    let run = step(run, RunEvent::TaskClosed { loop_id: "a".into() }, &policy).0;
    assert_eq!((run.picks, run.picking), (1, Picking::Open));
}

#[test]
fn slots_with_a_plan_keep_the_invariants() {
    let mut scenario = scenario(Scheduling::Slots, Landing::None, 2);
    scenario.policy.has_planning = true;
    check_invariants(&RunScenario { plan: plan("a | b"), repeats: 0, available_tasks: 1, ..scenario });
}

#[test]
fn chains_keep_the_invariants() {
    for (jobs, after) in [(1, false), (2, true)] {
        let mut scenario = scenario(Scheduling::Chain, Landing::None, jobs);
        scenario.policy.has_final_review = after;
        scenario.repeats = 2;
        check_invariants(&RunScenario { plan: plan("a | b | c"), ..scenario.clone() });
        check_invariants(&RunScenario { plan: plan("a b c"), ..scenario.clone() });
        scenario.policy.landing = Landing::Group;
        check_invariants(&RunScenario { plan: plan("a | b"), ..scenario });
    }
}

#[test]
fn groups_keep_the_invariants() {
    for (jobs, after) in [(1, true), (2, false), (2, true)] {
        let mut scenario = scenario(Scheduling::Groups, Landing::Group, jobs);
        scenario.policy.has_final_review = after;
        scenario.policy.has_planning = true;
        check_invariants(&RunScenario { plan: plan("a b | c"), repeats: 2, ..scenario.clone() });
        check_invariants(&RunScenario { plan: plan("a b | c | d"), ..scenario.clone() });
        check_invariants(&RunScenario { plan: plan("| a | | b"), ..scenario.clone() });
        check_invariants(&RunScenario { plan: plan("a b c d"), repeats: 0, ..scenario.clone() });
        check_invariants(&RunScenario { plan: plan("a b"), checkpoints: true, repeats: 3, ..scenario.clone() });
        check_invariants(&RunScenario { plan: plan("a b c"), checkpoints: true, repeats: 2, ..scenario });
    }
}

#[test]
fn an_empty_plan_fails_but_an_empty_queue_is_done() {
    let end = |arrangement, groups: &str| {
        let policy = scenario(arrangement, Landing::None, 1).policy;
        let groups = plan(groups);
        replay([RunEvent::Started, RunEvent::GroupsPlanned { groups }], &policy).stage
    };
    assert_eq!(end(Scheduling::Groups, ""), RunStage::Done(RunOutcome::Failed));
    assert_eq!(end(Scheduling::Chain, "| |"), RunStage::Done(RunOutcome::Failed));
    assert_eq!(end(Scheduling::Queue, ""), RunStage::Done(RunOutcome::Approved));
}

#[test]
fn a_task_that_ends_makes_others_ready() {
    let policy = scenario(Scheduling::Slots, Landing::None, 2).policy;
    let moved = |status| RunEvent::LoopStatusChanged { loop_id: "a".into(), status };
    let mut run = Run::default();
    let mut wanted = Vec::new();
    let events = [
        RunEvent::Started,
        RunEvent::TaskPicked { loop_id: "a".into() },
        moved(LoopStatus::Active),
        RunEvent::NothingToPick,
        moved(LoopStatus::Ended(approved())),
        RunEvent::TaskPicked { loop_id: "b".into() },
        RunEvent::NothingToPick,
        RunEvent::LoopStatusChanged { loop_id: "b".into(), status: LoopStatus::Ended(approved()) },
        RunEvent::NothingToPick,
        RunEvent::NothingToPick,
    ];
    for event in events {
        run = step(run, event, &policy).0;
        wanted.push(run.picks);
    }
    assert_eq!(wanted, [2, 1, 1, 0, 2, 1, 0, 2, 1, 0]);
    assert_eq!(run.stage, RunStage::Done(RunOutcome::Approved));
}

#[test]
fn a_reopened_loop_updates_the_run_outcome() {
    let policy = scenario(Scheduling::Queue, Landing::None, 1).policy;
    let moved = |status| RunEvent::LoopStatusChanged { loop_id: "a".into(), status };
    let events = [
        RunEvent::Started,
        RunEvent::GroupsPlanned { groups: vec![vec!["a".into()]] },
        moved(LoopStatus::Ended(Outcome::Failed)),
        moved(LoopStatus::Active),
        moved(LoopStatus::Ended(approved())),
    ];
    let stage = |facts: usize| replay(events[..facts].iter().cloned(), &policy).stage;
    assert_eq!(stage(3), RunStage::Done(RunOutcome::Failed));
    assert_eq!(stage(4), RunStage::Done(RunOutcome::Failed));
    assert_eq!(stage(5), RunStage::Done(RunOutcome::Approved));
    let lands = RunPolicy { onto_default: true, ..policy.clone() };
    let run = replay(events[..4].iter().cloned(), &lands);
    let (run, effects) = step(run, events[4].clone(), &lands);
    assert_eq!((&run.stage, effects), (&RunStage::Landing(RunOutcome::Approved), vec![RunEffect::LandRun]));
    let (run, effects) = step(run, RunEvent::Landed, &lands);
    assert_eq!(run.stage, RunStage::Done(RunOutcome::Approved));
    assert_eq!(effects, [RunEffect::Finish(RunOutcome::Approved)]);
}

#[test]
fn a_final_review_that_failed_is_open_again_when_a_person_decides() {
    let mut policy = scenario(Scheduling::Groups, Landing::Group, 1).policy;
    policy.has_final_review = true;
    let moved = |name: &str, status| RunEvent::LoopStatusChanged { loop_id: name.into(), status };
    let events = [
        RunEvent::Started,
        RunEvent::GroupsPlanned { groups: plan("a") },
        moved("a", LoopStatus::Ended(approved())),
        RunEvent::FinalReviewEnded { outcome: Outcome::Stuck },
    ];
    let failed = replay(events, &policy);
    assert_eq!(failed.stage, RunStage::Done(RunOutcome::Failed));
    let accepted = LoopStatus::Ended(Outcome::Accepted { by: "Ann".into() });
    assert_eq!(
        step(failed.clone(), moved("final", accepted.clone()), &policy).0.stage,
        RunStage::Done(RunOutcome::Approved)
    );
    let (retried, effects) = step(failed, moved("final", LoopStatus::Active), &policy);
    assert_eq!((&retried.stage, effects), (&RunStage::Reviewing, vec![RunEffect::FinalReview]));
    let again = RunEvent::FinalReviewEnded { outcome: Outcome::Stuck };
    assert_eq!(step(retried, again, &policy).0.stage, RunStage::Done(RunOutcome::Failed));
    let cancelled = replay([RunEvent::Started, RunEvent::Cancelled { by: "Ann".into() }], &policy);
    assert_eq!(step(cancelled, moved("final", accepted), &policy).0.stage, RunStage::Done(RunOutcome::Cancelled));
}

#[test]
fn the_final_review_waits_for_a_loop_that_a_person_reopened() {
    let mut policy = scenario(Scheduling::Groups, Landing::Group, 1).policy;
    policy.has_final_review = true;
    let moved = |status| RunEvent::LoopStatusChanged { loop_id: "a".into(), status };
    let run = replay(
        [
            RunEvent::Started,
            RunEvent::GroupsPlanned { groups: plan("a b") },
            moved(LoopStatus::Ended(Outcome::Cancelled)),
            RunEvent::LoopStatusChanged { loop_id: "b".into(), status: LoopStatus::Ended(approved()) },
            moved(LoopStatus::Ready),
            RunEvent::FinalReviewEnded { outcome: approved() },
        ],
        &policy,
    );
    assert_eq!(run.stage, RunStage::Working { group: 0 });
    assert_eq!(outstanding(&run), [RunEffect::GrantLanding { loop_id: "a".into() }]);
    let (run, effects) = step(run, moved(LoopStatus::Ended(approved())), &policy);
    assert_eq!((run.stage, effects), (RunStage::Reviewing, vec![RunEffect::FinalReview]));
}

fn check_invariants(scenario: &RunScenario) {
    let explored = explore(scenario, |step| {
        invalid_events_change_nothing(step);
        done_is_final(step);
        effects_equal_what_a_restart_resumes(step);
        calls_respect_groups_and_jobs(step);
        one_lands_at_a_time(step);
        rounds_follow_each_other(step);
        picks_respect_the_slots(step);
        the_outcome_is_that_of_the_worst_loop(step);
        cancelling_reaches_every_loop(step);
    });
    for (index, node) in explored.nodes.iter().enumerate() {
        no_state_is_stuck(node, scenario, &|| format!("{:#?}\n{scenario:?}", explored.path(index)));
    }
    every_state_can_reach_the_end(&explored);
    replaying_gives_the_same_state(&explored, &scenario.policy);
    println!("{:?} {:?}: {} states, {} steps", scenario.policy, scenario.plan, explored.nodes.len(), explored.steps);
}

fn invalid_events_change_nothing(step: &RunStep) {
    if !step.fits {
        assert_eq!(step.before.run, step.after.run, "{:?} does not fit here", step.event);
        assert_eq!(step.effects, [], "{:?} does not fit here", step.event);
    }
}

fn done_is_final(step: &RunStep) {
    if !step.before.run.is_done() {
        return;
    }
    let Run { loops, stage, unclosed, .. } = step.after.run.clone();
    // A loop that a person reopened may end with another outcome.
    let anew = matches!(step.event, RunEvent::LoopStatusChanged { .. }) && loops.values().all(LoopStatus::has_ended);
    let own_end =
        step.scenario.policy.has_final_review || step.before.run.stage == RunStage::Done(RunOutcome::Cancelled);
    assert!(stage == step.before.run.stage || anew && !own_end, "{:?} changed the end", step.event);
    // The tracker is updated even after the run ended.
    assert!(unclosed.is_empty() || step.scenario.policy.task_source.closes_tasks());
    let same = Run { loops, stage: stage.clone(), unclosed, ..step.before.run.clone() };
    assert_eq!(same, step.after.run, "{:?} changed the end", step.event);
    // A run that is approved now still lands.
    let lands = matches!(stage, RunStage::Landing(_));
    assert!(!lands || anew && !own_end && step.scenario.policy.onto_default, "{:?}", step.event);
    assert!(lands || step.after.run.is_done());
    let follows = |effect: &RunEffect| {
        let over = matches!(effect, RunEffect::CancelLoop { .. } | RunEffect::CloseTask { .. });
        over || lands && *effect == RunEffect::LandRun
    };
    assert!(step.effects.iter().all(follows), "{:?} made an ended run ask for {:?}", step.event, step.effects);
}

fn effects_equal_what_a_restart_resumes(step: &RunStep) {
    let (before, after) = (outstanding(&step.before.run), outstanding(&step.after.run));
    for effect in step.effects {
        let finish = matches!(effect, RunEffect::Finish(_));
        assert!(finish || after.contains(effect), "a crash would forget {effect:?}");
    }
    for effect in after {
        let known = before.contains(&effect) || step.effects.contains(&effect);
        assert!(known, "{effect:?} is outstanding but was never requested");
    }
}

fn independent(scenario: &RunScenario) -> bool {
    matches!(scenario.policy.scheduling, Scheduling::Queue | Scheduling::Slots)
}

fn group_of(run: &Run, loop_id: &LoopId) -> usize {
    run.groups.iter().position(|group| group.contains(loop_id)).expect("every loop is in a group")
}

fn calls_respect_groups_and_jobs(step: &RunStep) {
    let (before, after) = (&step.before.run, &step.after.run);
    for effect in step.effects {
        let RunEffect::Start { loop_id } = effect else { continue };
        let queued = before.loops.get(loop_id).is_none_or(|status| *status == LoopStatus::Queued);
        assert!(queued && !before.starting.contains(loop_id), "{loop_id} was called before");
        assert!(after.active() + after.starting.len() <= step.scenario.policy.jobs, "more calls than jobs");
        let group = group_of(after, loop_id);
        for earlier in after.groups[..group].iter().flatten() {
            let status = &after.loops[earlier];
            let through = status.has_ended() && (independent(step.scenario) || status.is_resolved());
            assert!(through, "{loop_id} is called while {earlier} is {status:?}");
        }
    }
    if step.scenario.policy.scheduling == Scheduling::Chain {
        assert!(after.starting.len() <= 1, "a chain has one task at a time");
    }
}

fn one_lands_at_a_time(step: &RunStep) {
    if step.scenario.policy.landing != Landing::Group {
        assert_eq!(step.after.run.landing, None);
        return;
    }
    let run = &step.after.run;
    let landing = run.loops.iter().filter(|(_, status)| **status == LoopStatus::Landing);
    let mut under_way: Vec<_> = landing.map(|(loop_id, _)| loop_id).chain(&run.landing).collect();
    under_way.dedup();
    assert!(run.is_done() || under_way.len() <= 1, "{under_way:?} land at once");
    for effect in step.effects {
        let RunEffect::GrantLanding { loop_id } = effect else { continue };
        assert_eq!(run.loops[loop_id], LoopStatus::Ready, "{loop_id} may land but is not ready");
        if step.before.run.landing_begun {
            // The queue continues: a loop that was sent back lands later.
            continue;
        }
        let group = group_of(run, loop_id);
        for other in &run.groups[group] {
            let status = &run.loops[other];
            let over = status.is_resolved() || (independent(step.scenario) && status.has_ended());
            assert!(over, "{loop_id} may land while {other} is {status:?}");
        }
    }
}

fn rounds_follow_each_other(step: &RunStep) {
    let (before, after) = (&step.before.run, &step.after.run);
    for effect in step.effects {
        let RunEffect::ReviewCheckpoint { loops } = effect else { continue };
        let active = after.loops.iter().filter(|(_, status)| status.is_active());
        let active: Vec<_> = active.map(|(loop_id, _)| loop_id.clone()).collect();
        assert_eq!(*loops, active, "a round is for all that are active");
        let answered = match step.event {
            RunEvent::CheckpointReviewed { loop_id } | RunEvent::LoopStatusChanged { loop_id, .. } => Some(loop_id),
            RunEvent::Started
            | RunEvent::PreparationEnded { .. }
            | RunEvent::GroupsPlanned { .. }
            | RunEvent::TaskPicked { .. }
            | RunEvent::NothingToPick
            | RunEvent::PickingStopped
            | RunEvent::TaskClosed { .. }
            | RunEvent::AttemptSpent { .. }
            | RunEvent::FinalReviewEnded { .. }
            | RunEvent::Landed
            | RunEvent::Cancelled { .. } => None,
        };
        let waits = before.loops.keys().find(|one| before.checkpoint.waits_for(one) && Some(*one) != answered);
        assert_eq!(waits, None, "a round begins while another is out");
        if let RunEvent::CheckpointReviewed { loop_id } = step.event {
            let due = |one: &&LoopId| *one != loop_id && after.loops[*one] == LoopStatus::AtCheckpoint;
            assert!(loops.iter().any(|one| due(&one)), "only {loop_id} was due, whose review is in");
        }
    }
}

fn picks_respect_the_slots(step: &RunStep) {
    let (before, after) = (&step.before.run, &step.after.run);
    assert!(slots(step.scenario) || after.picks == 0);
    if after.picks > before.picks {
        assert!(step.scenario.policy.keep_going || !step.after.failed, "a task is picked after a failure");
        assert!(!step.after.stopped, "a task is picked after the last one");
        assert_eq!(after.picking, Picking::Open);
        assert!(after.picks + after.active() + after.starting.len() <= step.scenario.policy.jobs);
    }
    let taken = usize::from(matches!(step.event, RunEvent::TaskPicked { .. } | RunEvent::NothingToPick));
    let kept = after.picks + taken >= before.picks;
    assert!(kept || after.is_done(), "a pick under way was forgotten by {:?}", step.event);
}

fn the_outcome_is_that_of_the_worst_loop(step: &RunStep) {
    let same = step.before.run.stage == step.after.run.stage;
    let (RunStage::Done(outcome) | RunStage::Landing(outcome), false) = (&step.after.run.stage, same) else {
        return;
    };
    if step.before.run.stage == RunStage::Landing(*outcome) {
        assert_eq!(*step.event, RunEvent::Landed, "done before it landed");
        return;
    }
    let standings = || step.after.run.loops.values();
    if *outcome == RunOutcome::Cancelled {
        return;
    }
    assert!(standings().all(LoopStatus::has_ended), "the run ended before its loops");
    let bad = |status: &LoopStatus| matches!(status, LoopStatus::Ended(Outcome::Failed | Outcome::Stuck));
    assert!(!standings().any(bad) || *outcome == RunOutcome::Failed, "{outcome:?} with a failed loop");
    if *outcome == RunOutcome::Approved {
        let fine = |status: &LoopStatus| {
            matches!(status, LoopStatus::Ended(Outcome::Approved { .. } | Outcome::Accepted { .. }))
        };
        assert!(standings().all(fine), "approved, but {:?}", step.after.run.loops);
        let whole = RunEvent::FinalReviewEnded { outcome: approved() };
        let none = step.after.run.loops.is_empty();
        assert!(!step.scenario.policy.has_final_review || *step.event == whole || none, "approved without the whole");
    }
}

fn cancelling_reaches_every_loop(step: &RunStep) {
    let (RunEvent::Cancelled { .. }, false) = (step.event, step.before.run.is_done()) else { return };
    let open = step.before.run.loops.iter().filter(|(_, status)| !status.has_ended());
    let mut wanted: Vec<_> = open.map(|(id, _)| RunEffect::CancelLoop { loop_id: id.clone() }).collect();
    wanted.push(RunEffect::Finish(RunOutcome::Cancelled));
    assert_eq!(step.effects, wanted);
}

fn no_state_is_stuck(node: &Node, scenario: &RunScenario, why: &dyn Fn() -> String) {
    let run = &node.run;
    let working = matches!(run.stage, RunStage::Working { .. } | RunStage::Blocked { .. });
    if run.is_done() || run.stage == RunStage::Queued {
        return;
    }
    let moves = |status: &LoopStatus| matches!(status, LoopStatus::Active | LoopStatus::Waiting | LoopStatus::Landing);
    let alive = !outstanding(run).is_empty() || run.loops.values().any(moves);
    assert!(alive, "stuck in {:?} of {scenario:?} after {}", run, why());
    let due = run.loops.values().any(|status| *status == LoopStatus::AtCheckpoint);
    let out = outstanding(run).iter().any(|effect| matches!(effect, RunEffect::ReviewCheckpoint { .. }));
    assert!(!working || !due || out, "no reviewer runs for what is due in {run:?} after {}", why());
}

/// From every state, without cancelling the run.
fn every_state_can_reach_the_end(explored: &Explored) {
    let mut before = vec![Vec::new(); explored.nodes.len()];
    for (from, to) in &explored.edges {
        before[*to].push(*from);
    }
    let done = |index: &usize| explored.nodes[*index].run.is_done();
    let mut reaches: Vec<_> = (0..explored.nodes.len()).map(|index| done(&index)).collect();
    let mut queue: Vec<_> = (0..explored.nodes.len()).filter(done).collect();
    while let Some(index) = queue.pop() {
        for from in &before[index] {
            if !std::mem::replace(&mut reaches[*from], true) {
                queue.push(*from);
            }
        }
    }
    let lost = reaches.iter().position(|reaches| !reaches);
    assert_eq!(lost, None, "no way to the end: {:#?}", lost.map(|index| explored.path(index)));
}

fn replaying_gives_the_same_state(explored: &Explored, policy: &RunPolicy) {
    for index in (0..explored.nodes.len()).step_by(53) {
        assert_eq!(replay(explored.path(index), policy), explored.nodes[index].run);
    }
}
