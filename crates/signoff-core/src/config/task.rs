//! The workflow of one task: its type's phases, with what the task and the command line say.

use serde::{Deserialize, Serialize};

use super::tables::TaskTypeSettings;
use super::value::Minutes;
use super::workflows::the_gate;
use super::{ConfigError, Setting, Settings};
use crate::policy::{Bound, Count, Effort, Ladder, OnExhausted, OnFailure, Rung, Span};
use crate::task::{TaskSpec, TaskType};
use crate::workflow::{Arrangement, GateWords, Landing, Phase, PhaseKind, Restarting, Role, Workflow};

/// What the command line says about a task.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskFlags {
    /// The workflow, where it is not the configured one.
    pub preset: Option<String>,
    /// `--review` or `--no-review`.
    pub review: Option<bool>,
    pub effort: Option<Effort>,
    /// Words for every gate: `--fail-on`, `--max-cycles`.
    pub gate: GateWords,
    /// Files with prompts: `--developer-prompt`, `--reviewer-prompt`.
    pub developer_prompt: Option<String>,
    pub reviewer_prompt: Option<String>,
}

impl TaskFlags {
    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What a task can expect when it is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Expected {
    pub auto_review: bool,
    /// None: unlimited, or no review at all.
    pub max_review_cycles: Option<u32>,
}

impl Expected {
    /// What a task can expect that is worked like this. A gate that is off says how often it would review.
    pub fn of(workflow: &Workflow) -> Self {
        let first = workflow.first_gate();
        let gate = first.or_else(|| workflow.phases.iter().find(|phase| phase.is_gate()));
        Self {
            auto_review: first.is_some(),
            max_review_cycles: gate.and_then(Phase::judge).and_then(|judge| judge.gate.bound.reviews()),
        }
    }
}

impl Settings {
    /// The workflow of one task. Of two that speak about one value the first counts: the command line, the
    /// task, its type, its preset, the gate, the defaults, the workflow as it is shipped.
    pub fn task_workflow(&self, task: &TaskSpec, flags: &TaskFlags) -> Result<Workflow, ConfigError> {
        let mut workflow = self.workflow(flags.preset.as_deref().unwrap_or(self.preset()))?;
        let kind = self.written.task_types.of(task.kind);
        lay_type(&mut workflow, kind);
        let of_task = GateWords { max_cycles: task.max_review_cycles.map(Count::Of), ..GateWords::default() };
        workflow = lay_wishes(workflow, task.effort, &of_task);
        workflow = lay_wishes(workflow, flags.effort, &flags.gate);
        if task.prompt.is_some() {
            workflow.prompts.remove(Role::Implement.word());
        }
        workflow.lay_prompts(flags.developer_prompt.as_deref(), flags.reviewer_prompt.as_deref());
        let asked = flags.review.or(task.auto_review);
        switch(&mut workflow, asked, kind);
        let changes_code = matches!(task.kind, TaskType::Implement | TaskType::Improve);
        if asked.or(value(&kind.auto_review)).is_none() && changes_code {
            self.leave_checks_alone(&mut workflow);
        }
        let workflow = match task.kind {
            TaskType::Implement => workflow,
            TaskType::Improve => improving(workflow, asked.or(value(&kind.auto_review)), kind),
            TaskType::Review => reviewing(workflow),
            TaskType::Plan => planning(workflow, kind),
        };
        self.check_gates(&workflow)?;
        Ok(workflow)
    }

