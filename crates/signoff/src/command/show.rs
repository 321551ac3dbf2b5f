//! `signoff show`: all there is to know about one task.

use std::path::PathBuf;

use signoff_core::ids::TaskId;
use signoff_core::machine::Reason;
use signoff_core::view::TaskRow;
use signoff_engine::artifact;
use signoff_engine::git::{Git, Tips};
use signoff_store::Store;
use signoff_term::attention::Scene;
use signoff_term::show::{Report, text};

use crate::console::Console;
use crate::desk::Desk;
use crate::door;
use crate::drive::task_id;
use crate::failure::{Exit, Failure};

/// Show a task: its cycles, findings, attempts, costs and files
///
/// The last line says what to type next.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff show 29")]
pub struct Args {
    /// The task
    #[arg(value_name = "ID", value_parser = task_id)]
    task: TaskId,
}

/// What is wrong with an approval, where the branch has moved since: it is of one commit.
pub fn voided(desk: &Desk, row: &TaskRow) -> Option<String> {
    row.approved_commit.as_ref().filter(|_| row.reason == Some(Reason::ChangedAfterReview.word()))?;
    let branch = row.branch.as_ref()?;
    let tip = Tips::of(&desk.root).of_branch(branch, &Git::new(door::environment()))?;
    Some(format!("{branch} has moved to {tip}, which nobody reviewed: `signoff review {}`", row.id))
}

/// A task with all that is told of it, and the tasks among which it stands.
pub struct Seen {
    pub report: Report,
    pub tasks: Vec<TaskRow>,
    desk: Desk,
}

/// The files that reviews and plans of a task left, as people would name them.
pub fn artifacts(desk: &Desk, task: TaskId) -> Vec<String> {
    let layout = desk.layout();
    let mut artifacts = artifact::of_task(&layout.reviews(), task);
    artifacts.extend(artifact::of_task(&layout.plans(), task));
    let shown = |path: PathBuf| path.strip_prefix(&desk.root).unwrap_or(&path).display().to_string();
    artifacts.into_iter().map(shown).collect()
}

/// Looks at a task.
pub fn seen(task: TaskId) -> Result<Seen, Failure> {
    let desk = Desk::open(task)?;
    let (row, tasks) = desk.seen(task)?;
    let (log, loop_id) = match desk.store.loop_of(task)? {
        Some((run, loop_id)) => (desk.store.log(run)?, loop_id),
        None => (Vec::new(), signoff_engine::dispatcher::loop_id(task)),
    };
    let artifacts = artifacts(&desk, task);
    let voided = voided(&desk, &row);
    let mut report = Report::of(row, &log, &loop_id, artifacts);
    report.voided = voided;
    // People know a question by the number it has in the whole repository.
    report.question = desk.store.questions()?.into_iter().find(|row| row.task_id == Some(task.0));
    Ok(Seen { report, tasks, desk })
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let Seen { report, tasks, desk } = seen(args.task)?;
    if console.json {
        console.json(&report)?
    } else {
        let driven = super::status::driven(&*desk.store, &tasks, &[])?;
        console.text(&text(&report, &Scene { tasks: &tasks, runs: &desk.runs()?, driven: &driven }))?
    }
    Ok(Exit::Done)
}
