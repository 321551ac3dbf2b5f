//! What an attempt takes over from the home of an earlier one, so that its agent finds its session there.

use std::fs;
use std::io;
use std::path::Path;

/// So deep does no agent put its sessions; and it could have made directories without end.
const DEEPEST: usize = 8;

/// Copies what lies at these places below one home into another. What cannot be copied is missing there: the agent says
/// that it does not know its session, and begins anew.
pub fn carry(places: &[&str], from: &Path, to: &Path) {
    for place in places {
        copy(&from.join(place), &to.join(place), DEEPEST).ok();
    }
}

/// Files and directories; links could lead anywhere.
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
