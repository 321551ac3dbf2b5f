//! `signoff workflow`: shows the presets and checks custom workflows.

use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use serde::Serialize;
use serde_json::json;
use signoff_core::workflow::{self, PRESETS, Workflow};

use crate::{CliError, CommandExit, Console, Result, host};

/// Show the presets, or check a custom workflow
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff workflow show plan")]
pub struct Args {
    #[command(subcommand)]
    action: WorkflowAction,
}

#[derive(Debug, clap::Subcommand)]
enum WorkflowAction {
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
    /// Check a file with a workflow, or with several below `[workflows]`
    #[command(after_help = "Example:\n  signoff workflow check my-workflow.toml")]
    Check {
        /// The TOML file
        file: PathBuf,
    },
}

/// One workflow as JSON.
#[derive(Serialize)]
struct WorkflowJson<'a> {
    version: u32,
    #[serde(flatten)]
    workflow: &'a Workflow,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    match &args.action {
        WorkflowAction::Show { preset } => show(preset, console),
        WorkflowAction::List => list(console),
        WorkflowAction::Check { file } => check(file, console),
    }
}

fn show(name: &str, console: &Console) -> Result<CommandExit> {
    let workflow = workflow::preset(name)
        .ok_or_else(|| CliError::usage(format!("no preset is called {name}")).hint("see `signoff workflow list`"))?;
    console.print(&WorkflowJson { version: 1, workflow: &workflow }, || workflow::render(&workflow))
}

fn list(console: &Console) -> Result<CommandExit> {
    let presets: Vec<_> = PRESETS
        .into_iter()
        .filter_map(workflow::preset)
        .map(|preset| json!({ "name": preset.name, "description": preset.description }))
        .collect();
    let line = |preset: Workflow| format!("{:<8}{}\n", preset.name, preset.description);
    let text = || PRESETS.into_iter().filter_map(workflow::preset).map(line).collect();
    console.print(&json!({ "version": 1, "presets": presets }), text)
}

fn check(file: &Path, console: &Console) -> Result<CommandExit> {
    let name = file.display().to_string();
    let bytes = host::read(file).map_err(|failure| failure.hint("name a TOML file that holds a workflow"))?;
    let workflows = workflow::parse(&name, host::utf8(&name, &bytes)?)
        .map_err(|error| CliError::from(error).hint("`signoff workflow show task` shows the keys of a workflow"))?;
    if workflows.is_empty() {
        return Err(CliError::usage(format!("{name} holds no workflow"))
            .at(format!("{name}:1"))
            .hint("write one below `[workflows.NAME]`"));
    }
    console.print(&json!({ "version": 1, "workflows": workflows }), || {
        workflows.iter().map(|workflow| valid_line(&name, workflow)).collect()
    })
}

fn valid_line(file: &str, workflow: &Workflow) -> String {
    let phases: Vec<_> = workflow.phases.iter().map(|phase| phase.name.as_str()).collect();
    format!("{file}: workflow {} is valid: {}\n", workflow.name, phases.join(", "))
}
