//! Parses a diff while git prints it, in bounded memory.

use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use signoff_core::hex::hex;
use signoff_core::prompt::LeftOutWhy;
use signoff_core::untrusted_config::classify;

use super::diff::{GitDiff, OmittedFile};
use super::repository::path;

/// A file whose part of the diff exceeds this size is listed but not shown.
const MAX_FILE_PATCH: usize = 200 * 1000;

/// Maximum size of the kept patch text. Prompts contain less than a hundredth of it.
const MAX_PATCH: usize = 8 * 1000 * 1000;

/// Parses the output of `git diff -z --raw --no-abbrev --stat -p`.
pub(super) fn read(from: &mut impl BufRead) -> io::Result<GitDiff> {
    let mut diff = GitDiff::default();
    let changed = read_raw(from, &mut diff)?;
    diff.stat = read_stat(from)?;
    let mut patch = DiffParser { diff, text: Vec::new(), part: FilePatch::default(), paths: changed.into_iter() };
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        patch.push_line(&line);
        line.clear();
    }
    Ok(patch.finish())
}

/// Reads the changed paths, one for each part of the following patch.
fn read_raw(from: &mut impl BufRead, diff: &mut GitDiff) -> io::Result<Vec<PathBuf>> {
    let mut digest = Sha256::new();
    let mut paths = Vec::new();
    while from.fill_buf()?.first() == Some(&b':') {
        let header = read_field(from, &mut digest)?;
        let mut name = read_field(from, &mut digest)?;
        if header.rsplit(|&byte| byte == b' ').next().is_some_and(|what| what.starts_with(b"R")) {
            name = read_field(from, &mut digest)?;
        }
        let name = path(&name);
        if header.get(8..14) == Some(b"160000") {
            diff.submodules.push(name.clone());
        }
        if !header.ends_with(b" D") && classify(&lossy(&name)).is_some() {
            diff.steering.push(lossy(&name));
        }
        // A changed file type appears in the patch as a deletion and an addition.
        if header.ends_with(b" T") {
            paths.push(name.clone());
        }
        paths.push(name);
        diff.files += 1;
    }
    diff.digest = hex(&digest.finalize());
    Ok(paths)
}

fn read_field(from: &mut impl BufRead, digest: &mut Sha256) -> io::Result<Vec<u8>> {
    let mut field = Vec::new();
    from.read_until(0, &mut field)?;
    digest.update(&field);
    field.pop();
    Ok(field)
}

fn read_stat(from: &mut impl BufRead) -> io::Result<String> {
    let mut stat = Vec::new();
    from.read_until(0, &mut stat)?;
    stat.pop_if(|byte| *byte == 0);
    Ok(String::from_utf8_lossy(&stat).into_owned())
}

/// State of the parser.
struct DiffParser {
    diff: GitDiff,
    text: Vec<u8>,
    part: FilePatch,
    paths: std::vec::IntoIter<PathBuf>,
}

/// One file's part of the patch.
#[derive(Default)]
struct FilePatch {
    path: PathBuf,
    text: Vec<u8>,
    bytes: usize,
    lines: usize,
    in_hunks: bool,
    binary: bool,
}

impl DiffParser {
    fn push_line(&mut self, line: &[u8]) {
        // Content lines begin with a space, a plus, a minus or a backslash.
        if line.starts_with(b"diff --git ") {
            self.finish_file();
            let named = self.paths.next();
            self.part.path = named.unwrap_or_else(|| path(line.trim_ascii_end()));
        }
        self.part.push_line(line);
    }

    fn finish_file(&mut self) {
        let part = std::mem::take(&mut self.part);
        if let Some(why) = part.omitted_reason() {
            self.diff.omitted.push(OmittedFile { path: lossy(&part.path), reason: why });
            return;
        }
        self.diff.lines += part.lines;
        if self.text.len() + part.text.len() <= MAX_PATCH && !self.diff.truncated {
            self.text.extend(part.text);
        } else {
            self.diff.truncated = true;
        }
    }

    fn finish(mut self) -> GitDiff {
        self.finish_file();
        self.diff.patch = String::from_utf8_lossy(&self.text).into_owned();
        self.diff
    }
}

impl FilePatch {
    fn push_line(&mut self, line: &[u8]) {
        self.in_hunks |= line.starts_with(b"@@");
        self.binary |= !self.in_hunks && line.starts_with(b"Binary files ");
        self.bytes += line.len();
        self.lines += 1;
        if self.bytes <= MAX_FILE_PATCH {
            self.text.extend(line);
        } else {
            self.text = Vec::new();
        }
    }

    fn omitted_reason(&self) -> Option<LeftOutWhy> {
        let bytes = u64::try_from(self.bytes).unwrap_or(u64::MAX);
        match (self.binary, self.bytes > MAX_FILE_PATCH) {
            (true, _) => Some(LeftOutWhy::Binary),
            (false, true) => Some(LeftOutWhy::Huge { bytes }),
            (false, false) => None,
        }
    }
}

pub(super) fn lossy(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
