//! The parts of a run that carry no task: planning it, looking at loops while they work, looking at the whole.
//!
//! Each is a loop of the same machine under a workflow of its own, so it is recorded, resumed and bounded like any
//! other. What it comes to is told to the run when it ends; a program that was killed in between tells it then.

use std::collections::BTreeMap;
use std::path::Path;

use signoff_core::config::Expected;
use signoff_core::group::{self, RunEffect, RunEvent, RunOutcome, RunStage};
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::machine::{Event, Outcome, Policy, Stage};
use signoff_core::review::{Finding, Review, Severity, Verdict};
use signoff_core::source::planner::PlannedTask;
use signoff_core::task::TaskSpec;
use signoff_core::wire::{Fact, LoopFact, RunFact};
use signoff_core::workflow::Workflow;

use super::{Dispatcher, Input, Interrupt, Onto, Todo, loop_id};
use crate::board::{Board, Worked};
use crate::error::EngineError;
use crate::git::Uncommitted;
use crate::landing::{self, Told};
use crate::open;
use crate::process::Stopper;

impl Dispatcher<'_> {
    /// Finds the tasks of a run and arranges them.
    pub(super) fn prepare(&mut self, run: RunId) -> Result<(), EngineError> {
        let workflow = self.workflow(run, &LoopId::planning());
        match workflow.filter(|workflow| !workflow.before.is_empty()) {
            Some(workflow) => self.part(run, LoopId::planning(), workflow.part(&workflow.before)),
            // Who opened the run planned it.
            None => Ok(()),
        }
    }

    /// Looks at all that the run changed.
    pub(super) fn review_whole(&mut self, run: RunId) -> Result<(), EngineError> {
        match self.workflow(run, &LoopId::whole()) {
            Some(workflow) => self.part(run, LoopId::whole(), workflow.part(&workflow.after)),
            None => Ok(()),
        }
    }

    /// Looks at these loops as they stand; nobody is interrupted.
    pub(super) fn review_checkpoint(&mut self, run: RunId, loops: Vec<LoopId>) -> Result<(), EngineError> {
        for of in loops {
            let Some(board) = self.runs.get(&run).map(|driven| &driven.board) else { return Ok(()) };
            let Some(worked) = board.loops.get(&of).filter(|_| board.machine.checkpoint.waits_for(&of))
            else {
                continue;
            };
            let number = worked.checkpoints + 1;
            let part = of.checkpoint(number);
            if let Some(workflow) = self.workflow(run, &of) {
                self.loop_event(run, &of, Event::CheckpointBegan { number }, Vec::new())?;
                self.part(run, part, workflow.checkpoint())?;
            }
        }
        Ok(())
    }

    /// The workflow of a loop; for a part that is yet to begin that of the run.
    fn workflow(&self, run: RunId, loop_id: &LoopId) -> Option<Workflow> {
        let board = &self.runs.get(&run)?.board;
        let of_run = || board.under.as_ref().map(|(_, policy)| policy);
        let policy = if loop_id.serves_the_run() { of_run() } else { board.policy(loop_id) };
        policy.map(|policy| policy.workflow.clone())
    }

    /// Begins a part, or goes on with it from wherever it is.
    fn part(&mut self, run: RunId, loop_id: LoopId, workflow: Workflow) -> Result<(), EngineError> {
        let stage = self.runs[&run].board.loops.get(&loop_id).map(|worked| &worked.state.stage);
        match stage {
            Some(Stage::Done(_)) => return self.part_ended(run, &loop_id),
            Some(Stage::Queued) => {}
            // Its own wishes are outstanding.
            Some(_) => return Ok(()),
            None => {
                let policy = Box::new(Policy { no_ask: self.drive.no_ask, ..Policy::of(workflow) });
                self.append(run, vec![Fact::Loop(loop_id.clone(), LoopFact::Governed { policy })])?;
            }
        }
        self.start(run, loop_id);
        Ok(())
    }

    /// Tells the run what a part came to.
    pub(super) fn part_ended(&mut self, run: RunId, loop_id: &LoopId) -> Result<(), EngineError> {
        let worked = self.runs.get(&run).and_then(|driven| driven.board.loops.get(loop_id)).cloned();
        let Some(worked) = worked else { return Ok(()) };
        let Stage::Done(ending) = &worked.state.stage else { return Ok(()) };
        let outcome = ending.outcome.clone();
        if *loop_id == LoopId::planning() {
            self.clear_away(&worked);
            return self.planned(run, &worked, outcome);
        }
        match loop_id.of_checkpoint() {
            Some((of, number)) => {
                self.clear_away(&worked);
                self.checkpoint_ended(run, (&of, number), &worked)
            }
            None => self.run_event(run, RunEvent::FinalReviewEnded { outcome }, Vec::new()),
        }
    }

    /// Takes away what a program that was killed had no time to.
    pub(super) fn tidy(&mut self, run: RunId, loop_id: &LoopId) {
        let worked = self.runs[&run].board.loops.get(loop_id).cloned().unwrap_or_default();
        let copy = loop_id.serves_the_run() && *loop_id != LoopId::whole() && worked.state.is_done();
        if copy && worked.place.as_ref().is_some_and(|place| Path::new(&place.worktree).exists()) {
            self.clear_away(&worked);
        }
    }

    /// A copy that was made to be thrown away is.
    fn clear_away(&mut self, worked: &Worked) {
        let Some(place) = worked.place.clone() else { return };
        let shop = self.shop.clone();
        self.chores.spawn_blocking(move || {
            // What cannot be taken away now is no reason to fail.
            shop.repository.remove_worktree(place.worktree.as_ref(), Uncommitted::Discard).ok();
        });
    }

    /// The tasks are found and arranged: they become the run's.
    fn planned(&mut self, run: RunId, worked: &Worked, outcome: Outcome) -> Result<(), EngineError> {
        let carries_on = outcome.carries_on();
        let mut facts = vec![Fact::Run(RunFact::Moved(RunEvent::PreparationEnded { outcome }))];
        if carries_on {
            facts.extend(self.tasks_of(run, worked)?);
        }
        self.record_all(run, facts)
    }

    /// The first facts of planned tasks, numbered group by group.
    fn tasks_of(&self, run: RunId, worked: &Worked) -> Result<Vec<Fact>, EngineError> {
        let order: Vec<&String> = worked.groups.iter().flatten().collect();
        let numbers: BTreeMap<&str, TaskId> =
            order.iter().map(|id| id.as_str()).zip(self.store.reserve_tasks(order.len())?).collect();
        let Some((_, policy)) = &self.runs[&run].board.under else { return Ok(Vec::new()) };
        let expected = Expected::of(&policy.workflow);
        let mut facts = Vec::new();
        let known = |id: &&String| worked.tasks.iter().find(|task| task.id == **id);
        for planned in order.iter().filter_map(known) {
            let Some(task) = numbers.get(planned.id.as_str()).copied() else { continue };
            let spec = spec(planned, &numbers);
            let branch = spec.branch(task);
            facts.extend(open::added((task, spec), branch, expected));
        }
        let number = |id: &String| numbers.get(id.as_str()).copied().map(loop_id);
        let groups = worked.groups.iter().map(|group| group.iter().filter_map(number).collect()).collect();
        facts.push(Fact::Run(RunFact::Moved(RunEvent::GroupsPlanned { groups })));
        Ok(facts)
    }

    /// What a checkpoint review found becomes findings of the loop.
    fn checkpoint_ended(
        &mut self,
        run: RunId,
        (of, number): (&LoopId, u32),
        worked: &Worked,
    ) -> Result<(), EngineError> {
        let reviews = || worked.last_round.iter().flat_map(|round| &round.reviews);
        let told = |review: &Review| LoopFact::CheckpointReviewed { review: Box::new(review.clone()) };
        let told = reviews().map(told).collect();
        let findings: Vec<Finding> = reviews().flat_map(found).collect();
        let ended = Event::CheckpointEnded { findings, number: Some(number) };
        let reviewed = RunEvent::CheckpointReviewed { loop_id: of.clone() };
        self.loop_event_and(run, of, (ended, told), vec![reviewed])
    }

    /// Brings all that the run came to onto the default branch.
    pub(super) fn land_whole(&mut self, run: RunId) {
        if self.interrupt.is_some() {
            return;
        }
        let Some(driven) = self.runs.get_mut(&run) else { return };
        driven.landing = Onto::Begun;
        let board = driven.board.clone();
        let (shop, tell) = (self.shop.clone(), self.tell.clone());
        tokio::spawn(async move {
            let told = |told: Told| {
                let input = match told {
                    Told::Stoppable(stopper) => Input::Landing { run, stopper },
                    Told::Waits => Input::Note(format!("Run {run} waits: another landing is under way")),
                    Told::Note(note) => Input::Note(format!("Run {run}: {note}")),
                };
                tell.send(input).ok();
            };
            let result = landing::land_run(&shop, board, &told).await.map(drop);
            tell.send(Input::Landed { run, result }).ok();
        });
    }

    /// The landing of a whole run has got so far that it can be stopped.
    pub(super) fn landing(&mut self, run: RunId, stopper: Stopper) {
        match self.interrupt {
            Some(Interrupt::Kill) => stopper.kill(),
            Some(Interrupt::Stop) => stopper.stop(),
            Some(Interrupt::Finish) | None => {}
        }
        if let Some(driven) = self.runs.get_mut(&run) {
            driven.landing = Onto::Stoppable(stopper);
        }
    }

    /// Runs that were to go onto the default branch and may not say so.
    pub(super) fn note_unlanded(&mut self) {
        let unlanded = |board: &Board| {
            let wanted = board.run_policy().is_some_and(|policy| policy.onto_default);
            let over = match board.machine.stage {
                RunStage::Done(outcome) => outcome != RunOutcome::Cancelled,
                RunStage::Queued
                | RunStage::Preparing
                | RunStage::Working { .. }
                | RunStage::Blocked { .. }
                | RunStage::Reviewing
                | RunStage::Landing(_) => false,
            };
            wanted && over && !board.has_gone_on && !board.loops.is_empty()
        };
        for board in self.runs.values().map(|driven| &driven.board).filter(|board| unlanded(board)) {
            let refusal = landing::final_review_refusal(board);
            self.summary.troubles.push(refusal.unwrap_or_else(|| EngineError::NotLanded {
                message: format!(
                    "run {} did not land on the default branch: not all of it is approved",
                    board.run
                ),
                hint: hint(board).to_owned(),
            }));
        }
    }

    /// What did not land stays outstanding: the next drive tries again, once the person has done what is asked.
    pub(super) fn whole_landed(
        &mut self,
        run: RunId,
        result: Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        if let Some(driven) = self.runs.get_mut(&run) {
            driven.landing = Onto::Nothing;
        }
        match result {
            Ok(()) => self.run_event(run, RunEvent::Landed, Vec::new()),
            // The person wanted it to end. If there is another reason, it is told when they go on.
            Err(EngineError::NotLanded { .. }) if self.interrupt > Some(Interrupt::Finish) => Ok(()),
            Err(error) => {
                self.summary.troubles.push(error);
                Ok(())
            }
        }
    }

    /// Records facts, and wishes for whatever follows from all of them.
    fn record_all(&mut self, run: RunId, facts: Vec<Fact>) -> Result<(), EngineError> {
        let before = group::outstanding(&self.runs[&run].board.machine);
        self.append(run, facts)?;
        self.wish(run, |wish| !before.contains(wish));
        Ok(())
    }

    /// Wishes for what is outstanding and new.
    pub(super) fn wish(&mut self, run: RunId, is_new: impl Fn(&RunEffect) -> bool) {
        let now = group::outstanding(&self.runs[&run].board.machine);
        self.todo.extend(now.into_iter().filter(is_new).map(|effect| Todo::Run(run, effect)));
    }
}

