//! Reads an agent's session files, which contain a JSON object per line. An agent could have written anything
//! into them.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::json_line::sanitize;

/// Maximum length of a line. Longer lines are skipped.
const MAX_LINE: u64 = 4 * 1024 * 1024;

/// Maximum number of bytes read from a file.
const MAX_READ: u64 = 512 * 1024 * 1024;

/// Whether a path is a plain file. Reading anything else might never end.
pub fn is_plain_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|file| file.is_file())
}

/// Maximum number of files. Every sub-agent has one.
const MAX_FILES: usize = 256;

/// The `.jsonl` files below a directory, at most `levels` levels deep, sorted by name.
pub fn jsonl_files(directory: &Path, levels: usize) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut level = vec![directory.to_owned()];
    for _ in 0..levels {
        let entries = level.iter().filter_map(|path| fs::read_dir(path).ok()).flatten().flatten();
        let (inner, rest): (Vec<PathBuf>, Vec<PathBuf>) =
            entries.take(4 * MAX_FILES).map(|entry| entry.path()).partition(|path| is_directory(path));
        files.extend(
            rest.into_iter().filter(|path| path.extension().is_some_and(|end| end == "jsonl") && is_plain_file(path)),
        );
        level = inner;
    }
    files.sort();
    files.truncate(MAX_FILES);
    files
}

fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|entry| entry.is_dir())
}

/// Calls `take` for each complete line, up to the first read error.
pub fn for_each_line(path: &Path, mut take: impl FnMut(&[u8])) {
    // Lines after a read error are ignored.
    read_lines(path, &mut take).ok();
}

fn read_lines(path: &Path, take: &mut impl FnMut(&[u8])) -> io::Result<()> {
    let mut reader = BufReader::new(File::open(path)?.take(MAX_READ));
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line.last() == Some(&b'\n') {
            take(&sanitize(&line));
        } else {
            reader.skip_until(b'\n')?;
        }
    }
}
