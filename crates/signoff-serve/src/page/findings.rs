//! All findings of a task, grouped by relation, each with its state and history.

use maud::{Markup, html};
use signoff_core::ledger::FindingState;
use signoff_core::merge::render::plain_text::{location, one_line};
use signoff_core::patch::PatchFile;
use signoff_core::view::inbox;
use signoff_term::fit::truncate_line;
use signoff_term::show::{ClaimLine, DeciderKind, FindingLine, LedgerLine, Sighting, StateChange};

use super::badges::{self, Tone};
use super::frame::{Anchors, PageContext};
use super::{ReviewHistory, TypedFields};
use super::{cycles, frame, text};

/// Maximum length of a finding's heading.
const HEADING_LENGTH: usize = 160;

/// The context in which findings are shown.
#[derive(Clone, Copy, Default)]
pub struct FindingContext<'a> {
    /// The files of the diff that findings can link to.
    pub files: &'a [PatchFile<'a>],
    /// The input of a rejected dispute form.
    pub typed: Option<&'a TypedFields>,
}

/// The list of findings.
pub fn all(history: ReviewHistory, context: PageContext, finding_context: FindingContext) -> Markup {
    let anchors = Anchors::new(history.ledger, context);
    let ledger_line = |index: &usize| history.ledger.get(*index);
    html! {
        @for group in cycles::related(history) {
            @if group.len() > 1 {
                div.related role="group" aria-label="Related findings" {
                    p.hint { "Related: they are about the same lines." }
                    @for line in group.iter().filter_map(ledger_line) { (finding(line, context, &anchors, finding_context)) }
                }
            } @else {
                @for line in group.iter().filter_map(ledger_line) { (finding(line, context, &anchors, finding_context)) }
            }
        }
    }
}

fn finding(line: &LedgerLine, context: PageContext, anchors: &Anchors, finding_context: FindingContext) -> Markup {
    let found = &line.finding;
    let heading = truncate_line(&found.description, HEADING_LENGTH);
    let is_open = line.state == FindingState::Open;
    html! {
        details.finding id=(anchors.get(&found.id, "")) open[is_open] {
            summary {
                h3 {
                    (badges::chip(Tone::from_finding_state(line.state), line.state.into_str())) " "
                    (badges::chip(Tone::from_severity(found.severity), found.severity.into_str())) " "
                    bdi { (heading) }
                }
            }
            @if heading != one_line(&found.description) { (text::prose(&found.description, &anchors.get(&found.id, "-all"))) }
            dl.facts { (source_location(found, context, anchors, finding_context.files)) (facts(found, anchors)) }
            ol.history {
                @for seen in &line.seen { (reported(seen, found)) }
                @for claim in &line.claims { (claimed(claim)) }
                @for settled in &line.decisions { (decided(settled)) }
            }
            @if context.is_served && inbox::can_be_disputed(line.state) { (dispute(found, context, anchors, finding_context.typed)) }
        }
    }
}

fn source_location(found: &FindingLine, context: PageContext, anchors: &Anchors, files: &[PatchFile]) -> Markup {
    let Some(file) = &found.file else { return html! {} };
    let named = location(file, found.line);
    let is_shown = files.iter().any(|shown| shown.path == *file);
    html! {
        div {
            dt { "Where" }
            dd {
                @if is_shown {
                    a href={ "/tasks/" (context.task) "/diff#" (anchors.get(&found.id, "-note")) } { (text::code(&named)) }
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
    let present_facts =
        facts.into_iter().filter_map(|(name, fact)| Some((name, fact.filter(|fact| !fact.is_empty())?)));
    html! {
        @for (name, fact) in present_facts { div { dt { (name) } dd { (text::prose(fact, &anchors.get(&found.id, &format!("-{}", name.to_lowercase())))) } } }
        div { dt { "Reported by" } dd { (text::line(&found.sources.join(", "))) } }
        div { dt { "Id" } dd { (text::code(&found.id)) } }
    }
}

fn reported(seen: &Sighting, found: &FindingLine) -> Markup {
    let pass = if seen.pass > 1 { format!(", pass {}", seen.pass) } else { String::new() };
    html! {
        li {
            "reported in " (text::line(&seen.phase)) " " (seen.cycle) (pass)
            @if let Some(commit) = &seen.commit { " at " (text::commit(commit)) }
            @if found.sources.is_empty() { " by an unnamed reviewer" }
        }
    }
}

/// A fixer's claim about a finding.
fn claimed(claim: &ClaimLine) -> Markup {
    html! {
        li {
            "The fixer says " (claim.claim.into_str()) " at " (text::commit(&claim.commit))
            @if !claim.evidence.is_empty() { ": " (text::line(&claim.evidence)) }
        }
    }
}

fn decided(settled: &StateChange) -> Markup {
    html! {
        li {
            (badges::chip(Tone::from_finding_state(settled.state), settled.state.into_str())) " by "
            @if settled.by_kind == DeciderKind::Person { "a person, " } (text::line(&settled.by))
            @if let Some(commit) = &settled.commit { " at " (text::commit(commit)) }
            @if !settled.evidence.is_empty() { ": " (text::line(&settled.evidence)) }
        }
    }
}

fn dispute(found: &FindingLine, context: PageContext, anchors: &Anchors, typed: Option<&TypedFields>) -> Markup {
    let action = format!("/findings/{}/dispute", text::segment(&found.id));
    let reason = typed.filter(|typed| typed.action == action).map(|typed| &typed.reason);
    let (form, field) = (anchors.get(&found.id, "-dispute"), anchors.get(&found.id, "-reason"));
    html! {
        details.action id=(form) open[reason.is_some()] {
            summary { "It is wrong…" }
            form method="post" action=(action) {
                (frame::return_field(&format!("/tasks/{}", context.task)))
                input type="hidden" name="task" value=(context.task);
                p {
                    label for=(field) { "Why it is wrong" }
                    input id=(field) name="reason" type="text" required autocomplete="off" value=[reason];
                }
                button { "Dispute the finding" }
            }
        }
    }
}
