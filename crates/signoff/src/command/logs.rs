//! `signoff logs`: shows the output of a task's agents.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use signoff_core::ids::{AttemptId, LoopId, RunId, TaskId};
use signoff_core::view::inbox::Action;
use signoff_core::view::{RunState, TaskStatus};
use signoff_core::wire::Launch;
use signoff_engine::executor::AttemptKey;
use signoff_store::Store;
use signoff_term::json::{LogLine, VERSION};

use crate::run_loop::task_id;
use crate::{CliError, CommandExit, Console, ReadOnlyProject, Result, host, queries};

/// Show the output of a task's agents
///
/// With --json each line is a JSON object with a part of the output.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff logs 29 -f")]
pub struct Args {
    /// The task
    #[arg(value_name = "ID", value_parser = task_id)]
    task: TaskId,
    /// Keep printing new output while the task is running
    #[arg(short, long)]
    follow: bool,
    /// Show only this attempt
    #[arg(long, value_name = "N", value_parser = attempt_number)]
    attempt: Option<u64>,
    /// Show the prompts instead of the output
    #[arg(long)]
    prompts: bool,
}

/// Parses an attempt number, with or without the leading `a`.
fn attempt_number(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix('a').unwrap_or(text);
    digits.parse().map_err(|_| format!("`{text}` is not an attempt number"))
}

/// Whether more output can follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkStatus {
    /// A process is driving the task.
    Running,
    /// The task is unfinished, but no process is driving it.
    Abandoned,
    Over,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    let project = ReadOnlyProject::for_task(args.task)?;
    let (run, loop_id) = project.loop_of(args.task)?;
    let mut state = RunState::new(run);
    read_new_facts(&project, &mut state)?;
    check_attempt(args, &state, &loop_id)?;
    let mut shown: Vec<LogFile> = Vec::new();
    loop {
        // Read the status before the files, so that output written just before the end is still shown.
        let status = work_status(&project, args.task, run)?;
        read_new_facts(&project, &mut state)?;
        for file in log_files(&project, args, &state, &loop_id) {
            let index = shown.iter().position(|shown| shown.path == file.path).unwrap_or_else(|| {
                shown.push(file);
                shown.len() - 1
            });
            shown[index].show(status == WorkStatus::Running, console)?;
        }
        match status {
            WorkStatus::Running if args.follow => host::sleep_briefly(),
            WorkStatus::Abandoned if args.follow => {
                console.note(&format!("No signoff is running: `{}` continues", Action::Work(args.task.0)));
                return Ok(CommandExit::Done);
            }
            WorkStatus::Running | WorkStatus::Abandoned | WorkStatus::Over => return Ok(CommandExit::Done),
        }
    }
}

fn work_status(project: &ReadOnlyProject, task: TaskId, run: RunId) -> Result<WorkStatus> {
    if project.task(task)?.status != TaskStatus::InProgress {
        return Ok(WorkStatus::Over);
    }
    Ok(if project.store.is_held(run)? { WorkStatus::Running } else { WorkStatus::Abandoned })
}

/// Applies the facts that were recorded since the last call.
fn read_new_facts(project: &ReadOnlyProject, state: &mut RunState) -> Result<()> {
    for recorded in project.store.log_after(state.run, state.seq)? {
        state.replay(&recorded);
    }
    Ok(())
}

/// Fails if the requested attempt does not exist.
fn check_attempt(args: &Args, state: &RunState, loop_id: &LoopId) -> Result<()> {
    let Some(wanted) = args.attempt else { return Ok(()) };
    let made: Vec<u64> = state.attempts(loop_id).iter().map(|(attempt, ..)| attempt.0).collect();
    if made.contains(&wanted) {
        return Ok(());
    }
    let attempts: Vec<String> = made.iter().map(u64::to_string).collect();
    let hint = match attempts.as_slice() {
        [] => "it has no attempts yet".to_owned(),
        [only] => format!("the only attempt is {only}"),
        [_, ..] => format!("known attempts: {}", attempts.join(", ")),
    };
    Err(CliError::usage(format!("task {} has no attempt {wanted}", args.task)).hint(hint))
}

