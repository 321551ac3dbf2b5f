//! Which tokens agents report with, and where their reports are kept.
//!
//! Tokens are kept in memory alone: who reads our files cannot report. A report is on the disk before its sender is told
//! that it was taken, and counts when the attempt is concluded. What was taken is kept in memory until then, so that a
//! file which somebody else wrote is not believed. A program that was killed remembers nothing: the one after it
//! believes a file that is sealed.

mod seal;

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::Value;
use signoff_core::contract::MAX_BYTES;
use signoff_core::grant::{Accepted, Arguments, Grant, Refusal, ReportTool};
use signoff_core::hex::hex;
use signoff_core::redact::Secrets;

use crate::draft::{self, Care};
use crate::process::AttemptDir;
use seal::Seal;

/// The tokens that were given to agents of this program, and what was reported with them.
#[derive(Debug)]
pub struct Reports {
    seal: Seal,
    url: OnceLock<String>,
    /// What must not be kept, whoever reports it.
    secrets: Secrets,
    tokens: Mutex<Tokens>,
    /// What was taken for each attempt that this program began and did not conclude yet, by the file it is kept in.
    taken: Mutex<HashMap<PathBuf, Option<Vec<u8>>>>,
    /// Those of them from which the server was reached.
    reached: Mutex<HashSet<PathBuf>>,
}

#[derive(Debug, Default)]
struct Tokens {
    good: HashMap<String, Arc<Open>>,
    /// With the file of what was reported by each.
    ended: HashMap<String, PathBuf>,
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
    /// Reports of a repository, whose things are below `root`.
    pub fn new(root: &Path) -> Self {
        let (url, tokens) = (OnceLock::new(), Mutex::default());
        let (taken, reached) = (Mutex::default(), Mutex::default());
        Self { seal: Seal::new(root), url, secrets: Secrets::default(), tokens, taken, reached }
    }

    /// The same, keeping none of these.
    #[must_use]
    pub fn without(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

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
        let report = dir.report();
        lock(&self.taken).insert(report.clone(), None);
        let Some(url) = self.url.get().cloned() else { return Ok(None) };
        // One that an attempt left which could not be begun was not for this one.
        match fs::remove_file(&report) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let token = hex(&random()?);
        let open = Open { tool: grant.tool(), report, grant: Mutex::new(Some(grant)) };
        lock(&self.tokens).good.insert(token.clone(), Arc::new(open));
        Ok(Some(Access { url, token }))
    }

    /// The tool that a token is good for. Waits for nothing.
    pub fn tool(&self, token: &str) -> Result<ReportTool, Refusal> {
        let open = self.open(token)?;
        lock(&self.reached).insert(open.report.clone());
        Ok(open.tool)
    }

    /// Whether anybody came from the attempt in this directory; unknown for one that another program began.
    pub fn was_reached(&self, dir: &AttemptDir) -> Option<bool> {
        let (listening, report) = (self.is_listening(), dir.report());
        let begun_here = lock(&self.taken).contains_key(&report);
        (listening && begun_here).then(|| lock(&self.reached).contains(&report))
    }

    /// Keeps what is reported, and says so.
    pub fn call(&self, token: &str, tool: &str, arguments: &Arguments) -> Result<String, Refusal> {
        let open = self.open(token)?;
        let mut grant = lock(&open.grant);
        let Accepted { grant: left, report, told } =
            grant.as_ref().ok_or(Refusal::Ended)?.call(tool, arguments)?;
        let report = redacted(&self.secrets.and(&Secrets::of_values([token])), report);
        self.keep(&open.report, &report).map_err(|error| Refusal::NotKept { message: error.to_string() })?;
        *grant = Some(left);
        told
    }

