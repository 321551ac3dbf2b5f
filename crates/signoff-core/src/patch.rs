//! Reads a unified diff, as git prints it, line by line.

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

fn parse_range(text: &str) -> Option<(u32, u32)> {
    let (from, count) = text.split_once(',').unwrap_or((text, "1"));
    Some((from.parse().ok()?, count.parse().ok()?))
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
