//! `signoff config`: every setting, and where it comes from.

use signoff_core::config::Row;
use signoff_term::json::ConfigReport;

use crate::console::Console;
use crate::failure::{Exit, Failure};
use crate::{preflight, settings};

/// Show every setting, and where it comes from
///
/// Later layers win: what is built in, ~/.config/signoff/config.toml, files of other programs (gza.yaml,
/// .claude/iterate-config.local.json), signoff.toml at the root of the repository, SIGNOFF_… variables, flags.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  signoff config limits\n  signoff config --schema > .signoff/signoff.schema.json"
)]
pub struct Args {
    /// Show only this setting, or those of this table: `jobs`, `limits`, `presets.task.gates.review`
    key: Option<String>,
    /// Show the settings, which is also what happens without it
    #[arg(long)]
    show: bool,
    /// Print the JSON Schema of signoff.toml, for editors
    #[arg(long, conflicts_with_all = ["key", "show"])]
    schema: bool,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    if args.schema {
        console.text(&super::init::schema_text())?;
        return Ok(Exit::Done);
    }
    let root = settings::place()?;
    let settings = settings::load(Some(&root))?;
    preflight::check_named_prompts(&settings, &root)?;
    let mut rows = settings.origins();
    if let Some(key) = &args.key {
        rows = below(rows, key)?;
    }
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

/// The settings under a key: itself, or all of its table.
fn below(rows: Vec<Row>, key: &str) -> Result<Vec<Row>, Failure> {
    let table = format!("{key}.");
    let found: Vec<_> =
        rows.into_iter().filter(|row| row.key == key || row.key.starts_with(&table)).collect();
    if found.is_empty() {
        return Err(Failure::usage(format!("nothing is set under `{key}`"))
            .hint("`signoff config` lists every setting that holds"));
    }
    Ok(found)
}

/// No value is moved further to the right than this by the longest key.
const WIDEST: usize = 60;

fn table(rows: &[Row]) -> String {
    let lines: Vec<_> =
        rows.iter().map(|row| (format!("{} = {}", row.key, row.text()), row.origin.to_string())).collect();
    let width = lines.iter().map(|(said, _)| said.chars().count()).max().unwrap_or(0).min(WIDEST);
    lines.iter().map(|(said, origin)| format!("{said:<width$}  # {origin}\n")).collect()
}
