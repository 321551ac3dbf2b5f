//! What would come along unreviewed, in words, with what to type next.

use std::collections::BTreeMap;

use signoff_core::ids::{Commit, RunId, TaskId};
use signoff_core::machine::Reason;
use signoff_core::view::Status;

use super::super::short;
use super::{Asked, Cover, Range, unapproved};
use crate::board::Board;
use crate::error::EngineError;

impl Cover<'_> {
    /// Names what is left: a task if it is one's, else the first commit.
    pub(super) fn named(
        &mut self,
        asked: Asked<'_>,
        boards: &BTreeMap<RunId, Board>,
    ) -> Result<EngineError, EngineError> {
        let refused = unapproved(boards, |worked| worked.state.signed_off_commit().is_none());
        let mut branches = Vec::new();
        for run in boards.keys() {
            let head = self.records.repository.head_of(&run.branch())?;
            branches.extend(head.map(|head| (run.branch(), head.commit)));
        }
        let tips = refused.values().flat_map(|range| [range.base.clone(), range.tip.clone()]);
        let tips: Vec<Commit> = tips.chain(branches.iter().map(|(_, tip)| tip.clone())).collect();
        self.look(&tips)?;
        let is_left = |commit: &&Commit| self.left.contains(commit);
        let its = refused
            .iter()
            .find(|(_, range)| self.lineage.between(&range.base, &range.tip).iter().any(is_left));
        if let Some((task, _)) = its {
            return Ok(self.builds_on(asked, *task));
        }
        let Some(commit) = self.left.first() else {
            return Ok(EngineError::Broken("nothing is left to be named".to_owned()));
        };
        let on = branches.iter().find(|(_, tip)| self.lineage.reach(tip).contains(commit));
        self.foreign(asked, (commit, on.map(|(branch, _)| branch.as_str())))
    }

    fn builds_on(&self, asked: Asked<'_>, task: TaskId) -> EngineError {
        let what = asked.what;
        let row = self.rows.iter().find(|row| row.id == task.0);
        let accept = format!("`signoff merge {task} --force --reason TEXT` approves it in your name");
        let message = format!("{what} builds on task {task}, which is not approved");
        if row.is_some_and(|row| row.reason == Some(Reason::EditedByPerson.word())) {
            return EngineError::NotLanded {
                message,
                hint: format!("it was refused; `signoff improve {task} --review` goes on with it; {accept}"),
            };
        }
        let first = match row.map(|row| row.status) {
            Some(Status::Failed | Status::Stuck) => format!("`signoff retry {task}` goes on with it"),
            Some(Status::InProgress | Status::Waiting | Status::Paused | Status::Blocked) => {
                "`signoff` says what it waits for".to_owned()
            }
            Some(Status::Pending | Status::Completed | Status::Cancelled) | None => {
                format!("`signoff review {task}` has it reviewed")
            }
        };
        EngineError::NotLanded { message, hint: format!("{first}; {accept}") }
    }

    fn foreign(
        &self,
        asked: Asked<'_>,
        (commit, branch): (&Commit, Option<&str>),
    ) -> Result<EngineError, EngineError> {
        let described = self.records.repository.described([commit])?;
        let subject = described.get(commit).map(|described| described.subject.clone()).unwrap_or_default();
        let (what, id, target) = (asked.what, short(commit), self.target);
        let begun_on = |own: &&Range| self.lineage.reach(&own.base).contains(commit);
        if let Some(own) = asked.own.filter(begun_on).filter(|_| branch.is_none()) {
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
                "{what} did not land: commit {id} (\"{subject}\") came{onto} from elsewhere and nobody reviewed it"
            ),
            hint: format!(
                "look at it with `git show {id}`; if it is good, merge it yourself (`git merge {id}`), then type the same again"
            ),
        })
    }
}
