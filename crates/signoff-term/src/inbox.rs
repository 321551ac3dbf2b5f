//! The text of `signoff` without a command: tasks that need a person, running tasks, and counts.

use signoff_core::view::inbox::{InboxTasks, NextStep, ProjectSnapshot, can_begin, waits_for_its_group};
use signoff_core::view::{QuestionRow, RunRow, RunStatus, TaskRow, TaskStatus};

use crate::fit::{self, truncate_line};
use crate::{runs, status};

const EMPTY: &str = "\
Nothing to do yet.

  signoff add \"what is to be done\" -a    a task, reviewed until it is approved
  signoff work                           works the tasks
  signoff run PLAN                       works the tasks of a plan file

`signoff --help` lists all commands.
";

/// Maximum number of questions and of tasks per section; `signoff status` lists all.
const SHOWN: usize = 20;

/// What needs attention, then interrupted and running tasks, then counts.
pub fn text(snapshot: &ProjectSnapshot, questions: &[QuestionRow], title: usize) -> String {
    let tasks = snapshot.tasks;
    if tasks.is_empty() && questions.is_empty() && snapshot.runs.is_empty() {
        return EMPTY.to_owned();
    }
    let InboxTasks { needs_attention: attention_tasks, interrupted: interrupted_tasks, running } =
        InboxTasks::new(snapshot);
    let interrupted_tasks: Vec<&TaskRow> =
        interrupted_tasks.into_iter().filter(|task| snapshot.interrupted_run_of(task).is_none()).collect();
    let running: Vec<TaskRow> = running.into_iter().cloned().collect();
    let interrupted_runs = run_entries(snapshot, |run| snapshot.is_run_interrupted(run));
    let stopped_runs = run_entries(snapshot, RunRow::needs_attention);
    let running_runs =
        run_entries(snapshot, |run| run.status == RunStatus::Running && !snapshot.is_run_interrupted(run));
    let mut parts = Vec::new();
    if !questions.is_empty() || !attention_tasks.is_empty() || !stopped_runs.is_empty() {
        parts.push(format!(
            "Needs attention:\n{stopped_runs}{}",
            attention_entries(questions, &attention_tasks, snapshot)
        ));
    }
    if !interrupted_tasks.is_empty() || !interrupted_runs.is_empty() {
        parts.push(format!("Interrupted:\n{interrupted_runs}{}", task_entries(&interrupted_tasks, snapshot)));
    }
    if !running.is_empty() || !running_runs.is_empty() {
        parts.push(format!("Running:\n{running_runs}{}", status::rows(&running, title)));
    }
    parts.extend((!tasks.is_empty()).then(|| counts(tasks)));
    parts.join("\n")
}

/// The entries of the matching runs, where a run has an entry of its own.
fn run_entries(snapshot: &ProjectSnapshot, which: impl Fn(&RunRow) -> bool) -> String {
    let shown = snapshot.runs.iter().filter(|run| snapshot.lists_run(run) && which(run));
    shown.map(|run| runs::entry_lines(run, snapshot)).collect()
}

fn attention_entries(questions: &[QuestionRow], tasks: &[&TaskRow], snapshot: &ProjectSnapshot) -> String {
    let mut out = String::new();
    for question in questions.iter().take(SHOWN) {
        out.push_str(&status::question_lines(question));
    }
    out.push_str(&task_entries(tasks, snapshot));
    let more = questions.len().saturating_sub(SHOWN) + tasks.len().saturating_sub(SHOWN);
    if more > 0 {
        out.push_str(&format!("  … and {more} more: signoff status\n"));
    }
    out
}

/// The status of each task, and the command to type next.
fn task_entries(tasks: &[&TaskRow], snapshot: &ProjectSnapshot) -> String {
    let mut out = String::new();
    for task in tasks.iter().take(SHOWN) {
        let (title, status) = (truncate_line(&task.title, status::MAX_TITLE_WIDTH), status::status_line(task));
        out.push_str(&format!("  {} {}. {title}: {status}\n", task.state().mark(), task.id));
        out.push_str(&format!("      {}\n", NextStep::for_task(task, snapshot)));
    }
    out
}

fn counts(tasks: &[TaskRow]) -> String {
    let number =
        |status: TaskStatus| tasks.iter().filter(|task| task.status == status && !waits_for_its_group(task)).count();
    let approved = tasks.iter().filter(|task| waits_for_its_group(task)).count();
    let counted = TaskStatus::ALL.iter().map(|status| (number(*status), status.into_str()));
    let counted = counted.chain([(approved, "approved, waiting for their group")]);
    let can_begin = tasks.iter().any(|task| can_begin(task, tasks));
    let hint = if can_begin { "\n  signoff work    works what is pending" } else { "" };
    format!("{}{hint}\n", fit::counts(counted))
}