/// What to do about a run that did not land. One that keeps its end whatever becomes of its tasks does not land later.
fn hint(board: &Board) -> &'static str {
    if board.has_final_review() {
        return "`signoff land` says which task is not approved; `signoff merge ID --force --reason TEXT` approves it \
                in your name";
    }
    let keeps_its_end = board.run_policy().is_some_and(|policy| policy.after);
    match board.machine.stage == RunStage::Done(RunOutcome::Failed) && !keeps_its_end {
        true => {
            "`signoff retry ID` goes on with what failed, and the run lands once all is approved; \
             `signoff land` brings in what is approved now"
        }
        false => {
            "`signoff land` brings in what is approved; `signoff merge ID --force --reason TEXT` the rest"
        }
    }
}

/// The findings of one review, each under the name of its reviewer.
fn found(review: &Review) -> Vec<Finding> {
    if let Verdict::Inconclusive(_) = review.verdict {
        return Vec::new();
    }
    let own = |finding: &Finding| Finding { sources: vec![review.reviewer.clone()], ..finding.clone() };
    review.findings.iter().map(own).chain(to_discuss(review)).collect()
}

/// What a reviewer wants to talk about who names no finding. Nobody is asked at a checkpoint: who works on it is told.
fn to_discuss(review: &Review) -> Option<Finding> {
    if review.verdict != Verdict::NeedsDiscussion || !review.findings.is_empty() {
        return None;
    }
    let text = if review.summary.is_empty() { "the reviewer wants to discuss this" } else { &review.summary };
    Some(Finding::of(&review.reviewer, "discussion", Severity::Important, text))
}

/// A planned task as one to be worked.
fn spec(planned: &PlannedTask, numbers: &BTreeMap<&str, TaskId>) -> TaskSpec {
    let number = |id: &String| numbers.get(id.as_str()).copied();
    TaskSpec {
        title: planned.title.clone(),
        description: planned.description.clone(),
        auto_review: Some(true),
        depends_on: planned.depends_on.iter().filter_map(number).collect(),
        ..TaskSpec::default()
    }
}
