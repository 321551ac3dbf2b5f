//! Checkpoint rounds: told when they begin and when all is in.

use signoff_core::ids::LoopId;
use signoff_core::machine::Event;

use super::{Line, told};
use crate::fit::count;
use crate::round::Step;

/// The round under way, and what was heard of it.
#[derive(Debug, Clone, Default)]
pub struct Checkpoint {
    loops: Vec<LoopId>,
    heard: u64,
    found: u64,
}

impl Checkpoint {
    /// A loop's review is in.
    pub fn heard(&mut self, event: &Event) {
        if let (Event::CheckpointEnded { findings }, false) = (event, self.loops.is_empty()) {
            self.heard += 1;
            self.found += findings.len() as u64;
        }
    }

    /// What to say now that these loops are being looked at.
    pub fn take(&mut self, now: &[LoopId], names: impl Fn(&[LoopId]) -> String) -> Vec<String> {
        if self.loops == now {
            return Vec::new();
        }
        let was = std::mem::replace(self, Self { loops: now.to_vec(), heard: 0, found: 0 });
        let found = if was.found == 0 { "nothing found".to_owned() } else { count(was.found, "finding") };
        let ended = (was.heard > 0).then(|| format!("Checkpoint review of {}: {found}", names(&was.loops)));
        let begun = (!now.is_empty()).then(|| format!("Checkpoint review of {}...", names(now)));
        ended.into_iter().chain(begun).collect()
    }
}

/// What went wrong in a checkpoint's own loop. What it found is told of the loop that it looks at.
pub fn trouble(step: &Step, goes_on: bool) -> Vec<Line> {
    let lines = match step.event {
        Event::AttemptFailed { failure, .. } => told::failed(step, failure, goes_on),
        Event::ReviewArrived { review, .. } => told::unclear(step, review, goes_on),
        Event::Started { .. }
        | Event::Imported { .. }
        | Event::ItemsPlanned { .. }
        | Event::WorkEnded { .. }
        | Event::CheckEnded { .. }
        | Event::FixesCombined { .. }
        | Event::FixesOverlapped { .. }
        | Event::LandingEnded { .. }
        | Event::AttemptLost { .. }
        | Event::RateLimited { .. }
        | Event::BudgetReached
        | Event::BudgetRefused { .. }
        | Event::Resumed { .. }
        | Event::CheckpointEnded { .. }
        | Event::LandingGranted
        | Event::HeadMoved { .. }
        | Event::PersonAnswered { .. }
        | Event::PersonRetried { .. }
        | Event::PersonEdited { .. }
        | Event::FindingDecided { .. }
        | Event::Cancelled { .. } => Vec::new(),
    };
    let told = |line: Line| match line {
        Line::Step { text, .. } => Line::Step { place: "Checkpoint review: ".to_owned(), text },
        Line::Own(_) | Line::Margin(_) | Line::Below(_) => line,
    };
    lines.into_iter().map(told).collect()
}
