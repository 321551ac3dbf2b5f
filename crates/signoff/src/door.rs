//! The one door to the command line, the clock and the files a person names.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use crate::console::read_at_most;
use crate::failure::Failure;

/// No file a person hands us is longer: the longest legal answer with every byte escaped stays below it.
pub const FILE_LIMIT: usize = 100 * 1000 * 1000;

/// The words of the command line, the program's name first.
pub fn arguments() -> Vec<OsString> {
    std::env::args_os().collect()
}

/// Where the person is.
pub fn working_directory() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|error| Failure::usage(format!("the working directory is gone: {error}")))
}

/// This program.
pub fn program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| Failure::failed(format!("cannot find signoff itself: {error}")))
}

/// The environment as it was given to us.
#[expect(clippy::disallowed_methods, reason = "the environment's one door")]
pub fn environment() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

/// One variable of it.
pub fn variable(name: &str) -> Option<OsString> {
    environment().into_iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

/// Where programs are looked for.
pub fn search_path() -> Vec<PathBuf> {
    variable("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}

/// Who decides: the person's name on this machine.
pub fn person() -> String {
    let named = ["SIGNOFF_USER", "USER", "LOGNAME"].into_iter().find_map(variable);
    named.map(|name| name.to_string_lossy().into_owned()).filter(|name| !name.is_empty()).unwrap_or_else(|| "a person".to_owned())
}

/// A fresh directory that nobody else uses.
pub fn temporary_directory() -> Result<PathBuf, Failure> {
    let name = format!("signoff-demo-{}-{}", std::process::id(), now().as_millisecond());
    let path = std::env::temp_dir().join(name);
    std::fs::create_dir(&path).map_err(|error| Failure::failed(format!("cannot make {}: {error}", path.display())))?;
    Ok(path)
}

/// Lets another program do something.
#[expect(clippy::disallowed_methods, reason = "waiting for another process, in one place")]
pub fn wait_a_moment() {
    std::thread::sleep(std::time::Duration::from_millis(100));
}

/// The time of day.
#[expect(clippy::disallowed_methods, reason = "the clock's one door")]
pub fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// Reads a whole file, within bounds.
pub fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let name = path.display().to_string();
    let bytes = File::open(path)
        .and_then(|mut file| read_at_most(&mut file, FILE_LIMIT))
        .map_err(|error| Failure::usage(format!("cannot read {name}: {error}")).at(&name))?;
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
