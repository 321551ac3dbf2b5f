//! How far runs are, as the rows show it.

use jiff::Timestamp;
use signoff_core::group::RunStage;
use signoff_core::view::{Counts, Overview};

/// How far one run is.
#[derive(Debug, Clone)]
pub struct Progress {
    pub overview: Overview,
    pub tally: Tally,
    /// When its clock stands, or now.
    pub until: Timestamp,
    /// Whether its clock goes on: somebody works on it.
    pub goes_on: bool,
}

impl Progress {
    /// Whether nothing is left to do in it.
    pub fn is_over(&self) -> bool {
        let open = self.overview.tasks.open() + self.tally.needing;
        let done = matches!(self.overview.stage, RunStage::Done(_));
        done || (!self.goes_on && open == 0 && self.overview.groups.is_none())
    }
}

/// Its tasks as the rows show them.
#[derive(Debug, Clone, Copy)]
pub struct Tally {
    pub tasks: Counts,
    /// At their end, and not signed off.
    pub unsettled: usize,
    /// What only a person can resolve, by whatever name.
    needing: usize,
    pub driven: bool,
}

impl Tally {
    pub fn of(overview: &Overview, (unsettled, settled): (usize, usize), driven: bool) -> Self {
        let Counts { stuck, done, .. } = overview.tasks;
        let stuck = stuck.saturating_sub(unsettled + settled);
        let tasks = Counts { stuck, done: done + settled, ..overview.tasks };
        Self { tasks, unsettled, needing: stuck + unsettled, driven }
    }
}
