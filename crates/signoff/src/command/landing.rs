//! Lands approved work on the default branch, for `merge` and `land`.

use std::sync::Arc;
use std::time::Duration;

use signoff_core::command::LoopCommand;
use signoff_core::ids::{Commit, LoopId, RunId, TaskId};
use signoff_core::machine::{Event, FinalVerdict, LandingReport, Loop, Stage};
use signoff_core::settings::LandingMethod;
use signoff_core::view::{RunState, TaskRow, TaskStatus, is_run_branch};
use signoff_core::wire::{Fact, LoopFact, RecordedFact};
use signoff_core::workflow::Landing;
use signoff_engine::clock;
use signoff_engine::dispatcher::DriveOptions;
use signoff_engine::error::EngineError;
use signoff_engine::git::{GitError, Repository};
use signoff_engine::landing::{
    self, ApprovedRange, DirectLanding, LandingAttempt, LandingCandidate, LandingLock, LandingProgress, LandingRecords,
};
use signoff_store::{Store, StoreError};
use signoff_term::status::status_line;

use crate::command::decide::facts;
use crate::console::write_stderr;
use crate::project::user_git;
use crate::run_loop::{self, RunRequest};
use crate::{CliError, Console, Project, ReadOnlyProject, Result, host, queries};

/// Work that is in the default branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandedWork {
    pub target: String,
    /// The commit that landed it; the approved commit if it was there before.
    pub commit: String,
    pub when: LandedWhen,
}

/// When work landed on the default branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LandedWhen {
    Now,
    Before,
    /// Never: the work has no changes.
    NoChanges,
}

impl LandedWhen {
    /// The status of the work in a report.
    pub fn status(self) -> &'static str {
        match self {
            Self::Now => "landed",
            Self::Before | Self::NoChanges => "already",
        }
    }

    fn new(now: bool) -> Self {
        if now { Self::Now } else { Self::Before }
    }
}

/// Waits until no other `land` or `merge` runs in the repository.
pub fn wait_for_turn(console: &Console) -> Result<Option<LandingLock>> {
    let repository = Repository::discover(&user_git(), &host::current_directory()?)?;
    wait_with_note(landing::lock_for_command(&repository), console)
}

/// Lands one task on the default branch. Returns `None` if it was interrupted; the next `signoff work` continues.
pub fn land_task(task: TaskId, console: &Console) -> Result<Option<LandedWork>> {
    let project = Project::open()?;
    let read_only = project.read_only();
    let (row, rows) = read_only.task_and_all(task)?;
    let (run, loop_id) = read_only.loop_of(task)?;
    let log = project.store.log(run)?;
    let run_state = RunState::from_run_log(run, &log);
    let landing_started = is_landing(&run_state, &loop_id);
    let target = project.repository.default_branch()?;
    if !project.repository.has_branch(&target)? {
        return Err(GitError::BranchGone(target).into());
    }
    if !landing_started {
        let commit = approved(&row)?;
        if run_state.loops.get(&loop_id).is_some_and(|loop_state| loop_state.machine.is_unchanged()) {
            return Ok(Some(LandedWork { target, commit: commit.to_string(), when: LandedWhen::NoChanges }));
        }
        let is_in = is_on_branch(&project, &commit, &target)? || has_landed(&project, &log, &loop_id, &target)?;
        if run_state.has_final_review() && (!is_in || run_commit(&project, &run_state, &target).is_ok()) {
            return land_with_run(&project, &run_state, console).map(Some);
        }
        if is_in {
            return Ok(Some(LandedWork { target, commit: commit.to_string(), when: LandedWhen::Before }));
        }
        let (what, own) = (format!("task {task}"), ApprovedRange::for_task(&row));
        if !lands_through_loop(&run_state, &loop_id, &row) {
            let commit = with_check_off_commit(&read_only, &row, &rows, commit);
            let (name, message) = (format!("task-{task}"), format!("Merge task {task}: {}", row.title));
            let direct = DirectLanding { run, what, name, commit, message, own };
            return land_directly(project, direct, console).map(Some);
        }
        // Check before anything is recorded.
        let asked = LandingCandidate { what: &what, run, commit: &commit, own: own.as_ref(), asks_again: true };
        landing::check(records(&project), &target, asked)?;
        wait_with_note(landing::check_ready(&project.repository, &target), console)?;
    }
    let commit = land_through_loop(project, task, run, &loop_id, console)?;
    Ok(commit.map(|commit| LandedWork { target, commit, when: LandedWhen::Now }))
}

