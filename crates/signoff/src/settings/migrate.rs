//! Migrates old versions of other programs' configuration files when work begins.

use std::path::{Path, PathBuf};

use signoff_core::settings::foreign::{self, ForeignFile};

use crate::console::Console;
use crate::error::CliError;
use crate::host;
use crate::host::replace::Replacement;

/// Rewrites phase configuration files of an old version and keeps a backup of each. A file that cannot be rewritten is
/// still read as the new version.
pub fn migrate_files(root: &Path, console: &Console) {
    for (path, name) in super::iterate_files(Some(root)) {
        let Some((old, new)) = outdated(&path, &name) else { continue };
        match rewrite(&path, &old, &new) {
            Ok(None) => {}
            Ok(Some(backup)) => console.note(&format!(
                "{name} was migrated from version 1 to version 2; the old file is kept as {}",
                backup.strip_prefix(root).unwrap_or(&backup).display()
            )),
            Err(failure) => {
                console.note(&format!("warning: {name} has version 1 and is read as version 2: {}", failure.message()))
            }
        }
    }
}

/// Returns the old and the new text of a file that needs migration. Unreadable files are reported when settings load.
fn outdated(path: &Path, name: &str) -> Option<(String, String)> {
    let bytes = host::read_if_exists(path).ok()??;
    let text = String::from_utf8(bytes).ok()?;
    let new = foreign::migrate(ForeignFile { name, text: &text }).ok()??;
    Some((text, new))
}

/// Replaces the old text by the new one and returns the path of the backup. Does nothing if the file has changed since
/// it was read.
fn rewrite(path: &Path, old: &str, new: &str) -> Result<Option<PathBuf>, CliError> {
    let replacement = Replacement::begin(path)?;
    if host::read_if_exists(path)?.as_deref() != Some(old.as_bytes()) {
        return Ok(None);
    }
    let backup = host::copy_aside_as(path, ".v1.bak")?;
    replacement.write(new)?;
    Ok(backup)
}
