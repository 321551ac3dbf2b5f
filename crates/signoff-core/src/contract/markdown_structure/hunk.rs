//! Diff hunks without a fence. Their context lines look like ordinary lines.

use std::ops::Range;

use super::covering;

/// The lines of diffs without a fence.
#[derive(Debug, Default)]
pub(super) struct Hunks {
    lines: Vec<Range<usize>>,
    /// Lines after a blank line in an incomplete hunk. They belong to the diff or to the review after it. They hold
    /// no verdict, but their list items are read.
    doubtful: Vec<Range<usize>>,
}

impl Hunks {
    pub fn parse(text: &str) -> Self {
        let mut hunks = Self::default();
        if !text.contains("@@") {
            return hunks;
        }
        let mut open: Option<DiffHunk> = None;
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let end = start + line.len();
            if let Some(next) = DiffHunk::parse_header(line) {
                hunks.close(open.replace(next));
            } else if !open.as_mut().is_some_and(|hunk| hunk.accept(line, start..end)) {
                hunks.close(open.take());
            }
            start = end;
        }
        hunks.close(open);
        hunks
    }

    fn close(&mut self, hunk: Option<DiffHunk>) {
        let Some(hunk) = hunk else { return };
        let complete = hunk.is_complete();
        let mut after_blank = false;
        for (range, blank) in hunk.lines {
            after_blank |= blank;
            if after_blank && !complete {
                self.doubtful.push(range.clone());
            }
            self.lines.push(range);
        }
    }

    pub fn covers(&self, offset: usize) -> bool {
        covering(&self.lines, offset).is_some()
    }

    pub fn is_doubtful(&self, offset: usize) -> bool {
        covering(&self.doubtful, offset).is_some()
    }
}

/// A partly parsed hunk.
struct DiffHunk {
    /// Number of sign columns, one for each file compared.
    columns: usize,
    /// Number of lines left of the old and the new file, if the header states them.
    left: Option<(u64, u64)>,
    lines: Vec<(Range<usize>, bool)>,
}

impl DiffHunk {
    /// Parses `@@ -1,4 +1,6 @@`, `@@@ -1,3 -1,3 +1,4 @@@`, and headers without numbers: `@@ … @@`, `@@ fn a() @@`.
    fn parse_header(line: &str) -> Option<Self> {
        let line = line.trim();
        let signs = line.bytes().take_while(|byte| *byte == b'@').count();
        if signs < 2 {
            return None;
        }
        let columns = signs - 1;
        let left = lengths(&line[signs..], columns);
        let spaced = line[signs..].is_empty() || line[signs..].starts_with(char::is_whitespace);
        spaced.then_some(Self { columns, left, lines: Vec::new() })
    }

    fn is_complete(&self) -> bool {
        self.left == Some((0, 0))
    }

    fn accept(&mut self, line: &str, range: Range<usize>) -> bool {
        let blank = line.trim().is_empty();
        let signs = line.as_bytes().get(..self.columns.min(line.trim_end_matches(['\r', '\n']).len()));
        let signs = signs.unwrap_or_default();
        let is_sign = |byte: &u8| matches!(byte, b' ' | b'\t' | b'+' | b'-');
        let remark = line.starts_with('\\');
        if self.is_complete() || !(blank || remark || signs.iter().all(is_sign)) {
            return false;
        }
        let removed = !blank && signs.contains(&b'-');
        let added = !blank && signs.contains(&b'+');
        if let Some((old, new)) = &mut self.left
            && !remark
        {
            *old = old.saturating_sub(u64::from(!added));
            *new = new.saturating_sub(u64::from(!removed));
        }
        self.lines.push((range, blank));
        true
    }
}

/// The line counts in the header. For a combined diff only that of the new file, because the old files differ.
fn lengths(head: &str, columns: usize) -> Option<(u64, u64)> {
    let mut words = head.split_whitespace();
    let mut old = 0;
    for _ in 0..columns {
        old = length(words.next()?.strip_prefix('-')?)?;
    }
    let new = length(words.next()?.strip_prefix('+')?)?;
    words.next()?.starts_with("@@").then_some((if columns == 1 { old } else { 0 }, new))
}

/// The length in `12,4`. A missing one is 1.
fn length(range: &str) -> Option<u64> {
    match range.split_once(',') {
        Some((_, length)) => length.parse().ok(),
        None => range.parse::<u64>().ok().map(|_| 1),
    }
}
