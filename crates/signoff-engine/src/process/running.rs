//! An attempt that is under way, as the program sees it.

use std::fs::File;
use std::io::{self, PipeReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStderr};
use tokio::sync::mpsc;

use super::attempt_dir::length;
use super::keep::{GO, KILL, STOP};
use super::settle::clear;
use super::{AttemptDir, Ended, Exit, door};

/// A line is cut to this many bytes. The whole of it is in the transcript.
const LINE: usize = 256 * 1024;
/// So many bytes of lines wait for a reader at most.
const WAITING: usize = 512 * 1024;
/// What a line costs besides its text.
const PER_LINE: usize = 64;
/// A keeper that fails says why in fewer bytes.
const COMPLAINT: u64 = 4096;

/// An attempt that is under way. Dropping it ends the agent, as the end of the program would.
#[derive(Debug)]
pub struct Running {
    keeper: Child,
    control: Arc<File>,
    lines: Option<Lines>,
    dir: AttemptDir,
    started: Instant,
    started_at: Timestamp,
}

/// Ends an attempt early.
#[derive(Debug, Clone)]
pub struct Stopper(Weak<File>);

/// Something of the program's own that can be stopped as an agent can.
#[derive(Debug)]
pub struct Stoppable {
    control: Arc<File>,
    asked: PipeReader,
}

/// What the agent says, line by line, while it says it.
///
/// Lines that nobody takes in time are dropped, as is what is not text: the transcript has it all.
#[derive(Debug)]
pub struct Lines {
    lines: mpsc::UnboundedReceiver<String>,
    waiting: Arc<AtomicUsize>,
}

impl Running {
    pub(super) fn new(mut keeper: Child, dir: AttemptDir) -> io::Result<Self> {
        let (Some(stdin), Some(stdout)) = (keeper.stdin.take(), keeper.stdout.take()) else {
            return Err(io::Error::other("the keeper was started without pipes"));
        };
        let control = File::from(stdin.into_owned_fd()?);
        // A keeper that is gone already is told of by `wait`.
        (&control).write_all(&[GO]).ok();
        Ok(Self {
            keeper,
            control: Arc::new(control),
            lines: Some(Lines::of(stdout)),
            dir,
            started: door::now(),
            started_at: door::time_of_day(),
        })
    }

    /// What the agent says from here on. The second time there is nothing to be had.
    pub fn lines(&mut self) -> Lines {
        self.lines.take().unwrap_or_else(|| Lines::of(tokio::io::empty()))
    }

    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::downgrade(&self.control))
    }

    /// Waits until the agent is over and nothing it started is left.
    pub async fn wait(mut self) -> Ended {
        let status = self.keeper.wait().await;
        if let Some(ended) = self.dir.ended() {
            return ended;
        }
        let complaint = complaint(self.keeper.stderr.take()).await;
        let dir = self.dir.clone();
        let strays_ended = tokio::task::spawn_blocking(move || clear(&dir)).await.unwrap_or(0);
        self.ended_without_a_word(status.ok(), complaint, strays_ended)
    }

    /// What can be told of an attempt whose keeper could not tell.
    fn ended_without_a_word(&self, status: Option<ExitStatus>, complaint: String, strays: u32) -> Ended {
        // From the moment it left word of itself a keeper may have started the agent.
        let started = self.dir.kept().is_some();
        let signal = status.and_then(|status| status.signal());
        let exit = match signal {
            Some(signal) if started => Exit::Signal(signal),
            Some(signal) => not_started(format!("its keeper was ended by signal {signal}")),
            None if started => Exit::Unkept { message: complaint },
            None => not_started(complaint),
        };
        Ended {
            exit,
            started_at: self.started_at,
            ended_at: door::time_of_day(),
            duration_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            stdout_bytes: length(&self.dir.stdout()),
            stderr_bytes: length(&self.dir.stderr()),
            strays_ended: strays,
            keeper_cpu_us: 0,
        }
    }
}

fn not_started(message: String) -> Exit {
    Exit::NotStarted { message, missing: false }
}

async fn complaint(stderr: Option<ChildStderr>) -> String {
    let mut said = Vec::new();
    if let Some(stderr) = stderr {
        // What was read before a failure is all there is to tell.
        stderr.take(COMPLAINT).read_to_end(&mut said).await.ok();
    }
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    if said.is_empty() { "the keeper ended without a word".to_owned() } else { said }
}

impl Stoppable {
    pub fn new() -> io::Result<Self> {
        let (asked, control) = io::pipe()?;
        Ok(Self { control: Arc::new(File::from(OwnedFd::from(control))), asked })
    }

    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::downgrade(&self.control))
    }

    /// Whether it was asked to stop.
    pub fn is_asked(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut asked = [PollFd::new(&self.asked, PollFlags::IN)];
        poll(&mut asked, Some(&now)).is_ok_and(|count| count > 0)
    }
}

impl Stopper {
    /// Asks the agent to end, and kills it after its grace.
    pub fn stop(&self) {
        self.say(STOP);
    }

    /// Kills it now.
    pub fn kill(&self) {
        self.say(KILL);
    }

    fn say(&self, word: u8) {
        if let Some(control) = self.0.upgrade() {
            // A keeper that does not listen any more has nothing left to end.
            (&*control).write_all(&[word]).ok();
        }
    }
}

impl Lines {
    fn of(stream: impl AsyncRead + Unpin + Send + 'static) -> Self {
        let (sender, lines) = mpsc::unbounded_channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        tokio::spawn(read_lines(stream, sender, Arc::clone(&waiting)));
        Self { lines, waiting }
    }

    /// The next line, without its end; none when the agent's stdout is over.
    pub async fn next(&mut self) -> Option<String> {
        let line = self.lines.recv().await?;
        self.waiting.fetch_sub(line.len() + PER_LINE, Ordering::Relaxed);
        Some(line)
    }
}

/// Reads to the end, whether or not anybody listens: the pipe must not fill.
async fn read_lines(
    mut stream: impl AsyncRead + Unpin,
    sender: mpsc::UnboundedSender<String>,
    waiting: Arc<AtomicUsize>,
) {
    let send = |line: &[u8]| {
        let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned();
        let cost = line.len() + PER_LINE;
        if waiting.load(Ordering::Relaxed) + cost <= WAITING {
            waiting.fetch_add(cost, Ordering::Relaxed);
            sender.send(line).ok();
        }
    };
    let mut buffer = vec![0; 16 * 1024];
    let mut line: Vec<u8> = Vec::new();
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        for part in buffer.get(..read).unwrap_or_default().split_inclusive(|&byte| byte == b'\n') {
            let text = part.strip_suffix(b"\n").unwrap_or(part);
            line.extend(text.iter().take(LINE - line.len()));
            if text.len() < part.len() {
                send(&line);
                line.clear();
            }
        }
    }
    if !line.is_empty() {
        send(&line);
    }
}
