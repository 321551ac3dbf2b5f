//! Whether an attempt ended because its agent's provider refused it for now.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use signoff_core::limited::{self, Ended as Said, Refused};

use super::Workshop;
use super::conclude::start_of;
use crate::agent;
use crate::assignment::Assignment;
use crate::process::{AttemptDir, Ended, Exit};

/// So much of the end of what an agent wrote is looked at.
const TAIL: u64 = 16 * 1024;

/// What the end of an agent says that has no word of its own for it, with the wait it asked for.
pub fn refused(shop: &Workshop, task: &Assignment, dir: &AttemptDir, ended: &Ended) -> Option<Refused> {
    let Exit::Code(code) = ended.exit else { return None };
    let kind = shop.settings.agent(&task.launch.agent)?.kind;
    if !agent::of(kind)?.is_plain() {
        return None;
    }
    let (stdout, stderr) = (end_of(&dir.stdout(), TAIL), end_of(&dir.stderr(), TAIL));
    let refused = limited::recognise(&Said { code, stdout: &stdout, stderr: &stderr })?;
    Some(Refused { told: told(dir).or(refused.told), why: refused.why })
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Told {
    retry_after_seconds: Option<f64>,
}

/// The wait that the agent wrote where it tells its usage.
fn told(dir: &AttemptDir) -> Option<Duration> {
    let told: Told = serde_json::from_slice(&start_of(&dir.usage(), 64 * 1024)).unwrap_or_default();
    Duration::try_from_secs_f64(told.retry_after_seconds?).ok()
}

/// The end of a file, so much of it.
pub fn end_of(path: &Path, most: u64) -> Vec<u8> {
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
