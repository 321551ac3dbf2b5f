//! Whether everything that would come into the default branch with a commit was reviewed, or accepted by a person.
//!
//! What a reviewer is shown begins at the base of the task. Whatever leads to that base comes along: work of other
//! tasks, and commits that anybody put onto a branch. So each commit is looked at that the default branch does not have.

mod again;
mod named;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use signoff_core::config::LandBy;
use signoff_core::ids::{Commit, LoopId, RunId, TaskId};
use signoff_core::machine::{Outcome, Stage};
use signoff_core::source::{self, Mark};
use signoff_core::view::{TaskRow, is_shared};
use signoff_store::Store;

use super::whole;
use crate::attempt::Workshop;
use crate::board::{Board, Worked};
use crate::error::EngineError;
use crate::git::{Lineage, Repository};

/// Where approvals and commits are looked up.
#[derive(Clone, Copy)]
pub struct Records<'a> {
    pub repository: &'a Repository,
    pub store: &'a dyn Store,
    pub by: LandBy,
}

/// A commit that is to go to the default branch.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// `task 3`, `run 7`.
    pub what: &'a str,
    pub run: RunId,
    pub commit: &'a Commit,
    /// What was approved of it, where that is known.
    pub own: Option<&'a Range>,
    /// Whether its own reviewers are asked again if they were not shown what it makes of newer commits.
    pub asks_again: bool,
}

/// What somebody looked at and approved: all that leads to `tip` and not to `base`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    pub base: Commit,
    pub tip: Commit,
}

impl Range {
    /// What is approved of a task.
    pub fn of(row: &TaskRow) -> Option<Self> {
        let (base, tip) = (row.base.clone()?, row.approved_commit.clone()?);
        Some(Self { base: Commit::new(base), tip: Commit::new(tip) })
    }

    /// What is approved of a loop, landed or not.
    pub fn signed_off(worked: &Worked) -> Option<Self> {
        let (place, tip) = (worked.place.as_ref()?, worked.state.signed_off_commit()?);
        Some(Self { base: place.base.clone(), tip: tip.clone() })
    }
}

impl<'a> Records<'a> {
    pub fn of(shop: &'a Workshop) -> Self {
        Self { repository: &shop.repository, store: &*shop.store, by: shop.settings.landing() }
    }
}

/// Looks at everything that a branch would get with a commit. What nobody reviewed is an error, which names it.
pub fn check(records: Records<'_>, target: &str, asked: Asked<'_>) -> Result<(), EngineError> {
    check_is_there(records, asked)?;
    check_final_reviews(records, target, asked)?;
    if let Some(own) = asked.own.filter(|own| own.tip == *asked.commit) {
        let lineage = records.repository.beyond(target, &[own.base.clone(), own.tip.clone()])?;
        let plain = lineage.roots(lineage.reach(&own.tip)).iter().all(|root| **root == own.base);
        if plain && !lineage.holds(&own.base) {
            return Ok(());
        }
    }
    let mut cover = Cover::of(records, target, asked)?;
    cover.by_tasks();
    cover.by_merges()?;
    cover.by_ticks(asked.run)?;
    if !cover.left.is_empty() {
        let boards = cover.boards(asked.run)?;
        cover.by_boards(&boards)?;
        if records.by == LandBy::Rebase {
            cover.by_patches()?;
        }
        if !cover.left.is_empty() {
            return Err(cover.named(asked, &boards)?);
        }
    }
    cover.check_seen(asked)
}

/// Refuses a commit that git does not have any more.
fn check_is_there(records: Records<'_>, asked: Asked<'_>) -> Result<(), EngineError> {
    let Asked { what, commit, .. } = asked;
    if records.repository.gone(std::slice::from_ref(commit))?.is_empty() {
        return Ok(());
    }
    Err(EngineError::NotLanded {
        message: format!("{what} cannot land: its approved commit {commit} does not exist any more"),
        hint: "its branch was deleted and git removed the commit: fetch it from another clone, or have the work done \
               again with `signoff add`"
            .to_owned(),
    })
}

/// Refuses a commit that contains work of another run whose final review has not approved it. `improve` and
/// dependencies build on such work.
fn check_final_reviews(records: Records<'_>, target: &str, asked: Asked<'_>) -> Result<(), EngineError> {
    let lineage = records.repository.beyond(target, std::slice::from_ref(asked.commit))?;
    let coming = lineage.reach(asked.commit);
    let mut looked_at = BTreeSet::from([asked.run]);
    for row in records.store.tasks()? {
        let Some(run) = row.run_id.map(RunId).filter(|run| !looked_at.contains(run)) else { continue };
        let tip = row.approved_commit.clone().map(Commit::new);
        let is_waiting = tip.is_none() && row.state().is_approved();
        if !is_waiting && !tip.is_some_and(|tip| coming.contains(&tip)) {
            continue;
        }
        let board = Board::of(run, &records.store.log(run)?);
        let mut tips = board.loops.values().filter_map(|worked| worked.state.signed_off_commit());
        if tips.any(|tip| coming.contains(tip))
            && let Some(refusal) = whole::final_review_refusal(&board)
        {
            return Err(refusal);
        }
        looked_at.insert(run);
    }
    Ok(())
}

