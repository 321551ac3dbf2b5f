//! `signoff work`: works the queue.

use std::collections::BTreeSet;

use signoff_core::ids::{RunId, TaskId};
use signoff_core::view::{Status, TaskRow, TaskState};
use signoff_engine::dispatcher::{Drive, ready};
use signoff_engine::{clock, open};
use signoff_store::{Lease, Store};
use signoff_term::attention::{self, Scene};
use signoff_term::exit::Invocation;
use signoff_term::json::RunReport;
use signoff_term::status::in_words;

use crate::console::Console;
use crate::desk::{Bench, is_in_the_way};
use crate::drive::{self, Wanted, notifying, task_id};
use crate::failure::{Exit, Failure};
use crate::preflight;

/// Work the queue
///
/// Takes up what was interrupted or answered, then the tasks that are ready, each in its own worktree. Ends when
/// nothing is left that could go on without a person. Ctrl-C finishes what is at work; twice stops it. On a terminal it is
/// shown on a screen: questions are asked at once and answered with keys, while everything else goes on; Esc leaves one
/// for later, `?` lists the keys. --plain prints lines instead.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff add \"Add user authentication\" -a\n  signoff work -j 4")]
pub struct Args {
    /// Only these tasks
    #[arg(value_name = "ID", value_parser = task_id)]
    tasks: Vec<TaskId>,
    /// So many tasks at once
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Wait for further tasks
    #[arg(long)]
    watch: bool,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let bench = Bench::open()?;
    check_tasks(&bench, &args.tasks)?;
    work(bench, (&args.tasks, args.watch, args.jobs.map(usize::from)), console)
}

/// Works these tasks, or all.
pub fn work(
    bench: Bench,
    (tasks, watch, jobs): (&[TaskId], bool, Option<usize>),
    console: &Console,
) -> Result<Exit, Failure> {
    let no_ask = console.no_ask || bench.settings.no_ask();
    let mut wanted = Wanted {
        drive: Drive { only: tasks.to_vec(), watch, no_ask, ..Drive::default() },
        jobs,
        resumed: resumable(&bench, tasks)?,
        ..Wanted::default()
    };
    let queue = ready(&*bench.store, tasks, usize::MAX)?;
    if wanted.resumed.is_empty() && queue.is_empty() && !watch {
        return nothing(&bench, tasks, console);
    }
    preflight::check_all(&bench, &queue)?;
    for lease in &wanted.resumed {
        preflight::check_run(&bench, lease.run(), (None, tasks))?;
    }
    preflight::warn(&bench, console);
    if !queue.is_empty() {
        let jobs = wanted.jobs.unwrap_or(bench.settings.jobs() as usize);
        let facts = open::queue(&bench.settings, jobs, no_ask)?;
        wanted.opened.push((bench.store.open_run(clock::now())?, facts));
    }
    let desk = bench.desk();
    let exit = drive::drive(bench, wanted, console)?.conclude(console, no_ask)?;
    if exit != Exit::Done || !tasks.is_empty() {
        return Ok(exit);
    }
    let all = desk.tasks()?;
    let is_blocked = |row: &&TaskRow| row.status == Status::Blocked && row.run_id.is_none();
    all.iter().find(is_blocked).map_or(Ok(exit), |blocked| Err(behind(blocked, &all)))
}

/// The open runs that nobody drives, as far as they hold what is asked for.
pub fn resumable(bench: &Bench, tasks: &[TaskId]) -> Result<Vec<Lease>, Failure> {
    let mut leases = Vec::new();
    let rows = bench.store.tasks()?;
    for run in bench.store.open_runs()? {
        let named = |row: &TaskRow| row.run_id == Some(run.id.0) && tasks.contains(&TaskId(row.id));
        if tasks.is_empty() || rows.iter().any(named) {
            leases.extend(drive::try_acquire(&*bench.store, run.id)?);
        }
    }
    Ok(leases)
}

/// Nothing could be done: because there is nothing, or because it waits for something.
pub fn nothing(bench: &Bench, tasks: &[TaskId], console: &Console) -> Result<Exit, Failure> {
    notifying::tell_again(bench, console);
    let all = bench.desk().tasks()?;
    let named = |row: &&TaskRow| tasks.is_empty() || tasks.contains(&TaskId(row.id));
    let rows: Vec<&TaskRow> = all.iter().filter(named).collect();
    let of = |status: Status| rows.iter().copied().filter(move |row| row.status == status);
    let blocked: Vec<TaskRow> = of(Status::Blocked).cloned().collect();
    if console.json {
        console.json(&RunReport::of(None, blocked.clone(), Vec::new()))?;
    }
    if let Some(first) = blocked.first() {
        return Err(behind(first, &all));
    }
    let exit = exit_of(&rows, &all, tasks);
    console.note(&match (of(Status::Pending).count(), of(Status::InProgress).count()) {
        (0, 0) => over(&rows, &all, tasks),
        (0, _) => "Nothing to do here: another signoff is at work".to_owned(),
        (_, _) => "Nothing is ready: what is pending waits for other tasks (`signoff status`)".to_owned(),
    });
    let failed = if tasks.is_empty() { bench.desk().failed_final_reviews()? } else { Vec::new() };
    for run in &failed {
        console.note(&format!(
            "The final review of run {run} failed: `signoff run --resume {run}` says what to do"
        ));
    }
    Ok(if failed.is_empty() { exit } else { Exit::Failed })
}

