//! Records a user's decision about a loop, for `answer`, `retry`, `edit`, `cancel` and `dispute`.

use std::path::Path;

use signoff_core::command::{self, LoopCommand};
use signoff_core::group::{LoopStatus, RunEvent};
use signoff_core::ids::{LoopId, RunId};
use signoff_core::machine::{self, Event, Head, Loop, Stage};
use signoff_core::view::{LoopState, RunState};
use signoff_core::wire::{Fact, LoopFact, RunFact};
use signoff_engine::clock;
use signoff_engine::git::GitError;
use signoff_engine::workspace::WorktreeLock;
use signoff_engine::workspace::parallel_fixes::{
    ParallelNeed, allows_parallel_fixes, keep_unused_commits, parallel_worktrees,
};
use signoff_store::{Lease, Store};

use crate::run_loop::try_acquire;
use crate::{CliError, Console, ReadOnlyProject, Result, host};

/// How a decision was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum DecisionResult {
    /// It is in the log. The note says where unused work was saved.
    Recorded { note: Option<String> },
    /// The process that drives the run has taken it over and continues.
    HandedOver,
}

impl DecisionResult {
    /// A note for the user.
    pub fn note(&self) -> Option<&str> {
        match self {
            Self::Recorded { note } => note.as_deref(),
            Self::HandedOver => None,
        }
    }

    /// Prints the note.
    pub fn print_note(&self, console: &Console) {
        if let Some(note) = self.note() {
            console.note(note);
        }
    }
}

/// Records a decision, or hands it over to the process that drives the run.
pub fn decide(project: &ReadOnlyProject, run: RunId, loop_id: &LoopId, command: LoopCommand) -> Result<DecisionResult> {
    match try_acquire(&*project.store, run)? {
        Some(lease) => record(project, &lease, loop_id, command),
        None => hand_over(project, run, loop_id, &command),
    }
}

fn record(project: &ReadOnlyProject, lease: &Lease, loop_id: &LoopId, command: LoopCommand) -> Result<DecisionResult> {
    let mut run_state = project.store.preload(lease.run())?;
    // Agents continue after these decisions.
    let continues = matches!(command, LoopCommand::Answer { .. } | LoopCommand::Retry { .. });
    let manual_head = if continues { commit_manual_changes(project, &run_state, loop_id)? } else { None };
    let facts = facts(&run_state, loop_id, command, manual_head)?;
    project.store.append_to(&mut run_state, lease, clock::now(), &facts)?;
    Ok(DecisionResult::Recorded { note: remove_parallel_worktrees(project, lease, loop_id, &mut run_state)? })
}

/// Removes the worktrees of parallel fixes if the loop continues without them. Returns a note that says where their
/// work was saved.
fn remove_parallel_worktrees(
    project: &ReadOnlyProject,
    lease: &Lease,
    loop_id: &LoopId,
    run_state: &mut RunState,
) -> Result<Option<String>> {
    let run = lease.run();
    let Some(loop_state) = run_state.loops.get(loop_id) else { return Ok(None) };
    let Some(own) = loop_state.workspace.as_ref().map(|workspace| Path::new(&workspace.worktree)) else {
        return Ok(None);
    };
    if ParallelNeed::for_stage(&loop_state.machine.stage) != ParallelNeed::Nothing
        || !run_state.policy(loop_id).is_some_and(allows_parallel_fixes)
    {
        return Ok(None);
    }
    let repository = project.repository()?;
    let note = keep_unused_commits(&repository, run, loop_id, &loop_state.branch);
    for worktree in parallel_worktrees(&repository, own) {
        repository.remove_parallel_worktree(&worktree).ok();
    }
    if let Some((note, attempt)) = note.clone().zip(loop_state.attempt_starts.keys().next_back().copied()) {
        let noted = Fact::Loop(loop_id.clone(), LoopFact::Noted { attempt, note });
        project.store.append_to(run_state, lease, clock::now(), &[noted])?;
    }
    Ok(note)
}

