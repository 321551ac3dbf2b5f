//! Lands approved work on the default branch, for `merge` and `land`.

use std::sync::Arc;
use std::time::Duration;

use signoff_core::command::LoopCommand;
use signoff_core::ids::{Commit, LoopId, RunId, TaskId};
use signoff_core::machine::{Event, Loop, Stage};
use signoff_core::settings::LandingMethod;
use signoff_core::view::inbox::{self, NextStep};
use signoff_core::view::{RunState, TaskRow, is_run_branch};
use signoff_engine::clock;
use signoff_engine::dispatcher::RunLoopOptions;
use signoff_engine::error::EngineError;
use signoff_engine::git::{GitError, Repository};
use signoff_engine::landing::{
    self, ApprovedRange, DirectLanding, LandingAttempt, LandingCandidate, LandingLock, LandingProgress, LandingRecords,
};
use signoff_store::{Store, StoreError};
use signoff_term::json::LandedStatus;
use signoff_term::status::status_line;

use crate::command::decide::facts;
use crate::console::write_stderr;
use crate::error::unapproved_hint;
use crate::project::user_git;
use crate::run_loop::{self, RunRequest, RunResult};
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
    pub fn status(self) -> LandedStatus {
        match self {
            Self::Now => LandedStatus::Landed,
            Self::Before | Self::NoChanges => LandedStatus::Already,
        }
    }

    fn new(now: bool) -> Self {
        if now { Self::Now } else { Self::Before }
    }
}

/// Waits until no other `land` or `merge` runs in the repository.
pub fn acquire_landing_lock(console: &Console) -> Result<Option<LandingLock>> {
    let repository = Repository::discover(&user_git(), &host::current_directory()?)?;
    wait_with_note(landing::lock_for_command(&repository), console)
}

/// Lands one task on the default branch. Returns `None` if it was interrupted; the next `signoff work` continues.
pub fn land_task(read_only: &ReadOnlyProject, task: TaskId, console: &Console) -> Result<Option<LandedWork>> {
    let project = read_only.open_for_work()?;
    let (row, rows) = read_only.task_and_all(task)?;
    let (run, loop_id) = read_only.loop_of(task)?;
    let run_state = project.store.preload(run)?;
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
        let is_in = is_on_branch(&project, &commit, &target)? || has_landed(&project, &run_state, &loop_id, &target)?;
        if run_state.has_final_review() && (!is_in || run_commit(&project, &run_state, &target).is_ok()) {
            return land_with_run(&project, &run_state, console).map(Some);
        }
        if is_in {
            return Ok(Some(LandedWork { target, commit: commit.to_string(), when: LandedWhen::Before }));
        }
        let (what, own) = (format!("task {task}"), ApprovedRange::for_task(&row));
        if !lands_through_loop(&run_state, &loop_id, &row) {
            let commit = with_check_off_commit(read_only, &row, &rows, commit);
            let (name, message) = (format!("task-{task}"), format!("Merge task {task}: {}", row.title));
            let direct = DirectLanding { run, what, name, commit, message, own };
            return land_directly(project, direct, console).map(Some);
        }
        // Check before anything is recorded.
        let candidate = LandingCandidate { what: &what, run, commit: &commit, own: own.as_ref(), can_rereview: true };
        landing::check(records(&project), &target, candidate)?;
        wait_with_note(landing::check_ready(&project.repository, &target), console)?;
    }
    let commit = land_through_loop(read_only, task, console)?;
    Ok(commit.map(|commit| LandedWork { target, commit, when: LandedWhen::Now }))
}

/// Lands the whole run of a task. A run with a final review may have fixes that belong to no task.
fn land_with_run(project: &Project, run_state: &RunState, console: &Console) -> Result<LandedWork> {
    let target = project.repository.default_branch()?;
    let commit = run_commit(project, run_state, &target)?;
    if !is_on_branch(project, &commit, &target)? {
        console.note(&format!("Run {} lands as a whole, with the fixes of its final review", run_state.run));
    }
    land_run(&project.read_only(), run_state.run, console)
}

/// Returns the commit that lands for a run. Fails if not all of it was reviewed.
pub fn run_commit(project: &Project, run_state: &RunState, target: &str) -> Result<Commit, EngineError> {
    let commit = landing::approved_commit(&project.repository, run_state)?;
    let (what, own) = (format!("run {}", run_state.run), landing::approved_range(run_state));
    let candidate =
        LandingCandidate { what: &what, run: run_state.run, commit: &commit, own: own.as_ref(), can_rereview: false };
    landing::check(records(project), target, candidate)?;
    Ok(commit)
}

/// Checks that a run may land.
pub fn check_run(read_only: &ReadOnlyProject, run: RunId) -> Result<()> {
    let project = read_only.open_for_work()?;
    let run_state = queries::run_state(&*project.store, run)?;
    run_commit(&project, &run_state, &project.repository.default_branch()?)?;
    Ok(())
}

/// Checks that a task may land.
pub fn check_task(read_only: &ReadOnlyProject, task: TaskId) -> Result<()> {
    let project = read_only.open_for_work()?;
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
    let can_rereview = lands_through_loop(&run_state, &loop_id, &row);
    let candidate = LandingCandidate { what: &what, run, commit: &commit, own: own.as_ref(), can_rereview };
    Ok(landing::check(records(&project), &target, candidate)?)
}

