//! Worktrees of scripted agents, and the landing of their work.

use signoff_core::machine::Head;
use signoff_core::view::RunState;
use signoff_engine::attempt_spec::AttemptSpec;
use signoff_engine::executor::{AttemptResult, AttemptSink, RunLandingSink};
use signoff_engine::workspace::parallel_fixes;

/// A change of a file by an agent.
pub enum AgentFileChange {
    Write(String),
    Append(String),
    Delete,
}

/// The worktrees that scripted agents work in.
pub trait AgentWorkspaces: Send + Sync {
    /// Makes sure that the worktree of a writer exists.
    fn ensure_worktree(&self, spec: &AttemptSpec);

    fn change(&self, spec: &AttemptSpec, path: &str, change: AgentFileChange);

    /// Commits what a writer left, and returns the head.
    fn commit(&self, spec: &AttemptSpec, subject: &str) -> Head;

    /// Lands a loop, or combines its fixes. `None` if it reports to the sink itself.
    fn run_own_job(&self, spec: &AttemptSpec, sink: &AttemptSink) -> Option<AttemptResult>;

    fn land_run(&self, run_state: RunState, sink: RunLandingSink);
}

/// The path of the worktree of an attempt. Parallel fixers have their own.
pub fn worktree(spec: &AttemptSpec) -> String {
    parallel_fixes::with_own_worktree(spec.clone()).workspace.worktree
}
