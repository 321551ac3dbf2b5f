//! Groups findings at nearby locations, and orders the issues.

use std::collections::BTreeMap;

use super::duplicates::Statements;
use super::raised::RaisedFinding;
use super::{IssueGroup, MergedIssue};
use crate::ids::ReviewerName;
use crate::review::Finding;

/// Maximum distance in lines between two related findings.
pub(super) const MAX_LINE_DISTANCE: u32 = 5;

/// Converts the statements to issues, sorted by priority, file and line. A group is placed at its most urgent
/// member.
pub(super) fn arrange(raised: &[RaisedFinding<'_>], said: Vec<Statements>) -> (Vec<MergedIssue>, Vec<IssueGroup>) {
    let places = places(raised);
    let mut at_place: BTreeMap<usize, Vec<Statements>> = BTreeMap::new();
    let mut order: Vec<Vec<Statements>> = Vec::new();
    for statements in said {
        match places[statements[0]] {
            Some(place) => at_place.entry(place).or_default().push(statements),
            None => order.push(vec![statements]),
        }
    }
    order.extend(at_place.into_values());
    order.sort_by_key(|together| together[0][0]);
    number(raised, order)
}

fn number(raised: &[RaisedFinding<'_>], order: Vec<Vec<Statements>>) -> (Vec<MergedIssue>, Vec<IssueGroup>) {
    let (mut issues, mut groups) = (Vec::new(), Vec::new());
    for together in order {
        let group = (together.len() > 1).then_some(groups.len());
        if group.is_some() {
            groups.push(IssueGroup { issues: (issues.len()..issues.len() + together.len()).collect() });
        }
        issues.extend(together.iter().map(|statements| issue(raised, statements, group)));
    }
    (issues, groups)
}

/// The location number of each finding, equal for related ones. Computed from all statements, so that it does not
/// depend on duplicates.
fn places(raised: &[RaisedFinding<'_>]) -> Vec<Option<usize>> {
    let located = |index: usize| Some((raised[index].path.as_deref()?, raised[index].finding.line?, index));
    let mut by_line: Vec<(&str, u32, usize)> = (0..raised.len()).filter_map(located).collect();
    by_line.sort_unstable();
    let mut places = vec![None; raised.len()];
    let mut place = 0;
    let mut before: Option<(&str, u32)> = None;
    for (path, line, index) in by_line {
        let near = before.is_some_and(|(file, last)| file == path && line - last <= MAX_LINE_DISTANCE);
        place += usize::from(!near);
        places[index] = Some(place);
        before = Some((path, line));
    }
    places
}

/// Combines the statements of one finding: location, kind and id from the lead, the worst severity, the longest
/// description, and any field that only one of them has.
fn issue(raised: &[RaisedFinding<'_>], statements: &Statements, group: Option<usize>) -> MergedIssue {
    let said = || statements.iter().map(|&index| &raised[index]);
    let lead = &raised[statements[0]];
    let longest = said().map(|one| &one.finding.description).max_by(|a, b| longer(a, b));
    let finding = Finding {
        sources: sources(lead, said()),
        severity: said().map(|one| one.finding.severity).max().unwrap_or(lead.finding.severity),
        description: longest.unwrap_or(&lead.finding.description).clone(),
        requirement: said().find_map(|one| one.finding.requirement.clone()),
        suggestion: said().find_map(|one| one.finding.suggestion.clone()),
        ..lead.finding.clone()
    };
    let mut aliases: Vec<_> = said().map(|one| one.finding.id.clone()).filter(|id| *id != finding.id).collect();
    aliases.sort();
    aliases.dedup();
    MergedIssue { finding, aliases, priority: lead.priority, group }
}

fn longer(a: &str, b: &str) -> std::cmp::Ordering {
    (a.chars().count(), b).cmp(&(b.chars().count(), a))
}

/// The lead first, then the others in the order of the reviewers.
fn sources<'a>(lead: &RaisedFinding<'_>, said: impl Iterator<Item = &'a RaisedFinding<'a>>) -> Vec<ReviewerName> {
    let mut others: Vec<_> = said
        .filter(|one| one.reviewer != lead.reviewer)
        .map(|one| (super::seat_rank(one.kind), one.reviewer.clone()))
        .collect();
    others.sort();
    std::iter::once(lead.reviewer.clone()).chain(others.into_iter().map(|(_, name)| name)).collect()
}