/// What is known of the commits that would come in.
struct Cover<'a> {
    records: Records<'a>,
    target: &'a str,
    rows: Vec<TaskRow>,
    /// What is approved.
    ranges: Vec<Range>,
    lineage: Lineage,
    /// All that would come in.
    all: HashSet<Commit>,
    /// What nobody answers for so far, parents first.
    left: Vec<Commit>,
}

impl<'a> Cover<'a> {
    fn of(records: Records<'a>, target: &'a str, asked: Asked<'_>) -> Result<Self, EngineError> {
        let rows = records.store.tasks()?;
        let mut ranges: Vec<Range> = rows.iter().filter_map(Range::of).collect();
        ranges.extend(asked.own.cloned());
        let (lineage, all, left) = (Lineage::default(), HashSet::new(), Vec::new());
        let mut cover = Self { records, target, rows, ranges, lineage, all, left };
        cover.look(std::slice::from_ref(asked.commit))?;
        cover.left = cover.lineage.up_to(asked.commit);
        cover.all = cover.left.iter().cloned().collect();
        Ok(cover)
    }

    /// Looks at all that leads to these commits, and to what is approved.
    fn look(&mut self, more: &[Commit]) -> Result<(), EngineError> {
        let approved = self.ranges.iter().flat_map(|range| [&range.base, &range.tip]);
        let tips: BTreeSet<Commit> = approved.chain(more).chain(&self.left).cloned().collect();
        let tips: Vec<Commit> = tips.into_iter().collect();
        self.lineage = self.records.repository.beyond(self.target, &tips)?;
        Ok(())
    }

    /// What is approved as a whole, and comes in as a whole: without its end nobody approved its beginning.
    fn coming(&self) -> impl Iterator<Item = &Range> {
        self.ranges.iter().filter(|range| self.all.contains(&range.tip))
    }

    fn covered(&self) -> HashSet<Commit> {
        self.coming().flat_map(|range| self.lineage.between(&range.base, &range.tip)).cloned().collect()
    }

    /// Whoever was shown what a task changes from its base on was not shown what it makes of newer commits that it took
    /// in.
    fn check_seen(&self, asked: Asked<'_>) -> Result<(), EngineError> {
        let own = |range: &Range| asked.asks_again && asked.own == Some(range);
        for range in self.coming().filter(|range| !own(range)) {
            if let Some(newer) = self.taken_back(range)? {
                return Err(EngineError::NotLanded {
                    message: format!(
                        "{} took in newer commits of {}, and nobody was shown what it makes of them",
                        asked.what, self.target
                    ),
                    hint: format!(
                        "look at it with `git diff {newer} {}`; if it is good merge it yourself: `git merge {}`",
                        range.tip, asked.commit
                    ),
                });
            }
        }
        Ok(())
    }

    /// The newest commit of the target in a range, where the range may take it back.
    fn taken_back(&self, range: &Range) -> Result<Option<Commit>, EngineError> {
        let repository = self.records.repository;
        let roots = self.lineage.roots(self.lineage.between(&range.base, &range.tip));
        for root in roots.into_iter().filter(|root| **root != range.base) {
            if !repository.is_ancestor(root.as_str(), range.base.as_str())?
                && repository.takes_back(&range.base, root, &range.tip)?
            {
                return Ok(Some(root.clone()));
            }
        }
        Ok(None)
    }

    fn by_tasks(&mut self) {
        let covered = self.covered();
        self.left.retain(|commit| !covered.contains(commit));
    }

    /// A merge that is exactly what git makes of its parents adds nothing of its own.
    fn by_merges(&mut self) -> Result<(), EngineError> {
        let parents = |commit: &Commit| match self.lineage.parents(commit) {
            [one, other] => Some((commit.clone(), one.clone(), other.clone())),
            [..] => None,
        };
        let merges: Vec<_> = self.left.iter().filter_map(parents).collect();
        let all = merges.iter().flat_map(|(commit, one, other)| [commit, one, other]);
        let described = self.records.repository.described(all)?;
        let mut plain = HashSet::new();
        for (commit, one, other) in &merges {
            let Some(tree) = described.get(commit).map(|described| &described.tree) else { continue };
            let is_plain = if self.lineage.reach(other).contains(one) {
                described.get(other).is_some_and(|other| other.tree == *tree)
            } else {
                self.records.repository.adds_nothing((one, other), tree)?
            };
            plain.extend(is_plain.then_some(commit));
        }
        self.left.retain(|commit| !plain.contains(commit));
        Ok(())
    }

