//! Files of other programs, read as they are.
//!
//! Each becomes a layer of the configuration: TOML, every line of which knows the line it came from, so that settings
//! and mistakes are reported with their place in that file. Such a layer ranks between the person's file and the
//! repository's. What is wrong with a file is said in that file's own words.
//!
//! ```
//! use signoff_core::settings::foreign::{ForeignFormat, translate};
//!
//! let text = "defaults:\n  auto_review: true\n";
//! let format = ForeignFormat::detect("gza.yaml", text).unwrap();
//! let translated = translate(format, "gza.yaml", text)?;
//! assert_eq!(translated.layer.text(), "[defaults]\nauto_review = true\n");
//! # Ok::<(), signoff_core::settings::ConfigError>(())
//! ```

mod draft;
mod gza;
mod iterate;
mod json;
mod node;
mod slots;
mod yaml;

use super::{ConfigError, Layer, MAX_FILE_BYTES};

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignFormat {
    /// `gza.yaml`: `defaults` and `task_types`.
    Gza,
    /// TOML with `reviewEnabled` and the like. The same keys may stand at the top of `signoff.toml`.
    Slots,
    /// `iterate-config.json`: phases and their policies.
    Iterate,
}

impl ForeignFormat {
    /// What a file seems to be, by its name, else by how it begins.
    pub fn detect(name: &str, text: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("yaml" | "yml") => Some(Self::Gza),
            Some("toml") => Some(Self::Slots),
            Some("json") => Some(Self::Iterate),
            Some(_) | None => text.trim_start_matches(MARK).trim_start().starts_with('{').then_some(Self::Iterate),
        }
    }
}

/// What some editors put before a text.
const MARK: char = '\u{feff}';

/// A file as the caller read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignFile<'a> {
    /// As messages name it.
    pub name: &'a str,
    pub text: &'a str,
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranslatedFile {
    pub layer: Layer,
    /// What was left out or read in another way than it is written, for people.
    pub notes: Vec<String>,
    /// The file in the version of today, if it is of an older one.
    pub migrated: Option<String>,
}

/// Translates one file.
pub fn translate(format: ForeignFormat, file: &str, text: &str) -> Result<TranslatedFile, ConfigError> {
    let file = ForeignFile { name: file, text };
    match format {
        ForeignFormat::Gza => gza::translate(file.checked()?),
        ForeignFormat::Slots => slots::translate(file.checked()?),
        ForeignFormat::Iterate => merged(&[file]),
    }
}

/// Translates several [`ForeignFormat::Iterate`] files into one layer. Later ones win, key by key; only then do phases take from
/// `reviewDefaults` what none of the files sets for them.
pub fn merged(files: &[ForeignFile<'_>]) -> Result<TranslatedFile, ConfigError> {
    let files = files.iter().map(ForeignFile::checked).collect::<Result<Vec<_>, _>>()?;
    iterate::translate(&files)
}

/// A [`ForeignFormat::Iterate`] file in the version of today, if it is of an older one.
pub fn migrate(file: ForeignFile<'_>) -> Result<Option<String>, ConfigError> {
    iterate::migrate(file.checked()?)
}

impl<'a> ForeignFile<'a> {
    /// The same without what an editor put before it, if it can be a configuration at all.
    fn checked(&self) -> Result<Self, ConfigError> {
        let text = self.text.strip_prefix(MARK).unwrap_or(self.text);
        if text.len() > MAX_FILE_BYTES {
            let message = format!("the file has {} bytes: expected at most {MAX_FILE_BYTES}", text.len());
            return Err(self.error(1, message));
        }
        Ok(Self { text, ..*self })
    }

    fn error(&self, line: usize, message: impl Into<String>) -> ConfigError {
        ConfigError::File { file: self.name.to_owned(), line: line.max(1), message: message.into() }
    }
}
