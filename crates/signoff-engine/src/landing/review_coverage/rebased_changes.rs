//! With `landing = "rebase"`: finds approved changes that were replayed as other commits, by their patches.

use std::collections::{BTreeMap, HashSet};

use signoff_core::ids::Commit;

use super::{ApprovedRange, Coverage};
use crate::error::EngineError;
use crate::git::{CommitPatch, PatchDigest};

impl Coverage<'_> {
    /// Accepts replayed changes: all commits of a task one by one, or squashed into one. A part of them is not
    /// approved, nor is a change that is made twice.
    pub(super) fn accept_replayed_changes(&mut self) -> Result<(), EngineError> {
        let repository = self.records.repository;
        let elsewhere = |range: &&ApprovedRange| self.lineage.contains(&range.tip) && !self.all.contains(&range.tip);
        let ranges: Vec<&ApprovedRange> = self.ranges.iter().filter(elsewhere).collect();
        let works = ranges.iter().flat_map(|range| self.lineage.between(&range.base, &range.tip)).cloned();
        let asked: Vec<Commit> = works.chain(self.lines_of_work()).collect();
        let patches = repository.patches(&asked)?;
        let digest = |commit: &Commit| patches.get(commit).map(CommitPatch::digest);
        let mut again = ReplayedCommits::default();
        for commit in self.lines_of_work() {
            again.add(digest(&commit), commit);
        }
        for range in ranges {
            let work = self.lineage.between(&range.base, &range.tip);
            let each: Vec<PatchDigest> = work.into_iter().filter_map(digest).collect();
            if !again.accept(&each) {
                again.accept(&[repository.patch_between(&range.base, &range.tip)?.digest()]);
            }
        }
        self.uncovered.retain(|commit| !again.accepted.contains(commit));
        Ok(())
    }
}

/// Commits that may be replayed approved changes, by patch.
#[derive(Debug, Default)]
struct ReplayedCommits {
    by_patch: BTreeMap<PatchDigest, Vec<Commit>>,
    accepted: HashSet<Commit>,
}

impl ReplayedCommits {
    fn add(&mut self, digest: Option<PatchDigest>, commit: Commit) {
        if let Some(digest) = digest {
            self.by_patch.entry(digest).or_default().push(commit);
        }
    }

    /// Accepts one commit for each of these patches, if there is one for each.
    fn accept(&mut self, digests: &[PatchDigest]) -> bool {
        let mut wanted: BTreeMap<PatchDigest, usize> = BTreeMap::new();
        for digest in digests {
            *wanted.entry(*digest).or_default() += 1;
        }
        let there = |(digest, number): (&PatchDigest, &usize)| {
            self.by_patch.get(digest).is_some_and(|commits| commits.len() >= *number)
        };
        if digests.is_empty() || !wanted.iter().all(there) {
            return false;
        }
        for digest in digests {
            self.accepted.extend(self.by_patch.get_mut(digest).and_then(Vec::pop));
        }
        true
    }
}
