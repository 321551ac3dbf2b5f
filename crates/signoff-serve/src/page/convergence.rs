//! What each cycle changed, told from the lives of the findings.

use std::collections::BTreeSet;

use signoff_core::merge::{Group, Merged};
use signoff_term::show::{Cycle, LedgerLine, Seen, Settled};

use super::values::Judged;

/// How many findings a cycle brought, kept, closed and brought back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Change {
    pub new: u32,
    pub carried: u32,
    pub fixed: u32,
    pub regressed: u32,
}

/// One for each cycle, in order.
pub fn changes(judged: Judged) -> Vec<Change> {
    let mut changes = vec![Change::default(); judged.cycles.len()];
    for line in judged.ledger {
        follow(line, judged.cycles, &mut changes);
    }
    changes
}

/// Goes through all cycles with one finding.
fn follow(line: &LedgerLine, cycles: &[Cycle], changes: &mut [Change]) {
    let first = line.seen.first();
    let (mut known, mut open) = (false, false);
    for (cycle, change) in cycles.iter().zip(changes) {
        let decided = |state| line.decisions.iter().any(|settled| in_cycle(settled, state, cycle));
        if !known && first.is_some_and(|seen| is_seen(seen, cycle)) {
            (known, open) = (true, true);
            change.new += 1;
        } else if known && decided("open") {
            open = true;
            change.regressed += 1;
        } else if open && decided("fixed") {
            open = false;
            change.fixed += 1;
        } else if open {
            change.carried += 1;
        }
        // What people decide comes after the cycle whose commit they looked at.
        if line.decisions.iter().any(|settled| is_closed_by_person(settled, cycle)) {
            open = false;
        }
    }
}

fn is_seen(seen: &Seen, cycle: &Cycle) -> bool {
    (seen.pass, seen.cycle) == (cycle.pass, cycle.n) && seen.phase == cycle.phase
}

/// Reviewers name the cycle in which they decide: several gates can judge one commit.
fn in_cycle(settled: &Settled, state: &str, cycle: &Cycle) -> bool {
    let said = format!("cycle {} of pass {}", cycle.n, cycle.pass);
    let place = settled.commit.as_deref() == Some(cycle.commit.as_str());
    let by_name = settled.by_kind != "reviewer" || settled.evidence.ends_with(&said);
    settled.state == state && place && by_name && settled.by_kind != "person"
}

fn is_closed_by_person(settled: &Settled, cycle: &Cycle) -> bool {
    let commit = settled.commit.as_deref();
    settled.by_kind == "person"
        && settled.state != "open"
        && commit.is_none_or(|commit| commit == cycle.commit)
}

/// Findings that a cycle took for related, as indexes into the ledger; one alone is a group of its own.
pub fn related(judged: Judged) -> Vec<Vec<usize>> {
    let mut taken: BTreeSet<usize> = BTreeSet::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    // The latest cycle knows best where the lines are now.
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

/// The ids under which the issues of a group were reported.
fn ids<'a>(merged: &'a Merged, group: &Group) -> BTreeSet<&'a str> {
    let issues = group.issues.iter().filter_map(|index| merged.issues.get(*index));
    issues
        .flat_map(|issue| std::iter::once(&issue.finding.id).chain(&issue.aliases))
        .map(|id| id.as_str())
        .collect()
}
