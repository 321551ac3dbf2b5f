//! Which tokens agents report with, and where their reports are kept.
//!
//! Tokens are kept in memory alone: who reads our files cannot report. A report is on the disk before its sender is told
//! that it was taken, and counts when the attempt is concluded.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::Value;
use signoff_core::contract::MAX_BYTES;
use signoff_core::grant::{Accepted, Arguments, Grant, Refusal, ReportTool};

use crate::process::{AttemptDir, private};

/// The tokens that were given to agents of this program.
#[derive(Debug, Default)]
pub struct Reports {
    url: OnceLock<String>,
    tokens: Mutex<Tokens>,
}

#[derive(Debug, Default)]
struct Tokens {
    good: HashMap<String, Arc<Open>>,
    ended: HashSet<String>,
}

/// A token of an attempt that has not ended.
#[derive(Debug)]
struct Open {
    tool: ReportTool,
    report: PathBuf,
    /// None as soon as the attempt has ended. Held until a report is kept: the attempt's end waits for that, and so does
    /// a second call.
    grant: Mutex<Option<Grant>>,
}

/// How an agent can report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    pub url: String,
    pub token: String,
}

impl Reports {
    /// From now on agents are told to report there.
    pub fn listen_at(&self, url: &str) {
        self.url.set(url.to_owned()).ok();
    }

    /// Whether there is somebody to report to.
    pub fn is_listening(&self) -> bool {
        self.url.get().is_some()
    }

    /// Gives out a token for an attempt, if there is somebody to report to.
    pub fn issue(&self, grant: Grant, dir: &AttemptDir) -> io::Result<Option<Access>> {
        let Some(url) = self.url.get().cloned() else { return Ok(None) };
        let report = dir.report();
        // One that an attempt left which could not be begun was not for this one.
        match fs::remove_file(&report) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let token = fresh_token()?;
        let open = Open { tool: grant.tool(), report, grant: Mutex::new(Some(grant)) };
        lock(&self.tokens).good.insert(token.clone(), Arc::new(open));
        Ok(Some(Access { url, token }))
    }

    /// The tool that a token is good for. Waits for nothing.
    pub fn tool(&self, token: &str) -> Result<ReportTool, Refusal> {
        Ok(self.open(token)?.tool)
    }

    /// Keeps what is reported, and says so.
    pub fn call(&self, token: &str, tool: &str, arguments: &Arguments) -> Result<String, Refusal> {
        let open = self.open(token)?;
        let mut grant = lock(&open.grant);
        let Accepted { grant: left, report, told } =
            grant.as_ref().ok_or(Refusal::Ended)?.call(tool, arguments)?;
        keep(&open.report, &report).map_err(|error| Refusal::NotKept { message: error.to_string() })?;
        *grant = Some(left);
        Ok(told)
    }

    /// The attempt in this directory has ended: nothing is taken any more.
    pub fn retire(&self, dir: &AttemptDir) {
        let report = dir.report();
        let mut tokens = lock(&self.tokens);
        let closed: Vec<_> = tokens.good.extract_if(|_, open| open.report == report).collect();
        tokens.ended.extend(closed.iter().map(|(token, _)| token.clone()));
        // Others need not wait for a report that is still being kept.
        drop(tokens);
        for (_, open) in closed {
            *lock(&open.grant) = None;
        }
    }

    fn open(&self, token: &str) -> Result<Arc<Open>, Refusal> {
        let tokens = lock(&self.tokens);
        match tokens.good.get(token) {
            Some(open) => Ok(open.clone()),
            None if tokens.ended.contains(token) => Err(Refusal::Ended),
            None => Err(Refusal::UnknownToken),
        }
    }
}

/// The arguments that a reviewer reported, as JSON; none if it did not. Whatever else lies in the place of a report is
/// given as it is: the contract says what is wrong with it.
pub fn reviewed(dir: &AttemptDir) -> Option<Vec<u8>> {
    let bytes = planned(dir)?;
    let report: Option<Value> = serde_json::from_slice(&bytes).ok();
    let arguments = report.as_ref().and_then(|report| report.get("arguments"));
    Some(arguments.and_then(|arguments| serde_json::to_vec(arguments).ok()).unwrap_or(bytes))
}

/// What a planner reported, as the readers of its answers take it; none if it did not.
pub fn planned(dir: &AttemptDir) -> Option<Vec<u8>> {
    let path = dir.report();
    path.metadata().ok().filter(fs::Metadata::is_file)?;
    let mut bytes = Vec::new();
    // One byte more than any answer may have tells that there was more.
    File::open(path).ok()?.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Writes the whole report or nothing, and waits until it would survive a power cut.
fn keep(path: &Path, report: &Value) -> io::Result<()> {
    let unfinished = path.with_extension("unfinished");
    let mut file = private(OpenOptions::new().write(true).create(true).truncate(true), &unfinished)?;
    file.write_all(&serde_json::to_vec(report)?)?;
    file.sync_all()?;
    fs::rename(unfinished, path)?;
    path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}

/// 256 random bits.
fn fresh_token() -> io::Result<String> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Whoever panicked had changed nothing yet, or all.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
