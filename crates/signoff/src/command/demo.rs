//! `signoff demo`: works two tasks of a sample project with the built-in agent.

use std::path::{Path, PathBuf};

use signoff_core::task::TaskSpec;
use signoff_core::view::inbox::Action;
use signoff_engine::builtin::demo;
use signoff_engine::git::{Git, Repository};

use super::add;
use super::work;
use crate::{CliError, CommandExit, Console, Project, Result, host};

/// Run a demo on a small project, without a model
///
/// Creates a project in a temporary directory, or in --directory, and works two tasks on it: one fails its review, is
/// fixed and approved; the other one stops because a reviewer asks for a discussion. Needs no model, key or network.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff demo --directory greeting")]
pub struct Args {
    /// The directory to create the project in; it must be empty or missing
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    let directory = args.directory.clone().map_or_else(|| host::temporary_directory("demo"), Ok)?;
    make_project(&directory)?;
    console.note(&format!("Created a project in {}", directory.display()));
    let project = Project::open_at(&directory)?;
    for text in demo::tasks() {
        let spec = TaskSpec { auto_review: Some(true), ..TaskSpec::from_text(text) };
        let task = add::add(&project, spec.clone())?;
        console
            .progress(&format!("$ signoff add \"{}\" --auto-review\nAdded task #{task}: {}\n", spec.title, spec.title));
    }
    console.progress(&format!("$ {}\n", Action::WorkQueue));
    let exit = work::work(project, &work::Args { jobs: Some(1), ..work::Args::default() }, console)?;
    if !console.json {
        console.progress("$ signoff status\n");
        super::status::print(&*Project::open_at(&directory)?.store, console)?;
        console.note(&format!("Next: cd {} && {}", directory.display(), Action::Show(1)));
    }
    // The demo is meant to end with a task that needs discussion.
    Ok(if exit == CommandExit::NeedsUser { CommandExit::Done } else { exit })
}

fn make_project(directory: &Path) -> Result<()> {
    if directory.exists() && directory.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(CliError::usage(format!("{} is not empty", directory.display()))
            .hint("name an empty directory, or one that does not exist"));
    }
    for (name, text) in demo::project_files().into_iter().chain([("signoff.toml", demo::config())]) {
        host::write_new(&directory.join(name), text)?;
    }
    Repository::init(&Git::new(host::environment()), directory, "A small project")?;
    Ok(())
}
