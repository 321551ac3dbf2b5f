//! The state of an iteration as other programs keep it: told at any moment, taken over at any moment.

mod laws;
mod stories;

use jiff::{Span, Timestamp};
use signoff_core::group::RunPolicy;
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::machine::{Event, Policy};
use signoff_core::state_v4::{Mode, State, resume, told};
use signoff_core::task::{TakenOver, TaskSpec};
use signoff_core::wire::{Fact, LoopFact, Recorded, RunFact};
use signoff_core::workflow::{PhaseKind, preset};

use crate::say;

fn policy(mode: Mode) -> Policy {
    let mut workflow = preset("phases").and_then(|workflow| workflow.in_mode(mode.word())).expect("shipped");
    for phase in &mut workflow.phases {
        if let PhaseKind::Agent { researchers, .. } = &mut phase.kind {
            *researchers = 0;
        }
    }
    Policy::of(workflow)
}

/// The log of a loop in which one thing happens every minute.
fn log(policy: &Policy, events: &[Event]) -> Vec<Recorded> {
    let own = |fact| Fact::Loop(LoopId::new("1"), fact);
    let opened =
        RunFact::Opened { policy: RunPolicy::of(&policy.workflow, 1), workflow: Box::new(policy.clone()) };
    let added = LoopFact::Added { task: TaskId(1), title: "Add login".into(), branch: "b".into() };
    let mut facts = vec![Fact::Run(opened), own(added)];
    facts.extend(events.iter().cloned().map(|event| own(LoopFact::Moved(event))));
    let start: Timestamp = "2026-01-23T10:00:00.75Z".parse().expect("a time");
    let at = |seq: u64| start + Span::new().minutes(i64::try_from(seq).expect("a few"));
    let recorded = |(seq, fact)| Recorded { run: RunId(1), seq, at: at(seq), fact };
    (0..).zip(facts).map(recorded).collect()
}

fn state(policy: &Policy, events: &[Event]) -> State {
    told(&log(policy, events), &LoopId::new("1"), &TaskSpec::of("Add login\n\nWith OAuth."))
        .expect("an iteration")
}

/// What is told right after a state was taken over.
fn taken_over(state: &State) -> State {
    let mut policy = policy(state.mode);
    policy.workflow.limits.max_passes = state.max_iterations;
    let begun = [resume(state, say::head(9), &policy)];
    let taken_over = TakenOver::of(state.clone(), "c9".into());
    let spec = TaskSpec { taken_over: Some(Box::new(taken_over)), ..TaskSpec::of(&state.task) };
    told(&log(&policy, &begun), &LoopId::new("1"), &spec).expect("an iteration")
}