/// Lands the approved commit of a run, even if the branch has moved since.
pub fn land_run(read_only: &ReadOnlyProject, run: RunId, console: &Console) -> Result<LandedWork> {
    let project = read_only.open_for_work()?;
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
    landing && !run_state.lands_on_run(loop_id)
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
pub fn has_landed(project: &Project, run_state: &RunState, loop_id: &LoopId, target: &str) -> Result<bool> {
    match (project.settings.landing(), landed_commit(run_state, loop_id)) {
        (LandingMethod::Rebase, Some(commit)) => is_on_branch(project, commit, target),
        (LandingMethod::Merge | LandingMethod::Rebase, _) => Ok(false),
    }
}

/// Whether a task's own loop lands it on the default branch and resolves conflicts. Tasks of a plan share a branch,
/// and other tasks may have landed on their run's branch before.
fn lands_through_loop(run_state: &RunState, loop_id: &LoopId, row: &TaskRow) -> bool {
    let landed = run_state.loops.get(loop_id).is_some_and(|loop_state| loop_state.machine.landed);
    !landed && !run_state.lands_on_run(loop_id) && !row.branch.as_deref().is_some_and(is_run_branch)
}

/// Returns the approved commit of a task. Fails if it is not approved.
pub fn approved(row: &TaskRow) -> Result<Commit> {
    match &row.approved_commit {
        Some(commit) if inbox::may_land(row) => Ok(Commit::new(commit.clone())),
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
    let message = if inbox::waits_for_its_group(row) {
        format!("task {task} is approved and lands with its group")
    } else {
        format!("task {task} is not approved ({})", status_line(row).trim_end())
    };
    let next = NextStep::to_approve(row, std::slice::from_ref(row));
    CliError::failed(message).hint(unapproved_hint(TaskId(task), &next))
}

/// For the last task of a plan, returns the commit that also checks off the plan's tasks.
fn with_check_off_commit(project: &ReadOnlyProject, row: &TaskRow, rows: &[TaskRow], commit: Commit) -> Commit {
    let Some(branch) = row.branch.as_deref().filter(|branch| is_run_branch(branch)) else { return commit };
    let later = |other: &TaskRow| other.branch == row.branch && other.id > row.id && other.base.is_some();
    if rows.iter().any(later) { commit } else { project.tip_if_check_off_commit(branch).map_or(commit, Commit::new) }
}

/// Lands a task through its loop, again after each time it is sent back and approved again. The limits of the loop
/// bound the repetition. Returns the commit, or `None` if it was interrupted.
fn land_through_loop(read_only: &ReadOnlyProject, task: TaskId, console: &Console) -> Result<Option<String>> {
    let (run, ref loop_id) = read_only.loop_of(task)?;
    loop {
        let project = read_only.open_for_work()?;
        let lease = run_loop::try_acquire(&*project.store, run)?.ok_or_else(|| {
            CliError::from(StoreError::LeaseHeld(run))
                .hint("merge it when that run has ended: `signoff status` shows its progress")
        })?;
        let mut run_state = project.store.preload(run)?;
        let state = run_state.loops.get(loop_id).map(|loop_state| &*loop_state.machine);
        if state.is_some_and(|state| state.landed) {
            return Ok(Some(landed_commit(&run_state, loop_id).map(Commit::to_string).unwrap_or_default()));
        }
        if state.is_some_and(Loop::is_done) {
            let (row, _) = read_only.task_and_all(task)?;
            approved(&row)?;
            let granted = facts(&run_state, loop_id, LoopCommand::Report(Event::LandingGranted), None)?;
            project.store.append_to(&mut run_state, &lease, clock::now(), &granted)?;
        }
        let no_ask = console.no_ask || project.settings.no_ask();
        let options = RunLoopOptions { only: vec![task], no_ask, ..RunLoopOptions::default() };
        let request = RunRequest { resumed: vec![lease], options, ..RunRequest::default() };
        let RunResult { summary, .. } = run_loop::run(project, request, console)?;
        if summary.interrupted {
            return Ok(None);
        }
        let run_state = summary.states.get(&run);
        let state = run_state.and_then(|run_state| run_state.loops.get(loop_id)).map(|loop_state| &*loop_state.machine);
        if let (Some(run_state), true) = (run_state, state.is_some_and(|state| state.landed)) {
            // Errors of other loops of the run are only printed.
            summary.errors.into_iter().for_each(|error| write_stderr(&CliError::from(error).to_string()));
            return Ok(Some(landed_commit(run_state, loop_id).map(Commit::to_string).unwrap_or_default()));
        }
        run_loop::fail_with(summary.errors)?;
        if !state.is_some_and(Loop::is_done) {
            let (row, _) = read_only.task_and_all(task)?;
            return Err(CliError::failed(format!("task {task} has not landed: {}", status_line(&row).trim_end()))
                .hint("`signoff` shows what it waits for; then merge it again"));
        }
    }
}

/// The commit that a loop's last landing created.
fn landed_commit<'a>(run_state: &'a RunState, loop_id: &LoopId) -> Option<&'a Commit> {
    run_state.loops.get(loop_id)?.landed_commit.as_ref()
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
    let (commit, now) =
        landing_result.landed_commit(LandingAttempt { what: &what, target: &target, commit: &commit })?;
    Ok(LandedWork { target, commit: commit.to_string(), when: LandedWhen::new(now) })
}
