//! The places where attempts run, wherever in the state they are.

use super::event::{Event, WorkReport};
use super::state::{Fix, FixState, Hold, Loop, Researcher, Seat, Slot, Stage};
use crate::ids::{AttemptId, QuestionId};

impl Slot {
    pub fn attempt(&self) -> Option<AttemptId> {
        match self {
            Self::Running(attempt) => Some(*attempt),
            Self::Held(_) | Self::Vacant => None,
        }
    }
}

impl Stage {
    /// Every place where an attempt runs or waits to run.
    pub fn slots_mut(&mut self) -> Vec<&mut Slot> {
        match self {
            Self::Working { slot, .. }
            | Self::Checking { slot, .. }
            | Self::Combining { slot, .. }
            | Self::Landing { slot, .. } => vec![slot],
            Self::Researching { team } => team.iter_mut().filter_map(Researcher::slot_mut).collect(),
            Self::Reviewing(panel) => panel.seats.values_mut().filter_map(Seat::slot_mut).collect(),
            Self::Fixing { fixes, .. } => fixes.iter_mut().filter_map(Fix::slot_mut).collect(),
            Self::Queued | Self::AwaitingLanding { .. } | Self::Waiting { .. } | Self::Done(_) => Vec::new(),
        }
    }

    /// The same, to look at.
    pub fn slots(&self) -> Vec<&Slot> {
        match self {
            Self::Working { slot, .. }
            | Self::Checking { slot, .. }
            | Self::Combining { slot, .. }
            | Self::Landing { slot, .. } => vec![slot],
            Self::Researching { team } => team.iter().filter_map(Researcher::slot).collect(),
            Self::Reviewing(panel) => panel.seats.values().filter_map(Seat::slot).collect(),
            Self::Fixing { fixes, .. } => fixes.iter().filter_map(Fix::slot).collect(),
            Self::Queued | Self::AwaitingLanding { .. } | Self::Waiting { .. } | Self::Done(_) => Vec::new(),
        }
    }
}

impl Researcher {
    fn slot_mut(&mut self) -> Option<&mut Slot> {
        match self {
            Self::Out { slot, .. } => Some(slot),
            Self::Done | Self::Absent => None,
        }
    }

    pub(super) fn slot(&self) -> Option<&Slot> {
        match self {
            Self::Out { slot, .. } => Some(slot),
            Self::Done | Self::Absent => None,
        }
    }
}

impl Seat {
    fn slot_mut(&mut self) -> Option<&mut Slot> {
        match self {
            Self::Out { slot, .. } => Some(slot),
            Self::Answered(_) | Self::Unclear { .. } | Self::Failed { .. } => None,
        }
    }

    pub(super) fn slot(&self) -> Option<&Slot> {
        match self {
            Self::Out { slot, .. } => Some(slot),
            Self::Answered(_) | Self::Unclear { .. } | Self::Failed { .. } => None,
        }
    }
}

impl Fix {
    fn slot_mut(&mut self) -> Option<&mut Slot> {
        match &mut self.state {
            FixState::Out(slot) => Some(slot),
            FixState::Queued | FixState::Done { .. } | FixState::Failed { .. } => None,
        }
    }

    pub(super) fn slot(&self) -> Option<&Slot> {
        match &self.state {
            FixState::Out(slot) => Some(slot),
            FixState::Queued | FixState::Done { .. } | FixState::Failed { .. } => None,
        }
    }
}

impl Loop {
    /// Whether every attempt it could make is held back by a budget or a limit. Before a checkpoint review
    /// it is not paused: it is being looked at.
    pub fn is_paused(&self) -> bool {
        let slots = self.slots();
        let held = |slot: &&Slot| matches!(slot, Slot::Held(_));
        let looked_at = |slot: &&Slot| **slot == Slot::Held(Hold::Checkpoint);
        !slots.is_empty() && slots.iter().all(held) && !slots.iter().all(looked_at)
    }

    pub fn slots(&self) -> Vec<&Slot> {
        self.stage.slots()
    }

