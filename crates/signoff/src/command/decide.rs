//! What `answer`, `retry`, `edit`, `cancel` and `dispute` have in common: a person's decision about a loop.

use std::path::Path;

use signoff_core::command::{self, Command};
use signoff_core::group::{RunEvent, Standing};
use signoff_core::ids::{LoopId, RunId};
use signoff_core::machine::{self, Event, Head, Stage};
use signoff_core::wire::{Fact, LoopFact, RunFact};
use signoff_engine::board::{Board, Worked};
use signoff_engine::clock;
use signoff_engine::git::{Git, GitError, Repository};
use signoff_engine::occupied::Occupied;
use signoff_engine::place::apart::{Beside, Needed, is_possible, leave};
use signoff_store::{Lease, Store};

use crate::console::Console;
use crate::desk::Desk;
use crate::door;
use crate::drive::try_acquire;
use crate::failure::Failure;

/// How a decision was taken in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Taken {
    /// It is in the log. The note tells where that is kept which nobody goes on with.
    Recorded { note: Option<String> },
    /// The program that drives the run has it, and goes on.
    HandedOver,
}

impl Taken {
    /// What else the person should know.
    pub fn note(&self) -> Option<&str> {
        match self {
            Self::Recorded { note } => note.as_deref(),
            Self::HandedOver => None,
        }
    }

    /// Says it.
    pub fn tell(&self, console: &Console) {
        if let Some(note) = self.note() {
            console.note(note);
        }
    }
}

/// Records a decision, or hands it to whoever drives the run.
pub fn decide(desk: &Desk, run: RunId, loop_id: &LoopId, wish: Command) -> Result<Taken, Failure> {
    match try_acquire(&*desk.store, run)? {
        Some(lease) => record(desk, &lease, loop_id, wish),
        None => hand_over(desk, run, loop_id, &wish),
    }
}

fn record(desk: &Desk, lease: &Lease, loop_id: &LoopId, wish: Command) -> Result<Taken, Failure> {
    let board = Board::of(lease.run(), &desk.store.log(lease.run())?);
    let by_hand = if goes_on(&wish) { by_hand(desk, &board, loop_id)? } else { None };
    let facts = facts(&board, loop_id, wish, by_hand)?;
    desk.store.append(lease, clock::now(), &facts)?;
    Ok(Taken::Recorded { note: clear_apart(desk, lease, loop_id)? })
}

/// Takes away what fixers had beside the loop's worktree, where it goes on without it; tells where it is kept what they
/// had done.
fn clear_apart(desk: &Desk, lease: &Lease, loop_id: &LoopId) -> Result<Option<String>, Failure> {
    let run = lease.run();
    let board = Board::of(run, &desk.store.log(run)?);
    let Some(worked) = board.loops.get(loop_id) else { return Ok(None) };
    let Some(own) = worked.place.as_ref().map(|place| Path::new(&place.worktree)) else { return Ok(None) };
    if Needed::by(&worked.state.stage) != Needed::Nothing || !board.policy(loop_id).is_some_and(is_possible) {
        return Ok(None);
    }
    let repository = Repository::discover(&Git::new(door::environment()), &desk.root)?;
    let note = leave(&repository, (run, loop_id), &worked.branch);
    Beside::of(&repository, own).iter().for_each(|one| one.clear(&repository));
    if let Some((note, attempt)) = note.clone().zip(worked.launched.keys().next_back().copied()) {
        let noted = Fact::Loop(loop_id.clone(), LoopFact::Noted { attempt, note });
        desk.store.append(lease, clock::now(), &[noted])?;
    }
    Ok(note)
}

/// Whether agents go on after it.
fn goes_on(wish: &Command) -> bool {
    match wish {
        Command::Answer { .. } | Command::Retry { .. } => true,
        Command::Edit { .. } | Command::Cancel { .. } | Command::Dispute { .. } | Command::Report(_) => false,
    }
}

