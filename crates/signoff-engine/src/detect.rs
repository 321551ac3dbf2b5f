//! Detects a project's test and lint commands if none are configured.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use signoff_core::ids::Commit;

use crate::git::{CommittedFile, GitError, Repository};

/// A detected check command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectedCheck {
    pub name: String,
    pub command: String,
}

/// The checks detected in a project.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DetectedChecks {
    pub checks: Vec<DetectedCheck>,
    /// Checks that cannot run because their program is not installed, described for the user.
    pub missing: Vec<String>,
}

/// A check that a project file suggests.
struct CheckCandidate {
    kind: &'static str,
    /// The file that suggests it.
    file: &'static str,
    tool: &'static str,
    command: String,
}

/// Maximum number of bytes read from a file. A file that describes tests is written by hand and shorter.
const MAX_READ: u64 = 1 << 20;

/// The checks of a project: the targets of its Makefile, and the standard commands of its tools for what the
/// Makefile does not cover. Skips programs that are not installed.
///
/// Ignores unreadable files. Opens only plain files, because agents write these files too.
pub fn detect_checks(root: &Path, is_installed: impl Fn(&str) -> bool) -> DetectedChecks {
    detect(&ProjectFiles::in_directory(root), is_installed)
}

/// Like `detect_checks`, for a commit, independent of any worktree.
pub fn detect_checks_at(
    repository: &Repository,
    commit: &Commit,
    is_installed: impl Fn(&str) -> bool,
) -> Result<DetectedChecks, GitError> {
    Ok(detect(&ProjectFiles::in_commit(repository, commit)?, is_installed))
}

/// The files of a project that show how it is checked.
#[derive(Default)]
struct ProjectFiles {
    /// The plain files in the top directory and in the test directories.
    files: BTreeSet<String>,
    /// The beginnings of some of them.
    texts: BTreeMap<&'static str, String>,
}

impl ProjectFiles {
    fn in_directory(root: &Path) -> Self {
        let mut project = Self::default();
        for directory in TEST_DIRECTORIES.into_iter().chain([""]) {
            let entries = fs::read_dir(root.join(directory)).into_iter().flatten().flatten();
            let names = entries.filter(|entry| entry.path().is_file());
            let names = names.filter_map(|entry| entry.file_name().into_string().ok());
            project.files.extend(names.map(|name| format!("{directory}{name}")));
        }
        for file in READ_FILES.into_iter().filter(|file| project.files.contains(*file)) {
            let mut bytes = Vec::new();
            if let Ok(opened) = File::open(root.join(file)) {
                // The part that was read before an error is used.
                opened.take(MAX_READ).read_to_end(&mut bytes).ok();
            }
            project.texts.insert(file, String::from_utf8_lossy(&bytes).into_owned());
        }
        project
    }

    fn in_commit(repository: &Repository, commit: &Commit) -> Result<Self, GitError> {
        let mut project = Self { files: repository.plain_files(commit, &[])?, ..Self::default() };
        project.files.extend(repository.plain_files(commit, &TEST_DIRECTORIES)?);
        for file in READ_FILES.into_iter().filter(|file| project.files.contains(*file)) {
            if let Some(CommittedFile::Content(content)) = repository.file_at(commit, file, MAX_READ)? {
                project.texts.insert(file, String::from_utf8_lossy(&content).into_owned());
            }
        }
        Ok(project)
    }

    /// The beginning of a plain file, or an empty string.
    fn text(&self, file: &str) -> &str {
        self.texts.get(file).map_or("", String::as_str)
    }

    fn is_file(&self, file: &str) -> bool {
        self.files.contains(file)
    }

    /// Names of the plain files in a directory. The empty string is the project's top directory.
    fn names(&self, directory: &str) -> impl Iterator<Item = &str> {
        let names = self.files.iter().filter_map(move |file| file.strip_prefix(directory));
        names.filter(|name| !name.contains('/'))
    }
}

/// Subdirectories in which tests are searched.
const TEST_DIRECTORIES: [&str; 2] = ["tests/", "test/"];

/// The files that are read.
const READ_FILES: [&str; 7] =
    ["GNUmakefile", "makefile", "Makefile", "package.json", "pyproject.toml", "setup.cfg", "tox.ini"];

fn detect(files: &ProjectFiles, is_there: impl Fn(&str) -> bool) -> DetectedChecks {
    let mut found = DetectedChecks::default();
    let usable = |wanted: Vec<CheckCandidate>, found: &mut DetectedChecks| -> Vec<CheckCandidate> {
        let (usable, missing): (Vec<_>, Vec<_>) = wanted.into_iter().partition(|one| is_there(one.tool));
        for CheckCandidate { file, tool, .. } in missing {
            let message = format!("found {file}, but `{tool}` is not installed");
            if !found.missing.contains(&message) {
                found.missing.push(message);
            }
        }
        usable
    };
    let own = usable(makefile(files), &mut found);
    let is_uncovered = |one: &CheckCandidate| own.iter().all(|known| check_kind(known.kind) != one.kind);
    let tools = [cargo(files), node(files), python(files), go(files)].into_iter().flatten();
    let tools = usable(tools.filter(is_uncovered).collect(), &mut found);
    for one in own.into_iter().chain(tools) {
        let is_taken = found.checks.iter().any(|known| known.name == one.kind);
        let name = if is_taken { format!("{}-{}", one.kind, one.tool) } else { one.kind.to_owned() };
        found.checks.push(DetectedCheck { name, command: one.command });
    }
    found
}

