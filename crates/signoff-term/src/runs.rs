//! List entries of runs with groups and of interrupted slot runs: progress, blockers and the commands to type.

use signoff_core::view::{RunRow, TaskRow, TaskState, TaskStatus};

use crate::fit::{count, cut};
use crate::inbox::{self, ProjectSnapshot};

/// Maximum number of blocking tasks to name.
const NAMED: usize = 5;

/// The preset of slot runs.
const SLOTS: &str = "slots";

/// Maximum width of the name of a specification.
const NAME: usize = 60;

/// Whether the run has groups, so that it needs an entry beside those of its tasks.
pub fn has_groups(run: &RunRow) -> bool {
    run.groups.is_some()
}

/// Whether the run fills slots. It needs an entry only for the command that resumes it.
fn fills_slots(run: &RunRow) -> bool {
    run.preset == SLOTS
}

/// Whether task lists have an entry for this run.
pub fn is_listed(run: &RunRow, snapshot: &ProjectSnapshot) -> bool {
    has_groups(run) || (fills_slots(run) && is_interrupted(run, snapshot))
}

/// Whether the run needs a person.
pub fn needs_attention(run: &RunRow) -> bool {
    has_groups(run) && (run.status == "blocked" || run.failed_as_a_whole())
}

/// Whether the run has started but no process is working on it.
pub fn is_interrupted(run: &RunRow, snapshot: &ProjectSnapshot) -> bool {
    (has_groups(run) || fills_slots(run)) && run.status == "running" && !snapshot.driven.contains(&run.id)
}

/// The state of a run, and the commands to type next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEntry {
    pub state: TaskState,
    /// `run 3 SPEC.md: group 1/2 is blocked by #5 (stuck)`.
    pub text: String,
    pub next: Vec<String>,
}

impl RunEntry {
    pub fn new(run: &RunRow, snapshot: &ProjectSnapshot) -> Self {
        let by: Vec<&TaskRow> = snapshot.tasks.iter().filter(|task| blocks(task, run)).collect();
        let unfinished = snapshot.tasks.iter().filter(|task| is_unfinished(task, run)).count();
        let standing = match run.groups {
            Some(_) => progress_text(run, &by),
            None if unfinished == 0 => format!("run {}: unfinished", run.id),
            None => format!("run {}: {}", run.id, count(unfinished as u64, "unfinished task")),
        };
        Self { state: state(run, snapshot.tasks), text: standing, next: next_commands(run, &by, snapshot) }
    }
}

/// `  ▪ run 3 SPEC.md: group 1/2 is blocked by #5 (stuck)`, followed by the commands to type.
pub fn entry_lines(run: &RunRow, snapshot: &ProjectSnapshot) -> String {
    let entry = RunEntry::new(run, snapshot);
    let mut out = format!("  {} {}\n", entry.state.mark(), entry.text);
    for line in entry.next {
        out.push_str(&format!("      {line}\n"));
    }
    out
}

/// The status of a run, as a task status.
pub fn status(run: &RunRow) -> &'static str {
    let status = match run.status.as_str() {
        "blocked" => TaskStatus::Blocked,
        "failed" => TaskStatus::Failed,
        "cancelled" => TaskStatus::Cancelled,
        "completed" => TaskStatus::Completed,
        _ => TaskStatus::InProgress,
    };
    status.as_str()
}

/// The state of a run. The state of a completed run follows from those of its tasks, see `combined_state`.
pub fn state(run: &RunRow, tasks: &[TaskRow]) -> TaskState {
    match run.status.as_str() {
        "blocked" => TaskState::Blocked,
        "failed" => TaskState::Failed,
        "cancelled" => TaskState::Cancelled,
        "completed" => {
            let own = tasks.iter().filter(|task| task.run_id == Some(run.id)).map(TaskRow::state);
            combined_state(own)
        }
        _ => TaskState::Working,
    }
}

/// The combined state of finished tasks: approved only if all of them are. Cancelled tasks do not count.
pub fn combined_state(states: impl IntoIterator<Item = TaskState>) -> TaskState {
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

/// The progress of a run with groups.
fn progress_text(run: &RunRow, blockers: &[&TaskRow]) -> String {
    let name = run.specification.as_ref().map(|name| format!(" {}", cut(name, NAME))).unwrap_or_default();
    let group = run.group.zip(run.groups).map(|(group, all)| format!("group {group}/{all}"));
    let group = group.unwrap_or_default();
    let stage = match run.stage.as_str() {
        "queued" | "preparing" => "planning".to_owned(),
        "blocked" if blockers.is_empty() => format!("{group} is blocked"),
        "blocked" => format!("{group} is blocked by {}", names(blockers)),
        "working" => group,
        "reviewing" => "final review".to_owned(),
        "landing" => "landing on the default branch".to_owned(),
        _ if run.failed_as_a_whole() && run.groups == Some(0) => "failed in planning".to_owned(),
        _ if run.failed_as_a_whole() && !blockers.is_empty() => format!("not approved: {}", names(blockers)),
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
    task.reason.as_deref().unwrap_or(task.status.as_str())
}

/// The commands to type next.
fn next_commands(run: &RunRow, blockers: &[&TaskRow], snapshot: &ProjectSnapshot) -> Vec<String> {
    let id = run.id;
    if run.failed_as_a_whole() && !blockers.is_empty() {
        let way = |task: &&TaskRow| {
            let accept = format!("signoff edit {} --verdict APPROVED --reason TEXT", task.id);
            format!("{accept}, or {}", inbox::next_command(task, snapshot))
        };
        return blockers.iter().take(NAMED).map(way).collect();
    }
    if run.failed_as_a_whole() {
        let look = format!("its reviews are .signoff/reviews/*-run-{id}-*");
        // A run that failed in planning is planned again.
        let decide = run
            .groups
            .filter(|groups| *groups > 0)
            .map(|_| format!("signoff retry run-{id}, or signoff edit run-{id} --verdict APPROVED --reason TEXT"));
        return std::iter::once(look).chain(decide).collect();
    }
    if run.status == "blocked" {
        let ways = blockers.iter().take(NAMED).map(|task| {
            let id = task.id;
            format!("signoff retry {id}, signoff edit {id} --verdict APPROVED, or signoff cancel {id}")
        });
        return ways.chain([format!("then signoff run --resume {id}")]).collect();
    }
    if is_interrupted(run, snapshot) { vec![format!("signoff run --resume {id}")] } else { Vec::new() }
}

fn is_unfinished(task: &TaskRow, run: &RunRow) -> bool {
    task.run_id == Some(run.id) && !task.status.is_over()
}

/// Whether a person must resolve this task before the run can continue.
fn blocks(task: &TaskRow, run: &RunRow) -> bool {
    let stopped =
        matches!(task.outcome.as_deref(), Some("exhausted" | "discussion" | "nothing_to_review" | "failed" | "stuck"));
    task.run_id == Some(run.id) && (stopped || matches!(task.status, TaskStatus::Failed | TaskStatus::Stuck))
}
