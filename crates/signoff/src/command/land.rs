//! `signoff land`: everything that is approved joins the default branch.

use std::collections::BTreeMap;

use signoff_core::ids::{Commit, TaskId};
use signoff_core::view::{Status, TaskRow};
use signoff_term::json::{LandReport, LandedTask};

use super::merge::words;
use crate::console::Console;
use crate::desk::Bench;
use crate::failure::{Exit, Failure};
use crate::landing;

/// Bring everything that is approved into the default branch
///
/// Task by task in order of their numbers, as `signoff merge` does it; of several tasks on one branch the last approved
/// one. One that is refused keeps no other from landing.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff land --dry-run\n  signoff land")]
pub struct Args {
    /// Only say what would land
    #[arg(long)]
    dry_run: bool,
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
    for row in &waiting {
        let (one, end) = if args.dry_run { would(row, &target, console)? } else { land(row, console)? };
        told.push(one);
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
fn waiting(bench: &Bench, target: &str) -> Result<Vec<TaskRow>, Failure> {
    let rows = bench.desk().tasks()?;
    let mut last: BTreeMap<String, TaskRow> = BTreeMap::new();
    for row in rows.into_iter().filter(is_approved) {
        last.insert(row.branch.clone().unwrap_or_default(), row);
    }
    let commits: Vec<Commit> =
        last.values().filter_map(|row| row.approved_commit.clone()).map(Commit::new).collect();
    let missing = bench.repository.not_in(target, &commits)?;
    let is_missing = |row: &TaskRow| {
        row.approved_commit.as_ref().is_some_and(|commit| missing.contains(&Commit::new(commit.clone())))
    };
    let mut waiting: Vec<TaskRow> = last.into_values().filter(is_missing).collect();
    waiting.sort_by_key(|row| row.id);
    Ok(waiting)
}

fn is_approved(row: &TaskRow) -> bool {
    row.status == Status::Completed && row.final_verdict.as_deref() == Some("APPROVED")
}

type Told = (LandedTask, Exit);

fn would(row: &TaskRow, target: &str, console: &Console) -> Result<Told, Failure> {
    if !console.json {
        console.text(&format!("Task #{} would land on {target}: {}\n", row.id, row.title))?;
    }
    let commit = row.approved_commit.clone();
    Ok((LandedTask { task_id: row.id, status: "ready", commit, reason: None }, Exit::Done))
}

fn land(row: &TaskRow, console: &Console) -> Result<Told, Failure> {
    let (task_id, task) = (row.id, TaskId(row.id));
    match landing::land_task(task, console) {
        Ok(Ok(landed)) => {
            if !console.json {
                console.text(&format!("{}\n", words(task, &landed)))?;
            }
            let status = if landed.now { "landed" } else { "already" };
            Ok((LandedTask { task_id, status, commit: Some(landed.commit), reason: None }, Exit::Done))
        }
        Ok(Err(exit)) => Ok((LandedTask { task_id, status: "refused", commit: None, reason: None }, exit)),
        Err(failure) => {
            console.note(failure.to_string().trim_end());
            let reason = Some(failure.message().to_owned());
            Ok((LandedTask { task_id, status: "refused", commit: None, reason }, Exit::Failed))
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
