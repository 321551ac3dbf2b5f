//! The examples in the documentation print what the documentation shows, and all links resolve.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use signoff_testkit::console_example::replay;

use crate::test_env;

/// Runs every example of README.md, of docs/*.md and of the guide. `UPDATE_DOCS=1` replaces their output in the
/// documents.
#[test]
fn every_example_prints_what_the_documentation_shows() {
    thread::scope(|scope| {
        for path in documents() {
            scope.spawn(move || check(&path));
        }
    });
}

fn check(path: &Path) {
    let document = fs::read_to_string(path).expect("a readable file");
    let replayed = replay(&document, &test_env());
    if update_wanted() {
        fs::write(path, replayed).expect("a written file");
    } else {
        assert_eq!(first_difference(&document, &replayed), None, "in {}", path.display());
    }
}

#[test]
fn every_link_resolves() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let names = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(|name| root.join(name));
    for path in names.into_iter().chain(documents()) {
        let document = fs::read_to_string(&path).unwrap();
        for link in links(&document) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { path.with_file_name(file) };
            assert!(target.exists(), "{}: {link}", path.display());
            let there = anchor.is_empty() || anchors(&fs::read_to_string(target).unwrap()).any(|one| one == anchor);
            assert!(there, "{}: {link}", path.display());
        }
    }
}

#[test]
fn the_guide_lists_all_of_its_chapters() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/src");
    let summary = fs::read_to_string(source.join("SUMMARY.md")).unwrap();
    let listed: Vec<_> = links(&summary).into_iter().map(|link| source.join(link)).collect();
    for chapter in chapters() {
        let there = chapter.ends_with("SUMMARY.md") || listed.contains(&chapter);
        assert!(there, "SUMMARY.md does not list {}", chapter.display());
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

/// README.md, the documents in docs, and every chapter of the guide.
pub(crate) fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut documents = markdown_in(&root.join("docs"));
    documents.extend(chapters());
    documents.push(root.join("README.md"));
    documents.sort();
    documents
}

/// The chapters of the guide and their list.
fn chapters() -> Vec<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/src");
    let mut chapters = markdown_in(&source);
    chapters.extend(markdown_in(&source.join("reference")));
    chapters
}

fn markdown_in(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a readable directory");
    let paths = entries.map(|entry| entry.expect("a readable directory").path());
    paths.filter(|path| path.extension().is_some_and(|end| end == "md")).collect()
}

#[expect(clippy::disallowed_methods, reason = "asked by whoever runs the test, not by the program")]
fn update_wanted() -> bool {
    std::env::var_os("UPDATE_DOCS").is_some_and(|wanted| wanted == "1")
}
