//! All that one attempt needs to know, taken from the state when it was wished for.

use jiff::Timestamp;
use signoff_core::config;
use signoff_core::ids::{AttemptId, Commit, LoopId, RunId, TaskId};
use signoff_core::machine::{Job, JobKind, Loop, Policy, Stage};
use signoff_core::policy::Gate;
use signoff_core::review::Inconclusive;
use signoff_core::source::planner::PlannedTask;
use signoff_core::state_v4::State;
use signoff_core::task::{TaskSpec, TaskType};
use signoff_core::view::Status;
use signoff_core::wire::Launch;
use signoff_core::workflow::{Phase, Role};

use crate::artifact;
use crate::board::{Place, Round, Worked};

#[derive(Debug, Clone)]
pub struct Assignment {
    pub run: RunId,
    pub loop_id: LoopId,
    /// The task it serves; for a checkpoint that of the loop it looks at.
    pub task: Option<TaskId>,
    /// What it is, where it carries no task of its own.
    pub part: Option<Part>,
    pub spec: TaskSpec,
    pub branch: String,
    pub place: Place,
    /// The branch its work lands on; none for the default branch.
    pub target: Option<String>,
    /// What landed there last.
    pub last_landed: Option<Commit>,
    /// The heads of the run's loops that are landing, this one included.
    pub landing_heads: Vec<Commit>,
    pub started: Timestamp,
    pub job: Job,
    pub launch: Launch,
    pub policy: Policy,
    pub state: Loop,
    pub last_round: Option<Round>,
    pub others: Vec<Neighbour>,
    /// How many agents work on the repository now, this one included.
    pub at_once: usize,
    /// How many loops work in its worktree now, this one included. With several, a diff does not show which
    /// loop made a change.
    pub in_same_tree: usize,
    /// Whether a writer may say that there are no more tasks.
    pub stop_marker: bool,
    /// The tasks of its plan, as they were read last; none where it is worked as a whole.
    pub items: Vec<PlannedTask>,
    /// The head when the item at hand was begun.
    pub item_began: Option<Commit>,
    /// The helpers of the phase at hand that came back.
    pub researched: Vec<AttemptId>,
    /// Why the answer of the attempt before was refused, if it was.
    pub refused: Option<String>,
    /// This reviewer's last answer about the same commit, where it could not be read.
    pub unreadable: Option<Inconclusive>,
}

/// A part of a run that carries no task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// What planners answered so far, and why the last answer was refused.
    Planning {
        tasks: Vec<PlannedTask>,
        groups: Vec<Vec<String>>,
        refused: Option<String>,
    },
    /// Everything the run changed.
    Whole,
    Checkpoint {
        of: LoopId,
        number: u32,
    },
}

impl Part {
    pub fn of(loop_id: &LoopId, worked: &Worked) -> Option<Self> {
        if *loop_id == LoopId::planning() {
            let (tasks, groups) = (worked.tasks.clone(), worked.groups.clone());
            return Some(Self::Planning { tasks, groups, refused: worked.refused() });
        }
        if *loop_id == LoopId::whole() {
            return Some(Self::Whole);
        }
        loop_id.of_checkpoint().map(|(of, number)| Self::Checkpoint { of, number })
    }

    /// The loop that is looked at while it is at work.
    pub fn looks_at(&self) -> Option<&LoopId> {
        match self {
            Self::Checkpoint { of, .. } => Some(of),
            Self::Planning { .. } | Self::Whole => None,
        }
    }
}

/// Another loop, as agents are told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbour {
    pub name: String,
    pub status: Status,
    /// The title of its task.
    pub title: String,
    pub iteration: u32,
}

impl Assignment {
    /// The gate at hand, or the next one: its words hold for the work before it too.
    pub fn gate(&self) -> Option<&Gate> {
        let phases = self.policy.workflow.phases.get(self.job.phase..)?;
        phases.iter().find_map(|phase| phase.judge()).map(|judge| &judge.gate)
    }

    /// The phase at hand; none while landing.
    pub fn phase(&self) -> Option<&Phase> {
        self.policy.workflow.phases.get(self.job.phase)
    }

