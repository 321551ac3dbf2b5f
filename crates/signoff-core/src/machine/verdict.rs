//! The approval of a loop and its final verdict, derived from its state.

use super::event::FinalVerdict;
use super::outcome::{Outcome, Reason};
use super::state::{Loop, Stage};
use crate::ids::Commit;

impl Loop {
    /// The commit that reviewers or a person approved, if the loop ended with an approval.
    pub fn approved_commit(&self) -> Option<&Commit> {
        let Stage::Done(ending) = &self.stage else { return None };
        self.approved_with(&ending.outcome)
    }

    /// The approved commit, also while it waits to land.
    pub fn signed_off_commit(&self) -> Option<&Commit> {
        match &self.stage {
            Stage::AwaitingLanding { .. } if self.checkpoint.is_some() => None,
            Stage::AwaitingLanding { outcome, .. } | Stage::Landing { outcome, .. } => self.approved_with(outcome),
            Stage::Queued
            | Stage::Working { .. }
            | Stage::Researching { .. }
            | Stage::Checking { .. }
            | Stage::Reviewing(_)
            | Stage::Fixing { .. }
            | Stage::Combining { .. }
            | Stage::Waiting { .. }
            | Stage::Done(_) => self.approved_commit(),
        }
    }

    fn approved_with<'a>(&'a self, outcome: &'a Outcome) -> Option<&'a Commit> {
        match outcome {
            Outcome::Approved { commit } => Some(commit),
            Outcome::Accepted { .. } => Some(&self.head.commit),
            Outcome::Unreviewed
            | Outcome::CompletedWithIssues
            | Outcome::Exhausted
            | Outcome::Discussion
            | Outcome::NothingToReview
            | Outcome::Failed
            | Outcome::Stuck
            | Outcome::Cancelled => None,
        }
    }

    /// Whether the loop was reviewed and no review could be parsed.
    pub fn has_only_unclear_reviews(&self) -> bool {
        self.tally.has_unclear && !self.tally.has_readable
    }

    /// The outcome and reason of a loop that ended or is signed off and waits to land; none while a checkpoint review
    /// is under way.
    fn result(&self) -> Option<(&Outcome, Option<Reason>)> {
        match &self.stage {
            Stage::Done(ending) => Some((&ending.outcome, ending.reason)),
            Stage::AwaitingLanding { .. } if self.checkpoint.is_some() => None,
            Stage::AwaitingLanding { outcome, reason } | Stage::Landing { outcome, reason, .. } => {
                Some((outcome, *reason))
            }
            Stage::Queued
            | Stage::Working { .. }
            | Stage::Researching { .. }
            | Stage::Checking { .. }
            | Stage::Reviewing(_)
            | Stage::Fixing { .. }
            | Stage::Combining { .. }
            | Stage::Waiting { .. } => None,
        }
    }

    /// Whether the loop is signed off and only has to land.
    pub fn is_signed_off(&self) -> bool {
        !self.is_done() && self.result().is_some()
    }

    /// The final verdict as displayed.
    pub fn final_verdict(&self) -> Option<FinalVerdict> {
        let (outcome, reason) = self.result()?;
        let by_person = outcome.is_approval() || reason == Some(Reason::EditedByPerson);
        if self.has_only_unclear_reviews() && !by_person {
            return None;
        }
        match outcome {
            Outcome::Approved { .. } | Outcome::Accepted { .. } => Some(FinalVerdict::Approved),
            Outcome::Unreviewed | Outcome::NothingToReview | Outcome::Cancelled => None,
            Outcome::CompletedWithIssues => reason.and_then(Reason::final_verdict),
            // A verdict set by a person is kept.
            Outcome::Exhausted if reason == Some(Reason::EditedByPerson) => Some(FinalVerdict::MaxCyclesReached),
            Outcome::Exhausted if self.tally.reviews == 0 => None,
            Outcome::Exhausted => reason.and_then(Reason::final_verdict),
            Outcome::Discussion => Some(FinalVerdict::NeedsDiscussion),
            Outcome::Failed | Outcome::Stuck => {
                let edited = reason == Some(Reason::EditedByPerson);
                (edited || self.tally.reviews > 0).then_some(FinalVerdict::ChangesRequested)
            }
        }
    }
}
