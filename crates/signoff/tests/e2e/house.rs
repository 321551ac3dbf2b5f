//! Rules for the source code that the compiler does not check. Those for names and words are in the testkit's
//! `tests/source_rules.rs`.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every Rust file below `directory` with its text.
fn sources(directory: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a readable directory") {
        let path = entry.expect("a readable directory").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push((path.clone(), fs::read_to_string(&path).expect("a readable file")));
        }
    }
    found
}

/// Items that read from or write to the outside world.
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
fn the_core_depends_on_no_crate_with_side_effects() {
    let manifest = fs::read_to_string(root().join("crates/signoff-core/Cargo.toml")).unwrap();
    let dependencies = manifest.split("\n[").find(|table| table.starts_with("dependencies]")).unwrap();
    let names: Vec<_> = dependencies.lines().skip(1).filter_map(|line| line.split(['.', ' ', '=']).next()).collect();
    let known = [
        "jiff",
        // Reads files only through a loader. The core sets none: its templates are embedded.
        "minijinja",
        "pulldown-cmark",
        "quick-xml",
        "saphyr-parser",
        "schemars",
        "serde",
        "serde_json",
        "sha2",
        "strum",
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
fn the_map_is_short_and_names_files_that_exist() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let words = map.split_whitespace().count();
    assert!(words <= 1500, "ARCHITECTURE.md has {words} words");
    let quoted = map.split('`').skip(1).step_by(2);
    for path in quoted.filter(|text| text.contains("/src") || text.starts_with("crates/")) {
        let place = path.trim_end_matches('/');
        let is_there = ["", "crates/", "crates/signoff-"].iter().any(|prefix| {
            let path = root().join(format!("{prefix}{place}"));
            path.exists() || path.with_extension("rs").exists()
        });
        assert!(is_there, "ARCHITECTURE.md names `{path}`, which does not exist");
    }
    for name in [
        "task",
        "run",
        "loop",
        "cycle",
        "pass",
        "phase",
        "gate",
        "attempt",
        "finding",
        "review",
        "checkpoint",
        "landing",
    ] {
        assert!(map.contains(&format!("**{name}**")), "the glossary of ARCHITECTURE.md lacks `{name}`");
    }
}

#[test]
fn the_recipes_name_files_that_exist() {
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    // Upper-case words such as `NAME` are placeholders.
    let is_placeholder = |part: &str| part.starts_with(|letter: char| letter.is_ascii_uppercase());
    let paths = text.split('`').filter(|text| text.starts_with("crates/") && !text.split('/').any(is_placeholder));
    for path in paths {
        assert!(root().join(path).exists(), "CONTRIBUTING.md names `{path}`, which does not exist");
    }
}

#[test]
fn every_variable_set_for_agents_is_documented_in_the_guide() {
    const PREFIX: &str = "SIGNOFF_";
    let given = fs::read_to_string(root().join("crates/signoff-engine/src/attempt/environment.rs")).unwrap();
    let guide = fs::read_to_string(root().join("docs/guide/src/agents.md")).unwrap();
    // A variable is set as a pair of its name and its value.
    let names = given.split("(\"").filter_map(|pair| pair.split('"').next());
    for name in names.filter(|name| name.len() > PREFIX.len() && name.starts_with(PREFIX)) {
        assert!(guide.contains(&format!("`{name}`")), "docs/guide/src/agents.md does not know {name}");
    }
}

#[test]
fn main_stays_small_and_modules_are_beside_their_folder() {
    let main = fs::read_to_string(root().join("crates/signoff/src/main.rs")).unwrap();
    assert!(main.lines().count() <= 25, "main.rs has {} lines", main.lines().count());
    for (path, _) in sources(&root().join("crates")) {
        assert!(!path.ends_with("mod.rs"), "{} should be named after its module", path.display());
    }
}

/// Cargo would ignore a test file without a `mod` line: the crates have one test binary each.
#[test]
fn every_test_module_is_declared() {
    for krate in fs::read_dir(root().join("crates")).expect("a readable directory") {
        let tests = krate.expect("a readable directory").path().join("tests");
        let Ok(main) = fs::read_to_string(tests.join("main.rs")) else { continue };
        for entry in fs::read_dir(&tests).expect("a readable directory") {
            let path = entry.expect("a readable directory").path();
            let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
            let declared = main.lines().any(|line| line.ends_with(&format!("mod {name};")));
            let known = declared || ["main", "snapshots"].contains(&name.as_str());
            assert!(known, "{} has no `mod` line in tests/main.rs", path.display());
        }
    }
}
