//! The one door to the command line, the environment, the clock and files.

pub mod replace;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use signoff_engine::clear;

use crate::console::read_at_most;
use crate::failure::Failure;

/// No file a person hands us is longer: the longest legal answer with every byte escaped stays below it.
pub const FILE_LIMIT: usize = 100 * 1000 * 1000;

/// The words of the command line, the program's name first.
pub fn arguments() -> Vec<OsString> {
    std::env::args_os().collect()
}

/// This program.
pub fn program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| Failure::failed(format!("cannot find signoff itself: {error}")))
}

/// The environment as it was given to us.
pub fn environment() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

/// Who decides: the person's name on this machine.
pub fn person() -> String {
    let named = ["SIGNOFF_USER", "USER", "LOGNAME"].into_iter().find_map(variable);
    named
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "a person".to_owned())
}

/// A fresh directory that nobody else uses, or can look into.
pub fn temporary_directory(what: &str) -> Result<PathBuf, Failure> {
    let failed = |path: &Path, error| Failure::failed(format!("cannot make {}: {error}", path.display()));
    let above = std::env::temp_dir();
    let above = above.canonicalize().map_err(|error| failed(&above, error))?;
    let (process, time) = (std::process::id(), now().as_nanosecond());
    let path = above.join(format!("signoff-{what}-{process}-{time}"));
    private(&path).map_err(|error| failed(&path, error))?;
    Ok(path)
}

#[cfg(unix)]
fn private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(path)
}

#[cfg(not(unix))]
fn private(path: &Path) -> std::io::Result<()> {
    fs::create_dir(path)
}

/// A fresh directory that is gone with its last use.
#[derive(Debug)]
pub struct Throwaway(PathBuf);

impl Throwaway {
    pub fn new(what: &str) -> Result<Self, Failure> {
        temporary_directory(what).map(Self)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Throwaway {
    fn drop(&mut self) {
        // What cannot be removed is the system's to clear away.
        clear::remove(&self.0).ok();
    }
}

/// Lets another program do something.
#[expect(clippy::disallowed_methods, reason = "waiting for another process, in one place")]
pub fn wait_a_moment() {
    std::thread::sleep(std::time::Duration::from_millis(100));
}

/// Lets time pass that a person is to see pass.
#[expect(clippy::disallowed_methods, reason = "showing again how long something took")]
pub fn let_pass(time: std::time::Duration) {
    std::thread::sleep(time);
}

/// The time of day.
#[expect(clippy::disallowed_methods, reason = "the clock's one door")]
pub fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// Reads a whole file, within bounds.
pub fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let name = path.display().to_string();
    let bytes =
        File::open(path).and_then(|mut file| read_at_most(&mut file, FILE_LIMIT)).map_err(|error| {
            Failure::usage(format!("cannot read {name}: {error}"))
                .at(&name)
                .hint("check the path, and that you may read it")
        })?;
    if bytes.len() > FILE_LIMIT {
        return Err(Failure::usage(format!("{name} is longer than {FILE_LIMIT} bytes")).at(&name));
    }
    Ok(bytes)
}

/// The text of a file that must be text.
pub fn utf8<'a>(name: &str, bytes: &'a [u8]) -> Result<&'a str, Failure> {
    std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes.iter().take(error.valid_up_to()).filter(|&&byte| byte == b'\n').count() + 1;
        Failure::usage(format!("{name} is not UTF-8 text"))
            .at(format!("{name}:{line}"))
            .hint("save it as UTF-8")
    })
}

/// A file that need not be there.
pub fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    match path.symlink_metadata() {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        // Reading a pipe that nobody writes to would never end.
        Ok(_) if path.metadata().is_ok_and(|found| !found.is_file()) => Err(irregular(path)),
        Ok(_) | Err(_) => read(path).map(Some),
    }
}

fn irregular(path: &Path) -> Failure {
    let name = path.display().to_string();
    Failure::usage(format!("{name} is not a regular file"))
        .at(&name)
        .hint("put a file with text in its place, or remove it")
}

