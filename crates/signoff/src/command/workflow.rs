//! `signoff workflow`: the presets, and the workflows people write themselves.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use serde::Serialize;

use crate::ahead::workflow;
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
        #[arg(value_parser = PossibleValuesParser::new(workflow::PRESETS))]
        preset: String,
    },
    /// List the presets
    #[command(after_help = "Example:\n  signoff workflow list")]
    List,
    /// Check a workflow file
    #[command(after_help = "Example:\n  signoff workflow check my-workflow.toml")]
    Check {
        /// The TOML file that holds the workflow
        file: PathBuf,
    },
}

#[derive(Serialize)]
struct Listing {
    version: u32,
    presets: [&'static str; workflow::PRESETS.len()],
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
    let preset = workflow::preset(name).ok_or_else(|| {
        Failure::usage(format!("no preset is called {name}")).hint("see `signoff workflow list`")
    })?;
    if console.json { console.json(&preset) } else { console.text(&workflow::render(&preset)) }
}

fn list(console: &Console) -> Result<(), Failure> {
    if console.json {
        return console.json(&Listing { version: 1, presets: workflow::PRESETS });
    }
    console.text(&workflow::PRESETS.map(|name| format!("{name}\n")).concat())
}

fn check(file: &std::path::Path, console: &Console) -> Result<(), Failure> {
    let shown = file.display().to_string();
    let bytes = door::read(file).map_err(|failure| failure.hint("name a TOML file that holds a workflow"))?;
    let text = door::utf8(&shown, &bytes)?;
    let workflow = workflow::parse(&shown, text)?;
    if console.json { console.json(&workflow) } else { console.text(&format!("{shown}: a valid workflow\n")) }
}
