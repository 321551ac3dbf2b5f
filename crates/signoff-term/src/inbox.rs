//! The text of `signoff` without a command: tasks that need a person, running tasks, and counts.

use std::collections::{BTreeMap, BTreeSet};

use signoff_core::task::TaskType;
use signoff_core::view::{QuestionRow, RunRow, TaskRow, TaskStatus};

use crate::fit::cut;
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

/// All tasks, the unfinished runs, and which runs have a running process.
#[derive(Debug, Clone, Copy)]
pub struct ProjectSnapshot<'a> {
    pub tasks: &'a [TaskRow],
    /// Runs that are not finished.
    pub runs: &'a [RunRow],
    /// Ids of the runs that a process is working on now.
    pub driven: &'a BTreeSet<u64>,
}

impl ProjectSnapshot<'_> {
    /// Whether a task is in progress but no process is working on its run.
    fn is_interrupted(&self, task: &TaskRow) -> bool {
        let driven = task.run_id.is_some_and(|run| self.driven.contains(&run));
        task.status == TaskStatus::InProgress && !driven
    }

    /// Whether a task waits for a rate limit and a running process will resume it.
    fn resumes_by_itself(&self, task: &TaskRow) -> bool {
        let driven = task.run_id.is_some_and(|run| self.driven.contains(&run));
        is_rate_limited(task) && driven
    }

    /// The run of a task, if that run has groups.
    fn group_run_of(&self, task: &TaskRow) -> Option<&RunRow> {
        self.runs.iter().find(|run| runs::has_groups(run) && task.run_id == Some(run.id))
    }

    /// The run to list instead of this interrupted task.
    fn interrupted_run_of(&self, task: &TaskRow) -> Option<&RunRow> {
        self.runs.iter().find(|run| runs::is_listed(run, self) && task.run_id == Some(run.id))
    }

    /// Whether a person rejected a task of the run.
    fn has_rejected_task(&self, run: &RunRow) -> bool {
        self.tasks.iter().any(|task| task.run_id == Some(run.id) && task.is_refused_by_person())
    }

    /// Whether the entry of the run already covers this task.
    fn is_covered_by_run(&self, task: &TaskRow) -> bool {
        task.status == TaskStatus::Blocked && self.group_run_of(task).is_some()
    }
}

/// What needs attention, then interrupted and running tasks, then counts.
pub fn text(snapshot: &ProjectSnapshot, questions: &[QuestionRow], title: usize) -> String {
    let tasks = snapshot.tasks;
    if tasks.is_empty() && questions.is_empty() && snapshot.runs.is_empty() {
        return EMPTY.to_owned();
    }
    let InboxTasks { needs_attention: troubled, interrupted: left, running } = InboxTasks::new(snapshot);
    let left: Vec<&TaskRow> = left.into_iter().filter(|task| snapshot.interrupted_run_of(task).is_none()).collect();
    let running: Vec<TaskRow> = running.into_iter().cloned().collect();
    let left_runs = run_entries(snapshot, |run| runs::is_interrupted(run, snapshot));
    let stopped_runs = run_entries(snapshot, runs::needs_attention);
    let going_runs = run_entries(snapshot, |run| run.status == "running" && !runs::is_interrupted(run, snapshot));
    let mut parts = Vec::new();
    if !questions.is_empty() || !troubled.is_empty() || !stopped_runs.is_empty() {
        parts.push(format!("Needs attention:\n{stopped_runs}{}", attention_entries(questions, &troubled, snapshot)));
    }
    if !left.is_empty() || !left_runs.is_empty() {
        parts.push(format!("Interrupted:\n{left_runs}{}", task_entries(&left, snapshot)));
    }
    if !running.is_empty() || !going_runs.is_empty() {
        parts.push(format!("Running:\n{going_runs}{}", status::rows(&running, title)));
    }
    parts.extend((!tasks.is_empty()).then(|| counts(tasks)));
    parts.join("\n")
}

/// Tasks by section. Tasks that need no entry are in none of them.
#[derive(Debug, Clone, PartialEq)]
pub struct InboxTasks<'a> {
    /// Tasks that need a person, most urgent first. Tasks with an open question are listed by their question.
    pub needs_attention: Vec<&'a TaskRow>,
    /// In progress, but no process is working on them.
    pub interrupted: Vec<&'a TaskRow>,
    pub running: Vec<&'a TaskRow>,
}

