//! Which version of a program is here: from the package it came in, or by asking it.

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::process::{AskError, Question, ask};

/// A version, as far as versions are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

impl Version {
    /// The first word of a text that is a version, whatever stands around it.
    pub fn find(text: &str) -> Option<Self> {
        text.split_whitespace().find_map(Self::of)
    }

    fn of(word: &str) -> Option<Self> {
        let word = word.trim_start_matches(|letter: char| !letter.is_ascii_digit());
        let end = word.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(word.len());
        let mut numbers = word.get(..end)?.trim_end_matches('.').split('.').map(str::parse::<u32>);
        let (first, second) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some(Self(first, second, numbers.next().and_then(Result::ok).unwrap_or(0)))
    }
}

/// What a package of npm says of itself, as far as it is needed.
#[derive(Deserialize)]
struct Package {
    version: String,
    #[serde(default)]
    bin: Value,
    #[serde(default)]
    engines: Engines,
}

#[derive(Deserialize, Default)]
struct Engines {
    #[serde(default)]
    node: String,
}

/// No package describes itself at greater length.
const LONGEST: u64 = 1 << 20;

/// The version of a program that came in a package of npm, from its description there: nothing is started.
pub fn packaged(program: &Path) -> Option<Version> {
    Version::find(&package(program)?.version)
}

/// The least version of Node.js that its package asks for, where it asks for that and no more.
pub fn least_node(program: &Path) -> Option<Version> {
    let wanted = package(program)?.engines.node;
    let least = wanted.trim().strip_prefix(">=")?.trim();
    let whole = || least.parse().ok().map(|major| Version(major, 0, 0));
    let plain = least.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
    Version::of(least).or_else(whole).filter(|_| plain)
}

/// The description of the package that provides a program.
fn package(program: &Path) -> Option<Package> {
    let name = program.file_name()?.to_str()?;
    let real = program.canonicalize().ok()?;
    let files = real.ancestors().skip(1).take(4).map(|directory| directory.join("package.json"));
    let file = files.into_iter().find(|file| file.metadata().is_ok_and(|file| file.len() < LONGEST))?;
    let package: Package = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    let provides = match &package.bin {
        Value::String(_) => true,
        Value::Object(programs) => programs.contains_key(name),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => false,
    };
    provides.then_some(package)
}

/// Some need seconds on a busy machine, before they say anything.
const LIMIT: Duration = Duration::from_secs(15);

/// So much may be said about a version.
const MOST: usize = 64 * 1024;

/// Why a program's version is not known, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unversioned {
    /// It cannot be started at all.
    NotStarted(String),
    /// It can, and does not tell.
    Untold(String),
}

/// What shells and `env` end with where what they are to run is not there, or cannot be run.
const NOT_RUN: [i32; 2] = [126, 127];

/// Asks a program for its version. `home` is an empty directory: asking changes nothing of the person's.
pub fn asked(program: &Path, home: &Path) -> Result<Version, Unversioned> {
    let (name, at_home) = (program.display().to_string(), home.display().to_string());
    let answer = ask(&Question {
        program: &name,
        arguments: &["--version"],
        directory: home,
        environment: &[
            ("HOME", &at_home),
            ("TMPDIR", &at_home),
            ("COPILOT_AUTO_UPDATE", "false"),
            ("NO_COLOR", "1"),
        ],
        input: &[],
        limit: LIMIT,
        most: MOST,
        recalled: None,
        escort: None,
    });
    let answer = match answer {
        Ok(answer) => answer,
        Err(AskError::Missing) => {
            return Err(Unversioned::NotStarted("what it is run by is not there".to_owned()));
        }
        Err(AskError::Io(error)) => return Err(Unversioned::NotStarted(error.to_string())),
        Err(error @ (AskError::Stuck(_) | AskError::Recalled | AskError::Flood(_))) => {
            return Err(Unversioned::Untold(format!("asked for its version, {error}")));
        }
    };
    let said = String::from_utf8_lossy(&answer.stdout);
    match Version::find(&said).filter(|_| answer.status.success()) {
        Some(version) => Ok(version),
        None => {
            let complaint = String::from_utf8_lossy(&answer.stderr);
            let mut lines = complaint.lines().chain(said.lines()).map(str::trim);
            let line = lines.find(|line| !line.is_empty()).unwrap_or("it said nothing");
            let line: String = line.chars().take(160).collect();
            match answer.status.code() {
                Some(code) if NOT_RUN.contains(&code) => Err(Unversioned::NotStarted(line)),
                Some(_) | None => Err(Unversioned::Untold(format!("it does not tell its version: {line}"))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn versions_as_programs_say_them() {
        let told = |text: &str| Version::find(text).map(|version| version.to_string());
        for (text, version) in [
            ("2.1.325 (Claude Code)\n", "2.1.325"),
            ("codex-cli 0.166.0\n", "0.166.0"),
            ("GitHub Copilot CLI 1.0.102.\nRun 'copilot update' to check for updates.\n", "1.0.102"),
            ("v0.62.0-nightly.20261101.abc\n", "0.62.0"),
            ("opencode 1.18\n", "1.18.0"),
        ] {
            assert_eq!(told(text).as_deref(), Some(version), "{text}");
        }
        for text in ["", "version unknown", "5", "error: 99999999999999.1.2"] {
            assert_eq!(told(text), None, "{text}");
        }
        assert!(Version(0, 100, 0) > Version(0, 39, 1));
    }

    proptest! {
        #[test]
        fn any_text_has_a_version_or_none(text in ".*") {
            Version::find(&text);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_package_tells_the_version_of_its_own_programs() {
        let place = tempfile::tempdir().unwrap();
        let (package, bin) = (place.path().join("lib/agent"), place.path().join("bin"));
        fs::create_dir_all(package.join("dist")).unwrap();
        fs::create_dir_all(&bin).unwrap();
        fs::write(package.join("dist/cli.js"), "").unwrap();
        std::os::unix::fs::symlink(package.join("dist/cli.js"), bin.join("agent")).unwrap();
        assert_eq!(packaged(&bin.join("agent")), None);
        fs::write(package.join("package.json"), r#"{"version":"1.2.3","bin":{"other":"x"}}"#).unwrap();
        assert_eq!(packaged(&bin.join("agent")), None);
        fs::write(package.join("package.json"), r#"{"version":"1.2.3","bin":{"agent":"dist/cli.js"}}"#)
            .unwrap();
        assert_eq!(packaged(&bin.join("agent")), Some(Version(1, 2, 3)));
        assert_eq!(packaged(&bin.join("missing")), None);
        assert_eq!(least_node(&bin.join("agent")), None);
        for (wanted, least) in [
            (">=20", Some(Version(20, 0, 0))),
            (">= 22.4.1", Some(Version(22, 4, 1))),
            ("^18 || >=20", None),
            (">=18 <23", None),
            ("", None),
        ] {
            let text = format!(r#"{{"version":"1.2.3","bin":"x","engines":{{"node":"{wanted}"}}}}"#);
            fs::write(package.join("package.json"), text).unwrap();
            assert_eq!(least_node(&bin.join("agent")), least, "{wanted}");
        }
    }
}
