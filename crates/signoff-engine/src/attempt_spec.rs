//! The inputs of one attempt, copied from the run state when the attempt is requested.

use std::sync::Arc;

use jiff::Timestamp;
use signoff_core::ids::{AttemptId, Commit, LoopId, RunId, TaskId};
use signoff_core::machine::{Job, JobKind, Loop, Policy, Stage};
use signoff_core::policy::Gate;
use signoff_core::review::Inconclusive;
use signoff_core::settings;
use signoff_core::source::planner::PlannedTask;
use signoff_core::state_v4::IterationState;
use signoff_core::task::{TaskSpec, TaskType};
use signoff_core::view::{LoopState, ReviewRound, TaskStatus, Workspace};
use signoff_core::wire::Launch;
use signoff_core::workflow::{Phase, Role};

use crate::artifact;

/// The inputs of one attempt.
#[derive(Debug, Clone)]
pub struct AttemptSpec {
    pub run: RunId,
    pub loop_id: LoopId,
    /// The task of the attempt; for a checkpoint review, the task under review.
    pub task_id: Option<TaskId>,
    /// The part of the run, if the loop has no task of its own.
    pub part: Option<RunPart>,
    pub task_spec: TaskSpec,
    pub branch: String,
    pub workspace: Workspace,
    /// The branch that the work lands on; `None` for the default branch.
    pub target: Option<String>,
    /// The commit that landed there last.
    pub last_landed: Option<Commit>,
    /// The heads of the run's loops that are landing, including this one.
    pub landing_heads: Vec<Commit>,
    pub started: Timestamp,
    pub job: Job,
    pub launch: Launch,
    pub policy: Policy,
    pub machine: Arc<Loop>,
    pub last_round: Option<Arc<ReviewRound>>,
    pub siblings: Vec<SiblingLoop>,
    /// Number of agents that work on the repository now, including this one.
    pub agents_at_work: usize,
    /// Number of loops that work in the worktree now, including this one. If there are several, a diff does not show
    /// which loop made a change.
    pub loops_in_worktree: usize,
    /// Whether a writer may report that no tasks are left.
    pub stop_marker: bool,
    /// The items of its plan, as last read; empty if the plan is implemented as a whole.
    pub items: Vec<PlannedTask>,
    /// The head when the current item was started.
    pub item_start: Option<Commit>,
    /// The finished researchers of the current phase.
    pub researched: Vec<AttemptId>,
    /// Why the previous attempt's answer was rejected.
    pub rejected_answer: Option<String>,
    /// Why this reviewer's last answer about the same commit could not be parsed.
    pub unreadable: Option<Inconclusive>,
}

/// A part of a run that has no task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunPart {
    /// The planners' answers so far, and why the last one was rejected.
    Planning { tasks: Vec<PlannedTask>, groups: Vec<Vec<String>>, rejection: Option<String> },
    /// The final review of everything that the run changed.
    FinalReview,
    /// A review of unfinished work of a loop.
    Checkpoint { target: LoopId, number: u32 },
}

impl RunPart {
    pub fn for_loop(loop_id: &LoopId, loop_state: &LoopState) -> Option<Self> {
        if *loop_id == LoopId::planning() {
            let (tasks, groups) = (loop_state.tasks.clone(), loop_state.groups.clone());
            return Some(Self::Planning { tasks, groups, rejection: loop_state.rejected_answer() });
        }
        if *loop_id == LoopId::final_review() {
            return Some(Self::FinalReview);
        }
        loop_id.checkpoint_target().map(|(target, number)| Self::Checkpoint { target, number })
    }

    /// The loop under review, for a checkpoint.
    pub fn reviewed_loop(&self) -> Option<&LoopId> {
        match self {
            Self::Checkpoint { target, .. } => Some(target),
            Self::Planning { .. } | Self::FinalReview => None,
        }
    }
}

/// Another loop of the run, as described in prompts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiblingLoop {
    pub name: String,
    pub status: TaskStatus,
    /// The title of the loop's task.
    pub title: String,
    pub iteration: u32,
}

