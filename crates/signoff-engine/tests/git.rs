//! Git operations with real git: every test has its own repository, home and environment.

mod checkout;
mod commits;
#[cfg(test)]
mod detached;
mod diffs;
mod fixture;
mod hostile;
#[cfg(test)]
mod landing;
mod lineage;
#[cfg(test)]
mod parallel_fixes;
mod read_only_guard;
mod repositories;
mod worktrees;
