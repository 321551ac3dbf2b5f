//! Counts the findings that one round added, kept or closed.

use schemars::JsonSchema;
use serde::Serialize;
use signoff_core::ledger::{FindingState, Ledger, LedgerEntry};

/// The findings by the effect of a round. Each finding is in one count, besides `open_after`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Convergence {
    /// Reported for the first time.
    pub new: u32,
    /// Open before and after.
    pub carried: u32,
    /// Closed before, open again.
    pub regressed: u32,
    /// Open before, fixed now.
    pub fixed: u32,
    /// Reported again, but still refuted.
    pub refuted: u32,
    /// Reported again, but still deferred or out of scope.
    pub out_of_scope: u32,
    /// All findings that are open after the round.
    pub open_after: u32,
}

impl Convergence {
    /// Compares two states of a ledger. New findings are always appended, so entries match by index.
    pub fn between(before: &Ledger, after: &Ledger) -> Self {
        let mut this = Self::default();
        let known = before.entries().iter().map(Some).chain(std::iter::repeat(None));
        for (entry, was) in after.entries().iter().zip(known) {
            this.open_after += u32::from(entry.state == FindingState::Open);
            if let Some(place) = this.counter(entry, was) {
                *place += 1;
            }
        }
        this
    }

    fn counter(&mut self, entry: &LedgerEntry, was: Option<&LedgerEntry>) -> Option<&mut u32> {
        let Some(was) = was else { return Some(&mut self.new) };
        let again = entry.seen.len() > was.seen.len();
        match (was.state, entry.state) {
            (FindingState::Open, FindingState::Open) => Some(&mut self.carried),
            (
                FindingState::Fixed | FindingState::Refuted | FindingState::Deferred | FindingState::OutOfScope,
                FindingState::Open,
            ) => Some(&mut self.regressed),
            (FindingState::Open, FindingState::Fixed) => Some(&mut self.fixed),
            (_, FindingState::Refuted) if again => Some(&mut self.refuted),
            (_, FindingState::Deferred | FindingState::OutOfScope) if again => Some(&mut self.out_of_scope),
            (_, FindingState::Fixed | FindingState::Refuted | FindingState::Deferred | FindingState::OutOfScope) => {
                None
            }
        }
    }

    /// Whether the round changed anything.
    pub fn changes_something(&self) -> bool {
        let Self { new, regressed, fixed, refuted, out_of_scope, carried: _, open_after: _ } = self;
        new + regressed + fixed + refuted + out_of_scope > 0
    }
}
