//! What is looked at of one task, whoever shows it: commands, the terminal's screen, the page.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use signoff_core::config::{AgentKind, Settings};
use signoff_core::ids::{AttemptId, LoopId, RunId, TaskId};
use signoff_core::machine::{Reason, Slot};
use signoff_core::view::{RunView, TaskRow};
use signoff_core::wire::Recorded;
use signoff_engine::artifact;
use signoff_engine::git::{Git, Tips};
use signoff_engine::process::AttemptDir;
use signoff_store::Store;
use signoff_term::show::Report;

use crate::desk::Desk;
use crate::door;
use crate::failure::Failure;
use crate::settings;

/// How many facts of a long log are held at once.
const AT_ONCE: usize = 2000;

/// Everything told of one task, and the tasks among which it stands.
pub fn task(desk: &Desk, task: TaskId) -> Result<(Report, Vec<TaskRow>), Failure> {
    let (row, tasks) = desk.seen(task)?;
    // What other loops of the run did is not told of this one; there may be a thousand of them.
    let (log, loop_id) = match desk.store.loop_of(task)? {
        Some((run, loop_id)) => (desk.store.log_of_loop(run, &loop_id)?, loop_id),
        None => (Vec::new(), signoff_engine::dispatcher::loop_id(task)),
    };
    let voided = voided(desk, &row);
    let mut report = Report::of(row, &log, &loop_id, artifacts(desk, task));
    report.voided = voided;
    // People know a question by the number it has in the whole repository.
    report.question = desk.store.questions()?.into_iter().find(|row| row.task_id == Some(task.0));
    Ok((report, tasks))
}

/// Reads the log of a run in parts, each of which is thrown away before the next one is read.
pub fn in_parts(store: &dyn Store, run: RunId, mut take: impl FnMut(&[Recorded])) -> Result<(), Failure> {
    let mut seen = 0;
    loop {
        let part = store.log_part(run, seen, AT_ONCE)?;
        let Some(last) = part.last() else { return Ok(()) };
        seen = last.seq;
        take(&part);
    }
}

/// The files kept of a task, as seen from the top of the checkout.
pub fn artifacts(desk: &Desk, task: TaskId) -> Vec<String> {
    let layout = desk.layout();
    let mut artifacts = artifact::of_task(&layout.reviews(), task);
    artifacts.extend(artifact::of_task(&layout.plans(), task));
    artifacts.iter().map(|path| shown(desk, path)).collect()
}

/// The files kept of all tasks, listed once.
pub struct Kept {
    files: BTreeMap<TaskId, Vec<String>>,
}

impl Kept {
    pub fn of(desk: &Desk) -> Self {
        let layout = desk.layout();
        let mut files: BTreeMap<TaskId, Vec<String>> = BTreeMap::new();
        for directory in [layout.reviews(), layout.plans()] {
            for (task, paths) in artifact::of_tasks(&directory) {
                files.entry(task).or_default().extend(paths.into_iter().map(|path| shown(desk, &path)));
            }
        }
        Self { files }
    }

    pub fn of_task(&self, task: TaskId) -> Vec<String> {
        self.files.get(&task).cloned().unwrap_or_default()
    }
}

/// A path as seen from the top of the checkout.
fn shown(desk: &Desk, path: &Path) -> String {
    path.strip_prefix(&desk.root).unwrap_or(path).display().to_string()
}

/// The tasks whose approval is of another commit than the last one of their branch.
pub fn all_voided(desk: &Desk) -> Result<BTreeSet<TaskId>, Failure> {
    let is_voided = |row: &TaskRow| {
        row.approved_commit.is_some() && row.reason == Some(Reason::ChangedAfterReview.word())
    };
    Ok(desk.tasks()?.into_iter().filter(is_voided).map(|row| TaskId(row.id)).collect())
}

/// What is wrong with an approval, where the branch has moved since: it is of one commit.
pub fn voided(desk: &Desk, row: &TaskRow) -> Option<String> {
    row.approved_commit.as_ref().filter(|_| row.reason == Some(Reason::ChangedAfterReview.word()))?;
    let branch = row.branch.as_ref()?;
    let tip = Tips::of(&desk.root).of_branch(branch, &Git::new(door::environment()))?;
    Some(format!("{branch} has moved to {tip}, which nobody reviewed: `signoff review {}`", row.id))
}

/// Where the files of an attempt are.
pub fn attempt(desk: &Desk, (run, loop_id): (RunId, &LoopId), attempt: AttemptId) -> AttemptDir {
    AttemptDir::new(desk.layout().attempt(run, loop_id, attempt))
}

/// A run as it stands.
pub fn view(desk: &Desk, run: RunId) -> Result<RunView, Failure> {
    Ok(RunView::of(&desk.store.log(run)?))
}

/// The attempts of a loop that are under way.
pub fn under_way(view: &RunView, loop_id: &LoopId) -> Vec<AttemptId> {
    let state = view.loop_state(loop_id);
    state.into_iter().flat_map(|state| state.slots()).filter_map(Slot::attempt).collect()
}

/// What kind of agent each name stands for, as far as that is known today.
pub struct Kinds(Option<Settings>);

impl Kinds {
    pub fn of(desk: &Desk) -> Self {
        Self(settings::load(Some(&desk.root)).ok())
    }

    /// The kind of the agent of an attempt.
    pub fn kind(&self, view: &RunView, loop_id: &LoopId, attempt: AttemptId) -> Option<AgentKind> {
        let name = view.agent(loop_id, attempt)?;
        let known = self.0.as_ref().and_then(|settings| settings.agent(name));
        known.map(|agent| agent.kind).or_else(|| AgentKind::from_word(name))
    }
}
