//! The version of a program, from its npm package or its own output, with a cache.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};
use std::{fmt, fs};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::atomic_file::{self, WriteMode};
use crate::process::{CommandError, ShortCommand, run_command};

/// A version number: major, minor, patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AgentVersion(pub u32, pub u32, pub u32);

impl fmt::Display for AgentVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

impl AgentVersion {
    /// The first word of a text that contains a version.
    pub fn find(text: &str) -> Option<Self> {
        text.split_whitespace().find_map(Self::parse_word)
    }

    fn parse_word(word: &str) -> Option<Self> {
        let word = word.trim_start_matches(|letter: char| !letter.is_ascii_digit());
        let end = word.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(word.len());
        let mut numbers = word.get(..end)?.trim_end_matches('.').split('.').map(str::parse::<u32>);
        let (first, second) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some(Self(first, second, numbers.next().and_then(Result::ok).unwrap_or(0)))
    }
}

/// The fields of a `package.json` that are used here.
#[derive(Deserialize)]
struct NpmPackage {
    version: String,
    #[serde(default)]
    bin: Value,
    #[serde(default)]
    engines: NpmEngines,
}

#[derive(Deserialize, Default)]
struct NpmEngines {
    #[serde(default)]
    node: String,
}

/// Maximum size of a `package.json`.
const MAX_PACKAGE_JSON: u64 = 1 << 20;

/// The version of a program from its npm package, without starting it.
pub fn package_version(program: &Path) -> Option<AgentVersion> {
    AgentVersion::find(&find_package(program)?.version)
}

/// The minimum Node.js version in the npm package, if it is a plain minimum.
pub fn min_node_version(program: &Path) -> Option<AgentVersion> {
    let requirement = find_package(program)?.engines.node;
    let least = requirement.trim().strip_prefix(">=")?.trim();
    let major_only = || least.parse().ok().map(|major| AgentVersion(major, 0, 0));
    let plain = least.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
    AgentVersion::parse_word(least).or_else(major_only).filter(|_| plain)
}

/// The npm package that provides a program.
fn find_package(program: &Path) -> Option<NpmPackage> {
    let name = program.file_name()?.to_str()?;
    let real = program.canonicalize().ok()?;
    let files = real.ancestors().skip(1).take(4).map(|directory| directory.join("package.json"));
    let file = files.into_iter().find(|file| file.metadata().is_ok_and(|file| file.len() < MAX_PACKAGE_JSON))?;
    let package: NpmPackage = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    let provides = match &package.bin {
        Value::String(_) => true,
        Value::Object(programs) => programs.contains_key(name),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => false,
    };
    provides.then_some(package)
}

/// Time limit. Some programs need seconds on a busy machine.
const VERSION_TIMEOUT: Duration = Duration::from_secs(15);

/// Maximum length of the output.
const MAX_OUTPUT: usize = 64 * 1024;

/// Why a program's version is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionError {
    /// It cannot be started.
    NotStarted(String),
    /// It starts, but reports no version.
    NotReported(String),
}

/// Exit codes of shells and `env` for a program that is missing or not executable.
const NOT_STARTED_CODES: [i32; 2] = [126, 127];

/// Runs a program with `--version`. `home` is an empty directory, so that no files of the user change.
pub fn query_version(program: &Path, home: &Path) -> Result<AgentVersion, VersionError> {
    let (name, at_home) = (program.display().to_string(), home.display().to_string());
    let answer = run_command(&ShortCommand {
        program: &name,
        arguments: &["--version"],
        directory: home,
        environment: &[("HOME", &at_home), ("TMPDIR", &at_home), ("COPILOT_AUTO_UPDATE", "false"), ("NO_COLOR", "1")],
        input: &[],
        limit: VERSION_TIMEOUT,
        max_stdout: MAX_OUTPUT,
        cancelled: None,
        reaper: None,
    });
    let answer = match answer {
        Ok(answer) => answer,
        Err(CommandError::Missing) => {
            return Err(VersionError::NotStarted("its interpreter is not installed".to_owned()));
        }
        Err(CommandError::Io(error)) => return Err(VersionError::NotStarted(error.to_string())),
        Err(error @ (CommandError::TimedOut(_) | CommandError::Cancelled | CommandError::TooMuchOutput(_))) => {
            return Err(VersionError::NotReported(format!("asked for its version, {error}")));
        }
    };
    let stdout = String::from_utf8_lossy(&answer.stdout);
    match AgentVersion::find(&stdout).filter(|_| answer.status.success()) {
        Some(version) => Ok(version),
        None => {
            let stderr = String::from_utf8_lossy(&answer.stderr);
            let mut lines = stderr.lines().chain(stdout.lines()).map(str::trim);
            let line = lines.find(|line| !line.is_empty()).unwrap_or("no output");
            let line: String = line.chars().take(160).collect();
            match answer.status.code() {
                Some(code) if NOT_STARTED_CODES.contains(&code) => Err(VersionError::NotStarted(line)),
                Some(_) | None => Err(VersionError::NotReported(format!("`--version` printed no version: {line}"))),
            }
        }
    }
}

