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
    detect(&DirectoryFiles(root), is_installed)
}

/// Like `detect_checks`, for a commit, independent of any worktree.
pub fn detect_checks_at(
    repository: &Repository,
    commit: &Commit,
    is_installed: impl Fn(&str) -> bool,
) -> Result<DetectedChecks, GitError> {
    Ok(detect(&CommitFiles::read(repository, commit)?, is_installed))
}

/// The files of a project that show how it is checked.
trait ProjectFiles {
    /// The beginning of a plain file, or an empty string.
    fn text(&self, file: &str) -> String;
    fn is_file(&self, file: &str) -> bool;
    /// Names of the plain files in a directory. The empty string is the project's top directory.
    fn names(&self, directory: &str) -> Vec<String>;
}

/// A project on disk.
struct DirectoryFiles<'a>(&'a Path);

impl ProjectFiles for DirectoryFiles<'_> {
    fn text(&self, file: &str) -> String {
        let (path, mut bytes) = (self.0.join(file), Vec::new());
        if fs::metadata(&path).is_ok_and(|data| data.is_file())
            && let Ok(file) = File::open(path)
        {
            // The part that was read before an error is used.
            let _ = file.take(MAX_READ).read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn is_file(&self, file: &str) -> bool {
        self.0.join(file).is_file()
    }

    fn names(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.join(directory)).into_iter().flatten().flatten();
        let plain = entries.filter(|entry| entry.file_type().is_ok_and(|found| found.is_file()));
        plain.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }
}

/// A project in a commit.
#[derive(Default)]
struct CommitFiles {
    files: BTreeSet<String>,
    texts: BTreeMap<String, String>,
}

impl CommitFiles {
    fn read(repository: &Repository, commit: &Commit) -> Result<Self, GitError> {
        let mut snapshot = Self { files: repository.plain_files(commit, &[])?, ..Self::default() };
        snapshot.files.extend(repository.plain_files(commit, &TEST_DIRECTORIES)?);
        for file in READ_FILES.into_iter().filter(|file| snapshot.files.contains(*file)) {
            if let Some(CommittedFile::Content(content)) = repository.file_at(commit, file, MAX_READ)? {
                let text = String::from_utf8_lossy(&content).into_owned();
                snapshot.texts.insert(file.to_owned(), text);
            }
        }
        Ok(snapshot)
    }
}

impl ProjectFiles for CommitFiles {
    fn text(&self, file: &str) -> String {
        self.texts.get(file).cloned().unwrap_or_default()
    }

    fn is_file(&self, file: &str) -> bool {
        self.files.contains(file)
    }

    fn names(&self, directory: &str) -> Vec<String> {
        let below = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let names = self.files.iter().filter_map(|file| file.strip_prefix(&below));
        names.filter(|name| !name.contains('/')).map(str::to_owned).collect()
    }
}

/// Subdirectories in which tests are searched.
const TEST_DIRECTORIES: [&str; 2] = ["tests/", "test/"];

/// The files that are read.
const READ_FILES: [&str; 7] =
    ["GNUmakefile", "makefile", "Makefile", "package.json", "pyproject.toml", "setup.cfg", "tox.ini"];

fn detect(root: &dyn ProjectFiles, is_there: impl Fn(&str) -> bool) -> DetectedChecks {
    let mut found = DetectedChecks::default();
    let usable = |wanted: Vec<CheckCandidate>, found: &mut DetectedChecks| -> Vec<CheckCandidate> {
        let (usable, missing): (Vec<_>, Vec<_>) = wanted.into_iter().partition(|one| is_there(one.tool));
        for CheckCandidate { file, tool, .. } in missing {
            let message = format!("{file} is there, but `{tool}` is not installed");
            if !found.missing.contains(&message) {
                found.missing.push(message);
            }
        }
        usable
    };
    let own = usable(makefile(root), &mut found);
    let is_uncovered = |one: &CheckCandidate| own.iter().all(|known| check_kind(known.kind) != one.kind);
    let tools = [cargo(root), node(root), python(root), go(root)].into_iter().flatten();
    let tools = usable(tools.filter(is_uncovered).collect(), &mut found);
    for one in own.into_iter().chain(tools) {
        let taken = found.checks.iter().any(|known| known.name == one.kind);
        let name = if taken { format!("{}-{}", one.kind, one.tool) } else { one.kind.to_owned() };
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

#[expect(clippy::disallowed_methods, reason = "the one place that looks where programs are")]
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
fn makefile(root: &dyn ProjectFiles) -> Vec<CheckCandidate> {
    let names = ["GNUmakefile", "makefile", "Makefile"];
    let texts = names.map(|name| (name, root.text(name)));
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

fn cargo(root: &dyn ProjectFiles) -> Vec<CheckCandidate> {
    let file = "Cargo.toml";
    let there = root.is_file(file);
    there.then(|| candidate("test", file, "cargo", "cargo test")).into_iter().collect()
}

fn node(root: &dyn ProjectFiles) -> Vec<CheckCandidate> {
    let file = "package.json";
    let package: serde_json::Value = serde_json::from_str(&root.text(file)).unwrap_or_default();
    let script = |name: &str| package["scripts"][name].as_str().filter(|script| !is_placeholder(script));
    let tools = [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun")];
    let tool = tools.into_iter().find(|(lock, _)| root.is_file(lock)).map_or("npm", |(_, tool)| tool);
    let names = ["test", "lint"].into_iter().filter(|name| script(name).is_some());
    names.map(|name| candidate(name, file, tool, format!("{tool} run {name}"))).collect()
}

/// The test script written by `npm init` always fails.
fn is_placeholder(script: &str) -> bool {
    script.contains("no test specified")
}

/// Settings of pytest, or tests that pytest would find by their names.
fn python(root: &dyn ProjectFiles) -> Vec<CheckCandidate> {
    let settings = [("pyproject.toml", "[tool.pytest"), ("setup.cfg", "[tool:pytest]"), ("tox.ini", "[pytest]")];
    let has_settings =
        |(file, section): &(&str, &str)| root.text(file).lines().any(|line| line.trim_start().starts_with(section));
    let own = ["pytest.ini", "conftest.py", "tests/conftest.py"];
    let places = [("a test in Python", ""), ("tests/", "tests"), ("test/", "test")];
    let source = settings.into_iter().find(has_settings).map(|(file, _)| file);
    let source = source.or_else(|| own.into_iter().find(|file| root.is_file(file)));
    let source =
        source.or_else(|| places.into_iter().find(|(_, place)| has_tests(&root.names(place))).map(|(name, _)| name));
    source.map(|file| candidate("test", file, "pytest", "pytest")).into_iter().collect()
}

/// Whether pytest would find tests directly in a directory. Subdirectories may contain anything.
fn has_tests(names: &[String]) -> bool {
    let is_test = |name: &String| {
        name.strip_suffix(".py").is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test"))
    };
    names.iter().any(is_test)
}

fn go(root: &dyn ProjectFiles) -> Vec<CheckCandidate> {
    let file = "go.mod";
    if root.is_file(file) {
        vec![candidate("test", file, "go", "go test ./..."), candidate("lint", file, "go", "go vet ./...")]
    } else {
        Vec::new()
    }
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
                "Makefile is there, but `make` is not installed",
                "a test in Python is there, but `pytest` is not installed",
                "go.mod is there, but `go` is not installed",
            ]
        );
        assert!(is_installed("sh") && !is_installed("nosuchtool"));
    }
}