/// Lands the whole run of a task. A run with a final review may have fixes that belong to no task.
fn land_with_run(project: &Project, run_state: &RunState, console: &Console) -> Result<LandedWork> {
    let target = project.repository.default_branch()?;
    let commit = run_commit(project, run_state, &target)?;
    if !is_on_branch(project, &commit, &target)? {
        console.note(&format!("Run {} lands as a whole, with the fixes of its final review", run_state.run));
    }
    land_run(run_state.run, console)
}

/// Returns the commit that lands for a run. Fails if not all of it was reviewed.
pub fn run_commit(project: &Project, run_state: &RunState, target: &str) -> Result<Commit, EngineError> {
    let commit = landing::approved_commit(&project.repository, run_state)?;
    let (what, own) = (format!("run {}", run_state.run), landing::approved_range(run_state));
    let asked =
        LandingCandidate { what: &what, run: run_state.run, commit: &commit, own: own.as_ref(), asks_again: false };
    landing::check(records(project), target, asked)?;
    Ok(commit)
}

/// Checks that a run may land.
pub fn check_run(run: RunId) -> Result<()> {
    let project = Project::open()?;
    let run_state = queries::run_state(&*project.store, run)?;
    run_commit(&project, &run_state, &project.repository.default_branch()?)?;
    Ok(())
}

/// Checks that a task may land.
pub fn check_task(task: TaskId) -> Result<()> {
    let project = Project::open()?;
    let read_only = project.read_only();
    let (row, _) = read_only.task_and_all(task)?;
    let (run, loop_id) = read_only.loop_of(task)?;
    let run_state = queries::run_state(&*project.store, run)?;
    if is_landing(&run_state, &loop_id) {
        return Ok(());
    }
    let (commit, target) = (approved(&row)?, project.repository.default_branch()?);
    if run_state.has_final_review() {
        run_commit(&project, &run_state, &target)?;
        return Ok(());
    }
    let (what, own) = (format!("task {task}"), ApprovedRange::for_task(&row));
    let asks_again = lands_through_loop(&run_state, &loop_id, &row);
    let asked = LandingCandidate { what: &what, run, commit: &commit, own: own.as_ref(), asks_again };
    Ok(landing::check(records(&project), &target, asked)?)
}

/// Lands the approved commit of a run, even if the branch has moved since.
pub fn land_run(run: RunId, console: &Console) -> Result<LandedWork> {
    let project = Project::open()?;
    let run_state = queries::run_state(&*project.store, run)?;
    let commit = landing::approved_commit(&project.repository, &run_state)?;
    let target = project.repository.default_branch()?;
    if is_on_branch(&project, &commit, &target)? {
        return Ok(LandedWork { target, commit: commit.to_string(), when: LandedWhen::Before });
    }
    let branch = run.branch();
    if project.repository.head_of(&branch)?.is_some_and(|head| head.commit != commit) {
        console.note(&format!("{branch} has moved since it was approved; later commits do not land"));
    }
    let ctx = Arc::new(run_loop::engine_context(project)?);
    let (commit, now) = wait_with_note(landing::land_run(&ctx, run_state, &note_printer(console)), console)?;
    Ok(LandedWork { target, commit: commit.to_string(), when: LandedWhen::new(now) })
}

/// Whether a loop is in the middle of landing on the default branch.
pub fn is_landing(run_state: &RunState, loop_id: &LoopId) -> bool {
    let landing = run_state
        .loops
        .get(loop_id)
        .is_some_and(|loop_state| matches!(loop_state.machine.stage, Stage::Landing { .. }));
    landing && !lands_on_run(run_state, loop_id)
}

/// Whether the default branch contains the commit, or with `landing = "rebase"` its changes.
pub fn is_on_branch(project: &Project, commit: &Commit, target: &str) -> Result<bool> {
    let by_name = project.repository.missing_from_branch(target, std::slice::from_ref(commit))?.is_empty();
    Ok(by_name
        || match project.settings.landing() {
            LandingMethod::Merge => false,
            LandingMethod::Rebase => project.repository.contains_changes(target, commit)?,
        })
}

