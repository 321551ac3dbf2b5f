//! The first facts of a run.

use signoff_core::config::{Expected, Settings};
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
    Ok(opened(policy, Policy { no_ask, ..Policy::of(workflow) }))
}

/// A run that fills its slots from a tracker or the queue, as `policy` says.
pub fn slots(workflow: Workflow, policy: RunPolicy, no_ask: bool) -> Vec<Fact> {
    opened(policy, Policy { no_ask, ..Policy::of(workflow) })
}

/// A run over the tasks of a plan, one after the other on one branch.
pub fn chain(
    run: RunId,
    (workflow, policy): (Workflow, RunPolicy),
    tasks: Vec<(TaskId, TaskSpec)>,
    no_ask: bool,
) -> Vec<Fact> {
    let groups = tasks.iter().map(|(task, _)| vec![loop_id(*task)]).collect();
    let expected = Expected::of(&workflow);
    let mut facts = opened(policy, Policy { no_ask, ..Policy::of(workflow) });
    facts.extend(tasks.into_iter().flat_map(|one| added(one, run.branch(), expected)));
    facts.push(Fact::Run(RunFact::Moved(RunEvent::GroupsPlanned { groups })));
    facts
}

/// A run that makes tasks of a specification and works them group by group.
pub fn groups(workflow: Workflow, policy: RunPolicy, spec: &TaskSpec, no_ask: bool) -> Vec<Fact> {
    let (name, text) = (spec.title.clone(), spec.description.clone());
    let mut facts = opened(policy, Policy { no_ask, ..Policy::of(workflow) });
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
    let added = added((task, spec), branch, Expected::of(&workflow));
    let mut facts = opened(policy, Policy { no_ask, ..Policy::of(workflow) });
    facts.extend(added);
    facts.push(Fact::Run(RunFact::Moved(RunEvent::GroupsPlanned { groups: vec![vec![loop_id(task)]] })));
    facts
}

/// The facts that make a task with its loop, whoever found it.
pub fn added((task, spec): (TaskId, TaskSpec), branch: String, expected: Expected) -> [Fact; 2] {
    let Expected { auto_review, max_review_cycles } = expected;
    let of_loop = LoopFact::Added { task, title: spec.title.clone(), branch };
    let of_task = TaskFact::Added { spec: Box::new(spec), auto_review, max_review_cycles };
    [Fact::Task(task, of_task), Fact::Loop(loop_id(task), of_loop)]
}

/// One gate over the checkout, no fixing.
pub fn review(workflow: Workflow, no_ask: bool) -> Vec<Fact> {
    let policy = RunPolicy { landing: Landing::None, ..RunPolicy::of(&workflow, 1) };
    let governed = LoopFact::Governed { policy: Box::new(Policy { no_ask, ..Policy::of(workflow.clone()) }) };
    let mut facts = opened(policy, Policy { no_ask, ..Policy::of(workflow) });
    facts.push(Fact::Loop(LoopId::checkout(), governed));
    let groups = vec![vec![LoopId::checkout()]];
    facts.push(Fact::Run(RunFact::Moved(RunEvent::GroupsPlanned { groups })));
    facts
}

fn opened(policy: RunPolicy, workflow: Policy) -> Vec<Fact> {
    vec![
        Fact::Run(RunFact::Opened { policy, workflow: Box::new(workflow) }),
        Fact::Run(RunFact::Moved(RunEvent::Started)),
    ]
}

#[cfg(test)]
mod tests {
    use signoff_core::policy::Bound;
    use signoff_core::workflow::{Phase, preset};

    use super::*;

    #[test]
    fn the_first_gate_that_is_on_says_what_a_task_can_expect() {
        let mut workflow = preset("phases").unwrap();
        for (bound, policy) in (1..).zip(workflow.phases.iter_mut().filter_map(Phase::judge_mut)) {
            policy.gate.enabled = bound > 1;
            policy.gate.bound = Bound::MaxCycles(bound);
        }
        let policy = RunPolicy::of(&workflow, 1);
        let tasks = vec![(TaskId(1), TaskSpec::default())];
        let facts = chain(RunId(1), (workflow, policy), tasks, true);
        let told = |fact: &Fact| match fact {
            Fact::Task(_, TaskFact::Added { auto_review, max_review_cycles, .. }) => {
                Some((*auto_review, *max_review_cycles))
            }
            Fact::Task(..) | Fact::Loop(..) | Fact::Run(_) => None,
        };
        assert_eq!(facts.iter().find_map(told), Some((true, Some(2))));
    }
}
