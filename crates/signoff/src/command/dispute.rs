//! `signoff dispute`: marks a finding as wrong.

use std::collections::BTreeSet;

use signoff_core::command::LoopCommand;
use signoff_core::ids::TaskId;
use signoff_core::ledger::FindingState;
use signoff_core::view::inbox::{self, Action};
use signoff_store::{FindingRef, Store};
use signoff_term::json::{DisputeReport, VERSION};

use super::decide::{DecisionResult, decide};
use crate::run_loop::task_id;
use crate::{CliError, CommandExit, Console, ReadOnlyProject, Result, host};

/// Mark a finding as wrong
///
/// No reviewer of the task can open it again, and it no longer fails a gate. Later tasks on the same branch inherit the
/// dispute.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff dispute f-3f9a1c --reason \"the input is validated by the caller\"")]
pub struct Args {
    /// The finding, or the first characters of its id (`signoff show ID` lists them)
    finding: String,
    /// The reason why the finding is wrong
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// The task, if several have this finding [default: the latest of its branch]
    #[arg(long, value_name = "ID", value_parser = task_id)]
    task: Option<TaskId>,
}

/// Refutes a finding, identified by a prefix of its id.
pub fn dispute(
    project: &ReadOnlyProject,
    prefix: &str,
    task: Option<TaskId>,
    reason: &str,
) -> Result<(FindingRef, DecisionResult)> {
    let finding_ref = find(project, prefix, task)?;
    let (finding, by, reason) = (finding_ref.finding.clone(), host::user_name(), reason.to_owned());
    let result = decide(project, finding_ref.run, &finding_ref.loop_id, LoopCommand::Dispute { finding, by, reason })?;
    Ok((finding_ref, result))
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    let project = ReadOnlyProject::find()?.ok_or_else(|| unknown_finding(&args.finding))?;
    let (FindingRef { task, finding, .. }, result) = dispute(&project, &args.finding, args.task, &args.reason)?;
    result.print_note(console);
    let text = format!("Finding {finding} is refuted by {}\n", host::user_name());
    let (finding, task_id) = (finding.as_str().to_owned(), task.map(|task| task.0));
    console.print(&DisputeReport { version: VERSION, finding, task_id, state: FindingState::Refuted }, || text)
}

pub fn unknown_finding(finding: &str) -> CliError {
    CliError::usage(format!("there is no finding {finding}")).hint("`signoff show ID` lists the findings of a task")
}

fn find(project: &ReadOnlyProject, prefix: &str, task: Option<TaskId>) -> Result<FindingRef> {
    let mut found = without_checkpoint_duplicates(project.store.findings(prefix)?);
    if let Some(task) = task {
        found.retain(|finding_ref| finding_ref.task == Some(task));
        if found.is_empty() {
            return Err(CliError::usage(format!("task {task} has no finding {prefix}"))
                .hint(format!("`{}` lists its findings", Action::Show(task.0))));
        }
    }
    let ids: BTreeSet<&str> = found.iter().map(|finding_ref| finding_ref.finding.as_str()).collect();
    if ids.len() > 1 {
        let ids = ids.into_iter().collect::<Vec<_>>().join(", ");
        return Err(
            CliError::usage(format!("{prefix} matches several findings: {ids}")).hint("give more characters of the id")
        );
    }
    pick_one(project, found, prefix)
}

/// Drops findings of checkpoint reviews that the reviewed task also has: a dispute is recorded in the task.
fn without_checkpoint_duplicates(found: Vec<FindingRef>) -> Vec<FindingRef> {
    let tasks: Vec<_> = found.iter().map(|finding_ref| (finding_ref.run, finding_ref.loop_id.clone())).collect();
    let is_elsewhere = |finding_ref: &FindingRef| {
        finding_ref
            .loop_id
            .checkpoint_target()
            .is_some_and(|(reviewed, _)| tasks.contains(&(finding_ref.run, reviewed)))
    };
    found.into_iter().filter(|finding_ref| !is_elsewhere(finding_ref)).collect()
}

/// Picks one of the tasks that have the finding: the latest one where it is open, or else where it can be disputed. All
/// must be on the same branch.
fn pick_one(project: &ReadOnlyProject, found: Vec<FindingRef>, prefix: &str) -> Result<FindingRef> {
    let mut branch_roots = BTreeSet::new();
    let mut best: Option<((bool, bool), FindingRef)> = None;
    let several = found.len() > 1;
    let tasks: Vec<u64> = found.iter().filter_map(|finding_ref| Some(finding_ref.task?.0)).collect();
    for finding_ref in found {
        branch_roots.insert(branch_root(project, &finding_ref)?);
        let rank = if several { rank(project, &finding_ref)? } else { (true, true) };
        if best.as_ref().is_none_or(|(best_rank, other)| (rank, finding_ref.task) >= (*best_rank, other.task)) {
            best = Some((rank, finding_ref));
        }
    }
    if branch_roots.len() > 1 {
        let options: Vec<_> = tasks.iter().map(|task| format!("--task {task}")).collect();
        return Err(CliError::usage(format!("several tasks have the finding {prefix}"))
            .hint(format!("select one with {}", options.join(" or "))));
    }
    best.map(|(_, finding_ref)| finding_ref).ok_or_else(|| unknown_finding(prefix))
}

/// The first task of the branch.
fn branch_root(project: &ReadOnlyProject, finding_ref: &FindingRef) -> Result<Option<u64>> {
    let Some(task) = finding_ref.task else { return Ok(None) };
    Ok(Some(project.task(task)?.continues.unwrap_or(task.0)))
}

/// Whether the finding is open, and whether it can be disputed.
fn rank(project: &ReadOnlyProject, finding_ref: &FindingRef) -> Result<(bool, bool)> {
    let run_state = project.store.preload(finding_ref.run)?;
    let ledger = run_state.loops.get(&finding_ref.loop_id).map(|loop_state| &loop_state.machine.ledger);
    let state = ledger.and_then(|ledger| ledger.get(&finding_ref.finding)).map(|entry| entry.state);
    Ok((state == Some(FindingState::Open), state.is_some_and(inbox::can_be_disputed)))
}
