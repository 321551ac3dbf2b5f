//! `signoff __checks FILE`: runs the project's check commands one after the other and prints their results.
//!
//! A failing command is a result, not an error of this program. The limits of the attempt apply, so it sets
//! none itself.

use std::fs;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};

use serde::{Deserialize, Serialize};
use signoff_core::checks::{CheckRun, relative_paths};
use signoff_core::contract::MAX_BYTES;

/// Maximum number of bytes kept of one command's output: half from the start, half from the end.
pub const MAX_OUTPUT: usize = 256 * 1024;

/// Size of a command's entry in the report besides its name, its command line and its output, rounded up.
const ENTRY_OVERHEAD: usize = 256;

/// Exit code of a shell that does not find a program.
const EXIT_NOT_FOUND: i32 = 127;

/// One command of the project, as listed in the file given to `__checks`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckCommand {
    pub name: String,
    pub command: String,
}

/// Printed instead of a report if a program that a check needs is not installed. The work cannot fix that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChecksNotRun {
    pub not_run: String,
}

/// Why the checks could not be run. A failing check is no error.
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

/// Runs the program. Exits with 0 if all commands could be run, whatever their results, and with 1 otherwise.
pub fn run(list: &Path) -> ExitCode {
    super::exit_code(print(list).map(|()| ExitCode::SUCCESS))
}

fn print(list: &Path) -> Result<(), ChecksError> {
    let path = list.to_owned();
    let text = fs::read(list).map_err(|cause| ChecksError::List { path: path.clone(), cause })?;
    let checks: Vec<CheckCommand> =
        serde_json::from_slice(&text).map_err(|cause| ChecksError::Format { path, cause })?;
    let report = match run_each(&checks, Path::new(".")) {
        Err(missing @ ChecksError::Missing { .. }) => {
            serde_json::to_string(&ChecksNotRun { not_run: missing.to_string() })
        }
        ran => serde_json::to_string(&ran?),
    };
    let report = report.map_err(|cause| ChecksError::Print(cause.into()))?;
    let mut stdout = io::stdout();
    writeln!(stdout, "{report}").and_then(|()| stdout.flush()).map_err(ChecksError::Print)
}

/// Runs each command with `sh -c` in the directory. Paths below it are printed relative to it.
pub fn run_each(checks: &[CheckCommand], directory: &Path) -> Result<Vec<CheckRun>, ChecksError> {
    let budget = output_budget(checks);
    checks
        .iter()
        .map(|check| {
            let start = |cause| ChecksError::Start { command: check.command.clone(), cause };
            let ran = run_one(check, directory, budget).map_err(start)?;
            match missing_program(&ran, directory).map_err(start)? {
                Some(program) => Err(ChecksError::Missing { name: check.name.clone(), program }),
                None => Ok(ran),
            }
        })
        .collect()
}

/// The first word of a command if the shell did not find it. A path is part of the work and does not count.
fn missing_program(ran: &CheckRun, directory: &Path) -> io::Result<Option<String>> {
    let first = ran.command.split_whitespace().find(|word| !word.contains('='));
    let is_name = |word: &&str| word.chars().all(|one| one.is_ascii_alphanumeric() || "_-+.".contains(one));
    let Some(program) = first.filter(is_name).filter(|_| ran.code == Some(EXIT_NOT_FOUND)) else {
        return Ok(None);
    };
    let known = shell(&format!("command -v {program}"), directory).stdout(Stdio::null()).status()?.success();
    Ok((!known).then(|| program.to_owned()))
}

/// Maximum size of each output as JSON, so that the whole report fits the limit for answers.
fn output_budget(checks: &[CheckCommand]) -> usize {
    let named = |check: &CheckCommand| json_len(&check.name) + json_len(&check.command) + ENTRY_OVERHEAD;
    let taken: usize = checks.iter().map(named).sum();
    MAX_BYTES.saturating_sub(taken) / checks.len().max(1)
}

