//! Git operations, run through real `git` processes.
//!
//! Two guarantees shape this module. The user's checkout is never modified: not its files, index, `HEAD` or
//! stash. And no command that an agent wrote into the repository's configuration is ever run: see `isolated_dir`.
//!
//! All functions block. Async callers run them on a blocking thread.

mod branch;
mod checkout;
mod commit;
mod commit_patches;
mod copy;
mod diff;
mod disk;
mod error;
mod file_at;
mod head;
mod import_objects;
mod index;
mod index_lock;
mod init;
mod invocation;
mod isolated_dir;
mod land;
mod land_checkout;
mod land_rebase;
mod land_recovery;
mod land_worktree;
mod lineage;
mod lock;
mod operation;
mod output_pipes;
mod parallel_worktrees;
mod park_branch;
mod parse_diff;
mod refs;
mod remove;
mod repair;
mod repository;
mod runner;
mod sandbox_dir;
mod snapshot;
mod stage;
mod stamp;
mod status;
mod sync_branch;
mod sync_files;
mod undo;
mod worktree;

pub use checkout::CheckoutState;
pub use commit::CommitOutcome;
pub use commit_patches::{CommitPatch, PatchDigest};
pub use diff::{GitDiff, OmittedFile};
pub use error::GitError;
pub use file_at::CommittedFile;
pub use land::{GitConflict, LandTarget, Merge};
pub use land_checkout::MoveOutcome;
pub use land_rebase::Replay;
pub use lineage::{CommitInfo, Lineage};
pub use operation::Operation;
pub use parallel_worktrees::CombinedFixes;
pub use refs::BranchTips;
pub use remove::Uncommitted;
pub use repository::{CheckoutHead, Repository};
pub use runner::Git;
pub use snapshot::{CommittedFiles, WorktreeSnapshot};
pub use undo::{FileChange, WorktreeChange};
pub use worktree::{NewWorktree, Worktree};
