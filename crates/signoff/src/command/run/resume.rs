//! `signoff run --resume`: resumes unfinished runs, or says why there is nothing to resume.

use signoff_core::group::{RunOutcome, RunStage};
use signoff_core::ids::{LoopId, RunId};
use signoff_core::view::TaskRow;
use signoff_core::view::inbox::RunEnd;
use signoff_engine::dispatcher::RunLoopOptions;
use signoff_engine::error::EngineError;
use signoff_engine::landing;
use signoff_store::{Lease, Store, StoreError, StoredRun};
use signoff_term::json::RunReport;
use signoff_term::line;

use super::Args;
use crate::command::work;
use crate::run_loop::{self, RunRequest};
use crate::{CliError, CommandExit, Console, Project, Result, preflight};

pub fn resume(args: &Args, console: &Console) -> Result<CommandExit> {
    if let Some((flag, hint)) = fixed_flag(args) {
        return Err(CliError::usage(format!("{flag} cannot be combined with --resume")).hint(hint));
    }
    let project = Project::open()?;
    let no_ask = console.no_ask || project.settings.no_ask();
    let resumed = match args.resume.flatten().map(RunId) {
        Some(run) => {
            let lease = acquire(&project, run)?;
            if !project.store.open_runs()?.iter().any(|open| open.id == run) {
                return print_finished(&project, run, console);
            }
            vec![lease]
        }
        None => work::resumable(&project, &[])?,
    };
    if resumed.is_empty() && project.store.open_runs()?.is_empty() && work::has_unsettled(&project)? {
        return work::print_nothing_to_do(&project, &[], console);
    }
    if resumed.is_empty() {
        let failed = project.read_only().failed_final_reviews()?;
        if let Some(run) = failed.first().filter(|_| args.resume.flatten().is_none()) {
            return print_finished(&project, *run, console);
        }
        console.note(&nothing_text(&project)?);
        return work::exit_of_all(&project);
    }
    let options = RunLoopOptions { no_ask, check_off_in_checkout: args.tick, ..RunLoopOptions::default() };
    let request = RunRequest { resumed, options, jobs: args.jobs.map(usize::from), ..RunRequest::default() };
    run_resumed(project, request, console)
}

/// Resumes a run after a decision about it.
pub fn resume_run(project: Project, run: RunId, console: &Console) -> Result<CommandExit> {
    let no_ask = console.no_ask || project.settings.no_ask();
    let (resumed, options) = (vec![acquire(&project, run)?], RunLoopOptions { no_ask, ..RunLoopOptions::default() });
    run_resumed(project, RunRequest { resumed, options, ..RunRequest::default() }, console)
}

fn acquire(project: &Project, run: RunId) -> Result<Lease> {
    let lease = run_loop::try_acquire(&*project.store, run)?;
    lease.ok_or_else(|| CliError::from(StoreError::LeaseHeld(run)))
}

fn run_resumed(project: Project, request: RunRequest, console: &Console) -> Result<CommandExit> {
    for lease in &request.resumed {
        preflight::check_run(&project, lease.run(), None, &[])?;
    }
    preflight::print_warnings(&project, console);
    run_loop::run(project, request, console)?.print_result(console)
}

/// Returns the first flag that cannot be changed for an existing run, with a hint.
fn fixed_flag(args: &Args) -> Option<(&'static str, &'static str)> {
    let as_begun = "leave it out: a resumed run keeps its original settings";
    let flags = [
        (args.dry_run, "--dry-run", "`signoff status` shows what is unfinished"),
        (args.land, "--land", "leave it out; `signoff land` lands approved work when the run has ended"),
        (args.effort.is_some(), "--effort", as_begun),
        (args.kind.is_some(), "--as", as_begun),
    ];
    let given = flags.into_iter().find(|(is_given, ..)| *is_given).map(|(_, flag, hint)| (flag, hint));
    given.or_else(|| args.slots.first_given().map(|flag| (flag, as_begun)))
}

/// Explains why nothing can be resumed: there is no open run, or other processes drive them.
fn nothing_text(project: &Project) -> Result<String> {
    let runs: Vec<String> = project.store.open_runs()?.iter().map(|run| run.id.to_string()).collect();
    Ok(match runs.as_slice() {
        [] => "No run to resume".to_owned(),
        [one] => format!("No run to resume here: run {one} is in use by another signoff process"),
        several => format!("No run to resume here: other signoff processes use runs {}", several.join(", ")),
    })
}

/// Prints how a run ended and what can be done next.
fn print_finished(project: &Project, run: RunId, console: &Console) -> Result<CommandExit> {
    let (run_state, row) = (project.store.run_state(run)?, project.store.run(run)?);
    let RunStage::Done(outcome) = run_state.machine.stage else {
        console.note(&format!("Run {run} was never started"));
        return Ok(CommandExit::Done);
    };
    if console.json {
        let mut tasks: Vec<TaskRow> = project.read_only().tasks()?;
        tasks.retain(|row| row.run_id == Some(run.0));
        console.json(&RunReport::new(Some(run.0), Some(&run_state.machine.stage), tasks, Vec::new()))?;
    }
    if outcome == RunOutcome::Failed {
        // The later of the two parts decided the result.
        let mut parts = [(LoopId::final_review(), "its final review"), (LoopId::planning(), "planning")].into_iter();
        let part = parts.find(|(part, _)| run_state.loops.contains_key(part));
        let why = part.iter().flat_map(|(part, _)| line::ending_lines(&run_state, part));
        let why: String = why.filter(|_| !console.json).map(|line| format!("{line}\n")).collect();
        console.text(&why)?;
        let refusal = landing::final_review_refusal(&run_state);
        return Err(failed_error(run, part.map(|(_, name)| name), row, refusal));
    }
    let result = match RunEnd::new(&run_state, outcome, run_state.landed_on_default) {
        RunEnd::OnDefaultBranch if outcome == RunOutcome::Approved => "all of it is approved and on the default branch",
        RunEnd::OnDefaultBranch => "the tasks that were not cancelled are on the default branch",
        RunEnd::Approved => "all of it is approved; `signoff land` lands it on the default branch",
        RunEnd::PartlyApproved | RunEnd::NotAccepted => {
            "not all of it is approved; `signoff` shows what needs attention"
        }
        RunEnd::FinalReviewFailed | RunEnd::Stopped => "it was cancelled",
    };
    console.note(&format!("Run {run} is over: {result}"));
    work::exit_of_run(project, run)
}

fn failed_error(run: RunId, part: Option<&str>, row: Option<StoredRun>, refusal: Option<EngineError>) -> CliError {
    let name = row.and_then(|row| row.specification);
    let in_part = part.map(|part| format!(" in {part}")).unwrap_or_default();
    let hint = match (refusal, name) {
        (_, _) if part.is_none() => "`signoff` shows its tasks; `signoff retry ID` retries one that failed".to_owned(),
        (Some(EngineError::NotLanded { hint, .. }), _) => hint,
        (_, Some(name)) => format!("`signoff run {name}` plans it again"),
        (_, None) => "start a new run with `signoff run`".to_owned(),
    };
    CliError::failed(format!("run {run} is over: it failed{in_part}")).hint(hint)
}