    /// The attempts since the last checkpoint review.
    pub fn since_checkpoint(&self) -> u32 {
        self.tally.iteration.saturating_sub(self.tally.last_checkpoint)
    }

    pub fn runs(&self, attempt: AttemptId) -> bool {
        self.slots().iter().any(|slot| slot.attempt() == Some(attempt))
    }

    /// Whether an attempt runs that changes its files.
    pub fn is_being_written(&self) -> bool {
        let writes = match &self.stage {
            Stage::Working { .. }
            | Stage::Fixing { .. }
            | Stage::Combining { .. }
            | Stage::Landing { .. } => true,
            Stage::Queued
            | Stage::Researching { .. }
            | Stage::Checking { .. }
            | Stage::Reviewing(_)
            | Stage::AwaitingLanding { .. }
            | Stage::Waiting { .. }
            | Stage::Done(_) => false,
        };
        writes && self.slots().iter().any(|slot| slot.attempt().is_some())
    }

    /// Whether this is the end of an attempt to write that did not complete: then it is looked at whether a
    /// checkpoint review is due.
    pub fn is_spent_by(&self, event: &Event) -> bool {
        let (Event::WorkEnded { attempt, report: WorkReport::Incomplete { .. } }
        | Event::AttemptFailed { attempt, .. }) = event
        else {
            return false;
        };
        matches!(self.stage, Stage::Working { .. } | Stage::Fixing { .. }) && self.runs(*attempt)
    }

    /// What it waits for, each once.
    pub fn holds(&self) -> Vec<Hold> {
        let mut holds = Vec::new();
        for slot in self.slots() {
            if let Slot::Held(hold) = slot
                && !holds.contains(hold)
            {
                holds.push(*hold);
            }
        }
        holds
    }

    /// An attempt reported: the program runs, whatever crashed before.
    pub(super) fn accounted_for(&mut self) {
        self.tally.losses = 0;
        self.tally.survivors.clear();
    }

    /// What a checkpoint review said and the attempt that ended badly was told goes to the next one.
    pub(super) fn keep_notes(&mut self) {
        let notes = std::mem::take(&mut self.notes);
        self.next_notes.splice(0..0, notes);
    }

    pub(super) fn new_attempt(&mut self) -> AttemptId {
        let attempt = AttemptId(self.next_attempt);
        self.next_attempt += 1;
        attempt
    }

    pub(super) fn new_slot(&mut self) -> Slot {
        Slot::Running(self.new_attempt())
    }

    pub(super) fn new_question(&mut self) -> QuestionId {
        let question = QuestionId(self.next_question);
        self.next_question += 1;
        question
    }

    /// The same job under a new id, so that a late report of the old one is recognised.
    pub(super) fn renew(&mut self, attempt: AttemptId) {
        let fresh = self.new_slot();
        self.replace(attempt, fresh);
    }

    pub(super) fn hold(&mut self, attempt: AttemptId, hold: Hold) {
        self.replace(attempt, Slot::Held(hold));
    }

    fn replace(&mut self, attempt: AttemptId, with: Slot) {
        if let Some(slot) = self.stage.slots_mut().into_iter().find(|slot| slot.attempt() == Some(attempt)) {
            *slot = with;
        }
    }

    /// Holds back every agent. What the program does itself costs nothing and is better finished.
    pub(super) fn hold_agents(&mut self, hold: Hold) {
        let by_program =
            matches!(self.stage, Stage::Checking { .. } | Stage::Combining { .. } | Stage::Landing { .. });
        for slot in self.stage.slots_mut() {
            if !by_program && matches!(slot, Slot::Running(_)) {
                *slot = Slot::Held(hold);
            }
        }
    }

    /// Lets everything start that waited for this.
    pub(super) fn release(&mut self, hold: &Hold) {
        let waiting = self.slots().into_iter().filter(|slot| **slot == Slot::Held(*hold)).count();
        let mut fresh: Vec<_> = (0..waiting).map(|_| self.new_slot()).collect();
        for slot in self.stage.slots_mut() {
            if *slot == Slot::Held(*hold)
                && let Some(new) = fresh.pop()
            {
                *slot = new;
            }
        }
    }
}
