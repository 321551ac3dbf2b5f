//! `signoff logs`: what the agents of a task said.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use signoff_core::ids::TaskId;
use signoff_core::view::{RunView, Status};
use signoff_engine::process::AttemptDir;
use signoff_store::Store;

use crate::console::Console;
use crate::desk::Desk;
use crate::door;
use crate::drive::task_id;
use crate::failure::{Exit, Failure};

/// Show what the agents of a task said
///
/// With --follow it goes on as long as the task is at work.
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
    #[arg(long, value_name = "N")]
    attempt: Option<u64>,
    /// The prompts instead of the answers
    #[arg(long)]
    prompts: bool,
}

/// A transcript, and how much of it was shown.
struct Transcript {
    path: PathBuf,
    shown: u64,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let desk = Desk::open(args.task)?;
    desk.loop_of(args.task)?;
    let mut shown: Vec<Transcript> = Vec::new();
    loop {
        let at_work = desk.task(args.task)?.status == Status::InProgress;
        for (heading, path) in transcripts(&desk, args)? {
            let known = shown.iter().position(|one| one.path == path);
            let index = known.unwrap_or_else(|| {
                shown.push(Transcript { path, shown: 0 });
                shown.len() - 1
            });
            let text = shown[index].rest();
            if known.is_none() && (!text.is_empty() || at_work) {
                console.text(&format!("==> {heading}\n"))?;
            }
            console.text(&text)?;
            if known.is_none() && !text.is_empty() && !text.ends_with('\n') && !at_work {
                console.text("\n")?;
            }
        }
        if !args.follow || !at_work {
            return Ok(Exit::Done);
        }
        door::wait_a_moment();
    }
}

/// The attempts of the task that have files, with who made them.
fn transcripts(desk: &Desk, args: &Args) -> Result<Vec<(String, PathBuf)>, Failure> {
    let (run, loop_id) = desk.loop_of(args.task)?;
    let view = RunView::of(&desk.store.log(run)?);
    let wanted = |number: u64| args.attempt.is_none_or(|one| one == number);
    let mut found = Vec::new();
    for (attempt, launch, _) in view.attempts(&loop_id) {
        let dir = AttemptDir::new(desk.layout().attempt(run, &loop_id, attempt));
        let files = if args.prompts { vec![dir.prompt()] } else { vec![dir.stdout(), dir.stderr()] };
        let who = launch.reviewer.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        for file in files.into_iter().filter(|file| wanted(attempt.0) && is_filled(file)) {
            let stream = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let heading = format!(
                "{attempt} {}{who} ({}), cycle {}: {stream}",
                launch.role, launch.agent, launch.cycle
            );
            found.push((heading, file));
        }
    }
    Ok(found)
}

fn is_filled(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.len() > 0)
}

/// No transcript is shown in larger pieces.
const PIECE: u64 = 4 << 20;

impl Transcript {
    /// What was added since it was last looked at.
    fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        if let Ok(mut file) = File::open(&self.path) {
            file.seek(SeekFrom::Start(self.shown)).ok();
            file.take(PIECE).read_to_end(&mut bytes).ok();
        }
        self.shown += bytes.len() as u64;
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