/// Writes a file that is not there yet, with the directory it lies in. False if it is there.
pub fn write_new(path: &Path, text: &str) -> Result<bool, Failure> {
    let failed = |error| Failure::failed(format!("cannot write {}: {error}", path.display()));
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    match File::create_new(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).map(|()| true).map_err(failed),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(failed(error)),
    }
}

/// Puts a file out of the way, beside itself under a name nobody uses. None if there is no such file.
pub fn back_up(path: &Path) -> Result<Option<PathBuf>, Failure> {
    let Some(backup) = backup_name(path, ".bak")? else { return Ok(None) };
    fs::rename(path, &backup)
        .map_err(|error| Failure::failed(format!("cannot put {} out of the way: {error}", path.display())))?;
    Ok(Some(backup))
}

/// Copies a file beside itself under a name nobody uses. None if there is no such file.
pub fn copy_aside(path: &Path) -> Result<Option<PathBuf>, Failure> {
    copy_aside_as(path, ".bak")
}

/// The same, under a name that ends in another way.
pub fn copy_aside_as(path: &Path, end: &str) -> Result<Option<PathBuf>, Failure> {
    let Some(backup) = backup_name(path, end)? else { return Ok(None) };
    fs::copy(path, &backup)
        .map_err(|error| Failure::failed(format!("cannot keep a copy of {}: {error}", path.display())))?;
    Ok(Some(backup))
}

fn backup_name(path: &Path, end: &str) -> Result<Option<PathBuf>, Failure> {
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let free = |number: usize| {
        let end = if number == 1 { end.to_owned() } else { format!("{end}{number}") };
        Some(beside(path, &end)).filter(|backup| backup.symlink_metadata().is_err())
    };
    let backup = (1..1000).find_map(free).ok_or_else(|| {
        Failure::failed(format!("{} has too many backups", path.display())).hint("remove some of them")
    })?;
    Ok(Some(backup))
}

/// A file beside another one: its name with something behind it.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// A variable of the environment, unless it is empty.
#[expect(clippy::disallowed_methods, reason = "the environment's one door")]
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// A number that a test sets; builds for people know no such thing.
pub fn test_number(name: &str) -> Option<u64> {
    if !cfg!(debug_assertions) {
        return None;
    }
    variable(name).and_then(|value| value.to_str()?.parse().ok())
}

/// A word that a test sets; builds for people know no such thing.
pub fn test_word(name: &str) -> Option<String> {
    variable(name).filter(|_| cfg!(debug_assertions)).and_then(|value| value.into_string().ok())
}

/// Whether there is a port on this machine that only its own programs reach.
pub fn can_serve() -> std::io::Result<()> {
    let address = test_word("SIGNOFF_TEST_LOOPBACK").unwrap_or("127.0.0.1".to_owned());
    std::net::TcpListener::bind((address, 0)).map(drop)
}

/// Has the person's browser show something.
#[expect(clippy::disallowed_methods, reason = "the one place that starts a browser")]
pub fn open(url: &str) -> std::io::Result<()> {
    use std::process::{Command, Stdio};
    let silent = Stdio::null;
    let mut opened =
        Command::new("xdg-open").arg(url).stdin(silent()).stdout(silent()).stderr(silent()).spawn()?;
    // Whether it found a browser is seen by the person; it only must not stay as a dead process.
    std::thread::spawn(move || opened.wait());
    Ok(())
}

/// The variables that may be meant for us.
pub fn own_variables() -> Vec<(String, String)> {
    let text = |word: OsString| word.to_string_lossy().into_owned();
    let all = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
    all.filter(|(name, _)| name.starts_with("SIGNOFF_")).collect()
}

/// Where the program was started.
pub fn current_directory() -> Result<PathBuf, Failure> {
    std::env::current_dir()
        .map_err(|error| Failure::usage(format!("the current directory cannot be read: {error}")))
}

/// Whether a program of this name could be started.
pub fn is_on_path(program: &str) -> bool {
    let file = format!("{program}{}", std::env::consts::EXE_SUFFIX);
    let path = variable("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| is_executable(&directory.join(&file)))
}

/// Whether a file could be started.
#[cfg(unix)]
pub fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// Whether a file could be started.
#[cfg(not(unix))]
pub fn is_executable(path: &Path) -> bool {
    path.is_file()
}
