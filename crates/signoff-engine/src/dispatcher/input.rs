//! The dispatcher's inputs, notices and options.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use signoff_core::command::LoopCommand;
use signoff_core::group::RunStage;
use signoff_core::ids::{AttemptId, LoopId, QuestionId, RunId, TaskId, Tree};
use signoff_core::machine;
use signoff_core::task::TaskSpec;
use signoff_core::view::{RunState, Transition, Workspace};

use crate::error::EngineError;
use crate::executor::{AttemptKey, AttemptResult};
use crate::process::StopHandle;

/// What is shown to the user during a run loop.
#[derive(Debug)]
pub enum DispatcherNotice<'a> {
    /// A fact is recorded and applied.
    Recorded(&'a Transition),
    /// An earlier fact of a run that is being resumed. The store is busy until `Resumed`: do not call it.
    Replayed(&'a Transition),
    /// A run is resumed: all of its earlier facts were shown.
    Resumed { run: RunId },
    /// A line of an agent's output. It is not recorded: the transcript contains it.
    OutputLine {
        run: RunId,
        loop_id: &'a LoopId,
        attempt: AttemptId,
        line: &'a str,
        /// Held until the line is shown. No more lines are sent while too many are held.
        backpressure: &'a Arc<()>,
    },
    /// The user asked to stop: nothing new is started from now on.
    Stopping,
    /// A note for the user that is not in the log.
    Note(&'a str),
}

/// Shows what happens.
pub trait Renderer: Send {
    fn show(&mut self, notice: &DispatcherNotice<'_>);
}

/// Options of one run loop.
#[derive(Debug, Clone, Default)]
pub struct RunLoopOptions {
    /// Work only on these queued tasks, in this order; on all if empty.
    pub only: Vec<TaskId>,
    /// Wait for further tasks instead of ending.
    pub watch: bool,
    pub no_ask: bool,
    /// A user is present and sees every question: the run loop waits for the answers.
    pub attended: bool,
    /// Also check off finished tasks in the user's plan file.
    pub check_off_in_checkout: bool,
    /// The tasks that a tracker has just offered for the run to open.
    pub offer: Option<Vec<TaskSpec>>,
}

/// How urgently the user wants to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Interrupt {
    /// Let running agents finish, and start no others.
    Finish,
    /// Stop running agents.
    Stop,
    /// Kill running agents.
    Kill,
}

impl Interrupt {
    /// Stops an agent.
    pub(super) fn stop(self, stopper: &StopHandle) {
        match self {
            Self::Kill => stopper.kill(),
            Self::Finish | Self::Stop => stopper.stop(),
        }
    }
}

/// Everything that the dispatcher reacts to.
#[derive(Debug)]
pub enum DispatcherInput {
    WorkspaceCreated {
        run: RunId,
        loop_id: LoopId,
        result: Result<PreparedWorkspace, EngineError>,
    },
    Running {
        attempt: AttemptKey,
        stopper: StopHandle,
    },
    OutputLine {
        attempt: AttemptKey,
        line: String,
        /// Held until the line is handled.
        backpressure: Arc<()>,
    },
    AttemptEnded {
        attempt: AttemptKey,
        result: Box<AttemptResult>,
    },
    PauseElapsed {
        run: RunId,
        loop_id: LoopId,
        reason: machine::PauseReason,
    },
    /// The tracker's tasks for the free slots of a run.
    Offered {
        run: RunId,
        result: Result<Vec<TaskSpec>, EngineError>,
    },
    /// Another user has claimed the task of a loop.
    ClaimLost {
        run: RunId,
        loop_id: LoopId,
        id: String,
        reason: String,
    },
    /// The tracker closed a task, or failed to.
    Closed {
        run: RunId,
        loop_id: LoopId,
        result: Result<(), EngineError>,
    },
    Interrupted(Interrupt),
    /// The attending user decided about a loop.
    Decided {
        run: RunId,
        loop_id: LoopId,
        command: LoopCommand,
    },
    /// The attending user leaves a question for later.
    QuestionDeferred {
        run: RunId,
        loop_id: LoopId,
        question: QuestionId,
    },
    /// Whether a user is present to answer questions.
    Attended(bool),
    /// A note for the user.
    Note(String),
    /// The branch of a run is being landed on the default branch; this stops it.
    Landing {
        run: RunId,
        stopper: StopHandle,
    },
    /// The branch of a run landed on the default branch, or did not.
    Landed {
        run: RunId,
        result: Result<(), EngineError>,
    },
    /// Time to check for requests and tasks of other processes.
    TimerFired,
}

/// The workspace of a loop is ready.
#[derive(Debug, Clone)]
pub struct PreparedWorkspace {
    pub workspace: Workspace,
    pub head: machine::Head,
    /// The tree of the base, if a diff is reviewed.
    pub base_tree: Option<Tree>,
    /// A note for the user.
    pub note: Option<String>,
}

/// The result of a run loop.
#[derive(Debug, Default)]
pub struct RunLoopSummary {
    /// The runs and their stages.
    pub runs: Vec<(RunId, RunStage)>,
    /// The states of the runs at the end.
    pub states: BTreeMap<RunId, RunState>,
    /// The tasks that made progress, ordered by id.
    pub tasks: BTreeSet<TaskId>,
    /// Number of tasks that other users claimed first.
    pub lost: usize,
    /// Number of started agents.
    pub agents: usize,
    pub interrupted: bool,
    /// Errors that no agent caused and that stopped a task.
    pub errors: Vec<EngineError>,
}
