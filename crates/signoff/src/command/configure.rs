//! `signoff configure`: sets how the review phases behave by asking questions, or sets any key by name.

mod questions;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use signoff_core::settings::edit::{self, ChangedKey, EditedFile, KeyChange};
use signoff_core::settings::foreign::{ForeignFormat, translate};
use signoff_core::settings::{ConfigError, PhaseRow, SettingOrigin, Settings};
use signoff_core::workflow::PHASES_PRESET;
use signoff_term::json::{ConfigureReport, PhasesReport, VERSION};

use crate::host::{self, replace::Replacement};
use crate::{CliError, CommandExit, Console, Result, project, settings};

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
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
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

fn show(console: &Console) -> Result<CommandExit> {
    let settings = settings::load(Some(&settings::directory()?))?;
    let rows = settings.phase_rows()?;
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let text = rows.iter().map(|row: &PhaseRow| row.line(width) + "\n").collect();
    console.print(&PhasesReport::new(rows), || text)?;
    settings.unknown_tools().iter().for_each(|warning| console.note(&format!("warning: {warning}")));
    Ok(CommandExit::Done)
}

fn set<'t>(assignments: &[String], target: &'t ConfigTarget) -> Result<Proposal<'t>> {
    let mut changes = Vec::new();
    for assignment in assignments {
        let typed = KeyChange::parse(assignment).map_err(|message| {
            CliError::usage(message).at(format!("--set {assignment}")).hint("`signoff config` lists the keys")
        })?;
        changes.extend(typed);
    }
    let edited = edit::set(&target.name, &target.text, &changes)?;
    Proposal::new(target, edited)
}

fn import<'t>(file: &Path, target: &'t ConfigTarget) -> Result<Proposal<'t>> {
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
    let changes = edit::changes_from_layer(&translated.layer);
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

fn reset(target: &ConfigTarget, dry_run: bool, console: &Console) -> Result<CommandExit> {
    let edited = edit::remove(&target.name, &target.text, &["presets", PHASES_PRESET])?;
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

/// The new text of a file, checked to be a valid configuration.
pub struct Proposal<'t> {
    target: &'t ConfigTarget,
    edited: EditedFile,
    settings: Settings,
    /// Notes for the user.
    pub notes: Vec<String>,
    keeps_backup: bool,
}

impl<'t> Proposal<'t> {
    /// Checks the new text.
    pub fn new(target: &'t ConfigTarget, edited: EditedFile) -> Result<Self> {
        let read = settings::load_as_if(&target.root, &target.path, &edited.text)?;
        let settings = read.map_err(|error| located_error(target, &edited, error))?;
        let mut proposal = Self { target, edited, settings, notes: Vec::new(), keeps_backup: false };
        proposal.note_overrides();
        proposal.notes.extend(proposal.settings.unknown_tools().iter().map(ToString::to_string));
        Ok(proposal)
    }

    /// Keeps a backup of the old file beside it.
    #[must_use]
    pub fn with_backup(self) -> Self {
        Self { keeps_backup: true, ..self }
    }

    pub fn changes_something(&self) -> bool {
        !self.edited.changed.is_empty()
    }

    /// The changes, one line each.
    pub fn lines(&self) -> Vec<String> {
        let word = |value: &Option<String>| value.clone().unwrap_or_else(|| "(not set)".to_owned());
        let line = |changed: &ChangedKey| format!("  {}: {} → {}", changed.key, word(&changed.old), word(&changed.new));
        self.edited.changed.iter().map(line).collect()
    }

    /// Notes keys that have no effect because another layer or another key overrides them.
    fn note_overrides(&mut self) {
        for changed in self.edited.changed.iter().filter(|changed| changed.new.is_some()) {
            if changed.key.starts_with("defaults.") && !self.settings.defaults_apply() {
                let (set, preset) = (&changed.key, self.settings.preset());
                self.notes
                    .push(format!("`{set}` applies only to workflows with one gate; `{preset}` has none or several"));
            }
            for (key, by) in self.settings.deciding_keys(&changed.key) {
                if key != changed.key && !self.edited.sets(&key) {
                    let set = &changed.key;
                    self.notes.push(format!("`{key}` is set by {by}, which overrides `{set}`"));
                } else if key == changed.key && !self.is_target(&by) {
                    self.notes.push(format!("`{key}` is also set by {by}, which overrides it"));
                }
            }
        }
    }

    fn is_target(&self, origin: &SettingOrigin) -> bool {
        file_of(origin).is_some_and(|file| file == self.target.name)
    }

    /// Notes files that still contain settings of the phases.
    pub fn note_remaining(&mut self) {
        let rows = self.settings.workflow_rows(PHASES_PRESET);
        let files: BTreeSet<_> = rows.iter().filter_map(|row| file_of(&row.origin)).collect();
        let note = |file: &str| format!("{file} still contains settings of the phases");
        self.notes.extend(files.into_iter().map(note));
    }

