//! Git operations, run through real `git` processes.
//!
//! Two guarantees shape this module. The user's checkout is never modified: not its files, index, `HEAD` or
//! stash. And no command that an agent wrote into the repository's configuration is ever run: see `isolated_dir`.
//!
//! All functions block. Async callers run them on a blocking thread.

mod branch;
mod command;
mod commit;
mod diff;
mod disk;
mod error;
mod head;
mod history;
mod index;
mod isolated_dir;
mod land_checkout;
mod land_recovery;
mod merge;
mod repository;
mod sandbox_dir;
mod snapshot;
mod status;
mod throwaway_worktree;
mod worktree;

pub use branch::BranchTips;
pub use command::Git;
pub(crate) use command::wait;
pub use commit::CommitOutcome;
pub use diff::{GitDiff, OmittedFile};
pub use error::GitError;
pub(crate) use error::list_first;
pub use history::{CommitAncestry, CommitInfo, CommittedFile};
pub use land_checkout::{LandTarget, MoveOutcome};
pub use merge::{CommitPatch, GitConflict, MergeOutcome, PatchDigest};
pub use repository::{CheckoutHead, Repository};
pub use snapshot::{CommittedFiles, FileChange, WorktreeChange, WorktreeSnapshot};
pub use status::{CheckoutState, Operation};
pub use throwaway_worktree::CombinedFixes;
pub use worktree::{NewWorktree, UncommittedPolicy, Worktree};
