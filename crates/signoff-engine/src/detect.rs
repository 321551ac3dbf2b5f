//! Finds the commands that judge a project, where nobody configured any: its tests and its linter.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use signoff_core::ids::Commit;

use crate::git::{FileAt, GitError, Repository};

/// A command that judges the work by its exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detected {
    pub name: String,
    pub command: String,
}

/// What was found in a project.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    pub checks: Vec<Detected>,
    /// What would be run if its program were there, in words.
    pub missing: Vec<String>,
}

/// What a file of a project asks for.
struct Wanted {
    kind: &'static str,
    /// Where that is said.
    file: &'static str,
    tool: &'static str,
    command: String,
}

/// More of a file is not read: whoever needs more to say how it is tested did not write it by hand.
const LONGEST: u64 = 1 << 20;

/// The checks of a project: what its Makefile says, and where that says nothing what each of its tools would do. A
/// program that is not there checks nothing.
///
/// A file that cannot be read says nothing. Agents write these files too, so only plain ones are opened.
pub fn checks(root: &Path, is_there: impl Fn(&str) -> bool) -> Found {
    found_in(&Directory(root), is_there)
}

/// The same of a commit, whatever lies in any worktree.
pub fn checks_at(
    repository: &Repository,
    commit: &Commit,
    is_there: impl Fn(&str) -> bool,
) -> Result<Found, GitError> {
    Ok(found_in(&Snapshot::read(repository, commit)?, is_there))
}

/// The files of a project, as far as they tell how it is checked.
trait ProjectFiles {
    /// The start of a plain file; empty if there is none.
    fn text(&self, file: &str) -> String;
    fn is_file(&self, file: &str) -> bool;
    /// The names of the plain files in a directory; the project's own is empty.
    fn names(&self, directory: &str) -> Vec<String>;
}

/// A project on disk.
struct Directory<'a>(&'a Path);

