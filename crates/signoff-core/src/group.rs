//! The state machine of a run: which loops run, when a group is finished, what lands next.
//!
//! It sees a loop only as a `LoopStatus`, which is derived from the loop's own state, so the two state machines
//! cannot disagree. As for loops, effects follow from the difference between two states.

mod transitions;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::ids::LoopId;
use crate::machine::{Loop, Outcome, PauseReason, Stage};
use crate::settings::TaskFlags;
use crate::workflow::{Landing, Scheduling, Workflow};

/// The source of tasks for a run with slots.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskSource {
    /// The queue in the store.
    #[default]
    Queue,
    /// A tracker with its own program, by name.
    Program { name: String },
    /// A tracker's file, which is read-only.
    File { path: String },
}

impl TaskSource {
    /// Whether tasks are claimed and closed at the source.
    pub fn closes_tasks(&self) -> bool {
        matches!(self, Self::Program { .. })
    }

    /// Whether the tasks come from a tracker.
    pub fn is_tracker(&self) -> bool {
        *self != Self::Queue
    }
}

/// The policy of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPolicy {
    #[serde(rename = "arrangement")]
    pub scheduling: Scheduling,
    pub landing: Landing,
    /// Maximum number of loops in parallel.
    pub jobs: usize,
    /// The number of incomplete attempts after which all active loops are reviewed.
    pub checkpoint_interval: Option<u32>,
    /// Slots: pick new tasks even after one failed.
    pub keep_going: bool,
    /// Slots: the source of tasks, and the command-line flags for each of them.
    #[serde(rename = "supply", default)]
    pub task_source: TaskSource,
    #[serde(default, skip_serializing_if = "TaskFlags::is_empty")]
    pub flags: Box<TaskFlags>,
    /// Slots: whether an agent may say that there are no more tasks.
    #[serde(default)]
    pub stop_marker: bool,
    /// Whether a planning loop and a final review run.
    #[serde(rename = "before")]
    pub has_planning: bool,
    #[serde(rename = "after")]
    pub has_final_review: bool,
    /// Whether the run's branch lands on the default branch at the end.
    #[serde(default)]
    pub onto_default: bool,
}

impl RunPolicy {
    pub fn new(workflow: &Workflow, jobs: usize) -> Self {
        Self {
            scheduling: workflow.arrangement,
            landing: workflow.landing,
            jobs: jobs.max(1),
            checkpoint_interval: workflow.checkpoint_interval,
            keep_going: false,
            task_source: TaskSource::Queue,
            flags: Box::default(),
            stop_marker: false,
            has_planning: !workflow.before.is_empty(),
            has_final_review: !workflow.after.is_empty(),
            onto_default: false,
        }
    }
}

/// The state of a run: its groups, and the status of each loop.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Run {
    pub stage: RunStage,
    pub groups: Vec<Vec<LoopId>>,
    pub loops: BTreeMap<LoopId, LoopStatus>,
    /// Loops whose start was requested and that have not changed since.
    #[serde(rename = "called")]
    pub starting: BTreeSet<LoopId>,
    /// The loop that may land now.
    pub landing: Option<LoopId>,
    /// Whether the current group has begun to land. From then on a loop that is sent back does not delay the others.
    #[serde(default)]
    pub landing_begun: bool,
    pub checkpoint: CheckpointRound,
    /// Slots: the number of pending picks, and whether more are possible.
    pub picks: usize,
    pub picking: Picking,
    /// Completed loops whose tracker task is not closed yet.
    #[serde(default)]
    pub unclosed: BTreeSet<LoopId>,
}

