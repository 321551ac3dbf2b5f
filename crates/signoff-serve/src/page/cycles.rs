//! The timeline of a task: each cycle with its verdict, what it changed, and its reviewers side by side.

use maud::{Markup, html};
use signoff_term::fit::{count, span};
use signoff_term::show::{Cycle, ReviewLine};

use super::convergence::{self, Change};
use super::setting::Setting;
use super::sign::{self, Tone};
use super::text;
use super::values::{Cost, Judged};

/// All cycles, the last one open.
pub fn all(judged: Judged, setting: Setting) -> Markup {
    let changes = convergence::changes(judged);
    let last = judged.cycles.len().saturating_sub(1);
    html! {
        ol.cycles {
            @for (index, (cycle, change)) in judged.cycles.iter().zip(&changes).enumerate() {
                li { (one(cycle, change, &setting.id(&format!("cycle-{index}")), index == last)) }
            }
        }
    }
}

fn one(cycle: &Cycle, change: &Change, id: &str, is_last: bool) -> Markup {
    html! {
        details.cycle id=(id) open[is_last] {
            summary {
                h3 {
                    (text::line(&cycle.phase)) " " (cycle.n)
                    @if cycle.pass > 1 { ", pass " (cycle.pass) }
                    " " (sign::chip(Tone::of_verdict(cycle.verdict), cycle.verdict))
                }
                span.changed { (changed(change)) }
                span.facts {
                    span { (text::commit(&cycle.commit)) }
                    span { (span(took(cycle))) }
                    @if cycle.scope == "scoped" { span { "the fix only" } }
                }
            }
            div.reviews { @for (index, review) in cycle.reviews.iter().enumerate() { (reviewer(review, &format!("{id}-{index}"))) } }
            (conflicts(cycle))
        }
    }
}

/// Reviewers work side by side: a round takes as long as the slowest.
fn took(cycle: &Cycle) -> u64 {
    cycle.reviews.iter().map(|review| review.duration_ms).max().unwrap_or(0)
}

/// `2 new, 1 carried, 3 fixed`.
fn changed(change: &Change) -> String {
    let parts = [
        (change.new, "new"),
        (change.carried, "carried"),
        (change.fixed, "fixed"),
        (change.regressed, "regressed"),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|(number, _)| *number > 0).collect();
    let told: Vec<_> = parts.iter().map(|(number, word)| format!("{number} {word}")).collect();
    if told.is_empty() { "no findings".to_owned() } else { told.join(", ") }
}

fn reviewer(review: &ReviewLine, id: &str) -> Markup {
    let cost = Cost { usd: review.cost_usd, is_estimated: review.cost_is_estimated };
    html! {
        article.review {
            h4 {
                (text::line(&review.reviewer)) " " (sign::chip(Tone::of_verdict(review.verdict), review.verdict))
            }
            p.facts {
                @if review.kind != review.reviewer { span { (review.kind) } }
                @if review.confidence != "unstated" { span { (review.confidence) " confidence" } }
                span { (span(review.duration_ms)) }
                span { (sign::dollars(cost)) }
            }
            @if let Some(reason) = &review.reason { p.bad { (text::line(reason)) } }
            @if !review.summary.is_empty() { (text::prose(&review.summary, id)) }
            (intent(review))
            (said(review))
        }
    }
}

fn intent(review: &ReviewLine) -> Markup {
    html! {
        @if let Some(intent) = &review.interpreted_intent {
            p { b { "What it took to be asked: " } (text::line(intent)) }
        }
        @match review.intent_satisfied {
            Some(true) => p { "It says the intent is met." },
            Some(false) => p { "It says the intent is not met." },
            None => {},
        }
    }
}

/// Findings in a line each: the ledger below has the rest.
fn said(review: &ReviewLine) -> Markup {
    let place = |file: &Option<String>, line: Option<u32>| {
        let file = file.clone().unwrap_or_default();
        line.map_or_else(|| file.clone(), |line| format!("{file}:{line}"))
    };
    html! {
        @if !review.findings.is_empty() {
            ul.found {
                @for found in &review.findings {
                    li {
                        (sign::chip(Tone::of_severity(found.severity), found.severity)) " "
                        @if found.file.is_some() { (text::code(&place(&found.file, found.line))) " " }
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
                        @if note.file.is_some() { (text::code(&place(&note.file, note.line))) " " }
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

/// Reviewers who ask for opposite things.
fn conflicts(cycle: &Cycle) -> Markup {
    let by = |index: usize| {
        let issue = cycle.merged.issues.get(index);
        issue.map(|issue| issue.finding.description.clone()).unwrap_or_default()
    };
    html! {
        @for conflict in &cycle.merged.conflicts {
            div.conflict {
                p { (sign::chip(Tone::Warn, "conflict")) " about " (text::line(&conflict.about)) ":" }
                ul.found { li { (text::line(&by(conflict.a))) } li { (text::line(&by(conflict.b))) } }
            }
        }
    }
}
