//! From a commit and a target to a target that has it: merge, check, move, prove.

use std::path::PathBuf;
use std::sync::Arc;

use signoff_core::config::LandBy;
use signoff_core::ids::Commit;
use signoff_core::machine::{Failure, Head};
use signoff_core::review::Finding;

use super::checks;
use crate::assignment::Assignment;
use crate::attempt::{self, Workshop};
use crate::error::EngineError;
use crate::failpoint;
use crate::git::{Conflict, GitError, Merge, Moved, Replay, Target};
use crate::process::Stopper;

/// So often is a target looked at again that somebody else keeps moving.
const TRIES: usize = 5;

/// What is to be brought into which branch.
#[derive(Debug, Clone)]
pub struct Wish {
    pub commit: Commit,
    pub target: String,
    /// Where what its reviewers were shown begins, where they can be asked again.
    pub seen_from: Option<Commit>,
    /// Where the target begins if it is not there yet; none if it must be.
    pub begins: Option<Commit>,
    pub message: String,
    /// Where the files of the checks are kept.
    pub directory: PathBuf,
    pub environment: Vec<(String, Option<String>)>,
}

/// What is told of a landing while it is under way.
#[derive(Debug)]
pub enum Told {
    /// From here on this ends it.
    Stoppable(Stopper),
    /// Another one takes its time.
    Waits,
    /// Something that people should know.
    Note(String),
}

/// Whoever wants to know, and may end it.
pub type Tell<'a> = &'a (dyn Fn(Told) + Send + Sync);

/// What came of it.
#[derive(Debug)]
pub enum Brought {
    /// The target has it, with this commit; `now` if it had it not before.
    In {
        commit: Commit,
        now: bool,
    },
    Conflicting {
        onto: Commit,
        head: Head,
        files: Vec<Conflict>,
    },
    /// On top of the target it changes something else than what was approved.
    Different {
        onto: Commit,
        head: Head,
    },
    /// Together with what landed before it, checks fail.
    Red {
        onto: Commit,
        head: Head,
        findings: Vec<Finding>,
    },
    /// The checks could not say anything.
    Unchecked(Failure),
    Stopped,
}

impl Wish {
    /// What a loop wants to land, and where.
    pub fn of(shop: &Workshop, task: &Assignment) -> Result<Self, EngineError> {
        let target = match &task.target {
            Some(branch) => branch.clone(),
            None => shop.repository.default_branch()?,
        };
        let named = task.task.map_or_else(|| task.loop_id.to_string(), |task| format!("task {task}"));
        let dir = attempt::directory(shop, task);
        Ok(Self {
            commit: task.state.head.commit.clone(),
            seen_from: Some(task.place.base.clone()),
            begins: task.target.as_ref().map(|_| task.place.base.clone()),
            message: format!("Merge {named}: {}", task.spec.title),
            environment: attempt::environment(task, &dir),
            directory: dir.path().to_owned(),
            target,
        })
    }
}

/// Brings a commit into its target. Whoever calls this has the turn.
pub async fn bring(shop: &Arc<Workshop>, wish: &Wish, tell: Tell<'_>) -> Result<Brought, EngineError> {
    for attempt in 0..TRIES {
        let merging = (shop.clone(), wish.clone());
        let (target, merge) = attempt::blocking(move || merge(&merging.0, &merging.1)).await?;
        let onto = target.tip.commit.clone();
        let head = match merge {
            Replay::Different(head) => return Ok(Brought::Different { onto, head }),
            Replay::As(Merge::Contained) => return Ok(Brought::In { commit: onto, now: false }),
            Replay::As(Merge::Conflicting { head, files }) => {
                return Ok(Brought::Conflicting { onto, head, files });
            }
            Replay::As(Merge::Clean(head)) => head,
        };
        failpoint::pass("merged");
        match checks::run(shop, wish, (&head.commit, &onto, attempt), tell).await? {
            checks::Checked::Green => {}
            checks::Checked::Red(findings) => return Ok(Brought::Red { onto, head, findings }),
            checks::Checked::Failed(failure) => return Ok(Brought::Unchecked(failure)),
            checks::Checked::Stopped => return Ok(Brought::Stopped),
        }
        // With a merge commit the work itself must be in; otherwise what was made of it, which is the same change.
        let proof = match shop.settings.landing() {
            LandBy::Merge => wish.commit.clone(),
            LandBy::Rebase => head.commit.clone(),
        };
        let moving = (shop.clone(), proof, head.commit.clone());
        let moved = attempt::blocking(move || put_in(&moving.0, &target, &moving.1, &moving.2)).await?;
        if moved == Moved::Done {
            return Ok(Brought::In { commit: head.commit, now: true });
        }
    }
    Err(GitError::KeepsMoving(wish.target.clone()).into())
}

fn merge(shop: &Workshop, wish: &Wish) -> Result<(Target, Replay), EngineError> {
    let target = match (shop.repository.target(&wish.target)?, &wish.begins) {
        (Some(target), _) => target,
        (None, Some(begins)) => {
            shop.repository.make_target(&wish.target, begins)?;
            let made = shop.repository.target(&wish.target)?;
            made.ok_or_else(|| GitError::BranchGone(wish.target.clone()))?
        }
        (None, None) => return Err(GitError::BranchGone(wish.target.clone()).into()),
    };
    let (tip, commit, message) = (&target.tip, &wish.commit, &wish.message);
    let merge = match shop.settings.landing() {
        LandBy::Merge => Replay::As(shop.repository.merge_onto(tip, commit, message)?),
        LandBy::Rebase => shop.repository.replay_onto(tip, commit, message)?,
    };
    let merge = match merge {
        Replay::As(Merge::Clean(head)) if takes_back(shop, wish, &tip.commit)? => Replay::Different(head),
        merge @ (Replay::As(_) | Replay::Different(_)) => merge,
    };
    Ok((target, merge))
}

/// Whether the work took in commits of the target that are newer than what its reviewers were shown, and may undo them.
fn takes_back(shop: &Workshop, wish: &Wish, tip: &Commit) -> Result<bool, EngineError> {
    let Some(base) = &wish.seen_from else { return Ok(false) };
    let repository = &shop.repository;
    match repository.merge_base(tip.as_str(), wish.commit.as_str())? {
        Some(newer) if newer != *base && !repository.is_ancestor(newer.as_str(), base.as_str())? => {
            Ok(repository.takes_back(base, &newer, &wish.commit)?)
        }
        Some(_) | None => Ok(false),
    }
}

/// Moves the target, and looks whether it really has the work now.
fn put_in(shop: &Workshop, target: &Target, proof: &Commit, to: &Commit) -> Result<Moved, EngineError> {
    let moved = shop.repository.move_target(target, to)?;
    let name = format!("refs/heads/{}", target.branch);
    if moved == Moved::Done && !shop.repository.is_ancestor(proof.as_str(), &name)? {
        return Ok(Moved::Elsewhere);
    }
    Ok(moved)
}
