//! Monitors one agent process until all its child processes have ended.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use super::output::LiveOutput;
use super::output::{CHUNK, TranscriptWriter, set_nonblocking};
use super::{KILL, STOP};
use crate::process::system::{self, ProcessIdentity};
use crate::process::{ProcessExit, ProcessLimits, ProcessResult};

/// Time that an agent's remaining processes get to end by themselves, if the grace period is not shorter.
const STRAY_GRACE: Duration = Duration::from_secs(2);
/// Time limit for killed processes. One that remains hangs in the kernel or belongs to another user.
const KILL_TIMEOUT: Duration = Duration::from_secs(3);
/// Poll interval for processes whose end causes no event.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Maximum interval for reaping orphaned descendants.
const REAP_INTERVAL: Duration = Duration::from_secs(1);

/// Monitors an agent, saves its output and enforces its limits.
pub struct AgentMonitor {
    agent: AgentProcess,
    stdout: TranscriptWriter,
    stderr: TranscriptWriter,
    live: Option<LiveOutput>,
    limits: ProcessLimits,
    started: Instant,
    /// Time of the last output.
    last_output: Instant,
    stage: MonitorStage,
    /// Why we ended it. `None` if it ended by itself.
    reason: Option<ProcessExit>,
    /// Whether the main program can still send commands.
    is_connected: bool,
    strays: BTreeSet<ProcessIdentity>,
}

struct AgentProcess {
    pid: Option<Pid>,
    /// Becomes readable at the end of the process. `None` where this is not supported, and after the end.
    handle: Option<OwnedFd>,
    status: Option<WaitStatus>,
    /// Whether this is bubblewrap, whose end would kill the agent.
    is_wrapper: bool,
}

enum MonitorStage {
    /// The agent runs.
    Running,
    /// The agent and its descendants were asked to end.
    Terminating { kill_at: Instant },
    /// The agent has ended; its remaining processes were asked to end.
    Clearing { kill_at: Instant },
    /// Everything was killed.
    Killing { give_up_at: Instant },
    /// Nothing is left, or nothing more can be done.
    Over,
}

impl AgentMonitor {
    /// Monitors a process. `is_wrapper` says whether it is bubblewrap, which runs the agent and ends with it.
    pub fn new(
        mut agent: Child,
        is_wrapper: bool,
        mut stdout: TranscriptWriter,
        mut stderr: TranscriptWriter,
        limits: ProcessLimits,
    ) -> Self {
        let now = system::now();
        let pid = i32::try_from(agent.id()).ok().and_then(Pid::from_raw);
        let attached = stdout
            .attach(agent.stdout.take().map(OwnedFd::from))
            .and_then(|()| stderr.attach(agent.stderr.take().map(OwnedFd::from)))
            .and_then(|()| set_nonblocking(io::stdin().as_fd()));
        let mut this = Self {
            agent: AgentProcess { pid, handle: pid.and_then(system::pidfd), status: None, is_wrapper },
            live: LiveOutput::new(&stdout).ok(),
            stdout,
            stderr,
            limits,
            started: now,
            last_output: now,
            stage: MonitorStage::Running,
            reason: None,
            is_connected: true,
            strays: BTreeSet::new(),
        };
        if let Err(error) = attached {
            this.end_output_lost(&error);
        }
        this
    }

    /// The agent's process.
    pub fn agent(&self) -> Option<ProcessIdentity> {
        self.agent.pid.and_then(|pid| ProcessIdentity::from_pid(pid.as_raw_nonzero().get()))
    }

    /// Runs until the agent and its descendants have ended. `started` is when the agent was about to start.
    pub fn run(mut self, started_at: Timestamp, started: Instant) -> (ProcessResult, Option<LiveOutput>) {
        let mut buffer = vec![0; CHUNK];
        loop {
            self.reap();
            self.advance(system::now());
            if matches!(self.stage, MonitorStage::Over) {
                break;
            }
            if let Err(error) = self.wait() {
                self.end_output_lost(&error);
            }
            self.read_output(&mut buffer);
            self.read_commands();
        }
        let exit = self.drain(&mut buffer);
        let result = ProcessResult {
            stdout_bytes: self.stdout.bytes(),
            stderr_bytes: self.stderr.bytes(),
            strays_ended: u32::try_from(self.strays.len()).unwrap_or(u32::MAX),
            ..ProcessResult::new(exit, started_at, started)
        };
        (result, self.live)
    }

