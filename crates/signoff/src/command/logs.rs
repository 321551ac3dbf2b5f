//! `signoff logs`: what the agents of a task said.

mod transcript;

use std::path::Path;

use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::view::{RunView, Status};
use signoff_store::Store;

use self::transcript::{Heading, Transcript};
use crate::console::Console;
use crate::desk::Desk;
use crate::door;
use crate::drive::task_id;
use crate::failure::{Exit, Failure};
use crate::look;

/// Show what the agents of a task said
///
/// With --follow it goes on as long as the task is at work. With --json each line is a piece of it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff logs 29 -f")]
pub struct Args {
    /// The task
    #[arg(value_name = "ID", value_parser = task_id)]
    task: TaskId,
    /// Go on as long as the task is at work
    #[arg(short, long)]
    follow: bool,
    /// Only this attempt
    #[arg(long, value_name = "N", value_parser = attempt_number)]
    attempt: Option<u64>,
    /// The prompts instead of the answers
    #[arg(long)]
    prompts: bool,
}

/// An attempt's number, also as it is shown.
fn attempt_number(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix('a').unwrap_or(text);
    digits.parse().map_err(|_| format!("`{text}` is no number of an attempt"))
}

/// Whether more will come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Somebody drives it.
    GoesOn,
    /// It should go on, and nobody drives it.
    Left,
    Over,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let desk = Desk::open(args.task)?;
    let (run, loop_id) = desk.loop_of(args.task)?;
    check_attempt(&desk, args, (run, &loop_id))?;
    let mut shown: Vec<Transcript> = Vec::new();
    loop {
        // Looked at first: what is written before it ends is shown.
        let work = work(&desk, args.task, run)?;
        for (heading, path) in transcripts(&desk, args, (run, &loop_id))? {
            let known = shown.iter().position(|one| one.is_at(&path));
            let index = known.unwrap_or_else(|| {
                shown.push(Transcript::new(heading, path));
                shown.len() - 1
            });
            shown[index].show(work == Work::GoesOn, console)?;
        }
        match work {
            Work::GoesOn if args.follow => door::wait_a_moment(),
            Work::Left if args.follow => {
                console.note(&format!("Nobody is at work: `signoff work {}` goes on", args.task));
                return Ok(Exit::Done);
            }
            Work::GoesOn | Work::Left | Work::Over => return Ok(Exit::Done),
        }
    }
}

fn work(desk: &Desk, task: TaskId, run: RunId) -> Result<Work, Failure> {
    if desk.task(task)?.status != Status::InProgress {
        return Ok(Work::Over);
    }
    Ok(if desk.store.is_held(run)? { Work::GoesOn } else { Work::Left })
}

/// An attempt that is asked for must have been made.
fn check_attempt(desk: &Desk, args: &Args, (run, loop_id): (RunId, &LoopId)) -> Result<(), Failure> {
    let Some(wanted) = args.attempt else { return Ok(()) };
    let view = RunView::of(&desk.store.log(run)?);
    let made: Vec<u64> = view.attempts(loop_id).iter().map(|(attempt, ..)| attempt.0).collect();
    if made.contains(&wanted) {
        return Ok(());
    }
    let known: Vec<String> = made.iter().map(u64::to_string).collect();
    let hint = match known.as_slice() {
        [] => "none was made yet".to_owned(),
        [one] => format!("the only one is {one}"),
        [_, ..] => format!("there are {}", known.join(", ")),
    };
    Err(Failure::usage(format!("task {} has no attempt {wanted}", args.task)).hint(hint))
}

/// The attempts of the task that have files, with who made them.
fn transcripts(
    desk: &Desk,
    args: &Args,
    (run, loop_id): (RunId, &LoopId),
) -> Result<Vec<(Heading, std::path::PathBuf)>, Failure> {
    let view = RunView::of(&desk.store.log(run)?);
    let wanted = |number: u64| args.attempt.is_none_or(|one| one == number);
    let mut found = Vec::new();
    for (attempt, launch, _) in view.attempts(loop_id).into_iter().filter(|(one, ..)| wanted(one.0)) {
        let dir = look::attempt(desk, (run, loop_id), attempt);
        let files = if args.prompts {
            vec![("prompt", dir.prompt())]
        } else {
            vec![("stdout", dir.stdout()), ("stderr", dir.stderr())]
        };
        for (stream, file) in files.into_iter().filter(|(_, file)| is_filled(file)) {
            found.push((Heading { task: args.task, attempt, launch: launch.clone(), stream }, file));
        }
    }
    Ok(found)
}

fn is_filled(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.len() > 0)
}
