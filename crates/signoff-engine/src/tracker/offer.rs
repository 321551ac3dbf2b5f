//! Selects the tracker's tasks for free slots: the ready ones that are not tasks of signoff yet.

use std::collections::BTreeSet;

use signoff_core::ids::TaskId;
use signoff_core::source::{SourceState, TaskFile};
use signoff_core::task::TaskSpec;
use signoff_core::view::TaskStatus;
use signoff_core::view::inbox::{self, Action, NextStep};
use signoff_store::Store;

use super::{BEADS, Tracker, ready};
use crate::error::EngineError;
use crate::workspace::WorkspaceRequest;

/// The tracker's answer, compared with the store.
#[derive(Debug)]
pub struct TrackerOffer {
    pub file: TaskFile,
    /// The tasks that can be started, most urgent first.
    pub ready: Vec<TaskSpec>,
    /// Ready tasks that already are tasks of signoff, and tasks that failed before.
    pub excluded: Vec<ExcludedTask>,
}

/// A tracker task that already is a task of signoff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExcludedTask {
    pub id: String,
    pub by: TaskId,
    pub status: TaskStatus,
    /// What to do next about the task of signoff.
    pub next: NextStep,
}

/// Adds the dependencies that a tracker reports only when a task is claimed.
pub fn add_dependencies(
    store: &dyn Store,
    mut request: WorkspaceRequest,
    after: &[String],
) -> Result<WorkspaceRequest, EngineError> {
    if after.is_empty() {
        return Ok(request);
    }
    let claims = store.claims(BEADS)?;
    for task in after.iter().filter_map(|id| claims.get(id)) {
        if !request.spec.depends_on.contains(task) {
            request.spec.depends_on.push(*task);
        }
    }
    Ok(request)
}

/// Asks a tracker for ready tasks, without those that signoff has already.
pub fn fetch_offer(tracker: &Tracker, store: &dyn Store) -> Result<TrackerOffer, EngineError> {
    let claims = store.claims(BEADS)?;
    let rows = if claims.is_empty() { Vec::new() } else { store.tasks()? };
    let row = |by: TaskId| rows.iter().find(|row| row.id == by.0);
    // Tasks in a read-only file are never closed there.
    let through = |by: &TaskId| row(*by).is_some_and(inbox::allows_dependents);
    let done: BTreeSet<String> = match tracker.source.closes_tasks() {
        true => BTreeSet::new(),
        false => claims.iter().filter(|(_, by)| through(by)).map(|(id, _)| id.clone()).collect(),
    };
    let file = tracker.read(&done)?;
    let (mut listed, mut free) = (BTreeSet::new(), Vec::new());
    for mut spec in ready(&file) {
        let Some(tracked) = &mut spec.tracker else { continue };
        tracked.reopened = claims.get(&tracked.id).copied();
        match tracked.reopened {
            Some(by) if !through(&by) || !is_open_again(tracker, store, &tracked.id, by)? => {
                listed.insert(tracked.id.clone());
            }
            Some(_) | None => free.push(spec),
        }
    }
    // A task starts where its dependencies ended, even if another run worked on them.
    let before = |id: &String| claims.get(id).copied().filter(through);
    for spec in &mut free {
        let task = spec.tracker.as_ref().and_then(|one| file.task(&one.id));
        spec.depends_on = task.into_iter().flat_map(|task| &task.depends_on).filter_map(before).collect();
    }
    let status = |by: TaskId| row(by).map_or(TaskStatus::Pending, |row| row.status);
    let failed = |by: TaskId| status(by).is_failure();
    let is_done = |id: &str| file.task(id).is_some_and(|task| task.state == SourceState::Done);
    let excluded = claims.iter().filter(|(id, by)| listed.contains(*id) || (failed(**by) && !is_done(id)));
    let next = |by: TaskId| row(by).map_or(NextStep::Do(Action::Work(by.0)), |row| NextStep::to_approve(row, &rows));
    let excluded =
        excluded.map(|(id, by)| ExcludedTask { id: id.clone(), by: *by, status: status(*by), next: next(*by) });
    let excluded = excluded.collect();
    Ok(TrackerOffer { file, ready: free, excluded })
}

/// Whether a task that signoff closed was reopened. The list may be older than the closing, so the tracker is asked
/// again.
fn is_open_again(tracker: &Tracker, store: &dyn Store, id: &str, by: TaskId) -> Result<bool, EngineError> {
    Ok(tracker.source.closes_tasks() && is_closed(store, by)? && tracker.is_open(id)?)
}

/// Whether the log records that the tracker closed a task.
fn is_closed(store: &dyn Store, task: TaskId) -> Result<bool, EngineError> {
    let Some((run, loop_id)) = store.loop_for_task(task)? else { return Ok(false) };
    let run_state = store.run_state(run)?;
    Ok(run_state.closed.contains(&loop_id) && !run_state.machine.unclosed.contains(&loop_id))
}
