//! The one door to the command line, the clock and the files a person names.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;

use crate::console::read_at_most;
use crate::failure::Failure;

/// No file a person hands us is longer: the longest legal answer with every byte escaped stays below it.
pub const FILE_LIMIT: usize = 100 * 1000 * 1000;

/// The words of the command line, the program's name first.
pub fn arguments() -> Vec<OsString> {
    std::env::args_os().collect()
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
