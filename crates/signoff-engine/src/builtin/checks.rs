//! `signoff __checks FILE`: runs the project's commands, one after the other, and prints how each went.
//!
//! A failing command is data, not a failure of this program. It runs under the same limits as any agent, so it sets
//! none itself.

use std::fs;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};

use serde::{Deserialize, Serialize};
use signoff_core::checks::{Ran, relative};
use signoff_core::contract::MAX_BYTES;

mod kept;

use kept::{Kept, escaped};

/// The most that is kept of one command's output, in bytes: half of it from the start, half from the end.
pub const MOST_OUTPUT: usize = 256 * 1024;

/// What a command costs in the report besides its name, itself and its output; with room to spare.
const PER_COMMAND: usize = 256;

/// What a shell exits with where it does not find a program.
const NOT_FOUND: i32 = 127;

/// One command of the project, as the file given to `__checks` lists them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub name: String,
    pub command: String,
}

/// What is printed in place of a report where a program is not there that a check needs: that is nothing that the work
/// could mend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotRun {
    pub not_run: String,
}

/// Why the checks could not be run. That one of them fails is no error.
#[derive(Debug, thiserror::Error)]
pub enum ChecksError {
    #[error("{}: {cause}", path.display())]
    List { path: PathBuf, cause: io::Error },
    #[error("{}: not a list of checks: {cause}", path.display())]
    Format { path: PathBuf, cause: serde_json::Error },
    #[error("`{command}` could not be run: {cause}")]
    Start { command: String, cause: io::Error },
    #[error("check `{name}` needs `{program}`, which is not installed")]
    Missing { name: String, program: String },
    #[error("the results could not be printed: {0}")]
    Print(io::Error),
}

/// The program: exit 0 when all commands could be run, however they went, and 1 when not.
pub fn run(list: &Path) -> ExitCode {
    match print(list) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to tell when stderr is gone.
            let _ = writeln!(io::stderr(), "signoff: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print(list: &Path) -> Result<(), ChecksError> {
    let path = list.to_owned();
    let text = fs::read(list).map_err(|cause| ChecksError::List { path: path.clone(), cause })?;
    let checks: Vec<Check> =
        serde_json::from_slice(&text).map_err(|cause| ChecksError::Format { path, cause })?;
    let told = match run_each(&checks, Path::new(".")) {
        Err(missing @ ChecksError::Missing { .. }) => {
            serde_json::to_string(&NotRun { not_run: missing.to_string() })
        }
        ran => serde_json::to_string(&ran?),
    };
    let told = told.map_err(|cause| ChecksError::Print(cause.into()))?;
    let mut stdout = io::stdout();
    writeln!(stdout, "{told}").and_then(|()| stdout.flush()).map_err(ChecksError::Print)
}

/// Runs each command with `sh -c` in the directory; paths below it are told from there.
pub fn run_each(checks: &[Check], directory: &Path) -> Result<Vec<Ran>, ChecksError> {
    let room = room(checks);
    checks
        .iter()
        .map(|check| {
            let start = |cause| ChecksError::Start { command: check.command.clone(), cause };
            let ran = run_one(check, directory, room).map_err(start)?;
            match missing(&ran, directory).map_err(start)? {
                Some(program) => Err(ChecksError::Missing { name: check.name.clone(), program }),
                None => Ok(ran),
            }
        })
        .collect()
}

/// The program that a command begins with, where the shell could not find it. What is named by a path is part of the
/// work, and missed as such.
fn missing(ran: &Ran, directory: &Path) -> io::Result<Option<String>> {
    let first = ran.command.split_whitespace().find(|word| !word.contains('='));
    let is_name = |word: &&str| word.chars().all(|one| one.is_ascii_alphanumeric() || "_-+.".contains(one));
    let Some(program) = first.filter(is_name).filter(|_| ran.code == Some(NOT_FOUND)) else {
        return Ok(None);
    };
    let known = shell(&format!("command -v {program}"), directory).stdout(Stdio::null()).status()?.success();
    Ok((!known).then(|| program.to_owned()))
}

/// How much each output may take of the report, as JSON has it: whoever reads the report reads no more than any answer
/// may have.
fn room(checks: &[Check]) -> usize {
    let named = |check: &Check| escaped(&check.name) + escaped(&check.command) + PER_COMMAND;
    let taken: usize = checks.iter().map(named).sum();
    MAX_BYTES.saturating_sub(taken) / checks.len().max(1)
}

fn run_one(check: &Check, directory: &Path, room: usize) -> io::Result<Ran> {
    let (reader, writer) = io::pipe()?;
    let mut mark = [0; 32];
    getrandom::fill(&mut mark).map_err(io::Error::other)?;
    let child = start(&check.command, directory, &writer)?;
    let waiting = announce_end(child, writer, mark);
    let output = read_until(reader, &mark)?.into_text(room);
    let status = waiting.join().map_err(|_| io::Error::other("the wait for it failed"))??;
    let output = match fs::canonicalize(directory)?.to_str() {
        Some(directory) => relative(&output, directory),
        None => output,
    };
    Ok(Ran { name: check.name.clone(), command: check.command.clone(), code: status.code(), output })
}

fn start(command: &str, directory: &Path, writer: &PipeWriter) -> io::Result<Child> {
    shell(command, directory).stdout(writer.try_clone()?).stderr(writer.try_clone()?).spawn()
}

#[expect(clippy::disallowed_methods, reason = "the one place that starts a check")]
fn shell(command: &str, directory: &Path) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(directory).stdin(Stdio::null());
    shell
}

/// Writes the mark behind the output when the command has ended. The end of the pipe would not do: a server that the
/// command left running in the background holds it open.
fn announce_end(
    mut child: Child,
    mut writer: PipeWriter,
    mark: [u8; 32],
) -> JoinHandle<io::Result<ExitStatus>> {
    thread::spawn(move || {
        let status = child.wait();
        writer.write_all(&mark)?;
        status
    })
}

fn read_until(mut reader: PipeReader, mark: &[u8]) -> io::Result<Kept> {
    let mut kept = Kept::new(MOST_OUTPUT);
    let mut chunk = vec![0; 64 * 1024];
    // What may be the beginning of the mark waits for the next chunk.
    let mut unsure = Vec::new();
    loop {
        let length = reader.read(&mut chunk)?;
        unsure.extend_from_slice(&chunk[..length]);
        if let Some(end) = unsure.windows(mark.len()).position(|window| window == mark) {
            kept.push(&unsure[..end]);
            return Ok(kept);
        }
        let sure = if length == 0 { unsure.len() } else { unsure.len().saturating_sub(mark.len() - 1) };
        kept.push(&unsure[..sure]);
        unsure.drain(..sure);
        if length == 0 {
            return Ok(kept);
        }
    }
}
