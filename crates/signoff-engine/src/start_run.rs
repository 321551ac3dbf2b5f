//! Builds the first facts of a run.

use signoff_core::group::{RunEvent, RunPolicy};
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::machine::Policy;
use signoff_core::settings::{ExpectedReviews, Settings};
use signoff_core::task::TaskSpec;
use signoff_core::wire::{Fact, LoopFact, RunFact, TaskFact};
use signoff_core::workflow::{Landing, Scheduling, Workflow};

use crate::dispatcher::loop_id;
use crate::error::EngineError;

/// A run that picks tasks from the queue until none is ready. A failed task does not stop the others.
pub fn queue(settings: &Settings, jobs: usize, no_ask: bool) -> Result<Vec<Fact>, EngineError> {
    let workflow = settings.workflow(settings.preset())?;
    let policy = RunPolicy {
        scheduling: Scheduling::Slots,
        landing: Landing::None,
        keep_going: true,
        has_planning: false,
        has_final_review: false,
        ..RunPolicy::new(&workflow, jobs)
    };
    Ok(opened(policy, workflow, no_ask))
}

/// A run that fills its slots from a tracker or from the queue.
pub fn slots(workflow: Workflow, policy: RunPolicy, no_ask: bool) -> Vec<Fact> {
    opened(policy, workflow, no_ask)
}

/// A task specification with its number.
#[derive(Debug, Clone)]
pub struct NumberedTask {
    pub task: TaskId,
    pub spec: TaskSpec,
}

/// A run over the tasks of a plan, in sequence on one branch.
pub fn chain(run: RunId, workflow: Workflow, policy: RunPolicy, tasks: Vec<NumberedTask>, no_ask: bool) -> Vec<Fact> {
    let groups = tasks.iter().map(|one| vec![loop_id(one.task)]).collect();
    let expected = ExpectedReviews::from_workflow(&workflow);
    let mut facts = opened(policy, workflow, no_ask);
    facts.extend(
        tasks.into_iter().flat_map(|NumberedTask { task, spec }| task_added(task, spec, run.branch(), expected)),
    );
    facts.push(Fact::Run(RunFact::Transitioned(RunEvent::GroupsPlanned { groups })));
    facts
}

/// A run that plans tasks from a specification and works on them group by group.
pub fn groups(workflow: Workflow, policy: RunPolicy, spec: &TaskSpec, no_ask: bool) -> Vec<Fact> {
    let (name, text) = (spec.title.clone(), spec.description.clone());
    let mut facts = opened(policy, workflow, no_ask);
    facts.insert(1, Fact::Run(RunFact::Specified { name, text }));
    facts
}

/// A run of one task.
pub fn single(workflow: Workflow, task: TaskId, spec: TaskSpec, branch: String, no_ask: bool) -> Vec<Fact> {
    let policy = RunPolicy { landing: Landing::None, ..RunPolicy::new(&workflow, 1) };
    let added = task_added(task, spec, branch, ExpectedReviews::from_workflow(&workflow));
    let mut facts = opened(policy, workflow, no_ask);
    facts.extend(added);
    facts.push(Fact::Run(RunFact::Transitioned(RunEvent::GroupsPlanned { groups: vec![vec![loop_id(task)]] })));
    facts
}

/// The facts that add a task and its loop.
pub fn task_added(task: TaskId, spec: TaskSpec, branch: String, expected: ExpectedReviews) -> [Fact; 2] {
    let ExpectedReviews { auto_review, max_review_cycles } = expected;
    let of_loop = LoopFact::Added { task, title: spec.title.clone(), branch };
    let of_task = TaskFact::Added { spec: Box::new(spec), auto_review, max_review_cycles };
    [Fact::Task(task, of_task), Fact::Loop(loop_id(task), of_loop)]
}

/// A review of the checkout: one gate, no fixing.
pub fn review(workflow: Workflow, no_ask: bool) -> Vec<Fact> {
    let policy = RunPolicy { landing: Landing::None, ..RunPolicy::new(&workflow, 1) };
    let policy_set = LoopFact::PolicySet { policy: Box::new(Policy { no_ask, ..Policy::new(workflow.clone()) }) };
    let mut facts = opened(policy, workflow, no_ask);
    facts.push(Fact::Loop(LoopId::checkout(), policy_set));
    let groups = vec![vec![LoopId::checkout()]];
    facts.push(Fact::Run(RunFact::Transitioned(RunEvent::GroupsPlanned { groups })));
    facts
}

fn opened(policy: RunPolicy, workflow: Workflow, no_ask: bool) -> Vec<Fact> {
    let workflow = Box::new(Policy { no_ask, ..Policy::new(workflow) });
    vec![Fact::Run(RunFact::Opened { policy, workflow }), Fact::Run(RunFact::Transitioned(RunEvent::Started))]
}

#[cfg(test)]
mod tests {
    use signoff_core::policy::Bound;
    use signoff_core::workflow::{Phase, preset};

    use super::*;

    #[test]
    fn the_first_enabled_gate_sets_the_expected_review_cycles() {
        let mut workflow = preset("phases").unwrap();
        for (bound, policy) in (1..).zip(workflow.phases.iter_mut().filter_map(Phase::policy_mut)) {
            policy.gate.enabled = bound > 1;
            policy.gate.bound = Bound::MaxCycles(bound);
        }
        let policy = RunPolicy::new(&workflow, 1);
        let tasks = vec![NumberedTask { task: TaskId(1), spec: TaskSpec::default() }];
        let facts = chain(RunId(1), workflow, policy, tasks, true);
        let expectation = |fact: &Fact| match fact {
            Fact::Task(_, TaskFact::Added { auto_review, max_review_cycles, .. }) => {
                Some((*auto_review, *max_review_cycles))
            }
            Fact::Task(..) | Fact::Loop(..) | Fact::Run(_) => None,
        };
        assert_eq!(facts.iter().find_map(expectation), Some((true, Some(2))));
    }
}
