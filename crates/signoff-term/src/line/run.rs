//! Lines about a run. A run of one task has none.

use std::collections::BTreeMap;

use signoff_core::group::{RunEvent, RunOutcome, RunStage};
use signoff_core::ids::LoopId;
use signoff_core::machine::OutcomeKind;
use signoff_core::view::inbox::{Action, NextStep, RunEnd};
use signoff_core::view::{Blocker, LoopRow, TaskStatus};
use signoff_core::wire::RunFact;
use signoff_core::workflow::{Landing, Scheduling};

use super::LineRenderer;
use crate::fit::{count, first, truncate_line};
use crate::{labels, progress};

/// Maximum number of tasks a line names; the others are counted.
const MAX_NAMED_TASKS: usize = 8;

/// Maximum width of a title in a list.
const MAX_TITLE_WIDTH: usize = 40;

impl LineRenderer {
    /// Lines about an event of the run, which was in the stage `before`.
    pub(super) fn run_lines(&mut self, fact: &RunFact, before: &RunStage) -> Vec<String> {
        let RunFact::Transitioned(event) = fact else { return Vec::new() };
        let mut lines = self.checkpoint_lines();
        if let RunEvent::GroupsPlanned { .. } = event {
            lines.extend(self.planned());
        }
        lines.extend(self.stage_lines(before));
        lines
    }

    fn checkpoint_lines(&mut self) -> Vec<String> {
        let state = &self.state;
        self.checkpoint.set_loops(state.checkpoint(), |loops| names(loops, |loop_id| name(state.row(loop_id), loop_id)))
    }

    /// Whether the run works its tasks in groups.
    fn is_grouped(&self) -> bool {
        self.state.run_policy().is_some_and(|policy| policy.scheduling == Scheduling::Groups)
    }

    /// `Planned 7 tasks in 3 groups`. If tasks will run in parallel, each line names its task from now on.
    fn planned(&mut self) -> Option<String> {
        let working = matches!(self.state.stage(), RunStage::Working { .. });
        if !self.is_grouped() || !working {
            return None;
        }
        let jobs = self.state.run_policy().map_or(1, |policy| policy.jobs);
        self.names_required |= jobs > 1 && self.state.machine.groups.iter().any(|group| group.len() > 1);
        let tasks = self.state.machine.groups.iter().map(Vec::len).sum::<usize>() as u64;
        Some(format!("Planned {} in {}", count(tasks, "task"), count(self.state.machine.groups.len() as u64, "group")))
    }

    fn stage_lines(&self, before: &RunStage) -> Vec<String> {
        let stage = self.state.stage();
        if stage == before {
            return Vec::new();
        }
        match stage {
            RunStage::Queued | RunStage::Preparing | RunStage::Reviewing => Vec::new(),
            RunStage::Working { group } => self.group_begins(*group, before),
            // A run of one task blocks no other task.
            RunStage::Blocked { .. } if self.state.machine.groups.iter().flatten().count() == 1 => Vec::new(),
            RunStage::Blocked { .. } => self.blocked(),
            RunStage::Landing(_) => vec!["Landing on the default branch".to_owned()],
            RunStage::Done(outcome) => self.outcome_lines(*outcome, before),
        }
    }

    /// `Group 2/3: #31 Add the page, #32 Add the table`, for runs with groups.
    fn group_begins(&self, group: usize, before: &RunStage) -> Vec<String> {
        let new = match before {
            RunStage::Working { group: old } | RunStage::Blocked { group: old, .. } => *old != group,
            RunStage::Queued | RunStage::Preparing => true,
            // Only tasks that a person reopened are worked again.
            RunStage::Reviewing | RunStage::Landing(_) | RunStage::Done(_) => false,
        };
        let Some(loops) = self.state.machine.groups.get(group).filter(|_| self.is_grouped() && new) else {
            return Vec::new();
        };
        let named = names(loops, |loop_id| {
            let row = self.state.row(loop_id);
            let title = row.as_ref().map(|row| truncate_line(&row.title, MAX_TITLE_WIDTH)).unwrap_or_default();
            format!("{} {title}", name(row, loop_id)).trim_end().to_owned()
        });
        vec![format!("Group {}/{}: {named}", group + 1, self.state.machine.groups.len())]
    }

    /// The progress of a run with groups that is resumed.
    pub(super) fn resume_lines(&self) -> Vec<String> {
        if !self.is_grouped() {
            return Vec::new();
        }
        match self.state.stage() {
            RunStage::Working { .. } => {
                vec![format!("Resuming {}", progress::run_progress(&self.state.overview()))]
            }
            RunStage::Blocked { .. } => self.blocked(),
            RunStage::Queued | RunStage::Preparing | RunStage::Reviewing | RunStage::Landing(_) | RunStage::Done(_) => {
                Vec::new()
            }
        }
    }