    /// The attempt in this directory has ended: nothing is taken any more.
    pub fn retire(&self, dir: &AttemptDir) {
        let report = dir.report();
        let mut tokens = lock(&self.tokens);
        let closed: Vec<_> = tokens.good.extract_if(|_, open| open.report == report).collect();
        tokens.ended.extend(closed.iter().map(|(token, open)| (token.clone(), open.report.clone())));
        // Others need not wait for a report that is still being kept.
        drop(tokens);
        for (_, open) in closed {
            *lock(&open.grant) = None;
        }
    }

    /// All that was reported in an attempt, as it was taken; none if nothing was. Whatever else lies in its place is
    /// not believed, and a note says so.
    pub fn of(&self, dir: &AttemptDir, who: &str, notes: &mut Vec<String>) -> Option<Vec<u8>> {
        let path = dir.report();
        let found = found(&path);
        let sealed = found.as_deref().and_then(|bytes| self.seal.open(&path, bytes));
        let Some(taken) = lock(&self.taken).get(&path).cloned() else {
            if found.is_some() && sealed.is_none() {
                notes.push(format!("there is a report of {who} that nobody took; it does not count"));
            }
            return sealed.map(<[u8]>::to_vec);
        };
        if taken.as_deref() != sealed || found.is_some() != sealed.is_some() {
            notes.push(match taken {
                Some(_) => {
                    format!("somebody changed the file of what {who} reported; what it reported counts")
                }
                None => format!("somebody wrote a report in the name of {who}; it does not count"),
            });
        }
        taken
    }

    /// The tokens of the attempt in this directory, which has ended.
    pub fn tokens_of(&self, dir: &AttemptDir) -> Secrets {
        let (tokens, report) = (lock(&self.tokens), dir.report());
        let own = tokens.ended.iter().filter(|(_, of)| **of == report);
        Secrets::of_values(own.map(|(token, _)| token.as_str()))
    }

    /// The attempt in this directory is concluded.
    pub fn forget(&self, dir: &AttemptDir) {
        lock(&self.taken).remove(&dir.report());
        lock(&self.reached).remove(&dir.report());
    }

    fn keep(&self, path: &Path, report: &Value) -> io::Result<()> {
        let bytes = serde_json::to_vec(report)?;
        draft::write(path, &self.seal.close(path, &bytes)?, Care::Durable)?;
        lock(&self.taken).insert(path.to_owned(), Some(bytes));
        Ok(())
    }

    fn open(&self, token: &str) -> Result<Arc<Open>, Refusal> {
        let tokens = lock(&self.tokens);
        match tokens.good.get(token) {
            Some(open) => Ok(open.clone()),
            None if tokens.ended.contains_key(token) => Err(Refusal::Ended),
            None => Err(Refusal::UnknownToken),
        }
    }
}

/// The arguments of each call that a reviewer reported with, as JSON objects one after another.
pub fn arguments(report: Vec<u8>) -> Vec<u8> {
    let read: Option<Value> = serde_json::from_slice(&report).ok();
    let arguments = read.as_ref().and_then(|read| read.get("arguments"));
    let calls = read.as_ref().and_then(|read| read.get("calls")).and_then(Value::as_array);
    let all: Vec<String> =
        arguments.into_iter().chain(calls.into_iter().flatten()).map(Value::to_string).collect();
    if all.is_empty() { report } else { all.join("\n").into_bytes() }
}

/// What lies in the place of a report. One that was taken is shorter than what is read here.
fn found(path: &Path) -> Option<Vec<u8>> {
    path.metadata().ok().filter(fs::Metadata::is_file)?;
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(2 * MAX_BYTES as u64).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// 256 random bits.
fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

/// Whoever panicked had changed nothing yet, or all.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What was reported, without secrets in its texts.
fn redacted(secrets: &Secrets, report: Value) -> Value {
    match report {
        Value::String(text) => Value::String(secrets.redact_text(&text)),
        Value::Array(list) => list.into_iter().map(|one| redacted(secrets, one)).collect(),
        Value::Object(words) => {
            words.into_iter().map(|(word, inside)| (word, redacted(secrets, inside))).collect()
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
    }
}
