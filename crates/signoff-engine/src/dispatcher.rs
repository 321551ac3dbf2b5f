//! The dispatcher owns the state of all runs. It handles one input at a time: it records facts, then executes the
//! effects that follow from them.
//!
//! A fact is in the log before its effects start. Decisions depend only on what the log contains.

mod budget;
mod effects;
mod input;
mod launch_queue;
mod loop_start;
mod parallel_fixes;
mod pick;
mod record;
mod recover;
mod run_stages;
mod tracker_sync;
mod user_input;

pub use input::{
    DispatcherInput, DispatcherNotice, Interrupt, PreparedWorkspace, Renderer, RunLoopOptions, RunLoopSummary,
};
pub use pick::{loop_id, ready};

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;

use signoff_core::group::RunEffect;
use signoff_core::ids::{AttemptId, LoopId, QuestionId, RunId};
use signoff_core::machine::{self, AttemptLoss, Effect, Event, Policy, WorkReport};
use signoff_core::view::{LoopState, RunState, Transition};
use signoff_core::wire::{Fact, LoopFact};
use signoff_store::{Lease, Store};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::attempt::{AttemptEnd, EngineContext, NOTHING_TO_CHECK};
use crate::check_off::{self, UncheckedEntries};
use crate::error::EngineError;
use crate::executor::{AttemptKey, AttemptResult, Backends};
use crate::process::StopHandle;
use crate::workspace::WorktreeLock;
use pick::PickStart;
use tracker_sync::TrackerState;

/// A run that this process works on.
struct ActiveRun {
    lease: Lease,
    state: RunState,
    /// The running attempts, with a way to stop them once their process has started.
    running: BTreeMap<(LoopId, AttemptId), Option<StopHandle>>,
    /// Loops whose workspace is being created.
    creating_workspaces: BTreeSet<LoopId>,
    /// Loops that may have worktrees for parallel fixes.
    with_parallel_fixes: BTreeSet<LoopId>,
    /// The locks on the worktrees of running loops.
    locks: BTreeMap<LoopId, WorktreeLock>,
    /// Progress of landing its branch on the default branch.
    landing: RunLanding,
    /// State of the calls to its tracker.
    tracking: TrackerState,
}

impl ActiveRun {
    fn new(lease: Lease, run_state: RunState) -> Self {
        Self {
            lease,
            state: run_state,
            running: BTreeMap::new(),
            creating_workspaces: BTreeSet::new(),
            with_parallel_fixes: BTreeSet::new(),
            locks: BTreeMap::new(),
            landing: RunLanding::Idle,
            tracking: TrackerState::default(),
        }
    }
}

/// Progress of landing a run on the default branch.
#[derive(Debug)]
enum RunLanding {
    /// It is not being landed.
    Idle,
    Started,
    Stoppable(StopHandle),
}

impl ActiveRun {
    /// Whether anything is running that will end on its own.
    fn is_running(&self) -> bool {
        !self.running.is_empty() || !matches!(self.landing, RunLanding::Idle)
    }

    /// The stoppers of everything that is running.
    fn stoppers(&self) -> impl Iterator<Item = &StopHandle> {
        let landing = match &self.landing {
            RunLanding::Stoppable(stopper) => Some(stopper),
            RunLanding::Idle | RunLanding::Started => None,
        };
        self.running.values().flatten().chain(landing)
    }
}

/// An effect that is still to be executed.
enum PendingEffect {
    Loop(RunId, LoopId, Effect),
    Run(RunId, RunEffect),
}

pub struct Dispatcher<'r> {
    ctx: Arc<EngineContext>,
    backends: Backends,
    store: Arc<dyn Store>,
    options: RunLoopOptions,
    runs: BTreeMap<RunId, ActiveRun>,
    inputs: mpsc::UnboundedReceiver<DispatcherInput>,
    sender: mpsc::UnboundedSender<DispatcherInput>,
    renderer: &'r mut dyn Renderer,
    pending_effects: VecDeque<PendingEffect>,
    /// Launches that wait for a free agent or for reserved budget.
    waiting: VecDeque<launch_queue::QueuedLaunch>,
    /// How often the timer has fired.
    ticks: u32,
    /// Runs that would pick another task if a slot were free.
    deferred: BTreeSet<RunId>,
    interrupt: Option<Interrupt>,
    /// Questions that the attending user leaves for later.
    deferred_questions: BTreeSet<(RunId, LoopId, QuestionId)>,
    /// The store version that was last checked for requests.
    seen_version: u64,
    summary: RunLoopSummary,
    /// Cleanup jobs in the background.
    cleanup_jobs: JoinSet<()>,
}

