//! Queries about tasks, runs and attempts, shared by the commands, the terminal screen and the web pages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use signoff_core::ids::{AttemptId, LoopId, RunId, TaskId};
use signoff_core::machine::{AttemptSlot, Reason};
use signoff_core::settings::{AgentKind, Settings};
use signoff_core::view::inbox::{Action, ProjectSnapshot};
use signoff_core::view::{RunRow, RunState, RunStatus, TaskRow, TaskStatus};
use signoff_core::wire::{QUEUE, RecordedFact};
use signoff_engine::artifact;
use signoff_engine::executor::AttemptKey;
use signoff_engine::git::{BranchTips, Git};
use signoff_engine::process::AttemptDir;
use signoff_store::{SqliteStore, Store, StoreError};
use signoff_term::show::{RunHistory, TaskReport};

use crate::{ReadOnlyProject, Result, host, project, settings};

/// Number of facts of a log that are in memory at once.
const CHUNK: usize = 2000;

/// Returns the report of one task, together with all tasks.
pub fn task_report(project: &ReadOnlyProject, task: TaskId) -> Result<(TaskReport, Vec<TaskRow>)> {
    let tasks = project.tasks_from_tables()?;
    let row = project::find_task(&tasks, task)?;
    let (history, loop_id) = match (project.store.loop_for_task(task)?, &project.histories) {
        (Some((run, loop_id)), Some(histories)) if histories.keeps(&*project.store, run)? => {
            (histories.get(&*project.store, run)?, loop_id)
        }
        // Read only the log of this loop: the run may have a thousand others.
        (Some((run, loop_id)), _) => {
            (Arc::new(RunHistory::for_loop(project.store.loop_log(run, &loop_id)?, &loop_id)), loop_id)
        }
        (None, _) => (Arc::default(), signoff_engine::dispatcher::loop_id(task)),
    };
    let voided = void_approval_note(project, &row);
    let mut report = history.report(row, &loop_id, artifacts(project).remove(&task).unwrap_or_default());
    report.voided = voided;
    // Show the question under its number in the repository.
    report.question = project.store.questions()?.into_iter().find(|row| row.task_id == Some(task.0));
    Ok((report, tasks))
}

/// Reads the log of a run after `seq` in chunks and passes each to `apply`. Only one chunk is in memory at a time.
pub fn for_each_chunk(store: &dyn Store, run: RunId, seq: u64, mut apply: impl FnMut(Vec<RecordedFact>)) -> Result<()> {
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
            let relative = |path: PathBuf| path.strip_prefix(&project.root).unwrap_or(&path).display().to_string();
            files.entry(task).or_default().extend(paths.into_iter().map(relative));
        }
    }
    files
}

/// Returns the tasks whose branch has moved since their commit was approved.
pub fn tasks_with_void_approval(project: &ReadOnlyProject) -> Result<BTreeSet<TaskId>> {
    Ok(project.tasks_from_tables()?.into_iter().filter(is_voided).map(|row| TaskId(row.id)).collect())
}

/// Whether the branch has moved since the approval.
pub fn is_voided(row: &TaskRow) -> bool {
    row.approved_commit.is_some() && row.reason == Some(Reason::ChangedAfterReview)
}

/// Explains why an approval is void if the branch has moved since. An approval covers one commit.
pub fn void_approval_note(project: &ReadOnlyProject, row: &TaskRow) -> Option<String> {
    let branch = row.branch.as_ref().filter(|_| is_voided(row))?;
    let tip = BranchTips::new(&project.root).commit(branch, &Git::new(host::environment()))?;
    Some(format!("{branch} has moved to {tip}, which is not reviewed: `{}`", Action::Review(row.id)))
}

/// All tasks and runs, and the runs being driven: the context of one task.
#[derive(Default)]
pub struct TaskContext {
    pub tasks: Vec<TaskRow>,
    pub runs: Vec<RunRow>,
    pub driven: BTreeSet<u64>,
}

impl TaskContext {
    pub fn load(project: &ReadOnlyProject, tasks: Vec<TaskRow>) -> Result<Self> {
        let runs = project.runs()?;
        let driven = driven(&*project.store, &tasks, &runs)?;
        Ok(Self { tasks, runs, driven })
    }

    pub fn snapshot(&self) -> ProjectSnapshot<'_> {
        ProjectSnapshot { tasks: &self.tasks, runs: &self.runs, driven: &self.driven }
    }
}

