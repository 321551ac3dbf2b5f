//! Where a command works: the repository it was started in, with its store and its settings.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use signoff_core::config::Settings;
use signoff_core::ids::{Commit, LoopId, RunId, TaskId};
use signoff_core::machine::Reason;
use signoff_core::view::{RunRow, RunView, Status, TaskRow, void_approvals};
use signoff_engine::board::Board;
use signoff_engine::detect;
use signoff_engine::dispatcher::is_through;
use signoff_engine::git::{Git, Repository, Tips};
use signoff_engine::layout::{DIRECTORY, Layout};
use signoff_engine::process;
use signoff_store::{SqliteOptions, SqliteStore, Store};

use crate::command::iterate;
use crate::door;
use crate::failure::Failure;
use crate::settings;

/// How many approved tasks are looked for in the default branch, the latest first.
const LOOKED_AT: usize = 1000;

/// The store of a repository, for commands that look or decide and need no git.
pub struct Desk {
    pub root: PathBuf,
    pub store: Arc<SqliteStore>,
}

/// Everything that is needed to work.
pub struct Bench {
    pub repository: Repository,
    pub layout: Layout,
    pub settings: Settings,
    pub store: Arc<SqliteStore>,
}

impl Desk {
    /// The store of the repository around the working directory; none if nothing was ever kept there.
    pub fn find() -> Result<Option<Self>, Failure> {
        let root = root()?;
        let Some(store) = SqliteStore::open_if_there(&root.join(DIRECTORY))? else { return Ok(None) };
        end_strays(&root.join(DIRECTORY));
        free_checkout(&root);
        Ok(Some(Self { root, store: Arc::new(store) }))
    }

    /// Another door to the store of a repository whose top this is; none if nothing was ever kept there.
    pub fn at(root: PathBuf) -> Result<Option<Self>, Failure> {
        let store = SqliteStore::open_if_there(&root.join(DIRECTORY))?;
        Ok(store.map(|store| Self { root, store: Arc::new(store) }))
    }

    /// The same, where nothing to look at is an error.
    pub fn open(task: TaskId) -> Result<Self, Failure> {
        Self::find()?.ok_or_else(|| unknown_task(task))
    }

    /// The store that knows a run.
    pub fn of_run(run: RunId) -> Result<Self, Failure> {
        Self::find()?.ok_or_else(|| unknown_run(run))
    }

    pub fn task(&self, task: TaskId) -> Result<TaskRow, Failure> {
        self.store.task(task)?.ok_or_else(|| unknown_task(task))
    }

    /// The run and loop of a task that was taken up.
    pub fn loop_of(&self, task: TaskId) -> Result<(RunId, LoopId), Failure> {
        let row = self.task(task)?;
        let seen = || self.seen(task).map_or(row, |(row, _)| row);
        self.store.loop_of(task)?.ok_or_else(|| not_started(&seen()))
    }

    /// Makes sure that there is such a run.
    pub fn check_run(&self, run: RunId) -> Result<(), Failure> {
        self.store.run(run)?.map(drop).ok_or_else(|| unknown_run(run))
    }

    /// Makes sure that a run has a final review to decide about.
    pub fn check_final_review(&self, run: RunId) -> Result<(), Failure> {
        self.check_run(run)?;
        let board = Board::of(run, &self.store.log(run)?);
        if board.loops.contains_key(&LoopId::whole()) {
            return Ok(());
        }
        Err(Failure::usage(format!("run {run} has had no final review"))
            .hint("`signoff status` lists its tasks; decide about one of them by its number"))
    }

    /// All tasks as people see them: one that waits for what did not pass is blocked, and one whose branch has moved
    /// since is not approved any more.
    pub fn tasks(&self) -> Result<Vec<TaskRow>, Failure> {
        let mut rows = self.rows()?;
        self.note_from_logs(&mut rows)?;
        Ok(rows)
    }

    /// The same without what only logs tell: no log is read.
    pub fn rows(&self) -> Result<Vec<TaskRow>, Failure> {
        let mut rows = self.store.tasks()?;
        let mut in_the_way: BTreeSet<u64> =
            rows.iter().filter(|row| is_in_the_way(row)).map(|row| row.id).collect();
        let cancelled: BTreeSet<u64> =
            rows.iter().filter(|row| row.status == Status::Cancelled).map(|row| row.id).collect();
        let blocked_runs: Vec<u64> = self
            .store
            .open_runs()?
            .iter()
            .filter(|run| run.status == "blocked")
            .map(|run| run.id.0)
            .collect();
        for row in rows.iter_mut().filter(|row| row.status == Status::Pending) {
            // A run goes on past a task that was cancelled; what is in the queue does not.
            let passed = |task: &u64| row.run_id.is_some() && cancelled.contains(task);
            let behind = row.depends_on.iter().any(|task| in_the_way.contains(task) && !passed(task));
            if behind || row.run_id.is_some_and(|run| blocked_runs.contains(&run)) {
                row.status = Status::Blocked;
                // Tasks wait for earlier ones only: those behind it are yet to come.
                in_the_way.insert(row.id);
            }
        }
        let (mut tips, git) = (Tips::of(&self.root), persons_git());
        void_approvals(&mut rows, |branch| {
            tips.of_branch(branch, &git).filter(|tip| self.ticked(branch).as_ref() != Some(tip))
        });
        Ok(rows)
    }