impl<'a> InboxTasks<'a> {
    pub fn new(snapshot: &ProjectSnapshot<'a>) -> Self {
        let tasks = snapshot.tasks;
        let latest = latest(tasks);
        // A person's decision about a task counts even if a later task continued its branch.
        let is_open = |task: &&TaskRow| {
            task.is_refused_by_person() || latest.get(&root(task)).is_none_or(|latest| *latest <= task.id)
        };
        let needs_entry = |task: &&TaskRow| !snapshot.is_covered_by_run(task) && !snapshot.resumes_by_itself(task);
        let urgent = tasks.iter().filter(is_open).filter(needs_entry);
        let mut troubled: Vec<_> = urgent.filter_map(|task| Some((urgency(task)?, task))).collect();
        troubled.sort_by_key(|(urgency, task)| (*urgency, task.id));
        let taken_up = |task: &TaskRow| task.status == TaskStatus::InProgress && !snapshot.is_interrupted(task);
        let runs = |task: &&TaskRow| taken_up(task) || snapshot.resumes_by_itself(task);
        Self {
            needs_attention: troubled.into_iter().map(|(_, task)| task).collect(),
            interrupted: tasks.iter().filter(|task| snapshot.is_interrupted(task)).collect(),
            running: tasks.iter().filter(runs).collect(),
        }
    }
}

/// Ids of the tasks that need a person, without those that a later task continues.
pub fn unsettled(tasks: &[TaskRow]) -> BTreeSet<u64> {
    let driven = BTreeSet::new();
    let sorted = InboxTasks::new(&ProjectSnapshot { tasks, runs: &[], driven: &driven });
    sorted.needs_attention.iter().map(|row| row.id).collect()
}

/// The entries of the matching runs, where a run has an entry of its own.
fn run_entries(snapshot: &ProjectSnapshot, which: impl Fn(&RunRow) -> bool) -> String {
    let shown = snapshot.runs.iter().filter(|run| runs::is_listed(run, snapshot) && which(run));
    shown.map(|run| runs::entry_lines(run, snapshot)).collect()
}

/// The task that this task continues, or itself.
fn root(task: &TaskRow) -> u64 {
    task.continues.unwrap_or(task.id)
}

/// The last task of each branch; it has the current result of the work.
fn latest(tasks: &[TaskRow]) -> BTreeMap<u64, u64> {
    let mut latest = BTreeMap::new();
    for task in tasks.iter().filter(|task| task.status != TaskStatus::Cancelled) {
        let last = latest.entry(root(task)).or_insert(task.id);
        *last = task.id.max(*last);
    }
    latest
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
        let (title, standing) = (cut(&task.title, status::TITLE), status::status_line(task));
        out.push_str(&format!("  {} {}. {title}: {standing}\n", task.state().mark(), task.id));
        out.push_str(&format!("      {}\n", next_command(task, snapshot)));
    }
    out
}

/// Whether a task waits for a rate limit.
fn is_rate_limited(task: &TaskRow) -> bool {
    task.status == TaskStatus::Paused && task.reason.as_deref() == Some("rate_limited")
}

/// Sort key: lower is more urgent. Waiting tasks are listed by their question.
fn urgency(task: &TaskRow) -> Option<u8> {
    match (task.status, task.outcome.as_deref()) {
        (TaskStatus::Failed, _) => Some(0),
        (TaskStatus::Stuck, _) => Some(1),
        (TaskStatus::Completed, Some("exhausted")) => Some(2),
        (TaskStatus::Completed, Some("discussion")) => Some(3),
        (TaskStatus::Completed, Some("completed_with_issues" | "nothing_to_review")) => Some(4),
        (TaskStatus::Blocked, _) => Some(5),
        (TaskStatus::Paused, _) => Some(6),
        (
            TaskStatus::Pending
            | TaskStatus::InProgress
            | TaskStatus::Waiting
            | TaskStatus::Completed
            | TaskStatus::Cancelled,
            _,
        ) => None,
    }
}

