//! A place for one test's attempts, which must be deserted when the test is over.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::Value;
use signoff_engine::process::{AttemptDir, Ended, Keeper, Launch, Limits, Running};
use tempfile::TempDir;

/// No limit that a test could run into.
pub const NO_LIMITS: Limits = Limits { time: None, silence: None, grace: Duration::from_secs(60) };

pub struct Place {
    root: TempDir,
}

impl Place {
    pub fn new() -> Self {
        let root = tempfile::Builder::new().prefix("signoff-process-").tempdir().unwrap();
        let this = Self { root };
        fs::create_dir(this.dir().path()).unwrap();
        fs::write(this.dir().prompt(), "do it").unwrap();
        this
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub fn dir(&self) -> AttemptDir {
        AttemptDir::new(self.path("attempt"))
    }

    pub fn live(&self) -> PathBuf {
        self.path("live")
    }

    pub fn keeper(&self) -> Keeper {
        let program = env!("CARGO_BIN_EXE_signoff-keeper").into();
        Keeper { program, live: self.live(), person: self.path("home"), hidden: Vec::new() }
    }

    /// An agent that is a shell script, run in this place.
    pub fn launch(&self, script: &str, limits: Limits) -> Launch {
        Launch {
            program: "sh".to_owned(),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            directory: self.root.path().to_owned(),
            environment: Vec::new(),
            held: None,
            limits,
        }
    }

    pub async fn start(&self, script: &str, limits: Limits) -> Running {
        self.keeper().start(&self.launch(script, limits), &self.dir()).await.unwrap()
    }

    pub async fn run(&self, script: &str, limits: Limits) -> Ended {
        self.start(script, limits).await.wait().await
    }

    /// Starts an attempt from a process of its own, which can be killed.
    #[expect(clippy::disallowed_methods, reason = "these tests' one door for spawning")]
    pub fn drive(&self, script: &str, limits: Limits) -> Driver {
        let launch = serde_json::to_string(&self.launch(script, limits)).unwrap();
        let mut command = Command::new(self.keeper().program);
        command.arg("drive").arg(self.live()).arg(self.dir().path()).arg(launch);
        Driver(command.spawn().unwrap())
    }

    /// The keeper's command, started by nobody yet.
    #[expect(clippy::disallowed_methods, reason = "these tests' one door for spawning")]
    pub fn bare_keeper(&self) -> Command {
        let mut command = Command::new(self.keeper().program);
        command.arg("__keep").arg(self.dir().path()).stdin(Stdio::null());
        command
    }

    /// Somebody who has nothing to do with us.
    #[expect(clippy::disallowed_methods, reason = "these tests' one door for spawning")]
    pub fn bystander() -> Child {
        Command::new("sleep").arg("1000").spawn().unwrap()
    }

    /// A named pipe: whoever reads it waits until somebody writes, and its end until all writers are gone.
    #[expect(clippy::disallowed_methods, reason = "these tests' one door for spawning")]
    pub fn pipe(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }

    pub fn stdout(&self) -> String {
        fs::read_to_string(self.dir().stdout()).unwrap()
    }

    /// What the keeper has written down about itself and the agent.
    fn kept(&self) -> Value {
        serde_json::from_slice(&fs::read(self.dir().keeper()).unwrap()).unwrap()
    }

    /// A hold on the keeper's process.
    pub fn keeper_process(&self) -> Process {
        let pid = i32::try_from(self.kept()["keeper"]["pid"].as_i64().unwrap()).unwrap();
        Process(pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap())
    }

    /// Waits until nobody is here any more: a keeper that starts nothing takes a moment to see that.
    pub fn await_desertion(&self) {
        while any_becomes_another() || !self.inhabitants().is_empty() {
            std::thread::yield_now();
        }
    }

    /// Processes that know this place, by their arguments or their environment.
    fn inhabitants(&self) -> Vec<String> {
        let root = self.root.path().to_str().unwrap();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let read = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
            let text = [read("cmdline"), read("environ")].concat();
            let text = String::from_utf8_lossy(&text).replace('\0', " ");
            if text.contains(root) {
                found.push(format!("{}: {text}", entry.file_name().display()));
            }
        }
        found
    }
}

/// In the moment in which it becomes another program a process shows neither arguments nor environment.
fn any_becomes_another() -> bool {
    let shows_nothing = |process: PathBuf| {
        let is_empty = |file: &str| fs::read(process.join(file)).is_ok_and(|text| text.is_empty());
        is_empty("cmdline") && is_empty("environ") && fs::read_link(process.join("exe")).is_ok()
    };
    fs::read_dir("/proc").unwrap().flatten().any(|entry| shows_nothing(entry.path()))
}

impl Drop for Place {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.inhabitants(), Vec::<String>::new(), "something was left behind");
            let live = fs::read_dir(self.live()).map_or(0, Iterator::count);
            assert_eq!(live, 0, "an attempt is still listed");
        }
    }
}

/// A process that is not our child.
pub struct Process(OwnedFd);

impl Process {
    pub fn send(&self, signal: Signal) {
        pidfd_send_signal(&self.0, signal).unwrap();
    }

    /// Waits until it is dead.
    pub fn outlive(&self) {
        poll(&mut [PollFd::new(&self.0, PollFlags::IN)], None).unwrap();
    }

    pub fn kill(&self) {
        self.send(Signal::KILL);
        self.outlive();
    }
}

/// A program that drives one attempt.
pub struct Driver(Child);

impl Driver {
    pub fn send(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub fn kill(mut self) {
        self.send(Signal::KILL);
        self.0.wait().unwrap();
    }
}

/// The reading end of a named pipe.
pub struct Listener(BufReader<fs::File>);

impl Listener {
    pub fn open(pipe: &Path) -> Self {
        Self(BufReader::new(fs::File::open(pipe).unwrap()))
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Waits until all who could write are gone; what they had written.
    pub fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.0.read_to_string(&mut rest).unwrap();
        rest
    }
}
