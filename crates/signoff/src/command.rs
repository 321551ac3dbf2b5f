//! The commands, one module each, named after the subcommand.

pub mod add;
pub mod agents;
pub mod answer;
pub mod cancel;
pub mod completions;
pub mod config;
pub mod configure;
pub mod decide;
pub mod demo;
pub mod diff;
pub mod dispute;
pub mod doctor;
pub mod edit;
pub mod export;
pub mod import;
pub mod improve;
pub mod init;
pub mod iterate;
pub mod land;
pub mod landing;
pub mod logs;
pub mod mcp;
pub mod merge;
pub mod merge_reviews;
pub mod notify;
pub mod parse;
pub mod replay;
pub mod report;
pub mod retry;
pub mod review;
pub mod run;
pub mod serve;
pub mod show;
pub mod stats;
pub mod status;
pub mod tasks;
mod value_parsers;
pub mod watch;
pub mod work;
pub mod workflow;

use signoff_core::ids::{RunId, TaskId};
use signoff_core::view::RunState;
use signoff_store::Store;
use signoff_term::json::{AddReport, RunReport};

use crate::console::Console;
use crate::error::{CliError, CommandExit};
use crate::project::ReadOnlyProject;

/// Prints a line about a task; with `--json` the task itself.
fn print_task(project: &ReadOnlyProject, task: TaskId, text: &str, console: &Console) -> Result<CommandExit, CliError> {
    if console.json {
        console.json(&AddReport::new(project.task(task)?))?;
    } else {
        console.text(text)?;
    }
    Ok(CommandExit::Done)
}

/// Prints a line about a run; with `--json` the run with its tasks.
fn print_run(project: &ReadOnlyProject, run: RunId, text: &str, console: &Console) -> Result<CommandExit, CliError> {
    if console.json {
        let run_state = RunState::from_run_log(run, &project.store.log(run)?);
        let mut tasks = project.tasks()?;
        tasks.retain(|row| row.run_id == Some(run.0));
        console.json(&RunReport::new(Some((run.0, &run_state.machine.stage)), tasks, Vec::new()))?;
    } else {
        console.text(text)?;
    }
    Ok(CommandExit::Done)
}
