//! The commit a task begins at.

use signoff_core::ids::{Commit, TaskId};
use signoff_core::view::TaskRow;

use super::{Wish, approved};
use crate::attempt::Workshop;
use crate::board::Board;
use crate::dispatcher::is_through;
use crate::error::EngineError;
use signoff_store::Store;

/// The end of a task that another depends on.
#[derive(Clone)]
struct End {
    task: TaskId,
    commit: Commit,
}

/// Where a task begins, and what a person should know of it.
pub(super) struct Start {
    pub commit: Commit,
    pub note: Option<String>,
}

/// The commit a task begins at: the end of what it depends on, the branch on which it will land, or the person's
/// line of work.
pub(super) fn of(shop: &Workshop, store: &dyn Store, wish: &Wish) -> Result<Start, EngineError> {
    let needed = ends(shop, store, &wish.spec.depends_on)?;
    if !wish.lands {
        return match latest(shop, &needed)?.or(needed.last()) {
            Some(end) => begin(shop, end, &needed),
            None => Ok(Start { commit: shop.repository.base()?, note: None }),
        };
    }
    let tip = shop.repository.begin_branch(&wish.run.branch(), || shop.repository.base())?;
    // What was worked in another run is yet to come together with this one: landing does that.
    let missing = missing(shop, &needed, &tip)?;
    let Some(first) = missing.first() else { return Ok(Start { commit: tip, note: None }) };
    begin(shop, latest(shop, &missing)?.unwrap_or(first), &needed)
}
/// Begins at one end, and says so if it does not hold the others.
fn begin(shop: &Workshop, end: &End, needed: &[End]) -> Result<Start, EngineError> {
    let absent = missing(shop, needed, &end.commit)?;
    let tasks: Vec<String> = absent.iter().map(|end| end.task.to_string()).collect();
    let note = (!tasks.is_empty()).then(|| {
        let without = tasks.join(", ");
        format!(
            "no commit holds all that it depends on: it begins after task {}, without task {without}",
            end.task
        )
    });
    Ok(Start { commit: end.commit.clone(), note })
}

/// Those that a commit does not hold.
fn missing(shop: &Workshop, needed: &[End], tip: &Commit) -> Result<Vec<End>, EngineError> {
    let mut missing = Vec::new();
    for end in needed {
        if !holds(shop, tip, &end.commit)? {
            missing.push(end.clone());
        }
    }
    Ok(missing)
}

/// The one that holds all others.
fn latest<'a>(shop: &Workshop, ends: &'a [End]) -> Result<Option<&'a End>, EngineError> {
    'ends: for end in ends {
        for other in ends {
            if !holds(shop, &end.commit, &other.commit)? {
                continue 'ends;
            }
        }
        return Ok(Some(end));
    }
    Ok(None)
}

fn holds(shop: &Workshop, commit: &Commit, part: &Commit) -> Result<bool, EngineError> {
    Ok(commit == part || shop.repository.is_ancestor(part.as_str(), commit.as_str())?)
}

/// Where the tasks ended; those that did not end well have no end that others could build on.
fn ends(shop: &Workshop, store: &dyn Store, tasks: &[TaskId]) -> Result<Vec<End>, EngineError> {
    let mut ends = Vec::new();
    for task in tasks {
        ends.extend(end(shop, store, *task)?.map(|commit| End { task: *task, commit }));
    }
    Ok(ends)
}

fn end(shop: &Workshop, store: &dyn Store, task: TaskId) -> Result<Option<Commit>, EngineError> {
    if let Some(commit) = approved(store, task)? {
        return Ok(Some(commit));
    }
    let Some(row) = store.task(task)?.filter(is_through) else { return Ok(None) };
    let Some(branch) = row.branch else { return Ok(None) };
    let on_it = |row: &TaskRow| row.branch.as_deref() == Some(&branch) && row.base.is_some();
    let tip = match store.tasks()?.iter().filter(|row| on_it(row)).all(is_through) {
        true => shop.repository.head_of(&branch)?.map(|head| head.commit),
        // Others went on with it and did not end well, or not yet.
        false => None,
    };
    Ok(match tip {
        Some(tip) => Some(tip),
        None => recorded(store, task)?.filter(|commit| shop.repository.resolve(commit.as_str()).is_ok()),
    })
}

/// The last commit of a task that is on record.
fn recorded(store: &dyn Store, task: TaskId) -> Result<Option<Commit>, EngineError> {
    let Some((run, loop_id)) = store.loop_of(task)? else { return Ok(None) };
    let board = Board::of(run, &store.log(run)?);
    let placed = board.loops.get(&loop_id).filter(|worked| worked.place.is_some());
    Ok(placed.map(|worked| worked.state.head.commit.clone()))
}