/// Whether a program is in `PATH`.
pub fn is_installed(program: &str) -> bool {
    env::split_paths(&search_path()).any(|directory| is_executable(&directory.join(program)))
}

/// Whether a path is an executable file.
pub fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[expect(clippy::disallowed_methods, reason = "the only place that reads PATH")]
pub(crate) fn search_path() -> OsString {
    env::var_os("PATH").unwrap_or_default()
}

/// `check` is another name for `test`.
fn check_kind(target: &str) -> &str {
    if target == "check" { "test" } else { target }
}

fn candidate(kind: &'static str, file: &'static str, tool: &'static str, command: impl Into<String>) -> CheckCandidate {
    CheckCandidate { kind, file, tool, command: command.into() }
}

/// The targets of a Makefile. If there are both `test` and `check`, one usually runs the other.
fn makefile(files: &ProjectFiles) -> Vec<CheckCandidate> {
    let names = ["GNUmakefile", "makefile", "Makefile"];
    let texts = names.map(|name| (name, files.text(name)));
    let Some((file, text)) = texts.into_iter().find(|(_, text)| !text.is_empty()) else {
        return Vec::new();
    };
    let has = |name: &str| text.lines().any(|line| is_rule(line, name));
    let tests = ["test", "check"].into_iter().find(|name| has(name));
    let lint = Some("lint").filter(|name| has(name));
    tests.into_iter().chain(lint).map(|name| candidate(name, file, "make", format!("make {name}"))).collect()
}

/// Whether a line of a Makefile is a rule for the target, not a recipe or a variable.
fn is_rule(line: &str, target: &str) -> bool {
    let Some((targets, rest)) = line.split_once(':') else { return false };
    let is_variable = rest.trim_start_matches(':').starts_with('=');
    !line.starts_with([' ', '\t', '#']) && !is_variable && targets.split_whitespace().any(|word| word == target)
}

fn cargo(files: &ProjectFiles) -> Vec<CheckCandidate> {
    let there = files.is_file("Cargo.toml");
    there.then(|| candidate("test", "Cargo.toml", "cargo", "cargo test")).into_iter().collect()
}

fn node(files: &ProjectFiles) -> Vec<CheckCandidate> {
    let file = "package.json";
    let package: serde_json::Value = serde_json::from_str(files.text(file)).unwrap_or_default();
    // The test script written by `npm init` always fails.
    let is_real = |script: &str| !script.contains("no test specified");
    let has_script = |name: &&str| package["scripts"][*name].as_str().is_some_and(is_real);
    let tools = [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun")];
    let tool = tools.into_iter().find(|(lock, _)| files.is_file(lock)).map_or("npm", |(_, tool)| tool);
    let names = ["test", "lint"].into_iter().filter(has_script);
    names.map(|name| candidate(name, file, tool, format!("{tool} run {name}"))).collect()
}

/// Settings of pytest, or tests that pytest would find by their names.
fn python(files: &ProjectFiles) -> Vec<CheckCandidate> {
    let settings = [("pyproject.toml", "[tool.pytest"), ("setup.cfg", "[tool:pytest]"), ("tox.ini", "[pytest]")];
    let has_settings =
        |(file, section): &(&str, &str)| files.text(file).lines().any(|line| line.trim_start().starts_with(section));
    let own = ["pytest.ini", "conftest.py", "tests/conftest.py"];
    let directories = [("a test in Python", ""), ("tests/", "tests/"), ("test/", "test/")];
    let source = settings.into_iter().find(has_settings).map(|(file, _)| file);
    let source = source.or_else(|| own.into_iter().find(|file| files.is_file(file)));
    // Pytest finds tests by their names. Subdirectories may contain anything.
    let is_test =
        |name: &str| name.strip_suffix(".py").is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test"));
    let has_tests = |(_, directory): &(&str, &str)| files.names(directory).any(is_test);
    let source = source.or_else(|| directories.into_iter().find(has_tests).map(|(name, _)| name));
    source.map(|file| candidate("test", file, "pytest", "pytest")).into_iter().collect()
}

fn go(files: &ProjectFiles) -> Vec<CheckCandidate> {
    let checks = [("test", "go test ./..."), ("lint", "go vet ./...")];
    let checks = checks.into_iter().filter(|_| files.is_file("go.mod"));
    checks.map(|(kind, command)| candidate(kind, "go.mod", "go", command)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_reported_once_and_not_run() {
        let project = tempfile::tempdir().unwrap();
        for file in ["go.mod", "Cargo.toml", "test_a.py"] {
            fs::write(project.path().join(file), "").unwrap();
        }
        fs::write(project.path().join("Makefile"), "test:\n\ttrue\n").unwrap();
        let names = |found: &DetectedChecks| -> Vec<String> {
            found.checks.iter().map(|check| format!("{}: {}", check.name, check.command)).collect()
        };
        let all = detect_checks(project.path(), |_| true);
        assert_eq!(names(&all), ["test: make test", "lint: go vet ./..."]);
        assert_eq!(all.missing, [""; 0]);
        let few = detect_checks(project.path(), |program| program == "cargo");
        assert_eq!(names(&few), ["test: cargo test"]);
        assert_eq!(
            few.missing,
            [
                "found Makefile, but `make` is not installed",
                "found a test in Python, but `pytest` is not installed",
                "found go.mod, but `go` is not installed",
            ]
        );
        assert!(is_installed("sh") && !is_installed("nosuchtool"));
    }
}
