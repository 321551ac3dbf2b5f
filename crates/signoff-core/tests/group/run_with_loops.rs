//! Random runs of both machines together: the loops and the run that coordinates them.

use jiff::Timestamp;
use proptest::prelude::*;
use signoff_core::group::{self, LoopStatus, RunEvent, RunOutcome, RunStage};
use signoff_core::ids::{AttemptId, LoopId, TaskId};
use signoff_core::ledger::LedgerEntry;
use signoff_core::machine::{self, Event, Job, JobKind, Loop, Outcome, PauseReason, Policy, Stage, WorkReport};
use signoff_core::task::TaskSpec;
use signoff_core::view::RunState;
use signoff_core::wire::{Fact, Launch, LoopFact, RecordedFact, RunFact, TaskFact, from_json, to_json};

use crate::group::builders;
use crate::group::drive::{Drive, Next};

fn plans() -> impl Strategy<Value = Vec<Vec<LoopId>>> {
    let plans = [vec![vec!["a"]], vec![vec!["a", "b"], vec!["c"]], vec![vec!["a", "b", "c"]]];
    let ids = |plan: &Vec<Vec<&str>>| {
        plan.iter().map(|group| group.iter().map(|id| LoopId::from(*id)).collect()).collect::<Vec<_>>()
    };
    prop::sample::select(plans.iter().map(ids).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_run_ends_and_can_be_rebuilt_from_its_log(
        groups in plans(),
        jobs in 1usize..4,
        interval in 1u32..4,
        preset in prop::sample::select(vec!["loops", "plan", "task"]),
        seed in prop::collection::vec(any::<u16>(), 64),
    ) {
        let mut policy = builders::small(preset);
        policy.workflow.checkpoint_interval = policy.workflow.checkpoint_interval.map(|_| interval);
        let mut drive = Drive::new(policy, jobs);
        let (mut view, mut follower) = (RunState::default(), RunState::default());
        let mut shown = 0;
        for turn in 0.. {
            let next_steps = drive.next_steps(&groups);
            if next_steps.is_empty() {
                break;
            }
            prop_assert!(turn < 3_000, "no end in sight: {:?}", drive.run);
            let dice = usize::from(seed[turn % seed.len()]) ^ (turn / seed.len() * 7919);
            let next = next_steps[dice % next_steps.len()].clone();
            let before = drive.loops.clone();
            drive.happen(next.clone());
            checkpoints_come_when_due(&drive, &before, &next);
            both_machines_agree(&drive);
            nothing_lands_with_a_blocking_finding(&drive);
            for recorded in &drive.log[shown..] {
                follower.apply_transition(&view.apply(recorded.clone()));
                prop_assert_eq!(&follower, &view, "{:?}", recorded);
            }
            shown = drive.log.len();
        }
        prop_assert!(drive.is_over(), "stuck: {:?} {:?}", drive.run, drive.loops);
        the_run_outcome_follows_from_its_loops(&drive);
        prop_assert_eq!(&view, &RunState::from_log(&drive.log));
        the_log_round_trips_through_json(&drive);
        for (seq, fact) in (view.seq + 1..).zip(other_facts(&drive.policy)) {
            let recorded = RecordedFact { run: view.run, seq, at: Timestamp::UNIX_EPOCH, fact };
            follower.apply_transition(&view.apply(recorded));
            prop_assert_eq!(&follower, &view);
        }
    }
}

/// Facts that no state machine causes.
fn other_facts(policy: &Policy) -> Vec<Fact> {
    let spec = Box::new(TaskSpec { title: "Log in".into(), ..TaskSpec::default() });
    let (task, attempt) = (TaskId(1), AttemptId(1));
    let own = |fact| Fact::Loop("a".into(), fact);
    vec![
        Fact::Task(task, TaskFact::Added { spec, auto_review: true, max_review_cycles: None }),
        own(LoopFact::Added { task, title: "Log in".into(), branch: "signoff/task-1".into() }),
        own(LoopFact::PolicySet { policy: Box::new(policy.clone()) }),
        own(LoopFact::AttemptStarted { attempt, launch: Launch { agent: "fake".to_owned(), ..Launch::default() } }),
        own(LoopFact::Session { attempt, session: "s1".into() }),
        own(LoopFact::AgentOutput { attempt, line: "reading".into() }),
        Fact::Loop("b".into(), LoopFact::PolicySet { policy: Box::new(policy.clone()) }),
        Fact::Run(RunFact::Specified { name: "plan.md".into(), text: "- log in".into() }),
    ]
}

fn both_machines_agree(drive: &Drive) {
    for (loop_id, machine) in &drive.loops {
        assert_eq!(drive.run.loops.get(loop_id), Some(&LoopStatus::for_loop(machine)), "{loop_id}");
    }
}

/// A loop may land with a blocking finding if a person or the policy lets it pass, but then it is not approved.
fn nothing_lands_with_a_blocking_finding(drive: &Drive) {
    for (loop_id, machine) in &drive.loops {
        let landing = if let Stage::Landing { outcome, .. } = &machine.stage { Some(outcome) } else { None };
        let done = if let Stage::Done(ending) = &machine.stage { Some(&ending.outcome) } else { None };
        let workflow = &drive.policy.workflow;
        let gate = workflow.first_gate().and_then(|phase| phase.policy());
        let (Some(Outcome::Approved { .. }), Some(gate_policy)) = (landing.or(done), gate) else { continue };
        let here = |entry: &&LedgerEntry| entry.seen.iter().any(|seen| Some(seen.phase) == workflow.first_gate_index());
        let open: Vec<_> = machine.ledger.open(gate_policy.gate.fail_on).filter(here).collect();
        assert!(open.is_empty(), "{loop_id} lands with {open:?} open");
    }
}

fn the_run_outcome_follows_from_its_loops(drive: &Drive) {
    let outcome = |machine: &Loop| {
        let Stage::Done(ending) = &machine.stage else { panic!("not ended: {:?}", machine.stage) };
        ending.outcome.clone()
    };
    let RunStage::Done(end) = &drive.run.stage else { panic!("not done") };
    let failed = |machine: &Loop| matches!(outcome(machine), Outcome::Failed | Outcome::Stuck);
    let approved = |machine: &Loop| matches!(outcome(machine), Outcome::Approved { .. });
    assert_eq!(*end == RunOutcome::Failed, drive.loops.values().any(failed));
    assert_eq!(*end == RunOutcome::Approved, drive.loops.values().all(approved));
}

/// A loop waits for a checkpoint review only when an implement or fix attempt ends without completing.
fn checkpoints_come_when_due(drive: &Drive, before: &std::collections::BTreeMap<LoopId, Loop>, next: &Next) {
    match next {
        Next::Loop(loop_id, event) => {
            let (Some(before), after) = (before.get(loop_id), &drive.loops[loop_id]) else { return };
            let Some(job) = job_of(before, event, drive) else { return };
            let writes = matches!(job.kind, JobKind::Work { .. } | JobKind::Fix { .. });
            let completes = matches!(event, Event::WorkEnded { report: WorkReport::Complete { .. }, .. });
            let since = before.counters.attempts - before.counters.last_checkpoint;
            let due = drive.policy.workflow.checkpoint_interval.is_some_and(|interval| since >= interval);
            let held = after.pause_reasons().contains(&PauseReason::Checkpoint);
            let goes_on = matches!(after.stage, Stage::Working { .. } | Stage::Fixing { .. });
            let wanted = writes && !completes && due && goes_on;
            assert_eq!(held, wanted, "{event:?} at {:?}", before.counters);
        }
        Next::Checkpoint(loop_id, _) => {
            let (before, after) = (&before[loop_id], &drive.loops[loop_id]);
            assert_eq!(after.counters.last_checkpoint, before.counters.attempts);
            let waited = u32::from(before.pause_reasons().contains(&PauseReason::Checkpoint));
            let reopened = matches!(before.stage, Stage::AwaitingLanding { .. });
            let reopened = u32::from(reopened && matches!(after.stage, Stage::Fixing { .. }));
            assert_eq!(after.counters.attempts, before.counters.attempts + waited + reopened);
            assert!(!after.pause_reasons().contains(&PauseReason::Checkpoint));
            let late = drive.run.loops.values().any(|status| *status == LoopStatus::AtCheckpoint);
            let again = drive.run.checkpoint.waits_for(loop_id);
            assert!(late || !again, "{loop_id} is reviewed again although no other loop is due");
        }
        Next::Run(_) => {}
    }
}

fn job_of(machine: &Loop, event: &Event, drive: &Drive) -> Option<Job> {
    let attempt = event.ends_attempt()?;
    machine::outstanding(machine, &drive.policy).into_iter().find_map(|effect| {
        let machine::Effect::Spawn(job) = effect else { return None };
        (job.attempt == attempt).then_some(job)
    })
}

fn the_log_round_trips_through_json(drive: &Drive) {
    let line = |recorded: &RecordedFact| to_json(recorded).to_string();
    let read =
        |line: String| from_json(&serde_json::from_str(&line).expect("a line is JSON")).expect("a line is a fact");
    let log: Vec<_> = drive.log.iter().map(line).map(read).collect();
    assert_eq!(log, drive.log);
    let run_events = log.iter().filter_map(|recorded| match &recorded.fact {
        Fact::Run(RunFact::Transitioned(event)) => Some(event.clone()),
        Fact::Run(RunFact::Opened { .. } | RunFact::Specified { .. }) | Fact::Loop(..) | Fact::Task(..) => None,
    });
    assert_eq!(group::replay(run_events.collect::<Vec<RunEvent>>(), &drive.run_policy), drive.run);
    for (loop_id, machine) in &drive.loops {
        let events = log.iter().filter_map(|recorded| match &recorded.fact {
            Fact::Loop(id, LoopFact::Transitioned(event)) if id == loop_id => Some(event.clone()),
            Fact::Run(_) | Fact::Loop(..) | Fact::Task(..) => None,
        });
        assert_eq!(&machine::replay(events, &drive.policy), machine);
    }
}
