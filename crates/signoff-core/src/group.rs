//! The second machine, above the loops: which of them run, when a group is through, what lands next.
//!
//! It knows a loop only by its [`Standing`], told from the loop's own state, so the two machines can never
//! disagree. Like the first one it only changes state; its wishes follow from the difference.

mod checkpoint;
mod rules;
mod standing;
mod supply;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use checkpoint::Checkpoint;
pub use standing::Standing;
pub use supply::Supply;

use crate::config::TaskFlags;
use crate::ids::LoopId;
use crate::machine::Outcome;
use crate::workflow::{Arrangement, Landing, Workflow};

/// What a run is carried out under.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPolicy {
    pub arrangement: Arrangement,
    pub landing: Landing,
    /// Loops at once.
    pub jobs: usize,
    /// After how many attempts without completion all active loops are reviewed.
    pub checkpoint_interval: Option<u32>,
    /// Slots: pick new tasks even after one failed.
    pub keep_going: bool,
    /// Slots: where the tasks come from, and what the command line says about each of them.
    #[serde(default)]
    pub supply: Supply,
    #[serde(default, skip_serializing_if = "TaskFlags::is_empty")]
    pub flags: Box<TaskFlags>,
    /// Slots: whether an agent may say that there are no more tasks.
    #[serde(default)]
    pub stop_marker: bool,
    /// Whether tasks have to be found first, and the whole looked at in the end.
    pub before: bool,
    pub after: bool,
    /// Whether the run's branch goes onto the default branch in the end.
    #[serde(default)]
    pub onto_default: bool,
}

impl RunPolicy {
    pub fn of(workflow: &Workflow, jobs: usize) -> Self {
        Self {
            arrangement: workflow.arrangement,
            landing: workflow.landing,
            jobs: jobs.max(1),
            checkpoint_interval: workflow.checkpoint_interval,
            keep_going: false,
            supply: Supply::Queue,
            flags: Box::default(),
            stop_marker: false,
            before: !workflow.before.is_empty(),
            after: !workflow.after.is_empty(),
            onto_default: false,
        }
    }
}

