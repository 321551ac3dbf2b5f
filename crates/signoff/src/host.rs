//! Host access: command line, environment, clock and files. No other module of this crate uses them directly.

pub mod replace;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use signoff_core::view;
use signoff_engine::remove_tree;

use crate::console::read_at_most;
use crate::{CliError, Result};

/// Maximum size of an input file. The longest valid answer stays below it even if every byte is escaped.
pub const FILE_LIMIT: usize = 100 * 1000 * 1000;

/// The command-line arguments, starting with the program's name.
pub fn arguments() -> Vec<OsString> {
    std::env::args_os().collect()
}

/// The path of the running executable.
pub fn program() -> Result<PathBuf> {
    std::env::current_exe()
        .map_err(|error| CliError::failed(format!("cannot find the path of the signoff program: {error}")))
}

/// All environment variables of this process.
pub fn environment() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

/// The user's name, recorded with their decisions.
pub fn user_name() -> String {
    let named = ["SIGNOFF_USER", "USER", "LOGNAME"].into_iter().find_map(variable);
    named
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "a person".to_owned())
}

/// Creates a new temporary directory that only the current user can read.
pub fn temporary_directory(purpose: &str) -> Result<PathBuf> {
    let failed = |path: &Path, error| CliError::failed(format!("cannot create {}: {error}", path.display()));
    let temp_root = std::env::temp_dir();
    let temp_root = temp_root.canonicalize().map_err(|error| failed(&temp_root, error))?;
    let (process, time) = (std::process::id(), now().as_nanosecond());
    let path = temp_root.join(format!("signoff-{purpose}-{process}-{time}"));
    fs::DirBuilder::new().mode(0o700).create(&path).map_err(|error| failed(&path, error))?;
    Ok(path)
}

/// A temporary directory that is removed on drop.
#[derive(Debug)]
pub struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    pub fn new(purpose: &str) -> Result<Self> {
        temporary_directory(purpose).map(Self)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // The system cleans up what cannot be removed here.
        remove_tree::remove(&self.0).ok();
    }
}

/// Sleeps 100 ms, to poll another process.
#[expect(clippy::disallowed_methods, reason = "waiting for another process, in one place")]
pub fn sleep_briefly() {
    std::thread::sleep(std::time::Duration::from_millis(100));
}

/// Sleeps while a replay is shown.
#[expect(clippy::disallowed_methods, reason = "a replay shows how long each step took")]
pub fn sleep(time: std::time::Duration) {
    std::thread::sleep(time);
}

/// The current time.
#[expect(clippy::disallowed_methods, reason = "the only place that reads the clock")]
pub fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// Reads a whole file of at most `FILE_LIMIT` bytes.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let name = path.display().to_string();
    let bytes = File::open(path).and_then(|mut file| read_at_most(&mut file, FILE_LIMIT)).map_err(|error| {
        CliError::usage(format!("cannot read {name}: {error}")).at(&name).hint("check the path and its permissions")
    })?;
    if bytes.len() > FILE_LIMIT {
        return Err(CliError::usage(format!("{name} is larger than {} MB", FILE_LIMIT / 1_000_000))
            .at(&name)
            .hint("name a smaller file"));
    }
    Ok(bytes)
}

/// Reads a text file.
pub fn read_text(path: &Path) -> Result<String> {
    utf8(&path.display().to_string(), &read(path)?).map(str::to_owned)
}

/// Decodes the bytes of a file as UTF-8.
pub fn utf8<'a>(name: &str, bytes: &'a [u8]) -> Result<&'a str> {
    std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes.iter().take(error.valid_up_to()).filter(|&&byte| byte == b'\n').count() + 1;
        CliError::usage(format!("{name} is not UTF-8 text")).at(format!("{name}:{line}")).hint("save it as UTF-8")
    })
}

/// Reads a file, or returns `None` if it does not exist.
pub fn read_if_exists(path: &Path) -> Result<Option<Vec<u8>>> {
    match path.symlink_metadata() {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        // Reading a pipe without a writer would block forever.
        Ok(_) if path.metadata().is_ok_and(|found| !found.is_file()) => {
            let failure = CliError::usage(format!("{} is not a regular file", path.display()));
            Err(failure.at(path.display().to_string()).hint("replace it with a text file, or remove it"))
        }
        Ok(_) | Err(_) => read(path).map(Some),
    }
}

/// Creates a file and its parent directory. Returns false if the file exists.
pub fn write_new(path: &Path, text: &str) -> Result<bool> {
    let failed = |error| CliError::failed(format!("cannot write {}: {error}", path.display()));
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    match File::create_new(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).map(|()| true).map_err(failed),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(failed(error)),
    }
}

