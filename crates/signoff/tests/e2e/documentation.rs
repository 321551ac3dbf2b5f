//! The examples in the documentation print what the documentation shows, and all links resolve.

use std::fs;
use std::path::{Path, PathBuf};

use signoff_testkit::console_example::{MarkdownBlock, blocks, replay};

use crate::test_env;

/// A test for each document with examples, so that they run in parallel. `UPDATE_DOCS=1` replaces the output in the
/// documents.
macro_rules! test_examples {
    ($($name:ident in $path:literal),+ $(,)?) => {
        /// The documents with examples.
        const WITH_EXAMPLES: &[&str] = &[$($path),+];

        mod examples {
            $(
                #[test]
                fn $name() {
                    super::check_examples($path);
                }
            )+
        }
    };
}

test_examples! {
    agents in "docs/guide/src/agents.md",
    by_hand in "docs/guide/src/by-hand.md",
    ci in "docs/guide/src/ci.md",
    configuration in "docs/guide/src/reference/configuration.md",
    contracts in "docs/guide/src/reference/contracts.md",
    everyday in "docs/guide/src/everyday.md",
    first_run in "docs/guide/src/first-run.md",
    json in "docs/guide/src/reference/json.md",
    landing in "docs/guide/src/landing.md",
    loops in "docs/guide/src/loops.md",
    phases in "docs/guide/src/phases.md",
    plans in "docs/guide/src/plans.md",
    policies in "docs/guide/src/policies.md",
    questions in "docs/guide/src/questions.md",
    readme in "README.md",
    reports in "docs/guide/src/reports.md",
    troubleshooting in "docs/guide/src/troubleshooting.md",
    watching in "docs/guide/src/watching.md",
    workflows in "docs/guide/src/reference/workflows.md",
}

fn check_examples(path: &str) {
    let path = root().join(path);
    let document = fs::read_to_string(&path).expect("a readable file");
    let replayed = replay(&document, &test_env());
    if update_wanted() {
        fs::write(path, replayed).expect("a written file");
    } else {
        assert_eq!(first_difference(&document, &replayed), None, "in {}", path.display());
    }
}

#[test]
fn every_document_with_examples_has_a_test() {
    for path in documents() {
        let document = fs::read_to_string(&path).unwrap();
        let runs = |block| matches!(block, MarkdownBlock::Fence(fence) if fence.language() == "console");
        let listed = WITH_EXAMPLES.iter().any(|listed| path == root().join(listed));
        assert_eq!(blocks(&document).into_iter().any(runs), listed, "test_examples! and {}", path.display());
    }
}

#[test]
fn every_link_resolves() {
    let root = root();
    let names = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(|name| root.join(name));
    for path in names.into_iter().chain(documents()) {
        let document = fs::read_to_string(&path).unwrap();
        for link in links(&document) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { path.with_file_name(file) };
            assert!(target.exists(), "{}: {link}", path.display());
            let exists = anchor.is_empty() || anchors(&fs::read_to_string(target).unwrap()).any(|name| name == anchor);
            assert!(exists, "{}: {link}", path.display());
        }
    }
}

#[test]
fn the_guide_lists_all_of_its_chapters() {
    let source = root().join("docs/guide/src");
    let summary = fs::read_to_string(source.join("SUMMARY.md")).unwrap();
    let listed: Vec<_> = links(&summary).into_iter().map(|link| source.join(link)).collect();
    for chapter in chapters() {
        let is_listed = chapter.ends_with("SUMMARY.md") || listed.contains(&chapter);
        assert!(is_listed, "SUMMARY.md does not list {}", chapter.display());
    }
}

/// The targets of a document's links within this repository.
fn links(document: &str) -> Vec<&str> {
    let after = document.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    after.filter(|link| !link.starts_with("http")).collect()
}

/// The anchors of a document's headings.
fn anchors(document: &str) -> impl Iterator<Item = String> {
    let headings = document.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| {
        let words = line.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

/// The first line that differs: its number, the documented line, the printed line.
fn first_difference<'a>(document: &'a str, replayed: &'a str) -> Option<(usize, &'a str, &'a str)> {
    let length = document.lines().count().max(replayed.lines().count());
    let shown = document.lines().chain(std::iter::repeat("[end]"));
    let printed = replayed.lines().chain(std::iter::repeat("[end]"));
    let lines = shown.zip(printed).take(length).zip(1..);
    lines.map(|((shown, printed), number)| (number, shown, printed)).find(|(_, shown, printed)| shown != printed)
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README.md, the documents in docs, and every chapter of the guide.
pub(crate) fn documents() -> Vec<PathBuf> {
    let root = root();
    let mut documents = markdown_in(&root.join("docs"));
    documents.extend(chapters());
    documents.push(root.join("README.md"));
    documents.sort();
    documents
}

/// The chapters of the guide and their list.
fn chapters() -> Vec<PathBuf> {
    let source = root().join("docs/guide/src");
    let mut chapters = markdown_in(&source);
    chapters.extend(markdown_in(&source.join("reference")));
    chapters
}

fn markdown_in(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a readable directory");
    let paths = entries.map(|entry| entry.expect("a readable directory").path());
    paths.filter(|path| path.extension().is_some_and(|end| end == "md")).collect()
}

#[expect(clippy::disallowed_methods, reason = "set by the person who runs the test")]
fn update_wanted() -> bool {
    std::env::var_os("UPDATE_DOCS").is_some_and(|wanted| wanted == "1")
}
