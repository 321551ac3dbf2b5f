//! `signoff config`: shows every setting and where it comes from.

use signoff_core::settings::SettingRow;
use signoff_term::json::ConfigReport;

use crate::{CliError, CommandExit, Console, Result, preflight, settings};

/// Show every setting, and where it comes from
///
/// Later layers win: built-in defaults, ~/.config/signoff/config.toml, files of other programs (gza.yaml,
/// .claude/iterate-config.local.json), signoff.toml at the root of the repository, SIGNOFF_… variables, flags.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff config limits\n  signoff config --schema > .signoff/signoff.schema.json")]
pub struct Args {
    /// Show only this setting or table: `jobs`, `limits`, `presets.task.gates.review`
    key: Option<String>,
    /// Show the settings; this is the default
    #[arg(long)]
    show: bool,
    /// Print the JSON Schema of signoff.toml, for editors
    #[arg(long, conflicts_with_all = ["key", "show"])]
    schema: bool,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    if args.schema {
        console.text(&super::init::schema_text())?;
        return Ok(CommandExit::Done);
    }
    let root = settings::directory()?;
    let settings = settings::load(Some(&root))?;
    preflight::check_named_prompts(&settings, &root)?;
    let mut rows = settings.origins();
    if let Some(key) = &args.key {
        rows = below(rows, key)?;
    }
    let text = table(&rows);
    console.print(&ConfigReport::new(rows), || text)?;
    for warning in settings.unknown_tools() {
        console.note(&format!("warning: {warning}"));
    }
    Ok(CommandExit::Done)
}

/// Returns the setting with this key, or all settings of this table.
fn below(rows: Vec<SettingRow>, key: &str) -> Result<Vec<SettingRow>> {
    let table = format!("{key}.");
    let found: Vec<_> = rows.into_iter().filter(|row| row.key == key || row.key.starts_with(&table)).collect();
    if found.is_empty() {
        return Err(CliError::usage(format!("nothing is set under `{key}`"))
            .hint("`signoff config` lists the settings in effect"));
    }
    Ok(found)
}

/// Maximum width of the first column.
const WIDEST: usize = 60;

fn table(rows: &[SettingRow]) -> String {
    let lines: Vec<_> =
        rows.iter().map(|row| (format!("{} = {}", row.key, row.text()), row.origin.to_string())).collect();
    let width = lines.iter().map(|(setting, _)| setting.chars().count()).max().unwrap_or(0).min(WIDEST);
    lines.iter().map(|(setting, origin)| format!("{setting:<width$}  # {origin}\n")).collect()
}