/// Commits the user's own changes in the worktree, so that a review does not undo them. Returns the new head if the
/// branch has moved.
fn commit_manual_changes(project: &ReadOnlyProject, run_state: &RunState, loop_id: &LoopId) -> Result<Option<Head>> {
    let found = run_state.loops.get(loop_id).and_then(|loop_state| Some((loop_state, loop_state.workspace.as_ref()?)));
    // Planning and checkpoint reviews have no branch that the user could change; the final review uses the run's
    // branch.
    let Some((loop_state, workspace)) = found else { return Ok(None) };
    let branch = if *loop_id == LoopId::final_review() { run_state.run.branch() } else { loop_state.branch.clone() };
    if branch.is_empty() {
        return Ok(None);
    }
    let _worktree_lock = WorktreeLock::acquire(&project.layout(), Path::new(&workspace.worktree))?;
    let repository = project.repository()?;
    let head = match repository.worktree(Path::new(&workspace.worktree)) {
        Ok(worktree) if worktree.exists() => Some(worktree.commit_all("Changes by hand")?.head),
        Ok(_) | Err(GitError::WorktreeGone(_)) => repository.head_of(&branch)?,
        Err(error) => return Err(error.into()),
    };
    Ok(head.filter(|head| *head != loop_state.machine.head))
}

/// Returns the facts to record about a loop and its run.
pub fn facts(
    run_state: &RunState,
    loop_id: &LoopId,
    command: LoopCommand,
    manual_head: Option<Head>,
) -> Result<Vec<Fact>> {
    let state_and_policy = run_state.loops.get(loop_id).zip(run_state.policy(loop_id));
    let Some((loop_state, policy)) = state_and_policy else {
        return Err(CliError::failed("the log has no loop for this task").hint("`signoff doctor` checks the store"));
    };
    let decided = command::decide(&loop_state.machine, command, policy)?;
    let step = |state, event: &Event| machine::step(state, event.clone(), policy).0;
    // A writer reports the head when it ends; only reviews and checks need it before.
    let next = step(Loop::clone(&loop_state.machine), &decided);
    let is_read = matches!(next.stage, Stage::Reviewing(_) | Stage::Checking { .. });
    let moved = manual_head.filter(|_| is_read).map(|head| Event::HeadMoved { head });
    // A waiting loop gets the new head before the decision. A loop that has ended ignores it until it is restarted.
    let ended = matches!(loop_state.machine.stage, Stage::Done(_));
    let events: Vec<Event> =
        if ended { [decided].into_iter().chain(moved).collect() } else { moved.into_iter().chain([decided]).collect() };
    let next = events.iter().fold(Loop::clone(&loop_state.machine), step);
    if run_state.machine.is_done() && matches!(next.stage, Stage::AwaitingLanding { .. }) {
        return Err(run_is_over(run_state, loop_state));
    }
    let own = |event| Fact::Loop(loop_id.clone(), LoopFact::Transitioned(event));
    let mut facts: Vec<Fact> = events.into_iter().map(own).collect();
    let status = LoopStatus::for_loop(&next);
    if status != LoopStatus::for_loop(&loop_state.machine) && loop_id.affects_run_state() {
        let moved = RunEvent::LoopStatusChanged { loop_id: loop_id.clone(), status };
        facts.push(Fact::Run(RunFact::Transitioned(moved)));
    }
    Ok(facts)
}

/// The error for work that lands with its group, if the run is already over.
fn run_is_over(run_state: &RunState, loop_state: &LoopState) -> CliError {
    let task = loop_state.task.map(|task| format!("task {task}")).unwrap_or_default();
    let merge_hint = loop_state
        .workspace
        .as_ref()
        .map(|_| format!(", or merge its branch by hand: git merge {}", loop_state.branch));
    CliError::usage(format!("{task} cannot land any more: its run {} is over", run_state.run))
        .hint(format!("`signoff add` adds a new task{}", merge_hint.unwrap_or_default()))
}

/// Posts a request and waits for the other process, which polls several times a second. If that process ends without an
/// answer, the decision is recorded here.
fn hand_over(project: &ReadOnlyProject, run: RunId, loop_id: &LoopId, command: &LoopCommand) -> Result<DecisionResult> {
    let request = project.store.post_request(run, loop_id, command)?;
    for _ in 0..MAX_POLLS {
        let lease = try_acquire(&*project.store, run)?;
        match (project.store.request_answer(request)?, lease) {
            (Some(Ok(())), _) => return Ok(DecisionResult::HandedOver),
            (Some(Err(refusal)), _) => return Err(CliError::refused(refusal)),
            (None, Some(lease)) => {
                let result = record(project, &lease, loop_id, command.clone());
                project.store.answer_request(request, result.as_ref().err().map(|failure| failure.message.as_str()))?;
                return result;
            }
            (None, None) => host::sleep_briefly(),
        }
    }
    Err(CliError::failed(format!("the process that works on run {run} did not answer"))
        .hint("it will apply your decision with its next poll; `signoff status` shows the result"))
}

/// Number of polls for an answer.
const MAX_POLLS: usize = 100;
