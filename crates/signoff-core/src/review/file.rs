//! Normalizes file paths in reviews: reviewers write `a.rs`, `./a.rs`, `src/../a.rs` or an absolute path.

use super::{Finding, Review};
use crate::similarity::assign_ids;

/// Converts a path to one relative to the repository root. `roots` are absolute paths: first the reviewer's working
/// directory, then other checkouts of the same repository. A path outside all roots is returned unchanged.
pub fn normalize_path(file: &str, roots: &[&str]) -> String {
    let Some(work) = roots.first() else { return file.to_owned() };
    let slashed = file.replace('\\', "/");
    let absolute = if slashed.starts_with('/') { slashed } else { format!("{work}/{slashed}") };
    let Some(named) = relative_to_longest_root(&absolute, roots) else { return file.to_owned() };
    // Relative to another root, the file may be in the reviewer's working directory.
    let seen_from =
        |root: &&str| strip_root(&resolve_components(&format!("{root}/{named}"))?, &resolve_components(work)?);
    let other = roots.iter().filter(|root| *root != work).find_map(seen_from);
    other.filter(|other| !other.is_empty()).unwrap_or(named)
}

/// Whether a path is inside the repository.
pub fn is_repository_path(file: &str) -> bool {
    let first = file.split('/').next().unwrap_or_default();
    !matches!(first, "" | "." | ".." | "~")
}

/// Makes a path relative to the longest root that contains it.
fn relative_to_longest_root(absolute: &str, roots: &[&str]) -> Option<String> {
    let file = resolve_components(absolute)?;
    let named = roots.iter().filter_map(|root| strip_root(&file, &resolve_components(root)?));
    named.min_by_key(String::len).filter(|named| !named.is_empty())
}

fn strip_root(file: &[&str], root: &[&str]) -> Option<String> {
    Some(file.strip_prefix(root)?.join("/"))
}

/// The path components with `.` and `..` resolved; none if the path leads above the top.
fn resolve_components(absolute: &str) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    for part in absolute.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts)
}

/// Normalizes the files of findings and updates the ids of the findings accordingly.
pub fn normalize_files(findings: &mut [Finding], roots: &[&str]) {
    let mut is_new = false;
    for finding in findings.iter_mut() {
        let Some(file) = &mut finding.file else { continue };
        let named = normalize_path(file, roots);
        is_new |= named != *file;
        *file = named;
    }
    if !is_new {
        return;
    }
    // Findings without a file keep their ids: no finding with a file can have the same one.
    let mut placed: Vec<Finding> = findings.iter().filter(|one| one.file.is_some()).cloned().collect();
    assign_ids(&mut placed);
    for (finding, named) in findings.iter_mut().filter(|one| one.file.is_some()).zip(placed) {
        finding.id = named.id;
    }
}

impl Review {
    /// Returns this review with normalized file paths.
    #[must_use]
    pub fn with_normalized_files(mut self, roots: &[&str]) -> Self {
        normalize_files(&mut self.findings, roots);
        for note in &mut self.minor {
            note.file = note.file.take().map(|file| normalize_path(&file, roots));
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::Severity;

    const ROOTS: [&str; 2] = ["/home/me/work/.signoff/worktrees/task-1", "/home/me/work"];

    #[test]
    fn every_spelling_of_a_file_is_one_name() {
        for spelling in [
            "src/a.rs",
            "./src/a.rs",
            "././src//a.rs",
            "src/../src/./a.rs",
            "src\\a.rs",
            "/home/me/work/.signoff/worktrees/task-1/src/a.rs",
            "/home/me/work/.signoff/worktrees/task-1/./b/../src/a.rs",
            "/home/me/work/src/a.rs",
            ".signoff/worktrees/task-1/src/a.rs",
            "../task-1/src/a.rs",
            "../../../src/a.rs",
        ] {
            assert_eq!(normalize_path(spelling, &ROOTS), "src/a.rs", "{spelling}");
        }
    }

    #[test]
    fn paths_outside_the_roots_stay_unchanged() {
        for outside in ["/etc/passwd", "/home/me/worker/a.rs", "../../../../a.rs", "../../../../../../../../a", "."] {
            assert_eq!(normalize_path(outside, &ROOTS), outside);
            assert!(!is_repository_path(outside), "{outside}");
        }
        assert_eq!(normalize_path("./a.rs", &[]), "./a.rs");
        assert!([".github/a.yml", "..a", "~a", "a"].into_iter().all(is_repository_path));
    }

    #[test]
    fn normalizing_is_idempotent() {
        for file in ["./a/../b.rs", "/etc/passwd", "/home/me/work/a", ".signoff/worktrees/task-1/a", "..", ""] {
            let once = normalize_path(file, &ROOTS);
            assert_eq!(normalize_path(&once, &ROOTS), once, "{file}");
        }
    }

    #[test]
    fn ids_follow_the_normalized_path() {
        let found = |file: &str, line| {
            let mut finding = Finding::new(&"r".into(), "bug", Severity::Critical, "It is wrong.");
            (finding.file, finding.line) = (Some(file.to_owned()), Some(line));
            finding
        };
        let mut plain = vec![found("a.rs", 1), found("a.rs", 2)];
        assign_ids(&mut plain);
        let mut spelled = vec![found("/home/me/work/a.rs", 1), found("x/../a.rs", 2)];
        assign_ids(&mut spelled);
        normalize_files(&mut spelled, &ROOTS);
        assert_eq!(spelled, plain);
    }
}