    /// What is left and has one parent, and so changes something by itself.
    fn lines_of_work(&self) -> Vec<Commit> {
        self.left.iter().filter(|commit| self.lineage.parents(commit).len() == 1).cloned().collect()
    }

    /// Commits of our own that tick what is done, told by what they change.
    fn by_ticks(&mut self, run: RunId) -> Result<(), EngineError> {
        let single = self.lines_of_work();
        let marks = if single.is_empty() { Vec::new() } else { self.marks(run)? };
        if marks.is_empty() {
            return Ok(());
        }
        let patches = self.records.repository.patches(&single)?;
        self.left.retain(|commit| {
            let pairs = patches.get(commit).and_then(|patch| patch.replaced());
            !pairs.is_some_and(|pairs| pairs.iter().all(|(old, new)| source::is_ticked(old, new, &marks)))
        });
        Ok(())
    }

    /// The boxes of the plans whose tasks may have come along. Those of a plan of which some is in already too: a task is
    /// ticked after it is approved.
    fn marks(&self, run: RunId) -> Result<Vec<Mark>, EngineError> {
        let is_here = |row: &&TaskRow| {
            let tip = row.approved_commit.clone().map(Commit::new);
            row.base.is_some() && tip.is_none_or(|tip| self.lineage.holds(&tip))
        };
        let here = self.rows.iter().filter(is_here).filter_map(|row| row.run_id).chain([run.0]);
        let runs: BTreeSet<u64> = here.collect();
        let of_plans = self.rows.iter().filter(|row| row.branch.as_deref().is_some_and(is_shared));
        let mut marks = Vec::new();
        for row in of_plans.filter(|row| row.run_id.is_some_and(|run| runs.contains(&run))) {
            let spec = self.records.store.task_spec(TaskId(row.id))?;
            marks.extend(spec.and_then(|spec| spec.origin).map(|origin| origin.marks).unwrap_or_default());
        }
        Ok(marks)
    }

    /// The runs that what is left may belong to.
    fn boards(&self, own: RunId) -> Result<BTreeMap<RunId, Board>, EngineError> {
        let is_here = |row: &&TaskRow| match Range::of(row) {
            Some(range) => self.lineage.holds(&range.tip) || self.lineage.holds(&range.base),
            None => row.base.is_some(),
        };
        let runs = self.rows.iter().filter(is_here).filter_map(|row| row.run_id).map(RunId).chain([own]);
        let mut boards = BTreeMap::new();
        for run in runs.collect::<BTreeSet<_>>() {
            boards.insert(run, Board::of(run, &self.records.store.log(run)?));
        }
        Ok(boards)
    }

    /// What is signed off and yet to land; and what the last review of a run approved, but for the work of tasks that
    /// were refused: a person may have taken an approval back.
    fn by_boards(&mut self, boards: &BTreeMap<RunId, Board>) -> Result<(), EngineError> {
        let whole = |board: &Board| Range::signed_off(board.loops.get(&LoopId::whole())?);
        let tasks =
            boards.values().flat_map(|board| board.loops.values()).filter(|worked| worked.task.is_some());
        let known = self.ranges.len();
        self.ranges.extend(tasks.filter_map(Range::signed_off));
        let wholes: Vec<Range> = boards.values().filter_map(whole).collect();
        let refused = unapproved(boards, is_refused);
        let more = refused.values().chain(&wholes);
        let more: Vec<Commit> = more.flat_map(|range| [range.base.clone(), range.tip.clone()]).collect();
        if self.ranges.len() == known && more.is_empty() {
            return Ok(());
        }
        self.look(&more)?;
        self.by_tasks();
        let of = |range: &Range| self.lineage.between(&range.base, &range.tip);
        let refused: HashSet<&Commit> = refused.values().flat_map(of).collect();
        let seen: HashSet<Commit> =
            wholes.iter().flat_map(of).filter(|commit| !refused.contains(*commit)).cloned().collect();
        self.left.retain(|commit| !seen.contains(commit));
        Ok(())
    }
}

/// Whether a task was begun and is not approved. Where nobody was asked to review it, a review of the whole will do.
pub fn is_refused(worked: &Worked) -> bool {
    let unreviewed =
        matches!(&worked.state.stage, Stage::Done(ending) if ending.outcome == Outcome::Unreviewed);
    let begun = worked.task.is_some() && worked.place.is_some();
    begun && !unreviewed && worked.state.signed_off_commit().is_none()
}

/// The work of tasks that nobody has approved, as far as it is on record.
fn unapproved(boards: &BTreeMap<RunId, Board>, which: impl Fn(&Worked) -> bool) -> BTreeMap<TaskId, Range> {
    let range = |worked: &Worked| {
        let (task, place) = (worked.task?, worked.place.as_ref()?);
        Some((task, Range { base: place.base.clone(), tip: worked.state.head.commit.clone() }))
    };
    let all = boards.values().flat_map(|board| board.loops.values());
    all.filter(|worked| which(worked)).filter_map(range).collect()
}
