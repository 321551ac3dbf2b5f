//! The start of a loop: its workspace, the findings and the plan that it takes over, and its plan as it is when the
//! first item is started.

use std::sync::Arc;

use signoff_core::ids::{AttemptId, LoopId, RunId, TaskId};
use signoff_core::ledger::Ledger;
use signoff_core::machine::{Effect, Event, Head, Job};
use signoff_core::source::planner::PlannerAnswer;
use signoff_core::state_v4;
use signoff_core::view::{LoopState, TaskRow, Workspace};
use signoff_core::wire::LoopFact;

use super::{Dispatcher, DispatcherNotice, PreparedWorkspace};
use crate::attempt::{PlanLocation, starts_plan};
use crate::error::EngineError;

impl Dispatcher<'_> {
    pub(super) fn workspace_created(
        &mut self,
        run: RunId,
        loop_id: &LoopId,
        result: Result<PreparedWorkspace, EngineError>,
    ) -> Result<(), EngineError> {
        if let Some(active) = self.runs.get_mut(&run) {
            active.creating_workspaces.remove(loop_id);
        }
        match result {
            Ok(PreparedWorkspace { workspace, head, base_tree, note }) => {
                if let Some(note) = note {
                    self.renderer.show(&DispatcherNotice::Note(&note));
                }
                let Workspace { base, worktree } = workspace;
                let begins = self.start_event(run, loop_id, head);
                let mut before = vec![LoopFact::WorkspaceCreated { base, worktree }];
                before.extend(base_tree.map(|tree| LoopFact::Transitioned(Event::BaseSet { tree })));
                before.extend(self.inherited_findings(run, loop_id)?);
                before.extend(self.imported_plan(run, loop_id));
                self.loop_event(run, loop_id, begins, before)
            }
            Err(error) => {
                self.record_error(run, loop_id, error);
                Ok(())
            }
        }
    }

    /// The items of the plan that another program left. They belong to no attempt of ours.
    fn imported_plan(&self, run: RunId, loop_id: &LoopId) -> Vec<LoopFact> {
        let imported = self.task_spec(run, loop_id).and_then(|spec| spec.imported);
        let items = imported.map(|imported| imported.items).filter(|items| !items.is_empty());
        items.map_or_else(Vec::new, |items| {
            let count = u32::try_from(items.len()).unwrap_or(u32::MAX);
            let answer = LoopFact::Answered { attempt: AttemptId(0), answer: PlannerAnswer::Tasks(items) };
            vec![answer, LoopFact::Transitioned(Event::ItemsPlanned { count })]
        })
    }

    /// The first event of a loop: it starts at its first phase, or where another program left it.
    fn start_event(&self, run: RunId, loop_id: &LoopId, head: Head) -> Event {
        let imported = self.task_spec(run, loop_id).and_then(|spec| spec.imported);
        match imported.zip(self.policy(run, loop_id)) {
            Some((imported, policy)) => state_v4::resume(&imported.state, head, policy),
            None => Event::Started { head },
        }
    }

    /// The open and disputed findings of earlier tasks on the same branch.
    fn inherited_findings(&self, run: RunId, loop_id: &LoopId) -> Result<Option<LoopFact>, EngineError> {
        let Some(root) = self.task_spec(run, loop_id).and_then(|spec| spec.continues) else {
            return Ok(None);
        };
        let own = self.runs.get(&run).and_then(|active| active.state.loops.get(loop_id)?.task);
        let mut loop_states = self.loops_on_branch(root, own)?;
        loop_states.sort_by_key(|(task, loop_state)| (loop_state.started, *task));
        let left = Ledger::from_earlier_tasks(
            loop_states.iter().map(|(task, loop_state)| (*task, &*loop_state.machine.ledger)),
        );
        Ok((!left.is_empty()).then_some(LoopFact::Transitioned(Event::FindingsInherited { ledger: left })))
    }

    /// The started tasks on the branch of a task, except `own`.
    fn loops_on_branch(&self, root: TaskId, own: Option<TaskId>) -> Result<Vec<(TaskId, Arc<LoopState>)>, EngineError> {
        let is_on_it = |row: &TaskRow| row.id == root.0 || row.continues == Some(root.0);
        let mut found = Vec::new();
        for row in self.store.tasks()?.iter().filter(|row| is_on_it(row)) {
            let task = TaskId(row.id);
            let Some((run, loop_id)) = self.store.loop_for_task(task)?.filter(|_| own != Some(task)) else {
                continue;
            };
            let loop_state = self.store.run_state(run)?.loops.remove(&loop_id);
            let loop_state = loop_state.filter(|loop_state| loop_state.started.is_some());
            found.extend(loop_state.map(|loop_state| (task, loop_state)));
        }
        Ok(found)
    }

    /// The facts of a changed plan for a job that starts the first item. `known` facts are not recorded yet.
    pub(super) fn changed_plan(
        &mut self,
        run: RunId,
        loop_id: &LoopId,
        job: &Job,
        known: &[LoopFact],
    ) -> Result<Vec<LoopFact>, EngineError> {
        if !self.policy(run, loop_id).is_some_and(|policy| starts_plan(job, policy)) {
            return Ok(Vec::new());
        }
        let Some(mut spec) = self.attempt_spec(run, loop_id, job.clone()) else { return Ok(Vec::new()) };
        for fact in known {
            if let LoopFact::Answered { answer: PlannerAnswer::Tasks(items), .. } = fact {
                spec.items.clone_from(items);
            } else if let LoopFact::Transitioned(Event::ItemsPlanned { count }) = fact {
                Arc::make_mut(&mut spec.machine).items = (*count).max(1);
            }
        }
        let at_work = self.runs.get(&run).into_iter().flat_map(|active| active.running.keys());
        let is_busy = at_work.into_iter().any(|(other, _)| other == loop_id);
        let location = if is_busy { PlanLocation::OnBranch } else { PlanLocation::InWorktree };
        let (mut facts, note) = self.backends.workspaces.reread_plan(&spec, location)?;
        if let Some(note) = note {
            self.renderer.show(&DispatcherNotice::Note(&note));
            facts.push(LoopFact::Noted { attempt: job.attempt, note });
        }
        Ok(facts)
    }
}

/// The job that may start the first plan item: on entering a phase or an item, or on a user's request.
pub(super) fn job_to_plan<'a>(event: &Event, enters: bool, effects: &'a [Effect]) -> Option<&'a Job> {
    let is_user_event = matches!(event, Event::PersonAnswered { .. } | Event::PersonRetried { .. });
    let spawned = effects.iter().find_map(|effect| match effect {
        Effect::Spawn(job) => Some(job),
        Effect::Kill { .. } | Effect::Ask(_) | Effect::Wait { .. } | Effect::AwaitLanding | Effect::Finish(_) => None,
    });
    spawned.filter(|_| enters || is_user_event)
}
