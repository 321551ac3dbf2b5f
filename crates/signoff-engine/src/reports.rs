//! Issues the tokens that agents report with, and stores their reports.
//!
//! Tokens are only kept in memory, so a process that reads signoff's files cannot report. A report is written to disk
//! before its sender gets the answer, and counts when the attempt is finished. Until then it is also kept in memory, so
//! that a file from another process is not accepted. After a restart only files with a valid seal are accepted.

use std::collections::{HashMap, HashSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::Value;
use sha2::{Digest, Sha256};
use signoff_core::contract::MAX_BYTES;
use signoff_core::hex::hex;
use signoff_core::redact::Secrets;
use signoff_core::report_token::{AcceptedCall, ReportArguments, ReportRefusal, ReportScope, ReportTool};

use crate::atomic_file::{self, WriteMode};
use crate::process::{AttemptDir, open_private};

/// The tokens that this process issued to agents, and their reports.
#[derive(Debug)]
pub struct ReportRegistry {
    seal: Seal,
    url: OnceLock<String>,
    /// Values to redact from reports.
    secrets: Secrets,
    tokens: Mutex<ReportTokens>,
    /// The report of each attempt that this process started and has not finished, by its file.
    reports: Mutex<HashMap<PathBuf, Option<Vec<u8>>>>,
    /// The report files of attempts that have called the server.
    callers: Mutex<HashSet<PathBuf>>,
}

#[derive(Debug, Default)]
struct ReportTokens {
    active: HashMap<String, Arc<ActiveToken>>,
    /// Expired tokens with their report files.
    expired: HashMap<String, PathBuf>,
}

/// The token of a running attempt.
#[derive(Debug)]
struct ActiveToken {
    tool: ReportTool,
    report: PathBuf,
    /// `None` once the attempt has ended. Locked until a report is stored, so that the attempt's end and other calls
    /// wait.
    scope: Mutex<Option<ReportScope>>,
}

/// Where and with which token an agent can report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportAccess {
    pub url: String,
    pub token: String,
}

impl ReportRegistry {
    /// Reports of a repository; `root` is its `.signoff` directory.
    pub fn new(root: &Path) -> Self {
        let (url, tokens) = (OnceLock::new(), Mutex::default());
        let (reports, callers) = (Mutex::default(), Mutex::default());
        Self { seal: Seal::new(root), url, secrets: Secrets::default(), tokens, reports, callers }
    }

