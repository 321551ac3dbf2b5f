//! `signoff status`: lists every task and what it waits for.

use std::collections::BTreeSet;

use signoff_core::view::QuestionRow;
use signoff_core::view::inbox::ProjectSnapshot;
use signoff_store::Store;
use signoff_term::inbox;
use signoff_term::json::StatusReport;
use signoff_term::status;

use crate::console::TITLE_WIDTH;
use crate::queries::TaskContext;
use crate::{CommandExit, Console, ReadOnlyProject, Result};

/// List the tasks and the open questions
///
/// `signoff` without a command lists only what needs you and what is running.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff status --json")]
pub struct Args {}

/// The tasks, questions and runs to list.
#[derive(Default)]
struct StatusData {
    context: TaskContext,
    questions: Vec<QuestionRow>,
}

impl StatusData {
    /// Loads tasks and runs. With `mark_landed`, git determines which tasks have landed. This is slow; only `--json`
    /// needs it.
    fn load(mark_landed: bool) -> Result<Self> {
        let Some(project) = ReadOnlyProject::find()? else { return Ok(Self::default()) };
        let mut context = TaskContext::load(&project, project.tasks()?)?;
        if mark_landed {
            project.mark_landed(&mut context.tasks);
        }
        Ok(Self { context, questions: project.store.questions()? })
    }

    fn report(self) -> StatusReport {
        StatusReport::new(self.context.tasks, self.questions, self.context.runs)
    }
}

/// The report that `status --json` prints.
pub fn report() -> Result<StatusReport> {
    Ok(StatusData::load(true)?.report())
}

/// Runs the command.
pub fn run(_args: &Args, console: &Console) -> Result<CommandExit> {
    let listed = StatusData::load(console.json)?;
    if console.json {
        console.json(&listed.report())?;
    } else if listed.context.tasks.is_empty() && listed.context.runs.is_empty() {
        console.note("No tasks yet: `signoff add \"…\"` adds one");
    } else {
        console.text(&status::text(&listed.context.snapshot(), &listed.questions, TITLE_WIDTH))?;
    }
    Ok(CommandExit::Done)
}

/// Prints what needs attention, what is running and what to type next, for a bare `signoff`.
pub fn print_inbox(console: &Console) -> Result<CommandExit> {
    let listed = StatusData::load(console.json)?;
    let text = inbox::text(&listed.context.snapshot(), &listed.questions, TITLE_WIDTH);
    console.print(&listed.report(), || text)
}

/// Prints the list of tasks.
pub fn print(store: &dyn Store, console: &Console) -> Result<()> {
    let tasks = store.tasks()?;
    let snapshot = ProjectSnapshot { tasks: &tasks, runs: &[], driven: &BTreeSet::new() };
    console.text(&status::text(&snapshot, &store.questions()?, TITLE_WIDTH))
}
