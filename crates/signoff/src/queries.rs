//! Queries about tasks, runs and attempts, shared by the commands, the terminal screen and the web pages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use signoff_core::ids::{AttemptId, LoopId, RunId, TaskId};
use signoff_core::machine::{AttemptSlot, Reason};
use signoff_core::settings::{AgentKind, Settings};
use signoff_core::view::{RunState, TaskRow};
use signoff_core::wire::RecordedFact;
use signoff_engine::artifact;
use signoff_engine::executor::AttemptKey;
use signoff_engine::git::{BranchTips, Git};
use signoff_engine::process::AttemptDir;
use signoff_store::{Store, StoreError};
use signoff_term::show::TaskReport;

use crate::{CliError, ReadOnlyProject, host, settings};

/// Number of facts of a log that are in memory at once.
const CHUNK: usize = 2000;

/// Returns the report of one task, together with all tasks.
pub fn task_report(project: &ReadOnlyProject, task: TaskId) -> Result<(TaskReport, Vec<TaskRow>), CliError> {
    let (row, tasks) = project.task_and_all(task)?;
    // Read only the log of this loop: the run may have a thousand others.
    let (log, loop_id) = match project.store.loop_for_task(task)? {
        Some((run, loop_id)) => (project.store.loop_log(run, &loop_id)?, loop_id),
        None => (Vec::new(), signoff_engine::dispatcher::loop_id(task)),
    };
    let voided = void_approval_note(project, &row);
    let mut report = TaskReport::from_log(row, log, &loop_id, artifacts(project).remove(&task).unwrap_or_default());
    report.voided = voided;
    // Show the question under its number in the repository.
    report.question = project.store.questions()?.into_iter().find(|row| row.task_id == Some(task.0));
    Ok((report, tasks))
}

/// Reads the log of a run after `seq` in chunks and passes each to `apply`. Only one chunk is in memory at a time.
pub fn for_each_chunk(
    store: &dyn Store,
    run: RunId,
    seq: u64,
    mut apply: impl FnMut(Vec<RecordedFact>),
) -> Result<(), CliError> {
    let mut last_seq = seq;
    loop {
        let part = store.log_page(run, last_seq, CHUNK)?;
        let Some(last) = part.last() else { return Ok(()) };
        last_seq = last.seq;
        apply(part);
    }
}

/// Returns the artifacts of each task as paths relative to the root of the checkout, from one listing of the directories.
pub fn artifacts(project: &ReadOnlyProject) -> BTreeMap<TaskId, Vec<String>> {
    let layout = project.layout();
    let mut files: BTreeMap<TaskId, Vec<String>> = BTreeMap::new();
    for directory in [layout.reviews(), layout.plans()] {
        for (task, paths) in artifact::reviews_by_task(&directory) {
            files.entry(task).or_default().extend(paths.into_iter().map(|path| relative_path(project, &path)));
        }
    }
    files
}

/// Formats a path relative to the root of the checkout.
fn relative_path(project: &ReadOnlyProject, path: &Path) -> String {
    path.strip_prefix(&project.root).unwrap_or(path).display().to_string()
}

/// Returns the tasks whose branch has moved since their commit was approved.
pub fn tasks_with_void_approval(project: &ReadOnlyProject) -> Result<BTreeSet<TaskId>, CliError> {
    let is_voided = |row: &TaskRow| row.approved_commit.is_some() && row.reason == Some(Reason::ChangedAfterReview);
    Ok(project.tasks()?.into_iter().filter(is_voided).map(|row| TaskId(row.id)).collect())
}

/// Explains why an approval is void if the branch has moved since. An approval covers one commit.
pub fn void_approval_note(project: &ReadOnlyProject, row: &TaskRow) -> Option<String> {
    row.approved_commit.as_ref().filter(|_| row.reason == Some(Reason::ChangedAfterReview))?;
    let branch = row.branch.as_ref()?;
    let tip = BranchTips::new(&project.root).commit(branch, &Git::new(host::environment()))?;
    Some(format!("{branch} has moved to {tip}, which is not reviewed: `signoff review {}`", row.id))
}

/// Returns those of these runs that a process is driving now.
pub fn held_runs<'a>(store: &dyn Store, runs: impl IntoIterator<Item = &'a u64>) -> Result<BTreeSet<u64>, StoreError> {
    let held = |run: &u64| store.is_held(RunId(*run)).map(|held| held.then_some(*run)).transpose();
    runs.into_iter().filter_map(held).collect()
}

/// The directory of an attempt.
pub fn attempt_dir(project: &ReadOnlyProject, attempt: &AttemptKey) -> AttemptDir {
    AttemptDir::new(attempt.directory(&project.layout()))
}

/// Computes the state of a run from its log.
pub fn run_state(project: &ReadOnlyProject, run: RunId) -> Result<RunState, CliError> {
    Ok(RunState::from_log(&project.store.log(run)?))
}

/// The running attempts of a loop.
pub fn running_attempts(view: &RunState, loop_id: &LoopId) -> Vec<AttemptId> {
    let state = view.loop_state(loop_id);
    state.into_iter().flat_map(|state| state.slots()).filter_map(AttemptSlot::attempt).collect()
}

/// Maps agent names to kinds by the current settings.
pub struct AgentKinds(Option<Settings>);

impl AgentKinds {
    pub fn load(project: &ReadOnlyProject) -> Self {
        Self(settings::load(Some(&project.root)).ok())
    }

    /// The kind of the agent of an attempt.
    pub fn kind(&self, view: &RunState, loop_id: &LoopId, attempt: AttemptId) -> Option<AgentKind> {
        let name = view.agent(loop_id, attempt)?;
        let known = self.0.as_ref().and_then(|settings| settings.agent(name));
        known.map(|agent| agent.kind).or_else(|| AgentKind::parse(name))
    }
}
