//! All that one attempt needs to know, taken from the state when it was wished for.

use jiff::Timestamp;
use signoff_core::config;
use signoff_core::ids::{Commit, LoopId, RunId, TaskId};
use signoff_core::machine::{Job, JobKind, Loop, Policy};
use signoff_core::policy::Gate;
use signoff_core::task::{TaskSpec, TaskType};
use signoff_core::wire::Launch;
use signoff_core::workflow::{Phase, Role};

use crate::artifact;
use crate::board::{Place, Round};

#[derive(Debug, Clone)]
pub struct Assignment {
    pub run: RunId,
    pub loop_id: LoopId,
    pub task: Option<TaskId>,
    pub spec: TaskSpec,
    pub branch: String,
    pub place: Place,
    pub started: Timestamp,
    pub job: Job,
    pub launch: Launch,
    pub policy: Policy,
    pub state: Loop,
    pub last_round: Option<Round>,
    pub others: Vec<Neighbour>,
    /// How many agents work on the repository now, this one included.
    pub at_once: usize,
    /// Whether a writer may say that there are no more tasks.
    pub stop_marker: bool,
}

/// Another loop, as agents are told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbour {
    pub name: String,
    pub status: &'static str,
    pub summary: String,
    pub iteration: Option<u32>,
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

    pub fn phase_name(&self) -> &str {
        self.phase().map_or("land", |phase| phase.name.as_str())
    }

    /// Under which name this round's answers are kept.
    pub fn artifact(&self) -> artifact::Name {
        let about = About { run: self.run, task: self.task, spec: &self.spec, started: self.started };
        let (workflow, job) = (&self.policy.workflow, &self.job);
        artifact_name(&about, artifact::Gate { workflow, pass: job.pass, phase: job.phase, cycle: job.cycle })
    }

    /// The commit the reviewers of the last round saw.
    pub fn reviewed(&self) -> Option<&Commit> {
        self.last_round.as_ref().map(|round| &round.commit)
    }

    /// The review it belongs to: an improvement follows the review it answers.
    pub fn cycle(&self) -> u32 {
        match self.job.kind {
            JobKind::Work { role: Role::Fix, .. } => self.spec.first_review.unwrap_or(1),
            JobKind::Work { .. }
            | JobKind::Research { .. }
            | JobKind::Review { .. }
            | JobKind::Check
            | JobKind::Fix { .. }
            | JobKind::Combine
            | JobKind::Land => self.job.cycle,
        }
    }

    /// Whether it only looks.
    pub fn is_reading(&self) -> bool {
        match self.job.kind {
            JobKind::Review { .. } | JobKind::Check => true,
            JobKind::Work { .. }
            | JobKind::Research { .. }
            | JobKind::Fix { .. }
            | JobKind::Combine
            | JobKind::Land => false,
        }
    }
}

/// A review of another task's work counts among that task's reviews.
pub fn artifact_name(about: &About<'_>, gate: artifact::Gate<'_>) -> artifact::Name {
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
    pub task: Option<TaskId>,
    pub spec: &'a TaskSpec,
    pub started: Timestamp,
}
