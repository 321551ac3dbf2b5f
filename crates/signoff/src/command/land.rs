//! `signoff land`: merges all approved work into the default branch.

use signoff_core::view::inbox;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use signoff_core::group::RunStage;
use signoff_core::ids::{Commit, LoopId, RunId, TaskId};
use signoff_core::machine::Reason;
use signoff_core::view::{RunState, TaskRow, TaskStatus};
use signoff_engine::error::EngineError;
use signoff_store::Store;
use signoff_term::json::{LandedStatus, LandedTask, MergeReport};

use super::landing::{self, LandedWork};
use super::merge::landed_line;
use crate::run_loop::{TaskOrRun, task_or_run};
use crate::{CliError, CommandExit, Console, Project, ReadOnlyProject, Result};

/// Land all approved work, or the named tasks and runs, on the default branch
///
/// Tasks land in order of their numbers, as with `signoff merge`. Of several tasks on one branch only the last approved
/// one lands. A run whose tasks share a branch lands as a whole; if it has a final review, only after that review or
/// you have approved it. A task or run that is refused does not stop the others.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  signoff land --dry-run\n  signoff land\n  signoff land 29 30\n  signoff land run-3"
)]
pub struct Args {
    /// The tasks, or `run-N` for a run [default: all approved work]
    #[arg(value_name = "ID", value_parser = task_or_run)]
    ids: Vec<TaskOrRun>,
    /// Show what would land, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// A task or a run that lands in one step.
struct LandUnit {
    id: TaskOrRun,
    /// The task, or the tasks of a whole run that have not landed.
    rows: Vec<TaskRow>,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    let _landing_lock = if args.dry_run { None } else { Some(landing::acquire_landing_lock(console)?) };
    let project = Project::open()?;
    let target = project.repository.default_branch()?;
    let units = if args.ids.is_empty() { unlanded(&project, &target)? } else { named(&project, &args.ids)? };
    let project = project.read_only();
    let rows = project.tasks()?;
    let is_changed = |row: &&TaskRow| units.is_empty() && row.reason == Some(Reason::ChangedAfterReview);
    let changed: Vec<String> = rows.iter().filter(is_changed).map(|row| row.id.to_string()).collect();
    if !changed.is_empty() {
        console.note(&format!("Not landed, changed after its review: task {}", changed.join(", ")));
    } else if units.is_empty() && !console.json {
        console.note(&nothing_text(&rows, &target));
    }
    let (mut landed_tasks, mut exit) =
        (Vec::new(), if changed.is_empty() { CommandExit::Done } else { CommandExit::NeedsUser });
    for unit in &units {
        let (tasks, end) =
            if args.dry_run { dry_run(&project, unit, &target, console)? } else { land(&project, unit, console)? };
        landed_tasks.extend(tasks);
        exit = worse(exit, end);
        if end == CommandExit::Interrupted {
            break;
        }
    }
    if console.json {
        console.json(&MergeReport::new(target, landed_tasks))?;
    }
    Ok(exit)
}

/// Explains why nothing lands.
fn nothing_text(rows: &[TaskRow], target: &str) -> String {
    let waiting = rows.iter().filter(|row| inbox::waits_for_its_group(row));
    let named: Vec<String> = waiting.map(|row| format!("#{}", row.id)).collect();
    if named.is_empty() {
        return format!("Nothing to land: all approved work is in {target}");
    }
    format!(
        "Nothing to land yet: {} approved and waiting for the group (`signoff` shows what it waits for)",
        named.join(", ")
    )
}

/// Returns all approved work that is not in the default branch, and interrupted landings, by task number: runs with
/// their own branch as a whole, and the last task of every other branch.
fn unlanded(project: &Project, target: &str) -> Result<Vec<LandUnit>> {
    let (mut units, mut runs) = (Vec::new(), BTreeMap::new());
    let (mut rows, others): (Vec<_>, Vec<_>) = project.read_only().tasks()?.into_iter().partition(inbox::may_land);
    for row in others.into_iter().filter(|row| row.status == TaskStatus::InProgress) {
        if is_landing(project, &row)? {
            units.push(LandUnit::for_task(row));
        }
    }
    rows.sort_by_key(|row| row.id);
    let commits: Vec<Commit> = rows.iter().filter_map(commit).collect();
    let missing = project.repository.missing_from_branch(target, &commits)?;
    for row in &rows {
        let Some((run, loop_id)) = project.store.loop_for_task(TaskId(row.id))? else { continue };
        let landing_run = match runs.entry(run) {
            Entry::Occupied(landing_run) => landing_run.into_mut(),
            Entry::Vacant(vacant) => vacant.insert(LandingRun::load(project, run, target)?),
        };
        let is_missing = commit(row).is_some_and(|commit| missing.contains(&commit));
        if landing_run.lands_as_a_whole(&loop_id) {
            let refused = landing_run.state == WholeRunState::Refused
                && is_missing
                && !is_in(project, landing_run, row, &loop_id, target)?;
            if landing_run.state == WholeRunState::Unlanded || refused {
                let id = TaskOrRun::Run(run);
                match units.iter_mut().find(|unit| unit.id == id) {
                    Some(unit) => unit.rows.push(row.clone()),
                    None => units.push(LandUnit { id, rows: vec![row.clone()] }),
                }
            }
            continue;
        }
        let is_last = !rows.iter().any(|other| other.branch == row.branch && other.id > row.id);
        if is_last && is_missing && !is_in(project, landing_run, row, &loop_id, target)? {
            units.push(LandUnit::for_task(row.clone()));
        }
    }
    units.sort_by_key(|unit| unit.rows.first().map(|row| row.id));
    Ok(units)
}

/// Whether an earlier landing of the task on the default branch did not finish.
fn is_landing(project: &Project, row: &TaskRow) -> Result<bool> {
    let Some((run, loop_id)) = project.store.loop_for_task(TaskId(row.id))? else { return Ok(false) };
    Ok(landing::is_landing(&project.store.preload(run)?, &loop_id))
}

/// Returns the units of the named tasks and runs. A run with its own branch lands as a whole, and so does a task whose
/// run has a final review.
fn named(project: &Project, ids: &[TaskOrRun]) -> Result<Vec<LandUnit>> {
    let mut rows = project.read_only().tasks()?;
    rows.sort_by_key(|row| row.id);
    let mut units: Vec<LandUnit> = Vec::new();
    for id in ids {
        let run = run_of(project, *id)?;
        let run_state = run.map(|run| project.store.preload(run)).transpose()?;
        let is_named = |row: &&TaskRow| match id {
            TaskOrRun::Task(task) => row.id == task.0,
            TaskOrRun::Run(run) => row.run_id == Some(run.0) && row.status != TaskStatus::Cancelled,
        };
        let as_a_whole = run_state.filter(|run_state| match id {
            TaskOrRun::Task(_) => run_state.has_final_review(),
            TaskOrRun::Run(_) => run_state.shares_a_branch(),
        });
        let own: Vec<LandUnit> = match as_a_whole {
            Some(RunState { run, .. }) => {
                let own = rows.iter().filter(|row| row.run_id == Some(run.0) && inbox::may_land(row));
                vec![LandUnit { id: TaskOrRun::Run(run), rows: own.cloned().collect() }]
            }
            None => rows.iter().filter(is_named).map(|row| LandUnit::for_task(row.clone())).collect(),
        };
        for unit in own {
            if !units.iter().any(|other| other.id == unit.id) {
                units.push(unit);
            }
        }
    }
    Ok(units)
}

/// Returns the run of a named task or run, if any. Fails if the task or run does not exist.
fn run_of(project: &Project, id: TaskOrRun) -> Result<Option<RunId>> {
    let read_only = project.read_only();
    match id {
        TaskOrRun::Task(task) => {
            read_only.task(task)?;
            Ok(project.store.loop_for_task(task)?.map(|(run, _)| run))
        }
        TaskOrRun::Run(run) => read_only.check_run(run).map(|()| Some(run)),
    }
}

fn commit(row: &TaskRow) -> Option<Commit> {
    row.approved_commit.clone().map(Commit::new)
}

fn is_in(project: &Project, landing_run: &LandingRun, row: &TaskRow, loop_id: &LoopId, target: &str) -> Result<bool> {
    let Some(commit) = commit(row) else { return Ok(false) };
    Ok(landing::is_on_branch(project, &commit, target)?
        || landing::has_landed(project, &landing_run.run_state, loop_id, target)?)
}

/// A run with unlanded tasks.
struct LandingRun {
    run_state: RunState,
    state: WholeRunState,
}

/// The landing state of a whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WholeRunState {
    Landed,
    Unlanded,
    /// It has a final review and may not land, and neither may its tasks.
    Refused,
    /// It has no final review and is unfinished or not fully reviewed: its tasks land one by one.
    TaskByTask,
}

