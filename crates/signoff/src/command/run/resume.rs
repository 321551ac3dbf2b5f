//! `signoff run --resume`: on where a run was left, or why there is nothing to go on with.

use signoff_core::group::{RunOutcome, RunStage};
use signoff_core::ids::{LoopId, RunId};
use signoff_core::view::TaskRow;
use signoff_engine::board::Board;
use signoff_engine::dispatcher::Drive;
use signoff_engine::error::EngineError;
use signoff_engine::landing;
use signoff_store::{RunRow, Store};
use signoff_term::json::RunReport;
use signoff_term::line;

use super::Args;
use crate::command::work;
use crate::console::Console;
use crate::desk::Bench;
use crate::drive::{self, Wanted};
use crate::failure::{Exit, Failure};
use crate::preflight;

pub fn resume(args: &Args, console: &Console) -> Result<Exit, Failure> {
    if let Some((flag, hint)) = settled(args) {
        return Err(Failure::usage(format!("{flag} is for a run that begins, not for --resume")).hint(hint));
    }
    let bench = Bench::open()?;
    let no_ask = console.no_ask || bench.settings.no_ask();
    let resumed = match args.resume.flatten().map(RunId) {
        Some(run) => {
            let lease = drive::try_acquire(&*bench.store, run)?;
            let lease =
                lease.ok_or_else(|| Failure::failed(format!("another signoff works on run {run}")))?;
            if !bench.store.open_runs()?.iter().any(|open| open.id == run) {
                return over(&bench, run, console);
            }
            vec![lease]
        }
        None => work::resumable(&bench, &[])?,
    };
    if resumed.is_empty() && bench.store.open_runs()?.is_empty() && work::has_unsettled(&bench)? {
        return work::nothing(&bench, &[], console);
    }
    if resumed.is_empty() {
        let failed = bench.desk().failed_final_reviews()?;
        if let Some(run) = failed.first().filter(|_| args.resume.flatten().is_none()) {
            return over(&bench, *run, console);
        }
        console.note(&nothing(&bench)?);
        return work::exit_of_all(&bench);
    }
    let drive = Drive { no_ask, tick: args.tick, ..Drive::default() };
    let wanted = Wanted { resumed, drive, jobs: args.jobs.map(usize::from), ..Wanted::default() };
    drive_on(bench, wanted, console)
}

/// Goes on with a run that a person decided about.
pub fn go_on(run: RunId, console: &Console) -> Result<Exit, Failure> {
    let bench = Bench::open()?;
    let no_ask = console.no_ask || bench.settings.no_ask();
    let lease = drive::try_acquire(&*bench.store, run)?;
    let lease = lease.ok_or_else(|| Failure::failed(format!("another signoff works on run {run}")))?;
    let drive = Drive { no_ask, ..Drive::default() };
    drive_on(bench, Wanted { resumed: vec![lease], drive, ..Wanted::default() }, console)
}

fn drive_on(bench: Bench, wanted: Wanted, console: &Console) -> Result<Exit, Failure> {
    for lease in &wanted.resumed {
        preflight::check_run(&bench, lease.run(), (None, &[]))?;
    }
    preflight::warn(&bench, console);
    let no_ask = wanted.drive.no_ask;
    drive::drive(bench, wanted, console)?.conclude(console, no_ask)
}

/// The first flag about what was settled when the run began, and what to do instead.
fn settled(args: &Args) -> Option<(&'static str, &'static str)> {
    let as_begun = "leave it out: a run goes on as it was begun";
    let flags = [
        (args.dry_run, "--dry-run", "`signoff status` shows what is unfinished"),
        (
            args.land,
            "--land",
            "leave it out; `signoff land` brings in what is approved when the run is through",
        ),
        (args.effort.is_some(), "--effort", as_begun),
        (args.kind.is_some(), "--as", as_begun),
    ];
    let given = flags.into_iter().find(|(given, ..)| *given).map(|(_, flag, hint)| (flag, hint));
    given.or_else(|| args.slots.given().map(|flag| (flag, as_begun)))
}

/// What is unfinished is another program's, or there is nothing.
fn nothing(bench: &Bench) -> Result<String, Failure> {
    let runs: Vec<String> = bench.store.open_runs()?.iter().map(|run| run.id.to_string()).collect();
    Ok(match runs.as_slice() {
        [] => "Nothing to go on with".to_owned(),
        [one] => format!("Nothing to go on with here: another signoff works on run {one}"),
        several => format!("Nothing to go on with here: other signoffs work on runs {}", several.join(", ")),
    })
}

/// Says how a run ended, and what can be done now.
fn over(bench: &Bench, run: RunId, console: &Console) -> Result<Exit, Failure> {
    let log = bench.store.log(run)?;
    let (board, row) = (Board::of(run, &log), bench.store.run(run)?);
    let RunStage::Done(outcome) = board.machine.stage else {
        console.note(&format!("Run {run} was never begun"));
        return Ok(Exit::Done);
    };
    if console.json {
        let mut tasks: Vec<TaskRow> = bench.desk().tasks()?;
        tasks.retain(|row| row.run_id == Some(run.0));
        console.json(&RunReport::of(Some((run.0, &board.machine.stage)), tasks, Vec::new()))?;
    }
    if outcome == RunOutcome::Failed {
        // The part that comes last had the last word.
        let mut parts = [(LoopId::whole(), "its final review"), (LoopId::planning(), "planning")].into_iter();
        let part = parts.find(|(part, _)| board.loops.contains_key(part));
        let why = part.iter().flat_map(|(part, _)| line::end(&log, part));
        let why: String = why.filter(|_| !console.json).map(|line| format!("{line}\n")).collect();
        console.text(&why)?;
        let refusal = landing::final_review_refusal(&board);
        return Err(failed(run, (part.map(|(_, name)| name), row), refusal));
    }
    let how = match outcome {
        RunOutcome::Approved if board.has_gone_on => "all of it is approved and on the default branch",
        RunOutcome::Attention if board.has_gone_on => "what was not called off is on the default branch",
        RunOutcome::Approved => "all of it is approved; `signoff land` brings it to the default branch",
        RunOutcome::Attention => "not all of it is approved; `signoff` shows what needs a look",
        RunOutcome::Failed | RunOutcome::Cancelled => "it was called off",
    };
    console.note(&format!("Run {run} is over: {how}"));
    work::exit_of_run(bench, run)
}

fn failed(run: RunId, (part, row): (Option<&str>, Option<RunRow>), refusal: Option<EngineError>) -> Failure {
    let name = row.and_then(|row| row.specification);
    let place = part.map(|part| format!(" in {part}")).unwrap_or_default();
    let hint = match (refusal, name) {
        (_, _) if part.is_none() => {
            "`signoff` shows its tasks; `signoff retry ID` goes on with one that failed".to_owned()
        }
        (Some(EngineError::NotLanded { hint, .. }), _) => hint,
        (_, Some(name)) => format!("`signoff run {name}` plans it anew"),
        (_, None) => "begin it anew with `signoff run`".to_owned(),
    };
    Failure::failed(format!("run {run} is over: it failed{place}")).hint(hint)
}
