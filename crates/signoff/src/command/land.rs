//! `signoff land`: everything that is approved joins the default branch.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use signoff_core::group::RunStage;
use signoff_core::ids::{Commit, LoopId, RunId, TaskId};
use signoff_core::machine::Reason;
use signoff_core::view::{Status, TaskRow};
use signoff_core::wire::Recorded;
use signoff_engine::board::Board;
use signoff_engine::error::EngineError;
use signoff_store::Store;
use signoff_term::json::{LandReport, LandedTask};

use super::landing::{self, Landed};
use super::merge::words;
use crate::console::Console;
use crate::desk::Bench;
use crate::failure::{Exit, Failure};

/// Bring everything that is approved into the default branch
///
/// Task by task in order of their numbers, as `signoff merge` does it; of several tasks on one branch the last approved
/// one, and of a run whose tasks landed on its own branch that branch, as a whole. A run whose final review did not approve
/// it is refused, with all its tasks. One that is refused keeps no other from landing.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff land --dry-run\n  signoff land")]
pub struct Args {
    /// Only say what would land
    #[arg(long)]
    dry_run: bool,
}

/// What lands at once.
enum Unit {
    Task(Box<TaskRow>),
    /// All of a run, with the tasks that are waited for.
    Run(RunId, Vec<TaskRow>),
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let bench = Bench::open()?;
    let target = bench.repository.default_branch()?;
    let waiting = waiting(&bench, &target)?;
    drop(bench);
    let changed = if waiting.is_empty() { changed_after_review(&Bench::open()?)? } else { Vec::new() };
    if !changed.is_empty() {
        console.note(&format!("Not landed, changed after its review: task {}", changed.join(", ")));
    } else if waiting.is_empty() && !console.json {
        console.note(&format!("Nothing to land: everything that is approved is in {target}"));
    }
    let (mut told, mut exit) = (Vec::new(), if changed.is_empty() { Exit::Done } else { Exit::Attention });
    for unit in &waiting {
        let (tasks, end) = if args.dry_run { would(unit, &target, console)? } else { land(unit, console)? };
        told.extend(tasks);
        exit = worse(exit, end);
        if end == Exit::Interrupted {
            break;
        }
    }
    if console.json {
        console.json(&LandReport::of(target, told))?;
    }
    Ok(exit)
}

/// What is approved and not in the default branch, or was cut off on its way there, in order of the tasks' numbers:
/// runs that came together on a branch of their own as a whole, of other branches the last task.
fn waiting(bench: &Bench, target: &str) -> Result<Vec<Unit>, Failure> {
    let (mut units, mut runs) = (Vec::new(), BTreeMap::new());
    let (mut rows, others): (Vec<_>, Vec<_>) = bench.desk().tasks()?.into_iter().partition(is_approved);
    for row in others.into_iter().filter(|row| row.status == Status::InProgress) {
        if is_landing(bench, &row)? {
            units.push(Unit::Task(Box::new(row)));
        }
    }
    rows.sort_by_key(|row| row.id);
    let commits: Vec<Commit> = rows.iter().filter_map(commit).collect();
    let missing = bench.repository.not_in(target, &commits)?;
    for row in &rows {
        let Some((run, loop_id)) = bench.store.loop_of(TaskId(row.id))? else { continue };
        let known = match runs.entry(run) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(vacant) => vacant.insert(Known::of(bench, run, target)?),
        };
        let is_missing = commit(row).is_some_and(|commit| missing.contains(&commit));
        if known.whole != Whole::Unknown && landing::lands_on_run(&known.board, &loop_id) {
            let refused =
                known.whole == Whole::Refused && is_missing && !is_in(bench, known, (row, &loop_id), target)?;
            if known.whole == Whole::Waits || refused {
                add_to_run(&mut units, run, row);
            }
            continue;
        }
        let is_last = !rows.iter().any(|other| other.branch == row.branch && other.id > row.id);
        if is_last && is_missing && !is_in(bench, known, (row, &loop_id), target)? {
            units.push(Unit::Task(Box::new(row.clone())));
        }
    }
    units.sort_by_key(|unit| unit.rows().first().map(|row| row.id));
    Ok(units)
}

/// The tasks whose branch moved on after the approval.
fn changed_after_review(bench: &Bench) -> Result<Vec<String>, Failure> {
    let is_changed = |row: &TaskRow| row.reason == Some(Reason::ChangedAfterReview.word());
    Ok(bench.desk().tasks()?.into_iter().filter(is_changed).map(|row| row.id.to_string()).collect())
}

/// Whether a task was to land on the default branch before, and was kept from it or cut off.
fn is_landing(bench: &Bench, row: &TaskRow) -> Result<bool, Failure> {
    let Some((run, loop_id)) = bench.store.loop_of(TaskId(row.id))? else { return Ok(false) };
    let board = Board::of(run, &bench.store.log(run)?);
    let landing = board.loops.get(&loop_id).is_some_and(|worked| landing::is_landing(&worked.state));
    Ok(landing && !landing::lands_on_run(&board, &loop_id))
}

