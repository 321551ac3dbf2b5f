//! The TOML that a foreign file becomes, line by line.

use super::super::Layer;
use super::super::layer::FileLine;
use super::ForeignFile;

/// Lines with the places they come from.
#[derive(Debug, Default)]
pub struct TomlDraft {
    lines: Vec<(String, FileLine)>,
}

impl TomlDraft {
    /// Begins a table.
    pub fn table(&mut self, name: &str, spot: FileLine) {
        if !self.lines.is_empty() {
            self.lines.push((String::new(), spot.clone()));
        }
        self.lines.push((format!("[{name}]"), spot));
    }

    /// Sets a key to a value as TOML writes it.
    pub fn set(&mut self, key: &str, value: &str, spot: FileLine) {
        self.lines.push((format!("{key} = {value}"), spot));
    }

    pub fn layer(self, file: &str) -> Layer {
        Layer::foreign(file, self.lines)
    }
}

impl ForeignFile<'_> {
    pub(super) fn spot(&self, line: usize) -> FileLine {
        FileLine { file: self.name.to_owned(), line }
    }
}

/// A text as TOML writes it, in one line: JSON's way to write it is one of TOML's.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