impl LandingRun {
    fn load(project: &Project, run: RunId, target: &str) -> Result<Self> {
        let run_state = project.store.preload(run)?;
        let over = matches!(run_state.machine.stage, RunStage::Done(_) | RunStage::Landing(_));
        let approved = match over.then(|| landing::run_commit(project, &run_state, target)) {
            None | Some(Err(EngineError::NotLanded { .. } | EngineError::ContainsUnapproved { .. })) => None,
            Some(approved) => Some(approved?),
        };
        let whole = match approved {
            None if run_state.has_final_review() => WholeRunState::Refused,
            None => WholeRunState::TaskByTask,
            Some(commit) if landing::is_on_branch(project, &commit, target)? => WholeRunState::Landed,
            Some(_) => WholeRunState::Unlanded,
        };
        Ok(Self { run_state, state: whole })
    }

    fn lands_as_a_whole(&self, loop_id: &LoopId) -> bool {
        let on_run = self.run_state.has_final_review() || self.run_state.lands_on_run(loop_id);
        self.state != WholeRunState::TaskByTask && on_run
    }
}

type UnitResult = (Vec<LandedTask>, CommandExit);

impl LandUnit {
    fn for_task(row: TaskRow) -> Self {
        Self { id: TaskOrRun::Task(TaskId(row.id)), rows: vec![row] }
    }

