//! The terminal UI: displays runs and handles keys.
//!
//! The UI is pure. The caller owns the terminal: it passes in events, keys and the time, draws a frame when
//! [`Tui::needs_frame`] returns true, and carries out the requests that the UI returns.

mod actions;
mod canvas;
mod dialog;
mod head;
mod key_hints;
mod list;
mod model;
mod pane;
mod row;
mod screen;

use jiff::Timestamp;
use signoff_core::ids::{AttemptId, FindingId, LoopId, RunId, TaskId};
use signoff_core::machine::FinalVerdict;
use signoff_core::view::inbox::InboxHints;
use signoff_core::view::{TaskRow, Transition};
use signoff_core::wire::{Fact, LoopFact};

use self::dialog::Dialog;
use self::list::TaskList;
use self::model::TuiModel;
use self::pane::OpenLoop;
use crate::question_queue::{QuestionDecision, QuestionQueue};
use crate::show::TaskReport;

pub use canvas::Theme;

/// How the UI is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TuiMode {
    /// This process works on the runs. After leaving the UI, progress is printed as lines.
    #[default]
    Driving,
    /// Another process works on the runs, or none.
    Watching,
    /// A recorded log is replayed; no actions are possible.
    Replaying,
}

/// The state of the terminal UI.
#[derive(Debug, Default)]
pub struct Tui {
    mode: TuiMode,
    theme: Theme,
    project: String,
    model: TuiModel,
    list: TaskList,
    opened: Option<OpenLoop>,
    dialog: Option<Dialog>,
    questions: QuestionQueue,
    replay: Option<ReplayState>,
    note: String,
    /// Interrupted: the program is shutting down.
    shutting_down: bool,
    dirty: bool,
    /// When a key was last handled by the list.
    list_input_at: Option<Timestamp>,
    drawn_at: Option<Timestamp>,
}

impl Tui {
    pub fn new(mode: TuiMode, theme: Theme) -> Self {
        Self { mode, theme, dirty: true, ..Self::default() }
    }

    /// Sets the name of the project for the first line.
    pub fn set_project(&mut self, project: &str) {
        project.clone_into(&mut self.project);
        self.dirty = true;
    }

    /// Takes in one event.
    pub fn apply(&mut self, transition: &Transition) {
        self.model.apply(transition);
        self.dirty = true;
        let event = &transition.event;
        let (Some(opened), Fact::Loop(loop_id, fact)) = (&mut self.opened, &event.fact) else { return };
        let is_opened = opened.key.run == event.run && opened.key.loop_id == *loop_id;
        // Output of an agent does not change the report.
        if is_opened && !matches!(fact, LoopFact::AgentOutput { .. }) {
            opened.invalidate();
        }
        if let (true, LoopFact::AgentOutput { attempt, line }) = (is_opened, fact) {
            opened.add_live_line(event.run, loop_id, *attempt, line);
        }
    }

    /// A live line of an agent, which is not recorded.
    pub fn add_live_line(&mut self, run: RunId, loop_id: &LoopId, attempt: AttemptId, line: &str) {
        self.model.set_live_line(run, loop_id, line);
        if let Some(opened) = &mut self.opened {
            opened.add_live_line(run, loop_id, attempt, line);
        }
        self.dirty = true;
    }

    /// Sets the tasks without a run.
    pub fn set_queue(&mut self, tasks: Vec<TaskRow>) {
        self.model.set_queue(tasks);
        self.dirty = true;
    }

    /// Sets what `signoff` without a command would print about the tasks. Until then, rows show only what their log
    /// says.
    pub fn set_inbox_hints(&mut self, hints: InboxHints) {
        self.model.set_hints(hints, self.mode == TuiMode::Driving);
        self.dirty = true;
    }

    /// Drops all data, because the store was replaced.
    pub fn reset(&mut self) {
        let project = std::mem::take(&mut self.project);
        *self = Self { project, ..Self::new(self.mode, self.theme) };
    }

    /// Passes in requested data.
    pub fn receive(&mut self, data: TuiData) {
        self.dirty = true;
        if let TuiData::ReplayState(replay) = data {
            self.replay = Some(replay);
        } else if let Some(opened) = &mut self.opened {
            opened.receive(data);
        }
    }

    /// Shows a message in the last line until the next key.
    pub fn show_note(&mut self, text: &str) {
        text.clone_into(&mut self.note);
        self.dirty = true;
    }

    /// Interrupted: running work is finished, and no more questions are asked.
    pub fn set_shutting_down(&mut self) {
        self.shutting_down = true;
        self.questions.close();
        self.dialog = None;
        self.dirty = true;
    }

    /// Requests for data that the open pane needs. Call this before each frame.
    pub fn requests(&mut self) -> Vec<TuiRequest> {
        let model = &self.model;
        self.opened.as_mut().map(|opened| opened.requests(model)).unwrap_or_default()
    }

    /// Whether a frame would show anything new. Clocks change once a second.
    pub fn needs_frame(&self, now: Timestamp) -> bool {
        self.dirty || self.drawn_at.is_none_or(|at| at.as_second() != now.as_second())
    }

    /// Updates rows and questions.
    fn refresh(&mut self) {
        self.model.refresh(&mut self.questions);
        self.list.update_selection(&self.model);
        if let Some(opened) = &mut self.opened {
            opened.follow(&self.model);
        }
        let asks = self.mode != TuiMode::Replaying && self.questions.is_open();
        match &self.dialog {
            // A question waits until the open loop or dialog is closed.
            None if asks && self.opened.is_none() => self.dialog = Some(Dialog::Question),
            Some(Dialog::Question) if !asks => self.dialog = None,
            Some(_) | None => {}
        }
    }
}

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
