//! Findings at similar locations, and the order issues are shown in.

use std::collections::BTreeMap;

use super::raised::Raised;
use super::same::Statements;
use super::{Group, Issue};
use crate::ids::ReviewerName;
use crate::review::Finding;

/// How many lines apart two findings may be and still be about one place.
pub(super) const NEAR: u32 = 5;

/// Makes issues of the statements: by priority, file and line, a group at its most urgent member.
pub(super) fn arrange(raised: &[Raised<'_>], said: Vec<Statements>) -> (Vec<Issue>, Vec<Group>) {
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

fn number(raised: &[Raised<'_>], order: Vec<Vec<Statements>>) -> (Vec<Issue>, Vec<Group>) {
    let (mut issues, mut groups) = (Vec::new(), Vec::new());
    for together in order {
        let group = (together.len() > 1).then_some(groups.len());
        if group.is_some() {
            groups.push(Group { issues: (issues.len()..issues.len() + together.len()).collect() });
        }
        issues.extend(together.iter().map(|statements| issue(raised, statements, group)));
    }
    (issues, groups)
}

/// The place of each finding: one number for all that are related. Taken from every statement, so that
/// what is related does not depend on who else said it.
fn places(raised: &[Raised<'_>]) -> Vec<Option<usize>> {
    let located = |index: usize| Some((raised[index].path.as_deref()?, raised[index].finding.line?, index));
    let mut by_line: Vec<(&str, u32, usize)> = (0..raised.len()).filter_map(located).collect();
    by_line.sort_unstable();
    let mut places = vec![None; raised.len()];
    let mut place = 0;
    let mut before: Option<(&str, u32)> = None;
    for (path, line, index) in by_line {
        let near = before.is_some_and(|(file, last)| file == path && line - last <= NEAR);
        place += usize::from(!near);
        places[index] = Some(place);
        before = Some((path, line));
    }
    places
}

/// One issue out of what one or several reviewers said: place, kind and id from the lead, the worst
/// severity, the longest description, and whatever only one of them gave.
fn issue(raised: &[Raised<'_>], statements: &Statements, group: Option<usize>) -> Issue {
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
    let mut aliases: Vec<_> =
        said().map(|one| one.finding.id.clone()).filter(|id| *id != finding.id).collect();
    aliases.sort();
    aliases.dedup();
    Issue { finding, aliases, priority: lead.priority, group }
}

fn longer(a: &str, b: &str) -> std::cmp::Ordering {
    (a.chars().count(), b).cmp(&(b.chars().count(), a))
}

/// The lead first, then the others as they sit.
fn sources<'a>(lead: &Raised<'_>, said: impl Iterator<Item = &'a Raised<'a>>) -> Vec<ReviewerName> {
    let mut others: Vec<_> = said
        .filter(|one| one.reviewer != lead.reviewer)
        .map(|one| (super::seat_rank(one.kind), one.reviewer.clone()))
        .collect();
    others.sort();
    std::iter::once(lead.reviewer.clone()).chain(others.into_iter().map(|(_, name)| name)).collect()
}
