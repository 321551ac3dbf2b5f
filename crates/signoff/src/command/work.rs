//! `signoff work`: works the queue.

use signoff_core::ids::TaskId;
use signoff_core::view::{Status, TaskRow};
use signoff_engine::dispatcher::{Drive, ready};
use signoff_engine::{clock, open};
use signoff_store::{Lease, Store};

use crate::console::Console;
use crate::desk::Bench;
use crate::drive::{self, Wanted, task_id};
use crate::failure::{Exit, Failure};
use crate::preflight;

/// Work the queue
///
/// Takes up what was interrupted or answered, then the tasks that are ready, each in its own worktree. Ends when
/// nothing is left that could go on without a person. Ctrl-C finishes what is at work; twice stops it.
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
        drive: Drive { only: tasks.to_vec(), watch, no_ask, tick: false },
        jobs,
        resumed: resumable(&bench, tasks)?,
        ..Wanted::default()
    };
    let queue = ready(&*bench.store, tasks, usize::MAX)?;
    if wanted.resumed.is_empty() && queue.is_empty() && !watch {
        return nothing(&bench, tasks, console);
    }
    preflight::check_all(&bench, &queue)?;
    preflight::warn(&bench, console);
    if !queue.is_empty() {
        let jobs = wanted.jobs.unwrap_or(bench.settings.jobs() as usize);
        let facts = open::queue(&bench.settings, jobs, no_ask)?;
        wanted.opened.push((bench.store.open_run(clock::now())?, facts));
    }
    drive::drive(bench, wanted, console)?.conclude(console, no_ask)
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
fn nothing(bench: &Bench, tasks: &[TaskId], console: &Console) -> Result<Exit, Failure> {
    let named = |row: &TaskRow| tasks.is_empty() || tasks.contains(&TaskId(row.id));
    let rows: Vec<TaskRow> = bench.store.tasks()?.into_iter().filter(named).collect();
    let waiting = rows.iter().filter(|row| row.status == Status::Pending).count();
    let elsewhere = rows.iter().filter(|row| row.status == Status::InProgress).count();
    if console.json {
        console.json(&signoff_term::json::RunReport::of(None, Vec::new(), Vec::new()))?;
    }
    console.note(match (waiting, elsewhere) {
        (0, 0) if tasks.is_empty() => "Nothing to do: `signoff add \"…\"` adds a task",
        (0, 0) => "Nothing to do: what you name is over (`signoff status`)",
        (0, _) => "Nothing to do here: another signoff is at work",
        (_, _) => "Nothing is ready: what is pending waits for other tasks (`signoff status`)",
    });
    Ok(Exit::Done)
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
