//! What slots would be filled with, and why the rest is left out.

use std::collections::BTreeSet;

use signoff_core::group::Supply;
use signoff_core::ids::TaskId;
use signoff_core::source::{SourceTask, State, Warning};
use signoff_core::task::TaskSpec;
use signoff_core::view::{Status, TaskRow};
use signoff_core::workflow::Workflow;
use signoff_engine::tracker::{Offer, Taken, Tracker, is_nameable};
use signoff_store::Store;
use signoff_term::slots::{LeftOut, ReadyTask, SlotsReport};

use super::Slots;
use crate::console::Console;
use crate::failure::Failure;

/// So many tasks are named in one line.
const NAMED: usize = 8;

impl Slots<'_> {
    /// What the queue offers.
    pub fn of_queue(&self, tasks: &[TaskId]) -> Result<SlotsReport, Failure> {
        let mut report = SlotsReport::of("queue", Vec::new(), Vec::new(), Vec::new());
        for task in tasks {
            let spec = self.bench.store.task_spec(*task)?.unwrap_or_default();
            let auto_review = is_reviewed(&self.workflow(&spec)?);
            report.ready.push(ReadyTask {
                id: task.to_string(),
                title: spec.title,
                priority: None,
                auto_review,
            });
        }
        let waits =
            |row: &TaskRow| matches!(row.status, Status::Pending | Status::Blocked) && row.run_id.is_none();
        for row in self.bench.desk().tasks()? {
            if waits(&row) && !tasks.contains(&TaskId(row.id)) {
                let before: Vec<String> = row.depends_on.iter().map(ToString::to_string).collect();
                let reason = match before.as_slice() {
                    [] => "somebody else works on its branch".to_owned(),
                    tasks => format!("waits for task {}", tasks.join(", ")),
                };
                report.left_out.push(LeftOut { id: row.id.to_string(), title: row.title, reason });
            }
        }
        Ok(report)
    }
}

/// What a tracker offers.
pub fn of_tracker(supply: &Supply, offer: &Offer, workflow: &Workflow) -> SlotsReport {
    let source = match supply {
        Supply::Program { name } => name,
        Supply::File { path } => path,
        Supply::Queue => "queue",
    };
    let auto_review = is_reviewed(workflow);
    let ready = |spec: &TaskSpec| {
        let tracked = spec.tracked.as_ref()?;
        let (id, title, priority) = (tracked.id.clone(), spec.title.clone(), tracked.priority);
        Some(ReadyTask { id, title, priority, auto_review })
    };
    let left_out = |task: &SourceTask| {
        let taken = offer.taken.iter().find(|taken| taken.id == task.id);
        let reason = taken.map(has).or_else(|| not_ready(task))?;
        Some(LeftOut { id: task.id.clone(), title: task.title.clone(), reason })
    };
    let warning = |warning: &Warning| format!("{source}:{}: {}", warning.line, warning.message);
    SlotsReport::of(
        source,
        offer.ready.iter().filter_map(ready).collect(),
        offer.file.tasks.iter().filter_map(left_out).collect(),
        offer.file.warnings.iter().map(warning).collect(),
    )
}

/// Why a task that is not done cannot be begun now.
fn not_ready(task: &SourceTask) -> Option<String> {
    match task.state {
        State::Open if is_nameable(&task.id) => None,
        State::Open => Some("its id cannot be handed to a program".to_owned()),
        State::Blocked if task.depends_on.is_empty() => Some("blocked".to_owned()),
        State::Blocked => Some(format!("blocked, after {}", task.depends_on.join(", "))),
        State::InProgress | State::Deferred | State::Review => Some(task.state.word().replace('_', " ")),
        State::NotWork => Some("no work for an agent".to_owned()),
        State::Done | State::Cancelled => None,
    }
}

/// `task 3 has it (failed): signoff retry 3 goes on`.
pub fn has(taken: &Taken) -> String {
    let Taken { id, by, status } = taken;
    let what_now = match status {
        Status::Failed | Status::Stuck => format!(": `signoff retry {by}` goes on with it"),
        Status::InProgress | Status::Pending | Status::Paused | Status::Blocked => {
            ": `signoff run --resume` goes on where nobody is at work".to_owned()
        }
        Status::Waiting => ": `signoff` shows what it waits for".to_owned(),
        Status::Completed => {
            format!(
                ": `signoff run --resume` closes {id} if that is still to be done, `signoff add` has it done again"
            )
        }
        Status::Cancelled => String::new(),
    };
    format!("task {by} has it ({}){what_now}", status.word())
}

fn is_reviewed(workflow: &Workflow) -> bool {
    workflow.first_gate().is_some()
}

/// A file that is only read goes on to call open what is done: whether it was opened again it does not tell.
pub fn tell_of_done(tracker: &Tracker, offer: &Offer, console: &Console) -> Result<(), Failure> {
    let Supply::File { path } = &tracker.supply else { return Ok(()) };
    let is_done = |task: &&SourceTask| task.state == State::Done;
    let file = tracker.read(&BTreeSet::new())?;
    let told = |task: &&SourceTask| file.task(&task.id).as_ref().is_some_and(is_done);
    let done: Vec<&str> = offer
        .file
        .tasks
        .iter()
        .filter(is_done)
        .filter(|task| !told(task))
        .map(|task| task.id.as_str())
        .collect();
    if !done.is_empty() {
        let more = if done.len() > NAMED { ", …" } else { "" };
        let ids = done.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        console.note(&format!(
            "{ids}{more}: done by signoff, open in {path}. A file does not tell what was opened again: `signoff add` \
             has it done again"
        ));
    }
    Ok(())
}