impl<'r> Dispatcher<'r> {
    pub fn new(
        ctx: Arc<EngineContext>,
        backends: Backends,
        options: RunLoopOptions,
        renderer: &'r mut dyn Renderer,
    ) -> Self {
        let (sender, inputs) = mpsc::unbounded_channel();
        Self {
            store: ctx.store.clone(),
            ctx,
            backends,
            options,
            runs: BTreeMap::new(),
            inputs,
            sender,
            renderer,
            pending_effects: VecDeque::new(),
            waiting: VecDeque::new(),
            ticks: 0,
            deferred: BTreeSet::new(),
            interrupt: None,
            deferred_questions: BTreeSet::new(),
            seen_version: 0,
            summary: RunLoopSummary::default(),
            cleanup_jobs: JoinSet::new(),
        }
    }

    /// The channel for signals and other outside inputs.
    pub fn input_sender(&self) -> mpsc::UnboundedSender<DispatcherInput> {
        self.sender.clone()
    }

    /// Resumes a run from its log.
    pub fn resume_run(&mut self, lease: Lease) -> Result<(), EngineError> {
        let run = lease.run();
        let renderer = &mut *self.renderer;
        let mut replayed = |transition: &Transition| renderer.show(&DispatcherNotice::Replayed(transition));
        let run_state = self.store.load(run, &mut replayed)?;
        self.renderer.show(&DispatcherNotice::Resumed { run });
        self.runs.insert(run, ActiveRun::new(lease, run_state));
        self.recover(run)?;
        // Execute the effects now, so that the next run to open sees the used slots.
        self.run_effects()
    }

    /// Opens a run with its first facts.
    pub fn open(&mut self, lease: Lease, facts: Vec<Fact>) -> Result<(), EngineError> {
        let run = lease.run();
        let run_state = RunState::new(run);
        self.runs.insert(run, ActiveRun::new(lease, run_state));
        match pick::initial_state(&facts) {
            Some((_, policy)) if policy.task_source.is_tracker() => self.open_for_tracker(run, facts, policy),
            Some((machine, policy)) => self.record_and_pick(run, PickStart { facts, machine, policy }, Vec::new()),
            None => self.append(run, facts),
        }
    }

    /// Runs until nothing is left that can continue without a user.
    pub async fn run(mut self) -> Result<RunLoopSummary, EngineError> {
        let ticker = self.start_ticking();
        let end = self.process_inputs().await;
        ticker.abort();
        if end.is_err() {
            self.stop_all(Interrupt::Kill);
            self.await_agents().await;
        }
        if end.is_ok() {
            self.check_off_plans().await;
            self.report_unlanded();
        }
        while self.cleanup_jobs.join_next().await.is_some() {}
        let stage = |(run, active): (&RunId, &ActiveRun)| (*run, active.state.machine.stage.clone());
        self.summary.runs = self.runs.iter().map(stage).collect();
        self.summary.states = self.runs.into_iter().map(|(run, active)| (run, active.state)).collect();
        end.map(|()| self.summary)
    }

    /// Checks off finished tasks in their plan files before the process ends.
    async fn check_off_plans(&mut self) {
        for (run, active) in &self.runs {
            let done = check_off::finished_entries(&active.state);
            let worktree = self.ctx.layout.run_worktree(*run);
            let (ctx, in_file, run) = (self.ctx.clone(), self.options.check_off_in_checkout, *run);
            let ticking = move || {
                let in_branch = if worktree.is_dir() {
                    check_off::in_branch(&ctx, run, &done)?
                } else {
                    UncheckedEntries::default()
                };
                let in_file = if in_file { check_off::in_checkout(&ctx, &done)? } else { UncheckedEntries::default() };
                Ok::<UncheckedEntries, EngineError>(in_branch.max(in_file))
            };
            match tokio::task::spawn_blocking(ticking).await {
                Err(_) => {}
                Ok(Ok(missed)) => {
                    for note in missed.notes() {
                        self.renderer.show(&DispatcherNotice::Note(&note));
                    }
                }
                Ok(Err(error)) => self.summary.errors.push(error),
            }
        }
    }

