//! The first facts of a run.

use signoff_core::config::Settings;
use signoff_core::group::{RunEvent, RunPolicy};
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::machine::Policy;
use signoff_core::task::TaskSpec;
use signoff_core::wire::{Fact, LoopFact, RunFact, TaskFact};
use signoff_core::workflow::{Arrangement, Landing, Workflow};

use crate::dispatcher::loop_id;
use crate::error::EngineError;

/// A run that picks tasks from the queue until none is ready. One that fails keeps no other from being worked.
pub fn queue(settings: &Settings, jobs: usize, no_ask: bool) -> Result<Vec<Fact>, EngineError> {
    let workflow = settings.workflow(settings.preset())?;
    let policy = RunPolicy {
        arrangement: Arrangement::Slots,
        landing: Landing::None,
        keep_going: true,
        before: false,
        after: false,
        ..RunPolicy::of(&workflow, jobs)
    };
    Ok(opened(policy, Policy { workflow, no_ask }))
}

/// A run that fills its slots from a tracker or the queue, as `policy` says.
pub fn slots(workflow: Workflow, policy: RunPolicy, no_ask: bool) -> Vec<Fact> {
    opened(policy, Policy { workflow, no_ask })
}

/// A run over the tasks of a plan, one after the other on one branch.
pub fn chain(
    run: RunId,
    (workflow, policy): (Workflow, RunPolicy),
    tasks: Vec<(TaskId, TaskSpec)>,
    no_ask: bool,
) -> Vec<Fact> {
    let reviewed = workflow.phases.iter().any(|phase| phase.judge().is_some() && !phase.is_off());
    let bound =
        workflow.phases.iter().find_map(|phase| phase.judge()).and_then(|judge| judge.gate.bound.reviews());
    let mut facts = opened(policy, Policy { workflow, no_ask });
    let groups = tasks.iter().map(|(task, _)| vec![loop_id(*task)]).collect();
    for (task, spec) in tasks {
        let added = LoopFact::Added { task, title: spec.title.clone(), branch: run.branch() };
        let spec = Box::new(spec);
        let fact = TaskFact::Added { spec, auto_review: reviewed, max_review_cycles: bound };
        facts.push(Fact::Task(task, fact));
        facts.push(Fact::Loop(loop_id(task), added));
    }
    facts.push(Fact::Run(RunFact::Moved(RunEvent::GroupsPlanned { groups })));
    facts
}

/// A run that makes tasks of a specification and works them group by group.
pub fn groups(workflow: Workflow, policy: RunPolicy, spec: &TaskSpec, no_ask: bool) -> Vec<Fact> {
    let (name, text) = (spec.title.clone(), spec.description.clone());
    let mut facts = opened(policy, Policy { workflow, no_ask });
    facts.insert(1, Fact::Run(RunFact::Specified { name, text }));
    facts
}

/// A run of one task that is worked at once.
pub fn single(
    workflow: Workflow,
    (task, spec): (TaskId, TaskSpec),
    branch: String,
    no_ask: bool,
) -> Vec<Fact> {
    let policy = RunPolicy { landing: Landing::None, ..RunPolicy::of(&workflow, 1) };
    let gate = workflow.phases.iter().find_map(|phase| phase.judge());
    let max_review_cycles = gate.and_then(|judge| judge.gate.bound.reviews());
    let mut facts = opened(policy, Policy { workflow, no_ask });
    let added = LoopFact::Added { task, title: spec.title.clone(), branch };
    facts.push(Fact::Task(
        task,
        TaskFact::Added { spec: Box::new(spec), auto_review: true, max_review_cycles },
    ));
    facts.push(Fact::Loop(loop_id(task), added));
    facts.push(Fact::Run(RunFact::Moved(RunEvent::GroupsPlanned { groups: vec![vec![loop_id(task)]] })));
    facts
}

/// The loop of a review that belongs to no task.
pub const REVIEW: &str = "review";

/// One gate over the checkout, no fixing.
pub fn review(workflow: Workflow, no_ask: bool) -> Vec<Fact> {
    let policy = RunPolicy { landing: Landing::None, ..RunPolicy::of(&workflow, 1) };
    let governed = LoopFact::Governed { policy: Box::new(Policy { workflow: workflow.clone(), no_ask }) };
    let mut facts = opened(policy, Policy { workflow, no_ask });
    facts.push(Fact::Loop(LoopId::new(REVIEW), governed));
    let groups = vec![vec![LoopId::new(REVIEW)]];
    facts.push(Fact::Run(RunFact::Moved(RunEvent::GroupsPlanned { groups })));
    facts
}

fn opened(policy: RunPolicy, workflow: Policy) -> Vec<Fact> {
    vec![
        Fact::Run(RunFact::Opened { policy, workflow: Box::new(workflow) }),
        Fact::Run(RunFact::Moved(RunEvent::Started)),
    ]
}
