//! The project a command runs in: repository, settings and store.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use signoff_core::ids::{Commit, LoopId, RunId, TaskId};
use signoff_core::machine::Reason;
use signoff_core::settings::Settings;
use signoff_core::view::inbox::{self, Action};
use signoff_core::view::{RunRow, RunStatus, TaskRow, TaskStatus, void_approvals};
use signoff_core::workflow::PHASES_PRESET;
use signoff_engine::detect;
use signoff_engine::git::{BranchTips, Git, Repository};
use signoff_engine::layout::{DIRECTORY, Layout};
use signoff_engine::process;
use signoff_store::{SqliteOptions, SqliteStore, Store, StoreError, StoredRun};

use crate::error::not_a_repository;
use crate::history_cache::HistoryCache;
use crate::{CliError, Result, host, settings};

/// Maximum number of approved tasks that are looked up in the default branch, latest first.
const MAX_LANDED_LOOKUPS: usize = 1000;

/// The store of a repository, for commands that only query or record decisions.
pub struct ReadOnlyProject {
    pub root: PathBuf,
    pub store: Arc<SqliteStore>,
    /// The histories of the runs that this process has read, if it keeps them for the next query.
    pub histories: Option<Arc<HistoryCache>>,
}

/// Repository, layout, settings and store, for commands that start work.
pub struct Project {
    pub repository: Repository,
    pub layout: Layout,
    pub settings: Settings,
    pub store: Arc<SqliteStore>,
}

impl ReadOnlyProject {
    /// Opens the store of the repository around the working directory. Returns `None` if it has no store.
    pub fn find() -> Result<Option<Self>> {
        let project = Self::open_at(root()?)?;
        project.iter().for_each(Self::clean_up);
        Ok(project)
    }

    /// Cleans up after killed signoff processes.
    pub fn clean_up(&self) {
        kill_orphans(&self.root.join(DIRECTORY));
        finish_checkout_update(&self.root);
    }

    /// The same project with a connection of its own. Requests that one connection posts are noticed by the others only.
    pub fn reconnect(&self) -> Result<Self> {
        let store = Arc::new(self.store.reconnect()?);
        Ok(Self { root: self.root.clone(), store, histories: self.histories.clone() })
    }

    /// Opens another connection to the store of the repository at `root`. Returns `None` if it has no store.
    pub fn open_at(root: PathBuf) -> Result<Option<Self>> {
        let directory = root.join(DIRECTORY);
        if !SqliteStore::path(&directory).try_exists().map_err(StoreError::from)? {
            return Ok(None);
        }
        let store = Arc::new(SqliteStore::open_with_options(&directory, store_options())?);
        Ok(Some(Self { root, store, histories: None }))
    }

    /// Opens the store for a command about a task. A missing store means that the task does not exist.
    pub fn for_task(task: TaskId) -> Result<Self> {
        Self::find()?.ok_or_else(|| unknown_task(task))
    }

    /// Opens the store for a command about a run. A missing store means that the run does not exist.
    pub fn for_run(run: RunId) -> Result<Self> {
        Self::find()?.ok_or_else(|| unknown_run(run))
    }

    pub fn task(&self, task: TaskId) -> Result<TaskRow> {
        self.store.task(task)?.ok_or_else(|| unknown_task(task))
    }

    /// Returns the run and the loop of a task. Fails if the task has not been started.
    pub fn loop_of(&self, task: TaskId) -> Result<(RunId, LoopId)> {
        let row = self.task(task)?;
        let shown = || self.task_and_all(task).map_or(row, |(row, _)| row);
        self.store.loop_for_task(task)?.ok_or_else(|| not_started(&shown()))
    }

    /// Fails if the run does not exist.
    pub fn check_run(&self, run: RunId) -> Result<()> {
        self.store.run(run)?.map(drop).ok_or_else(|| unknown_run(run))
    }

    /// Fails if the run does not exist or has had no final review.
    pub fn check_final_review(&self, run: RunId) -> Result<()> {
        self.check_run(run)?;
        if self.store.preload(run)?.loops.contains_key(&LoopId::final_review()) {
            return Ok(());
        }
        Err(CliError::usage(format!("run {run} has had no final review"))
            .hint("`signoff status` lists its tasks; decide about one of them by its number"))
    }

    /// Returns all tasks as they are shown: a task that depends on one that did not pass is blocked, and a task whose
    /// branch moved after its approval is no longer approved.
    pub fn tasks(&self) -> Result<Vec<TaskRow>> {
        let mut rows = self.tasks_from_tables()?;
        self.add_log_details(&mut rows)?;
        Ok(rows)
    }

