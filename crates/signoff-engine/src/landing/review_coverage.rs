//! Checks that everything a commit brings to the default branch was reviewed, or accepted by a user.
//!
//! A reviewer sees the diff from the base of the task. The commits before that base come along too: work of other
//! tasks, and other commits on the branch. So every commit that the default branch does not contain is checked.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use signoff_core::ids::{Commit, LoopId, RunId, TaskId};
use signoff_core::machine::{Outcome, Stage};
use signoff_core::settings::LandingMethod;
use signoff_core::source::{self, CheckboxMark};
use signoff_core::view::inbox::{Action, NextStep};
use signoff_core::view::{LoopState, RunState, TaskRow, is_run_branch};
use signoff_store::Store;

use super::replayed::ReplayedCommits;
use super::{not_landed, run_branch, short};
use crate::attempt::EngineContext;
use crate::error::EngineError;
use crate::git::{CommitAncestry, CommitPatch, PatchDigest, Repository};

/// The store and the repository with approvals and commits.
#[derive(Clone, Copy)]
pub struct LandingRecords<'a> {
    pub repository: &'a Repository,
    pub store: &'a dyn Store,
    pub landing_method: LandingMethod,
}

/// A commit that should land on the default branch.
#[derive(Debug, Clone, Copy)]
pub struct LandingCandidate<'a> {
    /// `task 3`, `run 7`.
    pub what: &'a str,
    pub run: RunId,
    pub commit: &'a Commit,
    /// Its approved range, if known.
    pub own: Option<&'a ApprovedRange>,
    /// Whether its reviewers are asked again if they did not see its effect on newer commits.
    pub can_rereview: bool,
}

/// An approved range: all commits that lead to `tip` and not to `base`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovedRange {
    pub base: Commit,
    pub tip: Commit,
}

impl ApprovedRange {
    /// The approved range of a task.
    pub fn for_task(row: &TaskRow) -> Option<Self> {
        let (base, tip) = (row.base.clone()?, row.approved_commit.clone()?);
        Some(Self { base: Commit::new(base), tip: Commit::new(tip) })
    }

    fn ends(&self) -> [&Commit; 2] {
        [&self.base, &self.tip]
    }

    /// The approved range of a loop, landed or not.
    pub fn for_loop(loop_state: &LoopState) -> Option<Self> {
        let (workspace, tip) = (loop_state.workspace.as_ref()?, loop_state.machine.signed_off_commit()?);
        Some(Self { base: workspace.base.clone(), tip: tip.clone() })
    }
}

impl<'a> LandingRecords<'a> {
    pub fn new(ctx: &'a EngineContext) -> Self {
        Self { repository: &ctx.repository, store: &*ctx.store, landing_method: ctx.settings.landing() }
    }
}

/// Checks everything that a branch would get with a commit. Commits without review are an error that names them.
pub fn check(records: LandingRecords<'_>, target: &str, candidate: LandingCandidate<'_>) -> Result<(), EngineError> {
    check_commit_exists(records, candidate)?;
    check_final_reviews(records, target, candidate)?;
    if let Some(own) = candidate.own.filter(|own| own.tip == *candidate.commit) {
        let lineage = records.repository.commits_beyond(target, own.ends())?;
        let plain = lineage.roots(lineage.ancestors(&own.tip)).iter().all(|root| **root == own.base);
        if plain && !lineage.contains(&own.base) {
            return Ok(());
        }
    }
    let mut cover = Coverage::new(records, target, candidate)?;
    cover.accept_approved_ranges();
    cover.accept_clean_merges()?;
    cover.accept_check_offs()?;
    if !cover.uncovered.is_empty() {
        let run_states = cover.run_states()?;
        cover.accept_recorded_approvals(&run_states)?;
        if records.landing_method == LandingMethod::Rebase {
            cover.accept_replayed_changes()?;
        }
        if !cover.uncovered.is_empty() {
            return Err(cover.refusal(&run_states)?);
        }
    }
    cover.check_newer_commits()
}

