//! The commands, one file each, under the name a person types.

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
pub mod watch;
mod words;
pub mod work;
pub mod workflow;

use signoff_core::ids::{RunId, TaskId};
use signoff_engine::board::Board;
use signoff_store::Store;
use signoff_term::json::{AddReport, RunReport};

use crate::console::Console;
use crate::desk::Desk;
use crate::failure::{Exit, Failure};

/// Says what became of a task; as JSON the task itself.
fn told(desk: &Desk, task: TaskId, text: &str, console: &Console) -> Result<Exit, Failure> {
    if console.json {
        console.json(&AddReport::of(desk.task(task)?))?;
    } else {
        console.text(text)?;
    }
    Ok(Exit::Done)
}

/// Says what became of a run; as JSON the run with its tasks.
fn told_of_run(desk: &Desk, run: RunId, text: &str, console: &Console) -> Result<Exit, Failure> {
    if console.json {
        let board = Board::of(run, &desk.store.log(run)?);
        let mut tasks = desk.tasks()?;
        tasks.retain(|row| row.run_id == Some(run.0));
        console.json(&RunReport::of(Some((run.0, &board.machine.stage)), tasks, Vec::new()))?;
    } else {
        console.text(text)?;
    }
    Ok(Exit::Done)
}
