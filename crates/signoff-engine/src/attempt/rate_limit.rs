//! Detects whether an attempt ended because the provider rate-limited the agent.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use signoff_core::rate_limit::{self, ExitOutput as Said, RateLimited};

use super::EngineContext;
use super::finish::read_start;
use crate::agent;
use crate::attempt_spec::AttemptSpec;
use crate::process::{AttemptDir, ProcessExit, ProcessResult};

/// How much of the end of the output is searched, in bytes.
const TAIL: u64 = 16 * 1024;

/// Detects a rate limit in the output of an agent without structured output, with the wait that it asked for.
pub fn rate_limited(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    dir: &AttemptDir,
    ended: &ProcessResult,
) -> Option<RateLimited> {
    let ProcessExit::Code(code) = ended.exit else { return None };
    let kind = ctx.settings.agent(&spec.launch.agent)?.kind;
    if !agent::adapter_for(kind)?.is_plain() {
        return None;
    }
    let (stdout, stderr) = (read_end(&dir.stdout(), TAIL), read_end(&dir.stderr(), TAIL));
    let refused = rate_limit::detect(&Said { code, stdout: &stdout, stderr: &stderr })?;
    Some(RateLimited { retry_after: retry_after(dir).or(refused.retry_after), why: refused.why })
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RetryHint {
    retry_after_seconds: Option<f64>,
}

/// The wait that the agent wrote to its usage file.
fn retry_after(dir: &AttemptDir) -> Option<Duration> {
    let hint: RetryHint = serde_json::from_slice(&read_start(&dir.usage(), 64 * 1024)).unwrap_or_default();
    Duration::try_from_secs_f64(hint.retry_after_seconds?).ok()
}

/// The last `most` bytes of a regular file.
pub fn read_end(path: &Path, most: u64) -> Vec<u8> {
    let mut text = Vec::new();
    let file = path.metadata().ok().filter(|file| file.is_file()).and_then(|_| File::open(path).ok());
    if let Some(mut file) = file {
        let length = file.metadata().map_or(0, |file| file.len());
        if file.seek(SeekFrom::Start(length.saturating_sub(most))).is_ok() {
            file.take(most).read_to_end(&mut text).ok();
        }
    }
    text
}
