//! The configuration as it lies on this machine: the person's file, those of other programs, the repository's, the
//! environment.

mod renew;

use std::path::{Path, PathBuf};

use signoff_core::config::foreign::{self, File, Format};
use signoff_core::config::{self, ConfigError, Flag, Layer, Origin, Row, Settings};

use crate::failure::Failure;
use crate::{desk, door};

pub use renew::renew;

/// The repository's file, at its root.
pub const FILE: &str = "signoff.toml";

/// A file of another program, at the repository's root.
const GZA: &str = "gza.yaml";

/// The file about phases, at the repository's root; and the one in the person's home, over which it is laid.
const ITERATE: &str = ".claude/iterate-config.local.json";
const ITERATE_AT_HOME: &str = ".claude/iterate-config.json";

/// Reads what holds in a repository, or outside of any.
pub fn load(root: Option<&Path>) -> Result<Settings, Failure> {
    load_with(root, &[])
}

/// The same, under flags of the command line.
pub fn load_with(root: Option<&Path>, flags: &[Flag]) -> Result<Settings, Failure> {
    Ok(read(root, flags, None)??)
}

/// What would hold if a file had this text, or what is wrong with that.
pub fn load_as_if(root: &Path, file: &Path, text: &str) -> Result<Result<Settings, ConfigError>, Failure> {
    read(Some(root), &[], Some((file, text)))
}

fn read(
    root: Option<&Path>,
    flags: &[Flag],
    instead: Option<(&Path, &str)>,
) -> Result<Result<Settings, ConfigError>, Failure> {
    let text = |path: &Path, name: &str| match instead.filter(|(file, _)| *file == path) {
        Some((_, text)) => Ok(Some(text.to_owned())),
        None => text(path, name),
    };
    let mut layers = Vec::new();
    if let Some((path, name)) = persons_file() {
        layers.extend(text(&path, &name)?.map(|text| Layer::person(name, text)));
    }
    layers.extend(foreign_layers(root)?);
    if let Some(root) = root {
        layers.extend(text(&root.join(FILE), FILE)?.map(|text| Layer::repository(FILE, text)));
    }
    let settings = config::read(&layers, &door::own_variables(), flags);
    Ok(settings.and_then(|settings| settings.check_store().map(|()| settings)))
}

/// The directory whose settings hold here: the main checkout, also in another worktree of it; outside of a repository the
/// current directory.
pub fn place() -> Result<PathBuf, Failure> {
    desk::main_checkout()?.map_or_else(door::current_directory, Ok)
}

/// What files of other programs say, which are read as they are.
fn foreign_layers(root: Option<&Path>) -> Result<Vec<Layer>, Failure> {
    let mut layers = Vec::new();
    if let Some(root) = root
        && let Some(text) = text(&root.join(GZA), GZA)?
    {
        layers.push(foreign::translate(Format::Gza, GZA, &text)?.layer);
    }
    let mut found = Vec::new();
    for (path, name) in iterate_files(root) {
        found.extend(text(&path, &name)?.map(|text| (name, text)));
    }
    let files: Vec<_> = found.iter().map(|(name, text)| File { name, text }).collect();
    if !files.is_empty() {
        layers.push(foreign::merged(&files)?.layer);
    }
    Ok(layers)
}

/// The files of other programs that are read in a repository, and what they set.
pub fn of_other_programs(root: &Path) -> Result<(Vec<String>, Vec<Row>), Failure> {
    let mut found = Vec::new();
    for (path, name) in [(root.join(GZA), GZA.to_owned())].into_iter().chain(iterate_files(Some(root))) {
        found.extend(text(&path, &name)?.map(|_| name));
    }
    let mut rows = config::read(&foreign_layers(Some(root))?, &[], &[])?.origins();
    rows.retain(|row| matches!(row.origin, Origin::Foreign { .. }));
    Ok((found, rows))
}

/// The files about phases, and how people write their names; the one that counts more comes last.
fn iterate_files(root: Option<&Path>) -> Vec<(PathBuf, String)> {
    let at_home = home().map(|home| (home.join(ITERATE_AT_HOME), format!("~/{ITERATE_AT_HOME}")));
    let here = root.map(|root| (root.join(ITERATE), ITERATE.to_owned()));
    at_home.into_iter().chain(here).collect()
}

/// The text of a file that need not be there.
pub fn text(path: &Path, name: &str) -> Result<Option<String>, Failure> {
    let Some(bytes) = door::read_if_there(path)? else { return Ok(None) };
    Ok(Some(door::utf8(name, &bytes)?.to_owned()))
}

/// The person's file, and how people write its name.
pub fn persons_file() -> Option<(PathBuf, String)> {
    let end = Path::new("signoff").join("config.toml");
    let configured = door::variable("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(path) = configured.map(|directory| directory.join(&end)) {
        let name = path.display().to_string();
        return Some((path, name));
    }
    Some((home()?.join(".config").join(&end), "~/.config/signoff/config.toml".to_owned()))
}

/// The person's home.
pub fn home() -> Option<PathBuf> {
    door::variable("HOME").or_else(|| door::variable("USERPROFILE")).map(PathBuf::from)
}
