//! Starts supervisors, and an attempt that runs under one, as the main program sees it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, PipeReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signoff_core::redact::{Secrets, is_secret_name};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStderr};
use tokio::sync::mpsc;

use super::attempt_dir::{SupervisorSpec, file_len};
use super::crash_cleanup::clean_up;
use super::supervisor::{GO, KILL, SECRETS_VARIABLE, STOP};
use super::{AttemptDir, ProcessExit, ProcessLaunch, ProcessResult, SUPERVISOR_SUBCOMMAND, system};
use crate::atomic_file::{self, WriteMode};

/// Maximum length of a line. The output file contains the whole line.
const MAX_LINE: usize = 256 * 1024;
/// Maximum number of bytes of unread lines.
const MAX_PENDING: usize = 512 * 1024;
/// Overhead counted for each line.
const LINE_OVERHEAD: usize = 64;
/// Maximum length of a supervisor's error message.
const MAX_ERROR: u64 = 4096;

/// A running attempt. Dropping it ends the agent, as the end of the main program would.
#[derive(Debug)]
pub struct RunningAttempt {
    supervisor: Child,
    control: Arc<File>,
    lines: Option<OutputLines>,
    dir: AttemptDir,
    started: Instant,
    started_at: Timestamp,
}

/// Stops a running attempt.
#[derive(Debug, Clone)]
pub struct StopHandle(Weak<File>);

/// Makes an operation inside the main program stoppable like an agent.
#[derive(Debug)]
pub struct StopRequest {
    control: Arc<File>,
    requests: PipeReader,
}

/// The agent's stdout, line by line.
///
/// Lines that are not read in time are dropped; the output file contains everything. Invalid UTF-8 is replaced.
#[derive(Debug)]
pub struct OutputLines {
    lines: mpsc::UnboundedReceiver<String>,
    pending_bytes: Arc<AtomicUsize>,
}

impl RunningAttempt {
    pub(super) fn new(mut supervisor: Child, dir: AttemptDir) -> io::Result<Self> {
        let (Some(stdin), Some(stdout)) = (supervisor.stdin.take(), supervisor.stdout.take()) else {
            return Err(io::Error::other("the supervisor was started without pipes"));
        };
        let control = File::from(stdin.into_owned_fd()?);
        // If the supervisor has already exited, `wait` reports it.
        (&control).write_all(&[GO]).ok();
        Ok(Self {
            supervisor,
            control: Arc::new(control),
            lines: Some(OutputLines::new(stdout)),
            dir,
            started: system::now(),
            started_at: system::timestamp(),
        })
    }

    /// The agent's output from now on. A second call returns an empty stream.
    pub fn lines(&mut self) -> OutputLines {
        self.lines.take().unwrap_or_else(|| OutputLines::new(tokio::io::empty()))
    }

    pub fn stopper(&self) -> StopHandle {
        StopHandle(Arc::downgrade(&self.control))
    }

    /// Waits until the agent and all its child processes have ended.
    pub async fn wait(mut self) -> ProcessResult {
        let status = self.supervisor.wait().await;
        if let Some(ended) = self.dir.read_result() {
            return ended;
        }
        let error = read_error_message(self.supervisor.stderr.take()).await;
        let dir = self.dir.clone();
        let strays_ended = tokio::task::spawn_blocking(move || clean_up(&dir)).await.unwrap_or(0);
        self.missing_result(status.ok(), error, strays_ended)
    }

    /// The result of an attempt whose supervisor did not write one.
    fn missing_result(&self, status: Option<ExitStatus>, error: String, strays: u32) -> ProcessResult {
        // After it wrote its record, a supervisor may have started the agent.
        let started = self.dir.read_record().is_some();
        let signal = status.and_then(|status| status.signal());
        let exit = match signal {
            Some(signal) if started => ProcessExit::Signal(signal),
            Some(signal) => ProcessExit::not_started(format!("its supervisor was killed by signal {signal}")),
            None if started => ProcessExit::OutputLost { message: error },
            None => ProcessExit::not_started(error),
        };
        ProcessResult {
            stdout_bytes: file_len(&self.dir.stdout()),
            stderr_bytes: file_len(&self.dir.stderr()),
            strays_ended: strays,
            ..ProcessResult::new(exit, self.started_at, self.started)
        }
    }
}

async fn read_error_message(stderr: Option<ChildStderr>) -> String {
    let mut message = Vec::new();
    if let Some(stderr) = stderr {
        // Uses what was read before an error.
        stderr.take(MAX_ERROR).read_to_end(&mut message).await.ok();
    }
    let message = String::from_utf8_lossy(&message).trim().to_owned();
    if message.is_empty() { "the supervisor exited without a message".to_owned() } else { message }
}

impl StopRequest {
    pub fn new() -> io::Result<Self> {
        let (requests, control) = io::pipe()?;
        Ok(Self { control: Arc::new(File::from(OwnedFd::from(control))), requests })
    }

