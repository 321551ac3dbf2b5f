//! Checkpoint rounds: told when they begin and when all is in.

use std::collections::BTreeSet;

use signoff_core::ids::LoopId;
use signoff_core::ledger::Entry;
use signoff_core::machine::{Event, Stage};
use signoff_core::review::{Review, Verdict};

use super::{Line, told};
use crate::fit::count;
use crate::round::Step;

/// The round under way, and what was heard of it.
#[derive(Debug, Clone, Default)]
pub struct Checkpoint {
    loops: Vec<LoopId>,
    /// Loops whose review is in.
    heard: Vec<LoopId>,
    found: u64,
    /// Loops about which a reviewer said something that could be read.
    usable: BTreeSet<LoopId>,
    /// Loops that were looked at by nobody who was understood.
    unheard: Vec<LoopId>,
}

impl Checkpoint {
    /// What a reviewer said about a loop.
    pub fn reviewed(&mut self, of: &LoopId, review: &Review) {
        if !matches!(review.verdict, Verdict::Inconclusive(_)) {
            self.usable.insert(of.clone());
        }
    }

    /// A loop's review is in.
    pub fn heard(&mut self, of: &LoopId, step: &Step) {
        if let (Event::CheckpointEnded { .. }, false) = (step.event, self.loops.is_empty()) {
            self.heard.push(of.clone());
            self.found += findings(step);
            self.unheard.extend((!self.usable.contains(of)).then(|| of.clone()));
        }
    }

    /// What to say now that these loops are being looked at.
    pub fn take(&mut self, now: &[LoopId], names: impl Fn(&[LoopId]) -> String) -> Vec<String> {
        if self.loops == now {
            return Vec::new();
        }
        let was = std::mem::replace(self, Self { loops: now.to_vec(), ..Self::default() });
        let found = was.found(&names);
        let heard: Vec<_> = was.loops.iter().filter(|one| was.heard.contains(one)).cloned().collect();
        let ended = (!heard.is_empty()).then(|| format!("Checkpoint review of {}: {found}", names(&heard)));
        let begun = (!now.is_empty()).then(|| format!("Checkpoint review of {}...", names(now)));
        ended.into_iter().chain(begun).collect()
    }

    /// Silence is no praise: whom nobody was heard about is named.
    fn found(&self, names: impl Fn(&[LoopId]) -> String) -> String {
        let found = if self.found == 0 { "nothing found".to_owned() } else { count(self.found, "finding") };
        match self.unheard.len() as u64 {
            0 => found,
            unheard if unheard == self.heard.len() as u64 => "no usable review came".to_owned(),
            _ => format!("{found}; no usable review of {}", names(&self.unheard)),
        }
    }
}

/// How many findings of the loop a checkpoint review reported. What two reviewers reported alike is one.
fn findings(step: &Step) -> u64 {
    let Event::CheckpointEnded { findings, number } = step.event else { return 0 };
    let of_it = |entry: &&Entry| entry.seen.iter().any(|round| round.checkpoint == *number);
    match number {
        Some(_) => step.after.ledger.entries().iter().filter(of_it).count() as u64,
        None => findings.len() as u64,
    }
}

/// What a checkpoint review found in a loop, and what becomes of it there.
pub fn found(step: &Step) -> Option<String> {
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

/// What went wrong in a checkpoint's own loop. What it found is told of the loop that it looks at.
pub fn trouble(step: &Step, goes_on: bool) -> Vec<Line> {
    let lines = if let Event::AttemptFailed { failure, .. } = step.event {
        told::failed(step, failure, goes_on).into_iter().chain(told::hint(step)).collect()
    } else if let Event::ReviewArrived { review, .. } = step.event {
        told::unclear(step, review, goes_on)
    } else {
        Vec::new()
    };
    let told = |line: Line| match line {
        Line::Step { text, .. } => Line::Step { place: "Checkpoint review: ".to_owned(), text },
        Line::Own(_) | Line::Margin(_) | Line::Below(_) => line,
    };
    lines.into_iter().map(told).collect()
}
