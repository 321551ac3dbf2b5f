//! The workflow of one task: the phases of its type, with the settings of the task and the command line.

use serde::{Deserialize, Serialize};

use super::file::TaskTypeTable;
use super::values::Minutes;
use super::workflows::the_gate;
use super::{ConfigError, Settings};
use crate::policy::{Bound, Count, Effort, EscalationPolicy, FailureAction, OnExhausted, OnFailure, TimeSpan};
use crate::task::{TaskSpec, TaskType};
use crate::workflow::keys::CycleBound;
use crate::workflow::{GateKeys, GatePolicy, Landing, Phase, PhaseKind, Role, Scheduling, Workflow};

/// The flags of a task.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskFlags {
    /// The workflow, if it is not the configured one.
    pub preset: Option<String>,
    /// `--review` or `--no-review`.
    pub review: Option<bool>,
    pub effort: Option<Effort>,
    /// Keys for every gate: `--fail-on`, `--max-cycles`.
    pub gate: GateKeys,
    /// Files with prompts: `--developer-prompt`, `--reviewer-prompt`.
    pub developer_prompt: Option<String>,
    pub reviewer_prompt: Option<String>,
}

impl TaskFlags {
    /// Whether no flag is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The reviews that a task can expect when it is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExpectedReviews {
    pub auto_review: bool,
    /// None: unlimited, or no review at all.
    pub max_review_cycles: Option<u32>,
}

impl ExpectedReviews {
    /// The reviews of a workflow. A gate that is off reports how often it would review.
    pub fn from_workflow(workflow: &Workflow) -> Self {
        let first = workflow.first_gate();
        let gate = first.or_else(|| workflow.phases.iter().find(|phase| phase.is_gate()));
        Self {
            auto_review: first.is_some(),
            max_review_cycles: gate.and_then(Phase::policy).and_then(|gate_policy| gate_policy.gate.bound.reviews()),
        }
    }
}

impl Settings {
    /// The workflow of one task. The first that sets a value wins: the command line, the task, its type, its preset, the
    /// gate, the defaults, the workflow itself.
    pub fn task_workflow(&self, task: &TaskSpec, flags: &TaskFlags) -> Result<Workflow, ConfigError> {
        let mut workflow = self.workflow(flags.preset.as_deref().unwrap_or(self.preset()))?;
        let kind = self.file.task_types.get(task.kind);
        apply_type(&mut workflow, kind);
        let of_task = GateKeys {
            max_cycles: task.max_review_cycles.map(|cycles| CycleBound(Count::Number(cycles))),
            ..GateKeys::default()
        };
        workflow = apply_request(workflow, task.effort, &of_task);
        workflow = apply_request(workflow, flags.effort, &flags.gate);
        if task.prompt.is_some() {
            workflow.prompts.remove(Role::Implement.as_str());
        }
        workflow.set_prompts(flags.developer_prompt.as_deref(), flags.reviewer_prompt.as_deref());
        let asked = flags.review.or(task.auto_review);
        switch(&mut workflow, asked, kind);
        let changes_code = matches!(task.kind, TaskType::Implement | TaskType::Improve);
        if asked.or(kind.auto_review).is_none() && changes_code {
            self.leave_checks_alone(&mut workflow);
        }
        let workflow = match task.kind {
            TaskType::Implement => workflow,
            TaskType::Improve => improving(workflow, asked.or(kind.auto_review), kind),
            TaskType::Review => reviewing(workflow),
            TaskType::Plan => planning(workflow, kind),
        };
        self.check_gates(&workflow)?;
        Ok(workflow)
    }

    /// The reviews that a task without flags can expect.
    pub fn expected(&self, task: &TaskSpec) -> Result<ExpectedReviews, ConfigError> {
        let workflow = self.task_workflow(task, &TaskFlags::default())?;
        Ok(match task.kind {
            TaskType::Implement | TaskType::Improve => ExpectedReviews::from_workflow(&workflow),
            TaskType::Review | TaskType::Plan => ExpectedReviews::default(),
        })
    }
}

fn span(minutes: Option<Minutes>) -> Option<TimeSpan> {
    minutes.map(Minutes::span)
}

/// The bound of a task type is for the one gate; its times are for all phases they fit.
fn apply_type(workflow: &mut Workflow, kind: &TaskTypeTable) {
    if let (Some(cycles), Some(policy)) = (kind.max_review_cycles, the_gate(workflow)) {
        policy.gate.bound = Bound::MaxCycles(cycles.0);
    }
    for phase in &mut workflow.phases {
        if let PhaseKind::Agent { role: Role::Implement, timeout, .. } = &mut phase.kind {
            *timeout = span(kind.timeout_minutes).or(*timeout);
        }
    }
    for GatePolicy { gate, .. } in workflow.gates_mut() {
        gate.review_timeout = span(kind.review_timeout_minutes).or(gate.review_timeout);
        gate.fix_timeout = span(kind.improve_timeout_minutes).or(gate.fix_timeout);
    }
}