fn run_one(check: &CheckCommand, directory: &Path, budget: usize) -> io::Result<CheckRun> {
    let (reader, writer) = io::pipe()?;
    let mut mark = [0; 32];
    getrandom::fill(&mut mark).map_err(io::Error::other)?;
    let child = start(&check.command, directory, &writer)?;
    let waiter = write_mark_at_end(child, writer, mark);
    let output = read_until(reader, &mark)?.into_text(budget);
    let status = waiter.join().map_err(|_| io::Error::other("the wait for it failed"))??;
    let output = match fs::canonicalize(directory)?.to_str() {
        Some(directory) => relative_paths(&output, directory),
        None => output,
    };
    Ok(CheckRun { name: check.name.clone(), command: check.command.clone(), code: status.code(), output })
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

/// Writes the mark to the pipe after the command has ended. The pipe's end is not enough: a background process
/// that the command left may keep the pipe open.
fn write_mark_at_end(mut child: Child, mut writer: PipeWriter, mark: [u8; 32]) -> JoinHandle<io::Result<ExitStatus>> {
    thread::spawn(move || {
        let status = child.wait();
        writer.write_all(&mark)?;
        status
    })
}

fn read_until(mut reader: PipeReader, mark: &[u8]) -> io::Result<TruncatedOutput> {
    let mut output = TruncatedOutput::new(MAX_OUTPUT);
    let mut chunk = vec![0; 64 * 1024];
    // Bytes that may be the beginning of the mark stay for the next chunk.
    let mut pending = Vec::new();
    loop {
        let length = reader.read(&mut chunk)?;
        pending.extend_from_slice(&chunk[..length]);
        if let Some(end) = pending.windows(mark.len()).position(|window| window == mark) {
            output.push(&pending[..end]);
            return Ok(output);
        }
        let sure = if length == 0 { pending.len() } else { pending.len().saturating_sub(mark.len() - 1) };
        output.push(&pending[..sure]);
        pending.drain(..sure);
        if length == 0 {
            return Ok(output);
        }
    }
}

/// The start and the end of an output.
#[derive(Debug)]
struct TruncatedOutput {
    half: usize,
    head: Vec<u8>,
    tail: Vec<u8>,
    omitted_bytes: usize,
}

impl TruncatedOutput {
    fn new(max_bytes: usize) -> Self {
        Self { half: max_bytes / 2, head: Vec::new(), tail: Vec::new(), omitted_bytes: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        let to_head = bytes.len().min(self.half - self.head.len());
        self.head.extend_from_slice(&bytes[..to_head]);
        self.tail.extend_from_slice(&bytes[to_head..]);
        // Cutting rarely avoids moving the tail for every few bytes.
        if self.tail.len() > 2 * self.half {
            self.cut_tail();
        }
    }

    fn cut_tail(&mut self) {
        let over = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..over);
        self.omitted_bytes += over;
    }

    /// The text, or its start and end if it would exceed `budget` bytes of JSON.
    fn into_text(mut self, budget: usize) -> String {
        self.cut_tail();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (head, tail) = if self.omitted_bytes > 0 {
            (text(&self.head), text(&self.tail))
        } else {
            // Joined before decoding, because a character may span both parts.
            let mut full = text(&[self.head.as_slice(), &self.tail].concat());
            if json_len(&full) <= budget {
                return full;
            }
            let tail = full.split_off(fitting_bytes(full.chars(), budget / 2));
            (full, tail)
        };
        let start = &head[..fitting_bytes(head.chars(), budget / 2)];
        let end = &tail[tail.len() - fitting_bytes(tail.chars().rev(), budget / 2)..];
        let left_out = self.omitted_bytes + head.len() - start.len() + tail.len() - end.len();
        format!("{start}\n[{left_out} bytes left out]\n{end}")
    }
}

/// The length of a text as a JSON string, without the quotes.
fn json_len(text: &str) -> usize {
    text.chars().map(json_char_len).sum()
}

/// The number of bytes of these characters that fit into `budget` bytes of JSON.
fn fitting_bytes(characters: impl Iterator<Item = char>, budget: usize) -> usize {
    let mut taken = 0;
    let fits = |one: &char| {
        taken += json_char_len(*one);
        taken <= budget
    };
    characters.take_while(fits).map(char::len_utf8).sum()
}

fn json_char_len(one: char) -> usize {
    match one {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..' ' => 6,
        _ => one.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{TruncatedOutput, json_len};

    fn truncated(most: usize, chunks: &[&str]) -> String {
        let mut kept = TruncatedOutput::new(most);
        chunks.iter().for_each(|chunk| kept.push(chunk.as_bytes()));
        kept.into_text(400)
    }

    #[test]
    fn the_middle_is_left_out_and_counted() {
        assert_eq!(truncated(8, &["abcd", "efgh"]), "abcdefgh");
        assert_eq!(truncated(8, &["abcdef", "ghijklmnopq", "rstuvwxyz"]), "abcd\n[18 bytes left out]\nwxyz");
    }

    proptest! {
        #[test]
        fn output_that_fits_is_complete_for_any_chunks(text in ".{0,40}", cut in 0..40_usize) {
            let bytes = text.as_bytes();
            let (a, b) = bytes.split_at(cut.min(bytes.len()));
            let mut kept = TruncatedOutput::new(400);
            kept.push(a);
            kept.push(b);
            prop_assert_eq!(kept.into_text(400), text);
        }

        #[test]
        fn json_len_is_the_serialized_length(text in any::<String>()) {
            prop_assert_eq!(serde_json::to_string(&text).unwrap().len(), json_len(&text) + 2);
        }

        #[test]
        fn output_never_exceeds_the_available_room(bytes in any::<Vec<u8>>(), most in 0..60_usize, room in 0..60_usize) {
            let mut kept = TruncatedOutput::new(most);
            kept.push(&bytes);
            let text = kept.into_text(room);
            let note = text.split_inclusive('\n').filter(|line| line.ends_with(" bytes left out]\n"));
            let note: usize = note.map(json_len).sum();
            prop_assert!(json_len(&text) <= room + note + 2, "{text:?}");
        }
    }
}
