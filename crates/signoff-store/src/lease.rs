//! The lease of a run: the exclusive right to append to its log.

use std::any::Any;

use signoff_core::ids::RunId;

/// The exclusive right to append to a run's log. Dropping it releases it, and so does the operating system when the
/// process dies.
pub struct Lease {
    run: RunId,
    /// The fencing number. Each holder has a higher one; writes with an older one are refused.
    fence: u64,
    /// Holds the lock.
    _guard: Box<dyn Any + Send + Sync>,
}

impl Lease {
    /// A lease that is held until `guard` is dropped.
    pub fn new(run: RunId, fence: u64, guard: impl Any + Send + Sync) -> Self {
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
