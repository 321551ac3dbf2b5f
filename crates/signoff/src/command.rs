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

use signoff_core::ids::TaskId;
use signoff_term::json::AddReport;

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
