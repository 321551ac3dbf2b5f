//! Rules for the source code that the compiler does not check.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use signoff_testkit::source_code::{ItemVisibility, workspace_files};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every Rust file below `directory` with its text.
fn sources(directory: &Path) -> Vec<(PathBuf, String)> {
    files(directory, &["rs"])
}

/// Every file below `directory` with one of these extensions, with its text. A script has the extension "".
fn files(directory: &Path, extensions: &[&str]) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a readable directory") {
        let path = entry.expect("a readable directory").path();
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if path.is_dir() {
            found.extend(files(&path, extensions));
        } else if extensions.contains(&extension) {
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

/// Words that hide the subject of a sentence.
const RIDDLES: [&str; 6] = ["whoever", "somebody", "nobody", "told", "heard", "wish"];

/// Strings that contain such a word because it is serialized: a backend name, and a file of an attempt.
const SERIALIZED: [&str; 2] = ["\"nobody\"", "\"heard.json\""];

fn riddle(text: &str) -> Option<&str> {
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    words.into_iter().find(|word| RIDDLES.contains(&word.to_lowercase().as_str()))
}

#[test]
fn comments_and_messages_are_plain() {
    for file in workspace_files() {
        for comment in &file.comments {
            let found = riddle(&comment.text);
            assert_eq!(found, None, "{}:{}: {}", file.path, comment.line, comment.text.trim());
        }
        let strings = file.strings.iter().filter(|string| !SERIALIZED.contains(&string.text.as_str()));
        for string in strings.filter(|_| file.is_product()) {
            assert_eq!(riddle(&string.text), None, "{}:{}: {}", file.path, string.line, string.text);
        }
    }
}

/// Documents, prompts, presets, scripts, migrations and the files of the page.
#[test]
fn documents_and_prompts_are_plain() {
    let mut all = files(&root().join("docs"), &["md"]);
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        all.push((root().join(name), fs::read_to_string(root().join(name)).expect("a readable file")));
    }
    for (directory, extensions) in [("scripts", [""].as_slice()), ("bench", &["", "sh", "md"])] {
        all.extend(files(&root().join(directory), extensions));
    }
    for krate in fs::read_dir(root().join("crates")).expect("a readable directory") {
        for part in ["src", "assets", "migrations"].map(|part| krate.as_ref().expect("a crate").path().join(part)) {
            if part.exists() {
                all.extend(files(&part, &["md", "toml", "sql", "js", "css"]));
            }
        }
    }
    assert!(all.len() > 80, "only {} files", all.len());
    for (path, text) in all {
        for (number, line) in text.lines().enumerate() {
            // Code may contain serialized words.
            let prose: String = line.split('`').step_by(2).collect();
            assert_eq!(riddle(&prose), None, "{}:{}: {line}", path.display(), number + 1);
        }
    }
}

/// Commands about a task or a run. `view::inbox` decides which one to type next, and `Action` spells it.
const TASK_COMMANDS: [&str; 10] =
    ["work", "retry", "answer", "edit", "land", "merge", "show", "review", "improve", "cancel"];

/// Files that spell such commands themselves: they name no task, or explain an error of git. The list only gets shorter.
const SPELLED_BY_HAND: [&str; 12] = [
    "signoff-engine/src/dispatcher/run_stages.rs",
    "signoff-engine/src/landing/review_coverage.rs",
    "signoff-engine/src/landing/run_branch.rs",
    "signoff-term/src/inbox.rs",
    "signoff-term/src/stats/report.rs",
    "signoff/src/command/decide.rs",
    "signoff/src/command/demo.rs",
    "signoff/src/command/dispute.rs",
    "signoff/src/command/doctor.rs",
    "signoff/src/command/edit.rs",
    "signoff/src/command/export.rs",
    "signoff/src/command/run/resume.rs",
];

#[test]
fn commands_to_type_next_come_from_the_inbox() {
    let spells = |text: &str| {
        let mut words = text
            .split("signoff ")
            .skip(1)
            .map(|rest| rest.split(|letter: char| !letter.is_ascii_lowercase() && letter != '-'));
        words.any(|mut rest| rest.next().is_some_and(|word| TASK_COMMANDS.contains(&word)))
    };
    let mut by_hand = BTreeSet::new();
    for file in workspace_files().iter().filter(|file| file.is_product()) {
        let is_inbox = file.path.starts_with("crates/signoff-core/src/view/inbox");
        let is_apart =
            is_inbox || file.path.starts_with("crates/signoff-testkit/") || file.path == "crates/signoff/src/error.rs";
        let spelled = file.strings.iter().filter(|string| spells(&string.text) && !string.text.contains("Example"));
        by_hand.extend(spelled.filter(|_| !is_apart).map(|_| file.path.clone()));
    }
    let known: BTreeSet<String> = SPELLED_BY_HAND.iter().map(|path| format!("crates/{path}")).collect();
    assert_eq!(by_hand, known, "use `Action` or `NextStep`, and drop a file from the list once it does");
}

#[test]
fn every_module_says_what_it_is() {
    for file in workspace_files() {
        assert!(file.has_module_doc, "{} does not start with a `//!` line", file.path);
    }
}

/// Types that other modules can name: public, `pub(crate)` or `pub(super)`. Private types may share a name.
#[test]
fn public_types_have_unique_names() {
    let mut places: BTreeMap<String, String> = BTreeMap::new();
    for file in workspace_files().iter().filter(|file| file.is_product() && !file.is_wire()) {
        let public = file.types.iter().filter(|item| item.visibility != ItemVisibility::Private);
        for item in public.filter(|item| item.name != "Args") {
            let place = format!("{}:{}", file.path, item.line);
            let other = places.insert(item.name.clone(), place.clone());
            assert_eq!(other, None, "`{}` is also defined at {place}", item.name);
        }
    }
}

#[test]
fn every_variable_set_for_agents_is_documented_in_the_guide() {
    let given = fs::read_to_string(root().join("crates/signoff-engine/src/attempt/environment.rs")).unwrap();
    let guide = fs::read_to_string(root().join("docs/guide/src/agents.md")).unwrap();
    // A variable is set as a pair of its name and its value.
    let names = given.split("(\"").filter_map(|pair| pair.split('"').next());
    for name in names.filter(|name| name.starts_with("SIGNOFF_")) {
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
