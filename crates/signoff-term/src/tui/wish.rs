//! What the screen asks of whoever shows it, and what it is given.

use signoff_core::ids::{AttemptId, FindingId, LoopId, QuestionId, RunId, TaskId};
use signoff_core::machine::{Choice, FinalWord};

use crate::show::Report;

/// What a person wants, or what the screen needs to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// Leave the screen. Whatever works goes on.
    Quit,
    /// Ctrl-C: come to an end; the second one stops the agents.
    Interrupt,
    Answer {
        run: RunId,
        loop_id: LoopId,
        /// The loop's own number of it.
        question: QuestionId,
        choice: Choice,
    },
    /// A question is left for later. It stays open; this is how it can be answered.
    Later {
        run: RunId,
        loop_id: LoopId,
        question: QuestionId,
        how: String,
    },
    Retry(TaskId),
    Cancel(TaskId),
    Edit {
        task: TaskId,
        verdict: FinalWord,
        reason: String,
    },
    Dispute {
        task: TaskId,
        finding: FindingId,
        reason: String,
    },
    /// Fulfilled by [`Material::Report`].
    Report(TaskId),
    /// Fulfilled by [`Material::Diff`].
    Diff(TaskId),
    /// What an agent said so far, and whatever it says from now on: fulfilled by [`Material::Transcript`], piece by piece.
    /// It replaces an earlier wish for another one.
    Transcript {
        run: RunId,
        loop_id: LoopId,
        attempt: AttemptId,
    },
    /// A replay goes faster.
    Faster,
    Slower,
    PauseReplay,
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