/// The exit code where nothing could be done: of the tasks that are named, or of those that are not through and those that
/// need a person.
fn exit_of(rows: &[&TaskRow], all: &[TaskRow], named: &[TaskId]) -> Exit {
    let unsettled = attention::unsettled(all);
    let open = |row: &TaskRow| !drive::is_over(row.status) || unsettled.contains(&row.id);
    let meant = rows.iter().copied().filter(|row| !named.is_empty() || open(row));
    let tasks: Vec<TaskRow> = meant.cloned().collect();
    let invocation =
        Invocation { tasks: &tasks, questions: &[], run: None, no_ask: false, interrupted: false };
    Exit::of(invocation.code())
}

/// Whether a task failed, is blocked or needs a person.
pub fn has_unsettled(bench: &Bench) -> Result<bool, Failure> {
    Ok(!attention::unsettled(&bench.desk().tasks()?).is_empty())
}

/// The exit code of everything that is not through or needs a person.
pub fn exit_of_all(bench: &Bench) -> Result<Exit, Failure> {
    let all = bench.desk().tasks()?;
    Ok(exit_of(&all.iter().collect::<Vec<_>>(), &all, &[]))
}

/// The exit code of a run that is over.
pub fn exit_of_run(bench: &Bench, run: RunId) -> Result<Exit, Failure> {
    let all = bench.desk().tasks()?;
    let rows: Vec<&TaskRow> = all.iter().filter(|row| row.run_id == Some(run.0)).collect();
    Ok(exit_of(&rows, &all, &[]))
}

/// What a task waits for that will not come by itself.
fn behind(blocked: &TaskRow, all: &[TaskRow]) -> Failure {
    let mut task = blocked;
    while let Some(next) = all.iter().find(|row| task.depends_on.contains(&row.id) && stands(row)) {
        task = next;
        if task.status != Status::Blocked {
            break;
        }
    }
    let (id, cause) = (blocked.id, task.id);
    if id == cause {
        return Failure::failed(format!("task {id} is blocked: another task of its run needs you"))
            .hint("`signoff` shows which");
    }
    let failure =
        Failure::failed(format!("task {id} waits for task {cause}, which did not pass ({})", in_words(task)));
    match task.status {
        Status::Cancelled => failure
            .hint(format!("`signoff cancel {id}`, and add it again without what was cancelled before it")),
        Status::Pending
        | Status::InProgress
        | Status::Waiting
        | Status::Paused
        | Status::Completed
        | Status::Failed
        | Status::Stuck
        | Status::Blocked => {
            failure.hint(attention::next(task, &Scene { tasks: all, runs: &[], driven: &BTreeSet::new() }))
        }
    }
}

fn stands(row: &TaskRow) -> bool {
    row.status == Status::Blocked || is_in_the_way(row)
}

/// All that was named is over, or all there is.
fn over(rows: &[&TaskRow], all: &[TaskRow], tasks: &[TaskId]) -> String {
    let unsettled = attention::unsettled(all);
    let needs_person = |row: &&&TaskRow| {
        let is_stopped = row.state() == TaskState::NeedsYou && row.status != Status::Stuck;
        is_stopped || row.is_refused_by_person()
    };
    let waiting: Vec<&TaskRow> =
        rows.iter().filter(|row| unsettled.contains(&row.id)).filter(needs_person).copied().collect();
    let continued = |row: &TaskRow| rows.iter().any(|other| other.continues == Some(row.id));
    let can_retry =
        |row: &TaskRow| matches!(row.status, Status::Failed | Status::Stuck) && !row.is_refused_by_person();
    let failed = rows.iter().filter(|row| can_retry(row));
    let failed: Vec<String> = failed.filter(|row| !continued(row)).map(|row| row.id.to_string()).collect();
    match (failed.as_slice(), tasks.is_empty()) {
        ([], _) if !waiting.is_empty() => needed(&waiting, all),
        ([], true) => "Nothing to do: `signoff add \"…\"` adds a task".to_owned(),
        ([], false) => "Nothing to do: what you name is over (`signoff status`)".to_owned(),
        ([one], _) => format!("Nothing to do: task {one} failed (`signoff retry {one}` goes on with it)"),
        ([first, ..], _) => format!(
            "Nothing to do: {} tasks failed (`signoff status`; `signoff retry {first}` goes on with the first)",
            failed.len()
        ),
    }
}

/// Names the first tasks that need a person, and what to type about each.
fn needed(waiting: &[&TaskRow], all: &[TaskRow]) -> String {
    const NAMED: usize = 5;
    let driven = BTreeSet::new();
    let scene = Scene { tasks: all, runs: &[], driven: &driven };
    let line = |row: &&TaskRow| {
        format!("\n  task {} is not approved ({}): {}", row.id, in_words(row), attention::next(row, &scene))
    };
    let named: String = waiting.iter().take(NAMED).map(line).collect();
    let more = waiting.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!("\n  … and {more} more: signoff status") };
    format!("Nothing to do before you decide:{named}{more}")
}

fn check_tasks(bench: &Bench, tasks: &[TaskId]) -> Result<(), Failure> {
    for task in tasks {
        if bench.store.task(*task)?.is_none() {
            return Err(
                Failure::usage(format!("there is no task {task}")).hint("`signoff status` lists the tasks")
            );
        }
    }
    Ok(())
}
