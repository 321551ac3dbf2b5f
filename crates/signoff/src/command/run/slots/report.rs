//! Lists the tasks that would fill the slots, and why others are left out.

use std::collections::BTreeSet;

use signoff_core::group::TaskSource;
use signoff_core::ids::TaskId;
use signoff_core::source::{SourceState, SourceTask, Warning};
use signoff_core::task::TaskSpec;
use signoff_core::view::{TaskRow, TaskStatus};
use signoff_core::workflow::Workflow;
use signoff_engine::tracker::{Offer, TakenTask, Tracker, is_nameable};
use signoff_store::Store;
use signoff_term::slots::{ReadyTask, SkippedTask, SlotsReport};

use super::SlotRun;
use crate::{Console, Result};

/// Maximum number of tasks named in one line.
const MAX_NAMED: usize = 8;

impl SlotRun<'_> {
    /// The report for the queue.
    pub fn of_queue(&self, tasks: &[TaskId]) -> Result<SlotsReport> {
        let mut report = SlotsReport::new("queue", Vec::new(), Vec::new(), Vec::new());
        for task in tasks {
            let spec = self.project.store.task_spec(*task)?.unwrap_or_default();
            let auto_review = is_reviewed(&self.workflow(&spec)?);
            report.ready.push(ReadyTask { id: task.to_string(), title: spec.title, priority: None, auto_review });
        }
        let waits =
            |row: &TaskRow| matches!(row.status, TaskStatus::Pending | TaskStatus::Blocked) && row.run_id.is_none();
        for row in self.project.read_only().tasks()? {
            if waits(&row) && !tasks.contains(&TaskId(row.id)) {
                let before: Vec<String> = row.depends_on.iter().map(ToString::to_string).collect();
                let reason = match before.as_slice() {
                    [] => "another task is using its branch".to_owned(),
                    tasks => format!("waits for task {}", tasks.join(", ")),
                };
                report.left_out.push(SkippedTask { id: row.id.to_string(), title: row.title, reason });
            }
        }
        Ok(report)
    }
}

/// The report for a tracker.
pub fn of_tracker(supply: &TaskSource, offer: &Offer, workflow: &Workflow) -> SlotsReport {
    let source = match supply {
        TaskSource::Program { name } => name,
        TaskSource::File { path } => path,
        TaskSource::Queue => "queue",
    };
    let auto_review = is_reviewed(workflow);
    let ready = |spec: &TaskSpec| {
        let tracked = spec.tracked.as_ref()?;
        let (id, title, priority) = (tracked.id.clone(), spec.title.clone(), tracked.priority);
        Some(ReadyTask { id, title, priority, auto_review })
    };
    let left_out = |task: &SourceTask| {
        let taken = offer.taken.iter().find(|taken| taken.id == task.id);
        let reason = taken.map(taken_reason).or_else(|| not_ready(task))?;
        Some(SkippedTask { id: task.id.clone(), title: task.title.clone(), reason })
    };
    let warning = |warning: &Warning| format!("{source}:{}: {}", warning.line, warning.message);
    SlotsReport::new(
        source,
        offer.ready.iter().filter_map(ready).collect(),
        offer.file.tasks.iter().filter_map(left_out).collect(),
        offer.file.warnings.iter().map(warning).collect(),
    )
}

/// Why an unfinished task cannot start now.
fn not_ready(task: &SourceTask) -> Option<String> {
    match task.state {
        SourceState::Open if is_nameable(&task.id) => None,
        SourceState::Open => Some("its id cannot be handed to a program".to_owned()),
        SourceState::Blocked if task.depends_on.is_empty() => Some("blocked".to_owned()),
        SourceState::Blocked => Some(format!("blocked, after {}", task.depends_on.join(", "))),
        SourceState::InProgress | SourceState::Deferred | SourceState::Review => {
            Some(task.state.as_str().replace('_', " "))
        }
        SourceState::NotWork => Some("no work for an agent".to_owned()),
        SourceState::Done | SourceState::Cancelled => None,
    }
}

/// `task 3 has it (failed): signoff retry 3 goes on`.
pub fn taken_reason(taken: &TakenTask) -> String {
    let TakenTask { id, by, status } = taken;
    let what_now = match status {
        TaskStatus::Failed | TaskStatus::Stuck => format!(": `signoff retry {by}` goes on with it"),
        TaskStatus::InProgress | TaskStatus::Pending | TaskStatus::Paused | TaskStatus::Blocked => {
            ": `signoff run --resume` continues it if no signoff is running".to_owned()
        }
        TaskStatus::Waiting => ": `signoff` shows what it waits for".to_owned(),
        TaskStatus::Completed => {
            format!(": `signoff run --resume` closes {id} if it is still open, `signoff add` adds it again")
        }
        TaskStatus::Cancelled => String::new(),
    };
    format!("task {by} has it ({}){what_now}", status.as_str())
}

fn is_reviewed(workflow: &Workflow) -> bool {
    workflow.first_gate().is_some()
}

/// Prints the tasks that signoff has finished but that a tracker file still lists as open. Signoff does not write the
/// file, and the file does not say whether a task was reopened.
pub fn print_done(tracker: &Tracker, offer: &Offer, console: &Console) -> Result<()> {
    let TaskSource::File { path } = &tracker.supply else { return Ok(()) };
    let is_done = |task: &&SourceTask| task.state == SourceState::Done;
    let file = tracker.read(&BTreeSet::new())?;
    let is_done_in_file = |task: &&SourceTask| file.task(&task.id).as_ref().is_some_and(is_done);
    let done: Vec<&str> = offer
        .file
        .tasks
        .iter()
        .filter(is_done)
        .filter(|task| !is_done_in_file(task))
        .map(|task| task.id.as_str())
        .collect();
    if !done.is_empty() {
        let more = if done.len() > MAX_NAMED { ", …" } else { "" };
        let ids = done.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
        console.note(&format!(
            "{ids}{more}: done by signoff, open in {path}. A file does not say what was reopened: `signoff add` \
             adds it again"
        ));
    }
    Ok(())
}
