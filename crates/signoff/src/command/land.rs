//! `signoff land`: everything that is approved joins the default branch.

use std::collections::BTreeMap;

use signoff_core::group::{RunOutcome, RunStage};
use signoff_core::ids::{Commit, RunId, TaskId};
use signoff_core::view::{Status, TaskRow};
use signoff_engine::board::Board;
use signoff_store::Store;
use signoff_term::json::{LandReport, LandedTask};

use super::merge::words;
use crate::console::Console;
use crate::desk::Bench;
use crate::failure::{Exit, Failure};
use crate::landing::{self, Landed};

/// Bring everything that is approved into the default branch
///
/// Task by task in order of their numbers, as `signoff merge` does it; of several tasks on one branch the last approved
/// one, and of a run whose tasks landed on its own branch that branch. One that is refused keeps no other from landing.
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
    if waiting.is_empty() && !console.json {
        console.note(&format!("Nothing to land: everything that is approved is in {target}"));
    }
    let (mut told, mut exit) = (Vec::new(), Exit::Done);
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

/// What is approved and not in the default branch: the last of each branch, in order of their numbers.
fn waiting(bench: &Bench, target: &str) -> Result<Vec<Unit>, Failure> {
    let mut last: BTreeMap<String, TaskRow> = BTreeMap::new();
    for row in bench.desk().tasks()?.into_iter().filter(is_approved) {
        last.insert(row.branch.clone().unwrap_or_default(), row);
    }
    let commit = |row: &TaskRow| row.approved_commit.clone().map(Commit::new);
    let commits: Vec<Commit> = last.values().filter_map(commit).collect();
    let missing = bench.repository.not_in(target, &commits)?;
    let is_missing = |row: &TaskRow| commit(row).is_some_and(|commit| missing.contains(&commit));
    let mut rows: Vec<TaskRow> = last.into_values().filter(is_missing).collect();
    rows.sort_by_key(|row| row.id);
    let mut units: Vec<Unit> = Vec::new();
    for row in rows {
        let Some(commit) = commit(&row) else { continue };
        let Some((run, loop_id)) = bench.store.loop_of(TaskId(row.id))? else { continue };
        let log = bench.store.log(run)?;
        if landing::is_in(bench, &commit, target)? || landing::has_landed(bench, (&log, &loop_id), target)? {
            continue;
        }
        let board = Board::of(run, &log);
        let through = board.machine.stage == RunStage::Done(RunOutcome::Approved);
        if !through || !landing::lands_on_run(&board, &loop_id) {
            units.push(Unit::Task(Box::new(row)));
            continue;
        }
        match units.iter_mut().find(|unit| matches!(unit, Unit::Run(other, _) if *other == run)) {
            Some(Unit::Run(_, rows)) => rows.push(row),
            Some(Unit::Task(_)) | None => units.push(Unit::Run(run, vec![row])),
        }
    }
    Ok(units)
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

    fn land(&self, console: &Console) -> Result<Result<Landed, Exit>, Failure> {
        match self {
            Self::Task(row) => landing::land_task(TaskId(row.id), console),
            Self::Run(run, _) => landing::land_run(*run, console).map(Ok),
        }
    }
}

fn would(unit: &Unit, target: &str, console: &Console) -> Result<Told, Failure> {
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
        Err(failure) => {
            console.note(failure.to_string().trim_end());
            Ok((unit.told("refused", None, Some(failure.message())), Exit::Failed))
        }
    }
}

fn worse(one: Exit, other: Exit) -> Exit {
    match (one, other) {
        (Exit::Interrupted, _) | (_, Exit::Interrupted) => Exit::Interrupted,
        (Exit::Done, other) => other,
        (one, _) => one,
    }
}
