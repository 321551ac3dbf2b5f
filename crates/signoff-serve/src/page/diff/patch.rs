//! A unified patch as git prints it, read into files, hunks and lines.

/// What changed in one file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct File<'a> {
    /// Its path after the change; before it, where it is gone.
    pub path: String,
    pub change: Change,
    /// What it is, as git numbers that: `100755`. None where it is what it was and git does not say.
    pub mode: Option<&'a str>,
    /// What it was, where that changed.
    pub old_mode: Option<&'a str>,
    /// Nothing of it can be shown.
    pub is_binary: bool,
    pub hunks: Vec<Hunk<'a>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Change {
    #[default]
    Changed,
    Added,
    Deleted,
    Renamed {
        from: String,
    },
}

/// Some lines that stand together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk<'a> {
    /// What git names as the place: `fn login()`.
    pub within: &'a str,
    pub lines: Vec<Line<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    pub mark: Mark,
    pub old: Option<u32>,
    pub new: Option<u32>,
    pub text: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Kept,
    Added,
    Removed,
    /// `\ No newline at end of file`.
    Remark,
}

impl File<'_> {
    /// How many lines have this mark.
    pub fn count(&self, mark: Mark) -> usize {
        self.hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.mark == mark).count()
    }

    pub fn lines(&self) -> usize {
        self.hunks.iter().map(|hunk| hunk.lines.len()).sum()
    }

    /// Whether a line of the file as it is now can be seen.
    pub fn shows(&self, number: u32) -> bool {
        self.hunks.iter().flat_map(|hunk| &hunk.lines).any(|line| line.new == Some(number))
    }
}

/// Where the next lines of a hunk belong, and how many are still to come.
#[derive(Default)]
struct Position {
    old: u32,
    new: u32,
    old_left: u32,
    new_left: u32,
}

/// All files of a patch. What cannot be understood is left out.
pub fn read(patch: &str) -> Vec<File<'_>> {
    let mut files: Vec<File> = Vec::new();
    let mut at = Position::default();
    for line in patch.split('\n') {
        if at.old_left + at.new_left > 0 || line.starts_with('\\') {
            let hunk = files.last_mut().and_then(|file| file.hunks.last_mut());
            if let (Some(hunk), Some(line)) = (hunk, at.take(line)) {
                hunk.lines.push(line);
            }
        } else if let Some(named) = line.strip_prefix("diff --git ") {
            files.push(File { path: named_twice(named), ..File::default() });
        } else if let Some(file) = files.last_mut() {
            match hunk(line) {
                Some((position, within)) => {
                    at = position;
                    file.hunks.push(Hunk { within, lines: Vec::new() });
                }
                None => header(file, line),
            }
        }
    }
    files
}

impl Position {
    fn take<'a>(&mut self, line: &'a str) -> Option<Line<'a>> {
        let (mark, old, new) = match line.as_bytes().first() {
            Some(b'+') => (Mark::Added, false, true),
            Some(b'-') => (Mark::Removed, true, false),
            Some(b'\\') => (Mark::Remark, false, false),
            Some(b' ') | None => (Mark::Kept, true, true),
            Some(_) => {
                // No line of a hunk: the patch was cut off.
                *self = Self::default();
                return None;
            }
        };
        let text = line.get(1..).unwrap_or_default();
        let text = text.strip_suffix('\r').unwrap_or(text);
        let taken = Line { mark, old: old.then_some(self.old), new: new.then_some(self.new), text };
        self.old = self.old.saturating_add(u32::from(old));
        self.new = self.new.saturating_add(u32::from(new));
        self.old_left = self.old_left.saturating_sub(u32::from(old));
        self.new_left = self.new_left.saturating_sub(u32::from(new));
        Some(taken)
    }
}

/// `@@ -1,4 +1,6 @@ fn login()`.
fn hunk(line: &str) -> Option<(Position, &str)> {
    let (places, within) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = places.split_once(" +")?;
    let ((old, old_left), (new, new_left)) = (range(old)?, range(new)?);
    // Nobody has that many lines, and they are added up.
    let sane = |number: u32| number.min(u32::MAX / 4);
    let position = Position { old, new, old_left: sane(old_left), new_left: sane(new_left) };
    Some((position, within.trim()))
}

fn range(text: &str) -> Option<(u32, u32)> {
    match text.split_once(',') {
        Some((from, count)) => Some((from.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    }
}

fn header<'a>(file: &mut File<'a>, line: &'a str) {
    if let Some(mode) = line.strip_prefix("new file mode ") {
        (file.change, file.mode) = (Change::Added, Some(mode));
    } else if let Some(mode) = line.strip_prefix("deleted file mode ") {
        (file.change, file.mode) = (Change::Deleted, Some(mode));
    } else if let Some(mode) = line.strip_prefix("old mode ") {
        file.old_mode = Some(mode);
    } else if let Some(mode) = line.strip_prefix("new mode ") {
        file.mode = Some(mode);
    } else if let Some((_, mode)) = line.strip_prefix("index ").and_then(|rest| rest.split_once(' ')) {
        file.mode = Some(mode);
    } else if let Some(from) = line.strip_prefix("rename from ") {
        file.change = Change::Renamed { from: path(from) };
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

/// The path in `a/PATH b/PATH`, as long as it is twice the same.
fn named_twice(named: &str) -> String {
    let half = path(named.get(named.len() / 2 + 1..).unwrap_or(named));
    half.strip_prefix("b/").unwrap_or(&half).to_owned()
}

/// A path as git quotes it.
fn path(text: &str) -> String {
    let text = text.strip_suffix('\t').unwrap_or(text);
    let Some(quoted) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else {
        return text.to_owned();
    };
    let (mut bytes, mut rest) = (Vec::new(), quoted.as_bytes());
    while let Some((byte, after)) = unquoted(rest) {
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The first byte of a quoted text: as it is, `\n` or `\303`.
fn unquoted(text: &[u8]) -> Option<(u8, &[u8])> {
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
