//! The progress of runs.

use jiff::Timestamp;
use signoff_core::group::RunStage;
use signoff_core::view::{RunOverview, RunTaskCounts};

/// The progress of one run.
#[derive(Debug, Clone)]
pub struct TuiRunProgress {
    pub overview: RunOverview,
    pub tally: RunTally,
    /// The time at which its clock stopped, or now.
    pub until: Timestamp,
    /// Whether its clock is running: a process is working on it.
    pub is_running: bool,
}

impl TuiRunProgress {
    /// Whether the run is finished.
    pub fn is_over(&self) -> bool {
        let open = self.overview.tasks.open() + self.tally.needing_attention;
        let done = matches!(self.overview.stage, RunStage::Done(_));
        done || (!self.is_running && open == 0 && self.overview.groups.is_none())
    }
}

/// Number of tasks of a run by state.
#[derive(Debug, Clone, Copy)]
pub struct RunTally {
    pub tasks: RunTaskCounts,
    /// Ended, but not approved.
    pub not_approved: usize,
    /// All tasks that need a person.
    needing_attention: usize,
    pub driven: bool,
}

impl RunTally {
    pub fn new(overview: &RunOverview, unsettled: usize, settled: usize, driven: bool) -> Self {
        let RunTaskCounts { stuck, done, .. } = overview.tasks;
        let stuck = stuck.saturating_sub(unsettled + settled);
        let tasks = RunTaskCounts { stuck, done: done + settled, ..overview.tasks };
        Self { tasks, not_approved: unsettled, needing_attention: stuck + unsettled, driven }
    }
}