/// Rejects a commit that git has removed.
fn check_commit_exists(records: LandingRecords<'_>, candidate: LandingCandidate<'_>) -> Result<(), EngineError> {
    let LandingCandidate { what, commit, .. } = candidate;
    if records.repository.missing_commits(std::slice::from_ref(commit))?.is_empty() {
        return Ok(());
    }
    Err(not_landed(
        format!("{what} cannot land: its approved commit {commit} no longer exists"),
        "its branch was deleted and git removed the commit: fetch it from another clone, or have the work done \
         again with `signoff add`",
    ))
}

/// Rejects a commit that contains work of another run whose final review has not approved it. `improve` and
/// dependencies build on such work.
fn check_final_reviews(
    records: LandingRecords<'_>,
    target: &str,
    candidate: LandingCandidate<'_>,
) -> Result<(), EngineError> {
    let lineage = records.repository.commits_beyond(target, [candidate.commit])?;
    let ancestors = lineage.ancestors(candidate.commit);
    let mut checked_runs = BTreeSet::from([candidate.run]);
    for row in records.store.tasks()? {
        let Some(run) = row.run_id.map(RunId).filter(|run| !checked_runs.contains(run)) else { continue };
        let tip = row.approved_commit.clone().map(Commit::new);
        let is_waiting = tip.is_none() && row.state().is_approved();
        if !is_waiting && !tip.is_some_and(|tip| ancestors.contains(&tip)) {
            continue;
        }
        let run_state = records.store.run_state(run)?;
        let mut tips = run_state.loops.values().filter_map(|loop_state| loop_state.machine.signed_off_commit());
        if tips.any(|tip| ancestors.contains(tip))
            && let Some(refusal) = run_branch::final_review_refusal(&run_state)
        {
            return Err(refusal);
        }
        checked_runs.insert(run);
    }
    Ok(())
}

/// The commits that would land, and which of them are reviewed.
struct Coverage<'a> {
    records: LandingRecords<'a>,
    target: &'a str,
    candidate: LandingCandidate<'a>,
    rows: Vec<TaskRow>,
    /// All approved ranges.
    ranges: Vec<ApprovedRange>,
    lineage: CommitAncestry,
    /// All commits that would land.
    all: HashSet<Commit>,
    /// The commits without review so far, parents first.
    uncovered: Vec<Commit>,
}

impl<'a> Coverage<'a> {
    fn new(records: LandingRecords<'a>, target: &'a str, candidate: LandingCandidate<'a>) -> Result<Self, EngineError> {
        let rows = records.store.tasks()?;
        let mut ranges: Vec<ApprovedRange> = rows.iter().filter_map(ApprovedRange::for_task).collect();
        ranges.extend(candidate.own.cloned());
        let (lineage, all, uncovered) = (CommitAncestry::default(), HashSet::new(), Vec::new());
        let mut cover = Self { records, target, candidate, rows, ranges, lineage, all, uncovered };
        cover.load_history([candidate.commit])?;
        cover.uncovered = cover.lineage.up_to(candidate.commit);
        cover.all = cover.uncovered.iter().cloned().collect();
        Ok(cover)
    }

