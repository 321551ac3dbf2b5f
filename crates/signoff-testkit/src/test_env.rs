//! An isolated environment for each test: home, working directory and variables.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;

use tempfile::TempDir;

use crate::ProgramOutput;

/// The environment of one test. Only `PATH` is inherited from the machine.
#[derive(Debug)]
pub struct TestEnv {
    root: TempDir,
}

impl TestEnv {
    /// Creates an environment for `program`, which tests pass as `env!("CARGO_BIN_EXE_signoff")`.
    ///
    /// # Panics
    /// If the temporary directory cannot be set up.
    pub fn new(program: impl AsRef<Path>) -> Self {
        Self::below(&std::env::temp_dir(), program.as_ref())
    }

    /// The same outside of shared memory, which sandboxed agents may write to.
    ///
    /// # Panics
    /// If the temporary directory cannot be set up.
    pub fn outside_shared_memory(program: impl AsRef<Path>) -> Self {
        let temporary = std::env::temp_dir();
        let is_shared = temporary.starts_with("/dev/shm");
        Self::below(if is_shared { Path::new("/tmp") } else { &temporary }, program.as_ref())
    }

    fn below(directory: &Path, program: &Path) -> Self {
        let root = tempfile::Builder::new().prefix("signoff-test-").tempdir_in(directory);
        let this = Self { root: root.expect("a temporary directory") };
        for directory in [this.home(), this.work(), this.bin()] {
            fs::create_dir(directory).expect("a fresh directory");
        }
        link(program, &this.program());
        this
    }

    /// The root directory. Every process of the test has it in its environment.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// The working directory.
    pub fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    fn bin(&self) -> PathBuf {
        self.root.path().join("bin")
    }

    pub(crate) fn program(&self) -> PathBuf {
        self.bin().join(format!("signoff{}", std::env::consts::EXE_SUFFIX))
    }

    /// Writes a file below the working directory.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        let path = self.work().join(name);
        fs::create_dir_all(path.parent().expect("a file lies in a directory")).expect("a directory");
        fs::write(path, contents).expect("a written file");
    }

    /// Adds a shell script at the front of `PATH`, hiding a program of the same name.
    ///
    /// # Panics
    /// If the file cannot be written.
    #[cfg(unix)]
    pub fn stub_program(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.bin().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a written script");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a script that can be run");
    }

    /// Starts the program without waiting for it, with an empty stdin.
    ///
    /// # Panics
    /// If the program cannot be started.
    pub fn start(&self, arguments: &[&str]) -> Child {
        self.start_with(arguments, &[])
    }

    /// Starts the program with these environment variables.
    ///
    /// # Panics
    /// If the program cannot be started.
    pub fn start_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Child {
        let mut command = self.command(self.program(), arguments);
        command.stdin(Stdio::null()).envs(variables.iter().copied());
        command.spawn().expect("a started program")
    }

    /// Starts the program in its own process group, as a terminal does.
    ///
    /// # Panics
    /// If the program cannot be started.
    #[cfg(unix)]
    pub fn start_group(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(self.program(), arguments);
        command.stdin(Stdio::null());
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.spawn().expect("a started program")
    }

    /// Waits for a started program to end.
    ///
    /// # Panics
    /// If it cannot be waited for.
    pub fn finish(&self, child: Child) -> ProgramOutput {
        let output = child.wait_with_output().expect("an ended program");
        ProgramOutput::new(&output, |text| self.redact(text))
    }

    /// Runs the program with these environment variables.
    pub fn run_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> ProgramOutput {
        self.finish(self.start_with(arguments, variables))
    }

    /// Runs the program with an empty stdin.
    pub fn run(&self, arguments: &[&str]) -> ProgramOutput {
        self.run_with_input(arguments, b"")
    }

    /// Runs the program with `input` on stdin.
    pub fn run_with_input(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> ProgramOutput {
        let input = input.as_ref().to_vec();
        self.feed(self.command(self.program(), arguments), move |mut stdin| {
            // The program may end without reading everything; the test decides whether that is an error.
            stdin.write_all(&input).ok();
        })
    }

    /// Runs the program with `input` on stdin and a closed stdout.
    ///
    /// # Panics
    /// If the program cannot be started.
    pub fn run_with_closed_stdout(&self, arguments: &[&str], input: &[u8]) -> ProgramOutput {
        let mut child = self.command(self.program(), arguments).spawn().expect("a started program");
        drop(child.stdout.take());
        child.stdin.take().expect("a piped stdin").write_all(input).expect("a program that listens");
        let output = child.wait_with_output().expect("an ended program");
        ProgramOutput::new(&output, |text| self.redact(text))
    }

    /// Runs a shell script, with the program in `PATH` as `signoff`.
    pub fn shell(&self, script: &str) -> ProgramOutput {
        self.shell_with_stdin(script, drop)
    }

    /// Runs a shell script whose stdin is written by `feed` on its own thread.
    pub fn shell_with_stdin(&self, script: &str, feed: impl FnOnce(ChildStdin) + Send + 'static) -> ProgramOutput {
        self.feed(self.command("sh", &["-c", script]), feed)
    }

    fn feed(&self, mut command: Command, feed: impl FnOnce(ChildStdin) + Send + 'static) -> ProgramOutput {
        let mut child: Child = command.spawn().expect("a started program");
        let stdin = child.stdin.take().expect("a piped stdin");
        let feeder = thread::spawn(move || feed(stdin));
        let output = child.wait_with_output().expect("an ended program");
        feeder.join().expect("a feeder that ends");
        ProgramOutput::new(&output, |text| self.redact(text))
    }

    #[expect(clippy::disallowed_methods, reason = "the tests' one door for spawning")]
    pub(crate) fn command(&self, program: impl AsRef<OsStr>, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.work())
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", self.path())
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    #[expect(clippy::disallowed_methods, reason = "the shell's own tools are wherever this machine has them")]
    fn path(&self) -> OsString {
        let machine = std::env::var_os("PATH").unwrap_or_default();
        let places = std::iter::once(self.bin()).chain(std::env::split_paths(&machine));
        std::env::join_paths(places).expect("a PATH that can be extended")
    }

    fn redact(&self, text: &str) -> String {
        let text = text.replace(&self.root.path().display().to_string(), "[ROOT]");
        // The sandbox line of `doctor` depends on the kernel; the examples show that of a recent one.
        text.split_inclusive('\n').map(|line| if is_sandbox_line(line) { SANDBOX_LINE } else { line }).collect()
    }
}

fn is_sandbox_line(line: &str) -> bool {
    line.contains("sandbox: reviewers: read-only; writers: own worktree only (")
        || line.contains("sandbox: agents can write anywhere")
}

const SANDBOX_LINE: &str = "✓ sandbox: reviewers: read-only; writers: own worktree only (Landlock, version 7); \
                            signoff reverts reviewers' changes\n";

#[cfg(unix)]
fn link(program: &Path, to: &Path) {
    std::os::unix::fs::symlink(program, to).expect("a link to the program");
}

#[cfg(not(unix))]
fn link(program: &Path, to: &Path) {
    fs::copy(program, to).expect("a copy of the program");
}
