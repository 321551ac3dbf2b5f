//! Finds the commands that judge a project: its tests and its linter.

use std::path::Path;

use crate::door;
use crate::failure::Failure;
use signoff_term::json::Check;

/// The checks of a project, each name once: what a Makefile says comes before what a tool would do.
pub fn find(root: &Path) -> Result<Vec<Check>, Failure> {
    let mut found: Vec<Check> = Vec::new();
    for check in [makefile(root)?, cargo(root), node(root)?, python(root)?, go(root)].concat() {
        if !found.iter().any(|known| known.name == check.name) {
            found.push(check);
        }
    }
    Ok(found)
}

fn check(name: &'static str, command: impl Into<String>) -> Check {
    Check { name, command: command.into() }
}

fn text(path: &Path) -> Result<String, Failure> {
    let bytes = door::read_if_there(path)?.unwrap_or_default();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn makefile(root: &Path) -> Result<Vec<Check>, Failure> {
    let text = text(&root.join("Makefile"))?;
    let is_target = |name: &str| {
        text.lines().any(|line| {
            let rest = line.strip_prefix(name).map(str::trim_start);
            rest.is_some_and(|rest| rest.starts_with(':') && !rest.starts_with(":="))
        })
    };
    let names = ["test", "lint"].into_iter().filter(|name| is_target(name));
    Ok(names.map(|name| check(name, format!("make {name}"))).collect())
}

fn cargo(root: &Path) -> Vec<Check> {
    let there = root.join("Cargo.toml").is_file();
    there.then(|| check("test", "cargo test")).into_iter().collect()
}

fn node(root: &Path) -> Result<Vec<Check>, Failure> {
    let package: serde_json::Value =
        serde_json::from_str(&text(&root.join("package.json"))?).unwrap_or_default();
    let script = |name: &str| package["scripts"][name].as_str().filter(|script| !is_placeholder(script));
    let tools = [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun")];
    let tool = tools.iter().find(|(lock, _)| root.join(lock).is_file()).map_or("npm", |(_, tool)| tool);
    let names = ["test", "lint"].into_iter().filter(|name| script(name).is_some());
    Ok(names.map(|name| check(name, format!("{tool} run {name}"))).collect())
}

/// What `npm init` writes fails always.
fn is_placeholder(script: &str) -> bool {
    script.contains("no test specified")
}

fn python(root: &Path) -> Result<Vec<Check>, Failure> {
    let configured = text(&root.join("pyproject.toml"))?.contains("[tool.pytest")
        || ["pytest.ini", "conftest.py", "tests/conftest.py"].iter().any(|file| root.join(file).is_file());
    Ok(configured.then(|| check("test", "pytest")).into_iter().collect())
}

fn go(root: &Path) -> Vec<Check> {
    if root.join("go.mod").is_file() {
        vec![check("test", "go test ./..."), check("lint", "go vet ./...")]
    } else {
        Vec::new()
    }
}
