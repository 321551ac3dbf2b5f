//! The configuration file that `signoff configure` changes, and a proposed change of it: checked before it is written,
//! reported afterwards.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use signoff_core::settings::edit::{ChangedKey, EditedFile};
use signoff_core::settings::questions::PHASES;
use signoff_core::settings::{ConfigError, SettingOrigin, Settings};
use signoff_term::json::{ConfigureReport, VERSION};

use crate::host::{self, replace::Replacement};
use crate::{CliError, CommandExit, Console, project, settings};

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
    pub fn new(target: &'t ConfigTarget, edited: EditedFile) -> Result<Self, CliError> {
        let read = settings::load_as_if(&target.root, &target.path, &edited.text)?;
        let settings = read.map_err(|error| located_error(target, &edited, error))?;
        let mut this = Self { target, edited, settings, notes: Vec::new(), keeps_backup: false };
        this.note_overrides();
        this.notes.extend(this.settings.unknown_tools().iter().map(ToString::to_string));
        Ok(this)
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
                self.notes.push(format!("`{set}` is for workflows with one gate, and `{preset}` is none"));
            }
            for (key, by) in self.settings.deciding_keys(&changed.key) {
                if key != changed.key && !self.edited.sets(&key) {
                    let set = &changed.key;
                    self.notes.push(format!("`{key}` is set by {by}, which wins over `{set}`"));
                } else if key == changed.key && !self.is_target(&by) {
                    self.notes.push(format!("`{key}` is also set by {by}, which wins"));
                }
            }
        }
    }

    fn is_target(&self, origin: &SettingOrigin) -> bool {
        file_of(origin).is_some_and(|file| file == self.target.name)
    }

    /// Notes files that still contain settings of the phases.
    pub fn note_remaining(&mut self) {
        let rows = self.settings.workflow_rows(PHASES);
        let files: BTreeSet<_> = rows.iter().filter_map(|row| file_of(&row.origin)).collect();
        let said = |file: &str| format!("{file} still contains settings of the phases");
        self.notes.extend(files.into_iter().map(said));
    }

    /// Writes the file and reports it. Fails if the file has changed since it was read.
    pub fn apply(self, dry_run: bool, console: &Console) -> Result<CommandExit, CliError> {
        let target = self.target;
        self.try_apply(dry_run, console)?.ok_or_else(|| target.changed_error())
    }

    /// Like `apply`, but returns `None` if the file has changed since it was read.
    pub fn try_apply(self, dry_run: bool, console: &Console) -> Result<Option<CommandExit>, CliError> {
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

    fn print(self, written: bool, backup: Option<String>, console: &Console) -> Result<CommandExit, CliError> {
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
            let said = edited.text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
            CliError::usage(message)
                .at(format!("{file}, where it says `{}`", said.trim()))
                .hint("nothing was written: fix that first, or with the same command")
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
    pub fn find(global: bool) -> Result<Self, CliError> {
        let root = project::main_checkout()?;
        let (path, name) = match (global, &root) {
            (false, Some(root)) => (root.join(settings::FILE), settings::FILE.to_owned()),
            (true, _) => settings::user_file().ok_or_else(|| {
                CliError::usage("cannot find your configuration directory").hint("set HOME or XDG_CONFIG_HOME")
            })?,
            (false, None) => {
                return Err(CliError::usage("this is not a git repository")
                    .hint("go to one, or use --global to change your own file"));
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
    pub fn write(&self, text: &str, keeps_backup: bool) -> Result<WriteResult, CliError> {
        let replacement = Replacement::begin(&self.path)?;
        if settings::text(&self.path, &self.name)?.unwrap_or_default() != self.text {
            return Ok(WriteResult::Changed);
        }
        let backup = if keeps_backup { host::copy_aside(&self.path, ".bak")? } else { None };
        replacement.write(text)?;
        Ok(WriteResult::Done { backup })
    }

    /// The error for a file that has changed since it was read.
    pub fn changed_error(&self) -> CliError {
        CliError::failed(format!("{} was changed by another program", self.name))
            .hint("nothing was written: look at it, then type the same again")
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
