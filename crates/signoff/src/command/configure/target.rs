//! The configuration file that `signoff configure` changes.

use std::path::{Path, PathBuf};

use crate::error::CliError;
use crate::host::{self, replace::Replacement};
use crate::project;
use crate::settings;

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
        let backup = if keeps_backup { host::copy_aside(&self.path)? } else { None };
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
