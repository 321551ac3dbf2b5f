//! Computes the current rows, and which of them changed.

use std::collections::BTreeSet;

use signoff_core::group::{RunOutcome, RunStage};
use signoff_core::ids::{LoopId, TaskId};
use signoff_core::ledger::LedgerEntry;
use signoff_core::machine::{Effect, Loop, outstanding};
use signoff_core::view::{LoopRow, RunStatus, is_run_branch};

use super::{LoopTracker, Projector, status};
use crate::record::{FindingRecord, LoopRecord, RunRecord, TableRow, TaskProgress};

impl Projector {
    /// The rows that are new or changed since the last call, in write order.
    pub fn changed_rows(&mut self) -> Vec<TableRow> {
        let mut rows = std::mem::take(&mut self.new_rows);
        let mut now = vec![TableRow::Run(self.run_row())];
        for loop_id in self.take_changed_loops() {
            self.update_issue_states(&loop_id);
            now.extend(self.loop_rows(&loop_id));
        }
        for row in now {
            let key = (row.write_order(), row.key());
            if self.written.get(&key) != Some(&row) {
                self.written.insert(key, row.clone());
                rows.push(row);
            }
        }
        rows.sort_by_key(TableRow::write_order);
        rows
    }

    /// Takes the loops whose rows may have changed, plus the checkpoint reviews whose findings they contain.
    fn take_changed_loops(&mut self) -> BTreeSet<LoopId> {
        let mut stale = std::mem::take(&mut self.changed_loops);
        let has_checkpoints = |loop_id: &&LoopId| {
            let entries = self.view.loop_state(loop_id).map(|state| state.ledger.entries());
            let mut seen = entries.into_iter().flatten().flat_map(|entry| &entry.seen);
            seen.any(|round| round.checkpoint.is_some())
        };
        let reviewed_loops: Vec<LoopId> = stale.iter().filter(has_checkpoints).cloned().collect();
        if !reviewed_loops.is_empty() {
            let is_checkpoint =
                |id: &&LoopId| id.checkpoint_target().is_some_and(|(of, _)| reviewed_loops.contains(&of));
            stale.extend(self.loops.keys().filter(is_checkpoint).cloned());
        }
        stale
    }

    /// Whether the run has no work left.
    pub fn is_over(&self) -> bool {
        matches!(self.view.stage(), RunStage::Done(_)) && !self.is_open()
    }

    fn update_issue_states(&mut self, loop_id: &LoopId) {
        if let (Some(track), Some(state)) = (self.loops.get_mut(loop_id), self.view.loop_state(loop_id)) {
            track.update_states(&state.ledger);
        }
    }

    fn run_row(&self) -> RunRecord {
        let groups = self.view.groups().map(|groups| groups as u64);
        RunRecord {
            id: self.run,
            preset: self.view.preset().unwrap_or_default().to_owned(),
            status: if self.is_reopened() { RunStatus::Running } else { RunStatus::for_stage(self.view.stage()) },
            open: self.is_open(),
            started_at: self.view.started_at,
            ended_at: self.ended_at,
            usage: self.view.usage(),
            stage: self.view.stage().as_str(),
            group: groups.and(self.view.stage().group()).map(|group| group as u64 + 1),
            groups,
            branch: self.view.branch(),
            specification: self.view.specification().map(str::to_owned),
        }
    }

    /// A run is open until it ends, and again when a user reopens one of its loops.
    fn is_open(&self) -> bool {
        match self.view.stage() {
            RunStage::Queued
            | RunStage::Preparing
            | RunStage::Working { .. }
            | RunStage::Blocked { .. }
            | RunStage::Reviewing
            | RunStage::Landing(_) => true,
            RunStage::Done(outcome) => {
                self.view.has_unclosed_tasks() || self.loops.keys().any(|id| self.has_work(id, *outcome))
            }
        }
    }

    /// Whether a user reopened a loop after the run had ended without being cancelled.
    pub(super) fn is_reopened(&self) -> bool {
        let by_itself = |outcome: &RunOutcome| *outcome != RunOutcome::Cancelled;
        matches!(self.view.stage(), RunStage::Done(outcome) if by_itself(outcome)) && self.is_open()
    }

    fn has_work(&self, loop_id: &LoopId, outcome: RunOutcome) -> bool {
        let (state, policy) = (self.view.loop_state(loop_id), self.view.policy(loop_id));
        let (Some(state), Some(policy)) = (state, policy) else { return false };
        let cancelled = outcome == RunOutcome::Cancelled && !state.is_done();
        cancelled || outstanding(state, policy).iter().any(|effect| *effect != Effect::AwaitLanding)
    }

    fn loop_rows(&self, loop_id: &LoopId) -> Vec<TableRow> {
        let (Some(view), Some(track)) = (self.view.row(loop_id), self.loops.get(loop_id)) else {
            return Vec::new();
        };
        let mut rows = Vec::new();
        if let Some(task) = track.task.filter(|task| self.task_loops.get(task) == Some(loop_id)) {
            rows.push(TableRow::TaskProgress(self.task_progress(task, &view, track)));
        }
        if !loop_id.is_run_level() {
            rows.extend(self.loop_row(view, track).map(TableRow::Loop));
        }
        // The issues of a checkpoint review belong to the reviewed loop.
        if loop_id.checkpoint_target().is_none() {
            rows.extend(track.issues.iter().cloned().map(TableRow::Issue));
        }
        rows.extend(self.findings(loop_id, track));
        rows.extend(track.questions.iter().cloned().map(TableRow::Question));
        rows
    }

    fn loop_row(&self, view: LoopRow, track: &LoopTracker) -> Option<LoopRecord> {
        let state = self.view.loop_state(&view.id)?;
        Some(LoopRecord {
            run: self.run,
            task: view.task,
            status: status::loop_status(state),
            review_status: status::review_status(state),
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
            reason: view.reason,
            usage: view.usage,
            started_at: track.started_at,
            ended_at: track.ended_at,
            id: view.id,
        })
    }

    fn findings(&self, loop_id: &LoopId, track: &LoopTracker) -> Vec<TableRow> {
        let Some(state) = self.view.loop_state(loop_id) else { return Vec::new() };
        // The reviewed loop decides the findings of its checkpoint reviews.
        let reviewed_loop = loop_id.checkpoint_target().and_then(|(of, _)| self.view.loop_state(&of));
        let decided = |entry: &LedgerEntry| {
            let reported = reviewed_loop.and_then(|of| of.ledger.reported_as(&entry.finding.id));
            reported.map_or(entry.state, |there| there.state)
        };
        let row = |entry: &LedgerEntry| {
            TableRow::Finding(FindingRecord {
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

impl Projector {
    fn task_progress(&self, id: TaskId, view: &LoopRow, track: &LoopTracker) -> TaskProgress {
        let state = self.view.loop_state(&view.id);
        let approved = state.and_then(Loop::approved_commit).map(|commit| commit.as_str().to_owned());
        let landed = self.view.loops.get(&view.id).and_then(|state| state.current_landing()).map(ToString::to_string);
        let on_run = self.view.lands_on_run(&view.id);
        let shared = approved.clone().filter(|_| is_run_branch(&view.branch));
        TaskProgress {
            landed_commit: landed.clone().filter(|_| !on_run),
            run_commit: landed.filter(|_| on_run).or(shared),
            approved_commit: approved,
            started_at: track.started_at,
            ended_at: track.ended_at,
            ..TaskProgress::for_loop(id, view)
        }
    }
}
