//! Files of other programs that are of an old version are brought up to date, once, when work begins.

use std::path::{Path, PathBuf};

use signoff_core::config::foreign::{self, File};

use crate::console::Console;
use crate::door;
use crate::door::replace::Replacement;
use crate::failure::Failure;

/// Rewrites the files about phases that are of an old version, each beside a copy of what it was. What cannot be
/// rewritten stays as it is, and is read all the same.
pub fn renew(root: &Path, console: &Console) {
    for (path, name) in super::iterate_files(Some(root)) {
        let Some((old, new)) = outdated(&path, &name) else { continue };
        match rewrite(&path, &old, &new) {
            Ok(None) => {}
            Ok(Some(backup)) => console.note(&format!(
                "{name} was of version 1 and is now of version 2; as it was it is in {}",
                backup.strip_prefix(root).unwrap_or(&backup).display()
            )),
            Err(failure) => console.note(&format!(
                "warning: {name} is of version 1 and is read as version 2: {}",
                failure.message()
            )),
        }
    }
}

/// What stands in a file and what should, if that is not the same. A file that cannot be read is for others to refuse.
fn outdated(path: &Path, name: &str) -> Option<(String, String)> {
    let bytes = door::read_if_there(path).ok()??;
    let text = String::from_utf8(bytes).ok()?;
    let new = foreign::migrate(File { name, text: &text }).ok()??;
    Some((text, new))
}

/// Writes the new text in the place of the old one; gives where the old one is kept. Somebody else may have changed it
/// meanwhile: then there is nothing to do, or it is for the next time.
fn rewrite(path: &Path, old: &str, new: &str) -> Result<Option<PathBuf>, Failure> {
    let replacement = Replacement::begin(path)?;
    if door::read_if_there(path)?.as_deref() != Some(old.as_bytes()) {
        return Ok(None);
    }
    let backup = door::copy_aside_as(path, ".v1.bak")?;
    replacement.put(new)?;
    Ok(backup)
}
