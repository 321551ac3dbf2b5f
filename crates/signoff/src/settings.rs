//! Loads the settings: the user's file, files of other programs, the repository's file and the environment. Migrates
//! old versions of other programs' files when work begins.

use std::path::{Path, PathBuf};

use signoff_core::settings::foreign::{self, ForeignFile, ForeignFormat};
use signoff_core::settings::{self, ConfigError, Layer, SettingOrigin, SettingRow, Settings};

use crate::host::{self, replace::Replacement};
use crate::{Console, Result, project};

/// The repository's configuration file, at its root.
pub const FILE: &str = "signoff.toml";

/// The configuration file of gza, at the repository's root.
const GZA: &str = "gza.yaml";

/// The phase configuration at the repository's root, and the one in the user's home that it overrides.
const ITERATE: &str = ".claude/iterate-config.local.json";
const ITERATE_AT_HOME: &str = ".claude/iterate-config.json";

/// Loads the settings of a repository, or those that apply outside of one.
pub fn load(root: Option<&Path>) -> Result<Settings> {
    Ok(read(root, None)??)
}

/// Loads the settings as if `file` had this text. The inner error is an error in the configuration.
pub fn load_as_if(root: &Path, file: &Path, text: &str) -> Result<Result<Settings, ConfigError>> {
    read(Some(root), Some(FileOverride { path: file, text }))
}

/// Text to use in place of a file's contents.
#[derive(Clone, Copy)]
struct FileOverride<'a> {
    path: &'a Path,
    text: &'a str,
}

fn read(root: Option<&Path>, file_override: Option<FileOverride<'_>>) -> Result<Result<Settings, ConfigError>> {
    let text = |path: &Path, name: &str| match file_override.filter(|file| file.path == path) {
        Some(FileOverride { text, .. }) => Ok(Some(text.to_owned())),
        None => text(path, name),
    };
    let mut layers = Vec::new();
    if let Some((path, name)) = user_file() {
        layers.extend(text(&path, &name)?.map(|text| Layer::person(name, text)));
    }
    layers.extend(foreign_layers(root)?);
    if let Some(root) = root {
        layers.extend(text(&root.join(FILE), FILE)?.map(|text| Layer::repository(FILE, text)));
    }
    let settings = settings::read(&layers, &host::signoff_variables(), &[]);
    Ok(settings.and_then(|settings| settings.check_store().map(|()| settings)))
}

/// The directory whose settings apply: the main checkout, also from a linked worktree; outside of a repository the
/// working directory.
pub fn directory() -> Result<PathBuf> {
    project::main_checkout()?.map_or_else(host::current_directory, Ok)
}

/// Reads the files of other programs and translates them into layers.
fn foreign_layers(root: Option<&Path>) -> Result<Vec<Layer>> {
    let mut layers = Vec::new();
    if let Some(root) = root
        && let Some(text) = text(&root.join(GZA), GZA)?
    {
        layers.push(foreign::translate(ForeignFormat::Gza, GZA, &text)?.layer);
    }
    let mut found = Vec::new();
    for (path, name) in iterate_files(root) {
        found.extend(text(&path, &name)?.map(|text| (name, text)));
    }
    let files: Vec<_> = found.iter().map(|(name, text)| ForeignFile { name, text }).collect();
    if !files.is_empty() {
        layers.push(foreign::merged(&files)?.layer);
    }
    Ok(layers)
}

/// Returns the names of the files of other programs in a repository, and the settings they contain.
pub fn foreign_settings(root: &Path) -> Result<(Vec<String>, Vec<SettingRow>)> {
    let mut found = Vec::new();
    for (path, name) in [(root.join(GZA), GZA.to_owned())].into_iter().chain(iterate_files(Some(root))) {
        found.extend(text(&path, &name)?.map(|_| name));
    }
    let mut rows = settings::read(&foreign_layers(Some(root))?, &[], &[])?.origins();
    rows.retain(|row| matches!(row.origin, SettingOrigin::Foreign { .. }));
    Ok((found, rows))
}

/// The phase configuration files with their display names; later files take precedence.
fn iterate_files(root: Option<&Path>) -> Vec<(PathBuf, String)> {
    let at_home = home().map(|home| (home.join(ITERATE_AT_HOME), format!("~/{ITERATE_AT_HOME}")));
    let here = root.map(|root| (root.join(ITERATE), ITERATE.to_owned()));
    at_home.into_iter().chain(here).collect()
}

/// Reads a text file, or returns `None` if it does not exist.
pub fn text(path: &Path, name: &str) -> Result<Option<String>> {
    let Some(bytes) = host::read_if_exists(path)? else { return Ok(None) };
    Ok(Some(host::utf8(name, &bytes)?.to_owned()))
}

/// The user's configuration file with its display name.
pub fn user_file() -> Option<(PathBuf, String)> {
    let end = Path::new("signoff").join("config.toml");
    let configured = host::variable("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(path) = configured.map(|directory| directory.join(&end)) {
        let name = path.display().to_string();
        return Some((path, name));
    }
    Some((home()?.join(".config").join(&end), "~/.config/signoff/config.toml".to_owned()))
}

/// The user's home directory.
pub fn home() -> Option<PathBuf> {
    host::variable("HOME").or_else(|| host::variable("USERPROFILE")).map(PathBuf::from)
}

/// Rewrites phase configuration files of an old version and keeps a backup of each. A file that cannot be rewritten is
/// still read as the new version.
pub fn migrate_files(root: &Path, console: &Console) {
    for (path, name) in iterate_files(Some(root)) {
        let Some((old, new)) = outdated(&path, &name) else { continue };
        match rewrite(&path, &old, &new) {
            Ok(None) => {}
            Ok(Some(backup)) => console.note(&format!(
                "{name} was migrated from version 1 to version 2; the old file is kept as {}",
                backup.strip_prefix(root).unwrap_or(&backup).display()
            )),
            Err(failure) => {
                console.note(&format!("warning: {name} has version 1 and is read as version 2: {}", failure.message))
            }
        }
    }
}

/// Returns the old and the new text of a file that needs migration. Unreadable files are reported when settings load.
fn outdated(path: &Path, name: &str) -> Option<(String, String)> {
    let bytes = host::read_if_exists(path).ok()??;
    let text = String::from_utf8(bytes).ok()?;
    let new = foreign::merged(&[ForeignFile { name, text: &text }]).ok()?.migrated?;
    Some((text, new))
}

/// Replaces the old text by the new one and returns the path of the backup. Does nothing if the file has changed since
/// it was read.
fn rewrite(path: &Path, old: &str, new: &str) -> Result<Option<PathBuf>> {
    let replacement = Replacement::begin(path)?;
    if host::read_if_exists(path)?.as_deref() != Some(old.as_bytes()) {
        return Ok(None);
    }
    let backup = host::copy_to_backup(path, ".v1.bak")?;
    replacement.write(new)?;
    Ok(backup)
}
