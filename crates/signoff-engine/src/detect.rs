//! Finds the commands that judge a project, where nobody configured any: its tests and its linter.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// A command that judges the work by its exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detected {
    pub name: &'static str,
    pub command: String,
}

/// More of a file is not read: whoever needs more to say how it is tested did not write it by hand.
const LONGEST: u64 = 1 << 20;

/// The checks of a project, each name once: what a Makefile says comes before what a tool would do.
///
/// A file that cannot be read says nothing. Agents write these files too, so only plain ones are opened.
pub fn checks(root: &Path) -> Vec<Detected> {
    let mut found: Vec<Detected> = Vec::new();
    for check in [makefile(root), cargo(root), node(root), python(root), go(root)].concat() {
        if !found.iter().any(|known| known.name == check.name) {
            found.push(check);
        }
    }
    found
}

fn check(name: &'static str, command: impl Into<String>) -> Detected {
    Detected { name, command: command.into() }
}

fn text(path: &Path) -> String {
    let mut bytes = Vec::new();
    if fs::metadata(path).is_ok_and(|data| data.is_file())
        && let Ok(file) = File::open(path)
    {
        // What was read before it failed is as good as a file that ends there.
        let _ = file.take(LONGEST).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `check` is what others call `test`; where there are both, one usually runs the other.
fn makefile(root: &Path) -> Vec<Detected> {
    let names = ["GNUmakefile", "makefile", "Makefile"];
    let Some(text) = names.map(|name| text(&root.join(name))).into_iter().find(|text| !text.is_empty())
    else {
        return Vec::new();
    };
    let has = |name: &str| text.lines().any(|line| is_rule(line, name));
    let tests = ["test", "check"].into_iter().find(|name| has(name));
    let lint = Some("lint").filter(|name| has(name));
    tests.into_iter().chain(lint).map(|name| check(name, format!("make {name}"))).collect()
}

/// Whether a line of a Makefile says how to make the target: not a recipe, not a variable.
fn is_rule(line: &str, target: &str) -> bool {
    let Some((targets, rest)) = line.split_once(':') else { return false };
    let is_variable = rest.trim_start_matches(':').starts_with('=');
    !line.starts_with([' ', '\t', '#'])
        && !is_variable
        && targets.split_whitespace().any(|word| word == target)
}

fn cargo(root: &Path) -> Vec<Detected> {
    let there = root.join("Cargo.toml").is_file();
    there.then(|| check("test", "cargo test")).into_iter().collect()
}

fn node(root: &Path) -> Vec<Detected> {
    let package: serde_json::Value =
        serde_json::from_str(&text(&root.join("package.json"))).unwrap_or_default();
    let script = |name: &str| package["scripts"][name].as_str().filter(|script| !is_placeholder(script));
    let tools = [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun")];
    let tool = tools.iter().find(|(lock, _)| root.join(lock).is_file()).map_or("npm", |(_, tool)| tool);
    let names = ["test", "lint"].into_iter().filter(|name| script(name).is_some());
    names.map(|name| check(name, format!("{tool} run {name}"))).collect()
}

/// What `npm init` writes fails always.
fn is_placeholder(script: &str) -> bool {
    script.contains("no test specified")
}

fn python(root: &Path) -> Vec<Detected> {
    let configured = text(&root.join("pyproject.toml")).contains("[tool.pytest")
        || ["pytest.ini", "conftest.py", "tests/conftest.py"].iter().any(|file| root.join(file).is_file());
    configured.then(|| check("test", "pytest")).into_iter().collect()
}

fn go(root: &Path) -> Vec<Detected> {
    if root.join("go.mod").is_file() {
        vec![check("test", "go test ./..."), check("lint", "go vet ./...")]
    } else {
        Vec::new()
    }
}
