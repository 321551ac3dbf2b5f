//! Lines about checkpoint rounds: one at the start, one when all reviews have arrived.

use std::collections::BTreeSet;

use signoff_core::ids::LoopId;
use signoff_core::ledger::LedgerEntry;
use signoff_core::machine::{Event, Stage};
use signoff_core::review::{Review, Verdict};
use signoff_core::view::LoopTransition;

use super::{ProgressLine, event_lines};
use crate::fit::count;

/// The current checkpoint round and its results so far.
#[derive(Debug, Clone, Default)]
pub struct CheckpointProgress {
    loops: Vec<LoopId>,
    /// Loops whose review has arrived.
    reviewed: Vec<LoopId>,
    findings: u64,
    /// Loops with at least one conclusive review.
    usable: BTreeSet<LoopId>,
    /// Loops without a conclusive review.
    unreviewed: Vec<LoopId>,
}

impl CheckpointProgress {
    /// Records the review of a loop.
    pub fn add_review(&mut self, loop_id: &LoopId, review: &Review) {
        if !matches!(review.verdict, Verdict::Inconclusive(_)) {
            self.usable.insert(loop_id.clone());
        }
    }

    /// Records that the checkpoint review of a loop has ended.
    pub fn end_review(&mut self, loop_id: &LoopId, step: &LoopTransition) {
        if let (Event::CheckpointEnded { .. }, false) = (step.event, self.loops.is_empty()) {
            self.reviewed.push(loop_id.clone());
            self.findings += findings(step);
            self.unreviewed.extend((!self.usable.contains(loop_id)).then(|| loop_id.clone()));
        }
    }

    /// Updates the loops under review. Returns the lines about the round that ended and the one that starts.
    pub fn set_loops(&mut self, now: &[LoopId], names: impl Fn(&[LoopId]) -> String) -> Vec<String> {
        if self.loops == now {
            return Vec::new();
        }
        let ended = std::mem::replace(self, Self { loops: now.to_vec(), ..Self::default() });
        let findings = ended.findings_text(&names);
        let reviewed: Vec<_> = ended.loops.iter().filter(|loop_id| ended.reviewed.contains(loop_id)).cloned().collect();
        let end = (!reviewed.is_empty()).then(|| format!("Checkpoint review of {}: {findings}", names(&reviewed)));
        let start = (!now.is_empty()).then(|| format!("Checkpoint review of {}...", names(now)));
        end.into_iter().chain(start).collect()
    }

    /// The number of findings, and the loops without a usable review.
    fn findings_text(&self, names: impl Fn(&[LoopId]) -> String) -> String {
        let found = if self.findings == 0 { "nothing found".to_owned() } else { count(self.findings, "finding") };
        match self.unreviewed.len() as u64 {
            0 => found,
            unreviewed if unreviewed == self.reviewed.len() as u64 => "no usable review arrived".to_owned(),
            _ => format!("{found}; no usable review of {}", names(&self.unreviewed)),
        }
    }
}

/// Number of findings a checkpoint review reported for the loop. Duplicates of two reviewers count once.
fn findings(step: &LoopTransition) -> u64 {
    let Event::CheckpointEnded { findings, number } = step.event else { return 0 };
    let is_reported = |entry: &&LedgerEntry| entry.seen.iter().any(|round| round.checkpoint == *number);
    match number {
        Some(_) => step.after.ledger.entries().iter().filter(is_reported).count() as u64,
        None => findings.len() as u64,
    }
}

/// The number of findings of a checkpoint review in a loop, and what happens with them.
pub fn findings_line(step: &LoopTransition) -> Option<String> {
    let found = Some(findings(step)).filter(|found| *found > 0)?;
    let signed_off = matches!(step.before.stage, Stage::AwaitingLanding { .. } | Stage::Landing { .. });
    let follows = match &step.after.stage {
        Stage::Fixing { .. } if signed_off => "which reopens the task",
        Stage::Reviewing(_) | Stage::Waiting { .. } => "to be settled before it lands",
        Stage::AwaitingLanding { .. } | Stage::Landing { .. } | Stage::Done(_) => "recorded",
        Stage::Queued
        | Stage::Working { .. }
        | Stage::Researching { .. }
        | Stage::Checking { .. }
        | Stage::Fixing { .. }
        | Stage::Combining { .. } => "for the next attempt",
    };
    Some(format!("Checkpoint review: {}, {follows}", count(found, "finding")))
}

/// Lines about failures of the checkpoint's own loop. Its findings are reported for the loop under review.
pub fn failure_lines(step: &LoopTransition, announces_next: bool) -> Vec<ProgressLine> {
    let lines = if let Event::AttemptFailed { failure, .. } = step.event {
        event_lines::failure_lines(step, failure, announces_next).into_iter().chain(event_lines::hint(step)).collect()
    } else if let Event::ReviewArrived { review, .. } = step.event {
        event_lines::unclear_review(step, review, announces_next)
    } else {
        Vec::new()
    };
    let with_position = |line: ProgressLine| match line {
        ProgressLine::Step { text, .. } => ProgressLine::Step { position: "Checkpoint review: ".to_owned(), text },
        ProgressLine::Prefixed(_) | ProgressLine::Unindented(_) | ProgressLine::Continuation(_) => line,
    };
    lines.into_iter().map(with_position).collect()
}
