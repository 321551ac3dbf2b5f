//! Describes commits that would land without review, with the next command to run.

use std::collections::BTreeMap;

use signoff_core::ids::{Commit, RunId, TaskId};
use signoff_core::machine::Reason;
use signoff_core::view::{RunState, TaskStatus};

use super::super::short;
use super::{ApprovedRange, Coverage, LandingCandidate, unapproved};
use crate::error::EngineError;

impl Coverage<'_> {
    /// Describes the remaining commits: by their task, or by the first commit.
    pub(super) fn refusal(
        &mut self,
        candidate: LandingCandidate<'_>,
        boards: &BTreeMap<RunId, RunState>,
    ) -> Result<EngineError, EngineError> {
        let refused = unapproved(boards, |loop_state| loop_state.machine.signed_off_commit().is_none());
        let mut branches = Vec::new();
        for run in boards.keys() {
            let head = self.records.repository.head_of(&run.branch())?;
            branches.extend(head.map(|head| (run.branch(), head.commit)));
        }
        let tips = refused.values().flat_map(|range| [range.base.clone(), range.tip.clone()]);
        let tips: Vec<Commit> = tips.chain(branches.iter().map(|(_, tip)| tip.clone())).collect();
        self.load_history(&tips)?;
        let is_left = |commit: &&Commit| self.uncovered.contains(commit);
        let its = refused.iter().find(|(_, range)| self.lineage.between(&range.base, &range.tip).iter().any(is_left));
        if let Some((task, _)) = its {
            return Ok(self.unapproved_task_error(candidate, *task));
        }
        let Some(commit) = self.uncovered.first() else {
            return Ok(EngineError::Internal("nothing is left to be named".to_owned()));
        };
        let on = branches.iter().find(|(_, tip)| self.lineage.ancestors(tip).contains(commit));
        self.foreign_commit_error(candidate, commit, on.map(|(branch, _)| branch.as_str()))
    }

    fn unapproved_task_error(&self, candidate: LandingCandidate<'_>, task: TaskId) -> EngineError {
        let what = candidate.what;
        let row = self.rows.iter().find(|row| row.id == task.0);
        let accept = format!("`signoff merge {task} --force --reason TEXT` approves it in your name");
        let message = format!("{what} builds on task {task}, which is not approved");
        if row.is_some_and(|row| row.reason == Some(Reason::EditedByPerson)) {
            return EngineError::NotLanded {
                message,
                hint: format!("it was refused; `signoff improve {task} --review` goes on with it; {accept}"),
            };
        }
        let first = match row.map(|row| row.status) {
            Some(TaskStatus::Failed | TaskStatus::Stuck) => format!("`signoff retry {task}` goes on with it"),
            Some(TaskStatus::InProgress | TaskStatus::Waiting | TaskStatus::Paused | TaskStatus::Blocked) => {
                "`signoff` says what it waits for".to_owned()
            }
            Some(TaskStatus::Pending | TaskStatus::Completed | TaskStatus::Cancelled) | None => {
                format!("`signoff review {task}` has it reviewed")
            }
        };
        EngineError::NotLanded { message, hint: format!("{first}; {accept}") }
    }

    fn foreign_commit_error(
        &self,
        candidate: LandingCandidate<'_>,
        commit: &Commit,
        branch: Option<&str>,
    ) -> Result<EngineError, EngineError> {
        let described = self.records.repository.commit_infos([commit])?;
        let subject = described.get(commit).map(|described| described.subject.clone()).unwrap_or_default();
        let (what, id, target) = (candidate.what, short(commit), self.target);
        let begun_on = |own: &&ApprovedRange| self.lineage.ancestors(&own.base).contains(commit);
        if let Some(own) = candidate.own.filter(begun_on).filter(|_| branch.is_none()) {
            return Ok(EngineError::NotLanded {
                message: format!(
                    "{what} did not land: it was begun on commit {id} (\"{subject}\"), which {target} does not have"
                ),
                hint: format!(
                    "if {target} was rewritten: `git rebase --onto {target} {}` in the worktree of {what}, have that \
                     reviewed with `signoff review`, then `signoff land`",
                    short(&own.base)
                ),
            });
        }
        let onto = branch.map(|branch| format!(" onto {branch}")).unwrap_or_default();
        Ok(EngineError::NotLanded {
            message: format!(
                "{what} did not land: commit {id} (\"{subject}\") came{onto} from elsewhere and was not reviewed"
            ),
            hint: format!(
                "look at it with `git show {id}`; if it is good, merge it yourself (`git merge {id}`), then type the same again"
            ),
        })
    }
}
