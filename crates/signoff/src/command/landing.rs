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
use signoff_engine::dispatcher::Drive;
use signoff_engine::error::EngineError;
use signoff_engine::git::{GitError, Repository};
use signoff_engine::landing::{self, Asked, CommandTurn, Direct, Range, Records, Told, Tried};
use signoff_store::{Lease, Store};
use signoff_term::status::in_words;

use crate::command::decide::facts;
use crate::console::{Console, say};
use crate::desk::{Bench, Desk, persons_git};
use crate::door;
use crate::drive::{self, Wanted};
use crate::failure::{Exit, Failure};

/// Work that is in the default branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landed {
    pub target: String,
    /// The commit that brought it in; where it was there before, the one that was approved.
    pub commit: String,
    pub arrival: Arrival,
}

/// When work came into the default branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    Now,
    Before,
    /// Never: it changes nothing.
    Nothing,
}

impl Arrival {
    /// Whether it came in with this command.
    pub fn is_now(self) -> bool {
        self == Self::Now
    }

    fn new(now: bool) -> Self {
        if now { Self::Now } else { Self::Before }
    }
}

/// How far a loop's own landing got.
enum Loops {
    Landed(Landed),
    /// Interrupted: what was begun goes on with the next `work`.
    Interrupted,
}

/// Waits until no other `land` or `merge` is at work in the repository.
pub fn wait_for_turn(console: &Console) -> Result<CommandTurn, Failure> {
    let repository = Repository::discover(&persons_git(), &door::current_directory()?)?;
    wait_aloud(CommandTurn::wait(&repository), console)
}

/// Brings one task into the default branch. What keeps it from that is an error, with what to do.
pub fn land_task(task: TaskId, console: &Console) -> Result<Result<Landed, Exit>, Failure> {
    let bench = Bench::open()?;
    let desk = bench.desk();
    let (row, rows) = desk.seen(task)?;
    let (run, loop_id) = desk.loop_of(task)?;
    let log = bench.store.log(run)?;
    let board = Board::of(run, &log);
    let under_way = is_landing(&board, &loop_id);
    let target = bench.repository.default_branch()?;
    if !bench.repository.has_branch(&target)? {
        return Err(GitError::BranchGone(target).into());
    }
    if !under_way {
        let commit = approved(&row)?;
        if board.loops.get(&loop_id).is_some_and(|worked| worked.state.is_unchanged()) {
            return Ok(Ok(Landed { target, commit: commit.to_string(), arrival: Arrival::Nothing }));
        }
        let is_in = is_in(&bench, &commit, &target)? || has_landed(&bench, (&log, &loop_id), &target)?;
        if board.has_final_review() && (!is_in || run_commit(&bench, &board, &target).is_ok()) {
            return with_its_run(&bench, &board, console).map(Ok);
        }
        if is_in {
            return Ok(Ok(Landed { target, commit: commit.to_string(), arrival: Arrival::Before }));
        }
        let (what, own) = (format!("task {task}"), Range::of(&row));
        if !lands_itself(&board, &loop_id, &row) {
            let commit = with_ticks(&desk, &row, &rows, commit);
            let (name, message) = (format!("task-{task}"), format!("Merge task {task}: {}", row.title));
            let wish = Direct { run, what, name, commit, message, own };
            return direct(bench, wish, console).map(Ok);
        }
        // Before anything is put on record.
        let asked = Asked { what: &what, run, commit: &commit, own: own.as_ref(), asks_again: true };
        landing::check(records(&bench), &target, asked)?;
        wait_aloud(landing::make_ready(&bench.repository, &target), console)?;
    }
    match through_loop(bench, task, (run, &loop_id), console)? {
        Loops::Landed(landed) => Ok(Ok(Landed { target, ..landed })),
        Loops::Interrupted => Ok(Err(Exit::Interrupted)),
    }
}

/// Lands the run of a task that has a final review: its branch has fixes that no task has, so it lands as a whole or not
/// at all.
fn with_its_run(bench: &Bench, board: &Board, console: &Console) -> Result<Landed, Failure> {
    let target = bench.repository.default_branch()?;
    let commit = run_commit(bench, board, &target)?;
    if !is_in(bench, &commit, &target)? {
        console.note(&format!("Run {} lands as a whole, with the fixes of its final review", board.run));
    }
    land_run(board.run, console)
}

/// The commit with which a run lands, where all that comes with it was reviewed; or why it may not land.
pub fn run_commit(bench: &Bench, board: &Board, target: &str) -> Result<Commit, EngineError> {
    let commit = landing::approved(&bench.repository, board)?;
    let (what, own) = (format!("run {}", board.run), landing::looked_at(board));
    let asked = Asked { what: &what, run: board.run, commit: &commit, own: own.as_ref(), asks_again: false };
    landing::check(records(bench), target, asked)?;
    Ok(commit)
}

/// Makes sure that a run may land.
pub fn check_run(run: RunId) -> Result<(), Failure> {
    let bench = Bench::open()?;
    let board = Board::of(run, &bench.store.log(run)?);
    run_commit(&bench, &board, &bench.repository.default_branch()?)?;
    Ok(())
}

