//! Copies session files from an earlier attempt's home, so that the agent can resume its session.

use std::fs;
use std::io;
use std::path::Path;

/// Maximum depth of session files. It also bounds the recursion if an agent creates very deep directories.
const DEEPEST: usize = 8;

/// Copies these paths from one home to another. Errors are ignored: an agent without its session reports that, and
/// starts a new one.
pub fn copy_session_files(places: &[&str], from: &Path, to: &Path) {
    for place in places {
        copy(&from.join(place), &to.join(place), DEEPEST).ok();
    }
}

/// Copies files and directories, and skips links.
fn copy(from: &Path, to: &Path, deep: usize) -> io::Result<()> {
    let kind = fs::symlink_metadata(from)?.file_type();
    if kind.is_dir() && deep > 0 {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)?.flatten() {
            copy(&entry.path(), &to.join(entry.file_name()), deep - 1).ok();
        }
    } else if kind.is_file() {
        fs::create_dir_all(to.parent().unwrap_or(to))?;
        fs::copy(from, to)?;
    }
    Ok(())
}
