//! The parts of a run without a task: planning, checkpoint reviews and the final review.
//!
//! Each is a loop of the same machine with its own workflow, so it is recorded, resumed and limited like any other. The
//! run gets its result when it ends; after a kill, the next process passes it on.

use std::collections::BTreeMap;
use std::path::Path;

use signoff_core::group::{self, RunEffect, RunEvent, RunOutcome, RunStage};
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::machine::{Event, Outcome, Policy, Stage};
use signoff_core::review::{Finding, Review, Severity, Verdict};
use signoff_core::settings::ExpectedReviews;
use signoff_core::source::planner::PlannedTask;
use signoff_core::task::TaskSpec;
use signoff_core::view::{LoopState, RunState};
use signoff_core::wire::{Fact, LoopFact, RunFact};
use signoff_core::workflow::Workflow;

use super::record::LoopEventRecord;
use super::{Dispatcher, Interrupt, PendingEffect, RunLanding, loop_id};
use crate::error::EngineError;
use crate::executor::RunLandingSink;
use crate::landing;
use crate::process::StopHandle;
use crate::start_run;

impl Dispatcher<'_> {
    /// Starts planning: finds the tasks of a run and groups them.
    pub(super) fn start_planning(&mut self, run: RunId) -> Result<(), EngineError> {
        let workflow = self.workflow(run, &LoopId::planning());
        match workflow.filter(|workflow| !workflow.before.is_empty()) {
            Some(workflow) => self.start_part(run, LoopId::planning(), workflow.run_level_workflow(&workflow.before)),
            // The run was opened with its tasks.
            None => Ok(()),
        }
    }

    /// Starts the final review of everything that the run changed.
    pub(super) fn start_final_review(&mut self, run: RunId) -> Result<(), EngineError> {
        match self.workflow(run, &LoopId::final_review()) {
            Some(workflow) => {
                self.start_part(run, LoopId::final_review(), workflow.run_level_workflow(&workflow.after))
            }
            None => Ok(()),
        }
    }

    /// Reviews these loops while they keep working.
    pub(super) fn start_checkpoint_reviews(&mut self, run: RunId, loops: Vec<LoopId>) -> Result<(), EngineError> {
        for of in loops {
            let Some(run_state) = self.runs.get(&run).map(|active| &active.state) else { return Ok(()) };
            let Some(loop_state) = run_state.loops.get(&of).filter(|_| run_state.machine.checkpoint.waits_for(&of))
            else {
                continue;
            };
            let number = loop_state.checkpoints + 1;
            let part = of.checkpoint(number);
            if let Some(workflow) = self.workflow(run, &of) {
                self.loop_event(run, &of, Event::CheckpointBegan { number }, Vec::new())?;
                self.start_part(run, part, workflow.checkpoint())?;
            }
        }
        Ok(())
    }

    /// The workflow of a loop; the run's workflow for a part that has not started.
    fn workflow(&self, run: RunId, loop_id: &LoopId) -> Option<Workflow> {
        let run_state = &self.runs.get(&run)?.state;
        let of_run = || run_state.policies.as_ref().map(|policies| &policies.workflow);
        let policy = if loop_id.is_run_level() { of_run() } else { run_state.policy(loop_id) };
        policy.map(|policy| policy.workflow.clone())
    }

    /// Starts a part, or continues it.
    fn start_part(&mut self, run: RunId, loop_id: LoopId, workflow: Workflow) -> Result<(), EngineError> {
        match self.loop_state(run, &loop_id).map(|loop_state| &loop_state.machine.stage) {
            Some(Stage::Done(_)) => return self.part_ended(run, &loop_id),
            Some(Stage::Queued) => {}
            // Its own effects are outstanding.
            Some(_) => return Ok(()),
            None => {
                let policy = Box::new(Policy { no_ask: self.options.no_ask, ..Policy::new(workflow) });
                self.append(run, vec![Fact::Loop(loop_id.clone(), LoopFact::PolicySet { policy })])?;
            }
        }
        self.start(run, loop_id);
        Ok(())
    }

    /// Passes the result of a part to the run.
    pub(super) fn part_ended(&mut self, run: RunId, loop_id: &LoopId) -> Result<(), EngineError> {
        let Some(loop_state) = self.loop_state(run, loop_id).cloned() else { return Ok(()) };
        let Stage::Done(ending) = &loop_state.machine.stage else { return Ok(()) };
        let outcome = ending.outcome.clone();
        if *loop_id == LoopId::planning() {
            self.remove_part_worktree(&loop_state);
            return self.planning_ended(run, &loop_state, outcome);
        }
        match loop_id.checkpoint_target() {
            Some((of, number)) => {
                self.remove_part_worktree(&loop_state);
                self.checkpoint_ended(run, &of, number, &loop_state)
            }
            None => self.run_event(run, RunEvent::FinalReviewEnded { outcome }, Vec::new()),
        }
    }

    /// Removes a worktree that a killed process left.
    pub(super) fn remove_leftover_worktree(&mut self, run: RunId, loop_id: &LoopId) {
        let loop_state = self.runs[&run].state.loops.get(loop_id).cloned().unwrap_or_default();
        let copy = loop_id.is_run_level() && *loop_id != LoopId::final_review() && loop_state.machine.is_done();
        if copy && loop_state.workspace.as_ref().is_some_and(|workspace| Path::new(&workspace.worktree).exists()) {
            self.remove_part_worktree(&loop_state);
        }
    }

    /// Removes the temporary worktree of a part.
    fn remove_part_worktree(&mut self, loop_state: &LoopState) {
        let Some(workspace) = loop_state.workspace.clone() else { return };
        let workspaces = self.backends.workspaces.clone();
        self.cleanup_jobs.spawn_blocking(move || workspaces.remove(workspace.worktree.as_ref()));
    }

    /// Adds the planned tasks to the run.
    fn planning_ended(&mut self, run: RunId, loop_state: &LoopState, outcome: Outcome) -> Result<(), EngineError> {
        let carries_on = outcome.is_completed();
        let mut facts = vec![Fact::Run(RunFact::Transitioned(RunEvent::PreparationEnded { outcome }))];
        if carries_on {
            facts.extend(self.planned_task_facts(run, loop_state)?);
        }
        self.record_all(run, facts)
    }

    /// The first facts of planned tasks, numbered group by group.
    fn planned_task_facts(&self, run: RunId, loop_state: &LoopState) -> Result<Vec<Fact>, EngineError> {
        let order: Vec<&String> = loop_state.groups.iter().flatten().collect();
        let numbers: BTreeMap<&str, TaskId> =
            order.iter().map(|id| id.as_str()).zip(self.store.reserve_tasks(order.len())?).collect();
        let Some(policies) = &self.runs[&run].state.policies else { return Ok(Vec::new()) };
        let expected = ExpectedReviews::from_workflow(&policies.workflow.workflow);
        let mut facts = Vec::new();
        let known = |id: &&String| loop_state.tasks.iter().find(|task| task.id == **id);
        for planned in order.iter().filter_map(known) {
            let Some(task) = numbers.get(planned.id.as_str()).copied() else { continue };
            let spec = planned_spec(planned, &numbers);
            let branch = spec.branch(task);
            facts.extend(start_run::task_added(task, spec, branch, expected));
        }
        let number = |id: &String| numbers.get(id.as_str()).copied().map(loop_id);
        let groups = loop_state.groups.iter().map(|group| group.iter().filter_map(number).collect()).collect();
        facts.push(Fact::Run(RunFact::Transitioned(RunEvent::GroupsPlanned { groups })));
        Ok(facts)
    }

    /// Adds the findings of a checkpoint review to the loop.
    fn checkpoint_ended(
        &mut self,
        run: RunId,
        of: &LoopId,
        number: u32,
        loop_state: &LoopState,
    ) -> Result<(), EngineError> {
        let reviews = || loop_state.last_round.iter().flat_map(|round| &round.reviews);
        let reviewed_fact = |review: &Review| LoopFact::CheckpointReviewed { review: Box::new(review.clone()) };
        let review_facts = reviews().map(reviewed_fact).collect();
        let findings: Vec<Finding> = reviews().flat_map(checkpoint_findings).collect();
        let ended = Event::CheckpointEnded { findings, number: Some(number) };
        let reviewed = RunEvent::CheckpointReviewed { loop_id: of.clone() };
        self.loop_event_and(run, of, LoopEventRecord { event: ended, before: review_facts, run_events: vec![reviewed] })
    }

    /// Lands the run on the default branch.
    pub(super) fn start_run_landing(&mut self, run: RunId) {
        if self.interrupt.is_some() {
            return;
        }
        let Some(active) = self.runs.get_mut(&run) else { return };
        active.landing = RunLanding::Started;
        let run_state = active.state.clone();
        self.backends.executor.land_run(run_state, RunLandingSink::new(run, self.sender.clone()));
    }

    /// The landing of a run can be stopped from now on.
    pub(super) fn landing_started(&mut self, run: RunId, stopper: StopHandle) {
        match self.interrupt {
            Some(interrupt @ (Interrupt::Kill | Interrupt::Stop)) => interrupt.stop(&stopper),
            Some(Interrupt::Finish) | None => {}
        }
        if let Some(active) = self.runs.get_mut(&run) {
            active.landing = RunLanding::Stoppable(stopper);
        }
    }

    /// Reports runs that should have landed on the default branch and did not.
    pub(super) fn report_unlanded(&mut self) {
        let unlanded = |run_state: &RunState| {
            let onto_default = run_state.run_policy().is_some_and(|policy| policy.onto_default);
            let is_over = match run_state.machine.stage {
                RunStage::Done(outcome) => outcome != RunOutcome::Cancelled,
                RunStage::Queued
                | RunStage::Preparing
                | RunStage::Working { .. }
                | RunStage::Blocked { .. }
                | RunStage::Reviewing
                | RunStage::Landing(_) => false,
            };
            onto_default && is_over && !run_state.landed_on_default && !run_state.loops.is_empty()
        };
        for run_state in self.runs.values().map(|active| &active.state).filter(|run_state| unlanded(run_state)) {
            let refusal = landing::final_review_refusal(run_state);
            self.summary.errors.push(refusal.unwrap_or_else(|| EngineError::NotLanded {
                message: format!("run {} did not land on the default branch: not all of it is approved", run_state.run),
                hint: hint(run_state).to_owned(),
            }));
        }
    }

    /// Handles the end of a run's landing. A failed landing stays outstanding, and the next process retries it.
    pub(super) fn run_landed(&mut self, run: RunId, result: Result<(), EngineError>) -> Result<(), EngineError> {
        if let Some(active) = self.runs.get_mut(&run) {
            active.landing = RunLanding::Idle;
        }
        match result {
            Ok(()) => self.run_event(run, RunEvent::Landed, Vec::new()),
            // The user asked to stop. Any other reason is reported by the next process.
            Err(EngineError::NotLanded { .. } | EngineError::ContainsUnapproved { .. })
                if self.interrupt > Some(Interrupt::Finish) =>
            {
                Ok(())
            }
            Err(error) => {
                self.summary.errors.push(error);
                Ok(())
            }
        }
    }

    /// Records facts, and queues the effects that follow from all of them.
    fn record_all(&mut self, run: RunId, facts: Vec<Fact>) -> Result<(), EngineError> {
        let before = group::outstanding(&self.runs[&run].state.machine);
        self.append(run, facts)?;
        self.queue_new_effects(run, |effect| !before.contains(effect));
        Ok(())
    }

    /// Queues the outstanding effects that are new.
    pub(super) fn queue_new_effects(&mut self, run: RunId, is_new: impl Fn(&RunEffect) -> bool) {
        let now = group::outstanding(&self.runs[&run].state.machine);
        self.pending_effects.extend(now.into_iter().filter(is_new).map(|effect| PendingEffect::Run(run, effect)));
    }
}

