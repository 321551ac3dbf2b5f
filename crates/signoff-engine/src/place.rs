//! Where a loop is worked: its worktree and branch, made from a recorded base.

pub mod apart;
mod start;

use std::fs;
use std::path::{Path, PathBuf};

use signoff_core::ids::{Commit, LoopId, RunId, TaskId};
use signoff_core::machine::{Loop, Outcome, Stage};
use signoff_core::prompt::commit_message;
use signoff_core::task::{Origin, TaskSpec};
use signoff_core::workflow::{Arrangement, Landing};
use signoff_store::{Store, StoreError};

use crate::attempt::Workshop;
use crate::board::{Board, Place, Worked};
use crate::dispatcher::Placed;
use crate::error::EngineError;
use crate::git::{GitError, NewWorktree};
use crate::landing;
use crate::tick;
use start::Start;

/// A loop that needs a place.
#[derive(Debug, Clone)]
pub struct Wish {
    pub run: RunId,
    pub loop_id: LoopId,
    pub task: Option<TaskId>,
    pub spec: TaskSpec,
    pub branch: String,
    /// All loops of the run follow each other in one worktree.
    pub in_turn: bool,
    /// What is signed off goes onto the run's branch, and so begins there.
    pub lands: bool,
    /// What landed on the run's branch last.
    pub last_landed: Option<Commit>,
    /// The loop that this one looks at while it is at work, and where that is.
    pub looks_at: Option<Place>,
    /// What is to be ticked first: the tasks before this one.
    pub done: Vec<Origin>,
    /// The task before this one that was called off, and where it had begun.
    pub called_off: Option<(TaskId, Commit)>,
}

impl Wish {
    pub fn of(board: &Board, loop_id: &LoopId, spec: TaskSpec) -> Option<Self> {
        let in_turn = board.run_policy()?.arrangement == Arrangement::Chain;
        let worked = board.loops.get(loop_id).cloned().unwrap_or_default();
        let looked_at = loop_id.of_checkpoint().and_then(|(of, _)| board.loops.get(&of));
        let landing = board.policy(loop_id).map(|policy| policy.workflow.landing);
        Some(Self {
            run: board.run,
            loop_id: loop_id.clone(),
            task: worked.task,
            spec,
            branch: worked.branch,
            in_turn,
            lands: landing.is_some_and(|landing| landing != Landing::None),
            last_landed: board.last_landed.clone(),
            looks_at: looked_at.and_then(|worked| worked.place.clone()),
            done: tick::through(board),
            called_off: called_off(board).filter(|_| in_turn),
        })
    }
}

/// The last task that was called off since one was through: what those before it left is gone from the branch. Nobody approved what it left on the branch.
fn called_off(board: &Board) -> Option<(TaskId, Commit)> {
    let ended = |worked: &Worked| {
        let Stage::Done(ending) = &worked.state.stage else { return None };
        Some((worked.task?, ending.outcome.clone()))
    };
    let through = board.loops.values().filter_map(ended).filter(|(_, outcome)| outcome.carries_on());
    let last = through.map(|(task, _)| task).max();
    let off = board.loops.values().filter_map(|worked| {
        let (task, outcome) = ended(worked)?;
        (outcome == Outcome::Cancelled && Some(task) > last).then_some((task, worked.place.clone()?.base))
    });
    off.max()
}

/// Where a loop will be worked.
pub fn path(shop: &Workshop, store: &dyn Store, wish: &Wish) -> PathBuf {
    if wish.loop_id == LoopId::whole() {
        return shop.layout.run_worktree(wish.run);
    }
    if wish.loop_id.serves_the_run() {
        return shop.layout.part_worktree(wish.run, &wish.loop_id);
    }
    let Some(task) = wish.task else { return shop.layout.review_worktree(wish.run) };
    if wish.in_turn {
        return shop.layout.run_worktree(wish.run);
    }
    let before = wish.spec.continues.and_then(|before| store.task(before).ok().flatten());
    before.and_then(|row| row.worktree).map_or_else(|| shop.layout.task_worktree(task), PathBuf::from)
}

/// Makes the place, or finds it again where a killed program left it.
pub fn make(shop: &Workshop, store: &dyn Store, wish: &Wish) -> Result<Placed, EngineError> {
    let placed = made(shop, store, wish)?;
    // The planning loop reviews no diff, so it needs no base tree.
    if wish.loop_id == LoopId::planning() {
        return Ok(placed);
    }
    let is_at_base = placed.head.commit == placed.place.base;
    let base_tree =
        if is_at_base { placed.head.tree.clone() } else { shop.repository.tree_of(&placed.place.base)? };
    Ok(Placed { base_tree: Some(base_tree), ..placed })
}

