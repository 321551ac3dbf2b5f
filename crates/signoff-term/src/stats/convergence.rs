//! What one round changed in the list of findings: whether a loop gets anywhere.

use schemars::JsonSchema;
use serde::Serialize;
use signoff_core::ledger::{Entry, Ledger, State};

/// The findings by what a round made of them. Each is counted in one place, `open_after` aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Convergence {
    /// Reported for the first time.
    pub new: u32,
    /// Open before, and still open.
    pub carried: u32,
    /// Settled before, and open again.
    pub regressed: u32,
    /// Open before, and fixed now.
    pub fixed: u32,
    /// Reported again although refuted: they stay so.
    pub refuted: u32,
    /// Reported again although deferred or out of scope: they stay so.
    pub out_of_scope: u32,
    /// All that are open after it.
    pub open_after: u32,
}

impl Convergence {
    /// From one state of a ledger to the next. Findings only ever join it at its end.
    pub fn between(before: &Ledger, after: &Ledger) -> Self {
        let mut this = Self::default();
        let known = before.entries().iter().map(Some).chain(std::iter::repeat(None));
        for (entry, was) in after.entries().iter().zip(known) {
            this.open_after += u32::from(entry.state == State::Open);
            if let Some(place) = this.place(entry, was) {
                *place += 1;
            }
        }
        this
    }

    fn place(&mut self, entry: &Entry, was: Option<&Entry>) -> Option<&mut u32> {
        let Some(was) = was else { return Some(&mut self.new) };
        let again = entry.seen.len() > was.seen.len();
        match (was.state, entry.state) {
            (State::Open, State::Open) => Some(&mut self.carried),
            (State::Fixed | State::Refuted | State::Deferred | State::OutOfScope, State::Open) => {
                Some(&mut self.regressed)
            }
            (State::Open, State::Fixed) => Some(&mut self.fixed),
            (_, State::Refuted) if again => Some(&mut self.refuted),
            (_, State::Deferred | State::OutOfScope) if again => Some(&mut self.out_of_scope),
            (_, State::Fixed | State::Refuted | State::Deferred | State::OutOfScope) => None,
        }
    }

    /// Whether anything was said that was not said before.
    pub fn changes_something(&self) -> bool {
        let Self { new, regressed, fixed, refuted, out_of_scope, carried: _, open_after: _ } = self;
        new + regressed + fixed + refuted + out_of_scope > 0
    }
}
