//! Git, for real: every test has a repository, a home and an environment of its own.

#[cfg(test)]
mod apart;
mod checkout;
mod commits;
#[cfg(test)]
mod detached;
mod diffs;
mod hostile;
#[cfg(test)]
mod landing;
mod lineage;
mod place;
mod repositories;
mod reviewers;
mod worktrees;
