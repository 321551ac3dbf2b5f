//! Selects the commit that a task starts at.

use signoff_core::ids::{Commit, TaskId};
use signoff_core::view::{RunState, TaskRow};

use super::{WorkspaceRequest, approved};
use crate::attempt::EngineContext;
use crate::dispatcher::is_satisfied;
use crate::error::EngineError;
use signoff_store::Store;

/// The final commit of a task that another task depends on.
#[derive(Clone)]
struct DependencyEnd {
    task: TaskId,
    commit: Commit,
}

/// Where a task starts, and a note for the user.
pub(super) struct StartPoint {
    pub commit: Commit,
    pub note: Option<String>,
}

/// The start of a task: the end of its dependencies, the branch that it will land on, or the user's current branch.
pub(super) fn start_point(
    ctx: &EngineContext,
    store: &dyn Store,
    request: &WorkspaceRequest,
) -> Result<StartPoint, EngineError> {
    let needed = ends(ctx, store, &request.spec.depends_on)?;
    if !request.lands {
        return match latest(ctx, &needed)?.or(needed.last()) {
            Some(end) => start_at(ctx, end, &needed),
            None => Ok(StartPoint { commit: ctx.repository.base()?, note: None }),
        };
    }
    let tip = ctx.repository.ensure_branch(&request.run.branch(), || ctx.repository.base())?;
    // Landing merges the work of other runs into this one.
    let missing = missing(ctx, &needed, &tip)?;
    let Some(first) = missing.first() else { return Ok(StartPoint { commit: tip, note: None }) };
    start_at(ctx, latest(ctx, &missing)?.unwrap_or(first), &needed)
}
/// Starts at one dependency, with a note if it does not contain the others.
fn start_at(ctx: &EngineContext, end: &DependencyEnd, needed: &[DependencyEnd]) -> Result<StartPoint, EngineError> {
    let absent = missing(ctx, needed, &end.commit)?;
    let tasks: Vec<String> = absent.iter().map(|end| end.task.to_string()).collect();
    let note = (!tasks.is_empty()).then(|| {
        let without = tasks.join(", ");
        format!("no commit holds all that it depends on: it begins after task {}, without task {without}", end.task)
    });
    Ok(StartPoint { commit: end.commit.clone(), note })
}

/// The dependencies that a commit does not contain.
fn missing(ctx: &EngineContext, needed: &[DependencyEnd], tip: &Commit) -> Result<Vec<DependencyEnd>, EngineError> {
    let mut missing = Vec::new();
    for end in needed {
        if !contains(ctx, tip, &end.commit)? {
            missing.push(end.clone());
        }
    }
    Ok(missing)
}

/// The dependency that contains all others.
fn latest<'a>(ctx: &EngineContext, ends: &'a [DependencyEnd]) -> Result<Option<&'a DependencyEnd>, EngineError> {
    'ends: for end in ends {
        for other in ends {
            if !contains(ctx, &end.commit, &other.commit)? {
                continue 'ends;
            }
        }
        return Ok(Some(end));
    }
    Ok(None)
}

fn contains(ctx: &EngineContext, commit: &Commit, part: &Commit) -> Result<bool, EngineError> {
    Ok(commit == part || ctx.repository.is_ancestor(part.as_str(), commit.as_str())?)
}

/// The final commits of tasks. Failed tasks have none.
fn ends(ctx: &EngineContext, store: &dyn Store, tasks: &[TaskId]) -> Result<Vec<DependencyEnd>, EngineError> {
    let mut ends = Vec::new();
    for task in tasks {
        ends.extend(end(ctx, store, *task)?.map(|commit| DependencyEnd { task: *task, commit }));
    }
    Ok(ends)
}

fn end(ctx: &EngineContext, store: &dyn Store, task: TaskId) -> Result<Option<Commit>, EngineError> {
    if let Some(commit) = approved(store, task)? {
        return Ok(Some(commit));
    }
    let Some(row) = store.task(task)?.filter(is_satisfied) else { return Ok(None) };
    let Some(branch) = row.branch else { return Ok(None) };
    let on_it = |row: &TaskRow| row.branch.as_deref() == Some(&branch) && row.base.is_some();
    let tip = match store.tasks()?.iter().filter(|row| on_it(row)).all(is_satisfied) {
        true => ctx.repository.head_of(&branch)?.map(|head| head.commit),
        // A later task continued on the branch, and failed or is not done.
        false => None,
    };
    Ok(match tip {
        Some(tip) => Some(tip),
        None => recorded(store, task)?.filter(|commit| ctx.repository.resolve(commit.as_str()).is_ok()),
    })
}

/// The last recorded commit of a task.
fn recorded(store: &dyn Store, task: TaskId) -> Result<Option<Commit>, EngineError> {
    let Some((run, loop_id)) = store.loop_for_task(task)? else { return Ok(None) };
    let run_state = RunState::from_run_log(run, &store.log(run)?);
    let placed = run_state.loops.get(&loop_id).filter(|loop_state| loop_state.workspace.is_some());
    Ok(placed.map(|loop_state| loop_state.machine.head.commit.clone()))
}
