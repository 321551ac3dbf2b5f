//! Reading a diff while git prints it, in bounded memory.

use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use signoff_core::hex::hex;
use signoff_core::prompt::LeftOutWhy;
use signoff_core::steering::steers;

use super::diff::{Diff, LeftOutFile};
use super::repository::path;

/// More text than this in one file's part of a diff is named and not shown.
const HUGE: usize = 200 * 1000;

/// More text than this in all is counted and not kept. No prompt carries a hundredth of it.
const KEPT: usize = 8 * 1000 * 1000;

/// Reads what `git diff -z --raw --no-abbrev --stat -p` prints.
pub(super) fn read(from: &mut impl BufRead) -> io::Result<Diff> {
    let mut diff = Diff::default();
    let changed = read_raw(from, &mut diff)?;
    diff.stat = read_stat(from)?;
    let mut patch = Patch { diff, text: Vec::new(), part: Part::default(), paths: changed.into_iter() };
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        patch.take(&line);
        line.clear();
    }
    Ok(patch.end())
}

/// The changed paths, one for each part of the patch that will follow.
fn read_raw(from: &mut impl BufRead, diff: &mut Diff) -> io::Result<Vec<PathBuf>> {
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
            diff.links.push(name.clone());
        }
        if !header.ends_with(b" D") && steers(&lossy(&name)).is_some() {
            diff.steering.push(lossy(&name));
        }
        // What became another kind of thing is taken away and made anew.
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

struct Patch {
    diff: Diff,
    text: Vec<u8>,
    part: Part,
    paths: std::vec::IntoIter<PathBuf>,
}

/// One file's part of the patch.
#[derive(Default)]
struct Part {
    path: PathBuf,
    text: Vec<u8>,
    bytes: usize,
    lines: usize,
    in_hunks: bool,
    binary: bool,
}

impl Patch {
    fn take(&mut self, line: &[u8]) {
        // Lines of content begin with a space, a plus, a minus or a backslash.
        if line.starts_with(b"diff --git ") {
            self.close_part();
            let named = self.paths.next();
            self.part.path = named.unwrap_or_else(|| path(line.trim_ascii_end()));
        }
        self.part.take(line);
    }

    fn close_part(&mut self) {
        let part = std::mem::take(&mut self.part);
        if let Some(why) = part.left_out() {
            self.diff.left_out.push(LeftOutFile { path: lossy(&part.path), why });
            return;
        }
        self.diff.lines += part.lines;
        if self.text.len() + part.text.len() <= KEPT && !self.diff.cut {
            self.text.extend(part.text);
        } else {
            self.diff.cut = true;
        }
    }

    fn end(mut self) -> Diff {
        self.close_part();
        self.diff.patch = String::from_utf8_lossy(&self.text).into_owned();
        self.diff
    }
}

impl Part {
    fn take(&mut self, line: &[u8]) {
        self.in_hunks |= line.starts_with(b"@@");
        self.binary |= !self.in_hunks && line.starts_with(b"Binary files ");
        self.bytes += line.len();
        self.lines += 1;
        if self.bytes <= HUGE {
            self.text.extend(line);
        } else {
            self.text = Vec::new();
        }
    }

    fn left_out(&self) -> Option<LeftOutWhy> {
        let bytes = u64::try_from(self.bytes).unwrap_or(u64::MAX);
        match (self.binary, self.bytes > HUGE) {
            (true, _) => Some(LeftOutWhy::Binary),
            (false, true) => Some(LeftOutWhy::Huge { bytes }),
            (false, false) => None,
        }
    }
}

pub(super) fn lossy(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
