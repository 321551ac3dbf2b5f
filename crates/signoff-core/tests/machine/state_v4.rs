//! The state file of an iteration, shared with other programs: export and import at any moment.

mod properties;
mod stories;

use jiff::{Span, Timestamp};
use signoff_core::group::RunPolicy;
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::machine::{Event, Policy};
use signoff_core::state_v4::{IterationMode, IterationState, export, resume};
use signoff_core::task::{ImportedIteration, TaskSpec};
use signoff_core::wire::{Fact, LoopFact, RecordedFact, RunFact};
use signoff_core::workflow::{PhaseKind, preset};

use crate::machine::builders;

fn policy(mode: IterationMode) -> Policy {
    let mut workflow = preset("phases").and_then(|workflow| workflow.in_mode(mode.into_str())).expect("shipped");
    for phase in &mut workflow.phases {
        if let PhaseKind::Agent { researchers, .. } = &mut phase.kind {
            *researchers = 0;
        }
    }
    Policy::new(workflow)
}

/// The log of a loop with one event per minute.
fn log(policy: &Policy, events: &[Event]) -> Vec<RecordedFact> {
    let own = |fact| Fact::Loop(LoopId::new("1"), fact);
    let opened = RunFact::Opened { policy: RunPolicy::new(&policy.workflow, 1), workflow: Box::new(policy.clone()) };
    let added = LoopFact::Added { task: TaskId(1), title: "Add login".into(), branch: "b".into() };
    let mut facts = vec![Fact::Run(opened), own(added)];
    facts.extend(events.iter().cloned().map(|event| own(LoopFact::Transitioned(event))));
    let start: Timestamp = "2026-01-23T10:00:00.75Z".parse().expect("a time");
    let at = |seq: u64| start + Span::new().minutes(i64::try_from(seq).expect("a few"));
    let recorded = |(seq, fact)| RecordedFact { run: RunId(1), seq, at: at(seq), fact };
    (0..).zip(facts).map(recorded).collect()
}

fn state(policy: &Policy, events: &[Event]) -> IterationState {
    export(&log(policy, events), &LoopId::new("1"), &TaskSpec::from_text("Add login\n\nWith OAuth."))
        .expect("an iteration")
}

/// The state exported right after an import.
fn imported(state: &IterationState) -> IterationState {
    let mut policy = policy(state.mode);
    policy.workflow.limits.max_passes = state.max_iterations;
    let begun = [resume(state, builders::head(9), &policy)];
    let imported =
        ImportedIteration { state: state.clone(), commit: "c9".into(), design: None, plan: None, items: Vec::new() };
    let spec = TaskSpec { imported: Some(Box::new(imported)), ..TaskSpec::from_text(&state.task) };
    export(&log(&policy, &begun), &LoopId::new("1"), &spec).expect("an iteration")
}
