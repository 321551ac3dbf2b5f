//! Who was started for a task, how it ended and what it used; what people decided; what agents said.

use maud::{Markup, html};
use signoff_core::merge::render::plain_text::visible;
use signoff_term::fit::span;
use signoff_term::show::{Attempt, PersonsDecision};

use super::frame::{About, Framed};
use super::setting::{Names, Setting};
use super::values::{Cost, RoleFigures, Transcript, TranscriptPage};
use super::{sign, text};

/// How much of a transcript stands on the task's page.
const BESIDE_OTHERS: usize = 8 * 1024;

/// How much of it stands on a page of its own.
const ALONE: usize = 1024 * 1024;

/// One row for each.
pub fn table(attempts: &[Attempt], setting: Setting) -> Markup {
    html! {
        div.scroll tabindex="0" role="group" aria-label="Attempts" {
            table.figures.attempts {
                thead {
                    tr {
                        th scope="col" { "Attempt" } th scope="col" { "Who" } th scope="col" { "Agent" }
                        th scope="col" { "Started" } th scope="col" { "Took" } th scope="col" { "Cost" }
                        th scope="col" { "Tokens in / out" } th scope="col" { "Outcome" }
                    }
                }
                tbody { @for attempt in attempts { (row(attempt, setting)) } }
            }
        }
    }
}

fn row(attempt: &Attempt, setting: Setting) -> Markup {
    let name = html! { (text::code(&attempt.id)) };
    html! {
        tr {
            th scope="row" {
                @if setting.is_served {
                    a href={ "/tasks/" (setting.task) "/transcript/" (text::segment(&attempt.id)) } { (name) }
                } @else { (name) }
            }
            td { (text::line(&who(attempt))) }
            td { (text::line(&agent(attempt))) }
            td { (sign::moment(&attempt.started_at)) }
            td.number { @if attempt.outcome.is_some() { (span(attempt.duration_ms)) } @else { "…" } }
            td.number { (sign::dollars(cost(attempt))) }
            td.number { (attempt.input_tokens) " / " (attempt.output_tokens) }
            td { (outcome(attempt)) }
        }
    }
}

/// `review by code, cycle 2`.
fn who(attempt: &Attempt) -> String {
    let reviewer = attempt.reviewer.as_ref().map(|name| format!(" by {name}")).unwrap_or_default();
    let cycle = if attempt.cycle > 0 { format!(", cycle {}", attempt.cycle) } else { String::new() };
    format!("{}{reviewer}{cycle}", attempt.role)
}

fn agent(attempt: &Attempt) -> String {
    format!("{} {}", attempt.agent, attempt.model.as_deref().unwrap_or_default())
}

fn cost(attempt: &Attempt) -> Cost {
    Cost { usd: attempt.cost_usd, is_estimated: attempt.cost_is_estimated }
}

fn outcome(attempt: &Attempt) -> Markup {
    html! {
        (text::spaced(attempt.outcome.unwrap_or("running")))
        @if let Some(detail) = &attempt.detail { ": " (text::line(detail)) }
        @if let Some(hint) = &attempt.hint { p.hint { (text::line(hint)) } }
        @for note in &attempt.notes { p.hint { (text::line(note)) } }
    }
}

/// What agents of each role used, in the order in which they first came.
pub fn by_role(attempts: &[Attempt]) -> Vec<RoleFigures> {
    let mut roles: Vec<RoleFigures> = Vec::new();
    for attempt in attempts {
        let at = roles.iter().position(|known| known.role == attempt.role).unwrap_or_else(|| {
            roles.push(RoleFigures { role: attempt.role.clone(), ..RoleFigures::default() });
            roles.len() - 1
        });
        if let Some(role) = roles.get_mut(at) {
            role.attempts += 1;
            role.duration_ms += attempt.duration_ms;
            role.cost.usd += attempt.cost_usd;
            role.cost.is_estimated |= attempt.cost_is_estimated;
        }
    }
    roles
}

/// What people decided, in order.
pub fn decisions(decisions: &[PersonsDecision]) -> Markup {
    html! {
        ol.history {
            @for decision in decisions {
                li {
                    (sign::moment(&decision.at)) " " b { (text::line(&decision.by)) } ": " (decision.what)
                    @if let Some(choice) = &decision.choice { " " (text::line(choice)) }
                    @if let Some(reason) = &decision.reason { " – " (text::line(reason)) }
                }
            }
        }
    }
}

/// The last that each attempt said, folded.
pub fn transcripts(transcripts: &[Transcript], attempts: &[Attempt], setting: Setting) -> Markup {
    let mut names = Names::new(setting, "transcript");
    html! {
        @for transcript in transcripts {
            @let attempt = attempts.iter().find(|attempt| attempt.id == transcript.attempt);
            details.transcript id=(names.of(&transcript.attempt)) {
                summary {
                    (text::code(&transcript.attempt)) " " (text::line(&attempt.map(who).unwrap_or_default()))
                }
                (said(transcript, BESIDE_OTHERS))
                @if setting.is_served {
                    p {
                        a href={ "/tasks/" (setting.task) "/transcript/" (text::segment(&transcript.attempt)) } {
                            "The whole transcript of " (text::line(&transcript.attempt))
                        }
                    }
                }
            }
        }
    }
}

/// The last so many bytes of it.
fn said(transcript: &Transcript, bytes: usize) -> Markup {
    let (before, last) = text::tail(&transcript.tail, bytes);
    html! {
        (text::more(transcript.left_out + before))
        @if last.trim().is_empty() { p.hint { "Nothing was said." } }
        @else { pre.said dir="auto" { (visible(last)) } }
    }
}

/// One transcript on a page of its own.
pub fn page(page: &TranscriptPage) -> String {
    let title = format!("Transcript {} of #{}", page.attempt.id, page.task);
    let body = html! {
        h1 { (text::line(&title)) }
        p { a href={ "/tasks/" (page.task) } { (text::line(&page.title)) } }
        section #transcript data-live aria-label="Transcript" {
            p { (text::line(&who(&page.attempt))) ", " (text::line(&agent(&page.attempt))) ": " (outcome(&page.attempt)) }
            (said(&page.transcript, ALONE))
        }
    };
    let (project, about) = (page.project.as_str(), About::Task(page.task));
    Framed { title: &title, project, about, notice: None, needs: None, body }.into_string()
}
