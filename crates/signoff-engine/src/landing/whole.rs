//! What a run came to as a whole, and what was approved of it. Its branch may have been moved by anybody since.

use std::collections::HashSet;

use signoff_core::config::LandBy;
use signoff_core::group::RunStage;
use signoff_core::ids::{Commit, LoopId, RunId};
use signoff_core::machine::{Again, Stage};
use signoff_core::review::Bar;
use signoff_core::workflow::Landing;

use super::covered::{self, Range};
use super::short;
use crate::board::Board;
use crate::error::EngineError;
use crate::git::{GitError, Merge, Moved, Patch, PatchDigest, Repository, Target};

/// The commits of a run that its branch may have.
#[derive(Debug, Clone, Copy)]
pub struct OwnWork<'a> {
    /// What landed on the branch last.
    pub landed: &'a Commit,
    /// The heads of loops that are landing: a killed process may have landed them without recording it.
    pub heads: &'a [Commit],
    pub by: LandBy,
}

/// Why a run cannot land because of its final review; none if that is approved, or if the run has none.
pub fn final_review_refusal(board: &Board) -> Option<EngineError> {
    let (run, stage) = (board.run, &board.machine.stage);
    if !board.has_final_review() {
        return None;
    }
    let Some(whole) = board.loops.get(&LoopId::whole()) else {
        let is_over = matches!(stage, RunStage::Done(_));
        return (!is_over).then(|| EngineError::NotLanded {
            message: format!("run {run} cannot land: its final review has not begun"),
            hint: format!(
                "`signoff status` shows how far it is; `signoff run --resume {run}` goes on if it was stopped"
            ),
        });
    };
    let state = &whole.state;
    if state.approved_commit().is_some() {
        return None;
    }
    let Stage::Done(ending) = &state.stage else {
        return Some(EngineError::NotLanded {
            message: format!("run {run} cannot land: its final review is not over"),
            hint: format!("`signoff run --resume {run}` goes on with it; `signoff` shows an open question"),
        });
    };
    let open: Vec<&str> = state.ledger.open(Bar::Low).map(|entry| entry.finding.id.as_str()).collect();
    let findings = match open.len() {
        0 => String::new(),
        1 => " (1 open finding)".to_owned(),
        count => format!(" ({count} open findings)"),
    };
    let hint = ways_on(run, ending.again != Again::Nothing, open.first().copied());
    let message = format!("run {run} cannot land: its final review did not approve it{findings}");
    Some(EngineError::NotLanded { message, hint })
}

/// The commands that decide about a final review which did not approve.
pub fn ways_on(run: RunId, can_be_retried: bool, finding: Option<&str>) -> String {
    let retry = can_be_retried.then(|| format!("`signoff retry run-{run}` fixes and reviews it once more"));
    let dispute = finding.filter(|_| can_be_retried).map(|finding| {
        format!("`signoff dispute {finding} --reason TEXT` rejects a finding, before the retry")
    });
    let accept =
        format!("`signoff edit run-{run} --verdict APPROVED --reason TEXT` accepts the run in your name");
    retry.into_iter().chain(dispute).chain([accept]).collect::<Vec<_>>().join("; ")
}

