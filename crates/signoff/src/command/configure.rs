//! `signoff configure`: sets how the review phases behave by asking questions, or sets any key by name.

mod proposal;
mod questions;

use std::path::{Path, PathBuf};

use signoff_core::settings::PhaseRow;
use signoff_core::settings::edit::{self, KeyChange};
use signoff_core::settings::foreign::{ForeignFormat, translate};
use signoff_core::settings::questions::PHASES;
use signoff_term::json::PhasesReport;

use proposal::{ConfigTarget, Proposal};

use crate::{CliError, CommandExit, Console, host, settings};

/// Configure the review phases by answering questions, or set any key by name
///
/// On a terminal it asks five questions about each review phase of `signoff iterate`, shows what changes, and writes
/// only that into signoff.toml. Comments and order of the file stay. Esc goes back, Ctrl-C changes nothing.
#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("way").multiple(false),
    after_help = "Example:\n  \
                  signoff configure\n  \
                  signoff configure --show\n  \
                  signoff configure --set presets.phases.gates.code_review.max_fixes=5 --set jobs=8\n  \
                  signoff configure --set phases.5.failOnSeverity=HIGH\n  \
                  signoff configure --import gza.yaml --dry-run\n  \
                  signoff configure --reset"
)]
pub struct Args {
    /// Show each phase on one line, and where its settings come from
    #[arg(long, group = "way", conflicts_with_all = ["dry_run", "global"])]
    show: bool,
    /// Remove all settings of the phases; a backup of the file is kept beside it
    #[arg(long, group = "way")]
    reset: bool,
    /// Set a key; may be repeated. A value that is not valid TOML is a string
    #[arg(long, group = "way", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Import a file of another program: gza.yaml, iterate-config.json, or TOML with keys such as reviewEnabled
    #[arg(long, group = "way", value_name = "FILE")]
    import: Option<PathBuf>,
    /// Print the resulting file and write nothing
    #[arg(long, requires = "way")]
    dry_run: bool,
    /// Change your own ~/.config/signoff/config.toml instead of the repository's file
    #[arg(long)]
    global: bool,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit, CliError> {
    if args.show {
        return show(console);
    }
    if args.reset {
        return reset(&ConfigTarget::find(args.global)?, args.dry_run, console);
    }
    if args.import.is_none() && args.set.is_empty() {
        return questions::run(&ConfigTarget::find(args.global)?, console);
    }
    // If another process changed the file, start again with the new text. Each retry means that one of them succeeded.
    loop {
        let target = ConfigTarget::find(args.global)?;
        let proposal = match &args.import {
            Some(file) => import(file, &target)?,
            None => set(&args.set, &target)?,
        };
        if let Some(exit) = proposal.try_apply(args.dry_run, console)? {
            return Ok(exit);
        }
    }
}

fn show(console: &Console) -> Result<CommandExit, CliError> {
    let settings = settings::load(Some(&settings::directory()?))?;
    let rows = settings.phase_rows()?;
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let text = rows.iter().map(|row: &PhaseRow| row.line(width) + "\n").collect();
    console.print(&PhasesReport::new(rows), || text)?;
    settings.unknown_tools().iter().for_each(|said| console.note(&format!("warning: {said}")));
    Ok(CommandExit::Done)
}

fn set<'t>(words: &[String], target: &'t ConfigTarget) -> Result<Proposal<'t>, CliError> {
    let mut changes = Vec::new();
    for words in words {
        let typed = KeyChange::typed(words).map_err(|message| {
            CliError::usage(message).at(format!("--set {words}")).hint("`signoff config` lists the keys")
        })?;
        changes.extend(typed);
    }
    let edited = edit::set(&target.name, &target.text, &changes)?;
    Proposal::new(target, edited)
}

fn import<'t>(file: &Path, target: &'t ConfigTarget) -> Result<Proposal<'t>, CliError> {
    let name = file.display().to_string();
    let bytes = host::read(file)?;
    let text = host::utf8(&name, &bytes)?;
    let format = ForeignFormat::detect(&name, text).ok_or_else(|| {
        CliError::usage(format!("cannot detect the format of {name}"))
            .at(&name)
            .hint("expected gza.yaml, TOML with keys such as reviewEnabled, or an iterate-config.json")
    })?;
    if target.is_same_file(file) {
        return Err(CliError::usage(format!("{name} is the file that would be written")).hint("name another one"));
    }
    let translated = translate(format, &name, text)?;
    let changes = edit::imported(&translated.layer);
    if changes.is_empty() && format == ForeignFormat::Slots {
        let failure = CliError::usage(format!("{name} is not a file of another program")).at(&name);
        return Err(failure
            .hint("expected TOML with keys such as reviewEnabled; keys of signoff.toml are set with --set KEY=VALUE"));
    }
    let edited = edit::set(&target.name, &target.text, &changes)?;
    let mut proposal = Proposal::new(target, edited)?.with_backup();
    proposal.notes.extend(translated.notes);
    Ok(proposal)
}

fn reset(target: &ConfigTarget, dry_run: bool, console: &Console) -> Result<CommandExit, CliError> {
    let edited = edit::remove(&target.name, &target.text, &["presets", PHASES])?;
    let mut proposal = Proposal::new(target, edited)?.with_backup();
    proposal.note_remaining();
    if !dry_run
        && proposal.changes_something()
        && let Some(exit) = questions::confirm_reset(&proposal, console)?
    {
        return Ok(exit);
    }
    proposal.apply(dry_run, console)
}