/// Versions of programs, stored in a file. The cache is empty if the file cannot be read.
#[derive(Debug)]
pub struct VersionCache {
    file: PathBuf,
    entries: BTreeMap<PathBuf, CachedVersion>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CachedVersion {
    changed_ms: u64,
    bytes: u64,
    /// `None` if it did not report a version.
    version: Option<AgentVersion>,
}

impl VersionCache {
    pub fn open(file: PathBuf) -> Self {
        let known = fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok());
        Self { file, entries: known.unwrap_or_default() }
    }

    /// The version of a program. The outer `None` means unknown, the inner one that it reports none.
    pub fn get(&self, program: &Path) -> Option<Option<AgentVersion>> {
        let (real, now) = stamp(program)?;
        let entry = self.entries.get(&real).filter(|entry| (entry.changed_ms, entry.bytes) == now)?;
        Some(entry.version)
    }

    pub fn insert(&mut self, program: &Path, version: Option<AgentVersion>) {
        let Some((real, (changed_ms, bytes))) = stamp(program) else { return };
        self.entries.insert(real, CachedVersion { changed_ms, bytes, version });
        // If this fails, the next process runs the program again.
        atomic_file::write_json(&self.file, &self.entries, WriteMode::Plain).ok();
    }
}

/// The real path of a program, with its modification time and size.
fn stamp(program: &Path) -> Option<(PathBuf, (u64, u64))> {
    let real = program.canonicalize().ok()?;
    let file = real.metadata().ok()?;
    let changed = file.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some((real, (u64::try_from(changed.as_millis()).ok()?, file.len())))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn versions_are_parsed_from_program_output() {
        let found = |text: &str| AgentVersion::find(text).map(|version| version.to_string());
        for (text, version) in [
            ("2.1.325 (Claude Code)\n", "2.1.325"),
            ("codex-cli 0.166.0\n", "0.166.0"),
            ("GitHub Copilot CLI 1.0.102.\nRun 'copilot update' to check for updates.\n", "1.0.102"),
            ("v0.62.0-nightly.20261101.abc\n", "0.62.0"),
            ("opencode 1.18\n", "1.18.0"),
        ] {
            assert_eq!(found(text).as_deref(), Some(version), "{text}");
        }
        for text in ["", "version unknown", "5", "error: 99999999999999.1.2"] {
            assert_eq!(found(text), None, "{text}");
        }
        assert!(AgentVersion(0, 100, 0) > AgentVersion(0, 39, 1));
    }

    proptest! {
        #[test]
        fn any_text_has_a_version_or_none(text in ".*") {
            AgentVersion::find(&text);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_package_manifest_gives_the_version_of_its_programs() {
        let directory = tempfile::tempdir().unwrap();
        let (package, bin) = (directory.path().join("lib/agent"), directory.path().join("bin"));
        fs::create_dir_all(package.join("dist")).unwrap();
        fs::create_dir_all(&bin).unwrap();
        fs::write(package.join("dist/cli.js"), "").unwrap();
        std::os::unix::fs::symlink(package.join("dist/cli.js"), bin.join("agent")).unwrap();
        assert_eq!(package_version(&bin.join("agent")), None);
        fs::write(package.join("package.json"), r#"{"version":"1.2.3","bin":{"other":"x"}}"#).unwrap();
        assert_eq!(package_version(&bin.join("agent")), None);
        fs::write(package.join("package.json"), r#"{"version":"1.2.3","bin":{"agent":"dist/cli.js"}}"#).unwrap();
        assert_eq!(package_version(&bin.join("agent")), Some(AgentVersion(1, 2, 3)));
        assert_eq!(package_version(&bin.join("missing")), None);
        assert_eq!(min_node_version(&bin.join("agent")), None);
        for (wanted, least) in [
            (">=20", Some(AgentVersion(20, 0, 0))),
            (">= 22.4.1", Some(AgentVersion(22, 4, 1))),
            ("^18 || >=20", None),
            (">=18 <23", None),
            ("", None),
        ] {
            let text = format!(r#"{{"version":"1.2.3","bin":"x","engines":{{"node":"{wanted}"}}}}"#);
            fs::write(package.join("package.json"), text).unwrap();
            assert_eq!(min_node_version(&bin.join("agent")), least, "{wanted}");
        }
    }

    #[test]
    fn a_changed_program_is_not_in_the_cache() {
        let directory = tempfile::tempdir().unwrap();
        let (program, file) = (directory.path().join("agent"), directory.path().join("versions.json"));
        fs::write(&program, "one").unwrap();
        let mut versions = VersionCache::open(file.clone());
        assert_eq!(versions.get(&program), None);
        versions.insert(&program, Some(AgentVersion(1, 2, 3)));
        assert_eq!(VersionCache::open(file.clone()).get(&program), Some(Some(AgentVersion(1, 2, 3))));
        fs::write(&program, "another").unwrap();
        assert_eq!(VersionCache::open(file.clone()).get(&program), None);
        fs::write(&file, "{").unwrap();
        assert_eq!(VersionCache::open(file).get(&program), None);
    }
}
