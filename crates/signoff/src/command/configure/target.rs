//! The file that is changed.

use std::path::{Path, PathBuf};

use crate::desk;
use crate::door::{self, replace::Replacement};
use crate::failure::Failure;
use crate::settings;

/// A configuration file as it was found.
#[derive(Debug)]
pub struct Target {
    /// Whose settings hold here.
    pub root: PathBuf,
    pub path: PathBuf,
    /// As people write it.
    pub name: String,
    /// Empty if there is no such file.
    pub text: String,
}

impl Target {
    /// The repository's file, or the person's.
    pub fn find(global: bool) -> Result<Self, Failure> {
        let root = desk::main_checkout()?;
        let (path, name) = match (global, &root) {
            (false, Some(root)) => (root.join(settings::FILE), settings::FILE.to_owned()),
            (true, _) => settings::persons_file().ok_or_else(|| {
                Failure::usage("nothing says where your own file would be")
                    .hint("set HOME or XDG_CONFIG_HOME")
            })?,
            (false, None) => {
                return Err(Failure::usage("this is not a git repository")
                    .hint("go to one, or say --global to change your own file"));
            }
        };
        let text = settings::text(&path, &name)?.unwrap_or_default();
        Ok(Self { root: settings::place()?, path, name, text })
    }

    /// Whether another path leads to the same file.
    pub fn is(&self, other: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().ok();
        real(&self.path).is_some_and(|own| real(other) == Some(own))
    }

    /// Puts a text in its place, unless somebody else has changed it since it was read. Gives where the file as it was
    /// is kept, if it is to be.
    pub fn write(&self, text: &str, keeps_backup: bool) -> Result<Written, Failure> {
        let replacement = Replacement::begin(&self.path)?;
        if settings::text(&self.path, &self.name)?.unwrap_or_default() != self.text {
            return Ok(Written::Changed);
        }
        let backup = if keeps_backup { door::copy_aside(&self.path)? } else { None };
        replacement.put(text)?;
        Ok(Written::Done { backup })
    }

    /// Nobody's change is lost.
    pub fn changed(&self) -> Failure {
        Failure::failed(format!("{} was changed by somebody else meanwhile", self.name))
            .hint("nothing was written: look at it, then type the same again")
    }
}

/// What became of a file.
#[derive(Debug)]
pub enum Written {
    Done {
        backup: Option<PathBuf>,
    },
    /// Somebody else has changed it since it was read.
    Changed,
}
