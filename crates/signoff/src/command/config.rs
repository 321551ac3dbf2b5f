//! `signoff config`: every setting, and where it comes from.

use signoff_core::config::Row;
use signoff_term::json::ConfigReport;

use crate::console::Console;
use crate::failure::{Exit, Failure};
use crate::settings;

/// Show every setting, and where it comes from
///
/// Later layers win: what is built in, ~/.config/signoff/config.toml, files of other programs (gza.yaml,
/// .claude/iterate-config.local.json), signoff.toml at the root of the repository, SIGNOFF_… variables, flags.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff config --show")]
pub struct Args {
    /// Show the settings, which is also what happens without it
    #[arg(long)]
    show: bool,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let Args { show: _ } = args;
    let settings = settings::load(Some(&settings::place()?))?;
    let rows = settings.origins();
    if console.json {
        console.json(&ConfigReport::of(rows))?;
    } else {
        console.text(&table(&rows))?;
    }
    for said in settings.unknown_tools() {
        console.note(&format!("warning: {said}"));
    }
    Ok(Exit::Done)
}

/// No value is moved further to the right than this by the longest key.
const WIDEST: usize = 60;

fn table(rows: &[Row]) -> String {
    let lines: Vec<_> =
        rows.iter().map(|row| (format!("{} = {}", row.key, row.text()), row.origin.to_string())).collect();
    let width = lines.iter().map(|(said, _)| said.chars().count()).max().unwrap_or(0).min(WIDEST);
    lines.iter().map(|(said, origin)| format!("{said:<width$}  # {origin}\n")).collect()
}
