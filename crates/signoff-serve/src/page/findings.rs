//! Every finding of a task: related ones together, each with its state and how it came to be so.

use maud::{Markup, html};
use signoff_core::merge::render::plain_text::one_line;
use signoff_term::fit::cut;
use signoff_term::show::{ClaimLine, FindingLine, LedgerLine, Seen, Settled};

use super::convergence;
use super::diff::File;
use super::setting::{Anchors, Setting};
use super::sign::{self, Tone};
use super::values::{Judged, Typed};
use super::{frame, text};

/// How much of a finding its heading says.
const HEADING: usize = 160;

/// What findings stand beside.
#[derive(Clone, Copy, Default)]
pub struct Beside<'a> {
    /// The diff they can point into.
    pub files: &'a [File<'a>],
    /// What a person typed about one of them, and was not taken.
    pub typed: Option<&'a Typed>,
}

/// All of them.
pub fn all(judged: Judged, setting: Setting, beside: Beside) -> Markup {
    let anchors = Anchors::of(judged.ledger, setting);
    let one = |index: &usize| judged.ledger.get(*index);
    html! {
        @for group in convergence::related(judged) {
            @if group.len() > 1 {
                div.related role="group" aria-label="Related findings" {
                    p.hint { "Related: they are about the same lines." }
                    @for line in group.iter().filter_map(one) { (finding(line, setting, &anchors, beside)) }
                }
            } @else {
                @for line in group.iter().filter_map(one) { (finding(line, setting, &anchors, beside)) }
            }
        }
    }
}

fn finding(line: &LedgerLine, setting: Setting, anchors: &Anchors, beside: Beside) -> Markup {
    let found = &line.finding;
    let heading = cut(&found.description, HEADING);
    let is_open = line.state == "open";
    html! {
        details.finding id=(anchors.get(&found.id, "")) open[is_open] {
            summary {
                h3 {
                    (sign::chip(Tone::of_state(line.state), line.state)) " "
                    (sign::chip(Tone::of_severity(found.severity), found.severity)) " "
                    bdi { (heading) }
                }
            }
            @if heading != one_line(&found.description) { (text::prose(&found.description, &anchors.get(&found.id, "-all"))) }
            dl.facts { (place(found, setting, anchors, beside.files)) (facts(found, anchors)) }
            ol.history {
                @for seen in &line.seen { (reported(seen, found)) }
                @for claim in &line.claims { (claimed(claim)) }
                @for settled in &line.decisions { (decided(settled)) }
            }
            @if is_open && setting.is_served { (dispute(found, setting, anchors, beside.typed)) }
        }
    }
}

fn place(found: &FindingLine, setting: Setting, anchors: &Anchors, files: &[File]) -> Markup {
    let Some(file) = &found.file else { return html! {} };
    let named = match found.line {
        Some(line) => format!("{file}:{line}"),
        None => file.clone(),
    };
    let is_shown = files.iter().any(|shown| shown.path == *file);
    html! {
        div {
            dt { "Where" }
            dd {
                @if is_shown {
                    a href={ "/tasks/" (setting.task) "/diff#" (anchors.get(&found.id, "-note")) } { (text::code(&named)) }
                } @else { (text::code(&named)) }
            }
        }
    }
}

fn facts(found: &FindingLine, anchors: &Anchors) -> Markup {
    let facts = [
        ("Kind", Some(found.kind.as_str())),
        ("Requirement", found.requirement.as_deref()),
        ("Suggestion", found.suggestion.as_deref()),
    ];
    let said =
        facts.into_iter().filter_map(|(name, fact)| Some((name, fact.filter(|fact| !fact.is_empty())?)));
    html! {
        @for (name, fact) in said { div { dt { (name) } dd { (text::prose(fact, &anchors.get(&found.id, &format!("-{}", name.to_lowercase())))) } } }
        div { dt { "Reported by" } dd { (text::line(&found.sources.join(", "))) } }
        div { dt { "Id" } dd { (text::code(&found.id)) } }
    }
}

fn reported(seen: &Seen, found: &FindingLine) -> Markup {
    let pass = if seen.pass > 1 { format!(", pass {}", seen.pass) } else { String::new() };
    html! {
        li {
            "reported in " (text::line(&seen.phase)) " " (seen.cycle) (pass)
            @if let Some(commit) = &seen.commit { " at " (text::commit(commit)) }
            @if found.sources.is_empty() { " by nobody named" }
        }
    }
}

/// What a fixer says about it.
fn claimed(claim: &ClaimLine) -> Markup {
    html! {
        li {
            "The fixer says " (claim.claim.replace('_', " ")) " at " (text::commit(&claim.commit))
            @if !claim.evidence.is_empty() { ": " (text::line(&claim.evidence)) }
        }
    }
}

fn decided(settled: &Settled) -> Markup {
    html! {
        li {
            (sign::chip(Tone::of_state(settled.state), settled.state)) " by "
            @if settled.by_kind == "person" { "a person, " } (text::line(&settled.by))
            @if let Some(commit) = &settled.commit { " at " (text::commit(commit)) }
            @if !settled.evidence.is_empty() { ": " (text::line(&settled.evidence)) }
        }
    }
}

fn dispute(found: &FindingLine, setting: Setting, anchors: &Anchors, typed: Option<&Typed>) -> Markup {
    let action = format!("/findings/{}/dispute", text::segment(&found.id));
    let reason = typed.filter(|typed| typed.action == action).map(|typed| &typed.reason);
    let (form, field) = (anchors.get(&found.id, "-dispute"), anchors.get(&found.id, "-reason"));
    html! {
        details.action id=(form) open[reason.is_some()] {
            summary { "It is wrong…" }
            form method="post" action=(action) {
                (frame::back(&format!("/tasks/{}", setting.task)))
                input type="hidden" name="task" value=(setting.task);
                p {
                    label for=(field) { "Why it is wrong" }
                    input id=(field) name="reason" type="text" required autocomplete="off" value=[reason];
                }
                button { "Dispute the finding" }
            }
        }
    }
}