/// Returns those of these runs, and of the runs of these tasks, that a process is driving.
pub fn driven(store: &dyn Store, tasks: &[TaskRow], runs: &[RunRow]) -> Result<BTreeSet<u64>> {
    let may_be_driven = |row: &&TaskRow| matches!(row.status, TaskStatus::InProgress | TaskStatus::Paused);
    let task_runs = tasks.iter().filter(may_be_driven).filter_map(|row| row.run_id);
    let open = runs.iter().filter(|run| run.status == RunStatus::Running).map(|run| run.id);
    Ok(driven_runs(store, &task_runs.chain(open).collect::<BTreeSet<u64>>())?)
}

/// Returns those of these runs that a process is driving now.
pub fn driven_runs<'a>(
    store: &dyn Store,
    runs: impl IntoIterator<Item = &'a u64>,
) -> Result<BTreeSet<u64>, StoreError> {
    let held = |run: &u64| store.is_held(RunId(*run)).map(|held| held.then_some(*run)).transpose();
    runs.into_iter().filter_map(held).collect()
}

/// The directory of an attempt.
pub fn attempt_dir(project: &ReadOnlyProject, attempt: &AttemptKey) -> AttemptDir {
    AttemptDir::new(attempt.directory(&project.layout()))
}

/// The state of a run, for a command that only shows it.
pub fn run_state(store: &dyn Store, run: RunId) -> Result<RunState> {
    Ok(store.run_state(run)?)
}

/// The running attempts of a loop.
pub fn running_attempts(run_state: &RunState, loop_id: &LoopId) -> Vec<AttemptId> {
    let state = run_state.loop_state(loop_id);
    state.into_iter().flat_map(|state| state.slots()).filter_map(AttemptSlot::attempt).collect()
}

/// Maps agent names to kinds by the current settings.
pub struct AgentKinds(Option<Settings>);

impl AgentKinds {
    pub fn load(project: &ReadOnlyProject) -> Self {
        Self(settings::load(Some(&project.root)).ok())
    }

    /// The kind of the agent of an attempt.
    pub fn kind(&self, run_state: &RunState, loop_id: &LoopId, attempt: AttemptId) -> Option<AgentKind> {
        let name = run_state.agent(loop_id, attempt)?;
        let configured = self.0.as_ref().and_then(|settings| settings.agent(name));
        configured.map(|agent| agent.kind).or_else(|| name.parse::<AgentKind>().ok())
    }
}

/// Polls a store for new facts. It needs its own connection: writes on the same connection are not noticed.
pub struct LogFollower {
    store: Arc<SqliteStore>,
    version: Option<u64>,
    /// The followed runs and the queue, each with the sequence number of its last fact at the last poll.
    seen: BTreeMap<RunId, u64>,
    /// The latest run at the last poll.
    last_run: RunId,
}

impl LogFollower {
    /// Follows all open runs and the queue. `seen` gives the last known fact of a run; of other runs, all existing
    /// facts are new.
    pub fn new(store: Arc<SqliteStore>, seen: BTreeMap<RunId, u64>) -> Result<Self> {
        let last = store.last_run()?.map_or(QUEUE, |run| run.id);
        let queue = store.last_seq(QUEUE)?;
        let mut seen = seen;
        seen.entry(QUEUE).or_insert(queue);
        Ok(Self { store, version: None, seen, last_run: last })
    }

    /// Follows all open runs and the queue, skipping existing facts. Does not read the logs.
    pub fn from_now(store: Arc<SqliteStore>) -> Result<Self> {
        let mut seen = BTreeMap::new();
        for run in store.open_runs()? {
            seen.insert(run.id, store.last_seq(run.id)?);
        }
        Self::new(store, seen)
    }

    /// Returns the runs with facts recorded since the last call, each with the last fact before them. Cheap if the
    /// database did not change.
    pub fn poll(&mut self) -> Result<Vec<(RunId, u64)>> {
        let version = self.store.version()?;
        if self.version.replace(version) == Some(version) {
            return Ok(Vec::new());
        }
        self.add_new_runs()?;
        let mut changed = Vec::new();
        for (run, seen) in &mut self.seen {
            let before = std::mem::replace(seen, self.store.last_seq(*run)?);
            changed.extend((before != *seen).then_some((*run, before)));
        }
        Ok(changed)
    }

    /// Adds runs that were opened or resumed since the last call.
    fn add_new_runs(&mut self) -> Result<()> {
        let last = self.store.last_run()?.map_or(QUEUE, |run| run.id);
        let begun = (self.last_run.0 + 1..=last.0).map(RunId);
        let open = self.store.open_runs()?.into_iter().map(|run| run.id);
        for run in begun.chain(open) {
            self.seen.entry(run).or_insert(0);
        }
        self.last_run = last;
        Ok(())
    }
}