fn commit(row: &TaskRow) -> Option<Commit> {
    row.approved_commit.clone().map(Commit::new)
}

fn is_in(
    bench: &Bench,
    known: &Known,
    (row, loop_id): (&TaskRow, &LoopId),
    target: &str,
) -> Result<bool, Failure> {
    let Some(commit) = commit(row) else { return Ok(false) };
    Ok(landing::is_in(bench, &commit, target)? || landing::has_landed(bench, (&known.log, loop_id), target)?)
}

fn add_to_run(units: &mut Vec<Unit>, run: RunId, row: &TaskRow) {
    match units.iter_mut().find(|unit| matches!(unit, Unit::Run(other, _) if *other == run)) {
        Some(Unit::Run(_, rows)) => rows.push(row.clone()),
        Some(Unit::Task(_)) | None => units.push(Unit::Run(run, vec![row.clone()])),
    }
}

/// A run whose tasks may be waited for.
struct Known {
    log: Vec<Recorded>,
    board: Board,
    whole: Whole,
}

/// How a run as a whole stands to the default branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whole {
    In,
    Waits,
    /// Its final review did not approve it: neither it nor one of its tasks lands.
    Refused,
    /// It is not over, or not all of it is reviewed: its tasks stand for themselves.
    Unknown,
}

impl Known {
    fn of(bench: &Bench, run: RunId, target: &str) -> Result<Self, Failure> {
        let log = bench.store.log(run)?;
        let board = Board::of(run, &log);
        if signoff_engine::landing::final_review_refusal(&board).is_some() {
            return Ok(Self { log, board, whole: Whole::Refused });
        }
        let over = matches!(board.machine.stage, RunStage::Done(_) | RunStage::Landing(_));
        let approved = over.then(|| signoff_engine::landing::approved(&bench.repository, &board));
        let approved = match approved {
            None | Some(Err(EngineError::NotLanded { .. })) => None,
            Some(approved) => Some(approved?),
        };
        let approved = match approved {
            Some(commit) if !landing::is_covered(bench, (&board, &commit), target)? => None,
            approved => approved,
        };
        let whole = match approved {
            None => Whole::Unknown,
            Some(commit) if landing::is_in(bench, &commit, target)? => Whole::In,
            Some(_) => Whole::Waits,
        };
        Ok(Self { log, board, whole })
    }
}

fn is_approved(row: &TaskRow) -> bool {
    row.status == Status::Completed && row.final_verdict.as_deref() == Some("APPROVED")
}

type Told = (Vec<LandedTask>, Exit);

impl Unit {
    fn rows(&self) -> &[TaskRow] {
        match self {
            Self::Task(row) => std::slice::from_ref(&**row),
            Self::Run(_, rows) => rows,
        }
    }

    /// The same of each of its tasks.
    fn told(&self, status: &'static str, commit: Option<&str>, reason: Option<&str>) -> Vec<LandedTask> {
        let one = |row: &TaskRow| LandedTask {
            task_id: row.id,
            status,
            commit: commit
                .or(row.approved_commit.as_deref().filter(|_| status == "ready"))
                .map(str::to_owned),
            reason: reason.map(str::to_owned),
        };
        self.rows().iter().map(one).collect()
    }

    fn refused(&self, failure: &Failure, console: &Console) -> Told {
        console.note(failure.to_string().trim_end());
        (self.told("refused", None, Some(failure.message())), Exit::Failed)
    }

    fn land(&self, console: &Console) -> Result<Result<Landed, Exit>, Failure> {
        match self {
            Self::Task(row) => landing::land_task(TaskId(row.id), console),
            Self::Run(run, _) => landing::land_run(*run, console).map(Ok),
        }
    }
}

fn would(unit: &Unit, target: &str, console: &Console) -> Result<Told, Failure> {
    if let Unit::Run(run, _) = unit
        && let Err(failure) = landing::check_final_review(*run)
    {
        return Ok(unit.refused(&failure, console));
    }
    for row in unit.rows().iter().filter(|_| !console.json) {
        console.text(&format!("Task #{} would land on {target}: {}\n", row.id, row.title))?;
    }
    Ok((unit.told("ready", None, None), Exit::Done))
}

fn land(unit: &Unit, console: &Console) -> Result<Told, Failure> {
    match unit.land(console) {
        Ok(Ok(landed)) => {
            for row in unit.rows().iter().filter(|_| !console.json) {
                console.text(&format!("{}\n", words(TaskId(row.id), &landed)))?;
            }
            let status = if landed.now { "landed" } else { "already" };
            Ok((unit.told(status, Some(&landed.commit), None), Exit::Done))
        }
        Ok(Err(exit)) => Ok((unit.told("refused", None, None), exit)),
        Err(failure) => Ok(unit.refused(&failure, console)),
    }
}

fn worse(one: Exit, other: Exit) -> Exit {
    match (one, other) {
        (Exit::Interrupted, _) | (_, Exit::Interrupted) => Exit::Interrupted,
        (Exit::Done, other) => other,
        (one, _) => one,
    }
}