fn made(shop: &Workshop, store: &dyn Store, wish: &Wish) -> Result<Placed, EngineError> {
    if wish.loop_id.serves_the_run() {
        return of_part(shop, wish);
    }
    let Some(task) = wish.task else { return of_checkout(shop, wish) };
    if let Some(taken_over) = &wish.spec.taken_over {
        return begun_elsewhere(shop, wish, (task, &taken_over.commit));
    }
    if wish.in_turn {
        return in_turn(shop, store, wish);
    }
    if let Some(before) = wish.spec.continues {
        return continued(shop, store, wish, before);
    }
    let Start { commit: start, note } = start::of(shop, store, wish)?;
    let placed = attach(shop, &shop.layout.task_worktree(task), &wish.branch, &start)?;
    // A killed program leaves the branch as it made it. Work that the log knows nothing of is not this task's.
    if placed.head.commit != start && shop.repository.holds_work(&wish.branch)? {
        return Err(GitError::BranchTaken { branch: wish.branch.clone(), by: None }.into());
    }
    let base = forked(shop, &start, &placed.head.commit)?;
    Ok(Placed { place: Place { base, ..placed.place }, note, ..placed })
}

/// The branch begins with the work that another program did; what is reviewed begins where that began.
fn begun_elsewhere(
    shop: &Workshop,
    wish: &Wish,
    (task, start): (TaskId, &Commit),
) -> Result<Placed, EngineError> {
    let run = || shop.layout.run_worktree(wish.run);
    let path = if wish.in_turn { run() } else { shop.layout.task_worktree(task) };
    let placed = attach(shop, &path, &wish.branch, start)?;
    if placed.head.commit != *start && shop.repository.holds_work(&wish.branch)? {
        return Err(GitError::BranchTaken { branch: wish.branch.clone(), by: None }.into());
    }
    let base = shop.repository.base_of(start)?;
    Ok(Placed { place: Place { base, ..placed.place }, ..placed })
}

/// Where a part of a run works: the run's own branch, or a throw-away copy.
fn of_part(shop: &Workshop, wish: &Wish) -> Result<Placed, EngineError> {
    let repository = &shop.repository;
    if wish.loop_id == LoopId::whole() {
        let branch = wish.run.branch();
        let own = |landed| landing::OwnWork { landed, heads: &[], by: shop.settings.landing() };
        let kept = wish.last_landed.as_ref().map(|landed| landing::keep(repository, &branch, own(landed)));
        let note = kept.transpose()?.flatten();
        let tip = repository.begin_branch(&branch, || repository.base())?;
        let base = repository.begun_at(&branch)?.unwrap_or_else(|| tip.clone());
        let placed = attach(shop, &shop.layout.run_worktree(wish.run), &branch, &tip)?;
        return Ok(Placed { place: Place { base, ..placed.place }, note, ..placed });
    }
    let path = shop.layout.part_worktree(wish.run, &wish.loop_id);
    // A killed program may have made it.
    let worktree = repository.detached(&path, || match &wish.looks_at {
        Some(place) => repository.worktree(Path::new(&place.worktree))?.snapshot_commit(),
        None => repository.base(),
    })?;
    let head = worktree.head()?;
    let base = wish.looks_at.as_ref().map_or_else(|| head.commit.clone(), |place| place.base.clone());
    Ok(Placed { place: Place { base, worktree: shown(&path) }, head, base_tree: None, note: None })
}

/// The commit of a task that its reviewers or a person approved. What came after it, nobody reviewed.
pub fn approved(store: &dyn Store, task: TaskId) -> Result<Option<Commit>, StoreError> {
    let Some((run, loop_id)) = store.loop_of(task)? else { return Ok(None) };
    let board = Board::of(run, &store.log(run)?);
    let state = board.loops.get(&loop_id).map(|worked| &worked.state);
    Ok(state.and_then(Loop::approved_commit).cloned())
}

/// Another go at a branch that is there.
fn continued(shop: &Workshop, store: &dyn Store, wish: &Wish, before: TaskId) -> Result<Placed, EngineError> {
    let row = store.task(before)?;
    let known = row.as_ref().and_then(|row| Some((row.base.clone()?, row.worktree.clone()?)));
    let Some((base, worktree)) = known else {
        let message = format!("task {before} was never started: there is nothing to go on with");
        return Err(EngineError::Log { run: wish.run, message });
    };
    let base = Commit::new(base);
    revive(shop, store, &wish.branch, &base)?;
    let placed = attach(shop, Path::new(&worktree), &wish.branch, &base)?;
    Ok(Placed { place: Place { base, ..placed.place }, ..placed })
}