    /// Like `tasks`, but reads only the tables and no log. Rate limits and phase positions are missing.
    pub fn tasks_from_tables(&self) -> Result<Vec<TaskRow>> {
        let mut rows = self.store.tasks()?;
        let open_runs = self.store.open_runs()?;
        let is_blocked = |run: &&StoredRun| run.status == RunStatus::Blocked;
        inbox::mark_blocked(&mut rows, &open_runs.iter().filter(is_blocked).map(|run| run.id.0).collect());
        let (mut tips, git) = (BranchTips::new(&self.root), user_git());
        void_approvals(&mut rows, |branch| {
            tips.commit(branch, &git).filter(|tip| self.check_off_commit(branch).as_ref() != Some(tip))
        });
        Ok(rows)
    }

    /// Sets the landed commit of each approved task that is in the default branch. Runs git once for all tasks; if git
    /// fails, the recorded commits stay.
    pub fn mark_landed(&self, rows: &mut [TaskRow]) {
        let commit = |row: &TaskRow| row.landed_commit.clone().or_else(|| row.approved_commit.clone());
        let can_land = |row: &TaskRow| row.state().is_approved() && !row.is_approved_empty();
        let approved = rows.iter().rev().filter(|row| can_land(row));
        let commits: Vec<Commit> = approved.filter_map(commit).map(Commit::new).take(MAX_LANDED_LOOKUPS).collect();
        let missing = || {
            let repository = self.repository().ok()?;
            repository.missing_from_branch(&repository.default_branch().ok()?, &commits).ok()
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

    /// Adds what is only in the logs: the rate limit a task waits for, and the current phase of an iteration.
    /// Reads the log of each run at most once.
    fn add_log_details(&self, rows: &mut [TaskRow]) -> Result<()> {
        let iterations: Vec<u64> =
            self.store.open_runs()?.iter().filter(|run| run.preset == PHASES_PRESET).map(|run| run.id.0).collect();
        let mut runs = BTreeMap::new();
        let in_phases = |row: &TaskRow| row.run_id.is_some_and(|run| iterations.contains(&run));
        let limited = |row: &TaskRow| row.reason == Some(Reason::RateLimited);
        for row in rows.iter_mut().filter(|row| limited(row) || in_phases(row)) {
            let Some((run, loop_id)) = self.store.loop_for_task(TaskId(row.id))? else { continue };
            let run_state = match runs.entry(run) {
                Entry::Occupied(occupied) => occupied.into_mut(),
                Entry::Vacant(vacant) => vacant.insert(self.store.run_state(run)?),
            };
            let loop_row = run_state.row(&loop_id);
            row.progress = loop_row.as_ref().and_then(|loop_row| loop_row.progress);
            row.wait = loop_row.and_then(|loop_row| loop_row.wait);
        }
        Ok(())
    }

    /// Returns the open runs and the runs that failed as a whole, because no task shows that failure.
    /// A run that failed in planning is included only if it is the last run: it needs a new plan, not a decision.
    pub fn runs(&self) -> Result<Vec<RunRow>> {
        let mut runs: Vec<RunRow> = self.store.open_runs()?.into_iter().map(RunRow::from).collect();
        let last = self.store.last_run()?.map(|run| run.id.0);
        let failed = self.store.failed_runs()?.into_iter().map(RunRow::from);
        let failed = failed.filter(|run| run.groups != Some(0) || Some(run.id) == last);
        let failed: Vec<RunRow> = failed.filter(|run| !runs.iter().any(|open| open.id == run.id)).collect();
        runs.extend(failed);
        runs.sort_by_key(|run| run.id);
        Ok(runs)
    }

    /// Returns the runs whose final review failed and awaits a decision, latest first.
    pub fn failed_final_reviews(&self) -> Result<Vec<RunId>> {
        let runs = self.runs()?;
        let failed = runs.iter().rev().filter(|run| run.failed_as_a_whole() && run.groups != Some(0));
        Ok(failed.map(|run| RunId(run.id)).collect())
    }

    /// Returns signoff's own commit that checks off the finished tasks of a run's plan.
    fn check_off_commit(&self, branch: &str) -> Option<String> {
        std::fs::read_to_string(self.layout().checked_off(RunId::from_branch(branch)?)).ok()
    }

    /// Returns the tip of a run's branch if it is signoff's own check-off commit.
    pub fn tip_if_check_off_commit(&self, branch: &str) -> Option<String> {
        let tip = BranchTips::new(&self.root).commit(branch, &user_git())?;
        (self.check_off_commit(branch)? == tip).then_some(tip)
    }

    /// Returns a task as it is shown, together with all tasks.
    pub fn task_and_all(&self, task: TaskId) -> Result<(TaskRow, Vec<TaskRow>)> {
        let tasks = self.tasks()?;
        Ok((find_task(&tasks, task)?, tasks))
    }

    pub fn layout(&self) -> Layout {
        Layout::new(&self.root, None)
    }

    /// Opens the repository for work with the same store, whose cache holds the runs already read.
    pub fn open_for_work(&self) -> Result<Project> {
        Project::with_store(&self.root, |_| Ok(self.store.clone()))
    }

    /// Opens the repository for reading. Its settings are not loaded.
    pub fn repository(&self) -> Result<Repository> {
        Ok(Repository::discover(&user_git(), &self.root)?)
    }
}

impl Project {
    /// Returns a read-only view that shares the store.
    pub fn read_only(&self) -> ReadOnlyProject {
        ReadOnlyProject { root: self.repository.root().to_owned(), store: self.store.clone(), histories: None }
    }

    /// Opens the repository around the working directory and creates `.signoff` if it is missing.
    pub fn open() -> Result<Self> {
        Self::open_at(&host::current_directory()?)
    }

    /// Opens the repository around a directory.
    pub fn open_at(directory: &Path) -> Result<Self> {
        Self::with_store(directory, |dir| Ok(Arc::new(SqliteStore::open_with_options(dir, store_options())?)))
    }

    fn with_store(directory: &Path, open: impl FnOnce(&Path) -> Result<Arc<SqliteStore>>) -> Result<Self> {
        let git = user_git();
        let repository = Repository::discover(&git, directory)?;
        let settings = with_checks(&repository, settings::load(Some(repository.root()))?);
        let layout = Layout::new(repository.root(), Some(settings.worktree_directory()));
        layout.prepare().map_err(|error| CliError::failed(format!("cannot create {DIRECTORY}: {error}")))?;
        let store = open(layout.root())?;
        kill_orphans(layout.root());
        // A killed process may have moved the checked-out branch without updating the files.
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
    let tip = |branch: String| BranchTips::new(repository.root()).commit(&branch, &user_git());
    let base = repository.default_branch().ok().and_then(tip).map(Commit::new);
    let found = base.and_then(|base| detect::detect_checks_at(repository, &base, detect::is_installed).ok());
    let found = found.unwrap_or_default().checks;
    settings.with_found_checks(found.into_iter().map(|check| (check.name, check.command)).collect())
}

/// Finishes a checkout update that a killed process left behind: its lock blocks the user's own git. Errors are ignored
/// here; the next command that starts work reports them.
fn finish_checkout_update(root: &Path) {
    if !root.join(".git/signoff/forward.json").is_file() {
        return;
    }
    if let Ok(repository) = Repository::discover(&user_git(), root) {
        repository.try_finish_checkout_update().ok();
    }
}

/// Git with the user's environment.
pub fn user_git() -> Git {
    let git = Git::new(host::environment());
    match lock_timeout() {
        Some(timeout) => git.with_lock_timeout(timeout),
        None => git,
    }
}

/// The options for opening a store.
fn store_options() -> SqliteOptions {
    let max_pages = host::test_number("SIGNOFF_TEST_MAX_PAGES").and_then(|pages| u32::try_from(pages).ok());
    SqliteOptions { max_pages, busy_timeout: lock_timeout() }
}

/// How long to wait for locks of other processes, if a test sets it.
fn lock_timeout() -> Option<Duration> {
    host::test_number("SIGNOFF_TEST_LOCK_TIMEOUT_MS").map(Duration::from_millis)
}

/// The error for a task that has not been started.
pub fn not_started(row: &TaskRow) -> CliError {
    let task = row.id;
    if row.status == TaskStatus::Cancelled {
        return CliError::usage(format!("task {task} was cancelled before it was started"))
            .hint("`signoff add` adds a new task");
    }
    let not_started = CliError::usage(format!("task {task} has not been started"));
    if row.status == TaskStatus::Blocked {
        return not_started.hint(format!("`{}` shows what it waits for", Action::Show(task)));
    }
    not_started.hint(format!("`{}` starts it", Action::Work(task)))
}

fn unknown_run(run: RunId) -> CliError {
    CliError::usage(format!("there is no run {run}")).hint("`signoff status` lists tasks and runs")
}

/// Returns the row of a task. Fails if there is none.
pub fn find_task(tasks: &[TaskRow], task: TaskId) -> Result<TaskRow> {
    tasks.iter().find(|row| row.id == task.0).cloned().ok_or_else(|| unknown_task(task))
}

pub fn unknown_task(task: TaskId) -> CliError {
    CliError::usage(format!("there is no task {task}")).hint("`signoff status` lists the tasks")
}

/// Kills agents that a killed signoff process left running.
fn kill_orphans(store_dir: &Path) {
    process::kill_orphans(&store_dir.join("live")).ok();
}

/// Returns the root of the main checkout, whose settings and store also apply to its worktrees. Runs git only inside a
/// linked worktree, because read-only commands must be fast.
pub fn main_checkout() -> Result<Option<PathBuf>> {
    let current_dir = host::current_directory()?;
    for directory in current_dir.ancestors() {
        let git = directory.join(".git");
        if git.is_dir() {
            return Ok(Some(directory.to_owned()));
        }
        if git.is_file() {
            let repository = Repository::discover(&user_git(), &current_dir)?;
            return Ok(Some(repository.root().to_owned()));
        }
    }
    Ok(None)
}

/// Like `main_checkout`, but fails outside of a repository.
pub fn root() -> Result<PathBuf> {
    let current_dir = host::current_directory()?;
    main_checkout()?.ok_or_else(|| not_a_repository().at(current_dir.display().to_string()))
}