/// Makes sure that a task may land.
pub fn check_task(task: TaskId) -> Result<(), Failure> {
    let bench = Bench::open()?;
    let desk = bench.desk();
    let (row, _) = desk.seen(task)?;
    let (run, loop_id) = desk.loop_of(task)?;
    let board = Board::of(run, &bench.store.log(run)?);
    if is_landing(&board, &loop_id) {
        return Ok(());
    }
    let (commit, target) = (approved(&row)?, bench.repository.default_branch()?);
    if board.has_final_review() {
        run_commit(&bench, &board, &target)?;
        return Ok(());
    }
    let (what, own) = (format!("task {task}"), Range::of(&row));
    let asks_again = lands_itself(&board, &loop_id, &row);
    let asked = Asked { what: &what, run, commit: &commit, own: own.as_ref(), asks_again };
    Ok(landing::check(records(&bench), &target, asked)?)
}

/// Brings all that a run came to into the default branch: what was approved of its branch, wherever that is now.
pub fn land_run(run: RunId, console: &Console) -> Result<Landed, Failure> {
    let bench = Bench::open()?;
    let board = Board::of(run, &bench.store.log(run)?);
    let commit = landing::approved(&bench.repository, &board)?;
    let target = bench.repository.default_branch()?;
    if is_in(&bench, &commit, &target)? {
        return Ok(Landed { target, commit: commit.to_string(), arrival: Arrival::Before });
    }
    let branch = run.branch();
    if bench.repository.head_of(&branch)?.is_some_and(|head| head.commit != commit) {
        console.note(&format!("{branch} has moved since it was approved; what came after does not land"));
    }
    let shop = drive::workshop(bench)?;
    let (commit, now) = wait_aloud(landing::land_run(&shop, board, &tell_notes(console)), console)?;
    Ok(Landed { target, commit: commit.to_string(), arrival: Arrival::new(now) })
}

/// Whether a loop was let land on the default branch and has not yet.
pub fn is_landing(board: &Board, loop_id: &LoopId) -> bool {
    let landing =
        board.loops.get(loop_id).is_some_and(|worked| matches!(worked.state.stage, Stage::Landing { .. }));
    landing && !lands_on_run(board, loop_id)
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

/// The commit that may land. What nobody approved may not.
pub fn approved(row: &TaskRow) -> Result<Commit, Failure> {
    match &row.approved_commit {
        Some(commit) if row.final_verdict.as_deref() == Some("APPROVED") => Ok(Commit::new(commit.clone())),
        Some(_) | None => Err(refused(row)),
    }
}

/// Where it is looked up what was reviewed.
pub fn records(bench: &Bench) -> Records<'_> {
    Records { repository: &bench.repository, store: &*bench.store, by: bench.settings.landing() }
}

fn refused(row: &TaskRow) -> Failure {
    let task = row.id;
    let message = if row.state().is_approved() && row.status != Status::Completed {
        format!("task {task} is approved and lands with its group")
    } else {
        format!("task {task} is not approved ({})", in_words(row).trim_end())
    };
    let refused = row.is_refused_by_person();
    let first = match row.status {
        Status::Completed | Status::Failed | Status::Stuck if refused => {
            format!("it was refused; `signoff improve {task} --review` goes on with it")
        }
        Status::Failed | Status::Stuck => format!("`signoff retry {task}` goes on with it"),
        Status::InProgress | Status::Waiting | Status::Paused | Status::Blocked => {
            "`signoff` says what it waits for".to_owned()
        }
        Status::Pending | Status::Completed | Status::Cancelled => {
            format!("`signoff review {task}` has it reviewed")
        }
    };
    Failure::failed(message)
        .hint(format!("{first}; `signoff merge {task} --force --reason TEXT` approves it in your name"))
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
            return Ok(Loops::Landed(Landed { target: String::new(), commit, arrival: Arrival::Now }));
        }
        if state.is_some_and(Loop::is_done) {
            let (row, _) = bench.desk().seen(task)?;
            approved(&row)?;
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
        let troubles = came.summary.troubles;
        drop((came.bench, came.store));
        bench = Bench::open()?;
        check_goes_on(&bench, task, (run, loop_id), troubles)?;
    }
}

/// A loop that neither landed nor ended waits for somebody. What keeps another one of its run from landing says nothing
/// about it.
fn check_goes_on(
    bench: &Bench,
    task: TaskId,
    (run, loop_id): (RunId, &LoopId),
    troubles: Vec<EngineError>,
) -> Result<(), Failure> {
    let board = Board::of(run, &bench.store.log(run)?);
    let state = board.loops.get(loop_id).map(|worked| &worked.state);
    if state.is_some_and(|state| state.landed) {
        troubles.into_iter().for_each(|trouble| say(&Failure::from(trouble).to_string()));
        return Ok(());
    }
    drive::give_up_over(troubles)?;
    if state.is_some_and(Loop::is_done) {
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

/// Prints what is noted while something lands.
fn tell_notes(console: &Console) -> impl Fn(Told) + Send + Sync {
    let console = *console;
    move |told| match told {
        Told::Note(note) => console.note(&note),
        Told::Stoppable(_) | Told::Waits => {}
    }
}

/// After so long people are told what is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// Brings a commit in that no loop lands.
fn direct(bench: Bench, direct: Direct, console: &Console) -> Result<Landed, Failure> {
    let target = bench.repository.default_branch()?;
    wait_aloud(landing::make_ready(&bench.repository, &target), console)?;
    let (what, commit) = (direct.what.clone(), direct.commit.clone());
    let shop: Arc<Workshop> = drive::workshop(bench)?;
    let brought = wait_aloud(landing::land(&shop, direct, &tell_notes(console)), console)?;
    let (commit, now) = brought.landed(Tried { what: &what, target: &target, commit: &commit })?;
    Ok(Landed { target, commit: commit.to_string(), arrival: Arrival::new(now) })
}
