//! A prompt in the making: pieces, each one a section, put together in order.

use crate::prompt::material::one_line;
use crate::prompt::text;

#[derive(Default)]
pub(super) struct Pieces(Vec<String>);

impl Pieces {
    /// Starts with a person's own words if there are any, else with ours.
    pub fn opening(own: Option<&str>, built_in: impl Into<String>) -> Self {
        Self(vec![own.map_or_else(|| built_in.into(), |text| text.trim_end().to_owned())])
    }

    pub fn add(&mut self, piece: impl Into<String>) {
        self.0.push(piece.into());
    }

    pub fn add_some(&mut self, piece: Option<String>) {
        self.0.extend(piece);
    }

    /// One blank line between pieces, one line end after the last.
    pub fn prompt(self) -> String {
        let pieces: Vec<String> = self.0.into_iter().filter(|piece| !piece.trim().is_empty()).collect();
        pieces.join("\n\n") + "\n"
    }
}

/// That these files are to be read first; nothing where there are none. Agents do not read them by themselves.
pub(super) fn project_instructions(files: &[&str]) -> Option<String> {
    let named: Vec<String> = files.iter().map(|file| format!("`{}`", one_line(file))).collect();
    (!named.is_empty()).then(|| text::ProjectInstructions { files: &named.join(", ") }.fill())
}

/// Paths, one on each line.
pub(super) fn paths(files: &[&str]) -> String {
    files.iter().map(|file| one_line(file)).collect::<Vec<_>>().join("\n")
}
