//! The attempt slots of a loop in all stages, and the jobs of its running attempts.

use super::Policy;
use super::event::{Event, Job, JobKind, WorkReport};
use super::rate_limits::JobKey;
use super::state::{
    AttemptSlot, Fix, FixOrder, FixState, Loop, Panel, PauseReason, Position, ResearcherState, ReviewerState, Stage,
};
use crate::ids::{AttemptId, Commit, QuestionId};
use crate::review::Finding;
use crate::workflow::{PhaseKind, Role};

impl AttemptSlot {
    pub fn attempt(&self) -> Option<AttemptId> {
        if let Self::Running(attempt) = self { Some(*attempt) } else { None }
    }
}

impl Stage {
    /// All slots of this stage.
    pub fn slots_mut(&mut self) -> Vec<&mut AttemptSlot> {
        match self {
            Self::Working { slot, .. }
            | Self::Checking { slot, .. }
            | Self::Combining { slot, .. }
            | Self::Landing { slot, .. } => vec![slot],
            Self::Researching { team } => team.iter_mut().filter_map(ResearcherState::slot_mut).collect(),
            Self::Reviewing(panel) => panel.reviewers.values_mut().filter_map(ReviewerState::slot_mut).collect(),
            Self::Fixing { fixes, .. } => fixes.iter_mut().filter_map(Fix::slot_mut).collect(),
            Self::Queued | Self::AwaitingLanding { .. } | Self::Waiting { .. } | Self::Done(_) => Vec::new(),
        }
    }

    /// All slots of this stage, each with its job.
    pub fn job_slots(&self) -> Vec<(JobKey, &AttemptSlot)> {
        match self {
            Self::Working { slot, .. } => vec![(JobKey::Work, slot)],
            Self::Checking { slot, .. } | Self::Combining { slot, .. } | Self::Landing { slot, .. } => {
                vec![(JobKey::Program, slot)]
            }
            Self::Researching { team } => {
                let out = team.iter().enumerate().filter_map(|(number, one)| Some((number, one.slot()?)));
                out.map(|(number, slot)| (JobKey::Research(number), slot)).collect()
            }
            Self::Reviewing(panel) => {
                let out = panel.reviewers.iter().filter_map(|(name, state)| Some((name, state.slot()?)));
                out.map(|(name, slot)| (JobKey::Review(name.clone()), slot)).collect()
            }
            Self::Fixing { fixes, .. } => {
                let out = fixes.iter().enumerate().filter_map(|(part, fix)| Some((part, fix.slot()?)));
                out.map(|(part, slot)| (JobKey::Fix(part), slot)).collect()
            }
            Self::Queued | Self::AwaitingLanding { .. } | Self::Waiting { .. } | Self::Done(_) => Vec::new(),
        }
    }
}

impl ResearcherState {
    fn slot_mut(&mut self) -> Option<&mut AttemptSlot> {
        if let Self::Assigned { slot, .. } = self { Some(slot) } else { None }
    }

    pub(super) fn slot(&self) -> Option<&AttemptSlot> {
        if let Self::Assigned { slot, .. } = self { Some(slot) } else { None }
    }
}

impl ReviewerState {
    fn slot_mut(&mut self) -> Option<&mut AttemptSlot> {
        if let Self::Assigned { slot, .. } = self { Some(slot) } else { None }
    }

    pub(super) fn slot(&self) -> Option<&AttemptSlot> {
        if let Self::Assigned { slot, .. } = self { Some(slot) } else { None }
    }

    pub(crate) fn attempt(&self) -> Option<AttemptId> {
        self.slot()?.attempt()
    }
}

impl Fix {
    fn slot_mut(&mut self) -> Option<&mut AttemptSlot> {
        if let FixState::Assigned(slot) = &mut self.state { Some(slot) } else { None }
    }

    pub(super) fn slot(&self) -> Option<&AttemptSlot> {
        if let FixState::Assigned(slot) = &self.state { Some(slot) } else { None }
    }
}

