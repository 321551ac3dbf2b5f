//! A rejected landing: the commit to continue from, and its findings.
//!
//! It is written to a file before the loop's branch moves, so that a restarted process recognises its own commit. It is
//! kept until the work has landed, to detect conflict markers that are left.

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
use crate::attempt::EngineContext;
use crate::attempt_spec::AttemptSpec;
use crate::error::EngineError;
use crate::git::GitConflict;

/// The source of landing findings.
const SOURCE: &str = "landing";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RejectedLanding {
    /// The tip of the target.
    pub onto: Commit,
    /// The new head of the loop's branch.
    pub head: Head,
    pub findings: Vec<Finding>,
    /// The labels of the conflict markers, and the files with markers; empty if checks failed.
    marks: Vec<String>,
    files: Vec<OsString>,
}

impl RejectedLanding {
    /// Rejects work that conflicts with the target.
    pub fn from_conflict(
        (ctx, spec): (&EngineContext, &AttemptSpec),
        target: &str,
        (onto, head): (Commit, Head),
        files: &[GitConflict],
    ) -> Result<Self, EngineError> {
        let own = &spec.machine.head.commit;
        let marks = vec![own.to_string(), onto.to_string()];
        let paths: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
        let lines = ctx.repository.conflict_marker_lines(&head.commit, &marks, &paths)?;
        let sides = Sides { own, onto: &onto, target };
        let findings = files.iter().map(|file| sides.finding(file, lines.get(&file.path).copied())).collect();
        let files = paths.into_iter().map(PathBuf::into_os_string).collect();
        Ok(Self { onto, head, findings, marks, files })
    }

    /// Rejects work that fails checks, alone or together with what landed since its base.
    pub fn from_checks(base: &Commit, (onto, head): (Commit, Head), findings: Vec<Finding>) -> Self {
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

    /// Sends work back to its reviewers: it has no findings, but its current form is not approved.
    pub fn for_rereview(onto: Commit, head: Head) -> Self {
        Self { onto, head, findings: Vec::new(), marks: Vec::new(), files: Vec::new() }
    }

    /// The findings about files that still contain conflict markers.
    pub fn unresolved(&self, ctx: &EngineContext, commit: &Commit) -> Result<Vec<Finding>, EngineError> {
        if self.files.is_empty() {
            return Ok(Vec::new());
        }
        let files: Vec<PathBuf> = self.files.iter().map(PathBuf::from).collect();
        let lines = ctx.repository.conflict_marker_lines(commit, &self.marks, &files)?;
        // Findings contain file names as lossy text.
        let lines: BTreeMap<String, u32> =
            lines.iter().map(|(path, line)| (path.to_string_lossy().into_owned(), *line)).collect();
        let still = |finding: &Finding| {
            let line = *lines.get(finding.file.as_deref()?)?;
            let description = format!("conflict markers are left: {}", finding.description);
            Some(Finding { line: Some(line), description, ..finding.clone() })
        };
        Ok(self.findings.iter().filter_map(still).collect())
    }

    /// The last rejection of a loop.
    pub fn read(ctx: &EngineContext, spec: &AttemptSpec) -> Option<Self> {
        serde_json::from_slice(&fs::read(path(ctx, spec)).ok()?).ok()
    }

    pub fn write(&self, ctx: &EngineContext, spec: &AttemptSpec) -> Result<(), EngineError> {
        let path = path(ctx, spec);
        let failed = |error| EngineError::io("write", &path, error);
        let directory = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(directory).map_err(failed)?;
        let draft = path.with_extension("draft");
        let text = serde_json::to_vec(self).map_err(|error| failed(error.into()))?;
        write_synced(&draft, &text).and_then(|()| fs::rename(&draft, &path)).map_err(failed)?;
        File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)
    }

    pub fn remove(ctx: &EngineContext, spec: &AttemptSpec) {
        fs::remove_file(path(ctx, spec)).ok();
    }
}

fn write_synced(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text)?;
    file.sync_all()
}

fn path(ctx: &EngineContext, spec: &AttemptSpec) -> PathBuf {
    ctx.layout.attempts(spec.run, &spec.loop_id).join("sent_back.json")
}

/// The two sides of a conflict.
struct Sides<'a> {
    own: &'a Commit,
    onto: &'a Commit,
    target: &'a str,
}

impl Sides<'_> {
    fn finding(&self, file: &GitConflict, line: Option<u32>) -> Finding {
        let Self { own, onto, target } = self;
        let what = file.message.replace(own.as_str(), "this task").replace(onto.as_str(), target);
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
            ..Finding::new(&ReviewerName::new(SOURCE), CONFLICT, Severity::Critical, description)
        }
    }
}