    async fn process_inputs(&mut self) -> Result<(), EngineError> {
        self.run_effects()?;
        while !self.is_idle() {
            let Some(input) = self.inputs.recv().await else { break };
            self.handle(input)?;
            self.run_effects()?;
        }
        Ok(())
    }

    fn is_idle(&self) -> bool {
        let is_quiet =
            |run: &ActiveRun| !run.is_running() && run.creating_workspaces.is_empty() && run.tracking.is_idle();
        let quiet = self.runs.values().all(is_quiet);
        let waits = self.options.watch && self.interrupt.is_none();
        quiet && !waits && !self.waits_for_time() && !self.awaits_answer()
    }

    /// Whether a loop waits only for a rate limit to end.
    fn waits_for_time(&self) -> bool {
        let timed = |reason: &machine::PauseReason| matches!(reason, machine::PauseReason::RateLimit { .. });
        let loops = self.runs.values().flat_map(|run| run.state.loops.values());
        self.interrupt.is_none()
            && loops.into_iter().any(|loop_state| loop_state.machine.pause_reasons().iter().any(timed))
    }

    /// Polls the store for requests of other processes.
    fn start_ticking(&self) -> tokio::task::JoinHandle<()> {
        let sender = self.sender.clone();
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(std::time::Duration::from_millis(200));
            ticks.tick().await;
            while sender.send(DispatcherInput::TimerFired).is_ok() {
                ticks.tick().await;
            }
        })
    }

    fn handle(&mut self, input: DispatcherInput) -> Result<(), EngineError> {
        match input {
            DispatcherInput::WorkspaceCreated { run, loop_id, result } => self.workspace_created(run, &loop_id, result),
            DispatcherInput::Running { attempt, stopper } => {
                self.attempt_running(attempt, stopper);
                Ok(())
            }
            DispatcherInput::OutputLine { attempt: AttemptKey { run, loop_id, attempt }, line, backpressure } => {
                let (loop_id, line, backpressure) = (&loop_id, line.as_str(), &backpressure);
                self.renderer.show(&DispatcherNotice::OutputLine { run, loop_id, attempt, line, backpressure });
                Ok(())
            }
            DispatcherInput::AttemptEnded { attempt, result } => self.attempt_ended(attempt, *result),
            DispatcherInput::PauseElapsed { run, loop_id, reason } => {
                self.loop_event(run, &loop_id, Event::Resumed { reason }, vec![])
            }
            DispatcherInput::Offered { run, result } => self.tracker_answered(run, result),
            DispatcherInput::ClaimLost { run, loop_id, id, reason } => self.claim_lost(run, &loop_id, id, &reason),
            DispatcherInput::Closed { run, loop_id, result } => self.task_closed(run, loop_id, result),
            DispatcherInput::Interrupted(interrupt) => {
                self.interrupt_requested(interrupt);
                Ok(())
            }
            DispatcherInput::Decided { run, loop_id, command } => self.user_decided(run, &loop_id, command),
            DispatcherInput::QuestionDeferred { run, loop_id, question } => {
                self.deferred_questions.insert((run, loop_id, question));
                Ok(())
            }
            DispatcherInput::Attended(attended) => {
                self.options.attended = attended;
                Ok(())
            }
            DispatcherInput::Note(note) => {
                self.renderer.show(&DispatcherNotice::Note(&note));
                Ok(())
            }
            DispatcherInput::Landing { run, stopper } => {
                self.landing_started(run, stopper);
                Ok(())
            }
            DispatcherInput::Landed { run, result } => self.run_landed(run, result),
            DispatcherInput::TimerFired => {
                self.count_usage()?;
                self.poll_store()
            }
        }
    }

    fn attempt_running(&mut self, AttemptKey { run, loop_id, attempt }: AttemptKey, stopper: StopHandle) {
        let Some(active) = self.runs.get_mut(&run) else { return };
        let is_running = active.state.loops.get(&loop_id).is_some_and(|loop_state| loop_state.machine.runs(attempt));
        match self.interrupt {
            Some(interrupt @ (Interrupt::Kill | Interrupt::Stop)) => interrupt.stop(&stopper),
            Some(Interrupt::Finish) | None if !is_running => stopper.stop(),
            Some(Interrupt::Finish) | None => {}
        }
        if let Some(slot) = active.running.get_mut(&(loop_id, attempt)) {
            *slot = Some(stopper);
        }
    }

    /// Locks the worktree for a loop. If another process holds it, the loop does not continue.
    fn lock_worktree(&mut self, run: RunId, loop_id: &LoopId, worktree: &Path) -> bool {
        let Some(active) = self.runs.get_mut(&run) else { return false };
        if active.locks.contains_key(loop_id) {
            return true;
        }
        // The tasks of a chain share one worktree: finished tasks release it.
        active
            .locks
            .retain(|other, _| active.state.loops.get(other).is_some_and(|loop_state| !loop_state.machine.is_done()));
        match WorktreeLock::acquire(&self.ctx.layout, worktree) {
            Ok(lock) => active.locks.insert(loop_id.clone(), lock).is_none(),
            Err(error) => {
                self.record_error(run, loop_id, error);
                false
            }
        }
    }

    /// Handles the end of an attempt.
    fn attempt_ended(&mut self, attempt: AttemptKey, result: AttemptResult) -> Result<(), EngineError> {
        let AttemptKey { run, loop_id, attempt } = attempt;
        let AttemptResult { end, usage, notes, facts, stops_picking } = result;
        if let Some(active) = self.runs.get_mut(&run) {
            active.running.remove(&(loop_id.clone(), attempt));
        }
        self.release_worktree(run, &loop_id);
        self.remove_parallel_worktrees(run, &loop_id)?;
        self.forget_homes(run, &loop_id);
        let usage = usage.fieldwise_max(self.known_usage(run, &loop_id, attempt));
        self.settle_usage(run, &loop_id, attempt, usage)?;
        for note in notes.iter().filter(|note| *note != NOTHING_TO_CHECK) {
            self.renderer.show(&DispatcherNotice::Note(note));
        }
        if stops_picking {
            self.stop_picking(run)?;
        }
        let noted = notes.into_iter().map(|note| LoopFact::Noted { attempt, note });
        let before = [LoopFact::Used { attempt, usage }].into_iter().chain(noted).chain(facts).collect();
        match end {
            AttemptEnd::Event(event) => {
                let no_work = matches!(*event, Event::WorkEnded { report: WorkReport::NoWorkLeft { .. }, .. });
                self.loop_event(run, &loop_id, *event, before)?;
                if no_work {
                    self.give_back(run, &loop_id);
                }
                Ok(())
            }
            AttemptEnd::Stopped => {
                self.loop_event(run, &loop_id, Event::AttemptLost { attempt, loss: AttemptLoss::Interrupted }, before)
            }
            AttemptEnd::SessionGone => {
                self.loop_event(run, &loop_id, Event::AttemptLost { attempt, loss: AttemptLoss::SessionGone }, before)
            }
            AttemptEnd::RateLimited(rate_limited) => {
                match self.rate_limited_event(run, &loop_id, attempt, rate_limited) {
                    Some(event) => self.loop_event(run, &loop_id, event, before),
                    None => Ok(()),
                }
            }
            AttemptEnd::Error(error) => {
                self.record_error(run, &loop_id, error);
                Ok(())
            }
        }
    }

    /// Records an error of the engine. The loop keeps its state, and continues next time.
    fn record_error(&mut self, run: RunId, loop_id: &LoopId, error: EngineError) {
        let task = self.loop_state(run, loop_id).and_then(|loop_state| loop_state.task);
        self.summary.tasks.extend(task);
        self.summary.errors.push(error);
    }

    fn loop_state(&self, run: RunId, loop_id: &LoopId) -> Option<&LoopState> {
        self.runs.get(&run)?.state.loops.get(loop_id).map(|loop_state| &**loop_state)
    }

    fn policy(&self, run: RunId, loop_id: &LoopId) -> Option<&Policy> {
        self.runs.get(&run)?.state.policy(loop_id)
    }
}
