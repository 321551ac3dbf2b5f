//! `signoff tasks`: what a plan file contains.

use std::path::PathBuf;

use crate::ahead::source;
use crate::console::Console;
use crate::door;
use crate::failure::{Exit, Failure};

/// Show the tasks a plan file contains
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff tasks docs/plan.md")]
pub struct Args {
    /// The plan file
    source: PathBuf,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let shown = args.source.display().to_string();
    let bytes = door::read(&args.source).map_err(|failure| failure.hint("name a plan file"))?;
    let tasks = source::read(&shown, &bytes, door::now())?;
    if console.json {
        console.json(&tasks)?
    } else {
        console.text(&source::render_text(&tasks))?
    }
    Ok(Exit::Done)
}
