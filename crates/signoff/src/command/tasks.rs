//! `signoff tasks`: shows the tasks of a plan file.

use std::path::PathBuf;

use signoff_core::source::{self, TaskFile, TaskFormat};

use crate::{CliError, CommandExit, Console, Result, host};

/// Show the tasks of a plan file
///
/// Reads plans written for superpowers, spec-kit, OpenSpec, Kiro, Task Master, BMAD and beads. The format is detected
/// from the path and the content.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff tasks docs/plan.md")]
pub struct Args {
    /// The plan file
    source: PathBuf,
    /// Read the file in this format instead of detecting it
    #[arg(long = "as", value_name = "FORMAT", value_parser = super::task_format_parser())]
    format: Option<TaskFormat>,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    let path = args.source.display().to_string();
    let file = read(args, &path)?;
    console.print(&file, || source::render_text(&file))
}

fn read(args: &Args, path: &str) -> Result<TaskFile> {
    let bytes = host::read(&args.source).map_err(|failure| failure.hint("name a file that holds tasks"))?;
    let now = Some(host::now());
    let file = match args.format {
        Some(format) => source::read_as(format, path, &bytes, now)?,
        None => source::read_plan(path, &bytes, now)?,
    };
    if file.tasks.is_empty() && file.format != TaskFormat::Text {
        return Err(no_tasks(path));
    }
    Ok(file)
}

/// The error for a plan file without tasks.
pub fn no_tasks(name: &str) -> CliError {
    CliError::usage(format!("{name} contains no tasks"))
        .at(format!("{name}:1"))
        .hint("add a task in the format of the file, or name another file")
}
