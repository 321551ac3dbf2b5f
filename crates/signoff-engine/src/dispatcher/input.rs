//! What the dispatcher hears, and what it tells.

use std::collections::BTreeSet;
use std::sync::Arc;

use signoff_core::command::Command;
use signoff_core::group::RunStage;
use signoff_core::ids::{AttemptId, LoopId, QuestionId, RunId, TaskId, Tree};
use signoff_core::machine;
use signoff_core::task::TaskSpec;
use signoff_core::wire::Recorded;

use crate::attempt::Report;
use crate::board::Place;
use crate::error::EngineError;
use crate::process::Stopper;

/// What people are told while it runs.
#[derive(Debug)]
pub enum Notice<'a> {
    Recorded(&'a Recorded),
    /// A run is taken up; this is what was recorded before.
    TakenUp {
        run: RunId,
        log: &'a [Recorded],
    },
    /// A line an agent wrote. It is not recorded: the transcript has it.
    Said {
        run: RunId,
        loop_id: &'a LoopId,
        attempt: AttemptId,
        line: &'a str,
        /// To be held until the line is shown: while too many are, no further ones are sent.
        unheard: &'a Arc<()>,
    },
    /// A person wants it to end: from now on nothing new is begun.
    Ending,
    /// Something a person should know that is no fact of the log.
    Note(&'a str),
}

/// Whoever shows what happens.
pub trait Renderer: Send {
    fn take(&mut self, notice: &Notice<'_>);
}

/// How a run is driven this time.
#[derive(Debug, Clone, Default)]
pub struct Drive {
    /// Only these tasks of the queue, in this order; all of them if none is named.
    pub only: Vec<TaskId>,
    /// Wait for further tasks instead of ending.
    pub watch: bool,
    pub no_ask: bool,
    /// A person sits there and is shown every question: it does not end before they have decided.
    pub attended: bool,
    /// Tick what is done in the plan file itself too.
    pub tick: bool,
    /// What a tracker was just heard to have, for the run that is opened.
    pub offer: Option<Vec<TaskSpec>>,
}

/// A person's wish to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Interrupt {
    /// Let the agents at work finish, start no others.
    Finish,
    /// Stop them now.
    Stop,
    /// At once.
    Kill,
}

/// What the dispatcher hears.
#[derive(Debug)]
pub enum Input {
    Placed {
        run: RunId,
        loop_id: LoopId,
        result: Result<Placed, EngineError>,
    },
    Running {
        run: RunId,
        loop_id: LoopId,
        attempt: AttemptId,
        stopper: Stopper,
    },
    Said {
        run: RunId,
        loop_id: LoopId,
        attempt: AttemptId,
        line: String,
        /// Held until the line was taken in.
        unheard: Arc<()>,
    },
    Reported(Box<Report>),
    Elapsed {
        run: RunId,
        loop_id: LoopId,
        hold: machine::Hold,
    },
    /// What a tracker has for the free slots of a run.
    Offered {
        run: RunId,
        result: Result<Vec<TaskSpec>, EngineError>,
    },
    /// Somebody else has what a loop was to work on.
    Lost {
        run: RunId,
        loop_id: LoopId,
        id: String,
        why: String,
    },
    /// A tracker was told that a task is done.
    Closed {
        run: RunId,
        loop_id: LoopId,
        result: Result<(), EngineError>,
    },
    Interrupted(Interrupt),
    /// The person who sits there decided something about a loop.
    Decided {
        run: RunId,
        loop_id: LoopId,
        command: Command,
    },
    /// They leave a question for later.
    Left {
        run: RunId,
        loop_id: LoopId,
        question: QuestionId,
    },
    /// Whether anybody sits there to be shown questions.
    Attended(bool),
    /// Something people should know.
    Note(String),
    /// The branch of a run is being brought onto the default branch; this ends that.
    Landing {
        run: RunId,
        stopper: Stopper,
    },
    /// The branch of a run was brought onto the default branch, or not.
    Landed {
        run: RunId,
        result: Result<(), EngineError>,
    },
    /// Time to look whether another program left a wish, or a task.
    Tick,
}

/// A loop has its worktree.
#[derive(Debug, Clone)]
pub struct Placed {
    pub place: Place,
    pub head: machine::Head,
    /// The tree of the base, where a diff is reviewed.
    pub base_tree: Option<Tree>,
    /// What people should know about it.
    pub note: Option<String>,
}

/// How a drive ended.
#[derive(Debug, Default)]
pub struct Summary {
    /// The runs, and where each stands.
    pub runs: Vec<(RunId, RunStage)>,
    /// The tasks that were moved, in order of their numbers.
    pub tasks: BTreeSet<TaskId>,
    /// How many tasks are left to others, who were faster.
    pub lost: usize,
    /// How many agents were started.
    pub agents: usize,
    pub interrupted: bool,
    /// What kept a task from going on although no agent is to blame.
    pub troubles: Vec<EngineError>,
}