    /// Where the job stands, for the configuration.
    pub fn job_place(&self) -> Option<config::Place<'_>> {
        let (workflow, phase) = (&self.policy.workflow, self.phase()?);
        Some(config::Place { workflow, phase, task: &self.spec })
    }

    /// Which agent has its turn: 0 is the one that was assigned, then those that fall in for it.
    pub fn turn(&self) -> usize {
        self.state.turn(self.job.attempt)
    }

    pub fn phase_name(&self) -> &str {
        self.phase().map_or("land", |phase| phase.name.as_str())
    }

    /// Under which name this round's answers are kept.
    pub fn artifact(&self) -> artifact::Name {
        let (workflow, job) = (&self.policy.workflow, &self.job);
        self.artifact_at(artifact::Gate { workflow, pass: job.pass, phase: job.phase, cycle: job.cycle })
    }

    /// Under which name those of the last round are.
    pub fn last_artifact(&self) -> Option<artifact::Name> {
        let round = self.last_round.as_ref()?;
        let (workflow, Round { pass, phase, cycle, .. }) = (&self.policy.workflow, round);
        Some(self.artifact_at(artifact::Gate { workflow, pass: *pass, phase: *phase, cycle: *cycle }))
    }

    fn artifact_at(&self, gate: artifact::Gate<'_>) -> artifact::Name {
        let Self { run, loop_id, task, spec, started, .. } = self;
        artifact_name(&About { run: *run, loop_id, task: *task, spec, started: *started }, gate)
    }

    /// What its changes are counted from: for the reviewers of one item the head when that was begun.
    pub fn base(&self) -> &Commit {
        let of_item = matches!(self.job.kind, JobKind::Review { .. })
            && self.phase().is_some_and(|phase| phase.per_item);
        self.item_began.as_ref().filter(|_| of_item).unwrap_or(&self.place.base)
    }

    /// The task of the plan that is at hand, and how many there are.
    pub fn item(&self) -> Option<(usize, &PlannedTask)> {
        let index = usize::try_from(self.job.item)
            .ok()
            .filter(|_| self.phase().is_some_and(|phase| phase.per_item))?;
        self.items.get(index).map(|item| (index, item))
    }

    /// Whether another program began the agent phase at hand.
    pub fn is_begun_elsewhere(&self) -> bool {
        self.left_here().is_some() && self.phase().is_some_and(|phase| phase.judge().is_none())
    }

    /// How many reviews of the gate at hand another program held, as far as is known: one before each fix.
    pub fn cycles_elsewhere(&self) -> u32 {
        let phases = self.left_here().and_then(|state| state.iterations.last());
        let number = self.policy.workflow.number(self.job.phase);
        phases.and_then(|iteration| iteration.phases.retries(number)).unwrap_or(0)
    }

    /// The state that another program left in the phase at hand.
    fn left_here(&self) -> Option<&State> {
        let here = (self.job.pass, self.policy.workflow.number(self.job.phase));
        let state = self.spec.taken_over.as_ref().map(|taken_over| &taken_over.state);
        state.filter(|state| (state.current_iteration, state.current_phase) == here)
    }

    /// The loop that agents are told they serve; none where they serve the whole run.
    pub fn told_loop(&self) -> Option<&LoopId> {
        match &self.part {
            Some(Part::Checkpoint { of, .. }) => Some(of),
            Some(Part::Planning { .. } | Part::Whole) => None,
            None => Some(&self.loop_id),
        }
    }

    /// `SIGNOFF_REVIEW_KIND`'s word.
    pub fn review_kind(&self) -> &'static str {
        match self.part {
            None => "task",
            Some(Part::Checkpoint { .. }) => "checkpoint",
            Some(Part::Planning { .. }) => "run",
            Some(Part::Whole) => "final",
        }
    }

    /// Whether it is a planner, whose answer is all that it leaves.
    pub fn is_planning(&self) -> bool {
        matches!(self.part, Some(Part::Planning { .. })) && !matches!(self.job.kind, JobKind::Review { .. })
    }

    /// The commit the reviewers of the last round saw.
    pub fn reviewed(&self) -> Option<&Commit> {
        self.last_round.as_ref().map(|round| &round.commit)
    }

    /// The review it belongs to: an improvement follows the review it answers.
    pub fn cycle(&self) -> u32 {
        match self.job.kind {
            JobKind::Review { .. } if self.checkpoint().is_some() => self.checkpoint().unwrap_or(1),
            JobKind::Work { role: Role::Fix, .. } => self.spec.first_review.unwrap_or(1),
            JobKind::Work { .. }
            | JobKind::Research { .. }
            | JobKind::Review { .. }
            | JobKind::Check
            | JobKind::Fix { .. }
            | JobKind::Combine { .. }
            | JobKind::Land => self.job.cycle,
        }
    }

    /// The how manieth look at a loop at work this is, if it is one.
    fn checkpoint(&self) -> Option<u32> {
        match self.part {
            Some(Part::Checkpoint { number, .. }) => Some(number),
            Some(Part::Planning { .. } | Part::Whole) | None => None,
        }
    }

    /// Whether others fix the other findings of the same review, now or in turn.
    pub fn shares_fixes(&self) -> bool {
        let several = matches!(&self.state.stage, Stage::Fixing { fixes, .. } if fixes.len() > 1);
        several && matches!(self.job.kind, JobKind::Fix { .. })
    }

    /// Whether it only looks.
    pub fn is_reading(&self) -> bool {
        match self.job.kind {
            JobKind::Review { .. } | JobKind::Research { .. } | JobKind::Check => true,
            JobKind::Work { .. } | JobKind::Fix { .. } | JobKind::Combine { .. } | JobKind::Land => false,
        }
    }
}

/// `Task #7`, or the run where the loop carries no task: `Run 3 (plan)`.
pub fn whose(run: RunId, loop_id: &LoopId, task: Option<TaskId>) -> String {
    task.map_or_else(|| format!("Run {run} ({loop_id})"), |task| format!("Task #{task}"))
}

/// A review of another task's work counts among that task's reviews.
pub fn artifact_name(about: &About<'_>, gate: artifact::Gate<'_>) -> artifact::Name {
    if let (Some((_, number)), Some(task)) = (about.loop_id.of_checkpoint(), about.task) {
        return artifact::Name::of_checkpoint(task, about.started, number);
    }
    if about.loop_id.serves_the_run() {
        let phase = gate.workflow.phases.get(gate.phase).map_or("review", |phase| phase.name.as_str());
        return artifact::Name::of_run(about.run, about.started, phase, gate.cycle);
    }
    match (about.task, about.spec.kind, about.spec.continues) {
        (Some(_), TaskType::Review, Some(reviewed)) => {
            let first = about.spec.first_review.unwrap_or(1);
            let cycle = first + gate.cycle.saturating_sub(1);
            artifact::Name::of_task(reviewed, about.started, artifact::Gate { cycle, ..gate })
        }
        (Some(task), _, _) => artifact::Name::of_task(task, about.started, gate),
        (None, _, _) => artifact::Name::of_run(about.run, about.started, "review", gate.cycle),
    }
}

/// What an artifact's name depends on besides its gate.
pub struct About<'a> {
    pub run: RunId,
    pub loop_id: &'a LoopId,
    pub task: Option<TaskId>,
    pub spec: &'a TaskSpec,
    pub started: Timestamp,
}