/// Makes a branch again that somebody deleted, with all the work on it that is on record: begun anew it would have none.
fn revive(shop: &Workshop, store: &dyn Store, branch: &str, base: &Commit) -> Result<(), EngineError> {
    if shop.repository.has_branch(branch)? {
        return Ok(());
    }
    let last = last_commit(shop, store, branch)?;
    let last = last.ok_or_else(|| GitError::BranchGone(branch.to_owned()))?;
    Ok(shop.repository.revive_branch(branch, &last, base)?)
}

/// The last commit on a branch that is on record and that git still has.
fn last_commit(shop: &Workshop, store: &dyn Store, branch: &str) -> Result<Option<Commit>, EngineError> {
    let mut last: Option<Commit> = None;
    for row in store.tasks()?.into_iter().filter(|row| row.branch.as_deref() == Some(branch)) {
        let Some((run, loop_id)) = store.loop_of(TaskId(row.id))? else { continue };
        let board = Board::of(run, &store.log(run)?);
        let placed = board.loops.get(&loop_id).filter(|worked| worked.place.is_some());
        let head = placed.and_then(|worked| shop.repository.resolve(worked.state.head.commit.as_str()).ok());
        // The tasks of a branch need not have been worked in the order of their numbers.
        last = match (last, head) {
            (Some(last), Some(head)) if !shop.repository.is_ancestor(last.as_str(), head.as_str())? => {
                Some(last)
            }
            (last, head) => head.or(last),
        };
    }
    Ok(last)
}

/// The next task of a chain begins where the one before ended.
fn in_turn(shop: &Workshop, store: &dyn Store, wish: &Wish) -> Result<Placed, EngineError> {
    let start = shop.repository.base()?;
    let path = shop.layout.run_worktree(wish.run);
    if !wish.done.is_empty() {
        revive(shop, store, &wish.branch, &start)?;
    }
    let placed = attach(shop, &path, &wish.branch, &start)?;
    let note = set_aside(shop, wish, &placed)?;
    if wish.done.is_empty() && note.is_none() {
        return Ok(placed);
    }
    tick::in_branch(shop, wish.run, &wish.done)?;
    Ok(Placed { note, ..attach(shop, &path, &wish.branch, &start)? })
}

/// Takes what a task left that was called off out of the way of the next one.
fn set_aside(shop: &Workshop, wish: &Wish, placed: &Placed) -> Result<Option<String>, EngineError> {
    let Some((task, base)) = &wish.called_off else { return Ok(None) };
    let aside = format!("{}-cancelled-{task}", wish.branch);
    let ticked = fs::read_to_string(shop.layout.ticked(wish.run)).ok();
    // A killed program may have done it before.
    if ticked.as_deref() == Some(placed.head.commit.as_str()) && shop.repository.has_branch(&aside)? {
        return Ok(None);
    }
    let worktree = shop.repository.worktree(Path::new(&placed.place.worktree))?;
    let moved = worktree.set_aside(base, &aside, &commit_message::unfinished(&format!("Task {task}")))?;
    Ok(moved.then(|| format!("what task {task} left was set aside: it is on the branch {aside}")))
}

fn attach(shop: &Workshop, path: &Path, branch: &str, start: &Commit) -> Result<Placed, EngineError> {
    let worktree = shop.repository.add_worktree(&NewWorktree { path, branch, start })?;
    worktree.copy_files(shop.settings.copied_into_worktrees())?;
    let head = worktree.head()?;
    let place = Place { base: head.commit.clone(), worktree: shown(path) };
    Ok(Placed { place, head, base_tree: None, note: None })
}

/// A throw-away copy of the checkout as it is, uncommitted work included.
fn of_checkout(shop: &Workshop, wish: &Wish) -> Result<Placed, EngineError> {
    let commit = shop.repository.snapshot_commit()?;
    let path: PathBuf = shop.layout.review_worktree(wish.run);
    let worktree = shop.repository.add_detached(&path, &commit)?;
    let base = match &shop.base {
        Some(base) => shop.repository.resolve(base)?,
        None => shop.repository.base()?,
    };
    let base = forked(shop, &base, &commit)?;
    let place = Place { base, worktree: shown(&path) };
    Ok(Placed { place, head: worktree.head()?, base_tree: None, note: None })
}

/// Where two lines of work parted; the first one itself if they have nothing in common.
fn forked(shop: &Workshop, one: &Commit, other: &Commit) -> Result<Commit, EngineError> {
    if one == other {
        return Ok(one.clone());
    }
    let parted = shop.repository.merge_base(one.as_str(), other.as_str())?;
    Ok(parted.unwrap_or_else(|| one.clone()))
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