impl AttemptSpec {
    /// The current gate, or the next one. Its settings also apply to the work before it.
    pub fn gate(&self) -> Option<&Gate> {
        let phases = self.policy.workflow.phases.get(self.job.phase..)?;
        phases.iter().find_map(|phase| phase.policy()).map(|gate_policy| &gate_policy.gate)
    }

    /// The current phase; `None` while landing.
    pub fn phase(&self) -> Option<&Phase> {
        self.policy.workflow.phases.get(self.job.phase)
    }

    /// The workflow, phase and task of the job, for lookups in the configuration.
    pub fn phase_context(&self) -> Option<settings::PhaseContext<'_>> {
        let (workflow, phase) = (&self.policy.workflow, self.phase()?);
        Some(settings::PhaseContext { workflow, phase, task: &self.task_spec })
    }

    /// Index of the agent to use: 0 is the assigned agent, higher numbers are its fallbacks.
    pub fn agent_index(&self) -> usize {
        self.machine.agent_index(self.job.attempt)
    }

    pub fn phase_name(&self) -> &str {
        self.phase().map_or("land", |phase| phase.name.as_str())
    }

    /// The file name of this cycle's answers.
    pub fn artifact(&self) -> artifact::ArtifactName {
        let (workflow, job) = (&self.policy.workflow, &self.job);
        self.artifact_at(artifact::GateReview { workflow, pass: job.pass, phase: job.phase, cycle: job.cycle })
    }

    /// The file name of the last cycle's answers.
    pub fn last_artifact(&self) -> Option<artifact::ArtifactName> {
        let round = self.last_round.as_ref()?;
        let ReviewRound { pass, phase, cycle, .. } = **round;
        Some(self.artifact_at(artifact::GateReview { workflow: &self.policy.workflow, pass, phase, cycle }))
    }

    fn artifact_at(&self, gate: artifact::GateReview<'_>) -> artifact::ArtifactName {
        let Self { run, loop_id, task_id: task, task_spec: spec, started, .. } = self;
        artifact_name(&ArtifactSubject { run: *run, loop_id, task: *task, spec, started: *started }, gate)
    }

    /// The base of the diff. For reviewers of one plan item, the head when that item was started.
    pub fn base(&self) -> &Commit {
        let of_item =
            matches!(self.job.kind, JobKind::Review { .. }) && self.phase().is_some_and(|phase| phase.per_item);
        self.item_start.as_ref().filter(|_| of_item).unwrap_or(&self.workspace.base)
    }

    /// Index and content of the current plan item.
    pub fn item(&self) -> Option<(usize, &PlannedTask)> {
        let index = usize::try_from(self.job.item).ok().filter(|_| self.phase().is_some_and(|phase| phase.per_item))?;
        self.items.get(index).map(|item| (index, item))
    }

    /// Whether another program started the current agent phase.
    pub fn was_started_elsewhere(&self) -> bool {
        self.imported_state().is_some() && self.phase().is_some_and(|phase| phase.policy().is_none())
    }

    /// How many reviews of the current gate another program held: one before each fix.
    pub fn cycles_elsewhere(&self) -> u32 {
        let phases = self.imported_state().and_then(|state| state.iterations.last());
        let number = self.policy.workflow.number(self.job.phase);
        phases.and_then(|iteration| iteration.phases.retries(number)).unwrap_or(0)
    }

    /// The imported state, if another program left it in the current phase.
    fn imported_state(&self) -> Option<&IterationState> {
        let here = (self.job.pass, self.policy.workflow.number(self.job.phase));
        let state = self.task_spec.imported.as_ref().map(|imported| &imported.state);
        state.filter(|state| (state.current_iteration, state.current_phase) == here)
    }

    /// The loop id that agents see; `None` if they work for the whole run.
    pub fn visible_loop(&self) -> Option<&LoopId> {
        match &self.part {
            Some(RunPart::Checkpoint { target, .. }) => Some(target),
            Some(RunPart::Planning { .. } | RunPart::FinalReview) => None,
            None => Some(&self.loop_id),
        }
    }

    /// The value of `SIGNOFF_REVIEW_KIND`.
    pub fn review_kind(&self) -> &'static str {
        match self.part {
            None => "task",
            Some(RunPart::Checkpoint { .. }) => "checkpoint",
            Some(RunPart::Planning { .. }) => "run",
            Some(RunPart::FinalReview) => "final",
        }
    }

    /// Whether this is a planner, which only answers and changes no files.
    pub fn is_planning(&self) -> bool {
        matches!(self.part, Some(RunPart::Planning { .. })) && !matches!(self.job.kind, JobKind::Review { .. })
    }

    /// The commit that the last cycle reviewed.
    pub fn reviewed(&self) -> Option<&Commit> {
        self.last_round.as_ref().map(|round| &round.commit)
    }

    /// The number of the review it belongs to. An improvement belongs to the review that it answers.
    pub fn cycle(&self) -> u32 {
        match self.job.kind {
            JobKind::Review { .. } if self.checkpoint().is_some() => self.checkpoint().unwrap_or(1),
            JobKind::Work { role: Role::Fix, .. } => self.task_spec.first_review.unwrap_or(1),
            JobKind::Work { .. }
            | JobKind::Research { .. }
            | JobKind::Review { .. }
            | JobKind::Check
            | JobKind::Fix { .. }
            | JobKind::Combine { .. }
            | JobKind::Land => self.job.cycle,
        }
    }

    /// The number of the checkpoint, if this is a checkpoint review.
    fn checkpoint(&self) -> Option<u32> {
        match self.part {
            Some(RunPart::Checkpoint { number, .. }) => Some(number),
            Some(RunPart::Planning { .. } | RunPart::FinalReview) | None => None,
        }
    }

    /// Whether other attempts fix the other findings of the same review, in parallel or in turn.
    pub fn shares_fixes(&self) -> bool {
        let several = matches!(&self.machine.stage, Stage::Fixing { fixes, .. } if fixes.len() > 1);
        several && matches!(self.job.kind, JobKind::Fix { .. })
    }

    /// Whether an agent may commit to the worktree.
    pub fn writes(&self) -> bool {
        matches!(self.job.kind, JobKind::Work { .. } | JobKind::Fix { .. })
    }

    /// Whether the job only reads the worktree.
    pub fn is_read_only(&self) -> bool {
        match self.job.kind {
            JobKind::Review { .. } | JobKind::Research { .. } | JobKind::Check => true,
            JobKind::Work { .. } | JobKind::Fix { .. } | JobKind::Combine { .. } | JobKind::Land => false,
        }
    }
}