/// Renames a file to an unused backup name beside it. Returns `None` if the file does not exist.
pub fn back_up(path: &Path) -> Result<Option<PathBuf>> {
    let Some(backup) = backup_name(path, ".bak")? else { return Ok(None) };
    fs::rename(path, &backup)
        .map_err(|error| CliError::failed(format!("cannot rename {} to a backup: {error}", path.display())))?;
    Ok(Some(backup))
}

/// Copies a file to an unused backup name beside it, with this suffix. Returns `None` if the file does not exist.
pub fn copy_to_backup(path: &Path, suffix: &str) -> Result<Option<PathBuf>> {
    let Some(backup) = backup_name(path, suffix)? else { return Ok(None) };
    fs::copy(path, &backup)
        .map_err(|error| CliError::failed(format!("cannot copy {} to a backup: {error}", path.display())))?;
    Ok(Some(backup))
}

fn backup_name(path: &Path, suffix: &str) -> Result<Option<PathBuf>> {
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let free = |number: usize| {
        let mut name = path.as_os_str().to_owned();
        name.push(if number == 1 { suffix.to_owned() } else { format!("{suffix}{number}") });
        Some(PathBuf::from(name)).filter(|backup| backup.symlink_metadata().is_err())
    };
    let backup = (1..1000).find_map(free).ok_or_else(|| {
        CliError::failed(format!("{} has too many backups", path.display())).hint("remove some of them")
    })?;
    Ok(Some(backup))
}

/// Returns an environment variable unless it is empty.
#[expect(clippy::disallowed_methods, reason = "the only place that reads the environment")]
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns a number that a test set in the environment. Always `None` in release builds.
pub fn test_number(name: &str) -> Option<u64> {
    if !cfg!(debug_assertions) {
        return None;
    }
    variable(name).and_then(|value| value.to_str()?.parse().ok())
}

/// Returns a string that a test set in the environment. Always `None` in release builds.
pub fn test_string(name: &str) -> Option<String> {
    variable(name).filter(|_| cfg!(debug_assertions)).and_then(|value| value.into_string().ok())
}

/// Panics if a test asks for it at this place.
pub fn panic_for_test(point: &str) {
    let requested = test_string("SIGNOFF_TEST_PANIC").is_some_and(|requested| requested == point);
    assert!(!requested, "panic requested by a test");
}

/// Writes how often this process applied each event, if a test asks for it: run, sequence number and count per line.
pub fn write_applied_events() {
    if let Some(file) = test_string("SIGNOFF_TEST_APPLIED") {
        // Without the file the test fails.
        let line = |((run, seq), count)| format!("{} {seq} {count}\n", run);
        fs::write(file, view::applied_events().into_iter().map(line).collect::<String>()).ok();
    }
}

/// Checks that a port on the loopback interface can be bound.
pub fn check_loopback() -> std::io::Result<()> {
    let address = test_string("SIGNOFF_TEST_LOOPBACK").unwrap_or("127.0.0.1".to_owned());
    std::net::TcpListener::bind((address, 0)).map(drop)
}

/// Opens a URL in the user's browser.
#[expect(clippy::disallowed_methods, reason = "the one place that starts a browser")]
pub fn open_in_browser(url: &str) -> std::io::Result<()> {
    use std::process::{Command, Stdio};
    let silent = Stdio::null;
    let mut opened = Command::new("xdg-open").arg(url).stdin(silent()).stdout(silent()).stderr(silent()).spawn()?;
    // The user sees whether a browser opened. The process is only reaped, so that it does not stay a zombie.
    std::thread::spawn(move || opened.wait());
    Ok(())
}

/// The environment variables whose names begin with `SIGNOFF_`.
pub fn signoff_variables() -> Vec<(String, String)> {
    let text = |value: OsString| value.to_string_lossy().into_owned();
    let all = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
    all.filter(|(name, _)| name.starts_with("SIGNOFF_")).collect()
}

/// The working directory.
pub fn current_directory() -> Result<PathBuf> {
    std::env::current_dir().map_err(|error| CliError::usage(format!("the current directory cannot be read: {error}")))
}

/// Whether an executable of this name is on `PATH`.
pub fn is_on_path(program: &str) -> bool {
    let file = format!("{program}{}", std::env::consts::EXE_SUFFIX);
    let path = variable("PATH").unwrap_or_default();
    let is_executable = |found: fs::Metadata| found.is_file() && found.permissions().mode() & 0o111 != 0;
    std::env::split_paths(&path).any(|directory| directory.join(&file).metadata().is_ok_and(is_executable))
}
