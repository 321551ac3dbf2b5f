//! Laws of the house that no compiler checks.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every Rust file below `directory` with its text.
fn sources(directory: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a readable file") {
        let path = entry.expect("a readable file").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push((path.clone(), fs::read_to_string(&path).expect("a readable file")));
        }
    }
    found
}

/// What would let the outside world into a decision.
const IMPURE: [&str; 16] = [
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "SystemTime",
    "stdin()",
    "stdout()",
    "stderr()",
    "print!",
    "println!",
    "Timestamp::now",
    "Zoned::now",
    "tokio",
    "RandomState",
];

#[test]
fn the_core_is_pure() {
    let core = root().join("crates/signoff-core/src");
    for (path, text) in sources(&core) {
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for (number, line) in code.enumerate() {
            let impure = IMPURE.iter().find(|word| line.contains(**word));
            assert_eq!(impure, None, "{} around line {}: {line}", path.display(), number + 1);
        }
    }
}

#[test]
fn the_core_depends_on_nothing_that_touches_the_world() {
    let manifest = fs::read_to_string(root().join("crates/signoff-core/Cargo.toml")).unwrap();
    let dependencies = manifest.split("\n[").find(|table| table.starts_with("dependencies]")).unwrap();
    let names: Vec<_> =
        dependencies.lines().skip(1).filter_map(|line| line.split(['.', ' ', '=']).next()).collect();
    let known = [
        "jiff",
        "pulldown-cmark",
        "quick-xml",
        "saphyr-parser",
        "schemars",
        "serde",
        "serde_json",
        "sha2",
        "thiserror",
        "toml",
        "toml_edit",
        "url",
        "",
    ];
    for name in names {
        assert!(known.contains(&name), "{name} is new: it must be as pure as the core, then add it here");
    }
}

#[test]
fn the_map_names_every_module() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for (name, heading) in [
        ("core", "## The core, module"),
        ("store", "## The store, module"),
        ("engine", "## The engine, module"),
        ("term", "## The terminal crate, module"),
        ("serve", "## The server, module"),
    ] {
        let section =
            map.split_once(heading).map_or("", |(_, rest)| rest.split("\n## ").next().unwrap_or(""));
        let modules = modules(name);
        for module in &modules {
            let row = format!("\n| `{module}` |");
            assert!(section.contains(&row), "ARCHITECTURE.md does not know `{module}` of signoff-{name}");
        }
        for named in section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()) {
            let there = named == "lib.rs" || modules.iter().any(|module| module == named);
            assert!(there, "ARCHITECTURE.md names `{named}`, which signoff-{name} does not have");
        }
    }
}

/// The modules of a crate, by its file.
fn modules(name: &str) -> Vec<String> {
    let lib = fs::read_to_string(root().join(format!("crates/signoff-{name}/src/lib.rs")))
        .expect("a readable file");
    let module = |line: &str| {
        let line = line.strip_prefix("pub ").unwrap_or(line);
        Some(line.strip_prefix("mod ")?.strip_suffix(';')?.to_owned())
    };
    lib.lines().filter_map(module).collect()
}

#[test]
fn every_variable_an_agent_is_given_stands_in_the_guide() {
    let given = fs::read_to_string(root().join("crates/signoff-engine/src/attempt/environment.rs")).unwrap();
    let guide = fs::read_to_string(root().join("docs/guide/src/agents.md")).unwrap();
    let names = given.split('"').filter(|word| word.starts_with("SIGNOFF_"));
    for name in names {
        assert!(guide.contains(&format!("`{name}`")), "docs/guide/src/agents.md does not know {name}");
    }
}

#[test]
fn main_stays_small_and_modules_lie_beside_their_folder() {
    let main = fs::read_to_string(root().join("crates/signoff/src/main.rs")).unwrap();
    assert!(main.lines().count() <= 20, "main.rs has {} lines", main.lines().count());
    for (path, _) in sources(&root().join("crates")) {
        assert!(!path.ends_with("mod.rs"), "{} should be named after its module", path.display());
    }
}
