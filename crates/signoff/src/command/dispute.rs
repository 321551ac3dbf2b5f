//! `signoff dispute`: a person says that a finding is wrong, once and for all.

use std::collections::BTreeSet;

use signoff_core::command::Command;
use signoff_core::ids::TaskId;
use signoff_core::ledger::State;
use signoff_engine::board::Board;
use signoff_store::{FindingPlace, Store};
use signoff_term::json::{DisputeReport, VERSION};

use super::decide::{Taken, decide};
use crate::console::Console;
use crate::desk::Desk;
use crate::door;
use crate::drive::task_id;
use crate::failure::{Exit, Failure};

/// Say that a finding is wrong
///
/// No reviewer of the task opens it again, and it keeps none of its gates shut. A later task on the same branch starts
/// with findings of its own.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  signoff dispute f-3f9a1c --reason \"the input is validated by the caller\""
)]
pub struct Args {
    /// The finding, or the first characters of its id (`signoff show ID` lists them)
    finding: String,
    /// Why it is wrong
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// The task it is a finding of, where several have it [default: the latest of its branch]
    #[arg(long, value_name = "ID", value_parser = task_id)]
    task: Option<TaskId>,
}

/// Has a finding refuted, which is known by the first characters of its id.
pub fn dispute(
    desk: &Desk,
    prefix: &str,
    task: Option<TaskId>,
    reason: &str,
) -> Result<(FindingPlace, Taken), Failure> {
    let place = find(desk, prefix, task)?;
    let (finding, by, reason) = (place.finding.clone(), door::person(), reason.to_owned());
    let taken = decide(desk, place.run, &place.loop_id, Command::Dispute { finding, by, reason })?;
    Ok((place, taken))
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let desk = Desk::find()?.ok_or_else(|| unknown(&args.finding))?;
    let (FindingPlace { task, finding, .. }, taken) = dispute(&desk, &args.finding, args.task, &args.reason)?;
    taken.tell(console);
    if console.json {
        let (finding, task_id) = (finding.as_str().to_owned(), task.map(|task| task.0));
        console.json(&DisputeReport { version: VERSION, finding, task_id, state: "refuted" })?;
    } else {
        console.text(&format!("Finding {finding} is refuted by {}\n", door::person()))?;
    }
    Ok(Exit::Done)
}

fn unknown(finding: &str) -> Failure {
    Failure::usage(format!("there is no finding {finding}"))
        .hint("`signoff show ID` lists the findings of a task")
}

fn find(desk: &Desk, prefix: &str, task: Option<TaskId>) -> Result<FindingPlace, Failure> {
    let mut found = decided_there(desk.store.findings(prefix)?);
    if let Some(task) = task {
        found.retain(|place| place.task == Some(task));
        if found.is_empty() {
            return Err(Failure::usage(format!("task {task} has no finding {prefix}"))
                .hint(format!("`signoff show {task}` lists its findings")));
        }
    }
    let ids: BTreeSet<&str> = found.iter().map(|place| place.finding.as_str()).collect();
    if ids.len() > 1 {
        let ids = ids.into_iter().collect::<Vec<_>>().join(", ");
        return Err(Failure::usage(format!("{prefix} stands for several findings: {ids}"))
            .hint("give more characters of the id"));
    }
    one_of(desk, found, prefix)
}

/// The places of findings, without those of checkpoint reviews whose task has the finding too: it is decided there.
fn decided_there(found: Vec<FindingPlace>) -> Vec<FindingPlace> {
    let tasks: Vec<_> = found.iter().map(|place| (place.run, place.loop_id.clone())).collect();
    let is_elsewhere = |place: &FindingPlace| {
        place.loop_id.of_checkpoint().is_some_and(|(of, _)| tasks.contains(&(place.run, of)))
    };
    found.into_iter().filter(|place| !is_elsewhere(place)).collect()
}

/// Of the tasks that have a finding the one that is meant: the last of their branch, where it is open.
fn one_of(desk: &Desk, found: Vec<FindingPlace>, prefix: &str) -> Result<FindingPlace, Failure> {
    let mut families = BTreeSet::new();
    let mut best: Option<(bool, FindingPlace)> = None;
    let several = found.len() > 1;
    let tasks: Vec<u64> = found.iter().filter_map(|place| Some(place.task?.0)).collect();
    for place in found {
        families.insert(family(desk, &place)?);
        let open = several && is_open(desk, &place)?;
        if best.as_ref().is_none_or(|(was, other)| (open, place.task) >= (*was, other.task)) {
            best = Some((open, place));
        }
    }
    if families.len() > 1 {
        let options: Vec<_> = tasks.iter().map(|task| format!("--task {task}")).collect();
        return Err(Failure::usage(format!("several tasks have the finding {prefix}"))
            .hint(format!("say which: {}", options.join(" or "))));
    }
    best.map(|(_, place)| place).ok_or_else(|| unknown(prefix))
}

/// The first task of the branch a finding is about.
fn family(desk: &Desk, place: &FindingPlace) -> Result<Option<u64>, Failure> {
    let Some(task) = place.task else { return Ok(None) };
    Ok(Some(desk.task(task)?.continues.unwrap_or(task.0)))
}

fn is_open(desk: &Desk, place: &FindingPlace) -> Result<bool, Failure> {
    let board = Board::of(place.run, &desk.store.log(place.run)?);
    let ledger = board.loops.get(&place.loop_id).map(|worked| &worked.state.ledger);
    Ok(ledger.and_then(|ledger| ledger.get(&place.finding)).is_some_and(|entry| entry.state == State::Open))
}
