//! `signoff workflow`: the presets, and the workflows people write themselves.

use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use serde::Serialize;
use signoff_core::workflow::{self, PRESETS, Workflow};

use crate::console::Console;
use crate::door;
use crate::failure::{Exit, Failure};

/// Show how the presets work, or check a workflow of your own
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff workflow show plan")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show a preset, phase by phase
    #[command(after_help = "Example:\n  signoff workflow show task")]
    Show {
        /// The preset's name
        #[arg(value_parser = PossibleValuesParser::new(PRESETS))]
        preset: String,
    },
    /// List the presets
    #[command(after_help = "Example:\n  signoff workflow list")]
    List,
    /// Check a file that holds a workflow, or several below `[workflows]`
    #[command(after_help = "Example:\n  signoff workflow check my-workflow.toml")]
    Check {
        /// The TOML file
        file: PathBuf,
    },
}

/// One workflow as JSON.
#[derive(Serialize)]
struct Shown<'a> {
    version: u32,
    #[serde(flatten)]
    workflow: &'a Workflow,
}

/// The presets as JSON.
#[derive(Serialize)]
struct Listed<'a> {
    version: u32,
    presets: &'a [Entry],
}

#[derive(Serialize)]
struct Entry {
    name: String,
    description: String,
}

/// What a file holds, as JSON.
#[derive(Serialize)]
struct Checked<'a> {
    version: u32,
    workflows: &'a [Workflow],
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    match &args.action {
        Action::Show { preset } => show(preset, console)?,
        Action::List => list(console)?,
        Action::Check { file } => check(file, console)?,
    }
    Ok(Exit::Done)
}

fn show(name: &str, console: &Console) -> Result<(), Failure> {
    let workflow = workflow::preset(name).ok_or_else(|| {
        Failure::usage(format!("no preset is called {name}")).hint("see `signoff workflow list`")
    })?;
    if console.json {
        console.json(&Shown { version: 1, workflow: &workflow })
    } else {
        console.text(&workflow::render(&workflow))
    }
}

fn list(console: &Console) -> Result<(), Failure> {
    let presets: Vec<_> = PRESETS
        .into_iter()
        .filter_map(workflow::preset)
        .map(|preset| Entry { name: preset.name, description: preset.description })
        .collect();
    if console.json {
        return console.json(&Listed { version: 1, presets: &presets });
    }
    let lines = presets.iter().map(|preset| format!("{:<8}{}\n", preset.name, preset.description));
    console.text(&lines.collect::<String>())
}

fn check(file: &Path, console: &Console) -> Result<(), Failure> {
    let name = file.display().to_string();
    let bytes = door::read(file).map_err(|failure| failure.hint("name a TOML file that holds a workflow"))?;
    let workflows = workflow::parse(&name, door::utf8(&name, &bytes)?)?;
    if workflows.is_empty() {
        return Err(Failure::usage(format!("{name} holds no workflow"))
            .at(format!("{name}:1"))
            .hint("write one below `[workflows.NAME]`"));
    }
    if console.json {
        return console.json(&Checked { version: 1, workflows: &workflows });
    }
    console.text(&workflows.iter().map(|workflow| sound(&name, workflow)).collect::<String>())
}

fn sound(file: &str, workflow: &Workflow) -> String {
    let phases: Vec<_> = workflow.phases.iter().map(|phase| phase.name.as_str()).collect();
    format!("{file}: workflow {} is sound: {}\n", workflow.name, phases.join(", "))
}
