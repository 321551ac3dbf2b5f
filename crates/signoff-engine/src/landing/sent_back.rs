//! What a landing sends back: a commit to go on from, and what is wrong with it.
//!
//! It is written down before the loop's branch moves, so that a program that was killed in between is not taken for a
//! foreign commit; and kept until the work has landed, because markers that nobody took out are told from it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use signoff_core::ids::{Commit, ReviewerName};
use signoff_core::machine::{CONFLICT, Head};
use signoff_core::review::{Finding, Severity};

use super::short;
use crate::assignment::Assignment;
use crate::attempt::Workshop;
use crate::error::EngineError;
use crate::git::Conflict;

/// What the merge queue is called where its findings are told.
const SOURCE: &str = "landing";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Back {
    /// The tip of the target.
    pub onto: Commit,
    /// Where the loop's branch goes on.
    pub head: Head,
    pub findings: Vec<Finding>,
    /// The words behind our conflict markers, and the files they were written into; none where checks failed.
    marks: Vec<String>,
    files: Vec<OsString>,
}

impl Back {
    /// Files that both sides changed.
    pub fn of_conflict(
        (shop, task): (&Workshop, &Assignment),
        target: &str,
        (onto, head): (Commit, Head),
        files: &[Conflict],
    ) -> Result<Self, EngineError> {
        let own = &task.state.head.commit;
        let marks = vec![own.to_string(), onto.to_string()];
        let paths: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
        let lines = shop.repository.marked_lines(&head.commit, &marks, &paths)?;
        let sides = Sides { own, onto: &onto, target };
        let findings = files.iter().map(|file| sides.finding(file, lines.get(&file.path).copied())).collect();
        let files = paths.into_iter().map(PathBuf::into_os_string).collect();
        Ok(Self { onto, head, findings, marks, files })
    }

    /// Checks that fail; if anything has landed since the work began at its base, together with that.
    pub fn of_checks(base: &Commit, (onto, head): (Commit, Head), findings: Vec<Finding>) -> Self {
        let why = if onto == *base {
            "the checks fail: ".to_owned()
        } else {
            format!("together with what landed before it ({}), checks fail: ", short(&onto))
        };
        let together = |mut finding: Finding| {
            finding.description = format!("{why}{}", finding.description);
            finding.sources = vec![ReviewerName::new(SOURCE)];
            finding
        };
        let findings = findings.into_iter().map(together).collect();
        Self { onto, head, findings, marks: Vec::new(), files: Vec::new() }
    }

    /// Nothing is wrong with it, but nobody has approved it as it is now.
    pub fn to_look_at(onto: Commit, head: Head) -> Self {
        Self { onto, head, findings: Vec::new(), marks: Vec::new(), files: Vec::new() }
    }

    /// The findings about files that still have the markers which were written into them.
    pub fn unresolved(&self, shop: &Workshop, commit: &Commit) -> Result<Vec<Finding>, EngineError> {
        if self.files.is_empty() {
            return Ok(Vec::new());
        }
        let files: Vec<PathBuf> = self.files.iter().map(PathBuf::from).collect();
        let lines = shop.repository.marked_lines(commit, &self.marks, &files)?;
        // Findings name a file as far as its name is text.
        let lines: BTreeMap<String, u32> =
            lines.iter().map(|(path, line)| (path.to_string_lossy().into_owned(), *line)).collect();
        let still = |finding: &Finding| {
            let line = *lines.get(finding.file.as_deref()?)?;
            let description = format!("conflict markers are left: {}", finding.description);
            Some(Finding { line: Some(line), description, ..finding.clone() })
        };
        Ok(self.findings.iter().filter_map(still).collect())
    }

    /// What was last sent back to a loop.
    pub fn read(shop: &Workshop, task: &Assignment) -> Option<Self> {
        serde_json::from_slice(&fs::read(path(shop, task)).ok()?).ok()
    }

    pub fn write(&self, shop: &Workshop, task: &Assignment) -> Result<(), EngineError> {
        let path = path(shop, task);
        let failed = |error| EngineError::io("write", &path, error);
        let directory = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(directory).map_err(failed)?;
        let draft = path.with_extension("draft");
        let text = serde_json::to_vec(self).map_err(|error| failed(error.into()))?;
        write_synced(&draft, &text).and_then(|()| fs::rename(&draft, &path)).map_err(failed)?;
        File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)
    }

    pub fn forget(shop: &Workshop, task: &Assignment) {
        fs::remove_file(path(shop, task)).ok();
    }
}

fn write_synced(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text)?;
    file.sync_all()
}

fn path(shop: &Workshop, task: &Assignment) -> PathBuf {
    shop.layout.attempts(task.run, &task.loop_id).join("sent_back.json")
}

/// The two sides of a conflict.
struct Sides<'a> {
    own: &'a Commit,
    onto: &'a Commit,
    target: &'a str,
}

impl Sides<'_> {
    fn finding(&self, file: &Conflict, line: Option<u32>) -> Finding {
        let Self { own, onto, target } = self;
        let what = file.what.replace(own.as_str(), "this task").replace(onto.as_str(), target);
        let what = if what.is_empty() { "both sides changed it".to_owned() } else { what };
        let landed = format!("it cannot be merged with what landed on {target} before ({})", short(onto));
        let how = if line.is_some() {
            format!(
                "Between the markers stands first this task's side (<<<<<<< {}), then what landed (>>>>>>> {}). \
                 Edit the file so that it does what both are for, and leave no marker",
                short(own),
                short(onto)
            )
        } else {
            format!(
                "The worktree holds the merge as far as git could make it; `git show {}` and `git show {}` have \
                 the sides. Make of the file what both are for",
                short(own),
                short(onto)
            )
        };
        let description = format!("{landed}: {what}. {how}");
        Finding {
            file: Some(file.path.to_string_lossy().into_owned()),
            line,
            ..Finding::of(&ReviewerName::new(SOURCE), CONFLICT, Severity::Critical, description)
        }
    }
}