/// Requests of the task or the command line are for every gate of the task.
fn apply_request(mut workflow: Workflow, effort: Option<Effort>, words: &GateKeys) -> Workflow {
    if let Some(effort) = effort {
        workflow = workflow.with_effort(effort);
    }
    workflow.gates_mut().for_each(|policy| words.apply_to(&mut policy.gate));
    workflow
}

/// Switches the only gate. If there are several, `false` switches off all of them, and `true` changes nothing.
fn switch(workflow: &mut Workflow, asked: Option<bool>, kind: &TaskTypeTable) {
    if let Some(policy) = the_gate(workflow) {
        policy.gate.enabled = asked.or(kind.auto_review).unwrap_or(policy.gate.enabled);
    } else if asked == Some(false) {
        workflow.gates_mut().for_each(|policy| policy.gate.enabled = false);
    }
}

/// One more fix of the work, then its gates: all or none of them if that is set.
fn improving(mut workflow: Workflow, asked: Option<bool>, kind: &TaskTypeTable) -> Workflow {
    let mut gates = gates_of_work(&workflow);
    for policy in gates.iter_mut().filter_map(Phase::policy_mut) {
        policy.gate.enabled = asked.unwrap_or(policy.gate.enabled);
    }
    let fixing = gates.iter().find_map(|phase| phase.policy()?.gate.fix_timeout);
    let timeout = span(kind.timeout_minutes).or(fixing);
    workflow.phases = vec![agent("improve", Role::Fix, timeout)];
    workflow.phases.append(&mut gates);
    alone(workflow)
}

/// The gates and nothing else: what they find ends the task.
fn reviewing(mut workflow: Workflow) -> Workflow {
    workflow.phases = gates_of_work(&workflow);
    for policy in workflow.phases.iter_mut().filter_map(Phase::policy_mut) {
        policy.gate.enabled = true;
        policy.gate.on_failure = OnFailure::Proceed;
        policy.gate.on_exhausted = OnExhausted::Stop;
        policy.gate.bound = Bound::MaxCycles(1);
        policy.gate.on_unclear = read_or_failed(&policy.gate.on_unclear);
        policy.gate.on_reviewer_failure = read_or_failed(&policy.gate.on_reviewer_failure);
    }
    alone(workflow)
}

/// Without a fixer, a review that cannot be read has failed; it has found nothing.
fn read_or_failed(ladder: &EscalationPolicy) -> EscalationPolicy {
    let rung = |rung: &FailureAction| match rung {
        FailureAction::NextAttempt | FailureAction::RequestChanges | FailureAction::NotPassed => FailureAction::Fail,
        FailureAction::Retry | FailureAction::Ask | FailureAction::Stop | FailureAction::Fail => *rung,
    };
    EscalationPolicy::new(&ladder.rungs().iter().map(rung).collect::<Vec<_>>())
}

/// A plan is written, no code.
fn planning(mut workflow: Workflow, kind: &TaskTypeTable) -> Workflow {
    let mut agents: Vec<_> = workflow.before.iter().chain(&workflow.phases).filter_map(agent_timeout).collect();
    agents.sort_by_key(|(role, _)| *role != Role::Plan);
    let timeout = span(kind.timeout_minutes).or(agents.first().and_then(|(_, timeout)| *timeout));
    workflow.phases = vec![agent("plan", Role::Plan, timeout)];
    alone(workflow)
}

fn agent_timeout(phase: &Phase) -> Option<(Role, Option<TimeSpan>)> {
    match &phase.kind {
        PhaseKind::Agent { role, timeout, .. } => Some((*role, *timeout)),
        PhaseKind::Gate(_) | PhaseKind::Check(_) => None,
    }
}

fn agent(name: &str, role: Role, timeout: Option<TimeSpan>) -> Phase {
    let kind = PhaseKind::Agent { role, timeout, researchers: 0 };
    Phase::new(name, kind)
}

/// The gates that judge work, not the plan before it. A gate that is off counts if there is no other.
fn gates_of_work(workflow: &Workflow) -> Vec<Phase> {
    let implements = |phase: &Phase| agent_timeout(phase).is_some_and(|(role, _)| role == Role::Implement);
    let start = workflow.phases.iter().position(implements).unwrap_or(0);
    let judging = workflow.phases.iter().skip(start).filter(|phase| phase.is_gate());
    let (off, mut gates): (Vec<_>, Vec<_>) = judging.cloned().partition(Phase::is_off);
    if gates.is_empty() {
        gates = off;
    }
    for phase in &mut gates {
        phase.per_item = false;
        if let Some(policy) = phase.policy_mut() {
            policy.restart_to = 0;
        }
    }
    gates
}

/// Such a task takes no part in what a run does before and after its tasks, takes no turn on the run's branch and does
/// not land there.
fn alone(mut workflow: Workflow) -> Workflow {
    (workflow.landing, workflow.arrangement) = (Landing::None, Scheduling::Queue);
    workflow.before.clear();
    workflow.after.clear();
    workflow.checkpoint_interval = None;
    workflow.completion = crate::workflow::Completion::Exit;
    workflow
}
