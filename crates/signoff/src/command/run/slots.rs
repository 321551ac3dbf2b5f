//! `signoff run beads` and `signoff run queue`: slots that are filled with tasks while there are any.

mod report;

use std::path::Path;

use signoff_core::config::TaskFlags;
use signoff_core::group::{RunPolicy, Supply};
use signoff_core::policy::Count;
use signoff_core::task::TaskSpec;
use signoff_core::view::TaskRow;
use signoff_core::workflow::{GateWords, Workflow};
use signoff_engine::board::Board;
use signoff_engine::dispatcher::{Drive, ready};
use signoff_engine::opening::PromptFile;
use signoff_engine::tracker::{self, Tracker};
use signoff_engine::{clock, open};
use signoff_store::{RunRow, Store, StoreError};
use signoff_term::exit;
use signoff_term::fit::count;
use signoff_term::json::RunReport;
use signoff_term::slots::SlotsReport;

use super::Args;
use crate::command::work;
use crate::console::Console;
use crate::desk::Bench;
use crate::drive::{self, Wanted};
use crate::failure::{Exit, Failure};
use crate::{door, preflight};

/// What the command line says about slots, whatever fills them.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Slots (beads, queue)")]
pub struct SlotArgs {
    /// Review each task, and fix what is found
    #[arg(long, overrides_with = "no_review")]
    review: bool,
    /// Review nothing
    #[arg(long, overrides_with = "review")]
    no_review: bool,
    /// So many fixes for one task
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000))]
    review_max_fix_attempts: Option<u32>,
    /// A file with the prompt of whoever implements and fixes
    #[arg(long, value_name = "PATH")]
    developer_prompt: Option<std::path::PathBuf>,
    /// A file with the prompt of the reviewers
    #[arg(long, value_name = "PATH")]
    reviewer_prompt: Option<std::path::PathBuf>,
    /// Begin further tasks after one failed
    #[arg(long)]
    keep_going: bool,
}

impl SlotArgs {
    /// The first flag that was given, for sources that have no slots.
    pub fn given(&self) -> Option<&'static str> {
        let flags = [
            (self.review, "--review"),
            (self.no_review, "--no-review"),
            (self.review_max_fix_attempts.is_some(), "--review-max-fix-attempts"),
            (self.developer_prompt.is_some(), "--developer-prompt"),
            (self.reviewer_prompt.is_some(), "--reviewer-prompt"),
            (self.keep_going, "--keep-going"),
        ];
        flags.into_iter().find(|(given, _)| *given).map(|(_, flag)| flag)
    }
}

/// The preset of slots.
const PRESET: &str = "slots";

/// Everything that holds for the slots of this call.
struct Slots<'a> {
    args: &'a Args,
    bench: Bench,
    flags: TaskFlags,
    no_ask: bool,
}

/// Slots filled from the tracker: its program, or else its file.
pub fn beads(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let slots = Slots::open(args, console)?;
    let supply = match tracker::PROGRAMS.into_iter().find(|program| door::is_on_path(program)) {
        Some(program) => Supply::Program { name: program.to_owned() },
        None if slots.bench.repository.root().join(tracker::FILE).exists() => {
            Supply::File { path: tracker::FILE.to_owned() }
        }
        None => {
            return Err(Failure::usage(format!(
                "there is no tracker: neither bd nor br is on the PATH, and there is no {}",
                tracker::FILE
            ))
            .hint("install beads and type `bd init`, or name its file: signoff run --as beads FILE"));
        }
    };
    slots.fill_from_tracker(supply, console)
}

/// Slots filled from a file of the tracker.
pub fn file(path: &Path, args: &Args, console: &Console) -> Result<Exit, Failure> {
    let slots = Slots::open(args, console)?;
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let shown = full.strip_prefix(slots.bench.repository.root()).unwrap_or(&full);
    slots.fill_from_tracker(Supply::File { path: shown.display().to_string() }, console)
}

