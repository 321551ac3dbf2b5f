//! Runs of groups, and of slots that nobody goes on with, as lists show them: how far each is, what blocks it, and what to type.

use signoff_core::view::{RunRow, Status, TaskRow, TaskState};

use crate::attention::{self, Scene};
use crate::fit::{count, cut};

/// How many tasks that block a run are named.
const NAMED: usize = 5;

/// The preset of runs that fill slots.
const SLOTS: &str = "slots";

/// How wide the name of a specification may be.
const NAME: usize = 60;

/// Whether its tasks do not tell all there is to know.
pub fn is_told(run: &RunRow) -> bool {
    run.groups.is_some()
}

/// Whether it was to fill slots: its tasks tell all there is, but not how to go on with it.
fn fills_slots(run: &RunRow) -> bool {
    run.preset == SLOTS
}

/// Whether the list of all tasks names it too.
pub fn is_listed(run: &RunRow, scene: &Scene) -> bool {
    is_told(run) || (fills_slots(run) && is_left(run, scene))
}

/// Whether a person has to do something about it.
pub fn needs_somebody(run: &RunRow) -> bool {
    is_told(run) && (run.status == "blocked" || run.failed_as_a_whole())
}

/// Whether it was taken up and nobody works on it.
pub fn is_left(run: &RunRow, scene: &Scene) -> bool {
    (is_told(run) || fills_slots(run)) && run.status == "running" && !scene.driven.contains(&run.id)
}

/// How a run stands, and what to type about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub state: TaskState,
    /// `run 3 SPEC.md: group 1/2 is blocked by #5 (stuck)`.
    pub standing: String,
    pub next: Vec<String>,
}

impl Told {
    pub fn of(run: &RunRow, scene: &Scene) -> Self {
        let by: Vec<&TaskRow> = scene.tasks.iter().filter(|task| blocks(task, run)).collect();
        let unfinished = scene.tasks.iter().filter(|task| is_unfinished(task, run)).count();
        let standing = match run.groups {
            Some(_) => standing(run, &by),
            None if unfinished == 0 => format!("run {}: unfinished", run.id),
            None => format!("run {}: {}", run.id, count(unfinished as u64, "unfinished task")),
        };
        Self { state: state(run, scene.tasks), standing, next: next(run, &by, scene) }
    }
}

/// `  ▪ run 3 SPEC.md: group 1/2 is blocked by #5 (stuck)`, and below it what to type.
pub fn told(run: &RunRow, scene: &Scene) -> String {
    let told = Told::of(run, scene);
    let mut out = format!("  {} {}\n", told.state.mark(), told.standing);
    for line in told.next {
        out.push_str(&format!("      {line}\n"));
    }
    out
}

/// The status word of a run as one of a task.
pub fn status(run: &RunRow) -> &'static str {
    let status = match run.status.as_str() {
        "blocked" => Status::Blocked,
        "failed" => Status::Failed,
        "cancelled" => Status::Cancelled,
        "completed" => Status::Completed,
        _ => Status::InProgress,
    };
    status.word()
}

/// The state of a run. The state of a completed run follows from those of its tasks, see [`together`].
pub fn state(run: &RunRow, tasks: &[TaskRow]) -> TaskState {
    match run.status.as_str() {
        "blocked" => TaskState::Blocked,
        "failed" => TaskState::Failed,
        "cancelled" => TaskState::Cancelled,
        "completed" => {
            let own = tasks.iter().filter(|task| task.run_id == Some(run.id)).map(TaskRow::state);
            together(own)
        }
        _ => TaskState::Working,
    }
}

