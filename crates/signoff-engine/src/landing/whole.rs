//! What a run came to as a whole, and whether all of it was approved. Its branch may have been moved by anybody since.

use signoff_core::ids::{Commit, LoopId};
use signoff_core::machine::{Loop, Stage};
use signoff_core::workflow::Landing;

use crate::board::Board;
use crate::error::EngineError;
use crate::git::{GitError, Merge, Moved, Repository};

/// The commit of a run's branch that was approved, with everything that landed on it; or why there is none.
pub fn approved(repository: &Repository, board: &Board) -> Result<Commit, EngineError> {
    let (run, branch) = (board.run, board.run.branch());
    if let Some(task) = board.landed.keys().find(|loop_id| !is_approved(board, loop_id)) {
        return Err(EngineError::NotLanded {
            message: format!(
                "run {run} cannot land as a whole: task {task} landed on {branch} and is not approved"
            ),
            hint: format!(
                "`signoff land` brings in the tasks that do not build on it; `signoff merge {task} --force --reason TEXT` approves it in your name"
            ),
        });
    }
    let commit = commit_of(board).ok_or_else(|| EngineError::NotLanded {
        message: format!("run {run} cannot land as a whole: nobody has approved it"),
        hint: "`signoff status` shows how far it is; `signoff merge ID` brings in one task".to_owned(),
    })?;
    let all: Vec<Commit> = board.landed.values().cloned().collect();
    let missing = repository.missing_from(commit.as_str(), &all)?;
    match board.landed.iter().find(|(_, landed)| missing.contains(landed)) {
        None => Ok(commit),
        Some((task, landed)) => Err(EngineError::NotLanded {
            message: format!(
                "task {task} landed on {branch} as {landed}, and what was approved of run {run} lacks it"
            ),
            hint: format!("somebody moved {branch}: `signoff merge {task}` brings the task in by itself"),
        }),
    }
}

/// What was approved last: the whole, what landed last, or the last task of those that share the branch.
fn commit_of(board: &Board) -> Option<Commit> {
    let policy = board.run_policy()?;
    let of = |loop_id: &LoopId| board.loops.get(loop_id)?.state.approved_commit().cloned();
    if policy.after {
        of(&LoopId::whole())
    } else if policy.landing == Landing::None {
        board.machine.groups.iter().flatten().rev().find_map(of)
    } else {
        board.last_landed.clone()
    }
}

/// Whether a loop's work is approved as it stands: a person may have taken that back.
pub fn is_approved(board: &Board, loop_id: &LoopId) -> bool {
    let state = board.loops.get(loop_id).map(|worked| &worked.state);
    state.is_some_and(ended_well)
}

fn ended_well(state: &Loop) -> bool {
    let Stage::Done(ending) = &state.stage else { return false };
    ending.outcome.is_approval()
}

/// Makes sure that a run's branch has what landed on it last: somebody may have moved it. In words what was done.
pub fn keep(repository: &Repository, branch: &str, landed: &Commit) -> Result<Option<String>, EngineError> {
    if repository.is_at(branch, landed) {
        return Ok(None);
    }
    let Some(target) = repository.target(branch)? else {
        repository.make_target(branch, landed)?;
        return Ok(Some(format!("{branch} was deleted; made again with all that had landed on it")));
    };
    let tip = target.tip.commit.clone();
    if repository.is_ancestor(landed.as_str(), tip.as_str())? {
        return Ok(None);
    }
    let to = match repository.merge_onto(&target.tip, landed, &format!("Keep what had landed on {branch}"))? {
        Merge::Contained => return Ok(None),
        Merge::Clean(_) if repository.is_ancestor(tip.as_str(), landed.as_str())? => landed.clone(),
        Merge::Clean(head) => head.commit,
        Merge::Conflicting { .. } => {
            return Err(EngineError::NotLanded {
                message: format!(
                    "{branch} was moved to {tip}, which does not go together with what had landed on it ({landed})"
                ),
                hint: format!(
                    "nothing is lost: `git merge {landed}` on {branch}, then `signoff run --resume`"
                ),
            });
        }
    };
    match repository.move_target(&target, &to)? {
        Moved::Done => Ok(Some(format!("{branch} was moved to {tip}; what had landed on it is in it again"))),
        Moved::Elsewhere => Err(GitError::KeepsMoving(branch.to_owned()).into()),
    }
}
