//! What an agent keeps of its session: a file with a JSON object a line, that it could have filled with anything.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::line::whole;

/// Longer lines hold nothing that is looked for.
const LONGEST: u64 = 4 * 1024 * 1024;

/// So much of the file is read.
const MOST: u64 = 512 * 1024 * 1024;

/// Whether it is a file. Anything else might never end.
pub fn is_one(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|file| file.is_file())
}

/// So many files are looked at; each agent that another started has one.
const FILES: usize = 256;

/// The files with a JSON object a line below a directory, at most so many levels down, by name.
pub fn below(directory: &Path, levels: usize) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut level = vec![directory.to_owned()];
    for _ in 0..levels {
        let entries = level.iter().filter_map(|path| fs::read_dir(path).ok()).flatten().flatten();
        let (inner, rest): (Vec<PathBuf>, Vec<PathBuf>) =
            entries.take(4 * FILES).map(|entry| entry.path()).partition(|path| is_directory(path));
        files.extend(
            rest.into_iter()
                .filter(|path| path.extension().is_some_and(|end| end == "jsonl") && is_one(path)),
        );
        level = inner;
    }
    files.sort();
    files.truncate(FILES);
    files
}

fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|entry| entry.is_dir())
}

/// Hands over each whole line, as far as the file can be read.
pub fn lines(path: &Path, mut take: impl FnMut(&[u8])) {
    // What cannot be read any more says nothing.
    read(path, &mut take).ok();
}

fn read(path: &Path, take: &mut impl FnMut(&[u8])) -> io::Result<()> {
    let mut reader = BufReader::new(File::open(path)?.take(MOST));
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.by_ref().take(LONGEST).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line.last() == Some(&b'\n') {
            take(&whole(&line));
        } else {
            reader.skip_until(b'\n')?;
        }
    }
}