/// What the person did to the branch themselves while nobody worked on it: committed, so that no review undoes it.
fn by_hand(desk: &Desk, board: &Board, loop_id: &LoopId) -> Result<Option<Head>, Failure> {
    let place = board.loops.get(loop_id).and_then(|worked| Some((worked, worked.place.as_ref()?)));
    // Planning and checkpoint reviews have no branch that a person could change; the final review uses the run's branch.
    let Some((worked, place)) = place else { return Ok(None) };
    let branch = if *loop_id == LoopId::whole() { board.run.branch() } else { worked.branch.clone() };
    if branch.is_empty() {
        return Ok(None);
    }
    let _occupied = Occupied::take(&desk.layout(), Path::new(&place.worktree))?;
    let repository = Repository::discover(&Git::new(door::environment()), &desk.root)?;
    let head = match repository.worktree(Path::new(&place.worktree)) {
        Ok(worktree) if worktree.is_there() => Some(worktree.commit_all("Changes by hand")?.head),
        Ok(_) | Err(GitError::WorktreeGone(_)) => repository.head_of(&branch)?,
        Err(error) => return Err(error.into()),
    };
    Ok(head.filter(|head| *head != worked.state.head))
}

/// What is recorded about a loop, and what that makes of its run.
pub fn facts(
    board: &Board,
    loop_id: &LoopId,
    wish: Command,
    by_hand: Option<Head>,
) -> Result<Vec<Fact>, Failure> {
    let known = board.loops.get(loop_id).zip(board.policy(loop_id));
    let Some((worked, policy)) = known else {
        return Err(Failure::failed("the log does not know this task"));
    };
    let decided = command::decide(&worked.state, wish, policy)?;
    let step = |state, event: &Event| machine::step(state, event.clone(), policy).0;
    // Whoever writes tells where the branch is when they end; only readers must know before.
    let next = step(worked.state.clone(), &decided);
    let is_read = matches!(next.stage, Stage::Reviewing(_) | Stage::Checking { .. });
    let moved = by_hand.filter(|_| is_read).map(|head| Event::HeadMoved { head });
    // A loop that waits is told first what it would otherwise go on without; one that ended listens only after.
    let ended = matches!(worked.state.stage, Stage::Done(_));
    let events: Vec<Event> = if ended {
        [decided].into_iter().chain(moved).collect()
    } else {
        moved.into_iter().chain([decided]).collect()
    };
    let next = events.iter().fold(worked.state.clone(), step);
    if board.machine.is_done() && matches!(next.stage, Stage::AwaitingLanding { .. }) {
        return Err(comes_too_late(board, worked));
    }
    let own = |event| Fact::Loop(loop_id.clone(), LoopFact::Moved(event));
    let mut facts: Vec<Fact> = events.into_iter().map(own).collect();
    let standing = Standing::of(&next);
    if standing != Standing::of(&worked.state) && loop_id.moves_the_run() {
        let moved = RunEvent::LoopMoved { loop_id: loop_id.clone(), standing };
        facts.push(Fact::Run(RunFact::Moved(moved)));
    }
    Ok(facts)
}

/// Work that lands with its group has nobody to land with once the run is over.
fn comes_too_late(board: &Board, worked: &Worked) -> Failure {
    let task = worked.task.map(|task| format!("task {task}")).unwrap_or_default();
    let by_hand =
        worked.place.as_ref().map(|_| format!(", or merge its branch by hand: git merge {}", worked.branch));
    Failure::usage(format!("{task} cannot land any more: its run {} is over", board.run))
        .hint(format!("`signoff add` adds it again{}", by_hand.unwrap_or_default()))
}

/// Waits for the other program's answer; it looks for wishes several times a second. One that ended meanwhile without an
/// answer left the run to whoever comes.
fn hand_over(desk: &Desk, run: RunId, loop_id: &LoopId, wish: &Command) -> Result<Taken, Failure> {
    let request = desk.store.post(run, loop_id, wish)?;
    for _ in 0..PATIENCE {
        let left = try_acquire(&*desk.store, run)?;
        match (desk.store.answer(request)?, left) {
            (Some(Ok(())), _) => return Ok(Taken::HandedOver),
            (Some(Err(refusal)), _) => {
                return Err(Failure::usage(refusal).hint("`signoff show ID` shows where the task stands"));
            }
            (None, Some(lease)) => {
                let taken = record(desk, &lease, loop_id, wish.clone());
                desk.store.settle(request, taken.as_ref().err().map(Failure::message))?;
                return taken;
            }
            (None, None) => door::wait_a_moment(),
        }
    }
    Err(Failure::failed("the signoff that works on it did not answer")
        .hint("it will take your decision in when it looks again; `signoff status` shows"))
}

/// How many moments an answer is waited for.
const PATIENCE: usize = 100;
