//! Computes what each review cycle changed, from the history of the findings.

use std::collections::BTreeSet;

use signoff_core::ledger::FindingState;
use signoff_core::merge::{IssueGroup, MergedReview};
use signoff_term::show::{Cycle, LedgerLine, Sighting, StateChange};

use super::values::ReviewHistory;

/// How many findings a cycle added, carried over, fixed and reopened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CycleChange {
    pub new: u32,
    pub carried: u32,
    pub fixed: u32,
    pub regressed: u32,
}

/// The changes of each cycle, in order.
pub fn cycle_changes(judged: ReviewHistory) -> Vec<CycleChange> {
    let mut changes = vec![CycleChange::default(); judged.cycles.len()];
    for line in judged.ledger {
        count_finding(line, judged.cycles, &mut changes);
    }
    changes
}

/// Counts one finding in every cycle.
fn count_finding(line: &LedgerLine, cycles: &[Cycle], changes: &mut [CycleChange]) {
    let first = line.seen.first();
    let (mut known, mut open) = (false, false);
    for (cycle, change) in cycles.iter().zip(changes) {
        let decided = |state| line.decisions.iter().any(|settled| in_cycle(settled, state, cycle));
        if !known && first.is_some_and(|seen| is_first_seen_in(seen, cycle)) {
            (known, open) = (true, true);
            change.new += 1;
        } else if known && decided(FindingState::Open) {
            open = true;
            change.regressed += 1;
        } else if open && decided(FindingState::Fixed) {
            open = false;
            change.fixed += 1;
        } else if open {
            change.carried += 1;
        }
        // A user decides after the cycle whose commit they reviewed.
        if line.decisions.iter().any(|settled| is_closed_by_person(settled, cycle)) {
            open = false;
        }
    }
}

fn is_first_seen_in(seen: &Sighting, cycle: &Cycle) -> bool {
    (seen.pass, seen.cycle) == (cycle.pass, cycle.n) && seen.phase == cycle.phase
}

/// Whether a decision belongs to a cycle. Reviewers name the cycle in their evidence, because several gates can judge
/// the same commit.
fn in_cycle(settled: &StateChange, state: FindingState, cycle: &Cycle) -> bool {
    let said = format!("cycle {} of pass {}", cycle.n, cycle.pass);
    let place = settled.commit.as_deref() == Some(cycle.commit.as_str());
    let by_name = settled.by_kind != "reviewer" || settled.evidence.ends_with(&said);
    settled.state == state && place && by_name && settled.by_kind != "person"
}

fn is_closed_by_person(settled: &StateChange, cycle: &Cycle) -> bool {
    let commit = settled.commit.as_deref();
    settled.by_kind == "person"
        && settled.state != FindingState::Open
        && commit.is_none_or(|commit| commit == cycle.commit)
}

/// Groups of related findings, as indexes into the ledger. An unrelated finding is a group of one.
pub fn related(judged: ReviewHistory) -> Vec<Vec<usize>> {
    let mut taken: BTreeSet<usize> = BTreeSet::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    // The latest cycle has the current line numbers.
    for merged in judged.cycles.iter().rev().map(|cycle| &cycle.merged) {
        for group in &merged.groups {
            let ids = ids(merged, group);
            let known = judged.ledger.iter().map(|line| line.finding.id.as_str()).enumerate();
            let known = known.filter(|(_, id)| ids.contains(id)).map(|(index, _)| index);
            groups.push(known.filter(|index| taken.insert(*index)).collect());
        }
    }
    let alone = (0..judged.ledger.len()).filter(|index| !taken.contains(index));
    groups.extend(alone.map(|index| vec![index]));
    groups.retain(|group| !group.is_empty());
    groups.sort_by_key(|group| group.first().copied());
    groups
}

/// The ids, including aliases, of the issues in a group.
fn ids<'a>(merged: &'a MergedReview, group: &IssueGroup) -> BTreeSet<&'a str> {
    let issues = group.issues.iter().filter_map(|index| merged.issues.get(*index));
    issues.flat_map(|issue| std::iter::once(&issue.finding.id).chain(&issue.aliases)).map(|id| id.as_str()).collect()
}
