//! Runs attempts as supervised processes on this machine.

use std::sync::Arc;

use signoff_core::machine::JobKind;
use signoff_core::review::Usage;

use super::{AttemptKey, AttemptSink, Executor, FoundAttempt, RunLandingSink};
use crate::attempt::{self, EngineContext, UsagePricing};
use crate::attempt_spec::AttemptSpec;
use crate::error::EngineError;
use crate::landing::{self, LandingProgress};
use crate::process::{self, AttemptDir, ProcessResult};
use crate::workspace;
use signoff_core::view::{AttemptStart, RunState};

/// Runs agents under supervisors, and landings and merges of fixes in this process.
pub struct LocalExecutor {
    ctx: Arc<EngineContext>,
}

impl LocalExecutor {
    pub fn new(ctx: Arc<EngineContext>) -> Self {
        Self { ctx }
    }
}

impl Executor for LocalExecutor {
    fn start(&self, spec: AttemptSpec, sink: AttemptSink) {
        let (ctx, spec) = (self.ctx.clone(), with_own_worktree(spec));
        match spec.job.kind {
            JobKind::Land => tokio::spawn(landing::run_landing(ctx, spec, sink)),
            JobKind::Combine { .. } => tokio::spawn(workspace::parallel_fixes::run_combine(ctx, spec, sink)),
            JobKind::Work { .. }
            | JobKind::Research { .. }
            | JobKind::Review { .. }
            | JobKind::Check
            | JobKind::Fix { .. } => tokio::spawn(attempt::run_attempt(ctx, spec, sink)),
        };
    }

    fn find(&self, attempt: &AttemptKey) -> Result<FoundAttempt, EngineError> {
        let dir = AttemptDir::new(attempt.directory(&self.ctx.layout));
        // Without a launch file the attempt was never started.
        if !dir.launch().exists() {
            return Ok(FoundAttempt::NotStarted);
        }
        let found = process::recover_attempt(&dir);
        Ok(match found.map_err(|error| EngineError::io("recover the attempt in", dir.path(), error))? {
            Some(ended) => FoundAttempt::Ended(Box::new(ended)),
            None => FoundAttempt::Lost,
        })
    }

    fn finish(&self, spec: AttemptSpec, ended: ProcessResult, sink: AttemptSink) {
        tokio::spawn(attempt::finish(self.ctx.clone(), with_own_worktree(spec), ended, Vec::new(), sink));
    }

    fn save_work(&self, spec: AttemptSpec) {
        self.ctx.import_work(&with_own_worktree(spec)).ok();
    }

    fn lost_session(&self, attempt: &AttemptKey, start: &AttemptStart) -> Option<String> {
        let dir = AttemptDir::new(attempt.directory(&self.ctx.layout));
        let session = attempt::parse_lost_output(&self.ctx, start, &dir);
        attempt::home::clean_up_home(&self.ctx, &start.launch.agent, &dir);
        session
    }

    fn reported_usage(&self, attempt: &AttemptKey, model: Option<&str>) -> Usage {
        let dir = AttemptDir::new(attempt.directory(&self.ctx.layout));
        attempt::reported_usage(UsagePricing { settings: &self.ctx.settings, model }, &dir)
    }

    fn land_run(&self, run_state: RunState, sink: RunLandingSink) {
        let (ctx, run) = (self.ctx.clone(), run_state.run);
        tokio::spawn(async move {
            let forward = |progress: LandingProgress| match progress {
                LandingProgress::Stoppable(stopper) => sink.stoppable(stopper),
                LandingProgress::Waiting => sink.note(format!("Run {run} is waiting for another landing")),
                LandingProgress::Note(note) => sink.note(format!("Run {run}: {note}")),
            };
            let result = landing::land_run(&ctx, run_state, &forward).await.map(drop);
            sink.ended(result);
        });
    }
}

fn with_own_worktree(spec: AttemptSpec) -> Arc<AttemptSpec> {
    Arc::new(workspace::parallel_fixes::with_own_worktree(spec))
}
