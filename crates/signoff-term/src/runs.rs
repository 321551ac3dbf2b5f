//! List entries of runs with groups and of interrupted slot runs: progress, blockers and the commands to type.

use signoff_core::group::RunStageKind;
use signoff_core::view::inbox::{Action, NextStep, ProjectSnapshot, RunBlock};
use signoff_core::view::{RunRow, RunStatus, TaskRow, TaskState, TaskStatus};

use crate::fit::{count, first, truncate_line};

/// Maximum number of blocking tasks to name.
const NAMED: usize = 5;

/// Maximum width of the name of a specification.
const NAME: usize = 60;

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
        let by = snapshot.blockers(run);
        let unfinished = snapshot.tasks.iter().filter(|task| is_unfinished(task, run)).count();
        let text = match run.groups {
            Some(_) => progress_text(run, &by),
            None if unfinished == 0 => format!("run {}: unfinished", run.id),
            None => format!("run {}: {}", run.id, count(unfinished as u64, "unfinished task")),
        };
        Self { state: run.state(snapshot.tasks), text, next: next_commands(run, snapshot) }
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
    let status = match run.status {
        RunStatus::Running => TaskStatus::InProgress,
        RunStatus::Blocked => TaskStatus::Blocked,
        RunStatus::Failed => TaskStatus::Failed,
        RunStatus::Cancelled => TaskStatus::Cancelled,
        RunStatus::Completed => TaskStatus::Completed,
    };
    status.into_str()
}

/// The progress of a run with groups.
fn progress_text(run: &RunRow, blockers: &[&TaskRow]) -> String {
    let name = run.specification.as_ref().map(|name| format!(" {}", truncate_line(name, NAME))).unwrap_or_default();
    let group = run.group.zip(run.groups).map(|(group, all)| format!("group {group}/{all}"));
    let group = group.unwrap_or_default();
    let stage = match run.stage {
        RunStageKind::Queued | RunStageKind::Preparing => "planning".to_owned(),
        RunStageKind::Blocked if blockers.is_empty() => format!("{group} is blocked"),
        RunStageKind::Blocked => format!("{group} is blocked by {}", names(blockers)),
        RunStageKind::Working => group,
        RunStageKind::Reviewing => "final review".to_owned(),
        RunStageKind::Landing => "landing on the default branch".to_owned(),
        RunStageKind::Done if run.failed_as_a_whole() && run.groups == Some(0) => "failed in planning".to_owned(),
        RunStageKind::Done if run.failed_as_a_whole() && !blockers.is_empty() => {
            format!("not approved: {}", names(blockers))
        }
        RunStageKind::Done if run.failed_as_a_whole() => "final review failed".to_owned(),
        RunStageKind::Done => run.status.into_str().to_owned(),
    };
    format!("run {}{name}: {stage}", run.id)
}

fn names(by: &[&TaskRow]) -> String {
    let why = |task: &TaskRow| task.reason.map_or(task.status.into_str(), <&str>::from);
    let names: Vec<_> = by.iter().map(|task| format!("#{} ({})", task.id, why(task))).collect();
    first(&names, NAMED)
}

/// The commands to type next.
fn next_commands(run: &RunRow, snapshot: &ProjectSnapshot) -> Vec<String> {
    let id = run.id;
    match snapshot.run_block(run) {
        Some(RunBlock::NotApproved { tasks }) => {
            let command = |task: &&TaskRow| {
                format!("{}, or {}", Action::AcceptWithReason(task.id), NextStep::for_task(task, snapshot))
            };
            tasks.iter().take(NAMED).map(command).collect()
        }
        Some(RunBlock::Failed { in_planning }) => {
            let reviews = format!("its reviews are .signoff/reviews/*-run-{id}-*");
            let decide = || format!("{}, or {}", Action::RetryRun(id), Action::AcceptRun(id));
            std::iter::once(reviews).chain((!in_planning).then(decide)).collect()
        }
        Some(RunBlock::Blocked { tasks }) => {
            let commands = tasks.iter().take(NAMED).map(|task| NextStep::unblock_run(task.id).to_string());
            commands.chain([format!("then {}", Action::ResumeRun(Some(id)))]).collect()
        }
        None if snapshot.is_run_interrupted(run) => vec![Action::ResumeRun(Some(id)).to_string()],
        None => Vec::new(),
    }
}

fn is_unfinished(task: &TaskRow, run: &RunRow) -> bool {
    task.run_id == Some(run.id) && !task.status.is_over()
}