    /// Loads the history of these commits and of all approved ranges.
    fn load_history<'c>(&mut self, more: impl IntoIterator<Item = &'c Commit>) -> Result<(), EngineError> {
        let mut tips: Vec<&Commit> = self.ranges.iter().flat_map(ApprovedRange::ends).chain(&self.uncovered).collect();
        more.into_iter().for_each(|commit| tips.push(commit));
        self.lineage = self.records.repository.commits_beyond(self.target, tips)?;
        Ok(())
    }

    /// The approved ranges that land completely: a part of a range is not approved.
    fn landing_ranges(&self) -> impl Iterator<Item = &ApprovedRange> {
        self.ranges.iter().filter(|range| self.all.contains(&range.tip))
    }

    fn commits(&self, range: &ApprovedRange) -> Vec<&Commit> {
        self.lineage.between(&range.base, &range.tip)
    }

    /// Rejects ranges that contain newer commits of the target: their reviewers saw the diff from the base, and not its
    /// effect on these commits.
    fn check_newer_commits(&self) -> Result<(), EngineError> {
        let (target, LandingCandidate { what, commit, own, can_rereview, .. }) = (self.target, self.candidate);
        for range in self.landing_ranges().filter(|range| !can_rereview || own != Some(range)) {
            if let Some(newer) = self.reverted_commit(range)? {
                let tip = &range.tip;
                return Err(not_landed(
                    format!("{what} contains newer commits of {target}, and its effect on them was not reviewed"),
                    format!(
                        "look at it with `git diff {newer} {tip}`; if it is good merge it yourself: `git merge {commit}`"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// The newest target commit in a range, if the range may revert it.
    fn reverted_commit(&self, range: &ApprovedRange) -> Result<Option<Commit>, EngineError> {
        let repository = self.records.repository;
        let roots = self.lineage.roots(self.commits(range));
        for root in roots.into_iter().filter(|root| **root != range.base) {
            if !repository.is_ancestor(root.as_str(), range.base.as_str())?
                && repository.may_revert(&range.base, root, &range.tip)?
            {
                return Ok(Some(root.clone()));
            }
        }
        Ok(None)
    }

    fn accept_approved_ranges(&mut self) {
        let covered = self.landing_ranges().flat_map(|range| self.commits(range));
        let covered: HashSet<Commit> = covered.cloned().collect();
        self.uncovered.retain(|commit| !covered.contains(commit));
    }

    /// Accepts merges that are exactly what git makes of their parents.
    fn accept_clean_merges(&mut self) -> Result<(), EngineError> {
        let parents = |commit: &Commit| match self.lineage.parents(commit) {
            [one, other] => Some((commit.clone(), one.clone(), other.clone())),
            [..] => None,
        };
        let merges: Vec<_> = self.uncovered.iter().filter_map(parents).collect();
        let all = merges.iter().flat_map(|(commit, one, other)| [commit, one, other]);
        let described = self.records.repository.commit_infos(all)?;
        let mut plain = HashSet::new();
        for (commit, one, other) in &merges {
            let Some(tree) = described.get(commit).map(|described| &described.tree) else { continue };
            let is_plain = if self.lineage.ancestors(other).contains(one) {
                described.get(other).is_some_and(|other| other.tree == *tree)
            } else {
                self.records.repository.is_plain_merge(one, other, tree)?
            };
            plain.extend(is_plain.then_some(commit));
        }
        self.uncovered.retain(|commit| !plain.contains(commit));
        Ok(())
    }

    /// The remaining commits with one parent, which are not merges.
    fn lines_of_work(&self) -> Vec<Commit> {
        self.uncovered.iter().filter(|commit| self.lineage.parents(commit).len() == 1).cloned().collect()
    }

    /// Accepts commits that only check off finished tasks in a plan.
    fn accept_check_offs(&mut self) -> Result<(), EngineError> {
        let single = self.lines_of_work();
        let marks = if single.is_empty() { Vec::new() } else { self.marks()? };
        if marks.is_empty() {
            return Ok(());
        }
        let patches = self.records.repository.patches(&single)?;
        self.uncovered.retain(|commit| {
            let pairs = patches.get(commit).and_then(|patch| patch.replaced_lines());
            !pairs.is_some_and(|pairs| pairs.iter().all(|(old, new)| source::is_ticked(old, new, &marks)))
        });
        Ok(())
    }

    /// The checkboxes of the plans whose tasks may land. Plans that landed partly are included: a task is checked off
    /// after its approval.
    fn marks(&self) -> Result<Vec<CheckboxMark>, EngineError> {
        let is_here = |row: &&TaskRow| {
            let tip = row.approved_commit.clone().map(Commit::new);
            row.base.is_some() && tip.is_none_or(|tip| self.lineage.contains(&tip))
        };
        let here = self.rows.iter().filter(is_here).filter_map(|row| row.run_id).chain([self.candidate.run.0]);
        let runs: BTreeSet<u64> = here.collect();
        let of_plans = self.rows.iter().filter(|row| row.branch.as_deref().is_some_and(is_run_branch));
        let mut marks = Vec::new();
        for row in of_plans.filter(|row| row.run_id.is_some_and(|run| runs.contains(&run))) {
            let spec = self.records.store.task_spec(TaskId(row.id))?;
            marks.extend(spec.and_then(|spec| spec.origin).map(|origin| origin.marks).unwrap_or_default());
        }
        Ok(marks)
    }

    /// The runs that the remaining commits may belong to.
    fn run_states(&self) -> Result<BTreeMap<RunId, RunState>, EngineError> {
        let is_here = |row: &&TaskRow| match ApprovedRange::for_task(row) {
            Some(range) => self.lineage.contains(&range.tip) || self.lineage.contains(&range.base),
            None => row.base.is_some(),
        };
        let runs = self.rows.iter().filter(is_here).filter_map(|row| row.run_id).map(RunId).chain([self.candidate.run]);
        let mut run_states = BTreeMap::new();
        for run in runs.collect::<BTreeSet<_>>() {
            run_states.insert(run, self.records.store.run_state(run)?);
        }
        Ok(run_states)
    }

    /// Accepts approved work that has not landed yet, and everything that a run's final review approved. Work of
    /// rejected tasks is excluded: a user may have withdrawn an approval.
    fn accept_recorded_approvals(&mut self, run_states: &BTreeMap<RunId, RunState>) -> Result<(), EngineError> {
        let final_range = |run_state: &RunState| ApprovedRange::for_loop(run_state.loops.get(&LoopId::final_review())?);
        let tasks = run_states.values().flat_map(|run_state| run_state.loops.values());
        let tasks = tasks.filter(|loop_state| loop_state.task.is_some());
        let known = self.ranges.len();
        self.ranges.extend(tasks.filter_map(|loop_state| ApprovedRange::for_loop(loop_state)));
        let final_ranges: Vec<ApprovedRange> = run_states.values().filter_map(final_range).collect();
        let refused = unapproved(run_states, is_rejected);
        if self.ranges.len() == known && refused.is_empty() && final_ranges.is_empty() {
            return Ok(());
        }
        self.load_history(refused.values().chain(&final_ranges).flat_map(ApprovedRange::ends))?;
        self.accept_approved_ranges();
        let refused: HashSet<&Commit> = refused.values().flat_map(|range| self.commits(range)).collect();
        let seen = final_ranges.iter().flat_map(|range| self.commits(range));
        let seen: HashSet<Commit> = seen.filter(|commit| !refused.contains(*commit)).cloned().collect();
        self.uncovered.retain(|commit| !seen.contains(commit));
        Ok(())
    }

    /// Accepts replayed changes: all commits of a task one by one, or squashed into one. A part of them is not
    /// approved, nor is a change that is made twice.
    fn accept_replayed_changes(&mut self) -> Result<(), EngineError> {
        let repository = self.records.repository;
        let elsewhere = |range: &&ApprovedRange| self.lineage.contains(&range.tip) && !self.all.contains(&range.tip);
        let ranges: Vec<&ApprovedRange> = self.ranges.iter().filter(elsewhere).collect();
        let works = ranges.iter().flat_map(|range| self.commits(range)).cloned();
        let queried: Vec<Commit> = works.chain(self.lines_of_work()).collect();
        let patches = repository.patches(&queried)?;
        let digest = |commit: &Commit| patches.get(commit).map(CommitPatch::digest);
        let mut again = ReplayedCommits::default();
        for commit in self.lines_of_work() {
            again.add(digest(&commit), commit);
        }
        for range in ranges {
            let each: Vec<PatchDigest> = self.commits(range).into_iter().filter_map(digest).collect();
            if !again.accept(&each) {
                again.accept(&[repository.patch_between(&range.base, &range.tip)?.digest()]);
            }
        }
        self.uncovered.retain(|commit| !again.accepted.contains(commit));
        Ok(())
    }
}

impl Coverage<'_> {
    /// Describes the remaining commits: by their task, or by the first commit.
    fn refusal(&mut self, run_states: &BTreeMap<RunId, RunState>) -> Result<EngineError, EngineError> {
        let refused = unapproved(run_states, |loop_state| loop_state.machine.signed_off_commit().is_none());
        let mut branches = Vec::new();
        for run in run_states.keys() {
            let head = self.records.repository.head_of(&run.branch())?;
            branches.extend(head.map(|head| (run.branch(), head.commit)));
        }
        let tips = refused.values().flat_map(ApprovedRange::ends);
        self.load_history(tips.chain(branches.iter().map(|(_, tip)| tip)))?;
        let is_left = |range: &ApprovedRange| self.commits(range).iter().any(|commit| self.uncovered.contains(commit));
        if let Some((task, _)) = refused.iter().find(|(_, range)| is_left(range)) {
            return Ok(self.unapproved_task_error(*task));
        }
        let Some(commit) = self.uncovered.first() else {
            return Ok(EngineError::Internal("nothing is left to be named".to_owned()));
        };
        let on = branches.iter().find(|(_, tip)| self.lineage.ancestors(tip).contains(commit));
        self.foreign_commit_error(commit, on.map(|(branch, _)| branch.as_str()))
    }

    fn unapproved_task_error(&self, task: TaskId) -> EngineError {
        let row = self.rows.iter().find(|row| row.id == task.0);
        let next = row.map_or(NextStep::Do(Action::Show(task.0)), |row| NextStep::to_approve(row, &self.rows));
        EngineError::ContainsUnapproved { what: self.candidate.what.to_owned(), task, next: Box::new(next) }
    }

    fn foreign_commit_error(&self, commit: &Commit, branch: Option<&str>) -> Result<EngineError, EngineError> {
        let described = self.records.repository.commit_infos([commit])?;
        let subject = described.get(commit).map(|described| described.subject.clone()).unwrap_or_default();
        let (LandingCandidate { what, own, .. }, id, target) = (self.candidate, short(commit), self.target);
        let begun_on = |own: &&ApprovedRange| self.lineage.ancestors(&own.base).contains(commit);
        if let Some(own) = own.filter(begun_on).filter(|_| branch.is_none()) {
            let base = short(&own.base);
            return Ok(not_landed(
                format!(
                    "{what} did not land: it started from commit {id} (\"{subject}\"), which {target} does not have"
                ),
                format!(
                    "if {target} was rewritten: `git rebase --onto {target} {base}` in the worktree of {what}, have that \
                     reviewed with `{}`, then `{}`",
                    Action::ReviewCheckout,
                    Action::Land
                ),
            ));
        }
        let onto = branch.map(|branch| format!(" onto {branch}")).unwrap_or_default();
        Ok(not_landed(
            format!("{what} did not land: commit {id} (\"{subject}\") came{onto} from elsewhere and was not reviewed"),
            format!(
                "look at it with `git show {id}`; if it is good, merge it yourself (`git merge {id}`), then run the command again"
            ),
        ))
    }
}

/// Whether a task was started and is not approved. If it needed no review of its own, the final review is enough.
pub fn is_rejected(loop_state: &LoopState) -> bool {
    let unreviewed = matches!(&loop_state.machine.stage, Stage::Done(ending) if ending.outcome == Outcome::Unreviewed);
    let is_started = loop_state.task.is_some() && loop_state.workspace.is_some();
    is_started && !unreviewed && loop_state.machine.signed_off_commit().is_none()
}

/// The recorded ranges of unapproved tasks.
fn unapproved(
    run_states: &BTreeMap<RunId, RunState>,
    which: impl Fn(&LoopState) -> bool,
) -> BTreeMap<TaskId, ApprovedRange> {
    let range = |loop_state: &LoopState| {
        let (task, workspace) = (loop_state.task?, loop_state.workspace.as_ref()?);
        Some((task, ApprovedRange { base: workspace.base.clone(), tip: loop_state.machine.head.commit.clone() }))
    };
    let all = run_states.values().flat_map(|run_state| run_state.loops.values());
    all.filter(|loop_state| which(loop_state)).filter_map(|loop_state| range(loop_state)).collect()
}