/// A run: its groups, and how each loop stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Run {
    pub stage: RunStage,
    pub groups: Vec<Vec<LoopId>>,
    pub loops: BTreeMap<LoopId, Standing>,
    /// Loops that were told to start; the telling is outstanding until they move.
    pub called: BTreeSet<LoopId>,
    /// The one loop that may land now.
    pub landing: Option<LoopId>,
    /// The present group is landing: one that is sent back does not hold up the others.
    #[serde(default)]
    pub landing_begun: bool,
    pub checkpoint: Checkpoint,
    /// Slots: how many picks are under way, and whether there may be more.
    pub picks: usize,
    pub picking: Picking,
    /// Loops that are through and whose tracker has not been told.
    #[serde(default)]
    pub unclosed: BTreeSet<LoopId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStage {
    #[default]
    Queued,
    /// Tasks are being found and arranged.
    Preparing,
    /// The group at this index is being worked.
    Working {
        group: usize,
    },
    /// It is waited for: these loops need a person.
    Blocked {
        group: usize,
        by: Vec<LoopId>,
    },
    /// All tasks are through; the whole is being looked at.
    Reviewing,
    /// All is done; its branch goes onto the default branch.
    Landing(RunOutcome),
    Done(RunOutcome),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Picking {
    #[default]
    Open,
    /// Nothing was left when last asked; a task that ends may make others ready.
    Dry,
    /// For good: a task failed, or an agent said there is no more.
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// Every task was approved or accepted.
    Approved,
    /// Finished, but something was not approved or needs a look.
    Attention,
    Failed,
    Cancelled,
}

impl RunOutcome {
    pub fn word(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Attention => "attention",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A fact about a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEvent {
    Started,
    /// The planning part ended.
    PreparationEnded {
        outcome: Outcome,
    },
    /// The tasks are known, and what may be worked at once.
    GroupsPlanned {
        groups: Vec<Vec<LoopId>>,
    },
    /// A slot has a task; or there was none.
    TaskPicked {
        loop_id: LoopId,
    },
    NothingToPick,
    /// An agent said that there are no more tasks.
    PickingStopped,
    /// The tracker was told that a task is done.
    TaskClosed {
        loop_id: LoopId,
    },
    /// A loop's state says something new.
    LoopMoved {
        loop_id: LoopId,
        standing: Standing,
    },
    /// An implement or fix attempt ended without completing. The attempts of every loop since its last
    /// checkpoint review, as they stand now.
    AttemptSpent {
        since_checkpoint: BTreeMap<LoopId, u32>,
    },
    CheckpointReviewed {
        loop_id: LoopId,
    },
    FinalReviewEnded {
        outcome: Outcome,
    },
    /// The run's branch is in the default branch.
    Landed,
    Cancelled {
        by: String,
    },
}

/// A wish of the run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEffect {
    /// Find and arrange the tasks.
    Prepare,
    Start {
        loop_id: LoopId,
    },
    /// Claim one more task for a free slot; so many are wanted in all.
    Pick {
        wanted: usize,
    },
    GrantLanding {
        loop_id: LoopId,
    },
    /// Tell the tracker that a task is done.
    CloseTask {
        loop_id: LoopId,
    },
    /// Review these loops as they stand.
    ReviewCheckpoint {
        loops: Vec<LoopId>,
    },
    ReviewWhole,
    /// Bring the run's branch onto the default branch, and report [`RunEvent::Landed`].
    LandWhole,
    /// Tell people what blocks the group.
    Block {
        by: Vec<LoopId>,
    },
    CancelLoop {
        loop_id: LoopId,
    },
    Finish(RunOutcome),
}

/// One fact in; the new state and what is to be done out.
pub fn step(this: Run, event: RunEvent, policy: &RunPolicy) -> (Run, Vec<RunEffect>) {
    let before = outstanding(&this);
    let was_done = this.is_done();
    let mut next = this;
    apply(&mut next, event, policy);
    let new = outstanding(&next).into_iter().filter(|wish| !before.contains(wish));
    let mut effects: Vec<_> = new.collect();
    if let (RunStage::Done(outcome), false) = (&next.stage, was_done) {
        effects.push(RunEffect::Finish(*outcome));
    }
    (next, effects)
}

/// The state after a log.
pub fn replay(events: impl IntoIterator<Item = RunEvent>, policy: &RunPolicy) -> Run {
    let mut this = Run::default();
    for event in events {
        apply(&mut this, event, policy);
    }
    this
}

/// What a fact makes of a run, for those who only look.
pub(crate) fn apply(this: &mut Run, event: RunEvent, policy: &RunPolicy) {
    if this.is_done() {
        rules::take_after_the_end(this, event, policy);
        return;
    }
    rules::take(this, event, policy);
    rules::settle(this, policy);
}

/// Everything the run is waiting for somebody else to do.
pub fn outstanding(this: &Run) -> Vec<RunEffect> {
    let mut wishes = match &this.stage {
        RunStage::Queued | RunStage::Done(_) => {
            return cancellations(this).into_iter().chain(closings(this)).collect();
        }
        RunStage::Preparing => vec![RunEffect::Prepare],
        RunStage::Reviewing => vec![RunEffect::ReviewWhole],
        RunStage::Landing(_) => vec![RunEffect::LandWhole],
        RunStage::Blocked { by, .. } => vec![RunEffect::Block { by: by.clone() }],
        RunStage::Working { .. } => Vec::new(),
    };
    // What is closed may make other tasks ready: then there is another picking.
    wishes.extend(closings(this));
    wishes.extend(this.called.iter().cloned().map(|loop_id| RunEffect::Start { loop_id }));
    wishes.extend((this.picks > 0).then_some(RunEffect::Pick { wanted: this.picks }));
    wishes.extend(this.landing.iter().cloned().map(|loop_id| RunEffect::GrantLanding { loop_id }));
    wishes.extend(this.checkpoint.wish());
    wishes
}

/// What a tracker is still to be told.
fn closings(this: &Run) -> impl Iterator<Item = RunEffect> {
    this.unclosed.iter().cloned().map(|loop_id| RunEffect::CloseTask { loop_id })
}

/// After a run was cancelled its loops are.
fn cancellations(this: &Run) -> Vec<RunEffect> {
    if this.stage != RunStage::Done(RunOutcome::Cancelled) {
        return Vec::new();
    }
    let open = this.loops.iter().filter(|(_, standing)| !standing.has_ended());
    open.map(|(loop_id, _)| RunEffect::CancelLoop { loop_id: loop_id.clone() }).collect()
}

impl RunStage {
    pub fn word(&self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Preparing => "preparing",
            Self::Working { .. } => "working",
            Self::Blocked { .. } => "blocked",
            Self::Reviewing => "reviewing",
            Self::Landing(_) => "landing",
            Self::Done(_) => "done",
        }
    }

    /// How it ended; none before it has.
    pub fn outcome(&self) -> Option<RunOutcome> {
        match self {
            Self::Done(outcome) => Some(*outcome),
            Self::Queued
            | Self::Preparing
            | Self::Working { .. }
            | Self::Blocked { .. }
            | Self::Reviewing
            | Self::Landing(_) => None,
        }
    }

    /// The index of the group that is worked or blocked.
    pub fn group(&self) -> Option<usize> {
        match self {
            Self::Working { group } | Self::Blocked { group, .. } => Some(*group),
            Self::Queued | Self::Preparing | Self::Reviewing | Self::Landing(_) | Self::Done(_) => None,
        }
    }
}

impl Run {
    pub fn is_done(&self) -> bool {
        matches!(self.stage, RunStage::Done(_))
    }

    /// The loops that hold a job.
    pub fn active(&self) -> usize {
        self.loops.values().filter(|standing| standing.is_active()).count()
    }
}
