//! The jobs of all running attempts, derived from the state.

use super::Policy;
use super::event::{Job, JobKind};
use super::state::{AttemptSlot, Fix, FixOrder, FixState, Loop, Panel, Position, Stage};
use crate::ids::{Commit, ReviewerName};
use crate::review::Finding;
use crate::workflow::{PhaseKind, Role};

impl Loop {
    /// The jobs of all running attempts.
    pub(super) fn jobs(&self, policy: &Policy) -> Vec<Job> {
        let job = |slot: &AttemptSlot, cycle: u32, kind: JobKind| {
            let Position { pass, phase, item } = self.at;
            slot.attempt().map(|attempt| Job { attempt, pass, phase, item, cycle, kind })
        };
        let cycle = self.tally.cycle;
        match &self.stage {
            Stage::Working { slot, .. } => {
                let kind = JobKind::Work { role: self.role(policy), notes: self.notes.clone() };
                job(slot, 0, kind).into_iter().collect()
            }
            Stage::Researching { team } => {
                let role = self.role(policy);
                let out = team.iter().enumerate().filter_map(|(number, one)| one.slot().map(|slot| (number, slot)));
                out.filter_map(|(number, slot)| job(slot, 0, JobKind::Research { role, number })).collect()
            }
            Stage::Checking { slot, .. } => job(slot, cycle, JobKind::Check).into_iter().collect(),
            Stage::Reviewing(panel) => panel.jobs(|slot, kind| job(slot, cycle, kind)),
            Stage::Fixing { fixes, order, .. } => {
                let kind = |part: usize, fix: &Fix| self.fix_job(fix, (*order, part), policy);
                let out = fixes.iter().enumerate().filter_map(|(part, fix)| Some((part, fix, fix.slot()?)));
                out.filter_map(|(part, fix, slot)| job(slot, cycle, kind(part, fix))).collect()
            }
            Stage::Combining { slot, fixes, .. } => {
                job(slot, cycle, JobKind::Combine { parts: parts(fixes) }).into_iter().collect()
            }
            Stage::Landing { slot, .. } => job(slot, cycle, JobKind::Land).into_iter().collect(),
            Stage::Queued | Stage::AwaitingLanding { .. } | Stage::Waiting { .. } | Stage::Done(_) => Vec::new(),
        }
    }

    fn fix_job(&self, fix: &Fix, (order, part): (FixOrder, usize), policy: &Policy) -> JobKind {
        let judge = policy.phase(self.at.phase).and_then(|phase| phase.policy());
        let is_new = |note: &&Finding| !fix.findings.contains(&note.id);
        JobKind::Fix {
            role: judge.map_or(Role::Fix, |judge| judge.fixer),
            findings: fix.findings.clone(),
            unread: fix.unread.clone(),
            notes: self.notes.iter().filter(is_new).cloned().collect(),
            side_by_side: order == FixOrder::AtOnce,
            part,
        }
    }

    fn role(&self, policy: &Policy) -> Role {
        match policy.phase(self.at.phase).map(|phase| &phase.kind) {
            Some(PhaseKind::Agent { role, .. }) => *role,
            Some(PhaseKind::Gate(_) | PhaseKind::Check(_)) | None => Role::Implement,
        }
    }
}

/// The commits of the parallel fixers that succeeded.
fn parts(fixes: &[Fix]) -> Vec<(usize, Commit)> {
    let part = |(index, fix): (usize, &Fix)| match &fix.state {
        FixState::Done { apart } => apart.clone().map(|commit| (index, commit)),
        FixState::Queued | FixState::Assigned(_) | FixState::Failed { .. } => None,
    };
    fixes.iter().enumerate().filter_map(part).collect()
}

impl Panel {
    fn jobs(&self, job: impl Fn(&AttemptSlot, JobKind) -> Option<Job>) -> Vec<Job> {
        let kind = |reviewer: &ReviewerName| JobKind::Review {
            reviewer: reviewer.clone(),
            scope: self.scope,
            commit: self.commit.clone(),
        };
        let out = self.seats.iter().filter_map(|(name, seat)| seat.slot().map(|slot| (name, slot)));
        out.filter_map(|(name, slot)| job(slot, kind(name))).collect()
    }
}