/// Slots filled from the queue.
pub fn queue(args: &Args, console: &Console) -> Result<Exit, Failure> {
    Slots::open(args, console)?.fill_from_queue(console)
}

impl<'a> Slots<'a> {
    fn open(args: &'a Args, console: &Console) -> Result<Self, Failure> {
        args.tick_nothing()?;
        let flags = flags(args)?;
        let bench = Bench::open()?;
        let no_ask = console.no_ask || bench.settings.no_ask();
        Ok(Self { args, bench, flags, no_ask })
    }

    fn workflow(&self, spec: &TaskSpec) -> Result<Workflow, Failure> {
        Ok(self.bench.settings.task_workflow(spec, &self.flags)?)
    }

    fn jobs(&self) -> usize {
        self.args.jobs.map_or(self.bench.settings.jobs() as usize, usize::from)
    }

    fn policy(&self, workflow: &Workflow, supply: Supply) -> RunPolicy {
        RunPolicy {
            supply,
            flags: Box::new(self.flags.clone()),
            keep_going: self.args.slots.keep_going,
            stop_marker: true,
            onto_default: self.args.land,
            ..RunPolicy::of(workflow, self.jobs())
        }
    }

    fn fill_from_tracker(self, supply: Supply, console: &Console) -> Result<Exit, Failure> {
        let workflow = self.workflow(&TaskSpec::default())?;
        preflight::check_workflow(&self.bench, &workflow, &TaskSpec::default())?;
        let tracker =
            Tracker { supply, repository: self.bench.repository.clone(), manners: drive::manners() };
        let offer = tracker::offer(&tracker, &*self.bench.store)?;
        let report = report::of_tracker(&tracker.supply, &offer, &workflow);
        if self.args.dry_run {
            return print(&report, console);
        }
        report.warnings.iter().for_each(|warning| console.note(&format!("warning: {warning}")));
        for taken in &offer.taken {
            console.note(&format!("{} is left out: {}", taken.id, report::has(taken)));
        }
        self.tell_of_unfinished(&tracker.supply, console)?;
        if offer.ready.is_empty() {
            report::tell_of_done(&tracker, &offer, console)?;
            return nothing_ready(&report.source, console);
        }
        preflight::warn(&self.bench, console);
        let ids: Vec<String> = offer.ready.iter().filter_map(id).collect();
        let policy = self.policy(&workflow, tracker.supply);
        let wanted = Wanted {
            opened: vec![(
                self.bench.store.open_run(clock::now())?,
                open::slots(workflow, policy, self.no_ask),
            )],
            drive: Drive { no_ask: self.no_ask, offer: Some(offer.ready), ..Drive::default() },
            ..Wanted::default()
        };
        self.drive(wanted, console, |store| {
            let claims = store.claims(tracker::BEADS)?;
            Ok(ids.iter().filter(|id| !claims.contains_key(*id)).count())
        })
    }

    /// Names the runs of the same tracker that nobody goes on with. What they claimed no program lists as ready.
    fn tell_of_unfinished(&self, supply: &Supply, console: &Console) -> Result<(), Failure> {
        let store = &self.bench.store;
        for RunRow { id: run, .. } in store.open_runs()? {
            let same = |policy: &RunPolicy| policy.supply == *supply;
            if store.is_held(run)? || !Board::of(run, &store.log(run)?).run_policy().is_some_and(same) {
                continue;
            }
            let unfinished = |row: &TaskRow| row.run_id == Some(run.0) && !drive::is_over(row.status);
            let tasks: Vec<_> = store.tasks()?.into_iter().filter(unfinished).collect();
            // Where all are done, one may still have to be closed.
            let with = match tasks.len() {
                0 => "unfinished".to_owned(),
                some => format!("with {}", count(some as u64, "unfinished task")),
            };
            console.note(&format!("Run {run} was left {with}: `signoff run --resume {run}` goes on with it"));
        }
        Ok(())
    }