impl Loop {
    /// Whether every attempt is paused by a budget or a rate limit. A loop that waits only for a checkpoint review is
    /// not paused.
    pub fn is_paused(&self) -> bool {
        let slots = self.slots();
        let is_paused = |slot: &&AttemptSlot| matches!(slot, AttemptSlot::Paused(_));
        let at_checkpoint = |slot: &&AttemptSlot| **slot == AttemptSlot::Paused(PauseReason::Checkpoint);
        !slots.is_empty() && slots.iter().all(is_paused) && !slots.iter().all(at_checkpoint)
    }

    pub fn slots(&self) -> Vec<&AttemptSlot> {
        self.stage.job_slots().into_iter().map(|(_, slot)| slot).collect()
    }

    pub fn running_attempts(&self) -> Vec<AttemptId> {
        self.slots().into_iter().filter_map(AttemptSlot::attempt).collect()
    }

    /// The number of attempts since the last checkpoint review.
    pub fn attempts_since_checkpoint(&self) -> u32 {
        self.counters.attempts.saturating_sub(self.counters.last_checkpoint)
    }

    pub fn runs(&self, attempt: AttemptId) -> bool {
        self.running_attempts().contains(&attempt)
    }

    /// Whether a running attempt writes to the worktree.
    pub fn is_being_written(&self) -> bool {
        let writes = matches!(
            self.stage,
            Stage::Working { .. } | Stage::Fixing { .. } | Stage::Combining { .. } | Stage::Landing { .. }
        );
        writes && !self.running_attempts().is_empty()
    }

    /// Whether this event ends a writing attempt without completing the work. Then a checkpoint review may be due.
    pub fn is_incomplete_end(&self, event: &Event) -> bool {
        let (Event::WorkEnded { attempt, report: WorkReport::Incomplete { .. } }
        | Event::AttemptFailed { attempt, .. }) = event
        else {
            return false;
        };
        matches!(self.stage, Stage::Working { .. } | Stage::Fixing { .. }) && self.runs(*attempt)
    }

    /// The distinct pause reasons of this loop.
    pub fn pause_reasons(&self) -> Vec<PauseReason> {
        let mut holds = Vec::new();
        for slot in self.slots() {
            if let AttemptSlot::Paused(reason) = slot
                && !holds.contains(reason)
            {
                holds.push(*reason);
            }
        }
        holds
    }

    /// Resets the loss counters: an attempt reported, so the program runs.
    pub(super) fn reset_losses(&mut self) {
        self.counters.losses = 0;
        self.counters.lost_with_crash.clear();
    }

    /// Moves the checkpoint findings of a failed attempt to the next one.
    pub(super) fn keep_notes(&mut self) {
        let notes = std::mem::take(&mut self.notes);
        self.next_notes.splice(0..0, notes);
    }

    pub(super) fn new_slot(&mut self) -> AttemptSlot {
        let attempt = AttemptId(self.next_attempt);
        self.next_attempt += 1;
        AttemptSlot::Running(attempt)
    }

    pub(super) fn new_question(&mut self) -> QuestionId {
        let question = QuestionId(self.next_question);
        self.next_question += 1;
        question
    }

    /// Starts the same job under a new id, so that a late report of the old attempt is recognized.
    pub(super) fn restart_attempt(&mut self, attempt: AttemptId) {
        let fresh = self.new_slot();
        self.replace(attempt, fresh);
    }

    pub(super) fn pause(&mut self, attempt: AttemptId, reason: PauseReason) {
        self.replace(attempt, AttemptSlot::Paused(reason));
    }

    fn replace(&mut self, attempt: AttemptId, with: AttemptSlot) {
        if let Some(slot) = self.stage.slots_mut().into_iter().find(|slot| slot.attempt() == Some(attempt)) {
            *slot = with;
        }
    }

