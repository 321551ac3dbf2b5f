//! Attempts with their files: prompts, documents and answers are read and written as outside of tests. Only the process
//! of the agent is missing.

use std::fs;
use std::sync::Arc;

use signoff_engine::attempt::{self, EngineContext};
use signoff_engine::attempt_spec::AttemptSpec;
use signoff_engine::executor::{AttemptResult, AttemptSink};
use signoff_engine::process::ProcessResult;
use signoff_engine::workspace::parallel_fixes;

use super::scripted_call::ScriptedEnd;

/// Prepares and finishes attempts in a git repository.
pub struct AttemptFiles {
    ctx: Arc<EngineContext>,
}

impl AttemptFiles {
    pub fn new(ctx: Arc<EngineContext>) -> Self {
        Self { ctx }
    }

    /// Prepares an attempt and returns its prompt, or the result of an attempt that cannot start.
    pub fn prepare(&self, spec: &AttemptSpec) -> Result<String, Box<AttemptResult>> {
        let spec = parallel_fixes::with_own_worktree(spec.clone());
        attempt::prepare_attempt(&self.ctx, &spec)?;
        Ok(fs::read_to_string(attempt::directory(&self.ctx, &spec).prompt()).expect("a prompt"))
    }

    /// Stores the agent's output and reports the result of the attempt.
    pub async fn finish(&self, spec: &AttemptSpec, end: &ScriptedEnd, ended: ProcessResult, sink: AttemptSink) {
        let spec = Arc::new(parallel_fixes::with_own_worktree(spec.clone()));
        let dir = attempt::directory(&self.ctx, &spec);
        let result = serde_json::to_vec(&ended).expect("a result is JSON");
        for (path, bytes) in
            [(dir.stdout(), end.stdout.as_bytes()), (dir.stderr(), end.stderr.as_bytes()), (dir.result(), &result)]
        {
            fs::write(path, bytes).expect("a written file");
        }
        attempt::finish(self.ctx.clone(), spec, ended, Vec::new(), sink).await;
    }
}
