//! Requests of the UI to its caller, and the data it gets in return.

use signoff_core::ids::{AttemptId, FindingId, LoopId, RunId, TaskId};
use signoff_core::machine::FinalVerdict;

use crate::dialogue::QuestionDecision;
use crate::show::TaskReport;

/// A request to the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TuiRequest {
    /// Leave the UI. Running work continues.
    Quit,
    /// Ctrl-C: shut down; the second one stops the agents.
    Interrupt,
    /// A question was answered or postponed.
    QuestionDecided(QuestionDecision),
    Decide(TaskId, TaskDecision),
    Load(DataRequest),
    Replay(ReplayControl),
}

/// A person's decision about a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskDecision {
    Retry,
    Cancel,
    Edit { verdict: FinalVerdict, reason: String },
    Dispute { finding: FindingId, reason: String },
}

/// Data that the UI needs. The `TuiData` variant of the same name answers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataRequest {
    Report(TaskId),
    Diff(TaskId),
    /// The output of an agent so far, then its new output in chunks. Replaces an earlier request for a transcript.
    Transcript {
        run: RunId,
        loop_id: LoopId,
        attempt: AttemptId,
    },
}

/// A control command for a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayControl {
    Faster,
    Slower,
    /// Pause or continue.
    Pause,
}

/// Requested data. The UI ignores data that it no longer needs.
#[derive(Debug, Clone, PartialEq)]
pub enum TuiData {
    Report {
        task: TaskId,
        report: Box<TaskReport>,
    },
    Diff {
        task: TaskId,
        /// The output of `git diff`.
        patch: String,
        /// The output of `git diff --stat`.
        stat: String,
    },
    /// The next chunk.
    Transcript {
        run: RunId,
        loop_id: LoopId,
        attempt: AttemptId,
        text: String,
    },
    /// The state of a replay.
    ReplayState(ReplayState),
}

/// The state of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayState {
    /// For display: `4×`, `max`.
    pub speed: String,
    pub paused: bool,
    /// All events have been shown.
    pub ended: bool,
}
