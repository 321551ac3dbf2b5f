//! `signoff completions`: prints a completion script for a shell.

use clap::Command;
use clap_complete::{Shell, generate};

use crate::{CommandExit, Console, Result};

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff completions bash > ~/.local/share/bash-completion/completions/signoff")]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Runs the command.
pub fn run(args: &Args, mut cli: Command, console: &Console) -> Result<CommandExit> {
    let mut script = Vec::new();
    generate(args.shell, &mut cli, "signoff", &mut script);
    console.data(&String::from_utf8_lossy(&script))?;
    Ok(CommandExit::Done)
}