/// `Task #7`, or for a loop without a task the run: `Run 3 (plan)`.
pub fn subject_label(run: RunId, loop_id: &LoopId, task: Option<TaskId>) -> String {
    task.map_or_else(|| format!("Run {run} ({loop_id})"), |task| format!("Task #{task}"))
}

/// The file name of a review. A review of another task's work is numbered with that task's reviews.
pub fn artifact_name(subject: &ArtifactSubject<'_>, gate: artifact::GateReview<'_>) -> artifact::ArtifactName {
    if let (Some((_, number)), Some(task)) = (subject.loop_id.checkpoint_target(), subject.task) {
        return artifact::ArtifactName::for_checkpoint(task, subject.started, number);
    }
    if subject.loop_id.is_run_level() {
        let phase = gate.workflow.phases.get(gate.phase).map_or("review", |phase| phase.name.as_str());
        return artifact::ArtifactName::for_run(subject.run, subject.started, phase, gate.cycle);
    }
    match (subject.task, subject.spec.kind, subject.spec.continues) {
        (Some(_), TaskType::Review, Some(reviewed)) => {
            let first = subject.spec.first_review.unwrap_or(1);
            let cycle = first + gate.cycle.saturating_sub(1);
            artifact::ArtifactName::for_task(reviewed, subject.started, artifact::GateReview { cycle, ..gate })
        }
        (Some(task), _, _) => artifact::ArtifactName::for_task(task, subject.started, gate),
        (None, _, _) => artifact::ArtifactName::for_run(subject.run, subject.started, "review", gate.cycle),
    }
}

/// The parts of an artifact's name besides its gate.
pub struct ArtifactSubject<'a> {
    pub run: RunId,
    pub loop_id: &'a LoopId,
    pub task: Option<TaskId>,
    pub spec: &'a TaskSpec,
    pub started: Timestamp,
}
