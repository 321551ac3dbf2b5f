//! `signoff show`: all there is to know about one task.

use signoff_core::ids::TaskId;
use signoff_core::view::TaskRow;
use signoff_term::attention::Scene;
use signoff_term::show::{Report, text};

use crate::console::Console;
use crate::desk::Desk;
use crate::drive::task_id;
use crate::failure::{Exit, Failure};
use crate::look;

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

/// A task with all that is told of it, and the tasks among which it stands.
pub struct Seen {
    pub report: Report,
    pub tasks: Vec<TaskRow>,
    desk: Desk,
}

/// Looks at a task.
pub fn seen(task: TaskId) -> Result<Seen, Failure> {
    let desk = Desk::open(task)?;
    let (mut report, tasks) = look::task(&desk, task)?;
    desk.note_landed(std::slice::from_mut(&mut report.task));
    report.task.state = report.task.state();
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