/// The command to type next for this task.
pub fn next_command(task: &TaskRow, snapshot: &ProjectSnapshot) -> String {
    let id = task.id;
    if task.is_refused_by_person() {
        return format!("signoff improve {id} --review");
    }
    match (task.status, task.outcome.as_deref()) {
        (TaskStatus::Failed, _) if task.kind == TaskType::Review && task.reason.as_deref() == Some("gate_failed") => {
            format!("signoff show {id}, then signoff improve {id} --review")
        }
        (TaskStatus::Failed | TaskStatus::Stuck, _) => format!("signoff show {id}, then signoff retry {id}"),
        (TaskStatus::Paused, _) if snapshot.resumes_by_itself(task) => {
            format!("it goes on by itself; signoff logs {id} -f")
        }
        (TaskStatus::Paused, _) if is_rate_limited(task) => {
            format!("signoff work {id} goes on when its agent may")
        }
        (TaskStatus::Paused, _) => format!("raise the budget, then signoff work {id}"),
        (TaskStatus::Blocked, _) => match snapshot.group_run_of(task) {
            Some(run) => {
                format!("its group waits for others: signoff status, then signoff run --resume {}", run.id)
            }
            None => unblock_commands(task, snapshot.tasks),
        },
        (TaskStatus::Pending, _) => format!("signoff work {id}"),
        (TaskStatus::InProgress, _) if snapshot.is_interrupted(task) => resume_command(task, snapshot),
        (TaskStatus::InProgress | TaskStatus::Waiting, _) => format!("signoff logs {id} -f"),
        (TaskStatus::Completed, outcome) => after_completion(task, outcome, snapshot),
        (TaskStatus::Cancelled, _) => "signoff add adds it again".to_owned(),
    }
}

/// The command to type next for a completed task with this outcome.
fn after_completion(task: &TaskRow, outcome: Option<&str>, snapshot: &ProjectSnapshot) -> String {
    let id = task.id;
    match outcome {
        Some("exhausted") if task.reason.as_deref() == Some("unclear_review") => {
            format!("signoff show {id}, then signoff retry {id}")
        }
        Some("exhausted") => {
            format!("signoff show {id}, then signoff improve {id} --review or signoff edit {id} --verdict APPROVED")
        }
        Some("discussion") => {
            format!("signoff show {id}, then signoff retry {id} or signoff edit {id} --verdict APPROVED")
        }
        Some("nothing_to_review") if task.kind == TaskType::Review => {
            format!("add work to its branch, then signoff review {id}; or signoff cancel {id}")
        }
        Some("nothing_to_review") => {
            format!("signoff retry {id}, signoff edit {id} --verdict APPROVED, or signoff cancel {id}")
        }
        Some(_) if task.reason.as_deref() == Some("changed_after_review") => {
            format!("signoff diff {id}, then signoff review {id}")
        }
        Some("completed_with_issues") => {
            format!("signoff show {id}, then signoff improve {id} --review")
        }
        Some("accepted") if task.is_approved_empty() => "nothing: it changes nothing".to_owned(),
        Some("approved" | "accepted") if task.landed_commit.is_some() => {
            format!("nothing: it is in the default branch; signoff diff {id}")
        }
        Some("approved" | "accepted") => match snapshot.group_run_of(task) {
            Some(run) if snapshot.has_rejected_task(run) => {
                format!("signoff diff {id}; a task of run {} was refused: signoff status", run.id)
            }
            Some(run) if run.failed_as_a_whole() => format!(
                "the final review of its run failed: signoff retry run-{0}, or signoff edit run-{0} --verdict APPROVED \
                 --reason TEXT",
                run.id
            ),
            Some(run) => format!("signoff diff {id}; it lands with run {}", run.id),
            None => format!("signoff diff {id}, then signoff merge {id}"),
        },
        Some(_) | None => {
            let branch = task.branch.as_deref().unwrap_or("its branch");
            format!("signoff diff {id}, then git merge {branch}")
        }
    }
}

/// The command that resumes an interrupted task.
fn resume_command(task: &TaskRow, snapshot: &ProjectSnapshot) -> String {
    if let Some(run) = snapshot.interrupted_run_of(task) {
        return format!("signoff run --resume {}", run.id);
    }
    if task.is_plan_task() { "signoff run --resume".to_owned() } else { format!("signoff work {}", task.id) }
}

