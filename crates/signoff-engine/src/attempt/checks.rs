//! Prepares the project's checks, which signoff runs itself under the supervisor.

use std::fs;
use std::path::Path;

use signoff_core::ids::Commit;
use signoff_core::policy::TimeSpan;
use signoff_core::settings::{AssignedReviewer, ReviewWorkspace};

use super::environment::{self, AttemptCredentials};
use super::launch::assemble;
use super::prepare::{Memo, PreparedLaunch, write_prompt};
use super::sandbox::{SandboxWorkspace, sandboxed};
use super::{EngineContext, StartFailure, reviewer_copy};
use crate::agent::CommandLine;
use crate::attempt_spec::AttemptSpec;
use crate::detect::{self, DetectedChecks};
use crate::error::EngineError;
use crate::process::{AttemptDir, ProcessLaunch};

/// How checks run.
pub struct CheckTerms {
    pub timeout: TimeSpan,
    pub environment: Vec<(String, Option<String>)>,
}

/// Prepares the checks of a phase: the configured ones, or those detected in the worktree.
pub fn prepare_phase_checks(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    dir: AttemptDir,
) -> Result<PreparedLaunch, EngineError> {
    let list: Vec<(String, String)> = match ctx.settings.checks() {
        known if known.is_empty() => {
            let DetectedChecks { checks, missing } = detect_checks(Path::new(&spec.workspace.worktree));
            if checks.is_empty() {
                return Ok(Err(StartFailure::NothingToCheck { missing }));
            }
            checks.into_iter().map(|one| (one.name, one.command)).collect()
        }
        known => known.into_iter().map(|(name, command)| (name.to_owned(), command.to_owned())).collect(),
    };
    let (directory, terms) = (Path::new(&spec.workspace.worktree), terms(ctx, spec, &dir));
    let launch = check_list_launch(ctx, &dir, directory, &list, terms)?;
    Ok(Ok((launch, dir)))
}

/// Detects the checks of a worktree.
pub fn detect_checks(worktree: &Path) -> DetectedChecks {
    detect::detect_checks(worktree, detect::is_installed)
}

/// Prepares the checks of a reviewer: in the loop's worktree, or sandboxed in a copy.
pub fn prepare_reviewer_checks(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    reviewer: &AssignedReviewer,
    commit: &Commit,
    dir: AttemptDir,
) -> Result<PreparedLaunch, EngineError> {
    let list = project_checks(ctx, spec)?;
    if list.is_empty() {
        let none = "no checks are configured: name them in [checks] of signoff.toml";
        return Ok(Err(StartFailure::Failed(none.to_owned())));
    }
    let environment = environment::for_attempt(spec, &dir, &AttemptCredentials::default());
    let terms = CheckTerms { timeout: reviewer.timeout, environment };
    let launch = match reviewer.workspace.unwrap_or(ReviewWorkspace::Shared) {
        ReviewWorkspace::Shared => check_list_launch(ctx, &dir, Path::new(&spec.workspace.worktree), &list, terms)?,
        ReviewWorkspace::Copy => {
            let (_, copy) = reviewer_copy::make(ctx, spec, &reviewer.name, commit)?;
            let launch = check_list_launch(ctx, &dir, copy.path(), &list, terms)?;
            sandboxed(ctx, launch, &dir, spec.launch.sandbox, &SandboxWorkspace::Worktree(&copy))?
        }
    };
    Ok(Ok((launch, dir)))
}

/// The checks of the project: the configured ones, or those detected in the base commit. Files that the work changed
/// have no influence. If the base commit has no checks, those detected when signoff started apply.
fn project_checks(ctx: &EngineContext, spec: &AttemptSpec) -> Result<Vec<(String, String)>, EngineError> {
    if ctx.settings.checks().is_empty() {
        let found = detect::detect_checks_at(&ctx.repository, &spec.workspace.base, detect::is_installed)?;
        if !found.checks.is_empty() {
            return Ok(found.checks.into_iter().map(|one| (one.name, one.command)).collect());
        }
    }
    let known = ctx.settings.project_checks().into_iter();
    Ok(known.map(|(name, command)| (name.to_owned(), command.to_owned())).collect())
}

/// Timeout and environment of the checks of a phase.
fn terms(ctx: &EngineContext, spec: &AttemptSpec, dir: &AttemptDir) -> CheckTerms {
    let attempt = ctx.settings.limits().attempt;
    let timeout = spec.job_place().map_or(attempt, |place| ctx.settings.check_timeout(place));
    CheckTerms { timeout, environment: environment::for_attempt(spec, dir, &AttemptCredentials::default()) }
}

/// The launch of the configured checks in a directory; `None` if none are configured.
pub fn configured_checks_launch(
    ctx: &EngineContext,
    dir: &AttemptDir,
    directory: &Path,
    terms: CheckTerms,
) -> Result<Option<ProcessLaunch>, EngineError> {
    let list: Vec<_> =
        ctx.settings.checks().into_iter().map(|(name, command)| (name.to_owned(), command.to_owned())).collect();
    if list.is_empty() {
        return Ok(None);
    }
    check_list_launch(ctx, dir, directory, &list, terms).map(Some)
}

/// The launch of these checks in a directory.
pub fn check_list_launch(
    ctx: &EngineContext,
    dir: &AttemptDir,
    directory: &Path,
    list: &[(String, String)],
    CheckTerms { timeout, environment }: CheckTerms,
) -> Result<ProcessLaunch, EngineError> {
    let list: Vec<_> =
        list.iter().map(|(name, command)| serde_json::json!({"name": name, "command": command})).collect();
    let path = dir.path().join("checks.json");
    let text = serde_json::Value::from(list).to_string();
    fs::write(&path, text).map_err(|error| EngineError::io("write", &path, error))?;
    write_prompt(ctx, dir, "", &Memo::default())?;
    // The work may have changed these commands, so they get no agent keys and no channel addresses.
    let environment = environment::withheld_from_checks(&ctx.settings).into_iter().chain(environment).collect();
    let line = CommandLine {
        program: ctx.program.display().to_string(),
        arguments: vec!["__checks".to_owned(), path.display().to_string()],
        environment,
        ..CommandLine::default()
    };
    Ok(assemble(ctx, directory, line, timeout))
}
