//! Landing what belongs to no loop at work: a person's wish about a commit that was approved before.

use std::fs;
use std::sync::Arc;

use signoff_core::ids::{Commit, RunId};
use signoff_core::workflow::{Arrangement, Landing};

use super::bring::{self, Brought, Tell, Wish};
use super::covered::{self, Asked, Range, Records};
use super::refused::Tried;
use super::turn::Turn;
use super::whole;
use crate::attempt::{self, Workshop};
use crate::board::Board;
use crate::clear;
use crate::error::EngineError;
use crate::git::{GitError, Repository, Uncommitted};
use crate::tick;

/// A commit that goes to the default branch.
#[derive(Debug, Clone)]
pub struct Direct {
    pub run: RunId,
    /// `task 3`, `run 7`.
    pub what: String,
    /// What it is called where its files are kept.
    pub name: String,
    pub commit: Commit,
    pub message: String,
    /// What was approved of it.
    pub own: Option<Range>,
}

/// Looks whether something could land on a branch now, after whatever is landing has landed. What a killed program left
/// half done is finished.
pub async fn make_ready(repository: &Repository, branch: &str) -> Result<(), EngineError> {
    let _turn = Turn::wait(repository, &|_| ()).await?;
    let (repository, branch) = (repository.clone(), branch.to_owned());
    attempt::blocking(move || {
        repository.finish_forward()?;
        let target = repository.target(&branch)?.ok_or(GitError::BranchGone(branch))?;
        Ok(repository.check_movable(&target)?)
    })
    .await
}

/// The turn of one `land` or `merge` command, until it is dropped: such commands work one after the other.
#[derive(Debug)]
pub struct CommandTurn {
    _turn: Option<Turn>,
}

impl CommandTurn {
    /// Waits until the command before has ended, however long that takes.
    pub async fn wait(repository: &Repository) -> Result<Self, EngineError> {
        let lock = repository.landing_lock().with_file_name("land-command.lock");
        Ok(Self { _turn: Turn::wait_for(lock, &|_| ()).await? })
    }
}

/// Brings it in, or tells why not; nothing is changed then.
pub async fn land(shop: &Arc<Workshop>, direct: Direct, tell: Tell<'_>) -> Result<Brought, EngineError> {
    let Some(_turn) = Turn::wait(&shop.repository, tell).await? else { return Ok(Brought::Stopped) };
    let beginning = (shop.clone(), direct);
    let wish = attempt::blocking(move || wish(&beginning.0, beginning.1)).await?;
    bring::bring(shop, &wish, tell).await
}

/// Brings all that a run came to into the default branch: what was approved of its branch, wherever that is now. Tells
/// the commit that brought it in, and whether that is new.
pub async fn land_run(
    shop: &Arc<Workshop>,
    board: Board,
    tell: Tell<'_>,
) -> Result<(Commit, bool), EngineError> {
    let (looking, run) = (shop.clone(), board.run);
    let came_together = board.run_policy().is_some_and(|policy| policy.landing != Landing::None);
    let (commit, own, target) = attempt::blocking(move || {
        let repository = &looking.repository;
        let commit = with_ticks(&looking, &board, whole::approved(repository, &board)?)?;
        Ok((commit, whole::looked_at(&board), repository.default_branch()?))
    })
    .await?;
    let (what, message) = (format!("run {run}"), format!("Merge run {run}"));
    let direct =
        Direct { run, what: what.clone(), name: "run".to_owned(), commit: commit.clone(), message, own };
    let brought = land(shop, direct, tell).await?;
    let landed = brought.landed(Tried { what: &what, target: &target, commit: &commit })?;
    if came_together {
        clean_up(shop.clone(), run).await;
    }
    Ok(landed)
}

/// What was approved of a plan, with the ticks on top of it: they are ours, and without the last one its task would be
/// worked again.
fn with_ticks(shop: &Workshop, board: &Board, commit: Commit) -> Result<Commit, EngineError> {
    let (run, branch) = (board.run, board.run.branch());
    let in_turn = board.run_policy().is_some_and(|policy| policy.arrangement == Arrangement::Chain);
    if in_turn && shop.layout.run_worktree(run).is_dir() && shop.repository.is_at(&branch, &commit) {
        tick::in_branch(shop, run, &tick::through(board))?;
    }
    let ticked = fs::read_to_string(shop.layout.ticked(run)).ok().map(Commit::new);
    Ok(ticked.filter(|ticked| in_turn && shop.repository.is_at(&branch, ticked)).unwrap_or(commit))
}

/// Takes away the worktree in which the whole was reviewed; its branch stays, and so does a worktree with work in it
/// that did not land. What cannot be taken away is no reason to fail.
async fn clean_up(shop: Arc<Workshop>, run: RunId) {
    let path = shop.layout.run_worktree(run);
    let removing = move || Ok(shop.repository.remove_worktree(&path, Uncommitted::Keep)?);
    attempt::blocking(removing).await.ok();
}

fn wish(shop: &Workshop, direct: Direct) -> Result<Wish, EngineError> {
    let Direct { run, what, name, commit, message, own } = direct;
    shop.repository.finish_forward()?;
    let target = shop.repository.default_branch()?;
    let asked = Asked { what: &what, run, commit: &commit, own: own.as_ref(), asks_again: false };
    covered::check(Records::of(shop), &target, asked)?;
    let directory = shop.layout.landing(run, &name);
    // What an earlier try left is of no use to anybody.
    clear::remove(&directory).ok();
    let environment = attempt::bare_environment(run);
    Ok(Wish { target, commit, seen_from: None, begins: None, message, environment, directory })
}
