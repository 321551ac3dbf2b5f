//! Combines parallel fixes into one line of commits on their loop's branch.
//!
//! Only objects are written until the branch moves. The new head is written to a file first, so that a restarted
//! process recognises its own commits.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use signoff_core::ids::Commit;
use signoff_core::machine::{Event, Head, JobKind};
use signoff_core::prompt::commit_message;

use crate::atomic_file;
use crate::attempt::{self, AttemptEnd, EngineContext};
use crate::attempt_spec::AttemptSpec;
use crate::error::EngineError;
use crate::executor::{AttemptResult, AttemptSink};
use crate::failpoint;
use crate::git::{CombinedFixes, GitError};
use crate::workspace::parallel_fixes;

/// How often to retry if another process moves the branch.
const TRIES: usize = 5;

/// The head that the branch is about to move to.
#[derive(Debug, Serialize, Deserialize)]
struct CombinePlan {
    parts: Vec<(usize, Commit)>,
    kept: Vec<usize>,
    head: Head,
}

/// Combines the fixes of a loop and reports which could not be kept.
pub async fn run_combine(ctx: Arc<EngineContext>, spec: Arc<AttemptSpec>, sink: AttemptSink) {
    let combining = (ctx, spec);
    let combined = attempt::blocking(move || combine(&combining.0, &combining.1)).await;
    let (end, notes) = match combined {
        Ok((event, notes)) => (AttemptEnd::Event(Box::new(event)), notes),
        Err(error) => (AttemptEnd::Error(error), Vec::new()),
    };
    sink.ended(AttemptResult { notes, ..AttemptResult::new(end) });
}

fn combine(ctx: &EngineContext, spec: &AttemptSpec) -> Result<(Event, Vec<String>), EngineError> {
    let JobKind::Combine { parts } = &spec.job.kind else {
        return Err(EngineError::Internal("nothing was done side by side".to_owned()));
    };
    failpoint::pass("combine");
    let mut notes = Vec::new();
    let CombinedFixes { included: kept, head } = combine_parts(ctx, spec, parts, &mut notes)?;
    failpoint::pass("combined");
    parallel_fixes::forget_all(&ctx.repository, spec.run, &spec.loop_id, Path::new(&spec.workspace.worktree));
    let attempt = spec.job.attempt;
    let event = if parts.iter().all(|(number, _)| kept.contains(number)) {
        Event::FixesCombined { attempt, head }
    } else {
        Event::FixesOverlapped { attempt, kept, head }
    };
    Ok((event, notes))
}

/// Moves the branch to all fixes that fit together.
fn combine_parts(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    parts: &[(usize, Commit)],
    notes: &mut Vec<String>,
) -> Result<CombinedFixes, EngineError> {
    if let Some(done) = finished_before(ctx, spec, parts)? {
        return Ok(done);
    }
    notes.extend(moved_branch_note(ctx, spec)?);
    let (from, message) = (&spec.machine.head.commit, commit_message::feedback(spec.cycle()));
    let file = path(ctx, spec);
    for _ in 0..TRIES {
        let tip = tip(ctx, spec)?;
        let CombinedFixes { included: kept, head } = ctx.repository.combine_fixes(from, &tip, parts, &message)?;
        let plan = CombinePlan { parts: parts.to_vec(), kept: kept.clone(), head: head.clone() };
        atomic_file::write_json(&file, &plan).map_err(|error| EngineError::io("write", &file, error))?;
        failpoint::pass("put_together");
        if head == tip || ctx.repository.advance_branch(&spec.branch, &tip.commit, &head.commit)? {
            failpoint::pass("moved");
            follow(ctx, spec, &head.commit)?;
            return Ok(CombinedFixes { included: kept, head });
        }
    }
    Err(GitError::KeepsMoving(spec.branch.clone()).into())
}

/// The result of a killed process, if the branch already contains it.
fn finished_before(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    parts: &[(usize, Commit)],
) -> Result<Option<CombinedFixes>, EngineError> {
    let Some(plan) = atomic_file::read_json(&path(ctx, spec)).filter(|plan: &CombinePlan| plan.parts == parts) else {
        return Ok(None);
    };
    ctx.revive_branch(spec)?;
    let gone = || GitError::BranchGone(spec.branch.clone());
    let tip = ctx.repository.head_of(&spec.branch)?.ok_or_else(gone)?;
    if tip == plan.head {
        follow(ctx, spec, &tip.commit)?;
    } else if !ctx.repository.is_ancestor(plan.head.commit.as_str(), tip.commit.as_str())? {
        return Ok(None);
    }
    Ok(Some(CombinedFixes { included: plan.kept, head: tip }))
}

/// A note if the branch got other commits while fixers worked in parallel.
fn moved_branch_note(ctx: &EngineContext, spec: &AttemptSpec) -> Result<Option<String>, EngineError> {
    let (before, branch) = (&spec.machine.head.commit, &spec.branch);
    let Some(tip) = ctx.repository.head_of(branch)?.filter(|tip| tip.commit != *before) else {
        return Ok(None);
    };
    if let Some(left) = attempt::keep_dropped_commits(ctx, spec, &tip)? {
        return Ok(Some(left));
    }
    let tip = tip.commit;
    Ok(Some(format!(
        "{branch} got other commits during parallel fixes, which are kept: `git log {before}..{tip}` shows them"
    )))
}

/// The head of the loop's branch, including uncommitted changes in its worktree.
fn tip(ctx: &EngineContext, spec: &AttemptSpec) -> Result<Head, EngineError> {
    let worktree = ctx.worktree_with_files(spec)?;
    let committed = match worktree.commit_all("Changes by hand") {
        Err(GitError::BranchGone(_)) => {
            ctx.revive_branch(spec)?;
            worktree.commit_all("Changes by hand")?
        }
        committed => committed?,
    };
    Ok(committed.head)
}

/// Updates the files of the loop's worktree to its branch.
fn follow(ctx: &EngineContext, spec: &AttemptSpec, commit: &Commit) -> Result<(), EngineError> {
    if let Ok(worktree) = ctx.repository.worktree(Path::new(&spec.workspace.worktree)) {
        worktree.check_out_branch(commit)?;
        ctx.read_guards.writing(&worktree);
    }
    Ok(())
}

fn path(ctx: &EngineContext, spec: &AttemptSpec) -> PathBuf {
    ctx.layout.attempts(spec.run, &spec.loop_id).join("combined.json")
}
