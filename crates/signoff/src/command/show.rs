//! `signoff show`: all there is to know about one task.

use signoff_core::ids::TaskId;
use signoff_engine::artifact;
use signoff_engine::git::{Git, Repository};
use signoff_store::Store;
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

/// Whether the branch has moved since it was approved. An approval is of one commit.
fn voided(desk: &Desk, report: &Report) -> Option<String> {
    let (approved, branch) = (report.approved_commit.as_ref()?, report.task.branch.as_ref()?);
    let repository = Repository::discover(&Git::new(door::environment()), &desk.root).ok()?;
    let head = repository.head_of(branch).ok()??.commit;
    // A chain goes on beyond its own tasks.
    let alone = !branch.starts_with("signoff/run-");
    (alone && head.as_str() != approved).then(|| {
        format!("{branch} has moved to {head}, which nobody reviewed: `signoff review {}`", report.task.id)
    })
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let desk = Desk::open(args.task)?;
    let row = desk.task(args.task)?;
    let (log, loop_id) = match desk.store.loop_of(args.task)? {
        Some((run, loop_id)) => (desk.store.log(run)?, loop_id),
        None => (Vec::new(), signoff_engine::dispatcher::loop_id(args.task)),
    };
    let artifacts = artifact::of_task(&desk.layout().reviews(), args.task);
    let shown =
        |path: std::path::PathBuf| path.strip_prefix(&desk.root).unwrap_or(&path).display().to_string();
    let artifacts = artifacts.into_iter().map(shown).collect();
    let mut report = Report::of(row, &log, &loop_id, artifacts);
    // People know a question by the number it has in the whole repository.
    report.question = desk.store.questions()?.into_iter().find(|row| row.task_id == Some(args.task.0));
    report.voided = voided(&desk, &report);
    if console.json {
        console.json(&report)?
    } else {
        console.text(&text(&report))?
    }
    Ok(Exit::Done)
}