/// Whether the commit that a loop's landing created is in the default branch. With `landing = "rebase"` it differs from
/// the approved commit, and its changes may differ as well.
pub fn has_landed(project: &Project, log: &[RecordedFact], loop_id: &LoopId, target: &str) -> Result<bool> {
    match (project.settings.landing(), landed_commit(log, loop_id)) {
        (LandingMethod::Rebase, Some(commit)) => is_on_branch(project, &Commit::new(commit), target),
        (LandingMethod::Merge | LandingMethod::Rebase, _) => Ok(false),
    }
}

/// Whether a task's own loop lands it on the default branch and resolves conflicts. Tasks of a plan share a branch,
/// and other tasks may have landed on their run's branch before.
fn lands_through_loop(run_state: &RunState, loop_id: &LoopId, row: &TaskRow) -> bool {
    let landed = run_state.loops.get(loop_id).is_some_and(|loop_state| loop_state.machine.landed);
    !landed && !lands_on_run(run_state, loop_id) && !row.branch.as_deref().is_some_and(is_run_branch)
}

/// Whether a loop's work lands on its run's branch first.
pub fn lands_on_run(run_state: &RunState, loop_id: &LoopId) -> bool {
    run_state.policy(loop_id).is_some_and(|policy| policy.workflow.landing != Landing::None)
}

/// Returns the approved commit of a task. Fails if it is not approved.
pub fn approved(row: &TaskRow) -> Result<Commit> {
    match &row.approved_commit {
        Some(commit) if row.final_verdict == Some(FinalVerdict::Approved) => Ok(Commit::new(commit.clone())),
        Some(_) | None => Err(refused(row)),
    }
}

/// The records that say what was reviewed.
fn records(project: &Project) -> LandingRecords<'_> {
    LandingRecords {
        repository: &project.repository,
        store: &*project.store,
        landing_method: project.settings.landing(),
    }
}

fn refused(row: &TaskRow) -> CliError {
    let task = row.id;
    let message = if row.state().is_approved() && row.status != TaskStatus::Completed {
        format!("task {task} is approved and lands with its group")
    } else {
        format!("task {task} is not approved ({})", status_line(row).trim_end())
    };
    let refused = row.is_refused_by_person();
    let first = match row.status {
        TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Stuck if refused => {
            format!("it was refused; `signoff improve {task} --review` improves it")
        }
        TaskStatus::Failed | TaskStatus::Stuck => format!("`signoff retry {task}` continues it"),
        TaskStatus::InProgress | TaskStatus::Waiting | TaskStatus::Paused | TaskStatus::Blocked => {
            "`signoff` shows what it waits for".to_owned()
        }
        TaskStatus::Pending | TaskStatus::Completed | TaskStatus::Cancelled => {
            format!("`signoff review {task}` reviews it")
        }
    };
    CliError::failed(message)
        .hint(format!("{first}; `signoff merge {task} --force --reason TEXT` approves it in your name"))
}

/// For the last task of a plan, returns the commit that also checks off the plan's tasks.
fn with_check_off_commit(project: &ReadOnlyProject, row: &TaskRow, rows: &[TaskRow], commit: Commit) -> Commit {
    let Some(branch) = row.branch.as_deref().filter(|branch| is_run_branch(branch)) else { return commit };
    let later = |one: &TaskRow| one.branch == row.branch && one.id > row.id && one.base.is_some();
    if rows.iter().any(later) { commit } else { project.tip_if_check_off_commit(branch).map_or(commit, Commit::new) }
}

