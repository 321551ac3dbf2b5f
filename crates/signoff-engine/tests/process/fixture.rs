//! A temporary directory for the attempts of one test. No process may be left when the test ends.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::Value;
use signoff_engine::process::{
    AttemptDir, ProcessLaunch, ProcessLimits, ProcessResult, RunningAttempt, SupervisorLauncher,
};
use tempfile::TempDir;

/// Limits that no test reaches.
pub const NO_LIMITS: ProcessLimits = ProcessLimits { time: None, silence: None, grace: Duration::from_secs(60) };

pub struct ProcessFixture {
    root: TempDir,
}

impl ProcessFixture {
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

    pub fn launcher(&self) -> SupervisorLauncher {
        let program = env!("CARGO_BIN_EXE_test-supervisor").into();
        SupervisorLauncher { program, live_dir: self.live(), user_home: self.path("home"), secrets: Vec::new() }
    }

    /// Returns the launch of a shell script as agent, in this directory.
    pub fn launch(&self, script: &str, limits: ProcessLimits) -> ProcessLaunch {
        ProcessLaunch {
            program: "sh".to_owned(),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            directory: self.root.path().to_owned(),
            environment: Vec::new(),
            sandbox: None,
            limits,
        }
    }

    pub async fn start(&self, script: &str, limits: ProcessLimits) -> RunningAttempt {
        self.launcher().start(&self.launch(script, limits), &self.dir()).await.unwrap()
    }

    pub async fn run(&self, script: &str, limits: ProcessLimits) -> ProcessResult {
        self.start(script, limits).await.wait().await
    }

    /// Starts an attempt from a separate process, which the test can kill.
    #[expect(clippy::disallowed_methods, reason = "the only place where these tests spawn a process")]
    pub fn start_process(&self, script: &str, limits: ProcessLimits) -> KillableProcess {
        let launch = serde_json::to_string(&self.launch(script, limits)).unwrap();
        let mut command = Command::new(self.launcher().program);
        command.arg("run").arg(self.live()).arg(self.dir().path()).arg(launch);
        KillableProcess(command.spawn().unwrap())
    }

    /// Returns the supervisor's command without starting it.
    #[expect(clippy::disallowed_methods, reason = "the only place where these tests spawn a process")]
    pub fn supervisor_command(&self) -> Command {
        let mut command = Command::new(self.launcher().program);
        command.arg("__keep").arg(self.dir().path()).stdin(Stdio::null());
        command
    }

    /// Starts an unrelated process.
    #[expect(clippy::disallowed_methods, reason = "the only place where these tests spawn a process")]
    pub fn bystander() -> Child {
        Command::new("sleep").arg("1000").spawn().unwrap()
    }

    /// Creates a FIFO. A reader blocks until a writer opens it, and reads end of file when all writers are gone.
    #[expect(clippy::disallowed_methods, reason = "the only place where these tests spawn a process")]
    pub fn pipe(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }

    pub fn stdout(&self) -> String {
        fs::read_to_string(self.dir().stdout()).unwrap()
    }

    /// Reads the state file of the supervisor.
    fn supervisor_state(&self) -> Value {
        serde_json::from_slice(&fs::read(self.dir().supervisor_record()).unwrap()).unwrap()
    }

    /// Opens the supervisor's process.
    pub fn supervisor_process(&self) -> Process {
        let pid = i32::try_from(self.supervisor_state()["keeper"]["pid"].as_i64().unwrap()).unwrap();
        Process(pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap())
    }

    /// Waits until no process is left. A supervisor that starts nothing needs a moment to exit.
    pub fn wait_until_no_processes(&self) {
        while any_process_is_in_exec() || !self.processes().is_empty() {
            std::thread::yield_now();
        }
    }

    /// Lists processes with this directory in their arguments or environment.
    fn processes(&self) -> Vec<String> {
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

/// Returns whether a process is in `exec`, where it shows neither arguments nor environment.
fn any_process_is_in_exec() -> bool {
    let shows_nothing = |process: PathBuf| {
        let is_empty = |file: &str| fs::read(process.join(file)).is_ok_and(|text| text.is_empty());
        is_empty("cmdline") && is_empty("environ") && fs::read_link(process.join("exe")).is_ok()
    };
    fs::read_dir("/proc").unwrap().flatten().any(|entry| shows_nothing(entry.path()))
}

impl Drop for ProcessFixture {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.processes(), Vec::<String>::new(), "processes are still running");
            let live = fs::read_dir(self.live()).map_or(0, Iterator::count);
            assert_eq!(live, 0, "an attempt is still listed");
        }
    }
}

/// A process that is no child of the test.
pub struct Process(OwnedFd);

impl Process {
    pub fn send(&self, signal: Signal) {
        pidfd_send_signal(&self.0, signal).unwrap();
    }

    /// Waits until the process is dead.
    pub fn wait(&self) {
        poll(&mut [PollFd::new(&self.0, PollFlags::IN)], None).unwrap();
    }

    pub fn kill(&self) {
        self.send(Signal::KILL);
        self.wait();
    }
}

/// A process that runs one attempt.
pub struct KillableProcess(Child);

impl KillableProcess {
    pub fn send(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub fn kill(mut self) {
        self.send(Signal::KILL);
        self.0.wait().unwrap();
    }
}

/// The reading end of a FIFO.
pub struct FifoReader(BufReader<fs::File>);

impl FifoReader {
    pub fn open(pipe: &Path) -> Self {
        Self(BufReader::new(fs::File::open(pipe).unwrap()))
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Waits until all writers are gone and returns the rest of their output.
    pub fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.0.read_to_string(&mut rest).unwrap();
        rest
    }
}
