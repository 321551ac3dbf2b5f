//! One name for each file: reviewers write `a.rs`, `./a.rs`, `src/../a.rs` or where it is on their disk.

use super::{Finding, Review};
use crate::similarity::assign_ids;

/// The name of a file from the root of its repository. `roots` are absolute: first where the reviewer worked, then where
/// else the same files are. What is in none of them stays as it is.
pub fn normal(file: &str, roots: &[&str]) -> String {
    let Some(work) = roots.first() else { return file.to_owned() };
    let slashed = file.replace('\\', "/");
    let absolute = if slashed.starts_with('/') { slashed } else { format!("{work}/{slashed}") };
    let Some(named) = below_a_root(&absolute, roots) else { return file.to_owned() };
    // Seen from another root it may be where the reviewer worked.
    let seen_from = |root: &&str| below(&parts(&format!("{root}/{named}"))?, &parts(work)?);
    let other = roots.iter().filter(|root| *root != work).find_map(seen_from);
    other.filter(|other| !other.is_empty()).unwrap_or(named)
}

/// Whether a finding's file can be told apart from others: it is in the repository.
pub fn is_inside(file: &str) -> bool {
    let first = file.split('/').next().unwrap_or_default();
    !matches!(first, "" | "." | ".." | "~")
}

/// The same from the longest root it is below.
fn below_a_root(absolute: &str, roots: &[&str]) -> Option<String> {
    let file = parts(absolute)?;
    let named = roots.iter().filter_map(|root| below(&file, &parts(root)?));
    named.min_by_key(String::len).filter(|named| !named.is_empty())
}

fn below(file: &[&str], root: &[&str]) -> Option<String> {
    Some(file.strip_prefix(root)?.join("/"))
}

/// The names that lead to a file from the top; none if it leads above that.
fn parts(absolute: &str) -> Option<Vec<&str>> {
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

/// Gives all files of findings their one name, and the findings the ids that go with it.
pub fn name_files(findings: &mut [Finding], roots: &[&str]) {
    let mut is_new = false;
    for finding in findings.iter_mut() {
        let Some(file) = &mut finding.file else { continue };
        let named = normal(file, roots);
        is_new |= named != *file;
        *file = named;
    }
    if !is_new {
        return;
    }
    // Nobody else's id can be that of one with a file.
    let mut placed: Vec<Finding> = findings.iter().filter(|one| one.file.is_some()).cloned().collect();
    assign_ids(&mut placed);
    for (finding, named) in findings.iter_mut().filter(|one| one.file.is_some()).zip(placed) {
        finding.id = named.id;
    }
}

impl Review {
    /// The same with one name for each file.
    #[must_use]
    pub fn with_files_from(mut self, roots: &[&str]) -> Self {
        name_files(&mut self.findings, roots);
        for note in &mut self.minor {
            note.file = note.file.take().map(|file| normal(&file, roots));
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
            assert_eq!(normal(spelling, &ROOTS), "src/a.rs", "{spelling}");
        }
    }

    #[test]
    fn what_is_outside_stays_as_it_is_and_is_no_file_of_ours() {
        for outside in
            ["/etc/passwd", "/home/me/worker/a.rs", "../../../../a.rs", "../../../../../../../../a", "."]
        {
            assert_eq!(normal(outside, &ROOTS), outside);
            assert!(!is_inside(outside), "{outside}");
        }
        assert_eq!(normal("./a.rs", &[]), "./a.rs");
        assert!([".github/a.yml", "..a", "~a", "a"].into_iter().all(is_inside));
    }

    #[test]
    fn naming_twice_is_naming_once() {
        for file in ["./a/../b.rs", "/etc/passwd", "/home/me/work/a", ".signoff/worktrees/task-1/a", "..", ""]
        {
            let once = normal(file, &ROOTS);
            assert_eq!(normal(&once, &ROOTS), once, "{file}");
        }
    }

    #[test]
    fn the_id_is_that_of_the_name() {
        let found = |file: &str, line| {
            let mut one = Finding::of(&"r".into(), "bug", Severity::Critical, "It is wrong.");
            (one.file, one.line) = (Some(file.to_owned()), Some(line));
            one
        };
        let mut plain = vec![found("a.rs", 1), found("a.rs", 2)];
        assign_ids(&mut plain);
        let mut spelled = vec![found("/home/me/work/a.rs", 1), found("x/../a.rs", 2)];
        assign_ids(&mut spelled);
        name_files(&mut spelled, &ROOTS);
        assert_eq!(spelled, plain);
    }
}
