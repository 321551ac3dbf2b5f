//! The timeline of a task: each cycle with its verdict, its reviews and what it changed in the findings.

use std::collections::BTreeSet;

use maud::{Markup, html};
use signoff_core::machine::ReviewScope;
use signoff_core::merge::render::plain_text::location;
use signoff_core::merge::{IssueGroup, MergedReview};
use signoff_core::review::Confidence;
use signoff_term::fit::{count, counts, dollars, format_duration};
use signoff_term::show::{Cycle, ReviewReport};
use signoff_term::stats::Convergence;

use super::ReviewHistory;
use super::badges::{self, Tone};
use super::frame::PageContext;
use super::text;

/// All cycles; the last one is expanded.
pub fn all(history: ReviewHistory, context: PageContext) -> Markup {
    let last = history.cycles.len().saturating_sub(1);
    html! {
        ol.cycles {
            @for (index, cycle) in history.cycles.iter().enumerate() {
                li { (cycle_section(cycle, &context.id(&format!("cycle-{index}")), index == last)) }
            }
        }
    }
}

fn cycle_section(cycle: &Cycle, id: &str, is_last: bool) -> Markup {
    html! {
        details.cycle id=(id) open[is_last] {
            summary {
                h3 {
                    (text::line(&cycle.phase)) " " (cycle.n)
                    @if cycle.pass > 1 { ", pass " (cycle.pass) }
                    " " (badges::chip(Tone::from_round(cycle.verdict), cycle.verdict.into_str()))
                }
                span.changed { (change_summary(&cycle.convergence)) }
                span.facts {
                    span { (text::commit(&cycle.commit)) }
                    span { (format_duration(duration_ms(cycle))) }
                    @if cycle.scope == ReviewScope::Scoped { span { "the fix only" } }
                }
            }
            div.reviews { @for (index, review) in cycle.reviews.iter().enumerate() { (reviewer(review, &format!("{id}-{index}"))) } }
            (conflicts(cycle))
        }
    }
}

/// Reviewers run in parallel, so a cycle takes as long as the slowest.
fn duration_ms(cycle: &Cycle) -> u64 {
    cycle.reviews.iter().map(|review| review.duration_ms).max().unwrap_or(0)
}

/// `2 new, 1 carried, 3 fixed`.
fn change_summary(change: &Convergence) -> String {
    let Convergence { new, carried, fixed, regressed, .. } = *change;
    let changed = counts([(new, "new"), (carried, "carried"), (fixed, "fixed"), (regressed, "regressed")]);
    if changed.is_empty() { "no findings".to_owned() } else { changed }
}

fn reviewer(review: &ReviewReport, id: &str) -> Markup {
    html! {
        article.review {
            h4 {
                (text::line(&review.reviewer)) " " (badges::chip(Tone::from_verdict(review.verdict), review.verdict.into_str()))
            }
            p.facts {
                @if review.kind != review.reviewer { span { (review.kind) } }
                @if review.confidence != Confidence::Unstated { span { (review.confidence.into_str()) " confidence" } }
                span { (format_duration(review.duration_ms)) }
                span { (dollars(review.cost_usd, review.cost_is_estimated)) }
            }
            @if let Some(reason) = &review.reason { p.bad { (text::line(reason)) } }
            @if !review.summary.is_empty() { (text::prose(&review.summary, id)) }
            (intent(review))
            (review_findings(review))
        }
    }
}

fn intent(review: &ReviewReport) -> Markup {
    html! {
        @if let Some(intent) = &review.interpreted_intent {
            p { b { "Interpreted intent: " } (text::line(intent)) }
        }
        @match review.intent_satisfied {
            Some(true) => p { "It says the intent is met." },
            Some(false) => p { "It says the intent is not met." },
            None => {},
        }
    }
}

/// The findings of a review, one line each. The ledger has the details.
fn review_findings(review: &ReviewReport) -> Markup {
    html! {
        @if !review.findings.is_empty() {
            ul.found {
                @for found in &review.findings {
                    li {
                        (badges::chip(Tone::from_severity(found.severity), found.severity.into_str())) " "
                        @if let Some(file) = &found.file { (text::code(&location(file, found.line))) " " }
                        (text::line(&found.description))
                    }
                }
            }
        }
        @if !review.minor.is_empty() {
            p.hint { (count(review.minor.len() as u64, "minor note")) ":" }
            ul.found {
                @for note in &review.minor {
                    li {
                        @if let Some(file) = &note.file { (text::code(&location(file, note.line))) " " }
                        (text::line(&note.description))
                    }
                }
            }
        }
        @if !review.checked.is_empty() {
            p.hint { "Checked: " (text::line(&review.checked.join(", "))) }
        }
    }
}

/// Findings that contradict each other.
fn conflicts(cycle: &Cycle) -> Markup {
    let by = |index: usize| {
        let issue = cycle.merged.issues.get(index);
        issue.map(|issue| issue.finding.description.clone()).unwrap_or_default()
    };
    html! {
        @for conflict in &cycle.merged.conflicts {
            div.conflict {
                p { (badges::chip(Tone::Warn, "conflict")) " about " (text::line(&conflict.about)) ":" }
                ul.found { li { (text::line(&by(conflict.a))) } li { (text::line(&by(conflict.b))) } }
            }
        }
    }
}

/// Groups of related findings, as indexes into the ledger. An unrelated finding is a group of one.
pub fn related(history: ReviewHistory) -> Vec<Vec<usize>> {
    let mut taken: BTreeSet<usize> = BTreeSet::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    // The latest cycle has the current line numbers.
    for merged in history.cycles.iter().rev().map(|cycle| &cycle.merged) {
        for group in &merged.groups {
            let ids = ids(merged, group);
            let indexes = history.ledger.iter().map(|line| line.finding.id.as_str()).enumerate();
            let indexes = indexes.filter(|(_, id)| ids.contains(id)).map(|(index, _)| index);
            groups.push(indexes.filter(|index| taken.insert(*index)).collect());
        }
    }
    let alone = (0..history.ledger.len()).filter(|index| !taken.contains(index));
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