    /// Sets the values to redact from reports.
    #[must_use]
    pub fn with_secrets(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// Sets the address that agents report to.
    pub fn set_url(&self, url: &str) {
        self.url.set(url.to_owned()).ok();
    }

    /// Whether a report server is running.
    fn is_listening(&self) -> bool {
        self.url.get().is_some()
    }

    /// Issues a token for an attempt, if a report server is running.
    pub fn issue(&self, scope: ReportScope, dir: &AttemptDir) -> io::Result<Option<ReportAccess>> {
        let report = dir.report();
        lock(&self.reports).insert(report.clone(), None);
        let Some(url) = self.url.get().cloned() else { return Ok(None) };
        // An attempt that failed to start may have left a file.
        match fs::remove_file(&report) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let token = hex(&random()?);
        let open = ActiveToken { tool: scope.tool(), report, scope: Mutex::new(Some(scope)) };
        lock(&self.tokens).active.insert(token.clone(), Arc::new(open));
        Ok(Some(ReportAccess { url, token }))
    }

    /// The tool that a token allows. Never blocks.
    pub fn tool(&self, token: &str) -> Result<ReportTool, ReportRefusal> {
        let open = self.active_token(token)?;
        lock(&self.callers).insert(open.report.clone());
        Ok(open.tool)
    }

    /// Whether an attempt has called the server; `None` if another process started it.
    pub fn has_called(&self, dir: &AttemptDir) -> Option<bool> {
        let (listening, report) = (self.is_listening(), dir.report());
        let was_started_here = lock(&self.reports).contains_key(&report);
        (listening && was_started_here).then(|| lock(&self.callers).contains(&report))
    }

    /// Stores a report and returns the answer to the agent.
    pub fn call(&self, token: &str, tool: &str, arguments: &ReportArguments) -> Result<String, ReportRefusal> {
        let open = self.active_token(token)?;
        let mut scope = lock(&open.scope);
        let AcceptedCall { scope: left, report, reply: answer } =
            scope.as_ref().ok_or(ReportRefusal::Ended)?.call(tool, arguments)?;
        let report = redacted(&self.secrets.union(&Secrets::from_values([token])), report);
        self.store(&open.report, &report).map_err(|error| ReportRefusal::NotStored { message: error.to_string() })?;
        *scope = Some(left);
        answer
    }

    /// Expires the tokens of an attempt that has ended.
    pub fn expire(&self, dir: &AttemptDir) {
        let report = dir.report();
        let mut tokens = lock(&self.tokens);
        let closed: Vec<_> = tokens.active.extract_if(|_, open| open.report == report).collect();
        tokens.expired.extend(closed.iter().map(|(token, open)| (token.clone(), open.report.clone())));
        // Release the lock before waiting for a report that is being stored.
        drop(tokens);
        for (_, open) in closed {
            *lock(&open.scope) = None;
        }
    }

    /// The report of an attempt. A file that this process did not write and that has no valid seal is ignored, with a
    /// note.
    pub fn read_report(&self, dir: &AttemptDir, agent_label: &str, notes: &mut Vec<String>) -> Option<Vec<u8>> {
        let path = dir.report();
        let found = read_file(&path);
        let sealed = found.as_deref().and_then(|bytes| self.seal.unseal(&path, bytes));
        let Some(report) = lock(&self.reports).get(&path).cloned() else {
            if found.is_some() && sealed.is_none() {
                notes.push(format!("the report file of {agent_label} has no valid seal; it does not count"));
            }
            return sealed.map(<[u8]>::to_vec);
        };
        if report.as_deref() != sealed || found.is_some() != sealed.is_some() {
            notes.push(match report {
                Some(_) => {
                    format!("the report file of {agent_label} was changed; the original report counts")
                }
                None => format!("another process wrote a report file for {agent_label}; it does not count"),
            });
        }
        report
    }

    /// The tokens of an attempt that has ended.
    pub fn tokens_of(&self, dir: &AttemptDir) -> Secrets {
        let (tokens, report) = (lock(&self.tokens), dir.report());
        let own = tokens.expired.iter().filter(|(_, of)| **of == report);
        Secrets::from_values(own.map(|(token, _)| token.as_str()))
    }

    /// Forgets an attempt that is finished.
    pub fn forget(&self, dir: &AttemptDir) {
        lock(&self.reports).remove(&dir.report());
        lock(&self.callers).remove(&dir.report());
    }

    fn store(&self, path: &Path, report: &Value) -> io::Result<()> {
        let bytes = serde_json::to_vec(report)?;
        atomic_file::write(path, &self.seal.seal(path, &bytes)?, WriteMode::Durable)?;
        lock(&self.reports).insert(path.to_owned(), Some(bytes));
        Ok(())
    }

    fn active_token(&self, token: &str) -> Result<Arc<ActiveToken>, ReportRefusal> {
        let tokens = lock(&self.tokens);
        match tokens.active.get(token) {
            Some(open) => Ok(open.clone()),
            None if tokens.expired.contains_key(token) => Err(ReportRefusal::Ended),
            None => Err(ReportRefusal::UnknownToken),
        }
    }
}

/// The arguments of each call in a reviewer's report, as concatenated JSON objects.
pub fn arguments(report: Vec<u8>) -> Vec<u8> {
    let read: Option<Value> = serde_json::from_slice(&report).ok();
    let arguments = read.as_ref().and_then(|read| read.get("arguments"));
    let calls = read.as_ref().and_then(|read| read.get("calls")).and_then(Value::as_array);
    let all: Vec<String> = arguments.into_iter().chain(calls.into_iter().flatten()).map(Value::to_string).collect();
    if all.is_empty() { report } else { all.join("\n").into_bytes() }
}

/// Reads a report file. Valid reports are shorter than this limit.
fn read_file(path: &Path) -> Option<Vec<u8>> {
    path.metadata().ok().filter(fs::Metadata::is_file)?;
    atomic_file::read_at_most(path, 2 * MAX_BYTES as u64).ok()
}

/// 256 random bits.
fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

/// Ignores poisoning: updates under these locks are complete or not made.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Redacts secrets in all strings of a report.
fn redacted(secrets: &Secrets, report: Value) -> Value {
    match report {
        Value::String(text) => Value::String(secrets.redact_text(&text)),
        Value::Array(list) => list.into_iter().map(|one| redacted(secrets, one)).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, redacted(secrets, value))).collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
    }
}

