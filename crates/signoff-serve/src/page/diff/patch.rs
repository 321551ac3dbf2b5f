//! Parses a unified diff, as git prints it, into files, hunks and lines.

use signoff_core::patch::{HunkPosition, PatchLineKind, PatchMark, PatchReader, unquote_path};

/// The changes of one file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PatchFile<'a> {
    /// The new path; the old one if the file was deleted.
    pub path: String,
    pub change: PatchChange,
    /// The git file mode, such as `100755`; `None` if git prints none.
    pub mode: Option<&'a str>,
    /// The previous mode, if it changed.
    pub old_mode: Option<&'a str>,
    /// Binary files have no hunks.
    pub is_binary: bool,
    pub hunks: Vec<PatchHunk<'a>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum PatchChange {
    #[default]
    Changed,
    Added,
    Deleted,
    Renamed {
        from: String,
    },
}

/// A group of adjacent lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchHunk<'a> {
    /// The context from git's hunk header: `fn login()`.
    pub context: &'a str,
    pub lines: Vec<PatchLine<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchLine<'a> {
    pub mark: PatchMark,
    pub old: Option<u32>,
    pub new: Option<u32>,
    pub text: &'a str,
}

impl<'a> PatchFile<'a> {
    /// Number of lines with this mark.
    pub fn count(&self, mark: PatchMark) -> usize {
        self.hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.mark == mark).count()
    }

    pub fn lines(&self) -> usize {
        self.hunks.iter().map(|hunk| hunk.lines.len()).sum()
    }

    /// Whether the diff shows this line of the new version.
    pub fn shows(&self, number: u32) -> bool {
        self.hunks.iter().flat_map(|hunk| &hunk.lines).any(|line| line.new == Some(number))
    }

    fn apply(&mut self, header: &str, text: &'a str) {
        match header {
            "new file mode " => (self.change, self.mode) = (PatchChange::Added, Some(text)),
            "deleted file mode " => (self.change, self.mode) = (PatchChange::Deleted, Some(text)),
            "old mode " => self.old_mode = Some(text),
            "new mode " => self.mode = Some(text),
            "index " => self.mode = text.split_once(' ').map(|(_, mode)| mode).or(self.mode),
            "rename from " => self.change = PatchChange::Renamed { from: unquote_path(text) },
            "rename to " => self.path = unquote_path(text),
            "Binary files " | "GIT binary patch" => self.is_binary = true,
            // `--- ` or `+++ `.
            _ => {
                let name = unquote_path(text);
                if let Some(name) = name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")) {
                    self.path = name.to_owned();
                }
            }
        }
    }
}

/// Parses a patch. Unknown lines are skipped.
pub fn parse(patch: &str) -> Vec<PatchFile<'_>> {
    let mut files: Vec<PatchFile> = Vec::new();
    let mut at = HunkPosition::default();
    for line in patch.split('\n') {
        let in_hunk = !at.is_complete() || line.starts_with('\\');
        let (kind, prefix) = PatchReader { in_hunk }.read(line.as_bytes());
        let text = &line[prefix..];
        match (kind, files.last_mut()) {
            (PatchLineKind::Content(mark), file) => {
                let (old, new) = at.advance(mark);
                let text = text.strip_suffix('\r').unwrap_or(text);
                if let Some(hunk) = file.and_then(|file| file.hunks.last_mut()) {
                    hunk.lines.push(PatchLine { mark, old, new, text });
                }
            }
            // Not a line of a hunk: the patch was cut off.
            (_, _) if in_hunk => at = HunkPosition::default(),
            (PatchLineKind::File, _) => files.push(PatchFile { path: named_twice(text), ..PatchFile::default() }),
            (PatchLineKind::Hunk, Some(file)) => {
                if let Some((position, context)) = HunkPosition::parse(line) {
                    at = position;
                    file.hunks.push(PatchHunk { context, lines: Vec::new() });
                }
            }
            (PatchLineKind::Header(header), Some(file)) => file.apply(header, text),
            (PatchLineKind::Hunk | PatchLineKind::Header(_), None) | (PatchLineKind::Other, _) => {}
        }
    }
    files
}

/// The path in `a/PATH b/PATH`, assuming both are the same.
fn named_twice(named: &str) -> String {
    let half = unquote_path(named.get(named.len() / 2 + 1..).unwrap_or(named));
    half.strip_prefix("b/").unwrap_or(&half).to_owned()
}
