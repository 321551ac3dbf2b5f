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
use signoff_term::status::waits_for_its_group;

use super::landing::{self, Landed};
use super::merge::words;
use crate::console::Console;
use crate::desk::Bench;
use crate::drive::{TaskOrRun, task_or_run};
use crate::failure::{Exit, Failure};

/// Bring everything that is approved, or what is named, into the default branch
///
/// Task by task in order of their numbers, as `signoff merge` does it; of several tasks on one branch the last approved
/// one, and of a run whose tasks landed on its own branch that branch, as a whole. A run with a final review lands as a
/// whole after that review has approved it, or a person; until then it is refused with all its tasks. One that is refused
/// keeps no other from landing.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  signoff land --dry-run\n  signoff land\n  signoff land 29 30\n  signoff land run-3"
)]
pub struct Args {
    /// The tasks, or `run-N` for a run; everything that is approved if none is named
    #[arg(value_name = "ID", value_parser = task_or_run)]
    ids: Vec<TaskOrRun>,
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
    let _turn = if args.dry_run { None } else { Some(landing::wait_for_turn(console)?) };
    let bench = Bench::open()?;
    let target = bench.repository.default_branch()?;
    let units = if args.ids.is_empty() { waiting(&bench, &target)? } else { named(&bench, &args.ids)? };
    let mut waiting_for_group = bench.desk().tasks()?;
    waiting_for_group.retain(waits_for_its_group);
    drop(bench);
    let changed = if units.is_empty() { changed_after_review(&Bench::open()?)? } else { Vec::new() };
    if !changed.is_empty() {
        console.note(&format!("Not landed, changed after its review: task {}", changed.join(", ")));
    } else if units.is_empty() && !console.json {
        console.note(&nothing(&waiting_for_group, &target));
    }
    let (mut told, mut exit) = (Vec::new(), if changed.is_empty() { Exit::Done } else { Exit::Attention });
    for unit in &units {
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

/// Why nothing lands.
fn nothing(waiting_for_group: &[TaskRow], target: &str) -> String {
    let named: Vec<String> = waiting_for_group.iter().map(|row| format!("#{}", row.id)).collect();
    if named.is_empty() {
        return format!("Nothing to land: everything that is approved is in {target}");
    }
    format!(
        "Nothing to land yet: {} approved and waiting for the group (`signoff` shows what it waits for)",
        named.join(", ")
    )
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
        if known.lands_as_a_whole(&loop_id) {
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
    Ok(landing::is_landing(&Board::of(run, &bench.store.log(run)?), &loop_id))
}

/// What the named tasks and runs land with: a run that has a branch as a whole, and so a task whose run has a final review.
fn named(bench: &Bench, ids: &[TaskOrRun]) -> Result<Vec<Unit>, Failure> {
    let mut rows = bench.desk().tasks()?;
    rows.sort_by_key(|row| row.id);
    let mut units: Vec<Unit> = Vec::new();
    for id in ids {
        let run = checked(bench, *id)?;
        let board = run.map(|run| Ok::<_, Failure>(Board::of(run, &bench.store.log(run)?))).transpose()?;
        let is_named = |row: &&TaskRow| match id {
            TaskOrRun::Task(task) => row.id == task.0,
            TaskOrRun::Run(run) => row.run_id == Some(run.0) && row.status != Status::Cancelled,
        };
        let as_a_whole = board.filter(|board| match id {
            TaskOrRun::Task(_) => board.has_final_review(),
            TaskOrRun::Run(_) => board.shares_a_branch(),
        });
        let own: Vec<Unit> = match as_a_whole {
            Some(board) => vec![whole_run(board.run, &rows)],
            None => rows.iter().filter(is_named).map(|row| Unit::Task(Box::new(row.clone()))).collect(),
        };
        for unit in own {
            if !units.iter().any(|other| other.is_same(&unit)) {
                units.push(unit);
            }
        }
    }
    Ok(units)
}

/// The run of what is named, if it has one. Naming what there is not is an error.
fn checked(bench: &Bench, id: TaskOrRun) -> Result<Option<RunId>, Failure> {
    let desk = bench.desk();
    match id {
        TaskOrRun::Task(task) => {
            desk.task(task)?;
            Ok(bench.store.loop_of(task)?.map(|(run, _)| run))
        }
        TaskOrRun::Run(run) => desk.check_run(run).map(|()| Some(run)),
    }
}

/// A run with all its approved tasks.
fn whole_run(run: RunId, rows: &[TaskRow]) -> Unit {
    let own = rows.iter().filter(|row| row.run_id == Some(run.0) && is_approved(row));
    Unit::Run(run, own.cloned().collect())
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
    /// It has a final review and may not land: neither does one of its tasks.
    Refused,
    /// It has no final review, and is not over or not all of it is reviewed: its tasks stand for themselves.
    Apart,
}

impl Known {
    fn of(bench: &Bench, run: RunId, target: &str) -> Result<Self, Failure> {
        let log = bench.store.log(run)?;
        let board = Board::of(run, &log);
        let over = matches!(board.machine.stage, RunStage::Done(_) | RunStage::Landing(_));
        let approved = match over.then(|| landing::run_commit(bench, &board, target)) {
            None | Some(Err(EngineError::NotLanded { .. })) => None,
            Some(approved) => Some(approved?),
        };
        let whole = match approved {
            None if board.has_final_review() => Whole::Refused,
            None => Whole::Apart,
            Some(commit) if landing::is_in(bench, &commit, target)? => Whole::In,
            Some(_) => Whole::Waits,
        };
        Ok(Self { log, board, whole })
    }

    fn lands_as_a_whole(&self, loop_id: &LoopId) -> bool {
        let on_run = self.board.has_final_review() || landing::lands_on_run(&self.board, loop_id);
        self.whole != Whole::Apart && on_run
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

    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Task(row), Self::Task(other)) => row.id == other.id,
            (Self::Run(run, _), Self::Run(other, _)) => run == other,
            (Self::Task(_), Self::Run(..)) | (Self::Run(..), Self::Task(_)) => false,
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
    let checked = match unit {
        Unit::Task(row) => landing::check_task(TaskId(row.id)),
        Unit::Run(run, _) => landing::check_run(*run),
    };
    if let Err(failure) = checked {
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
            let status = if landed.arrival.is_now() { "landed" } else { "already" };
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
