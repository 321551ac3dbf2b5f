//! A process that may read everything and write almost nothing: how reviewers are run where the system allows it.
//!
//! The program starts itself as `__confine PATH… -- PROGRAM ARGUMENT…`, gives up the right to write anywhere but below
//! those paths, and becomes the other program. What that one starts is held by the same.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The first argument that makes the program confine itself.
pub const CONFINE: &str = "__confine";

/// How our own words on stderr begin.
pub const SAID: &str = "signoff: ";

/// What stands between the paths and the program.
const END: &str = "--";

/// Where writing does no harm, and many programs cannot do without.
const DEVICES: &str = "/dev";

/// A command line that runs another one under confinement.
pub fn command_line(paths: &[PathBuf], program: String, arguments: Vec<String>) -> Vec<String> {
    let paths = paths.iter().map(|path| path.display().to_string());
    [CONFINE.to_owned()].into_iter().chain(paths).chain([END.to_owned(), program]).chain(arguments).collect()
}

/// Becomes the program that the arguments name, with the right to write below the paths before it.
pub fn run(arguments: &[OsString]) -> ExitCode {
    let mut parts = arguments.splitn(2, |word| word == END);
    let paths: Vec<&Path> = parts.next().unwrap_or_default().iter().map(Path::new).collect();
    let Some([program, arguments @ ..]) = parts.next() else { return ExitCode::from(2) };
    if let Err(error) = restrict(&paths) {
        eprintln!("{SAID}cannot confine {}: {error}", program.display());
        return ExitCode::from(126);
    }
    let error = command(program).args(arguments).exec();
    eprintln!("{SAID}cannot start {}: {error}", program.display());
    ExitCode::from(127)
}

#[expect(clippy::disallowed_methods, reason = "the door through which a confined process becomes another")]
fn command(program: &OsString) -> Command {
    Command::new(program)
}

/// Gives up writing elsewhere, as far as this kernel can hold us to it.
#[cfg(target_os = "linux")]
fn restrict(paths: &[&Path]) -> Result<(), landlock::RulesetError> {
    use landlock::{ABI, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, path_beneath_rules};
    let writing = AccessFs::from_write(ABI::V5);
    let allowed = paths.iter().copied().chain([Path::new(DEVICES)]);
    let rules = Ruleset::default().handle_access(writing)?.create()?;
    rules.add_rules(path_beneath_rules(allowed, writing))?.restrict_self()?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn restrict(_paths: &[&Path]) -> Result<(), std::convert::Infallible> {
    Ok(())
}

/// Whether this kernel can hold a process to it.
#[cfg(target_os = "linux")]
pub fn is_possible() -> bool {
    use landlock::{ABI, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};
    let strict = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    strict.handle_access(AccessFs::from_write(ABI::V1)).and_then(|rules| rules.create()).is_ok()
}

#[cfg(not(target_os = "linux"))]
pub fn is_possible() -> bool {
    false
}