    fn fill_from_queue(self, console: &Console) -> Result<Exit, Failure> {
        let tasks = ready(&*self.bench.store, &[], usize::MAX)?;
        if self.args.dry_run {
            return print(&self.of_queue(&tasks)?, console);
        }
        let mut wanted = Wanted {
            resumed: work::resumable(&self.bench, &[])?,
            drive: Drive { no_ask: self.no_ask, ..Drive::default() },
            ..Wanted::default()
        };
        if tasks.is_empty() && wanted.resumed.is_empty() {
            return work::nothing(&self.bench, &[], console);
        }
        preflight::check_place(&self.bench)?;
        for task in &tasks {
            let spec = self.bench.store.task_spec(*task)?.unwrap_or_default();
            preflight::check_agents(&self.bench, &self.workflow(&spec)?, &spec)?;
        }
        for lease in &wanted.resumed {
            preflight::check_run(&self.bench, lease.run(), (None, &[]))?;
        }
        preflight::warn(&self.bench, console);
        if !tasks.is_empty() {
            let workflow = self.workflow(&TaskSpec::default())?;
            let policy = self.policy(&workflow, Supply::Queue);
            let facts = open::slots(workflow, policy, self.no_ask);
            wanted.opened.push((self.bench.store.open_run(clock::now())?, facts));
        }
        self.drive(wanted, console, |store| ready(store, &[], usize::MAX).map(|left| left.len()))
    }

    /// Works, and says how many tasks were not begun because one failed.
    fn drive(
        self,
        wanted: Wanted,
        console: &Console,
        left: impl FnOnce(&dyn Store) -> Result<usize, StoreError>,
    ) -> Result<Exit, Failure> {
        let (jobs, no_ask, keep_going) = (self.jobs(), self.no_ask, self.args.slots.keep_going);
        let came = drive::drive(self.bench, Wanted { jobs: Some(jobs), ..wanted }, console)?;
        let failed = came.rows()?.0.iter().any(|row| exit::of_task(row) == exit::Standing::Failed);
        let left = if failed && !keep_going { left(&*came.store)? } else { 0 };
        if left > 0 {
            let tasks = count(left as u64, "task");
            console
                .note(&format!("{tasks} not begun after a failure: --keep-going begins them all the same"));
        }
        if came.summary.lost > 0 && came.summary.lost == came.summary.tasks.len() {
            console.note("Nothing was worked: all that was ready is left to others");
        }
        came.conclude(console, no_ask)
    }
}

/// The flags that hold for every task.
fn flags(args: &Args) -> Result<TaskFlags, Failure> {
    let slots = &args.slots;
    let review = (slots.review || slots.no_review).then_some(slots.review);
    let max_fixes = slots.review_max_fix_attempts.map(Count::Of);
    Ok(TaskFlags {
        preset: Some(PRESET.to_owned()),
        review,
        effort: args.effort,
        gate: GateWords { max_fixes, ..GateWords::default() },
        developer_prompt: prompt(slots.developer_prompt.as_deref(), "--developer-prompt")?,
        reviewer_prompt: prompt(slots.reviewer_prompt.as_deref(), "--reviewer-prompt")?,
    })
}

/// A prompt as it is named on the command line, from wherever the person is.
fn prompt(path: Option<&Path>, flag: &str) -> Result<Option<String>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let here = door::current_directory()?;
    let read = PromptFile::at(&here, &path.display().to_string()).read();
    read.map_err(|error| Failure::from(error).at(flag))?;
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Ok(Some(full.display().to_string()))
}

fn id(spec: &TaskSpec) -> Option<String> {
    spec.tracked.as_ref().map(|tracked| tracked.id.clone())
}

fn print(report: &SlotsReport, console: &Console) -> Result<Exit, Failure> {
    if console.json {
        console.json(report)?;
    } else {
        console.text(&report.text())?;
    }
    Ok(Exit::Done)
}

fn nothing_ready(source: &str, console: &Console) -> Result<Exit, Failure> {
    if console.json {
        console.json(&RunReport::of(None, Vec::new(), Vec::new()))?;
    }
    console.note(&format!("Nothing is ready in {source}"));
    Ok(Exit::Done)
}