/// The combined state of finished tasks: approved only if all of them are. Cancelled tasks do not count.
pub fn together(states: impl IntoIterator<Item = TaskState>) -> TaskState {
    let mut states: Vec<TaskState> = states.into_iter().collect();
    states.retain(|state| *state != TaskState::Cancelled);
    let any = |wanted: TaskState| states.contains(&wanted);
    match states.iter().copied().max() {
        None => TaskState::Cancelled,
        Some(TaskState::Failed) => TaskState::Failed,
        Some(_) if states.iter().all(|state| *state == TaskState::Landed) => TaskState::Landed,
        Some(_) if states.iter().all(|state| state.is_approved()) => TaskState::Approved,
        Some(_) if any(TaskState::NeedsYou) || any(TaskState::Rejected) => TaskState::NeedsYou,
        Some(_) => TaskState::Unreviewed,
    }
}

/// How far it is.
fn standing(run: &RunRow, by: &[&TaskRow]) -> String {
    let name = run.specification.as_ref().map(|name| format!(" {}", cut(name, NAME))).unwrap_or_default();
    let group = run.group.zip(run.groups).map(|(group, all)| format!("group {group}/{all}"));
    let group = group.unwrap_or_default();
    let stage = match run.stage.as_str() {
        "queued" | "preparing" => "planning".to_owned(),
        "blocked" if by.is_empty() => format!("{group} is blocked"),
        "blocked" => format!("{group} is blocked by {}", names(by)),
        "working" => group,
        "reviewing" => "final review".to_owned(),
        "landing" => "landing on the default branch".to_owned(),
        _ if run.failed_as_a_whole() && run.groups == Some(0) => "failed in planning".to_owned(),
        _ if run.failed_as_a_whole() && !by.is_empty() => format!("not approved: {}", names(by)),
        _ if run.failed_as_a_whole() => "final review failed".to_owned(),
        _ => run.status.clone(),
    };
    format!("run {}{name}: {stage}", run.id)
}

fn names(by: &[&TaskRow]) -> String {
    let named: Vec<_> = by.iter().take(NAMED).map(|task| format!("#{} ({})", task.id, why(task))).collect();
    let more = by.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
}

fn why(task: &TaskRow) -> &str {
    task.reason.as_deref().unwrap_or(task.status.word())
}

/// What to type about it.
fn next(run: &RunRow, by: &[&TaskRow], scene: &Scene) -> Vec<String> {
    let id = run.id;
    if run.failed_as_a_whole() && !by.is_empty() {
        let way = |task: &&TaskRow| {
            let accept = format!("signoff edit {} --verdict APPROVED --reason TEXT", task.id);
            format!("{accept}, or {}", attention::next(task, scene))
        };
        return by.iter().take(NAMED).map(way).collect();
    }
    if run.failed_as_a_whole() {
        let look = format!("its reviews are .signoff/reviews/*-run-{id}-*");
        // One that failed in planning is planned anew.
        let decide = run.groups.filter(|groups| *groups > 0).map(|_| {
            format!("signoff retry run-{id}, or signoff edit run-{id} --verdict APPROVED --reason TEXT")
        });
        return std::iter::once(look).chain(decide).collect();
    }
    if run.status == "blocked" {
        let ways = by.iter().take(NAMED).map(|task| {
            let id = task.id;
            format!("signoff retry {id}, signoff edit {id} --verdict APPROVED, or signoff cancel {id}")
        });
        return ways.chain([format!("then signoff run --resume {id}")]).collect();
    }
    if is_left(run, scene) { vec![format!("signoff run --resume {id}")] } else { Vec::new() }
}

fn is_unfinished(task: &TaskRow, run: &RunRow) -> bool {
    let over = match task.status {
        Status::Completed | Status::Failed | Status::Stuck | Status::Cancelled => true,
        Status::Pending | Status::InProgress | Status::Waiting | Status::Paused | Status::Blocked => false,
    };
    task.run_id == Some(run.id) && !over
}

/// Whether a run waits for somebody to resolve this task.
fn blocks(task: &TaskRow, run: &RunRow) -> bool {
    let stopped = matches!(
        task.outcome.as_deref(),
        Some("exhausted" | "discussion" | "nothing_to_review" | "failed" | "stuck")
    );
    task.run_id == Some(run.id) && (stopped || matches!(task.status, Status::Failed | Status::Stuck))
}
