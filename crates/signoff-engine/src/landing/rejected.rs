//! The checks of a merge before it lands, and a rejected landing: the commit to continue from, and its findings.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use signoff_core::checks::compare_with_base;
use signoff_core::ids::{Commit, ReviewerName};
use signoff_core::machine::{AttemptFailure, CONFLICT, Head};
use signoff_core::review::{Finding, Severity};

use super::land_commit::{LandingProgress, LandingRequest, LandingResult, ProgressCallback};
use super::short;
use crate::attempt::{self, BaseCheckRequest, CheckOptions, EngineContext};
use crate::error::EngineError;
use crate::failpoint;
use crate::git::{GitConflict, Repository};
use crate::process::{AttemptDir, ProcessLaunch};

/// The source of landing findings.
const SOURCE: &str = "landing";

/// A merge of a loop's work with its target that has conflicts.
pub struct ConflictingMerge<'a> {
    /// The commit to land.
    pub own: &'a Commit,
    pub target: &'a str,
    /// The tip of the target.
    pub onto: Commit,
    /// The merge with its conflict markers.
    pub head: Head,
    pub files: Vec<GitConflict>,
}

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
    pub fn from_conflict(repository: &Repository, merge: ConflictingMerge<'_>) -> Result<Self, EngineError> {
        let marks = vec![merge.own.to_string(), merge.onto.to_string()];
        let paths: Vec<PathBuf> = merge.files.iter().map(|file| file.path.clone()).collect();
        let lines = repository.conflict_marker_lines(&merge.head.commit, &marks, &paths)?;
        let findings = merge.files.iter().map(|file| merge.finding(file, lines.get(&file.path).copied())).collect();
        let files = paths.into_iter().map(PathBuf::into_os_string).collect();
        Ok(Self { onto: merge.onto, head: merge.head, findings, marks, files })
    }

    /// Rejects work that fails checks, alone or together with what landed since its base.
    pub fn from_checks(base: &Commit, onto: Commit, head: Head, findings: Vec<Finding>) -> Self {
        let reason = if onto == *base {
            "the checks fail: ".to_owned()
        } else {
            format!("together with what landed before it ({}), checks fail: ", short(&onto))
        };
        let together = |mut finding: Finding| {
            finding.description = format!("{reason}{}", finding.description);
            finding.sources = vec![ReviewerName::new(SOURCE)];
            finding
        };
        let findings = findings.into_iter().map(together).collect();
        Self { findings, ..Self::for_rereview(onto, head) }
    }

    /// Sends work back to its reviewers: it has no findings, but its current form is not approved.
    pub fn for_rereview(onto: Commit, head: Head) -> Self {
        Self { onto, head, findings: Vec::new(), marks: Vec::new(), files: Vec::new() }
    }

    /// The findings about files that still contain conflict markers.
    pub fn unresolved(&self, repository: &Repository, commit: &Commit) -> Result<Vec<Finding>, EngineError> {
        if self.files.is_empty() {
            return Ok(Vec::new());
        }
        let files: Vec<PathBuf> = self.files.iter().map(PathBuf::from).collect();
        let lines = repository.conflict_marker_lines(commit, &self.marks, &files)?;
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
}

impl ConflictingMerge<'_> {
    fn finding(&self, file: &GitConflict, line: Option<u32>) -> Finding {
        let Self { own, onto, target, .. } = self;
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

/// The merge to check.
#[derive(Debug, Clone, Copy)]
pub struct CheckedMerge<'a> {
    pub head: &'a Head,
    /// The target's commit.
    pub onto: &'a Commit,
    /// Number of earlier runs of the checks.
    pub earlier_runs: usize,
}

/// Runs the checks on a merge, in the worktree reserved for landing. Returns the result of the landing unless they
/// pass. A failure that the target has too is reported as a note and does not count.
pub async fn check_merge(
    ctx: &Arc<EngineContext>,
    request: &LandingRequest,
    merge: CheckedMerge<'_>,
    progress: ProgressCallback<'_>,
) -> Result<Option<LandingResult>, EngineError> {
    if ctx.settings.checks().is_empty() {
        return Ok(None);
    }
    // Each run has its own directory; a restart looks for the supervisor in the first one.
    let directory = &request.directory;
    let path = match merge.earlier_runs {
        0 => directory.clone(),
        again => directory.join(format!("again-{again}")),
    };
    let dir = AttemptDir::new(path);
    let prepared = {
        let (ctx, request, commit, dir) = (ctx.clone(), request.clone(), merge.head.commit.clone(), dir.clone());
        attempt::blocking(move || prepare(&ctx, &request, &commit, &dir)).await?
    };
    let Some(launch) = prepared else {
        let message = "no checks are configured".to_owned();
        return Ok(Some(LandingResult::ChecksNotRun(AttemptFailure::NotStarted { message })));
    };
    failpoint::pass("land_checks");
    let running = ctx.launcher.start(&launch, &dir).await;
    let running = running.map_err(|error| EngineError::io("start the checks in", dir.path(), error))?;
    progress(LandingProgress::Stoppable(running.stopper()));
    let ended = running.wait().await;
    let ran = match attempt::read_check_results(&dir, &ended) {
        attempt::CheckRunResult::Stopped => return Ok(Some(LandingResult::Stopped)),
        attempt::CheckRunResult::Failed(failure) => return Ok(Some(LandingResult::ChecksNotRun(failure))),
        attempt::CheckRunResult::Ran(ran) => ran,
    };
    let base = BaseCheckRequest { dir: &dir, base: merge.onto, options: check_options(ctx, request) };
    let Some(base) = attempt::run_on_base(ctx, base, &ran, progress).await? else {
        return Ok(Some(LandingResult::Stopped));
    };
    let sorted = compare_with_base(&ReviewerName::new("checks"), &ran, &base);
    if let Some(note) = sorted.note(merge.onto.as_str()) {
        progress(LandingProgress::Note(note));
    }
    let (onto, head, findings) = (merge.onto.clone(), merge.head.clone(), sorted.new);
    Ok((!findings.is_empty()).then_some(LandingResult::ChecksFailed { onto, head, findings }))
}

fn prepare(
    ctx: &EngineContext,
    request: &LandingRequest,
    commit: &Commit,
    dir: &AttemptDir,
) -> Result<Option<ProcessLaunch>, EngineError> {
    attempt::make_directory(dir)?;
    let path = ctx.layout.landing_worktree();
    let worktree = ctx.repository.integration_worktree(&path, commit)?;
    worktree.copy_files(ctx.settings.copied_into_worktrees())?;
    attempt::configured_checks_launch(ctx, dir, Path::new(&path), check_options(ctx, request))
}

fn check_options(ctx: &EngineContext, request: &LandingRequest) -> CheckOptions {
    CheckOptions { timeout: ctx.settings.limits().attempt, environment: request.environment.clone() }
}
