//! Bringing approved work into the default branch, for `merge` and `land`.

use std::sync::Arc;
use std::time::Duration;

use signoff_core::command::Command;
use signoff_core::config::LandBy;
use signoff_core::ids::{Commit, LoopId, RunId, TaskId};
use signoff_core::machine::{Event, LandReport, Loop, Stage};
use signoff_core::view::{Status, TaskRow, is_shared};
use signoff_core::wire::{Fact, LoopFact, Recorded};
use signoff_core::workflow::Landing;
use signoff_engine::attempt::Workshop;
use signoff_engine::board::Board;
use signoff_engine::clock;
use signoff_engine::dispatcher::{Drive, loop_id};
use signoff_engine::error::EngineError;
use signoff_engine::git::GitError;
use signoff_engine::landing::{self, Direct, Tried};
use signoff_store::{Lease, Store};
use signoff_term::status::in_words;

use crate::command::decide::facts;
use crate::console::Console;
use crate::desk::{Bench, Desk};
use crate::drive::{self, Wanted};
use crate::failure::{Exit, Failure};

/// Work that is in the default branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landed {
    pub target: String,
    /// The commit that brought it in; where it was there before, the one that was approved.
    pub commit: String,
    /// Whether it was not there before.
    pub now: bool,
}

/// How far a loop's own landing got.
enum Loops {
    Landed(Landed),
    /// Interrupted: what was begun goes on with the next `work`.
    Interrupted,
}

/// Brings one task into the default branch. What keeps it from that is an error, with what to do.
pub fn land_task(task: TaskId, console: &Console) -> Result<Result<Landed, Exit>, Failure> {
    let bench = Bench::open()?;
    let desk = bench.desk();
    let (row, rows) = desk.seen(task)?;
    let (run, loop_id) = desk.loop_of(task)?;
    let log = bench.store.log(run)?;
    let board = Board::of(run, &log);
    let under_way = board.loops.get(&loop_id).is_some_and(|worked| is_landing(&worked.state));
    let target = bench.repository.default_branch()?;
    if !bench.repository.has_branch(&target)? {
        return Err(GitError::BranchGone(target).into());
    }
    if !under_way {
        let commit = approved(&row, &rows)?;
        if is_in(&bench, &commit, &target)? || has_landed(&bench, (&log, &loop_id), &target)? {
            return Ok(Ok(Landed { target, commit: commit.to_string(), now: false }));
        }
        builds_on_approved(&bench, &board, (task, &rows), &commit)?;
        wait_aloud(landing::make_ready(&bench.repository, &target), console)?;
        if !lands_itself(&board, &loop_id, &row) {
            let commit = with_ticks(&desk, &row, &rows, commit);
            let (name, message) = (format!("task-{task}"), format!("Merge task {task}: {}", row.title));
            let wish = Direct { run, name, commit, message };
            return direct(bench, wish, &format!("task {task}"), console).map(Ok);
        }
    }
    match through_loop(bench, task, (run, &loop_id), console)? {
        Loops::Landed(landed) => Ok(Ok(Landed { target, ..landed })),
        Loops::Interrupted => Ok(Err(Exit::Interrupted)),
    }
}

/// Brings all that a run came to into the default branch: what was approved of its branch, wherever that is now.
pub fn land_run(run: RunId, console: &Console) -> Result<Landed, Failure> {
    let bench = Bench::open()?;
    let board = Board::of(run, &bench.store.log(run)?);
    let commit = landing::approved(&bench.repository, &board)?;
    let target = bench.repository.default_branch()?;
    if is_in(&bench, &commit, &target)? {
        return Ok(Landed { target, commit: commit.to_string(), now: false });
    }
    let branch = run.branch();
    if bench.repository.head_of(&branch)?.is_some_and(|head| head.commit != commit) {
        console.note(&format!("{branch} has moved since it was approved; what came after does not land"));
    }
    let shop = drive::workshop(bench)?;
    let (commit, now) = wait_aloud(landing::land_run(&shop, board, &|_| ()), console)?;
    Ok(Landed { target, commit: commit.to_string(), now })
}

fn is_landing(state: &Loop) -> bool {
    matches!(state.stage, Stage::Landing { .. })
}