    /// Reaps ended processes. If there is no child left, monitoring is over.
    fn reap(&mut self) {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if Some(pid) == self.agent.pid => self.agent.set_ended(status),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return,
                Err(_) => {
                    self.stage = MonitorStage::Over;
                    return;
                }
            }
        }
    }

    fn advance(&mut self, now: Instant) {
        match self.stage {
            MonitorStage::Running | MonitorStage::Terminating { .. } if self.agent.status.is_some() => {
                // Signals again, because a process that was just being started may have missed the first signal.
                self.stage = MonitorStage::Clearing { kill_at: now + self.limits.grace.min(STRAY_GRACE) };
                self.signal_all(Signal::TERM);
            }
            MonitorStage::Running => {
                if let Some((_, limit)) = self.deadlines().find(|(at, _)| *at <= now) {
                    self.terminate(limit);
                }
            }
            MonitorStage::Terminating { kill_at } | MonitorStage::Clearing { kill_at } if kill_at <= now => self.kill(),
            MonitorStage::Killing { give_up_at } if give_up_at <= now => self.stage = MonitorStage::Over,
            // Kills processes that were started while others were killed.
            MonitorStage::Killing { .. } => self.signal_all(Signal::KILL),
            MonitorStage::Terminating { .. } | MonitorStage::Clearing { .. } | MonitorStage::Over => {}
        }
    }

    fn deadlines(&self) -> impl Iterator<Item = (Instant, ProcessExit)> + use<> {
        let time = self.limits.time.map(|time| (system::deadline(self.started, time), ProcessExit::TimedOut));
        let silence =
            self.limits.silence.map(|silence| (system::deadline(self.last_output, silence), ProcessExit::Silent));
        time.into_iter().chain(silence)
    }

    /// Ends the agent because its output cannot be saved.
    pub fn end_output_lost(&mut self, error: &io::Error) {
        self.terminate(ProcessExit::OutputLost { message: error.to_string() });
    }

    /// Asks the agent to end. The first reason counts, unless the agent has already ended by itself.
    fn terminate(&mut self, reason: ProcessExit) {
        self.reap();
        // Without a main program no one waits for the agent, so its grace period is short.
        let orphaned = reason == ProcessExit::Orphaned;
        if self.agent.status.is_none() && self.reason.is_none() {
            self.reason = Some(reason);
        }
        if matches!(self.stage, MonitorStage::Running) {
            let grace = if orphaned { self.limits.grace.min(STRAY_GRACE) } else { self.limits.grace };
            self.stage = MonitorStage::Terminating { kill_at: system::deadline(system::now(), grace) };
            self.signal_all(Signal::TERM);
        }
    }

    fn kill(&mut self) {
        self.stage = MonitorStage::Killing { give_up_at: system::now() + KILL_TIMEOUT };
        self.signal_all(Signal::KILL);
    }

    /// Signals the agent's process group at once, and every descendant outside the group.
    fn signal_all(&mut self, signal: Signal) {
        let group = self.agent.group();
        // Bubblewrap must not end before the agent, because that would cut the agent's grace period short.
        let spare_wrapper = self.agent.is_wrapper && signal == Signal::TERM;
        if let Some(group) = group.filter(|_| !spare_wrapper) {
            rustix::process::kill_process_group(group, signal).ok();
        }
        let group = group.map_or(0, |group| group.as_raw_nonzero().get());
        let own = rustix::process::getpid().as_raw_nonzero().get();
        for row in system::descendants(&system::read_all(), [own]) {
            let is_stray = row.group != group;
            // The group's leader is bubblewrap.
            if is_stray || (spare_wrapper && row.identity.pid != group) {
                row.identity.send_signal(signal);
            }
            if is_stray && !row.is_zombie {
                self.strays.insert(row.identity);
            }
        }
    }

    /// Waits for output, a command, the agent's end, or the next deadline.
    fn wait(&self) -> io::Result<()> {
        let (stdin, stdout) = (io::stdin(), io::stdout());
        let mut fds = Vec::with_capacity(5);
        fds.extend(self.is_connected.then(|| PollFd::new(&stdin, PollFlags::IN)));
        fds.extend(self.agent.handle.as_ref().map(|handle| PollFd::new(handle, PollFlags::IN)));
        for pipe in [self.stdout.pipe(), self.stderr.pipe()].into_iter().flatten() {
            fds.push(PollFd::from_borrowed_fd(pipe, PollFlags::IN));
        }
        if self.live.as_ref().is_some_and(LiveOutput::is_behind) {
            fds.push(PollFd::new(&stdout, PollFlags::OUT));
        }
        system::poll_fds(&mut fds, self.timeout(system::now()))
    }

    fn timeout(&self, now: Instant) -> Duration {
        let until = |at: Instant| at.saturating_duration_since(now).min(REAP_INTERVAL);
        match self.stage {
            MonitorStage::Clearing { .. } | MonitorStage::Killing { .. } | MonitorStage::Over => POLL_INTERVAL,
            MonitorStage::Running | MonitorStage::Terminating { .. } if self.agent.handle.is_none() => POLL_INTERVAL,
            MonitorStage::Terminating { kill_at } => until(kill_at),
            MonitorStage::Running => self.deadlines().map(|(at, _)| until(at)).min().unwrap_or(REAP_INTERVAL),
        }
    }

    fn read_output(&mut self, buffer: &mut [u8]) {
        let results = [self.stdout.copy_chunk(buffer), self.stderr.copy_chunk(buffer)];
        for result in results {
            match result {
                Ok(0) => {}
                Ok(_) => self.last_output = system::now(),
                Err(error) => self.end_output_lost(&error),
            }
        }
        if let Some(live) = &mut self.live {
            live.set_available(self.stdout.bytes());
            live.forward_chunk(buffer);
        }
    }

    /// Executes the main program's commands. If the main program is gone, ends the agent.
    fn read_commands(&mut self) {
        let mut commands = [0; 16];
        while self.is_connected {
            match rustix::io::read(io::stdin(), &mut commands) {
                Ok(0) => {
                    self.is_connected = false;
                    self.terminate(ProcessExit::Orphaned);
                }
                Ok(read) => commands.iter().take(read).for_each(|word| self.apply_command(*word)),
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    fn apply_command(&mut self, command: u8) {
        match command {
            STOP => self.terminate(ProcessExit::Stopped),
            KILL => {
                self.terminate(ProcessExit::Stopped);
                self.kill();
            }
            // Ignore unknown commands of a newer main program.
            _ => {}
        }
    }

    /// Reads the rest of the output, and returns how the agent ended.
    fn drain(&mut self, buffer: &mut [u8]) -> ProcessExit {
        let drained = self.stdout.drain(buffer).and_then(|()| self.stderr.drain(buffer));
        if let Some(live) = &mut self.live {
            live.set_available(self.stdout.bytes());
        }
        let output_lost = drained.err().map(|error| ProcessExit::OutputLost { message: error.to_string() });
        output_lost.or(self.reason.take()).unwrap_or_else(|| self.agent.exit())
    }
}

impl AgentProcess {
    fn set_ended(&mut self, status: WaitStatus) {
        self.status = Some(status);
        self.handle = None;
        // Without a subreaper there is no other way to reach its remaining processes.
        #[cfg(not(target_os = "linux"))]
        if let Some(group) = self.pid {
            rustix::process::kill_process_group(group, Signal::KILL).ok();
        }
    }

    /// Its process group, as long as the number cannot have been reused.
    fn group(&self) -> Option<Pid> {
        self.pid.filter(|_| self.status.is_none())
    }

    fn exit(&self) -> ProcessExit {
        let signal = self.status.and_then(WaitStatus::terminating_signal).map(ProcessExit::Signal);
        let code = self.status.and_then(WaitStatus::exit_status).map(ProcessExit::Code);
        signal.or(code).unwrap_or(ProcessExit::OutputLost { message: "the agent could not be ended".to_owned() })
    }
}