    /// Writes the file and reports it. Fails if the file has changed since it was read.
    pub fn apply(self, dry_run: bool, console: &Console) -> Result<CommandExit> {
        let target = self.target;
        self.try_apply(dry_run, console)?.ok_or_else(|| {
            CliError::failed(format!("{} was changed by another program", target.name))
                .hint("nothing was written: check the file, then run the command again")
        })
    }

    /// Like `apply`, but returns `None` if the file has changed since it was read.
    pub fn try_apply(self, dry_run: bool, console: &Console) -> Result<Option<CommandExit>> {
        if dry_run {
            console.data(&self.edited.text)?;
            self.notes.iter().for_each(|note| console.note(note));
            return Ok(Some(CommandExit::Done));
        }
        if !self.changes_something() {
            return self.print(false, None, console).map(Some);
        }
        match self.target.write(&self.edited.text, self.keeps_backup)? {
            WriteResult::Changed => Ok(None),
            WriteResult::Done { backup } => {
                let backup = backup.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
                self.print(true, backup, console).map(Some)
            }
        }
    }

    fn print(self, written: bool, backup: Option<String>, console: &Console) -> Result<CommandExit> {
        let (file, lines) = (self.target.name.clone(), self.lines());
        if console.json {
            let (changes, notes) = (self.edited.changed, self.notes);
            console.json(&ConfigureReport { version: VERSION, file, written, backup, changes, notes })?;
            return Ok(CommandExit::Done);
        }
        let mut output = Vec::new();
        output.extend(backup.map(|backup| format!("kept the old {file} as {backup}")));
        output.push(if written {
            format!("wrote {file}")
        } else {
            format!("{file} already has these values; nothing was written")
        });
        output.extend(lines);
        console.text(&output.iter().flat_map(|line| [line, "\n"]).collect::<String>())?;
        self.notes.iter().for_each(|note| console.note(note));
        Ok(CommandExit::Done)
    }
}

/// The file that a value comes from.
fn file_of(origin: &SettingOrigin) -> Option<&str> {
    match origin {
        SettingOrigin::Person { file, .. }
        | SettingOrigin::Foreign { file, .. }
        | SettingOrigin::Repository { file, .. } => Some(file),
        SettingOrigin::Default
        | SettingOrigin::Preset { .. }
        | SettingOrigin::Environment { .. }
        | SettingOrigin::Flag { .. }
        | SettingOrigin::Task => None,
    }
}

/// Reports an error with the key that was to be set, because the line number is that of an unwritten file.
fn located_error(target: &ConfigTarget, edited: &EditedFile, error: ConfigError) -> CliError {
    let ConfigError::File { file, line, message } = &error else { return error.into() };
    if *file != target.name || edited.changed.is_empty() {
        return error.into();
    }
    match edited.key_at(*line) {
        Some(key) => {
            CliError::usage(message).at(key).hint("nothing was written: `signoff config` lists the settings in effect")
        }
        None => {
            let text = edited.text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
            CliError::usage(message)
                .at(format!("{file}, at the line `{}`", text.trim()))
                .hint("nothing was written: fix that line first, or with another --set in the same command")
        }
    }
}

/// A configuration file as it was read.
#[derive(Debug)]
pub struct ConfigTarget {
    /// The directory whose settings apply.
    pub root: PathBuf,
    pub path: PathBuf,
    /// The display name of the file.
    pub name: String,
    /// Empty if there is no such file.
    pub text: String,
}

impl ConfigTarget {
    /// Reads the repository's file, or with `global` the user's.
    pub fn find(global: bool) -> Result<Self> {
        let root = project::main_checkout()?;
        let (path, name) = match (global, &root) {
            (false, Some(root)) => (root.join(settings::FILE), settings::FILE.to_owned()),
            (true, _) => settings::user_file().ok_or_else(|| {
                CliError::usage("cannot find your configuration directory").hint("set HOME or XDG_CONFIG_HOME")
            })?,
            (false, None) => {
                return Err(CliError::usage("this is not a git repository")
                    .hint("cd into a repository, or use --global to change your own file"));
            }
        };
        let text = settings::text(&path, &name)?.unwrap_or_default();
        Ok(Self { root: settings::directory()?, path, name, text })
    }

    /// Whether `other` is the same file.
    pub fn is_same_file(&self, other: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().ok();
        real(&self.path).is_some_and(|own| real(other) == Some(own))
    }

    /// Replaces the file, unless it has changed since it was read. Returns the path of the backup if one is kept.
    pub fn write(&self, text: &str, keeps_backup: bool) -> Result<WriteResult> {
        let replacement = Replacement::begin(&self.path)?;
        if settings::text(&self.path, &self.name)?.unwrap_or_default() != self.text {
            return Ok(WriteResult::Changed);
        }
        let backup = if keeps_backup { host::copy_to_backup(&self.path, ".bak")? } else { None };
        replacement.write(text)?;
        Ok(WriteResult::Done { backup })
    }
}

/// The result of writing a file.
#[derive(Debug)]
pub enum WriteResult {
    Done {
        backup: Option<PathBuf>,
    },
    /// The file has changed since it was read, and nothing was written.
    Changed,
}