    /// Notes which approved tasks are in the default branch. Asks git once for all of them; if git fails, the recorded
    /// commits stay.
    pub fn note_landed(&self, rows: &mut [TaskRow]) {
        let commit = |row: &TaskRow| row.landed_commit.clone().or_else(|| row.approved_commit.clone());
        let can_land = |row: &TaskRow| row.state().is_approved() && !row.is_approved_empty();
        let approved = rows.iter().rev().filter(|row| can_land(row));
        let commits: Vec<Commit> = approved.filter_map(commit).map(Commit::new).take(LOOKED_AT).collect();
        let missing = || {
            let repository = self.repository().ok()?;
            repository.not_in(&repository.default_branch().ok()?, &commits).ok()
        };
        let Some(missing) = (!commits.is_empty()).then(missing).flatten() else { return };
        for row in rows.iter_mut().filter(|row| can_land(row)) {
            let landed = commit(row).filter(|commit| {
                let commit = Commit::new(commit.clone());
                commits.contains(&commit) && !missing.contains(&commit)
            });
            row.landed_commit = landed;
        }
    }

    /// What the tables do not tell: the rate limits that tasks wait out, and how far those are that go through phases.
    /// One provider may hold up many of a run, whose log is read once.
    fn note_from_logs(&self, rows: &mut [TaskRow]) -> Result<(), Failure> {
        let counted: Vec<u64> = self
            .store
            .open_runs()?
            .iter()
            .filter(|run| run.preset == iterate::PRESET)
            .map(|run| run.id.0)
            .collect();
        let mut runs = BTreeMap::new();
        let in_phases = |row: &TaskRow| row.run_id.is_some_and(|run| counted.contains(&run));
        let limited = |row: &TaskRow| row.reason == Some(Reason::RateLimited.word());
        for row in rows.iter_mut().filter(|row| limited(row) || in_phases(row)) {
            let Some((run, loop_id)) = self.store.loop_of(TaskId(row.id))? else { continue };
            let view = match runs.entry(run) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(vacant) => vacant.insert(RunView::of(&self.store.log(run)?)),
            };
            let told = view.row(&loop_id);
            row.place = told.as_ref().and_then(|told| told.place);
            row.wait = told.and_then(|told| told.wait);
        }
        Ok(())
    }

    /// The runs in which something is left to do, and those that failed as a whole, about which their tasks say nothing.
    /// Of those that failed in planning only the last run: it is planned anew, and there is nothing to decide.
    pub fn runs(&self) -> Result<Vec<RunRow>, Failure> {
        let mut runs: Vec<RunRow> = self.store.open_runs()?.into_iter().map(RunRow::from).collect();
        let last = self.store.last_run()?.map(|run| run.id.0);
        let failed = self.store.failed_runs()?.into_iter().map(RunRow::from);
        let failed = failed.filter(|run| run.groups != Some(0) || Some(run.id) == last);
        let failed: Vec<RunRow> = failed.filter(|run| !runs.iter().any(|open| open.id == run.id)).collect();
        runs.extend(failed);
        runs.sort_by_key(|run| run.id);
        Ok(runs)
    }

    /// The runs whose final review failed and about which no person has decided, the last one first.
    pub fn failed_final_reviews(&self) -> Result<Vec<RunId>, Failure> {
        let runs = self.runs()?;
        let failed = runs.iter().rev().filter(|run| run.failed_as_a_whole() && run.groups != Some(0));
        Ok(failed.map(|run| RunId(run.id)).collect())
    }

    /// The commit of our own that ticks what a run has done.
    fn ticked(&self, branch: &str) -> Option<String> {
        std::fs::read_to_string(self.layout().ticked(RunId::of_branch(branch)?)).ok()
    }

    /// Where a run's branch is, if its last commit is our own that ticks what is done.
    pub fn tip_if_ticked(&self, branch: &str) -> Option<String> {
        let tip = Tips::of(&self.root).of_branch(branch, &persons_git())?;
        (self.ticked(branch)? == tip).then_some(tip)
    }

    /// A task as people see it, and all among which it stands.
    pub fn seen(&self, task: TaskId) -> Result<(TaskRow, Vec<TaskRow>), Failure> {
        let tasks = self.tasks()?;
        let own = tasks.iter().find(|row| row.id == task.0).cloned();
        Ok((own.ok_or_else(|| unknown_task(task))?, tasks))
    }

    pub fn layout(&self) -> Layout {
        Layout::new(&self.root, None)
    }

    /// The repository around the store, to look at: whatever its settings are.
    pub fn repository(&self) -> Result<Repository, Failure> {
        Ok(Repository::discover(&persons_git(), &self.root)?)
    }
}

