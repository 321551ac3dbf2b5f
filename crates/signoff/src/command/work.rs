//! `signoff work`: works the tasks of the queue.

use std::collections::BTreeSet;

use signoff_core::ids::{RunId, TaskId};
use signoff_core::view::inbox::{self, Action, InvocationScope, InvocationSummary, NextStep, ProjectSnapshot};
use signoff_core::view::{TaskRow, TaskStatus};
use signoff_engine::dispatcher::{RunLoopOptions, ready};
use signoff_engine::{clock, start_run};
use signoff_store::{Lease, Store};
use signoff_term::exit;
use signoff_term::json::RunReport;
use signoff_term::status::status_line;

use crate::run_loop::{self, RunRequest, notifications, task_id};
use crate::{CliError, CommandExit, Console, Project, Result, preflight};

/// Work the tasks in the queue
///
/// Resumes interrupted and answered tasks, then starts the tasks that are ready, each in its own worktree. Ends when
/// all remaining tasks need you. Ctrl-C finishes running agents; a second one stops them. On a terminal it shows a
/// screen: you answer questions with keys while other tasks continue; Esc leaves a question for later, `?` lists the
/// keys. --plain prints lines instead.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "Example:\n  signoff add \"Add user authentication\" -a\n  signoff work -j 4")]
pub struct Args {
    /// Work only these tasks
    #[arg(value_name = "ID", value_parser = task_id)]
    pub tasks: Vec<TaskId>,
    /// Maximum number of tasks in parallel
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Keep running and wait for new tasks
    #[arg(long)]
    pub watch: bool,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    let project = Project::open()?;
    let read_only = project.read_only();
    args.tasks.iter().try_for_each(|task| read_only.task(*task).map(drop))?;
    work(project, args, console)
}

impl Args {
    /// Works only this task.
    pub fn for_task(task: TaskId) -> Self {
        Self { tasks: vec![task], ..Self::default() }
    }
}

/// Works tasks until none is left.
pub fn work(project: Project, args: &Args, console: &Console) -> Result<CommandExit> {
    let Args { ref tasks, watch, jobs } = *args;
    let no_ask = console.no_ask || project.settings.no_ask();
    let mut request = RunRequest {
        options: RunLoopOptions { only: tasks.clone(), watch, no_ask, ..RunLoopOptions::default() },
        jobs: jobs.map(usize::from),
        resumed: resumable(&project, tasks)?,
        ..RunRequest::default()
    };
    let queue = ready(&*project.store, tasks, usize::MAX)?;
    if request.resumed.is_empty() && queue.is_empty() && !watch {
        return print_nothing_to_do(&project, tasks, console);
    }
    preflight::check_all(&project, &queue)?;
    for lease in &request.resumed {
        preflight::check_run(&project, lease.run(), None, tasks)?;
    }
    preflight::print_warnings(&project, console);
    if !queue.is_empty() {
        let jobs = request.jobs.unwrap_or(project.settings.jobs() as usize);
        let facts = start_run::queue(&project.settings, jobs, no_ask)?;
        request.opened.push((project.store.open_run(clock::now())?, facts));
    }
    let read_only = project.read_only();
    let exit = run_loop::run(project, request, console)?.print_result(console)?;
    if exit != CommandExit::Done || !tasks.is_empty() {
        return Ok(exit);
    }
    let all = read_only.tasks()?;
    let is_blocked = |row: &&TaskRow| row.status == TaskStatus::Blocked && row.run_id.is_none();
    all.iter().find(is_blocked).map_or(Ok(exit), |blocked| Err(blocked_error(blocked, &all)))
}

/// Acquires the open runs that no other process drives and that contain one of these tasks, or all.
pub fn resumable(project: &Project, tasks: &[TaskId]) -> Result<Vec<Lease>> {
    let mut leases = Vec::new();
    let rows = project.store.tasks()?;
    for run in project.store.open_runs()? {
        let named = |row: &TaskRow| row.run_id == Some(run.id.0) && tasks.contains(&TaskId(row.id));
        if tasks.is_empty() || rows.iter().any(named) {
            leases.extend(run_loop::try_acquire(&*project.store, run.id)?);
        }
    }
    Ok(leases)
}

