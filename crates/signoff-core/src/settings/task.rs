//! The workflow of one task: the phases of its type, with the settings of the task and the command line.

use serde::{Deserialize, Serialize};

use super::file::TaskTypeTable;
use super::values::Minutes;
use super::workflows::only_gate_mut;
use super::{ConfigError, Settings};
use crate::policy::{
    Bound, Count, Effort, EscalationPolicy, FailureAction, FailureStep, OnExhausted, OnFailure, TimeSpan,
};
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
    /// The expected reviews of a workflow. `max_review_cycles` is also set if the gate is off.
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
    /// The workflow of one task. Sources in order of precedence: the command line, the task, its type, `[presets]`,
    /// `[gate]`, `[defaults]`, the workflow itself.
    pub fn task_workflow(&self, task: &TaskSpec, flags: &TaskFlags) -> Result<Workflow, ConfigError> {
        let mut workflow = self.workflow(flags.preset.as_deref().unwrap_or(self.preset()))?;
        let kind = self.file.task_types.get(task.kind);
        apply_type(&mut workflow, kind);
        let task_keys = GateKeys {
            max_cycles: task.max_review_cycles.map(|cycles| CycleBound(Count::Number(cycles))),
            ..GateKeys::default()
        };
        workflow = apply_request(workflow, task.effort, &task_keys);
        workflow = apply_request(workflow, flags.effort, &flags.gate);
        if task.prompt.is_some() {
            workflow.prompts.remove(Role::Implement.into_str());
        }
        workflow.set_prompts(flags.developer_prompt.as_deref(), flags.reviewer_prompt.as_deref());
        let asked = flags.review.or(task.auto_review);
        set_gate_enabled(&mut workflow, asked, kind);
        let changes_code = matches!(task.kind, TaskType::Implement | TaskType::Improve);
        if asked.or(kind.auto_review).is_none() && changes_code {
            self.keep_only_checks_reviewer(&mut workflow);
        }
        let workflow = match task.kind {
            TaskType::Implement => workflow,
            TaskType::Improve => improve_workflow(workflow, asked.or(kind.auto_review), kind),
            TaskType::Review => review_workflow(workflow),
            TaskType::Plan => plan_workflow(workflow, kind),
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

/// Applies a task type: its limit to the only gate, its timeouts to all phases of their kind.
fn apply_type(workflow: &mut Workflow, kind: &TaskTypeTable) {
    if let (Some(cycles), Some(policy)) = (kind.max_review_cycles, only_gate_mut(workflow)) {
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

/// Applies an effort and gate keys to every gate of the task.
fn apply_request(mut workflow: Workflow, effort: Option<Effort>, keys: &GateKeys) -> Workflow {
    if let Some(effort) = effort {
        workflow = workflow.with_effort(effort);
    }
    workflow.gates_mut().for_each(|policy| keys.apply_to(&mut policy.gate));
    workflow
}

/// Switches the only gate on or off. If there are several, `false` switches off all of them, and `true` changes nothing.
fn set_gate_enabled(workflow: &mut Workflow, asked: Option<bool>, kind: &TaskTypeTable) {
    if let Some(policy) = only_gate_mut(workflow) {
        policy.gate.enabled = asked.or(kind.auto_review).unwrap_or(policy.gate.enabled);
    } else if asked == Some(false) {
        workflow.gates_mut().for_each(|policy| policy.gate.enabled = false);
    }
}

/// The workflow of an `improve` task: one more fix of the work, then its gates. `asked` switches all of them on or off.
fn improve_workflow(mut workflow: Workflow, asked: Option<bool>, kind: &TaskTypeTable) -> Workflow {
    let mut gates = gates_of_work(&workflow);
    for policy in gates.iter_mut().filter_map(Phase::policy_mut) {
        policy.gate.enabled = asked.unwrap_or(policy.gate.enabled);
    }
    let fixing = gates.iter().find_map(|phase| phase.policy()?.gate.fix_timeout);
    let timeout = span(kind.timeout_minutes).or(fixing);
    workflow.phases = vec![agent("improve", Role::Fix, timeout)];
    workflow.phases.append(&mut gates);
    detach_from_run(workflow)
}

/// The workflow of a `review` task: only the gates, without fixes.
fn review_workflow(mut workflow: Workflow) -> Workflow {
    workflow.phases = gates_of_work(&workflow);
    for policy in workflow.phases.iter_mut().filter_map(Phase::policy_mut) {
        policy.gate.enabled = true;
        policy.gate.on_failure = OnFailure::Proceed;
        policy.gate.on_exhausted = OnExhausted::Stop;
        policy.gate.bound = Bound::MaxCycles(1);
        policy.gate.on_unclear = fail_instead_of_fix(&policy.gate.on_unclear);
        policy.gate.on_reviewer_failure = fail_instead_of_fix(&policy.gate.on_reviewer_failure);
    }
    detach_from_run(workflow)
}

/// Replaces actions that need a fixer by `fail`.
fn fail_instead_of_fix(escalation: &EscalationPolicy) -> EscalationPolicy {
    let action = |action: &FailureAction| match action.step() {
        FailureStep::NotPassed => FailureAction::Fail,
        FailureStep::Retry | FailureStep::Ask | FailureStep::End => *action,
    };
    EscalationPolicy::new(&escalation.actions().iter().map(action).collect::<Vec<_>>())
}

/// The workflow of a `plan` task: one phase that writes the plan.
fn plan_workflow(mut workflow: Workflow, kind: &TaskTypeTable) -> Workflow {
    let mut agents: Vec<_> = workflow.before.iter().chain(&workflow.phases).filter_map(agent_timeout).collect();
    agents.sort_by_key(|(role, _)| *role != Role::Plan);
    let timeout = span(kind.timeout_minutes).or(agents.first().and_then(|(_, timeout)| *timeout));
    workflow.phases = vec![agent("plan", Role::Plan, timeout)];
    detach_from_run(workflow)
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

/// The gates that review work, not the plan before it. Gates that are off are returned only if no other exists.
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

/// Removes what connects a task to its run: the phases before and after the tasks, the schedule, and landing on the run's
/// branch.
fn detach_from_run(mut workflow: Workflow) -> Workflow {
    (workflow.landing, workflow.arrangement) = (Landing::None, Scheduling::Queue);
    workflow.before.clear();
    workflow.after.clear();
    workflow.checkpoint_interval = None;
    workflow.completion = crate::workflow::Completion::Exit;
    workflow
}
