//! Runs attempts. The dispatcher starts, stops and recovers attempts only through [`Executor`]; worktree paths and
//! locks are still local (`docs/adr/0022-executor.md`).

mod local;

use std::path::PathBuf;
use std::sync::Arc;

use signoff_core::ids::{AttemptId, LoopId, RunId};
use signoff_core::review::Usage;
use signoff_core::wire::LoopFact;
use tokio::sync::mpsc::UnboundedSender;

use crate::attempt::{AttemptEnd, EngineContext};
use crate::attempt_spec::AttemptSpec;
use crate::dispatcher::DispatcherInput;
use crate::error::EngineError;
use crate::layout::Layout;
use crate::process::{ProcessResult, StopHandle};
use crate::workspace::Workspaces;
use signoff_core::view::{AttemptStart, RunState};

pub use local::LocalExecutor;

/// Runs attempts, each in the background. Every started attempt reports its end exactly once.
pub trait Executor: Send + Sync {
    /// Starts an attempt.
    fn start(&self, spec: AttemptSpec, sink: AttemptSink);

    /// Finds out how an attempt ended that an earlier process started.
    fn find(&self, attempt: &AttemptKey) -> Result<FoundAttempt, EngineError>;

    /// Finishes an attempt whose process has ended.
    fn finish(&self, spec: AttemptSpec, ended: ProcessResult, sink: AttemptSink);

    /// Saves the work of a lost attempt. Errors are ignored: it is retried before the next attempt starts.
    fn save_work(&self, spec: AttemptSpec);

    /// The session of a lost attempt, which can be resumed.
    fn lost_session(&self, attempt: &AttemptKey, start: &AttemptStart) -> Option<String>;

    /// The usage that an attempt has reported so far. `model` is its configured model.
    fn reported_usage(&self, attempt: &AttemptKey, model: Option<&str>) -> Usage;

    /// Lands the branch of a run on the default branch.
    fn land_run(&self, run_state: RunState, sink: RunLandingSink);
}

/// The backends of a dispatcher: the executor, and the workspaces of the loops.
#[derive(Clone)]
pub struct Backends {
    pub executor: Arc<dyn Executor>,
    pub workspaces: Arc<dyn Workspaces>,
}

impl Backends {
    /// Supervised processes and git worktrees on this machine.
    pub fn local(ctx: &Arc<EngineContext>) -> Self {
        Self { executor: Arc::new(LocalExecutor::new(ctx.clone())), workspaces: ctx.clone() }
    }
}

/// Identifies an attempt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptKey {
    pub run: RunId,
    pub loop_id: LoopId,
    pub attempt: AttemptId,
}

impl AttemptKey {
    pub fn new(run: RunId, loop_id: &LoopId, attempt: AttemptId) -> Self {
        Self { run, loop_id: loop_id.clone(), attempt }
    }

    /// The path of the directory with the attempt's files.
    pub fn directory(&self, layout: &Layout) -> PathBuf {
        layout.attempt(self.run, &self.loop_id, self.attempt)
    }
}

impl From<&AttemptSpec> for AttemptKey {
    fn from(spec: &AttemptSpec) -> Self {
        Self::new(spec.run, &spec.loop_id, spec.job.attempt)
    }
}

/// The state in which an earlier process left an attempt.
#[derive(Debug)]
pub enum FoundAttempt {
    NotStarted,
    /// Its process has ended.
    Ended(Box<ProcessResult>),
    /// It was stopped before it ended.
    Lost,
}

/// The result of a finished attempt.
#[derive(Debug)]
pub struct AttemptResult {
    pub end: AttemptEnd,
    pub usage: Usage,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Facts to record together with the end.
    pub facts: Vec<LoopFact>,
    /// The agent reports that no tasks are left.
    pub stops_picking: bool,
}

impl AttemptResult {
    /// A result with nothing but an end.
    pub fn new(end: AttemptEnd) -> Self {
        Self { end, usage: Usage::default(), notes: Vec::new(), facts: Vec::new(), stops_picking: false }
    }
}

/// Reports the progress of an attempt or of a run's landing to the dispatcher.
#[derive(Debug, Clone)]
pub struct ProgressSink<S> {
    subject: S,
    inputs: UnboundedSender<DispatcherInput>,
}

/// Reports the progress of one attempt.
pub type AttemptSink = ProgressSink<AttemptKey>;

/// Reports the progress of a run's landing.
pub type RunLandingSink = ProgressSink<RunId>;

impl<S> ProgressSink<S> {
    pub fn new(subject: S, inputs: UnboundedSender<DispatcherInput>) -> Self {
        Self { subject, inputs }
    }

    /// A note for the user that is not recorded.
    pub fn note(&self, note: String) {
        self.send(DispatcherInput::Note(note));
    }

    /// A dispatcher that has ended ignores reports: the next one recovers the attempt.
    fn send(&self, input: DispatcherInput) {
        self.inputs.send(input).ok();
    }
}

impl AttemptSink {
    /// The attempt can be stopped with this handle from now on.
    pub fn stoppable(&self, stopper: StopHandle) {
        self.send(DispatcherInput::Running { attempt: self.subject.clone(), stopper });
    }

    /// A line of the agent's output.
    pub fn line(&self, line: String, backpressure: Arc<()>) {
        self.send(DispatcherInput::OutputLine { attempt: self.subject.clone(), line, backpressure });
    }

    /// The attempt has ended.
    pub fn ended(&self, result: AttemptResult) {
        self.send(DispatcherInput::AttemptEnded { attempt: self.subject.clone(), result: Box::new(result) });
    }
}

impl RunLandingSink {
    /// The landing can be stopped with this handle from now on.
    pub fn stoppable(&self, stopper: StopHandle) {
        self.send(DispatcherInput::Landing { run: self.subject, stopper });
    }

    /// The landing has ended.
    pub fn ended(&self, result: Result<(), EngineError>) {
        self.send(DispatcherInput::Landed { run: self.subject, result });
    }
}