impl ProjectFiles for Directory<'_> {
    fn text(&self, file: &str) -> String {
        let (path, mut bytes) = (self.0.join(file), Vec::new());
        if fs::metadata(&path).is_ok_and(|data| data.is_file())
            && let Ok(file) = File::open(path)
        {
            // What was read before it failed is as good as a file that ends there.
            let _ = file.take(LONGEST).read_to_end(&mut bytes);
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

/// A project as a commit has it.
#[derive(Default)]
struct Snapshot {
    files: BTreeSet<String>,
    texts: BTreeMap<String, String>,
}

impl Snapshot {
    fn read(repository: &Repository, commit: &Commit) -> Result<Self, GitError> {
        let mut snapshot = Self { files: repository.plain_files(commit, &[])?, ..Self::default() };
        snapshot.files.extend(repository.plain_files(commit, &TEST_DIRECTORIES)?);
        for file in READ.into_iter().filter(|file| snapshot.files.contains(*file)) {
            if let Some(FileAt::Content(content)) = repository.file_at(commit, file, LONGEST)? {
                let text = String::from_utf8_lossy(&content).into_owned();
                snapshot.texts.insert(file.to_owned(), text);
            }
        }
        Ok(snapshot)
    }
}

impl ProjectFiles for Snapshot {
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

/// The directories below the project's own in which tests are looked for.
const TEST_DIRECTORIES: [&str; 2] = ["tests/", "test/"];

/// The files that are read.
const READ: [&str; 7] =
    ["GNUmakefile", "makefile", "Makefile", "package.json", "pyproject.toml", "setup.cfg", "tox.ini"];

fn found_in(root: &dyn ProjectFiles, is_there: impl Fn(&str) -> bool) -> Found {
    let mut found = Found::default();
    let usable = |wanted: Vec<Wanted>, found: &mut Found| -> Vec<Wanted> {
        let (usable, missing): (Vec<_>, Vec<_>) = wanted.into_iter().partition(|one| is_there(one.tool));
        for Wanted { file, tool, .. } in missing {
            let said = format!("{file} is there, but `{tool}` is not installed");
            if !found.missing.contains(&said) {
                found.missing.push(said);
            }
        }
        usable
    };
    let own = usable(makefile(root), &mut found);
    let silent = |one: &Wanted| own.iter().all(|known| kind_of(known.kind) != one.kind);
    let tools = [cargo(root), node(root), python(root), go(root)].into_iter().flatten();
    let tools = usable(tools.filter(silent).collect(), &mut found);
    for one in own.into_iter().chain(tools) {
        let taken = found.checks.iter().any(|known| known.name == one.kind);
        let name = if taken { format!("{}-{}", one.kind, one.tool) } else { one.kind.to_owned() };
        found.checks.push(Detected { name, command: one.command });
    }
    found
}

/// What the machine can start by this name.
pub fn is_installed(program: &str) -> bool {
    env::split_paths(&search_path()).any(|directory| is_executable(&directory.join(program)))
}

/// Whether a file could be started.
pub fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[expect(clippy::disallowed_methods, reason = "the one place that looks where programs are")]
pub(crate) fn search_path() -> OsString {
    env::var_os("PATH").unwrap_or_default()
}

/// `check` is what others call `test`.
fn kind_of(target: &str) -> &str {
    if target == "check" { "test" } else { target }
}

fn wanted(
    kind: &'static str,
    (file, tool): (&'static str, &'static str),
    command: impl Into<String>,
) -> Wanted {
    Wanted { kind, file, tool, command: command.into() }
}

/// Where there are both `test` and `check`, one usually runs the other.
fn makefile(root: &dyn ProjectFiles) -> Vec<Wanted> {
    let names = ["GNUmakefile", "makefile", "Makefile"];
    let texts = names.map(|name| (name, root.text(name)));
    let Some((file, text)) = texts.into_iter().find(|(_, text)| !text.is_empty()) else {
        return Vec::new();
    };
    let has = |name: &str| text.lines().any(|line| is_rule(line, name));
    let tests = ["test", "check"].into_iter().find(|name| has(name));
    let lint = Some("lint").filter(|name| has(name));
    tests.into_iter().chain(lint).map(|name| wanted(name, (file, "make"), format!("make {name}"))).collect()
}

/// Whether a line of a Makefile says how to make the target: not a recipe, not a variable.
fn is_rule(line: &str, target: &str) -> bool {
    let Some((targets, rest)) = line.split_once(':') else { return false };
    let is_variable = rest.trim_start_matches(':').starts_with('=');
    !line.starts_with([' ', '\t', '#'])
        && !is_variable
        && targets.split_whitespace().any(|word| word == target)
}

fn cargo(root: &dyn ProjectFiles) -> Vec<Wanted> {
    let file = "Cargo.toml";
    let there = root.is_file(file);
    there.then(|| wanted("test", (file, "cargo"), "cargo test")).into_iter().collect()
}

fn node(root: &dyn ProjectFiles) -> Vec<Wanted> {
    let file = "package.json";
    let package: serde_json::Value = serde_json::from_str(&root.text(file)).unwrap_or_default();
    let script = |name: &str| package["scripts"][name].as_str().filter(|script| !is_placeholder(script));
    let tools = [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun")];
    let tool = tools.into_iter().find(|(lock, _)| root.is_file(lock)).map_or("npm", |(_, tool)| tool);
    let names = ["test", "lint"].into_iter().filter(|name| script(name).is_some());
    names.map(|name| wanted(name, (file, tool), format!("{tool} run {name}"))).collect()
}

/// What `npm init` writes fails always.
fn is_placeholder(script: &str) -> bool {
    script.contains("no test specified")
}

/// Settings of pytest, or tests that it would find by their names.
fn python(root: &dyn ProjectFiles) -> Vec<Wanted> {
    let settings =
        [("pyproject.toml", "[tool.pytest"), ("setup.cfg", "[tool:pytest]"), ("tox.ini", "[pytest]")];
    let has_settings = |(file, section): &(&str, &str)| {
        root.text(file).lines().any(|line| line.trim_start().starts_with(section))
    };
    let own = ["pytest.ini", "conftest.py", "tests/conftest.py"];
    let places = [("a test in Python", ""), ("tests/", "tests"), ("test/", "test")];
    let said = settings.into_iter().find(has_settings).map(|(file, _)| file);
    let said = said.or_else(|| own.into_iter().find(|file| root.is_file(file)));
    let said = said.or_else(|| {
        places.into_iter().find(|(_, place)| has_tests(&root.names(place))).map(|(name, _)| name)
    });
    said.map(|file| wanted("test", (file, "pytest"), "pytest")).into_iter().collect()
}

/// Whether pytest would find tests in a directory: not below a further one, where anything may lie.
fn has_tests(names: &[String]) -> bool {
    let is_test = |name: &String| {
        name.strip_suffix(".py").is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test"))
    };
    names.iter().any(is_test)
}

fn go(root: &dyn ProjectFiles) -> Vec<Wanted> {
    let file = "go.mod";
    if root.is_file(file) {
        vec![wanted("test", (file, "go"), "go test ./..."), wanted("lint", (file, "go"), "go vet ./...")]
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_installed_is_told_once_and_not_run() {
        let project = tempfile::tempdir().unwrap();
        for file in ["go.mod", "Cargo.toml", "test_a.py"] {
            fs::write(project.path().join(file), "").unwrap();
        }
        fs::write(project.path().join("Makefile"), "test:\n\ttrue\n").unwrap();
        let names = |found: &Found| -> Vec<String> {
            found.checks.iter().map(|check| format!("{}: {}", check.name, check.command)).collect()
        };
        let all = checks(project.path(), |_| true);
        assert_eq!(names(&all), ["test: make test", "lint: go vet ./..."]);
        assert_eq!(all.missing, [""; 0]);
        let few = checks(project.path(), |program| program == "cargo");
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
