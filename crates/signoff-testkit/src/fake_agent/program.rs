//! Locates, and if needed builds, the fake agent's binary.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// The path of the binary. Cargo builds it with all tests. If only one package's tests were built, this builds it,
/// because tests cannot depend on the binaries of another package.
///
/// # Panics
/// If it cannot be built.
pub fn program() -> PathBuf {
    let test = std::env::current_exe().expect("current_exe");
    let profile = test.ancestors().nth(2).expect("tests lie in PROFILE/deps").to_owned();
    let program = profile.join("fake_agent");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    if modified(&program).is_none_or(|built| newest_modification(&sources).is_some_and(|changed| changed > built)) {
        build(&profile);
    }
    program
}

#[expect(clippy::disallowed_methods, reason = "the one door to cargo")]
fn build(profile: &Path) {
    let name = profile.file_name().and_then(|name| name.to_str()).expect("a profile's directory");
    let name = if name == "debug" { "dev" } else { name };
    let target = profile.parent().expect("profiles lie in the target directory");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "signoff-testkit", "--bin", "fake_agent", "--profile", name])
        .arg("--target-dir")
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    assert!(built.expect("a started cargo").success(), "the fake agent was not built");
}

fn newest_modification(directory: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(directory).ok()?.flatten();
    entries
        .filter_map(
            |entry| {
                if entry.path().is_dir() { newest_modification(&entry.path()) } else { modified(&entry.path()) }
            },
        )
        .max()
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|file| file.modified()).ok()
}
