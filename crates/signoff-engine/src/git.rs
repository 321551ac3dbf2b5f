//! Everything the program does with git, by real `git` processes.
//!
//! Two promises shape this module. The person's checkout is never touched: not its files, index, `HEAD` or
//! stash. And nothing an agent wrote into the repository's configuration is ever run: see `sealed`.
//!
//! All functions block; callers with other things to do use a thread for blocking work.

mod apart;
mod aside;
mod branch;
mod bring;
mod catch_up;
mod checkout;
mod commit;
mod copy;
mod diff;
mod disk;
mod door;
mod error;
mod file_at;
mod follow;
mod head;
mod index;
mod index_lock;
mod invocation;
mod land;
mod land_behind;
mod land_checkout;
mod land_rebase;
mod land_worktree;
mod lent;
mod lineage;
mod make;
mod mend;
mod operation;
mod patch;
mod patches;
mod printed;
mod remove;
mod repository;
mod sealed;
mod snapshot;
mod stage;
mod stamp;
mod status;
mod tips;
mod turn;
mod undo;
mod worktree;

pub use apart::Together;
pub use checkout::CheckoutState;
pub use commit::Committed;
pub use diff::{Diff, LeftOutFile};
pub use door::Git;
pub use error::GitError;
pub use file_at::FileAt;
pub use land::{Conflict, Merge, Target};
pub use land_checkout::Moved;
pub use land_rebase::Replay;
pub use lineage::{Described, Lineage};
pub use operation::Operation;
pub use patches::{Patch, PatchDigest};
pub use remove::Uncommitted;
pub use repository::{At, Repository};
pub use snapshot::{CommittedFiles, Snapshot};
pub use tips::Tips;
pub use undo::{Change, FileChange};
pub use worktree::{NewWorktree, Worktree};