/// Whether the default branch has it, told from git: the commit, or with `landing = "rebase"` its changes.
pub fn is_in(bench: &Bench, commit: &Commit, target: &str) -> Result<bool, Failure> {
    let by_name = bench.repository.not_in(target, std::slice::from_ref(commit))?.is_empty();
    Ok(by_name
        || match bench.settings.landing() {
            LandBy::Merge => false,
            LandBy::Rebase => bench.repository.has_changes_of(target, commit)?,
        })
}

/// Whether what was made of a loop's work when it landed is in the default branch. With `landing = "rebase"` it may be
/// neither the commit that was approved nor, commit by commit, its changes.
pub fn has_landed(
    bench: &Bench,
    (log, loop_id): (&[Recorded], &LoopId),
    target: &str,
) -> Result<bool, Failure> {
    match (bench.settings.landing(), landed_as(log, loop_id)) {
        (LandBy::Rebase, Some(commit)) => is_in(bench, &Commit::new(commit), target),
        (LandBy::Merge | LandBy::Rebase, _) => Ok(false),
    }
}

/// Whether a task has a loop of its own that brings its branch to the default branch, and resolves conflicts. Tasks of
/// a plan share one branch; others landed on their run's branch before.
fn lands_itself(board: &Board, loop_id: &LoopId, row: &TaskRow) -> bool {
    let landed = board.loops.get(loop_id).is_some_and(|worked| worked.state.landed);
    !landed && !lands_on_run(board, loop_id) && !row.branch.as_deref().is_some_and(is_shared)
}

/// Whether a loop's work joins its run's branch first.
pub fn lands_on_run(board: &Board, loop_id: &LoopId) -> bool {
    board.policy(loop_id).is_some_and(|policy| policy.workflow.landing != Landing::None)
}

/// The commit that may land. What nobody approved may not, nor what builds on it.
pub fn approved(row: &TaskRow, rows: &[TaskRow]) -> Result<Commit, Failure> {
    let unapproved = |one: &TaskRow| one.final_verdict.as_deref() != Some("APPROVED");
    let builds_on = |one: &&TaskRow| {
        let same = one.run_id == row.run_id && one.branch == row.branch && one.id < row.id;
        same && row.branch.as_deref().is_some_and(is_shared) && one.approved_commit.is_none()
    };
    let is_through = |one: &&TaskRow| one.base.is_some() && one.outcome.as_deref() != Some("cancelled");
    let task = row.id;
    match &row.approved_commit {
        Some(commit) if !unapproved(row) => {
            match rows.iter().filter(builds_on).filter(is_through).find(|one| unapproved(one)) {
                None => Ok(Commit::new(commit.clone())),
                Some(before) => {
                    Err(refused(task, &format!("builds on task {}, which is", before.id), before))
                }
            }
        }
        Some(_) | None => Err(refused(task, "is", row)),
    }
}

/// Work that began at its run's branch brings along what had landed there; all of that must be approved as it stands.
fn builds_on_approved(
    bench: &Bench,
    board: &Board,
    (task, rows): (TaskId, &[TaskRow]),
    commit: &Commit,
) -> Result<(), Failure> {
    let own = loop_id(task);
    let unapproved = |id: &&LoopId| **id != own && !landing::is_approved(board, id);
    for worked in board.landed.keys().filter(unapproved).filter_map(|id| board.loops.get(id)) {
        let head = &worked.state.head.commit;
        let row = rows.iter().find(|row| worked.task == Some(TaskId(row.id)));
        if let Some(one) = row
            && bench.repository.is_ancestor(head.as_str(), commit.as_str())?
        {
            return Err(refused(task.0, &format!("builds on task {}, which is", one.id), one));
        }
    }
    Ok(())
}

fn refused(task: u64, how: &str, row: &TaskRow) -> Failure {
    let blame = row.id;
    let message = format!("task {task} {how} not approved ({})", in_words(row).trim_end());
    let first = match row.status {
        Status::Failed | Status::Stuck => format!("`signoff retry {blame}` goes on with it"),
        Status::InProgress | Status::Waiting | Status::Paused | Status::Blocked => {
            "`signoff` says what it waits for".to_owned()
        }
        Status::Pending | Status::Completed | Status::Cancelled => {
            format!("`signoff review {blame}` has it reviewed")
        }
    };
    Failure::failed(message)
        .hint(format!("{first}; `signoff merge {blame} --force --reason TEXT` approves it in your name"))
}