    /// Pauses every agent. Steps of the program itself cost nothing and continue.
    pub(super) fn pause_agents(&mut self, reason: PauseReason) {
        let by_program = matches!(self.stage, Stage::Checking { .. } | Stage::Combining { .. } | Stage::Landing { .. });
        for slot in self.stage.slots_mut() {
            if !by_program && matches!(slot, AttemptSlot::Running(_)) {
                *slot = AttemptSlot::Paused(reason);
            }
        }
    }

    /// Starts every attempt that is paused for this reason.
    pub(super) fn resume_paused(&mut self, reason: &PauseReason) {
        let waiting = self.slots().into_iter().filter(|slot| **slot == AttemptSlot::Paused(*reason)).count();
        let mut fresh: Vec<_> = (0..waiting).map(|_| self.new_slot()).collect();
        for slot in self.stage.slots_mut() {
            if *slot == AttemptSlot::Paused(*reason)
                && let Some(new) = fresh.pop()
            {
                *slot = new;
            }
        }
    }
}

impl Loop {
    /// The jobs of all running attempts.
    pub(super) fn jobs(&self, policy: &Policy) -> Vec<Job> {
        let Position { pass, phase, item } = self.position;
        let job = |(key, slot): (JobKey, &AttemptSlot)| {
            let attempt = slot.attempt()?;
            let is_before_review = matches!(key, JobKey::Work | JobKey::Research(_));
            let cycle = if is_before_review { 0 } else { self.counters.cycle };
            Some(Job { attempt, pass, phase, item, cycle, kind: self.job_kind(key, policy)? })
        };
        self.stage.job_slots().into_iter().filter_map(job).collect()
    }

    fn job_kind(&self, key: JobKey, policy: &Policy) -> Option<JobKind> {
        Some(match (key, &self.stage) {
            (JobKey::Work, _) => JobKind::Work { role: self.role(policy), notes: self.notes.clone() },
            (JobKey::Research(number), _) => JobKind::Research { role: self.role(policy), number },
            (JobKey::Review(reviewer), Stage::Reviewing(Panel { scope, commit, .. })) => {
                JobKind::Review { reviewer, scope: *scope, commit: commit.clone() }
            }
            (JobKey::Fix(part), Stage::Fixing { fixes, order, .. }) => {
                self.fix_job(fixes.get(part)?, *order, part, policy)
            }
            (JobKey::Program, Stage::Checking { .. }) => JobKind::Check,
            (JobKey::Program, Stage::Combining { fixes, .. }) => JobKind::Combine { parts: parts(fixes) },
            (JobKey::Program, Stage::Landing { .. }) => JobKind::Land,
            (JobKey::Review(_) | JobKey::Fix(_) | JobKey::Program, _) => return None,
        })
    }

    fn fix_job(&self, fix: &Fix, order: FixOrder, part: usize, policy: &Policy) -> JobKind {
        let gate_policy = policy.phase(self.position.phase).and_then(|phase| phase.policy());
        let is_new = |note: &&Finding| !fix.findings.contains(&note.id);
        JobKind::Fix {
            role: gate_policy.map_or(Role::Fix, |gate_policy| gate_policy.fixer),
            findings: fix.findings.clone(),
            unparsed_reviewers: fix.unparsed_reviewers.clone(),
            notes: self.notes.iter().filter(is_new).cloned().collect(),
            parallel: order == FixOrder::Parallel,
            part,
        }
    }

    fn role(&self, policy: &Policy) -> Role {
        match policy.phase(self.position.phase).map(|phase| &phase.kind) {
            Some(PhaseKind::Agent { role, .. }) => *role,
            Some(PhaseKind::Gate(_) | PhaseKind::Check(_)) | None => Role::Implement,
        }
    }
}

/// The commits of the parallel fixers that succeeded.
fn parts(fixes: &[Fix]) -> Vec<(usize, Commit)> {
    let unmerged_commit =
        |fix: &Fix| if let FixState::Done { unmerged_commit } = &fix.state { unmerged_commit.clone() } else { None };
    fixes.iter().enumerate().filter_map(|(index, fix)| Some((index, unmerged_commit(fix)?))).collect()
}
