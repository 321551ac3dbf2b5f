//! With `landing = "rebase"`: finds approved changes that were replayed as other commits, by their patches.

use std::collections::{BTreeMap, HashSet};

use signoff_core::ids::Commit;

use super::run_branch::OwnWork;
use crate::error::EngineError;
use crate::git::{CommitPatch, PatchDigest, Repository};

/// Commits that may be replayed approved changes, by patch.
#[derive(Debug, Default)]
pub struct ReplayedCommits {
    by_patch: BTreeMap<PatchDigest, Vec<Commit>>,
    pub accepted: HashSet<Commit>,
}

impl ReplayedCommits {
    pub fn add(&mut self, digest: Option<PatchDigest>, commit: Commit) {
        if let Some(digest) = digest {
            self.by_patch.entry(digest).or_default().push(commit);
        }
    }

    /// Accepts one commit for each of these patches, if there is one for each.
    pub fn accept(&mut self, digests: &[PatchDigest]) -> bool {
        let mut needed: BTreeMap<PatchDigest, usize> = BTreeMap::new();
        for digest in digests {
            *needed.entry(*digest).or_default() += 1;
        }
        let has_enough_commits = |(digest, number): (&PatchDigest, &usize)| {
            self.by_patch.get(digest).is_some_and(|commits| commits.len() >= *number)
        };
        if digests.is_empty() || !needed.iter().all(has_enough_commits) {
            return false;
        }
        for digest in digests {
            self.accepted.extend(self.by_patch.get_mut(digest).and_then(Vec::pop));
        }
        true
    }
}

/// The commits that replay a change of the run: a rebase gives it another id.
pub fn replayed(repository: &Repository, commits: &[Commit], own: OwnWork<'_>) -> Result<HashSet<Commit>, EngineError> {
    let mut originals = Vec::new();
    let mut digests: HashSet<PatchDigest> = HashSet::new();
    for head in own.heads {
        originals.extend(repository.commits_excluding(std::slice::from_ref(own.landed), head)?);
        // A branch that was merged with its target is replayed as one commit.
        if let Some(base) = repository.merge_base(own.landed.as_str(), head.as_str())? {
            digests.insert(repository.patch_between(&base, head)?.digest());
        }
    }
    let queried: Vec<Commit> = originals.iter().chain(commits).cloned().collect();
    let patches = repository.patches(&queried)?;
    let digest = |commit: &Commit| patches.get(commit).map(CommitPatch::digest);
    digests.extend(originals.iter().filter_map(digest));
    let is_own = |commit: &&Commit| digest(commit).is_some_and(|digest| digests.contains(&digest));
    Ok(commits.iter().filter(is_own).cloned().collect())
}