    /// Returns a report row with this status for each task.
    fn rows_with(&self, status: LandedStatus, commit: Option<&str>, reason: Option<&str>) -> Vec<LandedTask> {
        let landed_task = |row: &TaskRow| LandedTask {
            task_id: row.id,
            status,
            commit: commit
                .or(row.approved_commit.as_deref().filter(|_| status == LandedStatus::Ready))
                .map(str::to_owned),
            reason: reason.map(str::to_owned),
        };
        self.rows.iter().map(landed_task).collect()
    }

    fn refused(&self, failure: &CliError, console: &Console) -> UnitResult {
        console.note(failure.to_string().trim_end());
        (self.rows_with(LandedStatus::Refused, None, Some(&failure.message)), CommandExit::Failed)
    }

    fn land(&self, project: &ReadOnlyProject, console: &Console) -> Result<Option<LandedWork>> {
        match self.id {
            TaskOrRun::Task(task) => landing::land_task(project, task, console),
            TaskOrRun::Run(run) => landing::land_run(project, run, console).map(Some),
        }
    }
}

fn dry_run(project: &ReadOnlyProject, unit: &LandUnit, target: &str, console: &Console) -> Result<UnitResult> {
    let checked = match unit.id {
        TaskOrRun::Task(task) => landing::check_task(project, task),
        TaskOrRun::Run(run) => landing::check_run(project, run),
    };
    if let Err(failure) = checked {
        return Ok(unit.refused(&failure, console));
    }
    for row in unit.rows.iter().filter(|_| !console.json) {
        console.text(&format!("Task #{} would land on {target}: {}\n", row.id, row.title))?;
    }
    Ok((unit.rows_with(LandedStatus::Ready, None, None), CommandExit::Done))
}

fn land(project: &ReadOnlyProject, unit: &LandUnit, console: &Console) -> Result<UnitResult> {
    match unit.land(project, console) {
        Ok(Some(landed)) => {
            for row in unit.rows.iter().filter(|_| !console.json) {
                console.text(&format!("{}\n", landed_line(TaskId(row.id), &landed)))?;
            }
            Ok((unit.rows_with(landed.when.status(), Some(&landed.commit), None), CommandExit::Done))
        }
        Ok(None) => Ok((unit.rows_with(LandedStatus::Refused, None, None), CommandExit::Interrupted)),
        Err(failure) => Ok(unit.refused(&failure, console)),
    }
}

fn worse(first: CommandExit, second: CommandExit) -> CommandExit {
    match (first, second) {
        (CommandExit::Interrupted, _) | (_, CommandExit::Interrupted) => CommandExit::Interrupted,
        (CommandExit::Done, second) => second,
        (first, _) => first,
    }
}
