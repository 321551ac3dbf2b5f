//! Executes the effects of recorded facts.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use signoff_core::group::RunEffect;
use signoff_core::ids::{AttemptId, LoopId, RunId};
use signoff_core::machine::{Effect, Event, Job, JobActor, JobKind, Loop, PauseReason, RetryAction, Stage};
use signoff_core::session::Sessions;
use signoff_core::settings::PhaseContext;
use signoff_core::task::TaskSpec;
use signoff_core::view::{LoopState, RunState, TaskStatus};
use signoff_core::wire::{Launch, LoopFact};
use signoff_core::workflow::Landing;

use super::launch_queue::QueuedLaunch;
use super::tracker_sync::PendingClaim;
use super::{ActiveRun, Dispatcher, DispatcherInput, Interrupt, PendingEffect};
use crate::attempt_spec::{AttemptSpec, RunPart, SiblingLoop};
use crate::clock;
use crate::error::EngineError;
use crate::executor::{AttemptKey, AttemptSink};
use crate::{attempt, failpoint, tracker, workspace};

/// The state of a loop that its launches depend on.
#[derive(Clone, Copy)]
pub(super) struct LaunchState<'a> {
    pub machine: &'a Loop,
    pub sessions: &'a Sessions,
}

impl Dispatcher<'_> {
    pub(super) fn run_effects(&mut self) -> Result<(), EngineError> {
        loop {
            while let Some(todo) = self.next() {
                match todo {
                    PendingEffect::Loop(run, loop_id, effect) => self.loop_effect(run, &loop_id, effect)?,
                    PendingEffect::Run(run, effect) => self.run_effect(run, effect)?,
                }
            }
            self.start_queued()?;
            if self.pending_effects.is_empty() {
                return Ok(());
            }
        }
    }

    /// The next pending effect; if there is none, a pick that waited for a free slot.
    fn next(&mut self) -> Option<PendingEffect> {
        self.pending_effects.pop_front().or_else(|| {
            let run = if self.interrupt.is_none() && self.free_slots() > 0 { self.deferred.pop_first() } else { None };
            run.map(|run| PendingEffect::Run(run, RunEffect::Pick { wanted: 1 }))
        })
    }

    fn loop_effect(&mut self, run: RunId, loop_id: &LoopId, effect: Effect) -> Result<(), EngineError> {
        match effect {
            Effect::Spawn(job) => return self.spawn(run, loop_id, job),
            Effect::Kill { attempt } => self.stop(run, loop_id, attempt),
            Effect::Wait { reason } => self.schedule_resume(run, loop_id, reason),
            Effect::Finish(_) => {
                self.forget_worktree(run, loop_id);
                self.forget_homes(run, loop_id);
            }
            // Questions are shown from the log.
            Effect::Ask(_) | Effect::AwaitLanding => {}
        }
        Ok(())
    }

    /// Drops the read-only state of a finished loop's worktree.
    fn forget_worktree(&self, run: RunId, loop_id: &LoopId) {
        if let Some(workspace) = self.loop_state(run, loop_id).and_then(|loop_state| loop_state.workspace.as_ref()) {
            self.ctx.read_guards.forget(Path::new(&workspace.worktree));
        }
    }

    /// Removes the homes of a loop's attempts when its sessions cannot be resumed any more. A failed loop may be
    /// retried.
    pub(super) fn forget_homes(&mut self, run: RunId, loop_id: &LoopId) {
        let Some(active) = self.runs.get(&run) else { return };
        let stage = active.state.loops.get(loop_id).map(|loop_state| &loop_state.machine.stage);
        let Some(Stage::Done(ending)) = stage else { return };
        let is_over = match ending.retry {
            RetryAction::Nothing | RetryAction::Restart | RetryAction::Land { .. } => true,
            RetryAction::Resume(_) | RetryAction::Fix | RetryAction::Work => false,
        };
        if is_over && !active.running.keys().any(|(other, _)| other == loop_id) {
            let attempts = self.ctx.layout.attempts(run, loop_id);
            self.cleanup_jobs.spawn_blocking(move || attempt::home::remove_homes(&attempts));
        }
    }

    fn run_effect(&mut self, run: RunId, effect: RunEffect) -> Result<(), EngineError> {
        match effect {
            RunEffect::Start { loop_id } => {
                self.start(run, loop_id);
                Ok(())
            }
            RunEffect::Pick { .. } => self.pick(run),
            RunEffect::GrantLanding { loop_id } => self.loop_event(run, &loop_id, Event::LandingGranted, Vec::new()),
            RunEffect::CloseTask { loop_id } => {
                self.close_task(run, loop_id);
                Ok(())
            }
            RunEffect::CancelLoop { loop_id } => {
                let event = Event::Cancelled { by: "the run".to_owned() };
                self.loop_event(run, &loop_id, event, Vec::new())
            }
            RunEffect::Prepare => self.start_planning(run),
            RunEffect::ReviewCheckpoint { loops } => self.start_checkpoint_reviews(run, loops),
            RunEffect::FinalReview => self.start_final_review(run),
            RunEffect::LandRun => {
                self.start_run_landing(run);
                Ok(())
            }
            // Blocked runs are shown from the log.
            RunEffect::Block { .. } | RunEffect::Finish(_) => Ok(()),
        }
    }

    /// Creates the workspace of a loop on a blocking thread.
    pub(super) fn start(&mut self, run: RunId, loop_id: LoopId) {
        if self.interrupt.is_some() {
            return;
        }
        let Some(spec) = self.task_spec(run, &loop_id) else { return };
        let Some(active) = self.runs.get(&run) else { return };
        let Some(request) = workspace::WorkspaceRequest::for_loop(&active.state, &loop_id, spec) else {
            return;
        };
        let path = self.backends.workspaces.path(&request);
        if !self.lock_worktree(run, &loop_id, &path) {
            return;
        }
        if let Some(active) = self.runs.get_mut(&run) {
            active.creating_workspaces.insert(loop_id.clone());
        }
        let claiming = self.pending_claim(run, &loop_id);
        let (workspaces, store, sender) = (self.backends.workspaces.clone(), self.store.clone(), self.sender.clone());
        tokio::task::spawn_blocking(move || {
            let after = match claiming.map_or(Ok(Vec::new()), PendingClaim::claim) {
                Ok(after) => after,
                Err(refused) => {
                    sender.send(*refused).ok();
                    return;
                }
            };
            let request = tracker::add_dependencies(&*store, request, &after);
            let result = request.and_then(|request| workspaces.create(&request));
            failpoint::pass("workspace_created");
            sender.send(DispatcherInput::WorkspaceCreated { run, loop_id, result }).ok();
        });
    }

    /// The task specification of a loop.
    pub(super) fn task_spec(&self, run: RunId, loop_id: &LoopId) -> Option<TaskSpec> {
        let run_state = &self.runs.get(&run)?.state;
        let reviewed = loop_id.checkpoint_target().map(|(target, _)| target);
        let loop_state = run_state.loops.get(reviewed.as_ref().unwrap_or(loop_id));
        let Some(task) = loop_state.and_then(|loop_state| loop_state.task) else {
            return run_state.subject.as_deref().cloned().or_else(|| self.ctx.subject.clone());
        };
        run_state.specs.get(&task).map(|spec| (**spec).clone()).or_else(|| self.store.task_spec(task).ok().flatten())
    }

    /// The attempt starts in these effects, as they are recorded.
    pub(super) fn launches(
        &self,
        run: RunId,
        loop_id: &LoopId,
        effects: &[Effect],
        state: LaunchState<'_>,
    ) -> Vec<LoopFact> {
        // A launch that may have to wait is recorded when it starts.
        if self.interrupt.is_some() || self.limits_launches() {
            return Vec::new();
        }
        let jobs = effects.iter().filter_map(|effect| if let Effect::Spawn(job) = effect { Some(job) } else { None });
        jobs.map(|job| LoopFact::AttemptStarted {
            attempt: job.attempt,
            launch: self.launch_now(run, loop_id, job, state),
        })
        .collect()
    }

    /// The launch of a job. A missing agent in the configuration is reported when the attempt is prepared.
    pub(super) fn launch(&self, run: RunId, loop_id: &LoopId, job: &Job) -> Launch {
        let Some(loop_state) = self.loop_state(run, loop_id) else {
            return self.launch_with_agent(run, loop_id, job, 0);
        };
        let state = LaunchState { machine: &loop_state.machine, sessions: &loop_state.sessions };
        let launch = self.launch_now(run, loop_id, job, state);
        // Use the recorded session.
        let recorded = loop_state.attempt_starts.get(&job.attempt).map(|launched| launched.launch.resumes.clone());
        Launch { resumes: recorded.unwrap_or(launch.resumes), ..launch }
    }

    /// The launch of a job in a state that is not recorded yet.
    fn launch_now(&self, run: RunId, loop_id: &LoopId, job: &Job, state: LaunchState<'_>) -> Launch {
        let LaunchState { machine, sessions } = state;
        let launch = self.launch_with_agent(run, loop_id, job, machine.agent_index(job.attempt));
        let by = self.ctx.settings.resume_policy();
        Launch { resumes: sessions.session_for(by, machine, job.attempt, &launch.agent), ..launch }
    }

    fn launch_with_agent(&self, run: RunId, loop_id: &LoopId, job: &Job, agent_index: usize) -> Launch {
        let policy = self.policy(run, loop_id);
        let phase = policy.and_then(|policy| policy.workflow.phases.get(job.phase));
        let (agent, model) = self.agent_for(run, loop_id, job, agent_index).unwrap_or_default();
        let phase = phase.map_or("land", |phase| phase.name.as_str()).to_owned();
        let reviewer = if let JobKind::Review { reviewer, .. } = &job.kind { Some(reviewer.clone()) } else { None };
        let sandbox = self.ctx.sandbox_backend(&job.kind, &agent);
        let role = job.kind.role().as_str().to_owned();
        Launch { agent, model, role, reviewer, phase, cycle: job.cycle, sandbox, resumes: None }
    }

    /// The agent for a job, and its model. `agent_index` selects a fallback.
    pub(super) fn agent_for(
        &self,
        run: RunId,
        loop_id: &LoopId,
        job: &Job,
        agent_index: usize,
    ) -> Option<(String, Option<String>)> {
        let spec = self.task_spec(run, loop_id).unwrap_or_default();
        let policy = self.policy(run, loop_id);
        let phase = policy.and_then(|policy| policy.workflow.phases.get(job.phase));
        let phase_context =
            policy.zip(phase).map(|(policy, phase)| PhaseContext { workflow: &policy.workflow, phase, task: &spec });
        let settings = &self.ctx.settings;
        match (job.actor(), phase_context) {
            (JobActor::Writer(role), Some(phase_context)) if matches!(job.kind, JobKind::Research { .. }) => {
                settings.researcher(role, phase_context, agent_index).ok().map(|one| (one.agent.name, one.model))
            }
            (JobActor::Writer(role), Some(phase_context)) => {
                settings.writer(role, phase_context, agent_index).ok().map(|one| (one.agent.name, one.model))
            }
            (JobActor::Reviewer(name), Some(phase_context)) => {
                settings.reviewer(&name, phase_context, agent_index).ok().map(|one| (one.agent.name, one.model))
            }
            (JobActor::Writer(_) | JobActor::Reviewer(_) | JobActor::Program, _) => Some(("checks".to_owned(), None)),
        }
    }

    /// Queues an attempt. It starts when an agent and budget are available.
    fn spawn(&mut self, run: RunId, loop_id: &LoopId, job: Job) -> Result<(), EngineError> {
        if self.interrupt.is_some() {
            // It stays outstanding, and the next process starts it.
            return Ok(());
        }
        self.waiting.push_back(QueuedLaunch { run, loop_id: loop_id.clone(), job });
        self.start_queued()
    }

    /// Starts an attempt.
    pub(super) fn start_attempt(&mut self, run: RunId, loop_id: &LoopId, job: Job) -> Result<(), EngineError> {
        let Some(spec) = self.attempt_spec(run, loop_id, job.clone()) else { return Ok(()) };
        if !self.lock_worktree(run, loop_id, Path::new(&spec.workspace.worktree)) {
            return Ok(());
        }
        self.record_start(run, loop_id, &job)?;
        self.summary.agents += usize::from(!matches!(job.kind, JobKind::Land | JobKind::Combine { .. }));
        let sink = self.mark_running(&spec);
        self.backends.executor.start(spec, sink);
        Ok(())
    }

    /// Finishes an attempt of a killed process from its files.
    pub(super) fn finish_attempt(
        &mut self,
        run: RunId,
        loop_id: &LoopId,
        job: Job,
        ended: crate::process::ProcessResult,
    ) {
        let Some(spec) = self.attempt_spec(run, loop_id, job) else { return };
        if !self.lock_worktree(run, loop_id, Path::new(&spec.workspace.worktree)) {
            return;
        }
        let sink = self.mark_running(&spec);
        self.backends.executor.finish(spec, ended, sink);
    }

    /// Counts an attempt as running until it reports its end to the returned sink.
    fn mark_running(&mut self, spec: &AttemptSpec) -> AttemptSink {
        let attempt = AttemptKey::from(spec);
        if let Some(active) = self.runs.get_mut(&spec.run) {
            active.running.insert((attempt.loop_id.clone(), attempt.attempt), None);
            active
                .with_parallel_fixes
                .extend(workspace::parallel_fixes::is_parallel(spec).then(|| spec.loop_id.clone()));
        }
        AttemptSink::new(attempt, self.sender.clone())
    }

    pub(super) fn attempt_spec(&self, run: RunId, loop_id: &LoopId, job: Job) -> Option<AttemptSpec> {
        let spec = self.task_spec(run, loop_id)?;
        let run_state = &self.runs.get(&run)?.state;
        let loop_state = run_state.loops.get(loop_id)?;
        let launch = self.launch(run, loop_id, &job);
        let part = RunPart::for_loop(loop_id, loop_state);
        let subject_loop = run_state.loops.get(part.as_ref().and_then(RunPart::reviewed_loop).unwrap_or(loop_id))?;
        let is_final_review = matches!(part, Some(RunPart::FinalReview));
        let policy = run_state.policy(loop_id)?.clone();
        let lands = policy.workflow.landing != Landing::None;
        let unreadable = loop_state.unreadable(&job);
        Some(AttemptSpec {
            run,
            loop_id: loop_id.clone(),
            task_id: subject_loop.task,
            part,
            task_spec: spec,
            branch: if is_final_review { run.branch() } else { loop_state.branch.clone() },
            workspace: loop_state.workspace.clone()?,
            target: lands.then(|| run.branch()),
            last_landed: run_state.last_landed.clone(),
            landing_heads: run_state.landing_heads(),
            started: subject_loop.started.unwrap_or_else(clock::now),
            job,
            launch,
            policy,
            machine: loop_state.machine.clone(),
            last_round: loop_state.last_round.clone(),
            siblings: sibling_loops(run_state, loop_id),
            agents_at_work: self.runs.values().map(agents_at_work).sum::<usize>().max(1),
            loops_in_worktree: self.loops_in_worktree(run, loop_id, &loop_state.workspace.as_ref()?.worktree),
            stop_marker: run_state.run_policy().is_some_and(|policy| policy.stop_marker),
            items: loop_state.tasks.clone(),
            item_start: loop_state.item_start.clone(),
            researched: loop_state.researched.clone(),
            rejected_answer: loop_state.rejected_answer_of_retry(),
            unreadable,
        })
    }

    /// Number of loops that run in a worktree, including this one.
    fn loops_in_worktree(&self, run: RunId, loop_id: &LoopId, worktree: &str) -> usize {
        let loops = self.runs.iter().flat_map(|(run, active)| {
            let at_work: BTreeSet<&LoopId> = active.running.keys().map(|(other, _)| other).collect();
            at_work.into_iter().map(move |other| (*run, other, active.state.loops.get(other)))
        });
        let others = loops.filter(|(other_run, other, loop_state)| {
            let workspace = loop_state.and_then(|loop_state| loop_state.workspace.as_ref());
            (*other_run, *other) != (run, loop_id) && workspace.is_some_and(|workspace| workspace.worktree == worktree)
        });
        others.count() + 1
    }

    fn stop(&mut self, run: RunId, loop_id: &LoopId, attempt: AttemptId) {
        let Some(active) = self.runs.get(&run) else { return };
        if let Some(Some(stopper)) = active.running.get(&(loop_id.clone(), attempt)) {
            self.interrupt.unwrap_or(Interrupt::Stop).stop(stopper);
        }
    }

    fn schedule_resume(&mut self, run: RunId, loop_id: &LoopId, reason: PauseReason) {
        match reason {
            PauseReason::RateLimit { until } => {
                let wait = clock::now().duration_until(until).try_into().unwrap_or_default();
                let (sender, loop_id) = (self.sender.clone(), loop_id.clone());
                tokio::spawn(async move {
                    tokio::time::sleep(wait).await;
                    sender.send(DispatcherInput::PauseElapsed { run, loop_id, reason }).ok();
                });
            }
            // A cap is raised in the configuration, which the next process reads. The run's machine ends checkpoints.
            PauseReason::Budget | PauseReason::Checkpoint => {}
        }
    }
}

/// Number of agents of a run that are running or about to start.
fn agents_at_work(active: &ActiveRun) -> usize {
    active.running.len().max(active.state.machine.active() + active.state.machine.starting.len())
}

/// The other loops of a run, as described in prompts.
fn sibling_loops(run_state: &RunState, loop_id: &LoopId) -> Vec<SiblingLoop> {
    let neighbour = |(name, loop_state): (&LoopId, &Arc<LoopState>)| SiblingLoop {
        name: name.to_string(),
        status: TaskStatus::for_other_loops(&loop_state.machine),
        title: loop_state.title.clone(),
        iteration: loop_state.machine.counters.attempts,
    };
    let reviewed = loop_id.checkpoint_target().map(|(target, _)| target);
    let is_other = |other: &LoopId| other != loop_id && Some(other) != reviewed.as_ref();
    let others = run_state.loops.iter().filter(|(other, _)| is_other(other) && !other.is_run_level());
    others.map(neighbour).collect()
}
