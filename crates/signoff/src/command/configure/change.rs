//! What is about to be written: checked before, told after.

use std::collections::BTreeSet;

use signoff_core::config::edit::{Changed, Edited};
use signoff_core::config::questions::PHASES;
use signoff_core::config::{ConfigError, Origin, Settings};
use signoff_term::json::{ConfigureReport, VERSION};

use super::target::{Target, Written};
use crate::console::Console;
use crate::failure::{Exit, Failure};
use crate::settings;

/// A file with its changes, which is a configuration without mistakes.
pub struct Proposal<'t> {
    target: &'t Target,
    edited: Edited,
    settings: Settings,
    notes: Vec<String>,
    keeps_backup: bool,
}

impl<'t> Proposal<'t> {
    /// Checks what would be written.
    pub fn new(target: &'t Target, edited: Edited) -> Result<Self, Failure> {
        let read = settings::load_as_if(&target.root, &target.path, &edited.text)?;
        let settings = read.map_err(|error| refused(target, &edited, error))?;
        let mut this = Self { target, edited, settings, notes: Vec::new(), keeps_backup: false };
        this.note_who_wins();
        this.notes.extend(this.settings.unknown_tools().iter().map(ToString::to_string));
        Ok(this)
    }

    /// Keeps the file as it was beside it.
    #[must_use]
    pub fn with_backup(self) -> Self {
        Self { keeps_backup: true, ..self }
    }

    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// What people should know about it.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    pub fn changes_something(&self) -> bool {
        !self.edited.changed.is_empty()
    }

    /// What changes, a line each.
    pub fn lines(&self) -> Vec<String> {
        let word = |value: &Option<String>| value.clone().unwrap_or_else(|| "(not set)".to_owned());
        let line =
            |changed: &Changed| format!("  {}: {} → {}", changed.key, word(&changed.old), word(&changed.new));
        self.edited.changed.iter().map(line).collect()
    }

    /// A key does not hold by being written if another layer sets it too, or a key that has the last word over it.
    fn note_who_wins(&mut self) {
        for changed in self.edited.changed.iter().filter(|changed| changed.new.is_some()) {
            if changed.key.starts_with("defaults.") && !self.settings.defaults_count() {
                let (set, preset) = (&changed.key, self.settings.preset());
                self.notes.push(format!("`{set}` is for workflows with one gate, and `{preset}` is none"));
            }
            for (key, by) in self.settings.last_words(&changed.key) {
                if key != changed.key && !self.edited.sets(&key) {
                    let set = &changed.key;
                    self.notes.push(format!("`{key}` is set by {by}, which wins over `{set}`"));
                } else if key == changed.key && !self.is_ours(&by) {
                    self.notes.push(format!("`{key}` is also set by {by}, which wins"));
                }
            }
        }
    }

    fn is_ours(&self, origin: &Origin) -> bool {
        file_of(origin).is_some_and(|file| file == self.target.name)
    }

    /// Files that still say something about the phases.
    pub fn note_what_still_holds(&mut self) {
        let rows = self.settings.written_about(PHASES);
        let files: BTreeSet<_> = rows.iter().filter_map(|row| file_of(&row.origin)).collect();
        let said = |file: &str| format!("{file} still says something about the phases");
        self.notes.extend(files.into_iter().map(said));
    }

    /// Writes it and tells what was done. Somebody's change meanwhile is not written over.
    pub fn carry_out(self, dry_run: bool, console: &Console) -> Result<Exit, Failure> {
        let target = self.target;
        self.try_out(dry_run, console)?.ok_or_else(|| target.changed())
    }

    /// The same; None if the file is no longer what it was when it was read.
    pub fn try_out(self, dry_run: bool, console: &Console) -> Result<Option<Exit>, Failure> {
        if dry_run {
            console.data(&self.edited.text)?;
            self.notes.iter().for_each(|note| console.note(note));
            return Ok(Some(Exit::Done));
        }
        if !self.changes_something() {
            return self.tell(false, None, console).map(Some);
        }
        match self.target.write(&self.edited.text, self.keeps_backup)? {
            Written::Changed => Ok(None),
            Written::Done { backup } => {
                let backup = backup.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
                self.tell(true, backup, console).map(Some)
            }
        }
    }

    fn tell(self, written: bool, backup: Option<String>, console: &Console) -> Result<Exit, Failure> {
        let (file, lines) = (self.target.name.clone(), self.lines());
        if console.json {
            let (changes, notes) = (self.edited.changed, self.notes);
            console.json(&ConfigureReport { version: VERSION, file, written, backup, changes, notes })?;
            return Ok(Exit::Done);
        }
        let mut told = Vec::new();
        told.extend(backup.map(|backup| format!("kept {file} as it was as {backup}")));
        told.push(if written {
            format!("wrote {file}")
        } else {
            format!("{file} is as you want it; nothing was written")
        });
        told.extend(lines);
        console.text(&told.iter().flat_map(|line| [line, "\n"]).collect::<String>())?;
        self.notes.iter().for_each(|note| console.note(note));
        Ok(Exit::Done)
    }
}

/// The file that a value stands in.
fn file_of(origin: &Origin) -> Option<&str> {
    match origin {
        Origin::Person { file, .. } | Origin::Foreign { file, .. } | Origin::Repository { file, .. } => {
            Some(file)
        }
        Origin::Default
        | Origin::Preset { .. }
        | Origin::Environment { .. }
        | Origin::Flag { .. }
        | Origin::Task => None,
    }
}

/// A mistake is told with the key that was to be set: the line is in a file that nobody has seen.
fn refused(target: &Target, edited: &Edited, error: ConfigError) -> Failure {
    let ConfigError::File { file, line, message } = &error else { return error.into() };
    if *file != target.name || edited.changed.is_empty() {
        return error.into();
    }
    match edited.key_at(*line) {
        Some(key) => {
            Failure::usage(message).at(key).hint("nothing was written: `signoff config` lists what holds")
        }
        None => {
            let said = edited.text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
            Failure::usage(message)
                .at(format!("{file}, where it says `{}`", said.trim()))
                .hint("nothing was written: mend that first, or with the same command")
        }
    }
}
