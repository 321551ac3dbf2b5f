//! Lines about the run as a whole. A run of one task has none.

use std::collections::BTreeMap;

use signoff_core::group::{RunEvent, RunOutcome, RunStage};
use signoff_core::ids::LoopId;
use signoff_core::view::Status;
use signoff_core::wire::{Recorded, RunFact};
use signoff_core::workflow::Arrangement;

use super::LineRenderer;
use crate::fit::{count, cut};
use crate::words;

impl LineRenderer {
    pub(super) fn run_fact(&mut self, recorded: &Recorded, fact: &RunFact) -> Vec<String> {
        let before = self.view.stage().clone();
        self.view.apply(recorded);
        match fact {
            RunFact::Opened { policy, .. } => {
                self.policy = Some(policy.clone());
                Vec::new()
            }
            RunFact::Specified { .. } => Vec::new(),
            RunFact::Moved(event) => {
                if let RunEvent::GroupsPlanned { groups } = event {
                    self.groups.clone_from(groups);
                }
                self.run_moved(&before)
            }
        }
    }

    fn run_moved(&self, before: &RunStage) -> Vec<String> {
        let stage = self.view.stage();
        if stage == before {
            return Vec::new();
        }
        match stage {
            RunStage::Queued | RunStage::Preparing => Vec::new(),
            RunStage::Working { group } => self.group_begins(*group, before),
            RunStage::Blocked { by, .. } => self.blocked(by),
            RunStage::Reviewing => vec!["All tasks are through: looking at the whole".to_owned()],
            RunStage::Landing(_) => vec!["Landing on the default branch".to_owned()],
            RunStage::Done(outcome) => self.over(*outcome, before),
        }
    }

    /// `Group 2 of 3: #31, #32`, where tasks are worked in groups.
    fn group_begins(&self, group: usize, before: &RunStage) -> Vec<String> {
        let grouped = self.policy.as_ref().is_some_and(|policy| policy.arrangement == Arrangement::Groups);
        let new = match before {
            RunStage::Working { group: old } | RunStage::Blocked { group: old, .. } => *old != group,
            RunStage::Queued
            | RunStage::Preparing
            | RunStage::Reviewing
            | RunStage::Landing(_)
            | RunStage::Done(_) => true,
        };
        let Some(loops) = self.groups.get(group).filter(|_| grouped && new) else { return Vec::new() };
        vec![format!("Group {} of {}: {}", group + 1, self.groups.len(), self.names(loops))]
    }

    /// Which tasks block the run, and what to type.
    fn blocked(&self, by: &[LoopId]) -> Vec<String> {
        let run = self.view.run.map(|run| format!(" {run}")).unwrap_or_default();
        let mut lines = vec![format!("▪ Run{run} is blocked by {}", self.names(by))];
        for task in by.iter().filter_map(|loop_id| self.view.row(loop_id)?.task) {
            lines.push(format!(
                "    signoff retry {task}, signoff edit {task} --verdict APPROVED, or signoff cancel {task}"
            ));
        }
        lines.push(format!("    then: signoff run --resume{run}"));
        lines
    }

    fn names(&self, loops: &[LoopId]) -> String {
        let name = |loop_id: &LoopId| match self.view.row(loop_id).and_then(|row| row.task) {
            Some(task) => format!("#{task}"),
            None => cut(loop_id.as_str(), 40),
        };
        loops.iter().map(name).collect::<Vec<_>>().join(", ")
    }

    /// `✗ Run 3 failed: 4 tasks, 3 completed, 1 failed`, where there were several.
    fn over(&self, outcome: RunOutcome, before: &RunStage) -> Vec<String> {
        let rows = self.view.rows();
        let tasks: Vec<_> = rows.iter().filter(|row| row.task.is_some()).collect();
        let unfinished =
            matches!(before, RunStage::Preparing | RunStage::Reviewing) && outcome == RunOutcome::Failed;
        if tasks.len() < 2 && !unfinished {
            return Vec::new();
        }
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for row in &tasks {
            *counts.entry(row.status.word()).or_default() += 1;
        }
        let run = self.view.run.map(|run| format!(" {run}")).unwrap_or_default();
        let (mark, word) = match outcome {
            RunOutcome::Approved => (words::mark(Status::Completed), "is through, all approved"),
            RunOutcome::Attention => (words::mark(Status::Completed), "is through, not all approved"),
            RunOutcome::Failed => (words::mark(Status::Failed), "failed"),
            RunOutcome::Cancelled => (words::mark(Status::Cancelled), "cancelled"),
        };
        if tasks.is_empty() {
            return vec![format!("{mark} Run{run} {word} before its first task")];
        }
        let counts: String = counts.iter().map(|(word, number)| format!(", {number} {word}")).collect();
        vec![format!("{mark} Run{run} {word}: {}{counts}", count(tasks.len() as u64, "task"))]
    }
}