/// The commit of a run's branch that was approved, with everything that landed on it; or why there is none.
pub fn approved(repository: &Repository, board: &Board) -> Result<Commit, EngineError> {
    if let Some(refusal) = final_review_refusal(board) {
        return Err(refusal);
    }
    let (run, branch) = (board.run, board.run.branch());
    let commit = commit_of(board).ok_or_else(|| EngineError::NotLanded {
        message: format!("run {run} cannot land as a whole: nobody has approved it"),
        hint: match board.has_final_review() {
            true => "`signoff status` shows how far it is".to_owned(),
            false => "`signoff status` shows how far it is; `signoff merge ID` brings in one task".to_owned(),
        },
    })?;
    let all: Vec<Commit> = board.landed.values().cloned().collect();
    let missing = repository.missing_from(commit.as_str(), &all)?;
    match board.landed.iter().find(|(_, landed)| missing.contains(landed)) {
        None => Ok(commit),
        Some((task, landed)) => Err(EngineError::NotLanded {
            message: format!(
                "task {task} landed on {branch} as {landed}, and what was approved of run {run} lacks it"
            ),
            hint: match board.has_final_review() {
                true => format!(
                    "{branch} was moved: `git merge {landed}` on it, then `signoff edit run-{run} --verdict APPROVED \
                     --reason TEXT`"
                ),
                false => {
                    format!("{branch} was moved: `signoff merge {task}` brings the task in by itself")
                }
            },
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

/// What the last review of a run approved, where nobody refused any of its tasks.
pub fn looked_at(board: &Board) -> Option<Range> {
    let whole = board.loops.get(&LoopId::whole())?;
    if board.loops.values().any(covered::is_refused) { None } else { Range::signed_off(whole) }
}

/// Makes sure that a run's branch has what landed on it last: somebody may have moved it. In words what was done, or
/// what is there that is not the run's own work.
pub fn keep(repository: &Repository, branch: &str, own: OwnWork<'_>) -> Result<Option<String>, EngineError> {
    let landed = own.landed;
    if repository.is_at(branch, landed) {
        return Ok(None);
    }
    let Some(target) = repository.target(branch)? else {
        repository.make_target(branch, landed)?;
        return Ok(Some(format!("{branch} was deleted; made again with all that had landed on it")));
    };
    let tip = target.tip.commit.clone();
    if repository.is_ancestor(landed.as_str(), tip.as_str())? {
        return foreign(repository, &target, own);
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

/// What came onto a run's branch before anything landed there.
pub fn before_the_first(
    repository: &Repository,
    branch: &str,
    (heads, by): (&[Commit], LandBy),
) -> Result<Option<String>, EngineError> {
    let Some(begun) = repository.begun_at(branch)?.filter(|begun| !repository.is_at(branch, begun)) else {
        return Ok(None);
    };
    let own = OwnWork { landed: &begun, heads, by };
    repository.target(branch)?.map_or(Ok(None), |target| foreign(repository, &target, own))
}

/// Describes the commits on a run's branch that are not the run's own work.
fn foreign(
    repository: &Repository,
    target: &Target,
    own: OwnWork<'_>,
) -> Result<Option<String>, EngineError> {
    // The head of a loop whose branch was deleted may be gone.
    let is_there = |head: &&Commit| repository.resolve(head.as_str()).is_ok();
    let heads: Vec<Commit> = own.heads.iter().filter(is_there).cloned().collect();
    let own = OwnWork { heads: &heads, ..own };
    let known: Vec<Commit> = [own.landed].into_iter().chain(own.heads).cloned().collect();
    let mut foreign = repository.work_between(&known, &target.tip.commit)?;
    if own.by == LandBy::Rebase && !foreign.is_empty() {
        let replayed = replayed(repository, &foreign, own)?;
        foreign.retain(|commit| !replayed.contains(commit));
    }
    let described = repository.described(foreign.first())?;
    let Some((commit, described)) = described.into_iter().next() else { return Ok(None) };
    let more = match foreign.len() {
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    let (branch, id, subject) = (&target.branch, short(&commit), described.subject);
    Ok(Some(format!(
        "commit {id} (\"{subject}\"){more} came onto {branch} from elsewhere; nobody reviewed it"
    )))
}

/// Those of the commits that make a change of the run's own again: a rebase gives it another id.
fn replayed(
    repository: &Repository,
    commits: &[Commit],
    own: OwnWork<'_>,
) -> Result<HashSet<Commit>, EngineError> {
    let mut originals = Vec::new();
    let mut digests: HashSet<PatchDigest> = HashSet::new();
    for head in own.heads {
        originals.extend(repository.work_between(std::slice::from_ref(own.landed), head)?);
        // A branch that was merged with its target comes as one commit.
        if let Some(base) = repository.merge_base(own.landed.as_str(), head.as_str())? {
            digests.insert(repository.patch_between(&base, head)?.digest());
        }
    }
    let asked: Vec<Commit> = originals.iter().chain(commits).cloned().collect();
    let patches = repository.patches(&asked)?;
    let digest = |commit: &Commit| patches.get(commit).map(Patch::digest);
    digests.extend(originals.iter().filter_map(digest));
    let is_own = |commit: &&Commit| digest(commit).is_some_and(|digest| digests.contains(&digest));
    Ok(commits.iter().filter(is_own).cloned().collect())
}