/// The tasks that block this one, with a command for each.
fn unblock_commands(task: &TaskRow, tasks: &[TaskRow]) -> String {
    let of_run = |other: &TaskRow| task.is_plan_task() && other.is_plan_task() && other.run_id == task.run_id;
    let before = |other: &&TaskRow| task.depends_on.contains(&other.id) || of_run(other);
    let ways: Vec<String> = tasks.iter().filter(before).filter_map(|other| unblock_command(other, task)).collect();
    if ways.is_empty() { "it waits for another task; settle that one first".to_owned() } else { ways.join("; ") }
}

/// The command that resolves `other`, if it blocks `task`.
fn unblock_command(other: &TaskRow, task: &TaskRow) -> Option<String> {
    let id = other.id;
    match (other.status, other.outcome.as_deref()) {
        (TaskStatus::Cancelled, _) if !task.is_plan_task() => Some(format!(
            "waits for #{id}, which was cancelled: signoff cancel {}, and add it again without --depends-on {id}",
            task.id
        )),
        (TaskStatus::Blocked, _) if !task.is_plan_task() => Some(format!("waits for #{id}, which is blocked too")),
        (TaskStatus::Completed, Some("nothing_to_review")) => Some(format!(
            "waits for #{id} (nothing to review): signoff retry {id} or signoff edit {id} --verdict APPROVED"
        )),
        (TaskStatus::Failed | TaskStatus::Stuck, _) | (TaskStatus::Completed, Some("exhausted" | "discussion")) => {
            let retry = if other.is_refused_by_person() { String::new() } else { format!("signoff retry {id} or ") };
            let how = other.final_verdict.as_deref().unwrap_or(other.status.as_str());
            Some(format!("waits for #{id} ({how}): {retry}signoff edit {id} --verdict APPROVED"))
        }
        (
            TaskStatus::Pending
            | TaskStatus::InProgress
            | TaskStatus::Waiting
            | TaskStatus::Paused
            | TaskStatus::Completed
            | TaskStatus::Blocked
            | TaskStatus::Cancelled,
            _,
        ) => None,
    }
}

/// Whether `signoff work` would start the task now.
fn can_begin(task: &TaskRow, tasks: &[TaskRow]) -> bool {
    if task.status != TaskStatus::Pending {
        return false;
    }
    let is_complete = |row: &TaskRow| {
        let stopped = matches!(row.outcome.as_deref(), Some("exhausted" | "discussion" | "nothing_to_review"));
        row.status == TaskStatus::Completed && !stopped
    };
    // A run continues past cancelled tasks.
    let passed = |row: &TaskRow| task.run_id.is_some() && row.status == TaskStatus::Cancelled;
    let is_satisfied = |id: &u64| tasks.iter().any(|row| row.id == *id && (is_complete(row) || passed(row)));
    let held_up = |row: &TaskRow| {
        let busy = matches!(row.status, TaskStatus::Waiting | TaskStatus::InProgress | TaskStatus::Paused);
        row.run_id == task.run_id && busy
    };
    let in_turn = !task.is_plan_task() || !tasks.iter().any(held_up);
    in_turn && task.depends_on.iter().all(is_satisfied)
}

fn counts(tasks: &[TaskRow]) -> String {
    let number = |status: TaskStatus| {
        tasks.iter().filter(|task| task.status == status && !status::waits_for_its_group(task)).count()
    };
    let approved = tasks.iter().filter(|task| status::waits_for_its_group(task)).count();
    let counted = TaskStatus::ALL.into_iter().map(|status| (number(status), status.as_str()));
    let counted = counted.chain([(approved, "approved, waiting for their group")]);
    let counted: Vec<_> =
        counted.filter(|(number, _)| *number > 0).map(|(number, word)| format!("{number} {word}")).collect();
    let can_begin = tasks.iter().any(|task| can_begin(task, tasks));
    let hint = if can_begin { "\n  signoff work    works what is pending" } else { "" };
    format!("{}{hint}\n", counted.join(", "))
}