const SEAL_PREFIX: &str = r#"{"seal":""#;
const REPORT_PREFIX: &str = r#"","report":"#;
const REPORT_SUFFIX: &str = "}";

/// The seal of a repository.
#[derive(Debug)]
pub struct Seal {
    root: PathBuf,
    secret: OnceLock<[u8; 32]>,
}

impl Seal {
    /// The secret is stored below `root`, and created when it is first needed.
    pub fn new(root: &Path) -> Self {
        // Attempt directories have absolute paths.
        let root = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
        Self { root, secret: OnceLock::new() }
    }

    /// Wraps a report and its seal in JSON. The seal is valid at this path only.
    pub fn seal(&self, path: &Path, report: &[u8]) -> io::Result<Vec<u8>> {
        let seal = self.digest(self.ensure_secret()?, path, report);
        Ok([SEAL_PREFIX.as_bytes(), seal.as_bytes(), REPORT_PREFIX.as_bytes(), report, REPORT_SUFFIX.as_bytes()]
            .concat())
    }

    /// The report in a sealed file; `None` if the seal is invalid.
    pub fn unseal<'a>(&self, path: &Path, sealed: &'a [u8]) -> Option<&'a [u8]> {
        let (seal, rest) = sealed.strip_prefix(SEAL_PREFIX.as_bytes())?.split_at_checked(64)?;
        let report = rest.strip_prefix(REPORT_PREFIX.as_bytes())?.strip_suffix(REPORT_SUFFIX.as_bytes())?;
        let secret = self.read_secret().ok().flatten()?;
        (self.digest(&secret, path, report).as_bytes() == seal).then_some(report)
    }

    /// Hashes twice, to prevent length extension.
    fn digest(&self, secret: &[u8; 32], path: &Path, report: &[u8]) -> String {
        // The path is relative, so that the repository can be moved.
        let path = path.strip_prefix(&self.root).unwrap_or(path).as_os_str().as_encoded_bytes();
        let length = (path.len() as u64).to_le_bytes();
        let inner = Sha256::new().chain_update(secret).chain_update(length).chain_update(path);
        let inner = inner.chain_update(report).finalize();
        hex(&Sha256::new().chain_update(secret).chain_update(inner).finalize())
    }

    fn path(&self) -> PathBuf {
        self.root.join("secret")
    }

    /// The secret, if it exists. A truncated file does not count.
    fn read_secret(&self) -> io::Result<Option<[u8; 32]>> {
        if let Some(secret) = self.secret.get() {
            return Ok(Some(*secret));
        }
        match fs::read(self.path()) {
            Ok(bytes) => Ok(bytes.try_into().ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn ensure_secret(&self) -> io::Result<&[u8; 32]> {
        let secret = match self.read_secret()? {
            Some(secret) => secret,
            None => self.create_secret()?,
        };
        Ok(self.secret.get_or_init(|| secret))
    }

    /// Creates the secret. Processes that do so at the same time all use the same one.
    fn create_secret(&self) -> io::Result<[u8; 32]> {
        let temporary = self.root.join(format!("secret.{}", hex(&random()?[..8])));
        let mut file = open_private(OpenOptions::new().write(true).create_new(true), &temporary)?;
        file.write_all(&random()?)?;
        file.sync_all()?;
        match fs::hard_link(&temporary, self.path()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && self.read_secret()?.is_none() => {
                fs::rename(&temporary, self.path())?;
            }
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => fs::remove_file(&temporary)?,
        }
        self.read_secret()?.ok_or_else(|| io::Error::other("another process removes the secret file"))
    }
}