/// The stage of a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::EnumDiscriminants)]
#[strum(const_into_str, serialize_all = "snake_case")]
#[strum_discriminants(name(RunStageKind), doc = "A stage of a run without its details.")]
#[strum_discriminants(derive(Serialize, Deserialize, schemars::JsonSchema, strum::IntoStaticStr, strum::EnumString))]
#[strum_discriminants(serde(rename_all = "snake_case"), strum(const_into_str, serialize_all = "snake_case"))]
pub enum RunStage {
    /// Not started.
    #[default]
    Queued,
    /// Planning: tasks are found and arranged.
    Preparing,
    /// The group at this index is being worked.
    Working { group: usize },
    /// The group waits for a person because of these loops.
    Blocked { group: usize, by: Vec<LoopId> },
    /// All tasks are finished; the final review runs.
    Reviewing,
    /// Everything is done; the run's branch lands on the default branch.
    Landing(RunOutcome),
    /// Ended.
    Done(RunOutcome),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Picking {
    #[default]
    Open,
    /// The source was empty at the last pick. A finished task may make others ready.
    #[serde(rename = "dry")]
    SourceEmpty,
    /// Closed for good: a task failed, or an agent reported that there are no more.
    Closed,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum RunOutcome {
    /// Every task was approved or accepted.
    Approved,
    /// Finished, but some work was not approved or needs attention.
    Attention,
    Failed,
    Cancelled,
}

/// The status of a loop, as far as its run needs it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopStatus {
    Queued,
    Active,
    /// The next attempt waits for a checkpoint review.
    AtCheckpoint,
    /// Waits for a person; other loops continue.
    Waiting,
    /// Signed off; waits for its group.
    Ready,
    Landing,
    Ended(Outcome),
}

impl LoopStatus {
    /// Derives the status from the loop's state. It is never stored separately.
    pub fn for_loop(machine: &Loop) -> Self {
        match &machine.stage {
            Stage::Queued => Self::Queued,
            Stage::Waiting { .. } => Self::Waiting,
            Stage::AwaitingLanding { .. } if machine.checkpoint.is_some() => Self::Active,
            Stage::AwaitingLanding { .. } => Self::Ready,
            Stage::Landing { .. } => Self::Landing,
            Stage::Done(ending) => Self::Ended(ending.outcome.clone()),
            Stage::Working { .. }
            | Stage::Researching { .. }
            | Stage::Checking { .. }
            | Stage::Reviewing(_)
            | Stage::Fixing { .. }
            | Stage::Combining { .. } => {
                let is_due = machine.pause_reasons().contains(&PauseReason::Checkpoint);
                if is_due { Self::AtCheckpoint } else { Self::Active }
            }
        }
    }

    /// Whether the loop occupies one of the run's jobs.
    pub fn is_active(&self) -> bool {
        matches!(self, Self::Active | Self::AtCheckpoint)
    }

    /// How the loop ended, if it has.
    pub fn outcome(&self) -> Option<&Outcome> {
        if let Self::Ended(outcome) = self { Some(outcome) } else { None }
    }

    pub fn has_ended(&self) -> bool {
        self.outcome().is_some()
    }

    /// Whether the group no longer waits for this loop: signed off, completed, or cancelled by a person.
    pub fn is_resolved(&self) -> bool {
        let passed = |outcome: &Outcome| outcome.is_completed() || *outcome == Outcome::Cancelled;
        matches!(self, Self::Ready | Self::Landing) || self.outcome().is_some_and(passed)
    }

    /// Whether the loop ended in a way that only a person can resolve.
    pub fn blocks(&self) -> bool {
        self.has_ended() && !self.is_resolved()
    }
}

/// The current checkpoint round: when one loop is due, all active loops are reviewed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct CheckpointRound {
    /// The loops whose review is pending.
    #[serde(rename = "out")]
    pending: BTreeSet<LoopId>,
    /// All loops of the round, so that the effect stays the same while reviews arrive.
    #[serde(rename = "round")]
    loops: Vec<LoopId>,
}

impl CheckpointRound {
    /// Starts a round over all active loops, unless one is under way.
    pub fn start(&mut self, loops: &BTreeMap<LoopId, LoopStatus>) {
        if self.pending.is_empty() {
            let active = loops.iter().filter(|(_, status)| status.is_active());
            self.loops = active.map(|(loop_id, _)| loop_id.clone()).collect();
            self.pending = self.loops.iter().cloned().collect();
        }
    }

    /// A loop's review arrived, or the loop ended without one.
    pub fn reviewed(&mut self, loop_id: &LoopId) {
        self.pending.remove(loop_id);
        if self.pending.is_empty() {
            self.loops.clear();
        }
    }

    pub fn waits_for(&self, loop_id: &LoopId) -> bool {
        self.pending.contains(loop_id)
    }

    /// The loops of the current round.
    pub fn loops(&self) -> &[LoopId] {
        &self.loops
    }
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEvent {
    /// The run begins.
    Started,
    /// The planning loop ended.
    PreparationEnded { outcome: Outcome },
    /// The tasks are known, in groups that may be worked in parallel.
    GroupsPlanned { groups: Vec<Vec<LoopId>> },
    /// A task was picked for a slot.
    TaskPicked { loop_id: LoopId },
    /// The source had no task for a slot.
    NothingToPick,
    /// An agent reported that there are no more tasks.
    PickingStopped,
    /// The task was closed in its tracker.
    TaskClosed { loop_id: LoopId },
    /// A loop's status changed.
    #[serde(rename = "loop_moved")]
    LoopStatusChanged {
        loop_id: LoopId,
        #[serde(rename = "standing")]
        status: LoopStatus,
    },
    /// An implement or fix attempt ended without completing. Contains the number of attempts of every loop since its
    /// last checkpoint review.
    AttemptSpent { since_checkpoint: BTreeMap<LoopId, u32> },
    /// The checkpoint review of a loop ended.
    CheckpointReviewed { loop_id: LoopId },
    /// The final review ended.
    FinalReviewEnded { outcome: Outcome },
    /// The run's branch was merged into the default branch.
    Landed,
    /// A person cancelled the run.
    Cancelled { by: String },
}

/// An action requested by the run's state machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEffect {
    /// Find and arrange the tasks.
    Prepare,
    /// Start a loop.
    Start { loop_id: LoopId },
    /// Claim tasks for free slots; `wanted` is the total number.
    Pick { wanted: usize },
    /// Let a loop land.
    GrantLanding { loop_id: LoopId },
    /// Close a task in its tracker.
    CloseTask { loop_id: LoopId },
    /// Run a checkpoint review of these loops.
    ReviewCheckpoint { loops: Vec<LoopId> },
    /// Run the final review.
    #[serde(rename = "review_whole")]
    FinalReview,
    /// Land the run's branch on the default branch, and report [`RunEvent::Landed`].
    #[serde(rename = "land_whole")]
    LandRun,
    /// Report to the user what blocks the group.
    Block { by: Vec<LoopId> },
    /// Cancel a loop.
    CancelLoop { loop_id: LoopId },
    /// The run has ended.
    Finish(RunOutcome),
}