/// Prints why there is nothing to do: there is no task, or all tasks wait for something.
pub fn print_nothing_to_do(project: &Project, tasks: &[TaskId], console: &Console) -> Result<CommandExit> {
    notifications::resend_undelivered(project, console);
    let all = project.read_only().tasks()?;
    let named = |row: &&TaskRow| tasks.is_empty() || tasks.contains(&TaskId(row.id));
    let rows: Vec<&TaskRow> = all.iter().filter(named).collect();
    let with_status = |status: TaskStatus| rows.iter().copied().filter(move |row| row.status == status);
    let blocked: Vec<TaskRow> = with_status(TaskStatus::Blocked).cloned().collect();
    if console.json {
        console.json(&RunReport::new(None, None, blocked.clone(), Vec::new()))?;
    }
    if let Some(first) = blocked.first() {
        return Err(blocked_error(first, &all));
    }
    let exit = exit_of(&all, InvocationScope::named(tasks));
    console.note(&match (with_status(TaskStatus::Pending).count(), with_status(TaskStatus::InProgress).count()) {
        (0, 0) => nothing_to_do_text(&rows, &all, tasks),
        (0, _) => "Nothing to do here: another signoff process is running".to_owned(),
        (_, _) => "Nothing is ready: pending tasks wait for other tasks (`signoff status`)".to_owned(),
    });
    let failed = if tasks.is_empty() { project.read_only().failed_final_reviews()? } else { Vec::new() };
    for run in &failed {
        let resume = Action::ResumeRun(Some(run.0));
        console.note(&format!("The final review of run {run} failed: `{resume}` shows what to do"));
    }
    Ok(if failed.is_empty() { exit } else { CommandExit::Failed })
}

/// The exit if nothing was worked: that of the tasks in the scope.
fn exit_of(all: &[TaskRow], scope: InvocationScope) -> CommandExit {
    let tasks = scope.counted(all, &BTreeSet::new());
    let invocation = InvocationSummary { tasks: &tasks, questions: &[], run: None, no_ask: false, interrupted: false };
    CommandExit::from_code(exit::code(&invocation))
}

/// Whether a task failed, is blocked or needs the user.
pub fn has_unsettled(project: &Project) -> Result<bool> {
    Ok(!inbox::unsettled(&project.read_only().tasks()?).is_empty())
}

/// The exit for all tasks that are unfinished or need the user.
pub fn exit_of_all(project: &Project) -> Result<CommandExit> {
    Ok(exit_of(&project.read_only().tasks()?, InvocationScope::Everything))
}

/// The exit for a finished run.
pub fn exit_of_run(project: &Project, run: RunId) -> Result<CommandExit> {
    Ok(exit_of(&project.read_only().tasks()?, InvocationScope::Runs(&BTreeSet::from([run.0]))))
}

/// The error for a task that waits for another one that did not pass.
fn blocked_error(blocked: &TaskRow, all: &[TaskRow]) -> CliError {
    let task = inbox::blocking_task(blocked, all);
    let (id, cause) = (blocked.id, task.id);
    if id == cause {
        return CliError::failed(format!("task {id} is blocked: another task of its run needs you"))
            .hint("`signoff` shows which");
    }
    let failure =
        CliError::failed(format!("task {id} waits for task {cause}, which did not pass ({})", status_line(task)));
    if task.status == TaskStatus::Cancelled {
        return failure.hint(format!("`{}`, then add it again without `--depends-on`", Action::Cancel(id)));
    }
    let snapshot = ProjectSnapshot { tasks: all, runs: &[], driven: &BTreeSet::new() };
    failure.hint(NextStep::for_task(task, &snapshot).to_string())
}

/// The message if all named tasks, or all tasks, are over.
fn nothing_to_do_text(rows: &[&TaskRow], all: &[TaskRow], tasks: &[TaskId]) -> String {
    let unsettled = inbox::unsettled(all);
    let ended = || rows.iter().copied().filter(|row| unsettled.contains(&row.id));
    let waiting: Vec<&TaskRow> = ended().filter(|row| inbox::awaits_decision(row)).collect();
    let has_failed = |row: &&TaskRow| row.status.is_failure() && !inbox::awaits_decision(row);
    let failed: Vec<&TaskRow> = ended().filter(has_failed).collect();
    let snapshot = ProjectSnapshot { tasks: all, runs: &[], driven: &BTreeSet::new() };
    let next = |row: &TaskRow| NextStep::for_task(row, &snapshot);
    match (failed.as_slice(), tasks.is_empty()) {
        ([], _) if !waiting.is_empty() => decisions_text(&waiting, all),
        ([], true) => "Nothing to do: `signoff add \"…\"` adds a task".to_owned(),
        ([], false) => "Nothing to do: the named tasks have ended (`signoff status`)".to_owned(),
        ([row], _) => format!("Nothing to do: task {} failed: {}", row.id, next(row)),
        ([first, ..], _) => format!(
            "Nothing to do: {} tasks failed (`{}`); the first one: {}",
            failed.len(),
            Action::Status,
            next(first)
        ),
    }
}

/// Lists the first tasks that need the user, with the command to type for each.
fn decisions_text(waiting: &[&TaskRow], all: &[TaskRow]) -> String {
    const NAMED: usize = 5;
    let driven = BTreeSet::new();
    let snapshot = ProjectSnapshot { tasks: all, runs: &[], driven: &driven };
    let line = |row: &&TaskRow| {
        format!("\n  task {} is not approved ({}): {}", row.id, status_line(row), NextStep::for_task(row, &snapshot))
    };
    let named: String = waiting.iter().take(NAMED).map(line).collect();
    let more = waiting.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!("\n  … and {more} more: {}", Action::Status) };
    format!("Nothing to do: these tasks need a decision:{named}{more}")
}