impl Bench {
    /// The same store, to look at.
    pub fn desk(&self) -> Desk {
        Desk { root: self.repository.root().to_owned(), store: self.store.clone() }
    }

    /// Opens the repository around the working directory, makes `.signoff` if it is not there.
    pub fn open() -> Result<Self, Failure> {
        Self::at(&door::current_directory()?)
    }

    /// Opens the repository around a directory.
    pub fn at(directory: &Path) -> Result<Self, Failure> {
        let git = persons_git();
        let repository = Repository::discover(&git, directory)?;
        let settings = with_checks(&repository, settings::load(Some(repository.root()))?);
        let layout = Layout::new(repository.root(), Some(settings.worktree_directory()));
        layout.prepare().map_err(|error| Failure::failed(format!("cannot make {DIRECTORY}: {error}")))?;
        let store = Arc::new(SqliteStore::open_with(layout.root(), store_options())?);
        end_strays(layout.root());
        // A killed program may have moved the branch that is checked out and not the files.
        repository.repair_checkout()?;
        Ok(Self { repository, layout, settings, store })
    }
}

/// Adds the checks detected in the commit that new work starts from, if none are configured. Adds none if there is no
/// commit yet or git fails; commands that start work report the error.
pub fn with_checks(repository: &Repository, settings: Settings) -> Settings {
    if !settings.checks().is_empty() {
        return settings;
    }
    let tip = |branch: String| Tips::of(repository.root()).of_branch(&branch, &persons_git());
    let base = repository.default_branch().ok().and_then(tip).map(Commit::new);
    let found = base.and_then(|base| detect::checks_at(repository, &base, detect::is_installed).ok());
    let found = found.unwrap_or_default().checks;
    settings.with_found_checks(found.into_iter().map(|one| (one.name, one.command)).collect())
}

/// Finishes a checkout that a killed program left behind: its lock keeps the person's own git from working. What cannot be
/// finished is told by the next command that works.
fn free_checkout(root: &Path) {
    if !root.join(".git/signoff/forward.json").is_file() {
        return;
    }
    if let Ok(repository) = Repository::discover(&persons_git(), root) {
        repository.free_checkout().ok();
    }
}

/// Git in the person's environment.
pub fn persons_git() -> Git {
    let git = Git::new(door::environment());
    match patience() {
        Some(patience) => git.with_patience(patience),
        None => git,
    }
}

fn store_options() -> SqliteOptions {
    let max_pages = door::test_number("SIGNOFF_TEST_MAX_PAGES").and_then(|pages| u32::try_from(pages).ok());
    SqliteOptions { max_pages, patience: patience() }
}

/// How long others' locks are waited for, where a test says so.
fn patience() -> Option<Duration> {
    door::test_number("SIGNOFF_TEST_PATIENCE_MS").map(Duration::from_millis)
}

/// Whether a task is over and nothing can build on it.
pub fn is_in_the_way(row: &TaskRow) -> bool {
    match row.status {
        Status::Completed => !is_through(row),
        Status::Failed | Status::Stuck | Status::Cancelled => true,
        Status::Pending | Status::InProgress | Status::Waiting | Status::Paused | Status::Blocked => false,
    }
}

/// What to say of a task that nobody has taken up.
pub fn not_started(row: &TaskRow) -> Failure {
    let task = row.id;
    if row.status == Status::Cancelled {
        return Failure::usage(format!("task {task} was cancelled before it was started"))
            .hint("`signoff add` adds it again");
    }
    let not_started = Failure::usage(format!("task {task} has not been started"));
    if row.status == Status::Blocked {
        return not_started.hint(format!("`signoff show {task}` says what it waits for"));
    }
    not_started.hint(format!("`signoff work {task}` works it"))
}

fn unknown_run(run: RunId) -> Failure {
    Failure::usage(format!("there is no run {run}")).hint("`signoff status` lists what there is")
}

fn unknown_task(task: TaskId) -> Failure {
    Failure::usage(format!("there is no task {task}")).hint("`signoff status` lists the tasks")
}

/// What a killed program left running ends at the latest when the next one starts.
fn end_strays(own: &Path) {
    process::end_strays(&own.join("live")).ok();
}

/// The top of the main checkout, where there is a repository: what lies there holds in all its worktrees. Git is asked only
/// in another worktree: looking must be quick.
pub fn main_checkout() -> Result<Option<PathBuf>, Failure> {
    let here = door::current_directory()?;
    for directory in here.ancestors() {
        let git = directory.join(".git");
        if git.is_dir() {
            return Ok(Some(directory.to_owned()));
        }
        if git.is_file() {
            let repository = Repository::discover(&persons_git(), &here)?;
            return Ok(Some(repository.root().to_owned()));
        }
    }
    Ok(None)
}

/// The top of the main checkout, which there must be.
pub fn root() -> Result<PathBuf, Failure> {
    let none = |here: PathBuf| {
        Failure::usage("this is not a git repository")
            .at(here.display().to_string())
            .hint("go to one, or make one with `git init`")
    };
    match main_checkout()? {
        Some(root) => Ok(root),
        None => Err(none(door::current_directory()?)),
    }
}