/// Applies an event and returns the new state and its effects.
pub fn step(run: Run, event: RunEvent, policy: &RunPolicy) -> (Run, Vec<RunEffect>) {
    let before = outstanding(&run);
    let was_done = run.is_done();
    let mut next = run;
    apply(&mut next, event, policy);
    let new = outstanding(&next).into_iter().filter(|effect| !before.contains(effect));
    let mut effects: Vec<_> = new.collect();
    if let (RunStage::Done(outcome), false) = (&next.stage, was_done) {
        effects.push(RunEffect::Finish(*outcome));
    }
    (next, effects)
}

/// Returns the state after all events of a log.
pub fn replay(events: impl IntoIterator<Item = RunEvent>, policy: &RunPolicy) -> Run {
    let mut run = Run::default();
    for event in events {
        apply(&mut run, event, policy);
    }
    run
}

/// Applies an event without computing effects.
pub(crate) fn apply(run: &mut Run, event: RunEvent, policy: &RunPolicy) {
    if run.is_done() {
        transitions::apply_after_end(run, event, policy);
        return;
    }
    transitions::apply(run, event, policy);
    transitions::advance(run, policy);
}

/// All effects that the run is waiting for.
pub fn outstanding(run: &Run) -> Vec<RunEffect> {
    let mut effects = match &run.stage {
        RunStage::Queued | RunStage::Done(_) => {
            return cancellations(run).into_iter().chain(unclosed_tasks(run)).collect();
        }
        RunStage::Preparing => vec![RunEffect::Prepare],
        RunStage::Reviewing => vec![RunEffect::FinalReview],
        RunStage::Landing(_) => vec![RunEffect::LandRun],
        RunStage::Blocked { by, .. } => vec![RunEffect::Block { by: by.clone() }],
        RunStage::Working { .. } => Vec::new(),
    };
    // Closing a task may make other tasks ready, which then can be picked.
    effects.extend(unclosed_tasks(run));
    effects.extend(run.starting.iter().cloned().map(|loop_id| RunEffect::Start { loop_id }));
    effects.extend((run.picks > 0).then_some(RunEffect::Pick { wanted: run.picks }));
    effects.extend(run.landing.iter().cloned().map(|loop_id| RunEffect::GrantLanding { loop_id }));
    let round = &run.checkpoint;
    effects.extend((!round.pending.is_empty()).then(|| RunEffect::ReviewCheckpoint { loops: round.loops.clone() }));
    effects
}

/// Effects for the tasks that still have to be closed in their tracker.
fn unclosed_tasks(run: &Run) -> impl Iterator<Item = RunEffect> {
    run.unclosed.iter().cloned().map(|loop_id| RunEffect::CloseTask { loop_id })
}

/// Effects that cancel the open loops of a cancelled run.
fn cancellations(run: &Run) -> Vec<RunEffect> {
    if run.stage != RunStage::Done(RunOutcome::Cancelled) {
        return Vec::new();
    }
    let open = run.loops.iter().filter(|(_, status)| !status.has_ended());
    open.map(|(loop_id, _)| RunEffect::CancelLoop { loop_id: loop_id.clone() }).collect()
}

impl RunStage {
    /// The outcome; none before the end.
    pub fn outcome(&self) -> Option<RunOutcome> {
        if let Self::Done(outcome) = self { Some(*outcome) } else { None }
    }

    /// The index of the group that is worked or blocked.
    pub fn group(&self) -> Option<usize> {
        if let Self::Working { group } | Self::Blocked { group, .. } = self { Some(*group) } else { None }
    }
}

impl Run {
    pub fn is_done(&self) -> bool {
        matches!(self.stage, RunStage::Done(_))
    }

    /// The number of loops that occupy a job.
    pub fn active(&self) -> usize {
        self.loops.values().filter(|status| status.is_active()).count()
    }
}
