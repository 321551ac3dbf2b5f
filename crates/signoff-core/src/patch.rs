//! Parses a unified diff, as git prints it: line by line, and into its files.

use std::iter;

/// What a line of a patch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchLineKind {
    /// `diff --git a/PATH b/PATH`.
    File,
    /// A line between the name of a file and its hunks, with the one of `HEADERS` that it starts with.
    Header(&'static str),
    /// `@@ -1,4 +1,6 @@ fn login()`.
    Hunk,
    Content(PatchMark),
    Other,
}

/// What the first character of a line in a hunk says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchMark {
    Kept,
    Added,
    Removed,
    /// `\ No newline at end of file`.
    Remark,
}

#[rustfmt::skip]
const HEADERS: [&str; 11] = [
    "index ", "old mode ", "new mode ", "new file mode ", "deleted file mode ", "rename from ", "rename to ",
    "--- ", "+++ ", "Binary files ", "GIT binary patch",
];

/// Reads a patch line by line. A hunk continues until the next file: its content may look like a header.
#[derive(Debug, Default)]
pub struct PatchReader {
    pub in_hunk: bool,
}

impl PatchReader {
    /// The kind of the next line, and the length of the prefix before its text.
    pub fn read(&mut self, line: &[u8]) -> (PatchLineKind, usize) {
        let file = "diff --git ";
        if line.starts_with(file.as_bytes()) {
            self.in_hunk = false;
            return (PatchLineKind::File, file.len());
        }
        if line.starts_with(b"@@ ") {
            self.in_hunk = true;
            return (PatchLineKind::Hunk, 0);
        }
        if !self.in_hunk {
            let header = HEADERS.iter().find(|header| line.starts_with(header.as_bytes()));
            return header.map_or((PatchLineKind::Other, 0), |header| (PatchLineKind::Header(header), header.len()));
        }
        let mark = match line.first() {
            Some(b'+') => PatchMark::Added,
            Some(b'-') => PatchMark::Removed,
            Some(b' ') | None => PatchMark::Kept,
            Some(b'\\') => PatchMark::Remark,
            Some(_) => return (PatchLineKind::Other, 0),
        };
        (PatchLineKind::Content(mark), line.len().min(1))
    }
}

/// The line numbers of the next line in a hunk, and how many lines are left.
#[derive(Debug, Default)]
pub struct HunkPosition {
    old: u32,
    new: u32,
    old_left: u32,
    new_left: u32,
}

impl HunkPosition {
    /// Parses `@@ -1,4 +1,6 @@ fn login()` into the position and the context.
    pub fn parse(line: &str) -> Option<(Self, &str)> {
        let (places, context) = line.strip_prefix("@@ -")?.split_once(" @@")?;
        let (old, new) = places.split_once(" +")?;
        let ((old, old_left), (new, new_left)) = (parse_range(old)?, parse_range(new)?);
        // The counts are added up; cap them to avoid an overflow.
        let capped = |number: u32| number.min(u32::MAX / 4);
        Some((Self { old, new, old_left: capped(old_left), new_left: capped(new_left) }, context.trim()))
    }

    pub fn is_complete(&self) -> bool {
        self.old_left + self.new_left == 0
    }

    /// The numbers of the next line in the old and the new file.
    pub fn advance(&mut self, mark: PatchMark) -> (Option<u32>, Option<u32>) {
        let old = matches!(mark, PatchMark::Kept | PatchMark::Removed);
        let new = matches!(mark, PatchMark::Kept | PatchMark::Added);
        let numbers = (old.then_some(self.old), new.then_some(self.new));
        self.old = self.old.saturating_add(u32::from(old));
        self.new = self.new.saturating_add(u32::from(new));
        self.old_left = self.old_left.saturating_sub(u32::from(old));
        self.new_left = self.new_left.saturating_sub(u32::from(new));
        numbers
    }
}

/// Parses `12,4`: a start and a length, which is 1 if it is missing.
pub(crate) fn parse_range(text: &str) -> Option<(u32, u32)> {
    let (from, count) = text.split_once(',').unwrap_or((text, "1"));
    Some((from.parse().ok()?, count.parse().ok()?))
}

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
    /// The lines between the name and the hunks that say more than the name: `new file mode 100755`.
    pub headers: Vec<&'a str>,
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
    /// `@@ -1,4 +1,6 @@ fn login()`.
    pub header: &'a str,
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
    /// Parses a patch. Unknown lines are skipped.
    pub fn parse_all(patch: &'a str) -> Vec<Self> {
        let mut files: Vec<Self> = Vec::new();
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
                (PatchLineKind::File, _) => files.push(Self { path: path_of_pair(text), ..Self::default() }),
                (PatchLineKind::Hunk, Some(file)) => {
                    if let Some((position, context)) = HunkPosition::parse(line) {
                        at = position;
                        file.hunks.push(PatchHunk { header: line, context, lines: Vec::new() });
                    }
                }
                (PatchLineKind::Header(header), Some(file)) => {
                    file.headers.extend((!matches!(header, "index " | "--- " | "+++ ")).then_some(line));
                    file.apply(header, text);
                }
                (PatchLineKind::Hunk | PatchLineKind::Header(_), None) | (PatchLineKind::Other, _) => {}
            }
        }
        files
    }

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

/// The path in `a/PATH b/PATH`, assuming both are the same.
fn path_of_pair(named: &str) -> String {
    let half = unquote_path(named.get(named.len() / 2 + 1..).unwrap_or(named));
    half.strip_prefix("b/").unwrap_or(&half).to_owned()
}

/// Unquotes a path that git may have quoted.
pub fn unquote_path(text: &str) -> String {
    let text = text.strip_suffix('\t').unwrap_or(text);
    let Some(quoted) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else {
        return text.to_owned();
    };
    let mut rest = quoted.as_bytes();
    let bytes: Vec<u8> = iter::from_fn(|| unquote_byte(&mut rest)).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Takes and decodes the first byte of a quoted text: literal, `\n` or `\303`.
fn unquote_byte(text: &mut &[u8]) -> Option<u8> {
    let (byte, rest) = match *text {
        [] | [b'\\'] => return None,
        [b'\\', a @ b'0'..=b'7', b @ b'0'..=b'7', c @ b'0'..=b'7', rest @ ..] => {
            ([a, b, c].iter().fold(0_u8, |sum, digit| sum.wrapping_mul(8).wrapping_add(*digit - b'0')), rest)
        }
        [b'\\', b'n', rest @ ..] => (b'\n', rest),
        [b'\\', b't', rest @ ..] => (b'\t', rest),
        [b'\\', byte, rest @ ..] | [byte, rest @ ..] => (*byte, rest),
    };
    *text = rest;
    Some(byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_no_header() {
        let patch = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a/x\n+++ b/x\n\n\\ No newline\nindex 1\ndiff --git a/y b/y\nindex 1";
        let mut reader = PatchReader::default();
        let kinds = patch.split('\n').map(|line| format!("{:?}", reader.read(line.as_bytes())));
        insta::assert_snapshot!(kinds.collect::<Vec<_>>().join("\n"), @r#"
        (Header("--- "), 4)
        (Header("+++ "), 4)
        (Hunk, 0)
        (Content(Removed), 1)
        (Content(Added), 1)
        (Content(Kept), 0)
        (Content(Remark), 1)
        (Other, 0)
        (File, 11)
        (Header("index "), 6)
        "#);
    }
}
