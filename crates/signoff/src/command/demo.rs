//! `signoff demo`: the whole way on a small project, with the agent that is part of signoff.

use std::path::{Path, PathBuf};

use signoff_core::task::TaskSpec;
use signoff_engine::builtin::demo;
use signoff_engine::git::{Git, Repository};

use super::{add, work};
use crate::console::Console;
use crate::desk::Bench;
use crate::door;
use crate::failure::{Exit, Failure};

/// See it work on a small project, without any model
///
/// Makes a project in a temporary directory, or in --directory, and works two tasks on it: one fails its review, is
/// fixed and approved; the other one stops because a reviewer wants to discuss it. No model, no key, no network.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff demo --directory greeting")]
pub struct Args {
    /// Where the project is made; it must not exist yet
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let place = args.directory.clone().map_or_else(|| door::temporary_directory("demo"), Ok)?;
    make_project(&place)?;
    console.note(&format!("A project was made in {}", place.display()));
    let bench = Bench::at(&place)?;
    for text in demo::tasks() {
        let spec = TaskSpec { auto_review: Some(true), ..TaskSpec::of(text) };
        let task = add::add(&bench, spec.clone())?;
        console.progress(&format!(
            "$ signoff add \"{}\" --auto-review\nAdded task #{task}: {}\n",
            spec.title, spec.title
        ));
    }
    console.progress("$ signoff work\n");
    let exit = work::work(bench, (&[], false, Some(1)), console)?;
    if !console.json {
        console.progress("$ signoff status\n");
        super::status::print(&*Bench::at(&place)?.store, console)?;
        console.note(&format!("Look around: cd {} && signoff show 1", place.display()));
    }
    // The demo ends with a discussion, and shows just that.
    Ok(if exit == Exit::Attention { Exit::Done } else { exit })
}

fn make_project(place: &Path) -> Result<(), Failure> {
    if place.exists() && place.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(Failure::usage(format!("{} is not empty", place.display()))
            .hint("name a directory that does not exist"));
    }
    let write = |name: &str, text: &str| {
        let path = place.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(place))
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))
    };
    for (name, text) in demo::project() {
        write(name, text)?;
    }
    write("signoff.toml", demo::config())?;
    Repository::make(&Git::new(door::environment()), place, "A small project")?;
    Ok(())
}
