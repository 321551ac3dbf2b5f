//! What an agent's output came to: its final message and its own account, put beside what it wrote.
//!
//! Both are made anew from the transcript whenever an attempt is concluded, so a program that was killed in between
//! finds the same.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use signoff_core::contract::MAX_BYTES;
use signoff_core::heard::{Denied, Heard, Trouble, TroubleKind};
use signoff_core::limited::Refused;
use signoff_core::machine::Failure;

use super::conclude::{failed, failure, start_of};
use super::{End, Workshop, limited};
use crate::agent::{self, Account, Agent, Closing, Listener, last_words};
use crate::assignment::Assignment;
use crate::board::Launched;
use crate::clock;
use crate::draft::{Care, Draft};
use crate::error::EngineError;
use crate::process::{AttemptDir, Ended, Exit};

/// A longer line says nothing that is understood: no answer may be as long.
const LONGEST: u64 = 2 * MAX_BYTES as u64;

/// So much of what it wrote to stderr may tell why it ended.
const STDERR: u64 = 64 * 1024;

/// How an attempt ended, whoever says so.
#[derive(Debug)]
pub enum Closed {
    Well,
    Stopped,
    SessionGone,
    Limited(Refused),
    Failed(Failure),
}

impl Closed {
    /// The end of an attempt that did not end well.
    pub fn end(self, task: &Assignment) -> Option<End> {
        match self {
            Self::Well => None,
            Self::Stopped => Some(End::Stopped),
            Self::SessionGone => Some(End::SessionGone),
            Self::Limited(refused) => Some(End::Limited(refused)),
            Self::Failed(failure) => Some(failed(task, failure)),
        }
    }
}

/// Takes in what an agent wrote, where its kind has more to say than its final message.
pub fn hear(shop: &Workshop, task: &Assignment, dir: &AttemptDir, ended: &Ended) -> Result<(), EngineError> {
    let Some(agent) = adapter(shop, task).filter(|agent| !agent.is_plain()) else { return Ok(()) };
    let account = listen(agent.as_ref(), dir, (ended, task.launch.resumes.is_some()));
    keep(shop, dir, account)
        .map_err(|error| EngineError::io("keep what the agent said in", dir.path(), error))
}

fn adapter(shop: &Workshop, task: &Assignment) -> Option<Box<dyn Agent>> {
    agent::of(shop.settings.agent(&task.launch.agent)?.kind)
}

/// The same for an attempt that nobody saw end; the session that it had.
pub fn hear_lost(shop: &Workshop, launched: &Launched, dir: &AttemptDir) -> Option<String> {
    let kind = shop.settings.agent(&launched.launch.agent)?.kind;
    let agent = agent::of(kind).filter(|agent| !agent.is_plain())?;
    let (home, ended_at) = (dir.home(), clock::now());
    let (started_at, resumed) = (launched.at, launched.launch.resumes.is_some());
    let closing = Closing { code: None, stderr: &[], home: &home, started_at, ended_at, resumed };
    let account = told(agent.as_ref(), dir).ended(&closing);
    let session = account.heard.session.clone();
    // Without it what it used is unknown, and nothing else.
    keep(shop, dir, account).ok();
    session
}

/// What the transcript comes to.
pub(crate) fn listen(agent: &dyn Agent, dir: &AttemptDir, (ended, resumed): (&Ended, bool)) -> Account {
    let mut listener = told(agent, dir);
    let code = if let Exit::Code(code) = ended.exit { Some(code) } else { None };
    let stdout = limited::end_of(&dir.stdout(), STDERR);
    let said = (stdout.as_slice(), (stdout.len() as u64) < STDERR);
    let stderr = last_words::complaint(limited::end_of(&dir.stderr(), STDERR), said);
    listener.ended(&Closing {
        code,
        stderr: &stderr,
        home: &dir.home(),
        started_at: ended.started_at,
        ended_at: ended.ended_at,
        resumed,
    })
}

/// Who took in what the agent wrote.
fn told(agent: &dyn Agent, dir: &AttemptDir) -> Box<dyn Listener> {
    let mut listener = agent.listener();
    let readable = dir.stdout().metadata().is_ok_and(|file| file.is_file());
    if let Some(file) = readable.then(|| File::open(dir.stdout()).ok()).flatten() {
        // What cannot be read any more says nothing.
        lines(BufReader::new(file), listener.as_mut()).ok();
    }
    listener
}

/// Hands on line by line, each in bounded memory.
fn lines(mut reader: impl BufRead, listener: &mut dyn Listener) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.by_ref().take(LONGEST).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line.last() == Some(&b'\n') || line.len() < LONGEST as usize {
            listener.line(line.trim_ascii_end());
        } else {
            // Its beginning tells that something was said.
            listener.line(&line);
            reader.skip_until(b'\n')?;
        }
    }
}