/// Lands a task through its loop, again after each time it is sent back and approved again. The limits of the loop
/// bound the repetition. Returns the commit, or `None` if it was interrupted.
fn land_through_loop(
    mut project: Project,
    task: TaskId,
    run: RunId,
    loop_id: &LoopId,
    console: &Console,
) -> Result<Option<String>> {
    loop {
        let lease = run_loop::try_acquire(&*project.store, run)?.ok_or_else(|| {
            CliError::from(StoreError::Held(run))
                .hint("merge it when that run has ended: `signoff status` shows its progress")
        })?;
        let log = project.store.log(run)?;
        let run_state = RunState::from_run_log(run, &log);
        let state = run_state.loops.get(loop_id).map(|loop_state| &loop_state.machine);
        if state.is_some_and(|state| state.landed) {
            return Ok(Some(landed_commit(&log, loop_id).unwrap_or_default()));
        }
        if state.is_some_and(Loop::is_done) {
            let (row, _) = project.read_only().task_and_all(task)?;
            approved(&row)?;
            let granted = facts(&run_state, loop_id, LoopCommand::Report(Event::LandingGranted), None)?;
            project.store.append(&lease, clock::now(), &granted)?;
        }
        let no_ask = console.no_ask || project.settings.no_ask();
        let drive = DriveOptions { only: vec![task], no_ask, ..DriveOptions::default() };
        let request = RunRequest { resumed: vec![lease], drive, ..RunRequest::default() };
        let result = run_loop::run(project, request, console)?;
        if result.summary.interrupted {
            return Ok(None);
        }
        let errors = result.summary.errors;
        drop((result.ctx, result.store));
        project = Project::open()?;
        check_progress(&project, task, run, loop_id, errors)?;
    }
}

/// Fails if the loop neither landed nor ended, because it then waits for the user. Errors of other loops of the run are
/// only printed if this one has landed.
fn check_progress(
    project: &Project,
    task: TaskId,
    run: RunId,
    loop_id: &LoopId,
    errors: Vec<EngineError>,
) -> Result<()> {
    let run_state = queries::run_state(&*project.store, run)?;
    let state = run_state.loops.get(loop_id).map(|loop_state| &loop_state.machine);
    if state.is_some_and(|state| state.landed) {
        errors.into_iter().for_each(|error| write_stderr(&CliError::from(error).to_string()));
        return Ok(());
    }
    run_loop::fail_with(errors)?;
    if state.is_some_and(Loop::is_done) {
        return Ok(());
    }
    let (row, _) = project.read_only().task_and_all(task)?;
    Err(CliError::failed(format!("task {task} has not landed: {}", status_line(&row).trim_end()))
        .hint("`signoff` shows what it waits for; then merge it again"))
}

/// The commit that a loop's landing created.
fn landed_commit(log: &[RecordedFact], loop_id: &LoopId) -> Option<String> {
    log.iter().rev().find_map(|recorded| match &recorded.fact {
        Fact::Loop(
            of,
            LoopFact::Transitioned(Event::LandingEnded { report: LandingReport::Landed { commit }, .. }),
        ) if of == loop_id => Some(commit.to_string()),
        Fact::Loop(..) | Fact::Run(_) | Fact::Task(..) => None,
    })
}

/// Waits for `work` and prints a note if it takes long.
fn wait_with_note<T>(work: impl Future<Output = Result<T, EngineError>>, console: &Console) -> Result<T> {
    let runtime = run_loop::runtime()?;
    let done = runtime.block_on(async {
        tokio::pin!(work);
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(NOTE_DELAY) => console.note("Landing takes a while: checks are running, or another landing holds the lock"),
        }
        work.await
    });
    Ok(done?)
}

/// Returns a callback that prints the notes of a landing.
fn note_printer(console: &Console) -> impl Fn(LandingProgress) + Send + Sync {
    let console = *console;
    move |event| match event {
        LandingProgress::Note(note) => console.note(&note),
        LandingProgress::Stoppable(_) | LandingProgress::Waiting => {}
    }
}

/// Delay before a note about a long wait.
const NOTE_DELAY: Duration = Duration::from_secs(3);

/// Lands a commit without a loop.
fn land_directly(project: Project, direct: DirectLanding, console: &Console) -> Result<LandedWork> {
    let target = project.repository.default_branch()?;
    wait_with_note(landing::check_ready(&project.repository, &target), console)?;
    let (what, commit) = (direct.what.clone(), direct.commit.clone());
    let ctx = Arc::new(run_loop::engine_context(project)?);
    let landing_result = wait_with_note(landing::land(&ctx, direct, &note_printer(console)), console)?;
    let (commit, now) = landing_result.into_landed(LandingAttempt { what: &what, target: &target, commit: &commit })?;
    Ok(LandedWork { target, commit: commit.to_string(), when: LandedWhen::new(now) })
}