/// The last task of a plan brings the ticks with it, which are ours.
fn with_ticks(desk: &Desk, row: &TaskRow, rows: &[TaskRow], commit: Commit) -> Commit {
    let Some(branch) = row.branch.as_deref().filter(|branch| is_shared(branch)) else { return commit };
    let later = |one: &TaskRow| one.branch == row.branch && one.id > row.id && one.base.is_some();
    if rows.iter().any(later) { commit } else { desk.tip_if_ticked(branch).map_or(commit, Commit::new) }
}

/// Lets a loop land as often as it comes back and is approved again; its own bounds end this.
fn through_loop(
    mut bench: Bench,
    task: TaskId,
    (run, loop_id): (RunId, &LoopId),
    console: &Console,
) -> Result<Loops, Failure> {
    loop {
        let lease = held_by_us(&bench, run)?;
        let log = bench.store.log(run)?;
        let board = Board::of(run, &log);
        let state = board.loops.get(loop_id).map(|worked| &worked.state);
        if state.is_some_and(|state| state.landed) {
            let commit = landed_as(&log, loop_id).unwrap_or_default();
            return Ok(Loops::Landed(Landed { target: String::new(), commit, now: true }));
        }
        if state.is_some_and(Loop::is_done) {
            let (row, rows) = bench.desk().seen(task)?;
            approved(&row, &rows)?;
            let granted = facts(&board, loop_id, Command::Report(Event::LandingGranted), None)?;
            bench.store.append(&lease, clock::now(), &granted)?;
        }
        let no_ask = console.no_ask || bench.settings.no_ask();
        let drive = Drive { only: vec![task], no_ask, ..Drive::default() };
        let wanted = Wanted { resumed: vec![lease], drive, ..Wanted::default() };
        let came = drive::drive(bench, wanted, console)?;
        if came.summary.interrupted {
            return Ok(Loops::Interrupted);
        }
        drive::give_up_over(came.summary.troubles)?;
        drop((came.bench, came.store));
        bench = Bench::open()?;
        check_goes_on(&bench, task, (run, loop_id))?;
    }
}

/// A loop that neither landed nor ended waits for somebody.
fn check_goes_on(bench: &Bench, task: TaskId, (run, loop_id): (RunId, &LoopId)) -> Result<(), Failure> {
    let board = Board::of(run, &bench.store.log(run)?);
    if board.loops.get(loop_id).is_some_and(|worked| worked.state.is_done()) {
        return Ok(());
    }
    let (row, _) = bench.desk().seen(task)?;
    Err(Failure::failed(format!("task {task} has not landed: {}", in_words(&row).trim_end()))
        .hint("`signoff` says what it waits for; then merge it again"))
}

fn held_by_us(bench: &Bench, run: RunId) -> Result<Lease, Failure> {
    drive::try_acquire(&*bench.store, run)?.ok_or_else(|| {
        Failure::failed(format!("another signoff works on run {run}"))
            .hint("merge it when that is done: `signoff status` shows how far it is")
    })
}

/// The commit with which a loop landed.
fn landed_as(log: &[Recorded], loop_id: &LoopId) -> Option<String> {
    log.iter().rev().find_map(|recorded| match &recorded.fact {
        Fact::Loop(
            of,
            LoopFact::Moved(Event::LandingEnded { report: LandReport::Landed { commit }, .. }),
        ) if of == loop_id => Some(commit.to_string()),
        Fact::Loop(..) | Fact::Run(_) | Fact::Task(..) => None,
    })
}

/// Waits for something that waits until it is its turn, and says so if that takes long.
fn wait_aloud<T>(
    work: impl Future<Output = Result<T, EngineError>>,
    console: &Console,
) -> Result<T, Failure> {
    let runtime = drive::runtime()?;
    let done = runtime.block_on(async {
        tokio::pin!(work);
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(PATIENCE) => console.note("Landing takes its time: checks run, or another one is first"),
        }
        work.await
    });
    Ok(done?)
}

/// After so long people are told what is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// Brings a commit in that no loop lands.
fn direct(bench: Bench, direct: Direct, what: &str, console: &Console) -> Result<Landed, Failure> {
    let target = bench.repository.default_branch()?;
    let commit = direct.commit.clone();
    let shop: Arc<Workshop> = drive::workshop(bench)?;
    let brought = wait_aloud(landing::land(&shop, direct, &|_| ()), console)?;
    let (commit, now) = brought.landed(Tried { what, target: &target, commit: &commit })?;
    Ok(Landed { target, commit: commit.to_string(), now })
}
