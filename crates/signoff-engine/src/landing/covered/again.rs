//! With `landing = "rebase"`: approved changes that were made again elsewhere, known by what they change.

use std::collections::{BTreeMap, HashSet};

use signoff_core::ids::Commit;

use super::{Cover, Range};
use crate::error::EngineError;
use crate::git::{Patch, PatchDigest};

impl Cover<'_> {
    /// Approved changes are made again on top of others: all of a task one by one, or all in
    /// one. Some of them alone nobody approved, nor one of them twice.
    pub(super) fn by_patches(&mut self) -> Result<(), EngineError> {
        let repository = self.records.repository;
        let elsewhere = |range: &&Range| self.lineage.holds(&range.tip) && !self.all.contains(&range.tip);
        let ranges: Vec<&Range> = self.ranges.iter().filter(elsewhere).collect();
        let works = ranges.iter().flat_map(|range| self.lineage.between(&range.base, &range.tip)).cloned();
        let asked: Vec<Commit> = works.chain(self.lines_of_work()).collect();
        let patches = repository.patches(&asked)?;
        let digest = |commit: &Commit| patches.get(commit).map(Patch::digest);
        let mut again = Again::default();
        for commit in self.lines_of_work() {
            again.add(digest(&commit), commit);
        }
        for range in ranges {
            let work = self.lineage.between(&range.base, &range.tip);
            let each: Vec<PatchDigest> = work.into_iter().filter_map(digest).collect();
            if !again.take(&each) {
                again.take(&[repository.patch_between(&range.base, &range.tip)?.digest()]);
            }
        }
        self.left.retain(|commit| !again.taken.contains(commit));
        Ok(())
    }
}

/// Commits that may be approved work made again, by what they change.
#[derive(Debug, Default)]
struct Again {
    known: BTreeMap<PatchDigest, Vec<Commit>>,
    taken: HashSet<Commit>,
}

impl Again {
    fn add(&mut self, digest: Option<PatchDigest>, commit: Commit) {
        if let Some(digest) = digest {
            self.known.entry(digest).or_default().push(commit);
        }
    }

    /// Takes one commit for each of these changes, if there is one for each.
    fn take(&mut self, digests: &[PatchDigest]) -> bool {
        let mut wanted: BTreeMap<PatchDigest, usize> = BTreeMap::new();
        for digest in digests {
            *wanted.entry(*digest).or_default() += 1;
        }
        let there = |(digest, number): (&PatchDigest, &usize)| {
            self.known.get(digest).is_some_and(|commits| commits.len() >= *number)
        };
        if digests.is_empty() || !wanted.iter().all(there) {
            return false;
        }
        for digest in digests {
            self.taken.extend(self.known.get_mut(digest).and_then(Vec::pop));
        }
        true
    }
}
