//! Computes the current rows, and which of them changed.

use std::collections::BTreeSet;

use signoff_core::group::{RunOutcome, RunStage};
use signoff_core::ids::LoopId;
use signoff_core::ledger::LedgerEntry;
use signoff_core::machine::{Effect, outstanding};
use signoff_core::review::{Finding, Usage};
use signoff_core::view::{LoopReviewStatus, LoopRow, LoopRowStatus, RunStatus};

use super::Projector;
use super::loop_tracker::{IssueRecord, LoopTracker, QuestionRecord};
use crate::record::{Column, TableName, TableRow};

impl Projector {
    /// The rows that are new or changed since the last call, in write order.
    pub fn changed_rows(&mut self) -> Vec<TableRow> {
        let mut rows = std::mem::take(&mut self.new_rows);
        let mut now = vec![self.run_row()];
        for loop_id in self.take_changed_loops() {
            self.update_issue_states(&loop_id);
            now.extend(self.loop_rows(&loop_id));
        }
        for row in now {
            let key = (row.table, row.key.clone());
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
            let entries = self.run_state.loop_state(loop_id).map(|state| state.ledger.entries());
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
        matches!(self.run_state.stage(), RunStage::Done(_)) && !self.is_open()
    }

    fn update_issue_states(&mut self, loop_id: &LoopId) {
        if let (Some(tracker), Some(state)) = (self.loops.get_mut(loop_id), self.run_state.loop_state(loop_id)) {
            tracker.update_states(&state.ledger);
        }
    }

    fn run_row(&self) -> TableRow {
        let stage = self.run_state.stage();
        let status = if self.is_reopened() { RunStatus::Running } else { RunStatus::for_stage(stage) };
        let groups = self.run_state.groups().map(|groups| groups as u64);
        let usage = self.run_state.usage();
        let columns = vec![
            ("preset", self.run_state.preset().unwrap_or_default().into()),
            ("status", status.into_str().into()),
            ("open", self.is_open().into()),
            ("started_at", self.run_state.started_at.into()),
            ("ended_at", self.ended_at.into()),
            ("cost_usd", dollars(usage).into()),
            ("cost_is_estimated", usage.cost_is_estimated.into()),
            ("input_tokens", usage.input_tokens.into()),
            ("output_tokens", usage.output_tokens.into()),
            ("stage", stage.into_str().into()),
            ("group_number", groups.and(stage.group()).map(|group| group as u64 + 1).into()),
            ("group_count", groups.into()),
            ("branch", self.run_state.branch().into()),
            ("specification", self.run_state.specification().into()),
        ];
        TableRow::put(TableName::Runs, vec![self.run.0.into()], columns)
    }

    /// A run is open until it ends, and again when a user reopens one of its loops.
    fn is_open(&self) -> bool {
        match self.run_state.stage() {
            RunStage::Queued
            | RunStage::Preparing
            | RunStage::Working { .. }
            | RunStage::Blocked { .. }
            | RunStage::Reviewing
            | RunStage::Landing(_) => true,
            RunStage::Done(outcome) => {
                self.run_state.has_unclosed_tasks() || self.loops.keys().any(|id| self.has_work(id, *outcome))
            }
        }
    }

    /// Whether a user reopened a loop after the run had ended without being cancelled.
    pub(super) fn is_reopened(&self) -> bool {
        let by_itself = |outcome: &RunOutcome| *outcome != RunOutcome::Cancelled;
        matches!(self.run_state.stage(), RunStage::Done(outcome) if by_itself(outcome)) && self.is_open()
    }

    fn has_work(&self, loop_id: &LoopId, outcome: RunOutcome) -> bool {
        let (state, policy) = (self.run_state.loop_state(loop_id), self.run_state.policy(loop_id));
        let (Some(state), Some(policy)) = (state, policy) else { return false };
        let cancelled = outcome == RunOutcome::Cancelled && !state.is_done();
        cancelled || outstanding(state, policy).iter().any(|effect| *effect != Effect::AwaitLanding)
    }

    fn loop_rows(&self, loop_id: &LoopId) -> Vec<TableRow> {
        let (Some(row), Some(tracker)) = (self.run_state.row(loop_id), self.loops.get(loop_id)) else {
            return Vec::new();
        };
        let mut rows = Vec::new();
        if let Some(task) = self.task(loop_id).filter(|task| self.task_loops.get(task) == Some(loop_id)) {
            rows.push(self.progress_row(task, &row, tracker));
        }
        if !loop_id.is_run_level() {
            rows.extend(self.loop_row(&row, tracker));
        }
        // The issues of a checkpoint review belong to the reviewed loop.
        if loop_id.checkpoint_target().is_none() {
            rows.extend(tracker.issues.iter().map(IssueRecord::row));
        }
        rows.extend(self.findings(loop_id));
        rows.extend(tracker.questions.iter().map(QuestionRecord::row));
        rows
    }

    fn loop_row(&self, row: &LoopRow, tracker: &LoopTracker) -> Option<TableRow> {
        let state = self.run_state.loop_state(&row.id)?;
        let columns = vec![
            ("task_id", row.task.map(|task| task.0).into()),
            ("status", LoopRowStatus::for_loop(state).into_str().into()),
            ("iteration", row.iteration.into()),
            ("last_checkpoint_review_at", state.counters.last_checkpoint.into()),
            ("review_status", LoopReviewStatus::for_loop(state).into_str().into()),
            ("last_review_id", tracker.last_review.as_deref().into()),
            ("revision_attempts", row.fixes.into()),
            ("worktree_path", non_empty(&row.worktree).into()),
            ("title", row.title.as_str().into()),
            ("branch", non_empty(&row.branch).into()),
            ("phase", row.phase.as_str().into()),
            ("pass", row.pass.into()),
            ("cycle", row.cycle.into()),
            ("head_commit", non_empty(state.head.commit.as_str()).into()),
            ("outcome", row.outcome.map(<&str>::from).into()),
            ("reason", row.reason.map(<&str>::from).into()),
            ("cost_usd", dollars(row.usage).into()),
            ("cost_is_estimated", row.usage.cost_is_estimated.into()),
            ("started_at", tracker.started_at.into()),
            ("ended_at", tracker.ended_at.into()),
        ];
        Some(TableRow::put(TableName::Loops, vec![self.run.0.into(), row.id.as_str().into()], columns))
    }

    /// The ledger entries of a loop.
    fn findings(&self, loop_id: &LoopId) -> Vec<TableRow> {
        let Some(state) = self.run_state.loop_state(loop_id) else { return Vec::new() };
        // The reviewed loop decides the findings of its checkpoint reviews.
        let reviewed_loop = loop_id.checkpoint_target().and_then(|(of, _)| self.run_state.loop_state(&of));
        let row = |entry: &LedgerEntry| {
            let reported = reviewed_loop.and_then(|of| of.ledger.reported_as(&entry.finding.id));
            let decided = reported.map_or(entry.state, |there| there.state);
            let mut columns =
                vec![("task_id", self.task(loop_id).map(|task| task.0).into()), ("state", decided.into_str().into())];
            columns.extend(finding_columns(&entry.finding));
            let key = vec![entry.finding.id.as_str().into(), self.run.0.into(), loop_id.as_str().into()];
            TableRow::put(TableName::Findings, key, columns)
        };
        state.ledger.entries().iter().map(row).collect()
    }
}

/// The columns that issues and findings share.
pub(super) fn finding_columns(finding: &Finding) -> [Column; 6] {
    [
        ("file", finding.file.as_deref().into()),
        ("line", finding.line.into()),
        ("type", finding.kind.as_str().into()),
        ("severity", finding.severity.into_str().into()),
        ("description", finding.description.as_str().into()),
        ("suggestion", finding.suggestion.as_deref().into()),
    ]
}

/// The cost in dollars.
pub(super) fn dollars(usage: Usage) -> f64 {
    usage.cost_micro_usd as f64 / 1_000_000.0
}

/// The text, or `None` if it is empty.
pub(super) fn non_empty(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}
