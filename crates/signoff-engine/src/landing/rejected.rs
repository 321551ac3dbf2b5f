//! The checks of a merge before it lands, and a rejected landing: the commit to continue from, and its findings.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use signoff_core::checks::{CheckRun, compare_with_base};
use signoff_core::ids::{Commit, ReviewerName};
use signoff_core::machine::{AttemptFailure, CONFLICT, Head};
use signoff_core::review::{Finding, Severity};

use super::land_commit::{LandingProgress, LandingRequest, ProgressCallback};
use super::{checks_not_run, short};
use crate::atomic_file::{self, WriteMode};
use crate::attempt::{self, BaseCheckRequest, CheckTerms, EngineContext};
use crate::attempt_spec::AttemptSpec;
use crate::error::EngineError;
use crate::failpoint;
use crate::git::{GitConflict, Repository};
use crate::process::{AttemptDir, ProcessLaunch};

/// The source of landing findings.
const SOURCE: &str = "landing";

/// A merge of a loop's work with its target that has conflicts.
pub struct ConflictingMerge<'a> {
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
    pub fn from_conflict(
        repository: &Repository,
        own: &Commit,
        merge: ConflictingMerge<'_>,
    ) -> Result<Self, EngineError> {
        let ConflictingMerge { target, onto, head, files } = merge;
        let marks = vec![own.to_string(), onto.to_string()];
        let paths: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
        let lines = repository.conflict_marker_lines(&head.commit, &marks, &paths)?;
        let sides = Sides { own, onto: &onto, target };
        let findings = files.iter().map(|file| sides.finding(file, lines.get(&file.path).copied())).collect();
        let files = paths.into_iter().map(PathBuf::into_os_string).collect();
        Ok(Self { onto, head, findings, marks, files })
    }

    /// Rejects work that fails checks, alone or together with what landed since its base.
    pub fn from_checks(base: &Commit, onto: Commit, head: Head, findings: Vec<Finding>) -> Self {
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
        fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).map_err(failed)?;
        let text = serde_json::to_vec(self).map_err(|error| failed(error.into()))?;
        atomic_file::write(&path, &text, WriteMode::Durable).map_err(failed)
    }

    pub fn remove(ctx: &EngineContext, spec: &AttemptSpec) {
        fs::remove_file(path(ctx, spec)).ok();
    }
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

/// The result of the checks on a merge.
#[derive(Debug)]
pub enum LandingCheckResult {
    Passed,
    Failed(Vec<Finding>),
    /// They could not be run.
    NotRun(AttemptFailure),
    Stopped,
}

/// The merge to check.
#[derive(Debug, Clone, Copy)]
pub struct CheckedMerge<'a> {
    pub commit: &'a Commit,
    /// The target's commit.
    pub onto: &'a Commit,
    /// Number of earlier runs of the checks.
    pub earlier_runs: usize,
}

/// Runs the checks on a merge, in the worktree reserved for landing. A failure that the target has too is reported as
/// a note and does not count.
pub async fn check_merge(
    ctx: &Arc<EngineContext>,
    request: &LandingRequest,
    merge: CheckedMerge<'_>,
    progress: ProgressCallback<'_>,
) -> Result<LandingCheckResult, EngineError> {
    if ctx.settings.checks().is_empty() {
        return Ok(LandingCheckResult::Passed);
    }
    // Each run has its own directory; a restart looks for the supervisor in the first one.
    let directory = &request.directory;
    let path = match merge.earlier_runs {
        0 => directory.clone(),
        again => directory.join(format!("again-{again}")),
    };
    let dir = AttemptDir::new(path);
    let prepared = {
        let (ctx, request, commit, dir) = (ctx.clone(), request.clone(), merge.commit.clone(), dir.clone());
        attempt::blocking(move || prepare(&ctx, &request, &commit, &dir)).await?
    };
    let Some(launch) = prepared else {
        return Ok(LandingCheckResult::NotRun(checks_not_run("no checks are configured")));
    };
    failpoint::pass("land_checks");
    let running = ctx.keeper.start(&launch, &dir).await;
    let running = running.map_err(|error| EngineError::io("start the checks in", dir.path(), error))?;
    progress(LandingProgress::Stoppable(running.stopper()));
    let ended = running.wait().await;
    Ok(match attempt::read_check_results(&dir, &ended) {
        attempt::CheckRunResult::Stopped => LandingCheckResult::Stopped,
        attempt::CheckRunResult::Failed(failure) => LandingCheckResult::NotRun(failure),
        attempt::CheckRunResult::Ran(ran) => {
            let base = BaseCheckRequest { dir: &dir, base: merge.onto, terms: terms(ctx, request) };
            match attempt::run_on_base(ctx, base, &ran, progress).await? {
                Some(base) => new_failures(merge.onto, &ran, &base, progress),
                None => LandingCheckResult::Stopped,
            }
        }
    })
}

/// The failures of a commit that its target does not have.
fn new_failures(
    onto: &Commit,
    ran: &[CheckRun],
    base: &[CheckRun],
    progress: ProgressCallback<'_>,
) -> LandingCheckResult {
    let sorted = compare_with_base(&ReviewerName::new("checks"), ran, base);
    if let Some(note) = sorted.note(onto.as_str()) {
        progress(LandingProgress::Note(note));
    }
    if sorted.new.is_empty() { LandingCheckResult::Passed } else { LandingCheckResult::Failed(sorted.new) }
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
    attempt::configured_checks_launch(ctx, dir, Path::new(&path), terms(ctx, request))
}

fn terms(ctx: &EngineContext, request: &LandingRequest) -> CheckTerms {
    CheckTerms { timeout: ctx.settings.limits().attempt, environment: request.environment.clone() }
}
