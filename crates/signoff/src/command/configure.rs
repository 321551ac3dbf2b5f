//! `signoff configure`: how the review phases behave, by questions; and any key, by name.

mod ask;
mod change;
mod target;

use std::path::{Path, PathBuf};

use signoff_core::config::PhaseRow;
use signoff_core::config::edit::{self, Change};
use signoff_core::config::foreign::{Format, translate};
use signoff_core::config::questions::PHASES;
use signoff_term::json::PhasesReport;

use crate::console::Console;
use crate::door;
use crate::failure::{Exit, Failure};
use crate::settings;
use change::Proposal;
use target::Target;

/// Set how the review phases behave, by questions; or any key, by name
///
/// On a terminal it asks five questions about each review phase of `signoff iterate`, shows what changes, and writes
/// only that into signoff.toml. Comments and order of the file stay. Esc goes back, Ctrl-C leaves everything as it was.
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
    /// Show every phase in a line, and where its settings come from
    #[arg(long, group = "way", conflicts_with_all = ["dry_run", "global"])]
    show: bool,
    /// Take back all that is set about the phases; the file as it was is kept beside it
    #[arg(long, group = "way")]
    reset: bool,
    /// Set a key; may be given several times. A value that is no TOML is a text
    #[arg(long, group = "way", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Take over a file of another program: gza.yaml, an iterate-config.json, TOML with reviewEnabled and the like
    #[arg(long, group = "way", value_name = "FILE")]
    import: Option<PathBuf>,
    /// Print the file as it would be, and write nothing
    #[arg(long, requires = "way")]
    dry_run: bool,
    /// Change your own ~/.config/signoff/config.toml instead of the repository's file
    #[arg(long)]
    global: bool,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    if args.show {
        return show(console);
    }
    if args.reset {
        return reset(&Target::find(args.global)?, args.dry_run, console);
    }
    if args.import.is_none() && args.set.is_empty() {
        return ask::run(&Target::find(args.global)?, console);
    }
    // Who was overtaken begins again with what is there now: each time, somebody has come through.
    loop {
        let target = Target::find(args.global)?;
        let proposal = match &args.import {
            Some(file) => import(file, &target)?,
            None => set(&args.set, &target)?,
        };
        if let Some(exit) = proposal.try_out(args.dry_run, console)? {
            return Ok(exit);
        }
    }
}

fn show(console: &Console) -> Result<Exit, Failure> {
    let settings = settings::load(Some(&settings::place()?))?;
    let rows = settings.phase_rows()?;
    if console.json {
        console.json(&PhasesReport::of(rows))?;
    } else {
        let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        let line = |row: &PhaseRow| row.line(width) + "\n";
        console.text(&rows.iter().map(line).collect::<String>())?;
    }
    settings.unknown_tools().iter().for_each(|said| console.note(&format!("warning: {said}")));
    Ok(Exit::Done)
}

fn set<'t>(words: &[String], target: &'t Target) -> Result<Proposal<'t>, Failure> {
    let mut changes = Vec::new();
    for words in words {
        let typed = Change::typed(words).map_err(|message| {
            Failure::usage(message).at(format!("--set {words}")).hint("`signoff config` lists the keys")
        })?;
        changes.extend(typed);
    }
    let edited = edit::set(&target.name, &target.text, &changes)?;
    Proposal::new(target, edited)
}

fn import<'t>(file: &Path, target: &'t Target) -> Result<Proposal<'t>, Failure> {
    let name = file.display().to_string();
    let bytes = door::read(file)?;
    let text = door::utf8(&name, &bytes)?;
    let format = Format::of_file(&name, text).ok_or_else(|| {
        Failure::usage(format!("nobody knows what {name} is"))
            .at(&name)
            .hint("expected gza.yaml, TOML with reviewEnabled and the like, or an iterate-config.json")
    })?;
    if target.is(file) {
        return Err(
            Failure::usage(format!("{name} is the file that would be written")).hint("name another one")
        );
    }
    let translated = translate(format, &name, text)?;
    let changes = edit::imported(&translated.layer);
    if changes.is_empty() && format == Format::Slots {
        let failure = Failure::usage(format!("{name} is no file of another program")).at(&name);
        return Err(failure.hint(
            "expected TOML with reviewEnabled and the like; keys of signoff.toml are set with --set KEY=VALUE",
        ));
    }
    let edited = edit::set(&target.name, &target.text, &changes)?;
    let mut proposal = Proposal::new(target, edited)?.with_backup();
    translated.notes.into_iter().for_each(|note| proposal.note(note));
    Ok(proposal)
}

fn reset(target: &Target, dry_run: bool, console: &Console) -> Result<Exit, Failure> {
    let edited = edit::remove(&target.name, &target.text, &["presets", PHASES])?;
    let mut proposal = Proposal::new(target, edited)?.with_backup();
    proposal.note_what_still_holds();
    if !dry_run
        && proposal.changes_something()
        && let Some(exit) = ask::kept(&proposal, console)?
    {
        return Ok(exit);
    }
    proposal.carry_out(dry_run, console)
}