/// The hint for a run that did not land. A run with a final review that has ended does not land later.
fn hint(run_state: &RunState) -> &'static str {
    if run_state.has_final_review() {
        return "`signoff land` says which task is not approved; `signoff merge ID --force --reason TEXT` approves it \
                in your name";
    }
    let keeps_its_end = run_state.run_policy().is_some_and(|policy| policy.has_final_review);
    match run_state.machine.stage == RunStage::Done(RunOutcome::Failed) && !keeps_its_end {
        true => {
            "`signoff retry ID` continues what failed, and the run lands once all is approved; \
             `signoff land` lands what is approved now"
        }
        false => "`signoff land` lands what is approved; `signoff merge ID --force --reason TEXT` lands the rest",
    }
}

/// The findings of one review, with their reviewer as the source.
fn checkpoint_findings(review: &Review) -> Vec<Finding> {
    if let Verdict::Inconclusive(_) = review.verdict {
        return Vec::new();
    }
    let own = |finding: &Finding| Finding { sources: vec![review.reviewer.clone()], ..finding.clone() };
    review.findings.iter().map(own).chain(to_discuss(review)).collect()
}

/// A finding for a reviewer that only asks for a discussion. Checkpoints ask no user, so the agent gets it.
fn to_discuss(review: &Review) -> Option<Finding> {
    if review.verdict != Verdict::NeedsDiscussion || !review.findings.is_empty() {
        return None;
    }
    let text = if review.summary.is_empty() { "the reviewer requests a discussion" } else { &review.summary };
    Some(Finding::new(&review.reviewer, "discussion", Severity::Important, text))
}

/// The specification of a planned task.
fn planned_spec(planned: &PlannedTask, numbers: &BTreeMap<&str, TaskId>) -> TaskSpec {
    let number = |id: &String| numbers.get(id.as_str()).copied();
    TaskSpec {
        title: planned.title.clone(),
        description: planned.description.clone(),
        auto_review: Some(true),
        depends_on: planned.depends_on.iter().filter_map(number).collect(),
        ..TaskSpec::default()
    }
}