/// Its keeper took the secrets out of what it printed; what it left in its home went by nobody yet.
fn keep(shop: &Workshop, dir: &AttemptDir, account: Account) -> io::Result<()> {
    let secrets = shop.secrets_of(dir);
    let Account { message, others, mut heard } = account;
    if let Some(trouble) = &mut heard.trouble {
        trouble.message = secrets.redact_text(&trouble.message);
    }
    heard.unreadable = heard.unreadable.map(|line| secrets.redact_text(&line));
    for Denied { tool, about } in &mut heard.denied {
        (*tool, *about) = (secrets.redact_text(tool), secrets.redact_text(about));
    }
    for spent in &mut heard.spent {
        spent.model = spent.model.as_deref().map(|model| secrets.redact_text(model));
    }
    let others: Vec<String> = others.iter().map(|other| secrets.redact_text(other)).collect();
    write(&dir.message_others(), &serde_json::to_vec(&others)?)?;
    write(&dir.message(), secrets.redact_text(&message).as_bytes())?;
    write(&dir.heard(), &serde_json::to_vec(&heard)?)
}

fn write(path: &Path, contents: &[u8]) -> io::Result<()> {
    Draft::write(path, contents, Care::Plain)?.put()
}

/// The agent's own account; none where its kind gives none.
pub fn heard(dir: &AttemptDir) -> Option<Heard> {
    serde_json::from_slice(&start_of(&dir.heard(), MAX_BYTES as u64)).ok()
}

/// The final message; one byte more than any answer may have tells that there was more.
pub fn message(dir: &AttemptDir) -> Vec<u8> {
    let said = if dir.heard().exists() { dir.message() } else { dir.stdout() };
    start_of(&said, MAX_BYTES as u64 + 1)
}

/// The other ways to join the blocks of the final message.
pub fn message_others(dir: &AttemptDir) -> Vec<String> {
    serde_json::from_slice(&start_of(&dir.message_others(), 8 * LONGEST)).unwrap_or_default()
}

/// How it ended: what we did to it comes first, then its own word, and its exit code only where it has no word.
pub fn closed(shop: &Workshop, task: &Assignment, dir: &AttemptDir, ended: &Ended) -> Closed {
    match (&ended.exit, heard(dir)) {
        (Exit::Stopped | Exit::Orphaned, _) => Closed::Stopped,
        (Exit::Code(_) | Exit::Signal(_), Some(heard)) => {
            heard.trouble.map_or(Closed::Well, |trouble| troubled(task, trouble))
        }
        // Who said its last word and hangs all the same has said it.
        (Exit::TimedOut | Exit::Silent, Some(Heard { trouble, .. })) => {
            last_word(task, trouble).unwrap_or_else(|| by_exit(shop, task, dir, ended))
        }
        (
            Exit::Code(_)
            | Exit::Signal(_)
            | Exit::TimedOut
            | Exit::Silent
            | Exit::Unkept { .. }
            | Exit::NotStarted { .. },
            _,
        ) => by_exit(shop, task, dir, ended),
    }
}

/// What somebody said at the end that had to be ended. Other trouble may be no more than that it was cut off.
fn last_word(task: &Assignment, trouble: Option<Trouble>) -> Option<Closed> {
    match trouble.map_or(Closed::Well, |trouble| troubled(task, trouble)) {
        Closed::Failed(_) | Closed::Stopped => None,
        said @ (Closed::Well | Closed::SessionGone | Closed::Limited(_)) => Some(said),
    }
}

/// That somebody had said all and did not end, in words.
pub fn hung(task: &Assignment, dir: &AttemptDir, ended: &Ended) -> Option<String> {
    let hung = matches!(ended.exit, Exit::TimedOut | Exit::Silent);
    let said_all = || heard(dir).is_some_and(|heard| heard.trouble.is_none());
    let agent = &task.launch.agent;
    (hung && said_all()).then(|| {
        format!("{agent} said that it had ended, and did not exit: it was ended, and what it did counts")
    })
}

fn troubled(task: &Assignment, trouble: Trouble) -> Closed {
    if trouble.kind == TroubleKind::Session && task.launch.resumes.is_some() {
        return Closed::SessionGone;
    }
    match Refused::of(trouble) {
        Ok(refused) => Closed::Limited(refused),
        Err(trouble) => Closed::Failed(Failure::Trouble(trouble)),
    }
}

fn by_exit(shop: &Workshop, task: &Assignment, dir: &AttemptDir, ended: &Ended) -> Closed {
    let Some(failure) = failure(&ended.exit) else { return Closed::Well };
    match limited::refused(shop, task, dir, ended) {
        Some(refused) => Closed::Limited(refused),
        None => Closed::Failed(failure),
    }
}

/// So many of what a reader tried are named.
const NAMED: usize = 5;

/// What somebody who only looks tried to do besides, in words.
pub fn tried(dir: &AttemptDir, who: &str) -> Option<String> {
    let denied = heard(dir)?.denied;
    let named: Vec<String> = denied.iter().take(NAMED).map(named).collect();
    let more = denied.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!denied.is_empty()).then(|| format!("{who} tried what a reader may not: {}{more}", named.join(", ")))
}

fn named(Denied { tool, about }: &Denied) -> String {
    let about: String = about.chars().take(80).collect();
    if about.is_empty() { tool.clone() } else { format!("{tool} ({about})") }
}
