//! The rows as they stand, and which of them changed.

use std::collections::BTreeSet;

use signoff_core::group::{RunOutcome, RunStage};
use signoff_core::ids::{LoopId, TaskId};
use signoff_core::ledger::Entry;
use signoff_core::machine::{Effect, Loop, Reason, outstanding};
use signoff_core::view::{LoopView, is_shared};
use signoff_core::workflow::Landing;

use super::{Teller, Track, words};
use crate::record::{FindingRecord, LoopRecord, Row, RunRecord, TaskMoved};

impl Teller {
    /// The rows that are new or changed since the last time, in the order of writing.
    pub fn settle(&mut self) -> Vec<Row> {
        let mut rows = std::mem::take(&mut self.fresh);
        let mut now = vec![Row::Run(self.run_row())];
        for loop_id in self.take_stale() {
            self.restate(&loop_id);
            now.extend(self.loop_rows(&loop_id));
        }
        for row in now {
            let key = (row.rank(), row.key());
            if self.told.get(&key) != Some(&row) {
                self.told.insert(key, row.clone());
                rows.push(row);
            }
        }
        rows.sort_by_key(Row::rank);
        rows
    }

    /// The loops whose rows may have changed, with the checkpoint reviews whose findings these loops have.
    fn take_stale(&mut self) -> BTreeSet<LoopId> {
        let mut stale = std::mem::take(&mut self.stale);
        let has_checkpoints = |loop_id: &&LoopId| {
            let entries = self.view.loop_state(loop_id).map(|state| state.ledger.entries());
            let mut seen = entries.into_iter().flatten().flat_map(|entry| &entry.seen);
            seen.any(|round| round.checkpoint.is_some())
        };
        let looked_at: Vec<LoopId> = stale.iter().filter(has_checkpoints).cloned().collect();
        if !looked_at.is_empty() {
            let is_look = |id: &&LoopId| id.of_checkpoint().is_some_and(|(of, _)| looked_at.contains(&of));
            stale.extend(self.loops.keys().filter(is_look).cloned());
        }
        stale
    }

    /// Whether nothing is left to do in its run.
    pub fn is_over(&self) -> bool {
        matches!(self.view.stage(), RunStage::Done(_)) && !self.is_open()
    }

    fn restate(&mut self, loop_id: &LoopId) {
        if let (Some(track), Some(state)) = (self.loops.get_mut(loop_id), self.view.loop_state(loop_id)) {
            track.restate(&state.ledger);
        }
    }

    fn run_row(&self) -> RunRecord {
        let groups = self.view.groups().map(|groups| groups as u64);
        RunRecord {
            id: self.run,
            preset: self.view.preset().unwrap_or_default().to_owned(),
            status: if self.is_reopened() { "running" } else { words::of_run(self.view.stage()) },
            open: self.is_open(),
            started_at: self.view.started_at,
            ended_at: self.ended_at,
            usage: self.view.usage(),
            stage: self.view.stage().word(),
            group: groups.and(self.view.stage().group()).map(|group| group as u64 + 1),
            groups,
            branch: self.view.branch(),
            specification: self.view.specification().map(str::to_owned),
        }
    }

    /// A run is open until it has ended, and again when a person reopens one of its loops.
    fn is_open(&self) -> bool {
        match self.view.stage() {
            RunStage::Queued
            | RunStage::Preparing
            | RunStage::Working { .. }
            | RunStage::Blocked { .. }
            | RunStage::Reviewing
            | RunStage::Landing(_) => true,
            RunStage::Done(outcome) => {
                self.view.owes_a_tracker() || self.loops.keys().any(|id| self.has_work(id, *outcome))
            }
        }
    }

    /// Whether a person reopened a loop of it after it had ended by itself.
    pub(super) fn is_reopened(&self) -> bool {
        let by_itself = |outcome: &RunOutcome| *outcome != RunOutcome::Cancelled;
        matches!(self.view.stage(), RunStage::Done(outcome) if by_itself(outcome)) && self.is_open()
    }

    fn has_work(&self, loop_id: &LoopId, outcome: RunOutcome) -> bool {
        let (state, policy) = (self.view.loop_state(loop_id), self.view.loop_policy(loop_id));
        let (Some(state), Some(policy)) = (state, policy) else { return false };
        let called_off = outcome == RunOutcome::Cancelled && !state.is_done();
        called_off || outstanding(state, policy).iter().any(|wish| *wish != Effect::AwaitLanding)
    }

