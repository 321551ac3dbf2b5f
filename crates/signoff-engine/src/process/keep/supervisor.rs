//! Watches one agent from its start until nothing it started is left.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use super::live::Live;
use super::transcript::{CHUNK, Transcript, never_block};
use super::{KILL, STOP};
use crate::process::table::{self, Identity};
use crate::process::{Exit, Limits, door};

/// What an agent leaves behind gets this long to end in order, if the grace is not shorter.
const STRAY_GRACE: Duration = Duration::from_secs(2);
/// What is not gone this long after having been killed hangs in the kernel or is not ours to kill.
const GIVE_UP: Duration = Duration::from_secs(3);
/// How often to look for the end of processes that cannot be waited for otherwise.
const SOON: Duration = Duration::from_millis(5);
/// How often at least to bury what the agent's own children left behind.
const LATER: Duration = Duration::from_secs(1);

/// Whose end is waited for.
pub enum Watched {
    Plain(Child),
    /// A program that holds the agent and ends when that does.
    Wrapped(Child),
}

pub struct Supervisor {
    agent: Agent,
    stdout: Transcript,
    stderr: Transcript,
    live: Option<Live>,
    limits: Limits,
    started: Instant,
    /// When it last said something.
    heard: Instant,
    stage: Stage,
    /// Why we ended it; none if it ended by itself.
    reason: Option<Exit>,
    /// Whether the program can still tell us something.
    controlled: bool,
    strays: BTreeSet<Identity>,
}

struct Agent {
    pid: Option<Pid>,
    /// Tells the end of the process to a poll. None where there is no such thing, and once it is told.
    handle: Option<OwnedFd>,
    status: Option<WaitStatus>,
    /// Whether it is only in front of the agent, and would take that with it if it were asked to end.
    is_wrapper: bool,
}

enum Stage {
    Running,
    /// The agent and all it started have been asked to end.
    Terminating {
        kill_at: Instant,
    },
    /// The agent is over; what it left behind has been asked to end.
    Clearing {
        kill_at: Instant,
    },
    Killing {
        give_up_at: Instant,
    },
    /// Nothing is left, or nothing more can be done.
    Over,
}

/// How it went.
pub struct Outcome {
    pub exit: Exit,
    pub stdout_bytes: u64,
    pub stderr_bytes: u64,
    pub strays_ended: u32,
}

impl Outcome {
    pub fn not_started(exit: Exit) -> Self {
        Self { exit, stdout_bytes: 0, stderr_bytes: 0, strays_ended: 0 }
    }
}

impl Supervisor {
    pub fn new(agent: Watched, mut stdout: Transcript, mut stderr: Transcript, limits: Limits) -> Self {
        let now = door::now();
        let is_wrapper = matches!(agent, Watched::Wrapped(_));
        let (Watched::Plain(mut agent) | Watched::Wrapped(mut agent)) = agent;
        let attached = stdout
            .attach(agent.stdout.take().map(OwnedFd::from))
            .and_then(|()| stderr.attach(agent.stderr.take().map(OwnedFd::from)))
            .and_then(|()| never_block(io::stdin().as_fd()));
        let mut this = Self {
            agent: Agent { is_wrapper, ..Agent::new(&agent) },
            live: Live::of(&stdout).ok(),
            stdout,
            stderr,
            limits,
            started: now,
            heard: now,
            stage: Stage::Running,
            reason: None,
            controlled: true,
            strays: BTreeSet::new(),
        };
        if let Err(error) = attached {
            this.end_unkept(&error);
        }
        this
    }

    /// The agent's process.
    pub fn agent(&self) -> Option<Identity> {
        self.agent.pid.and_then(|pid| Identity::of(pid.as_raw_nonzero().get()))
    }

    /// Watches until all is over.
    pub fn run(mut self) -> (Outcome, Option<Live>) {
        let mut buffer = vec![0; CHUNK];
        loop {
            self.bury();
            self.advance(door::now());
            if matches!(self.stage, Stage::Over) {
                break;
            }
            if let Err(error) = self.wait() {
                self.end_unkept(&error);
            }
            self.listen(&mut buffer);
            self.obey();
        }
        self.finish(&mut buffer)
    }