    /// The tasks that block the run, the reasons, and the commands to type.
    fn blocked(&self) -> Vec<String> {
        let run = self.state.run;
        let by = self.state.overview().blocked_by;
        let blocker_text = |blocker: &Blocker| {
            let why = blocker.reason.map(|reason| format!(" ({})", labels::reason(reason))).unwrap_or_default();
            let name = blocker
                .task
                .map_or_else(|| truncate_line(blocker.id.as_str(), MAX_TITLE_WIDTH), |task| format!("#{task}"));
            format!("{name}{why}")
        };
        let mut lines = vec![format!(
            "▪ Run {run} is blocked by {}",
            first(&by.iter().map(blocker_text).collect::<Vec<_>>(), MAX_NAMED_TASKS)
        )];
        for task in by.iter().filter_map(|blocker| blocker.task).take(MAX_NAMED_TASKS) {
            lines.push(format!("    {}", NextStep::unblock_run(task.0)));
        }
        lines.push(format!("    then: {}", Action::ResumeRun(Some(run.0))));
        lines
    }

    /// `✗ Run 3 failed: 4 tasks, 3 completed, 1 failed`, if there were several tasks; and the branch of their work.
    fn outcome_lines(&self, outcome: RunOutcome, before: &RunStage) -> Vec<String> {
        let rows = self.state.rows();
        let tasks: Vec<_> = rows.iter().filter(|row| row.task.is_some()).collect();
        let unfinished = matches!(before, RunStage::Preparing | RunStage::Reviewing) && outcome == RunOutcome::Failed;
        if tasks.len() < 2 && !unfinished && !self.is_grouped() {
            return Vec::new();
        }
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for row in &tasks {
            *counts.entry(row.status.into_str()).or_default() += 1;
        }
        let run = self.state.run;
        let all_cancelled = tasks.iter().all(|row| row.status == TaskStatus::Cancelled) && !tasks.is_empty();
        let word = match outcome {
            RunOutcome::Approved | RunOutcome::Attention if all_cancelled => "ended, all tasks cancelled".to_owned(),
            RunOutcome::Approved => all_approved(&rows),
            RunOutcome::Attention => "completed, not all approved".to_owned(),
            RunOutcome::Failed => "failed".to_owned(),
            RunOutcome::Cancelled => "cancelled".to_owned(),
        };
        let mark = self.state.final_state(outcome).mark();
        if tasks.is_empty() {
            return vec![format!("{mark} Run {run} {word} before its first task")];
        }
        let counts: String = counts.iter().map(|(word, number)| format!(", {number} {word}")).collect();
        let ended = format!("{mark} Run {run} {word}: {}{counts}", count(tasks.len() as u64, "task"));
        std::iter::once(ended).chain(self.branch_line(outcome, before)).collect()
    }

    /// The branch on which the tasks landed, and the command to type next.
    fn branch_line(&self, outcome: RunOutcome, before: &RunStage) -> Option<String> {
        let lands = self.state.run_policy().is_some_and(|policy| policy.landing != Landing::None);
        let landed = self.state.overview().tasks.done > 0;
        let branch = self.state.branch().filter(|_| lands && landed)?;
        let (land, run) = (Action::Land, self.state.run.0);
        let (retry, accept) = (Action::RetryRun(run), Action::AcceptRun(run));
        Some(match RunEnd::new(&self.state, outcome, matches!(before, RunStage::Landing(_))) {
            RunEnd::OnDefaultBranch => format!("    Its work is on {branch} and on the default branch"),
            RunEnd::Approved => format!("    Its work is on {branch}; `{land}` lands it on the default branch"),
            RunEnd::PartlyApproved => {
                format!("    Its work is on {branch}; `{land}` lands the approved work on the default branch")
            }
            RunEnd::NotAccepted => format!("    Its work is on {branch}; accept it: {accept}"),
            RunEnd::FinalReviewFailed => {
                format!("    The landed work is on {branch}; continue: {retry}; accept it: {accept}")
            }
            RunEnd::Stopped => format!("    The landed work is on {branch}"),
        })
    }
}

/// `completed, all approved, 1 by a person, 2 open findings`, of the tasks and the final review.
fn all_approved(rows: &[LoopRow]) -> String {
    let is_meant = |row: &&LoopRow| row.task.is_some() || row.id == LoopId::final_review();
    let (tasks, whole): (Vec<_>, Vec<_>) = rows.iter().filter(is_meant).partition(|row| row.task.is_some());
    let accepted = |rows: &[&LoopRow]| rows.iter().filter(|row| row.outcome == Some(OutcomeKind::Accepted)).count();
    let by_person = match (accepted(&tasks), accepted(&whole)) {
        (0, 0) => String::new(),
        (tasks, 0) => format!(", {tasks} by a person"),
        (0, _) => ", the final review by a person".to_owned(),
        (tasks, _) => format!(", {tasks} and the final review by a person"),
    };
    let open: usize = tasks.iter().chain(&whole).map(|row| row.open_findings).sum();
    format!("completed, all approved{by_person}{}", labels::open_findings(open as u64))
}

fn name(row: Option<LoopRow>, loop_id: &LoopId) -> String {
    match row.and_then(|row| row.task) {
        Some(task) => format!("#{task}"),
        None => truncate_line(loop_id.as_str(), MAX_TITLE_WIDTH),
    }
}

fn names(loops: &[LoopId], name: impl Fn(&LoopId) -> String) -> String {
    first(&loops.iter().map(name).collect::<Vec<_>>(), MAX_NAMED_TASKS)
}