    pub fn stopper(&self) -> StopHandle {
        StopHandle(Arc::downgrade(&self.control))
    }

    /// Whether a stop was requested.
    pub fn is_requested(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut fds = [PollFd::new(&self.requests, PollFlags::IN)];
        poll(&mut fds, Some(&now)).is_ok_and(|count| count > 0)
    }
}

impl StopHandle {
    /// Asks the agent to end, and kills it after its grace period.
    pub fn stop(&self) {
        self.send(STOP);
    }

    /// Kills it now.
    pub fn kill(&self) {
        self.send(KILL);
    }

    fn send(&self, command: u8) {
        if let Some(control) = self.0.upgrade() {
            // A supervisor that has closed its stdin has nothing left to end.
            (&*control).write_all(&[command]).ok();
        }
    }
}

impl OutputLines {
    fn new(stream: impl AsyncRead + Unpin + Send + 'static) -> Self {
        let (sender, lines) = mpsc::unbounded_channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        tokio::spawn(read_lines(stream, sender, Arc::clone(&waiting)));
        Self { lines, pending_bytes: waiting }
    }

    /// The next line without its line ending, or `None` at the end of stdout.
    pub async fn next(&mut self) -> Option<String> {
        let line = self.lines.recv().await?;
        self.pending_bytes.fetch_sub(line.len() + LINE_OVERHEAD, Ordering::Relaxed);
        Some(line)
    }
}

/// Reads to the end even without a receiver, so that the pipe does not fill up.
async fn read_lines(
    mut stream: impl AsyncRead + Unpin,
    sender: mpsc::UnboundedSender<String>,
    pending_bytes: Arc<AtomicUsize>,
) {
    let send = |line: &[u8]| {
        let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned();
        let cost = line.len() + LINE_OVERHEAD;
        if pending_bytes.load(Ordering::Relaxed) + cost <= MAX_PENDING {
            pending_bytes.fetch_add(cost, Ordering::Relaxed);
            sender.send(line).ok();
        }
    };
    let mut buffer = vec![0; 16 * 1024];
    let mut line: Vec<u8> = Vec::new();
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        for part in buffer.get(..read).unwrap_or_default().split_inclusive(|&byte| byte == b'\n') {
            let text = part.strip_suffix(b"\n").unwrap_or(part);
            line.extend(text.iter().take(MAX_LINE - line.len()));
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

/// Starts attempts under supervisors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupervisorLauncher {
    /// The program, which is started with `SUPERVISOR_SUBCOMMAND` and the attempt's directory.
    pub program: PathBuf,
    /// A directory of links to the supervised attempts, for `kill_orphans`. Created when needed.
    pub live_dir: PathBuf,
    /// The user's home. Secrets found there are redacted from all output.
    pub user_home: PathBuf,
    /// Further secrets that are redacted from all output.
    pub secrets: Vec<String>,
}

impl SupervisorLauncher {
    /// Starts an attempt whose directory exists and contains its prompt.
    ///
    /// An error means that nothing was started. If the agent cannot be started, the attempt ends with that result.
    pub async fn start(&self, launch: &ProcessLaunch, dir: &AttemptDir) -> io::Result<RunningAttempt> {
        let directory = std::path::absolute(&launch.directory)?;
        let live = std::path::absolute(&self.live_dir)?;
        let environment: BTreeMap<_, _> = launch.environment.iter().cloned().collect();
        // An agent may find a key that it was not given, so the supervisor still needs it for redaction.
        let known: BTreeMap<_, _> = system::variables().into_iter().collect();
        let is_secret = |name: &String| {
            let value = known.get(name).map(|value| (name.as_str(), value.as_str()));
            is_secret_name(name) || !Secrets::from_variables(value).is_empty()
        };
        let is_withheld = |(name, value): &(&String, &Option<String>)| value.is_none() && is_secret(name);
        let withheld = environment.iter().filter(is_withheld).map(|(name, _)| name.clone()).collect();
        let user_home = self.user_home.clone();
        let spec = SupervisorSpec { launch: ProcessLaunch { directory, ..launch.clone() }, live, withheld, user_home };
        atomic_file::write_json(&dir.launch(), &spec, WriteMode::Private)?;
        let mut command = tokio::process::Command::from(system::command(&self.program));
        command.arg(SUPERVISOR_SUBCOMMAND).arg(dir.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for (name, value) in environment {
            match value {
                Some(value) => command.env(name, value),
                None if spec.withheld.contains(&name) => &mut command,
                None => command.env_remove(name),
            };
        }
        command.env_remove(SECRETS_VARIABLE);
        if !self.secrets.is_empty() {
            command.env(SECRETS_VARIABLE, self.secrets.join("\n"));
        }
        RunningAttempt::new(command.spawn()?, dir.clone())
    }
}
