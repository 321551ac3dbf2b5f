//! What the screen asks of whoever shows it, and what it is given.

use signoff_core::ids::{AttemptId, FindingId, LoopId, RunId, TaskId};
use signoff_core::machine::FinalWord;

use crate::dialogue::Decided;
use crate::show::Report;

/// What a person wants, or what the screen needs to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// Leave the screen. Whatever works goes on.
    Quit,
    /// Ctrl-C: come to an end; the second one stops the agents.
    Interrupt,
    /// A question is answered, or left for later.
    Settle(Decided),
    Decide(TaskId, Decision),
    Look(Errand),
    Replay(Tempo),
}

/// What a person decides about a task without being asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Retry,
    Cancel,
    Edit { verdict: FinalWord, reason: String },
    Dispute { finding: FindingId, reason: String },
}

/// What the screen has to be given before it can be shown: fulfilled by the [`Material`] of the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Errand {
    Report(TaskId),
    Diff(TaskId),
    /// What an agent said so far, and whatever it says from now on, piece by piece. It replaces an earlier wish for another
    /// one.
    Transcript {
        run: RunId,
        loop_id: LoopId,
        attempt: AttemptId,
    },
}

/// How a replay is to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tempo {
    Faster,
    Slower,
    /// Stand still, or go on.
    Pause,
}

/// What was wished for. What nobody wishes for any more is passed over.
#[derive(Debug, Clone, PartialEq)]
pub enum Material {
    Report {
        task: TaskId,
        report: Box<Report>,
    },
    Diff {
        task: TaskId,
        /// As `git diff` prints it.
        patch: String,
        /// As `git diff --stat` prints it.
        stat: String,
    },
    /// A piece that follows the last.
    Transcript {
        run: RunId,
        loop_id: LoopId,
        attempt: AttemptId,
        text: String,
    },
    /// How a replay goes.
    Pace(Pace),
}

/// How a replay goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pace {
    /// As people say it: `4×`, `max`.
    pub speed: String,
    pub paused: bool,
    /// All facts are shown.
    pub ended: bool,
}
