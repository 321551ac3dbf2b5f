//! The right to append to a run's log.

use std::any::Any;

use signoff_core::ids::RunId;

/// Held by one program at a time; given back when dropped, and by the operating system when the program is
/// killed.
pub struct Lease {
    run: RunId,
    /// Grows with every holder: a write with an older number is refused.
    fence: u64,
    /// What keeps others out as long as it lives.
    _guard: Box<dyn Any + Send + Sync>,
}

impl Lease {
    pub(crate) fn new(run: RunId, fence: u64, guard: impl Any + Send + Sync) -> Self {
        Self { run, fence, _guard: Box::new(guard) }
    }

    pub fn run(&self) -> RunId {
        self.run
    }

    pub fn fence(&self) -> u64 {
        self.fence
    }
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lease").field("run", &self.run).field("fence", &self.fence).finish_non_exhaustive()
    }
}
