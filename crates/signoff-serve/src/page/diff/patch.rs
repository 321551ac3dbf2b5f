//! Parses a unified diff, as git prints it, into files, hunks and lines.

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchMark {
    Kept,
    Added,
    Removed,
    /// `\ No newline at end of file`.
    Remark,
}

impl PatchFile<'_> {
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
}

/// The line numbers of the next line in a hunk, and how many lines are left.
#[derive(Default)]
struct HunkPosition {
    old: u32,
    new: u32,
    old_left: u32,
    new_left: u32,
}

/// Parses a patch. Unknown lines are skipped.
pub fn parse(patch: &str) -> Vec<PatchFile<'_>> {
    let mut files: Vec<PatchFile> = Vec::new();
    let mut at = HunkPosition::default();
    for line in patch.split('\n') {
        if at.old_left + at.new_left > 0 || line.starts_with('\\') {
            let hunk = files.last_mut().and_then(|file| file.hunks.last_mut());
            if let (Some(hunk), Some(line)) = (hunk, at.parse_line(line)) {
                hunk.lines.push(line);
            }
        } else if let Some(named) = line.strip_prefix("diff --git ") {
            files.push(PatchFile { path: named_twice(named), ..PatchFile::default() });
        } else if let Some(file) = files.last_mut() {
            match parse_hunk_header(line) {
                Some((position, within)) => {
                    at = position;
                    file.hunks.push(PatchHunk { context: within, lines: Vec::new() });
                }
                None => parse_file_header(file, line),
            }
        }
    }
    files
}

impl HunkPosition {
    fn parse_line<'a>(&mut self, line: &'a str) -> Option<PatchLine<'a>> {
        let (mark, old, new) = match line.as_bytes().first() {
            Some(b'+') => (PatchMark::Added, false, true),
            Some(b'-') => (PatchMark::Removed, true, false),
            Some(b'\\') => (PatchMark::Remark, false, false),
            Some(b' ') | None => (PatchMark::Kept, true, true),
            Some(_) => {
                // Not a line of a hunk: the patch was cut off.
                *self = Self::default();
                return None;
            }
        };
        let text = line.get(1..).unwrap_or_default();
        let text = text.strip_suffix('\r').unwrap_or(text);
        let taken = PatchLine { mark, old: old.then_some(self.old), new: new.then_some(self.new), text };
        self.old = self.old.saturating_add(u32::from(old));
        self.new = self.new.saturating_add(u32::from(new));
        self.old_left = self.old_left.saturating_sub(u32::from(old));
        self.new_left = self.new_left.saturating_sub(u32::from(new));
        Some(taken)
    }
}

/// `@@ -1,4 +1,6 @@ fn login()`.
fn parse_hunk_header(line: &str) -> Option<(HunkPosition, &str)> {
    let (places, within) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = places.split_once(" +")?;
    let ((old, old_left), (new, new_left)) = (parse_range(old)?, parse_range(new)?);
    // The counts are added up; cap them to avoid an overflow.
    let capped = |number: u32| number.min(u32::MAX / 4);
    let position = HunkPosition { old, new, old_left: capped(old_left), new_left: capped(new_left) };
    Some((position, within.trim()))
}

fn parse_range(text: &str) -> Option<(u32, u32)> {
    match text.split_once(',') {
        Some((from, count)) => Some((from.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    }
}

fn parse_file_header<'a>(file: &mut PatchFile<'a>, line: &'a str) {
    if let Some(mode) = line.strip_prefix("new file mode ") {
        (file.change, file.mode) = (PatchChange::Added, Some(mode));
    } else if let Some(mode) = line.strip_prefix("deleted file mode ") {
        (file.change, file.mode) = (PatchChange::Deleted, Some(mode));
    } else if let Some(mode) = line.strip_prefix("old mode ") {
        file.old_mode = Some(mode);
    } else if let Some(mode) = line.strip_prefix("new mode ") {
        file.mode = Some(mode);
    } else if let Some((_, mode)) = line.strip_prefix("index ").and_then(|rest| rest.split_once(' ')) {
        file.mode = Some(mode);
    } else if let Some(from) = line.strip_prefix("rename from ") {
        file.change = PatchChange::Renamed { from: path(from) };
    } else if let Some(to) = line.strip_prefix("rename to ") {
        file.path = path(to);
    } else if line.starts_with("Binary files ") || line.starts_with("GIT binary patch") {
        file.is_binary = true;
    } else if let Some(name) = line.strip_prefix("+++ ").or_else(|| line.strip_prefix("--- ")) {
        let name = path(name);
        if let Some(name) = name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")) {
            file.path = name.to_owned();
        }
    }
}

/// The path in `a/PATH b/PATH`, assuming both are the same.
fn named_twice(named: &str) -> String {
    let half = path(named.get(named.len() / 2 + 1..).unwrap_or(named));
    half.strip_prefix("b/").unwrap_or(&half).to_owned()
}

/// Unquotes a path that git may have quoted.
fn path(text: &str) -> String {
    let text = text.strip_suffix('\t').unwrap_or(text);
    let Some(quoted) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else {
        return text.to_owned();
    };
    let (mut bytes, mut rest) = (Vec::new(), quoted.as_bytes());
    while let Some((byte, after)) = unquote_byte(rest) {
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Decodes the first byte of a quoted text: literal, `\n` or `\303`.
fn unquote_byte(text: &[u8]) -> Option<(u8, &[u8])> {
    let (first, rest) = text.split_first()?;
    if *first != b'\\' {
        return Some((*first, rest));
    }
    let digits = rest.get(..3).filter(|digits| digits.iter().all(|digit| (b'0'..=b'7').contains(digit)));
    if let Some(digits) = digits {
        let value = digits.iter().fold(0_u8, |sum, digit| sum.wrapping_mul(8).wrapping_add(digit - b'0'));
        return Some((value, rest.get(3..).unwrap_or_default()));
    }
    let (escaped, rest) = rest.split_first()?;
    Some((
        if *escaped == b'n' {
            b'\n'
        } else if *escaped == b't' {
            b'\t'
        } else {
            *escaped
        },
        rest,
    ))
}
