//! Custom prompt files that replace built-in prompts.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use signoff_core::settings::{SettingOrigin, Settings};

use crate::layout::Layout;

/// A prompt file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptFile {
    path: PathBuf,
    /// The path as shown to the user.
    pub name: String,
}

/// Why a prompt file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    #[error("there is no prompt {name}")]
    Missing { name: String },
    #[error("the prompt {name} is not a regular file")]
    NotAFile { name: String },
    #[error("the prompt {name} is not UTF-8 text")]
    NotText { name: String },
    #[error("the prompt {name} is empty")]
    Blank { name: String },
    #[error("the prompt {name} cannot be read: {error}")]
    Unreadable { name: String, error: io::Error },
}

impl PromptFile {
    /// A file by its path relative to the repository's root.
    pub fn at(root: &Path, name: &str) -> Self {
        Self { path: root.join(name), name: name.to_owned() }
    }

    /// Reads the prompt. An empty file is an error.
    pub fn read(&self) -> Result<String, PromptError> {
        let name = self.name.clone();
        let refused = |error: io::Error| {
            let name = self.name.clone();
            if is_not_there(&error) { PromptError::Missing { name } } else { PromptError::Unreadable { name, error } }
        };
        // Reading a pipe would block.
        if !fs::metadata(&self.path).map_err(refused)?.is_file() {
            return Err(PromptError::NotAFile { name });
        }
        match String::from_utf8(fs::read(&self.path).map_err(refused)?) {
            Err(_) => Err(PromptError::NotText { name }),
            Ok(text) if text.trim().is_empty() => Err(PromptError::Blank { name }),
            Ok(text) => Ok(text),
        }
    }
}

/// The prompt file of a role or reviewer: the configured one with its origin, or the one in `.signoff/prompts`.
pub fn find<'a>(settings: &'a Settings, root: &Path, name: &str) -> Option<(PromptFile, Option<&'a SettingOrigin>)> {
    if let Some((path, origin)) = settings.prompt(name) {
        return Some((PromptFile::at(root, path), Some(origin)));
    }
    let path = Layout::new(root, None).prompts().join(format!("{name}.md"));
    // A file that exists but cannot be read is an error, not a missing one: the team's rules would be skipped.
    if path.symlink_metadata().is_err_and(|error| is_not_there(&error)) {
        return None;
    }
    let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
    Some((PromptFile { path, name }, None))
}

fn is_not_there(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_must_be_a_non_empty_text_file() {
        let root = tempfile::tempdir().unwrap();
        let read = |name: &str| PromptFile::at(root.path(), name).read().map_err(|error| error.to_string());
        fs::write(root.path().join("good.md"), "Be kind.\n").unwrap();
        fs::write(root.path().join("blank.md"), " \n\t\n").unwrap();
        fs::write(root.path().join("latin.md"), b"caf\xe9\n").unwrap();
        assert_eq!(read("good.md").unwrap(), "Be kind.\n");
        assert_eq!(read("blank.md").unwrap_err(), "the prompt blank.md is empty");
        assert_eq!(read("latin.md").unwrap_err(), "the prompt latin.md is not UTF-8 text");
        assert_eq!(read("none.md").unwrap_err(), "there is no prompt none.md");
        assert_eq!(read("good.md/none.md").unwrap_err(), "there is no prompt good.md/none.md");
        assert_eq!(read(".").unwrap_err(), "the prompt . is not a regular file");
    }
}