    /// What a task that says no more than this can expect.
    pub fn expected(&self, task: &TaskSpec) -> Result<Expected, ConfigError> {
        let workflow = self.task_workflow(task, &TaskFlags::default())?;
        Ok(match task.kind {
            TaskType::Implement | TaskType::Improve => Expected::of(&workflow),
            TaskType::Review | TaskType::Plan => Expected::default(),
        })
    }
}

fn value<T: Copy>(setting: &Option<Setting<T>>) -> Option<T> {
    setting.as_ref().map(|setting| setting.value)
}

fn span(setting: &Option<Setting<Minutes>>) -> Option<Span> {
    value(setting).map(|minutes| Span::minutes(minutes.0))
}

fn gate(phase: &Phase) -> Option<&Restarting> {
    match &phase.kind {
        PhaseKind::Gate(policy) => Some(policy),
        PhaseKind::Agent { .. } | PhaseKind::Check(_) => None,
    }
}

/// The bound of a task type is for the one gate; its times are for all phases they fit.
fn lay_type(workflow: &mut Workflow, kind: &TaskTypeSettings) {
    if let (Some(cycles), Some(policy)) = (value(&kind.max_review_cycles), the_gate(workflow)) {
        policy.gate.bound = Bound::MaxCycles(cycles.small());
    }
    for phase in &mut workflow.phases {
        match &mut phase.kind {
            PhaseKind::Agent { role: Role::Implement, timeout, .. } => {
                *timeout = span(&kind.timeout_minutes).or(*timeout);
            }
            PhaseKind::Gate(policy) => {
                let gate = &mut policy.gate;
                gate.review_timeout = span(&kind.review_timeout_minutes).or(gate.review_timeout);
                gate.fix_timeout = span(&kind.improve_timeout_minutes).or(gate.fix_timeout);
            }
            PhaseKind::Agent { .. } | PhaseKind::Check(_) => {}
        }
    }
}

/// A wish of the task or the command line is for every gate of the task.
fn lay_wishes(mut workflow: Workflow, effort: Option<Effort>, words: &GateWords) -> Workflow {
    if let Some(effort) = effort {
        workflow = workflow.with_effort(effort);
    }
    for phase in &mut workflow.phases {
        if let PhaseKind::Gate(policy) = &mut phase.kind {
            words.lay_over(&mut policy.gate);
        }
    }
    workflow
}

/// Switches the one gate. Where there are several, a no is for all of them, and a yes changes nothing.
fn switch(workflow: &mut Workflow, asked: Option<bool>, kind: &TaskTypeSettings) {
    if let Some(policy) = the_gate(workflow) {
        policy.gate.enabled = asked.or(value(&kind.auto_review)).unwrap_or(policy.gate.enabled);
    } else if asked == Some(false) {
        for phase in &mut workflow.phases {
            if let PhaseKind::Gate(policy) = &mut phase.kind {
                policy.gate.enabled = false;
            }
        }
    }
}

/// One more go at the work, then its gates: all or none of them where that is said.
fn improving(mut workflow: Workflow, asked: Option<bool>, kind: &TaskTypeSettings) -> Workflow {
    let mut gates = gates_of_work(&workflow);
    for policy in gates.iter_mut().filter_map(Phase::judge_mut) {
        policy.gate.enabled = asked.unwrap_or(policy.gate.enabled);
    }
    let fixing = gates.iter().find_map(|phase| gate(phase)?.gate.fix_timeout);
    let timeout = span(&kind.timeout_minutes).or(fixing);
    workflow.phases = vec![agent("improve", Role::Fix, timeout)];
    workflow.phases.append(&mut gates);
    alone(workflow)
}

/// The gates and nothing else: what they find ends the task.
fn reviewing(mut workflow: Workflow) -> Workflow {
    workflow.phases = gates_of_work(&workflow);
    for policy in workflow.phases.iter_mut().filter_map(Phase::judge_mut) {
        policy.gate.enabled = true;
        policy.gate.on_failure = OnFailure::Proceed;
        policy.gate.on_exhausted = OnExhausted::Stop;
        policy.gate.bound = Bound::MaxCycles(1);
        policy.gate.on_unclear = heard_or_failed(&policy.gate.on_unclear);
        policy.gate.on_reviewer_failure = heard_or_failed(&policy.gate.on_reviewer_failure);
    }
    alone(workflow)
}

/// Where nobody fixes, a review that was not heard has failed; it has found nothing.
fn heard_or_failed(ladder: &Ladder) -> Ladder {
    let rung = |rung: &Rung| match rung {
        Rung::NextAttempt | Rung::RequestChanges | Rung::NotPassed => Rung::Fail,
        Rung::Retry | Rung::Ask | Rung::Stop | Rung::Fail => *rung,
    };
    Ladder::of(&ladder.rungs().iter().map(rung).collect::<Vec<_>>())
}

/// A plan is written, no code.
fn planning(mut workflow: Workflow, kind: &TaskTypeSettings) -> Workflow {
    let mut agents: Vec<_> =
        workflow.before.iter().chain(&workflow.phases).filter_map(agent_timeout).collect();
    agents.sort_by_key(|(role, _)| *role != Role::Plan);
    let timeout = span(&kind.timeout_minutes).or(agents.first().and_then(|(_, timeout)| *timeout));
    workflow.phases = vec![agent("plan", Role::Plan, timeout)];
    alone(workflow)
}

fn agent_timeout(phase: &Phase) -> Option<(Role, Option<Span>)> {
    match &phase.kind {
        PhaseKind::Agent { role, timeout, .. } => Some((*role, *timeout)),
        PhaseKind::Gate(_) | PhaseKind::Check(_) => None,
    }
}

fn agent(name: &str, role: Role, timeout: Option<Span>) -> Phase {
    let kind = PhaseKind::Agent { role, timeout, researchers: 0 };
    Phase::of(name, kind)
}

/// The gates that judge work, not the plan before it. A gate that is off counts if there is no other.
fn gates_of_work(workflow: &Workflow) -> Vec<Phase> {
    let implements = |phase: &Phase| agent_timeout(phase).is_some_and(|(role, _)| role == Role::Implement);
    let start = workflow.phases.iter().position(implements).unwrap_or(0);
    let judging = workflow.phases.iter().skip(start).filter(|phase| gate(phase).is_some());
    let (off, mut gates): (Vec<_>, Vec<_>) = judging.cloned().partition(Phase::is_off);
    if gates.is_empty() {
        gates = off;
    }
    for phase in &mut gates {
        phase.per_item = false;
        if let Some(policy) = phase.judge_mut() {
            policy.restart_to = 0;
        }
    }
    gates
}

/// Such a task takes no part in what a run does before and after its tasks, takes no turn on the run's branch and does
/// not land there.
fn alone(mut workflow: Workflow) -> Workflow {
    (workflow.landing, workflow.arrangement) = (Landing::None, Arrangement::Queue);
    workflow.before.clear();
    workflow.after.clear();
    workflow.checkpoint_interval = None;
    workflow.completion = crate::workflow::Completion::Exit;
    workflow
}