    /// Takes note of processes that ended. Where nothing is left to wait for, nothing is left.
    fn bury(&mut self) {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if Some(pid) == self.agent.pid => self.agent.ended(status),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return,
                Err(_) => {
                    self.stage = Stage::Over;
                    return;
                }
            }
        }
    }

    fn advance(&mut self, now: Instant) {
        match self.stage {
            Stage::Running | Stage::Terminating { .. } if self.agent.status.is_some() => {
                // Asked once more: who was just being started when all were asked has not heard it.
                self.stage = Stage::Clearing { kill_at: now + self.limits.grace.min(STRAY_GRACE) };
                self.signal_all(Signal::TERM);
            }
            Stage::Running => {
                if let Some((_, limit)) = self.deadlines().find(|(at, _)| *at <= now) {
                    self.end(limit);
                }
            }
            Stage::Terminating { kill_at } | Stage::Clearing { kill_at } if kill_at <= now => self.kill(),
            Stage::Killing { give_up_at } if give_up_at <= now => self.stage = Stage::Over,
            // What was started while the others were killed.
            Stage::Killing { .. } => self.signal_all(Signal::KILL),
            Stage::Terminating { .. } | Stage::Clearing { .. } | Stage::Over => {}
        }
    }

    fn deadlines(&self) -> impl Iterator<Item = (Instant, Exit)> + use<> {
        let time = self.limits.time.map(|time| (door::after(self.started, time), Exit::TimedOut));
        let silence = self.limits.silence.map(|silence| (door::after(self.heard, silence), Exit::Silent));
        time.into_iter().chain(silence)
    }

    /// Ends the agent because what it says cannot be kept.
    pub fn end_unkept(&mut self, error: &io::Error) {
        self.end(Exit::Unkept { message: error.to_string() });
    }

    /// Asks the agent to end. The first reason counts, and none does if it has ended by itself.
    fn end(&mut self, reason: Exit) {
        self.bury();
        // Nobody waits for an agent whose program is gone: it has no claim to a long grace.
        let orphaned = reason == Exit::Orphaned;
        if self.agent.status.is_none() && self.reason.is_none() {
            self.reason = Some(reason);
        }
        if matches!(self.stage, Stage::Running) {
            let grace = if orphaned { self.limits.grace.min(STRAY_GRACE) } else { self.limits.grace };
            self.stage = Stage::Terminating { kill_at: door::after(door::now(), grace) };
            self.signal_all(Signal::TERM);
        }
    }

    fn kill(&mut self) {
        self.stage = Stage::Killing { give_up_at: door::now() + GIVE_UP };
        self.signal_all(Signal::KILL);
    }

    /// Sends a signal to the agent's group at one blow, and to every descendant that left the group.
    fn signal_all(&mut self, signal: Signal) {
        let group = self.agent.group();
        // Who holds the agent ends when that does, and not before: the agent's grace would end with it.
        let apart = self.agent.is_wrapper && signal == Signal::TERM;
        if let Some(group) = group.filter(|_| !apart) {
            rustix::process::kill_process_group(group, signal).ok();
        }
        let group = group.map_or(0, |group| group.as_raw_nonzero().get());
        let own = rustix::process::getpid().as_raw_nonzero().get();
        for row in table::descendants(&table::rows(), [own]) {
            let is_stray = row.group != group;
            // The leader of the group is the wrapper.
            if is_stray || (apart && row.identity.pid != group) {
                row.identity.send(signal);
            }
            if is_stray && !row.zombie {
                self.strays.insert(row.identity);
            }
        }
    }

    /// Waits for a word of the agent or the program, the agent's end, or the next deadline.
    fn wait(&self) -> io::Result<()> {
        let (stdin, stdout) = (io::stdin(), io::stdout());
        let mut fds = Vec::with_capacity(5);
        fds.extend(self.controlled.then(|| PollFd::new(&stdin, PollFlags::IN)));
        fds.extend(self.agent.handle.as_ref().map(|handle| PollFd::new(handle, PollFlags::IN)));
        for pipe in [self.stdout.pipe(), self.stderr.pipe()].into_iter().flatten() {
            fds.push(PollFd::from_borrowed_fd(pipe, PollFlags::IN));
        }
        if self.live.as_ref().is_some_and(Live::is_behind) {
            fds.push(PollFd::new(&stdout, PollFlags::OUT));
        }
        door::wait_for(&mut fds, self.timeout(door::now()))
    }

    fn timeout(&self, now: Instant) -> Duration {
        let until = |at: Instant| at.saturating_duration_since(now).min(LATER);
        match self.stage {
            Stage::Clearing { .. } | Stage::Killing { .. } | Stage::Over => SOON,
            Stage::Running | Stage::Terminating { .. } if self.agent.handle.is_none() => SOON,
            Stage::Terminating { kill_at } => until(kill_at),
            Stage::Running => self.deadlines().map(|(at, _)| until(at)).min().unwrap_or(LATER),
        }
    }

    fn listen(&mut self, buffer: &mut [u8]) {
        let heard = [self.stdout.pump(buffer), self.stderr.pump(buffer)];
        for heard in heard {
            match heard {
                Ok(0) => {}
                Ok(_) => self.heard = door::now(),
                Err(error) => self.end_unkept(&error),
            }
        }
        if let Some(live) = &mut self.live {
            live.grow(self.stdout.bytes());
            live.pump(buffer);
        }
    }

    /// Does what the program says. When it is gone there is nobody left to work for.
    fn obey(&mut self) {
        let mut words = [0; 16];
        while self.controlled {
            match rustix::io::read(io::stdin(), &mut words) {
                Ok(0) => {
                    self.controlled = false;
                    self.end(Exit::Orphaned);
                }
                Ok(read) => words.iter().take(read).for_each(|word| self.obey_word(*word)),
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    fn obey_word(&mut self, word: u8) {
        match word {
            STOP => self.end(Exit::Stopped),
            KILL => {
                self.end(Exit::Stopped);
                self.kill();
            }
            // A newer program may know more words than we do.
            _ => {}
        }
    }

    fn finish(mut self, buffer: &mut [u8]) -> (Outcome, Option<Live>) {
        let drained = self.stdout.drain(buffer).and_then(|()| self.stderr.drain(buffer));
        if let Some(live) = &mut self.live {
            live.grow(self.stdout.bytes());
        }
        let unkept = drained.err().map(|error| Exit::Unkept { message: error.to_string() });
        let outcome = Outcome {
            exit: unkept.or(self.reason).unwrap_or_else(|| self.agent.exit()),
            stdout_bytes: self.stdout.bytes(),
            stderr_bytes: self.stderr.bytes(),
            strays_ended: u32::try_from(self.strays.len()).unwrap_or(u32::MAX),
        };
        (outcome, self.live)
    }
}

impl Agent {
    fn new(child: &Child) -> Self {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        Self { pid, handle: pid.and_then(door::handle), status: None, is_wrapper: false }
    }

    fn ended(&mut self, status: WaitStatus) {
        self.status = Some(status);
        self.handle = None;
        // Without a subreaper nothing else reaches what it left behind.
        #[cfg(not(target_os = "linux"))]
        if let Some(group) = self.pid {
            rustix::process::kill_process_group(group, Signal::KILL).ok();
        }
    }

    /// Its process group, as long as that number cannot have gone to another.
    fn group(&self) -> Option<Pid> {
        self.pid.filter(|_| self.status.is_none())
    }

    fn exit(&self) -> Exit {
        let signal = self.status.and_then(WaitStatus::terminating_signal).map(Exit::Signal);
        let code = self.status.and_then(WaitStatus::exit_status).map(Exit::Code);
        signal.or(code).unwrap_or(Exit::Unkept { message: "the agent could not be ended".to_owned() })
    }
}