/// Returns the non-empty output files of the task's attempts.
fn log_files(project: &ReadOnlyProject, args: &Args, state: &RunState, loop_id: &LoopId) -> Vec<LogFile> {
    let is_requested = |number: u64| args.attempt.is_none_or(|requested| requested == number);
    let mut found = Vec::new();
    for (attempt, launch, _) in state.attempts(loop_id).into_iter().filter(|(attempt, ..)| is_requested(attempt.0)) {
        let dir = queries::attempt_dir(project, &AttemptKey::new(state.run, loop_id, attempt));
        let files = if args.prompts {
            vec![("prompt", dir.prompt())]
        } else {
            vec![("stdout", dir.stdout()), ("stderr", dir.stderr())]
        };
        for (stream, path) in files.into_iter().filter(|(_, file)| file.metadata().is_ok_and(|file| file.len() > 0)) {
            let (task, launch) = (args.task, launch.clone());
            found.push(LogFile { task, attempt, launch, stream, path, shown: 0, mid_line: false });
        }
    }
    found
}

/// Maximum number of bytes read at once.
const MAX_READ: usize = 1 << 20;

/// An output file and how much of it was printed.
struct LogFile {
    task: TaskId,
    attempt: AttemptId,
    launch: Launch,
    stream: &'static str,
    path: PathBuf,
    shown: u64,
    /// Whether the printed text does not end with a line break.
    mid_line: bool,
}

impl LogFile {
    /// Prints what was added since the last call.
    fn show(&mut self, is_running: bool, console: &Console) -> Result<()> {
        loop {
            let first = self.shown == 0;
            let text = self.read_part(is_running);
            if text.is_empty() {
                break;
            }
            if console.json {
                console.json_line(&self.line(text))?;
                continue;
            }
            if first {
                console.text(&format!("==> {}\n", self.heading()))?;
            }
            self.mid_line = !text.ends_with('\n');
            console.text(&text)?;
        }
        if self.mid_line && !is_running {
            self.mid_line = false;
            console.text("\n")?;
        }
        Ok(())
    }

    /// Reads the next part; empty at the end. An incomplete character is left for the next call.
    fn read_part(&mut self, is_running: bool) -> String {
        let mut bytes = Vec::new();
        if let Ok(mut file) = File::open(&self.path) {
            file.seek(SeekFrom::Start(self.shown)).ok();
            file.take(MAX_READ as u64).read_to_end(&mut bytes).ok();
        }
        if is_running || bytes.len() == MAX_READ {
            bytes.truncate(bytes.len() - incomplete_char_len(&bytes));
        }
        self.shown += bytes.len() as u64;
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn heading(&self) -> String {
        let Self { attempt, launch, stream, .. } = self;
        let reviewer = launch.reviewer.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        format!("{attempt} {}{reviewer} ({}), cycle {}: {stream}", launch.role, launch.agent, launch.cycle)
    }

    fn line(&self, text: String) -> LogLine {
        let launch = &self.launch;
        LogLine {
            version: VERSION,
            task_id: self.task.0,
            attempt: self.attempt.0,
            role: launch.role.to_string(),
            reviewer: launch.reviewer.as_ref().map(ToString::to_string),
            agent: launch.agent.to_string(),
            cycle: launch.cycle,
            stream: self.stream,
            text,
        }
    }
}

/// The length of an incomplete UTF-8 character at the end.
fn incomplete_char_len(bytes: &[u8]) -> usize {
    let rest = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    let unfinished = std::str::from_utf8(rest).is_err_and(|error| error.error_len().is_none());
    if unfinished { rest.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_not_printed_in_parts() {
        assert_eq!(incomplete_char_len("né".as_bytes()), 0);
        assert_eq!(incomplete_char_len(&"né".as_bytes()[..2]), 1);
        assert_eq!(incomplete_char_len(&"漢".as_bytes()[..2]), 2);
        // Bytes that are never valid are printed as replacement characters.
        assert_eq!(incomplete_char_len(b"a\xff"), 0);
        assert_eq!(incomplete_char_len(b""), 0);
    }
}