    fn loop_rows(&self, loop_id: &LoopId) -> Vec<Row> {
        let (Some(view), Some(track)) = (self.view.row(loop_id), self.loops.get(loop_id)) else {
            return Vec::new();
        };
        let mut rows = Vec::new();
        if let Some(task) = track.task.filter(|task| self.takers.get(task) == Some(loop_id)) {
            rows.push(Row::TaskMoved(self.task_moved(task, &view, track)));
        }
        if !loop_id.serves_the_run() {
            rows.extend(self.loop_row(view, track).map(Row::Loop));
        }
        // What a checkpoint found is told of the loop it looked at.
        if loop_id.of_checkpoint().is_none() {
            rows.extend(track.issues.iter().cloned().map(Row::Issue));
        }
        rows.extend(self.findings(loop_id, track));
        rows.extend(track.questions.iter().cloned().map(Row::Question));
        rows
    }

    fn loop_row(&self, view: LoopView, track: &Track) -> Option<LoopRecord> {
        let state = self.view.loop_state(&view.id)?;
        Some(LoopRecord {
            run: self.run,
            task: view.task,
            status: words::of_loop(state),
            review_status: words::of_reviews(state),
            last_review: track.last_review.clone(),
            title: view.title,
            branch: view.branch,
            worktree: view.worktree,
            phase: view.phase,
            pass: view.pass,
            cycle: view.cycle,
            iteration: view.iteration,
            last_checkpoint: state.tally.last_checkpoint,
            fixes: view.fixes,
            head: state.head.commit.as_str().to_owned(),
            outcome: view.outcome,
            reason: view.reason.map(Reason::word),
            usage: view.usage,
            started_at: track.started_at,
            ended_at: track.ended_at,
            id: view.id,
        })
    }

    fn findings(&self, loop_id: &LoopId, track: &Track) -> Vec<Row> {
        let Some(state) = self.view.loop_state(loop_id) else { return Vec::new() };
        // The loop that a checkpoint looked at decides about what it found.
        let looked_at = loop_id.of_checkpoint().and_then(|(of, _)| self.view.loop_state(&of));
        let decided = |entry: &Entry| {
            let there = looked_at.and_then(|of| of.ledger.reported_as(&entry.finding.id));
            there.map_or(entry.state, |there| there.state)
        };
        let row = |entry: &Entry| {
            Row::Finding(FindingRecord {
                run: self.run,
                loop_id: loop_id.clone(),
                id: entry.finding.id.clone(),
                task: track.task,
                state: decided(entry),
                finding: entry.finding.clone(),
            })
        };
        state.ledger.entries().iter().map(row).collect()
    }
}

impl Teller {
    fn task_moved(&self, id: TaskId, view: &LoopView, track: &Track) -> TaskMoved {
        let state = self.view.loop_state(&view.id);
        let approved = state.and_then(Loop::approved_commit).map(|commit| commit.as_str().to_owned());
        let landed = state.and_then(|state| track.landed_commit(state));
        let policy = self.view.loop_policy(&view.id);
        let on_run = policy.is_some_and(|policy| policy.workflow.landing != Landing::None);
        let shared = approved.clone().filter(|_| is_shared(&view.branch));
        TaskMoved {
            landed_commit: landed.clone().filter(|_| !on_run),
            run_commit: landed.filter(|_| on_run).or(shared),
            approved_commit: approved,
            ..moved(id, view, track)
        }
    }
}

fn moved(id: TaskId, view: &LoopView, track: &Track) -> TaskMoved {
    TaskMoved {
        status: view.status,
        state: view.state,
        outcome: view.outcome,
        final_verdict: view.final_verdict.map(|verdict| verdict.word()),
        reason: view.reason.map(Reason::word),
        review_cycle: view.cycle,
        max_review_cycles: Some(view.max_cycles),
        base: view.base.as_ref().map(|commit| commit.as_str().to_owned()),
        worktree: view.worktree.clone(),
        phase: view.phase.clone(),
        iteration: view.iteration,
        open_findings: u32::try_from(view.open_findings).unwrap_or(u32::MAX),
        usage: view.usage,
        started_at: track.started_at,
        ended_at: track.ended_at,
        ..TaskMoved::untouched(id)
    }
}
