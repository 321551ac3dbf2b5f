//! `signoff tasks`: what a plan file contains.

use std::path::PathBuf;

use signoff_core::source::{self, Format, TaskFile};

use super::words;
use crate::console::Console;
use crate::door;
use crate::failure::{Exit, Failure};

/// Show the tasks a plan file contains
///
/// Reads plans written for superpowers, spec-kit, OpenSpec, Kiro, Task Master, BMAD and beads. Path and
/// content tell which it is.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff tasks docs/plan.md")]
pub struct Args {
    /// The plan file
    source: PathBuf,
    /// Read it as this format, whatever it looks like
    #[arg(long = "as", value_name = "FORMAT", value_parser = words::source_format())]
    format: Option<Format>,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let path = args.source.display().to_string();
    let file = read(args, &path)?;
    if console.json {
        console.json(&file)?
    } else {
        console.text(&source::render_text(&file))?
    }
    Ok(Exit::Done)
}

fn read(args: &Args, path: &str) -> Result<TaskFile, Failure> {
    let bytes = door::read(&args.source).map_err(|failure| failure.hint("name a file that holds tasks"))?;
    let now = Some(door::now());
    let file = match args.format {
        Some(format) => source::read_as(format, path, &bytes, now)?,
        None => source::read_plan(path, &bytes, now)?,
    };
    if file.tasks.is_empty() && file.format != Format::Text {
        return Err(Failure::usage(format!("{path} contains no tasks"))
            .at(format!("{path}:1"))
            .hint("add a task in the format of the file, or name another file"));
    }
    Ok(file)
}
