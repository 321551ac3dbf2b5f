//! Attempts with their outcome and cost, decisions of users, and transcripts.

use maud::{Markup, html};
use signoff_core::merge::render::plain_text::visible;
use signoff_term::fit::span;
use signoff_term::show::{AttemptRow, PersonDecision};

use super::frame::{ElementIds, PageContext, PageFrame, PageSubject};
use super::values::{Cost, RoleFigures, TranscriptPage, TranscriptTail};
use super::{badges, text};

/// Maximum size of a transcript on the task's page.
const EMBEDDED_BYTES: usize = 8 * 1024;

/// Maximum size of a transcript on its own page.
const PAGE_BYTES: usize = 1024 * 1024;

/// The table of attempts.
pub fn table(attempts: &[AttemptRow], setting: PageContext) -> Markup {
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

fn row(attempt: &AttemptRow, setting: PageContext) -> Markup {
    let name = html! { (text::code(&attempt.id)) };
    html! {
        tr {
            th scope="row" {
                @if setting.is_served {
                    a href={ "/tasks/" (setting.task) "/transcript/" (text::segment(&attempt.id)) } { (name) }
                } @else { (name) }
            }
            td { (text::line(&role_and_cycle(attempt))) }
            td { (text::line(&agent(attempt))) }
            td { (badges::timestamp(&attempt.started_at)) }
            td.number { @if attempt.outcome.is_some() { (span(attempt.duration_ms)) } @else { "…" } }
            td.number { (badges::dollars(cost(attempt))) }
            td.number { (attempt.input_tokens) " / " (attempt.output_tokens) }
            td { (outcome(attempt)) }
        }
    }
}

/// `review by code, cycle 2`.
fn role_and_cycle(attempt: &AttemptRow) -> String {
    let reviewer = attempt.reviewer.as_ref().map(|name| format!(" by {name}")).unwrap_or_default();
    let cycle = if attempt.cycle > 0 { format!(", cycle {}", attempt.cycle) } else { String::new() };
    format!("{}{reviewer}{cycle}", attempt.role)
}

fn agent(attempt: &AttemptRow) -> String {
    format!("{} {}", attempt.agent, attempt.model.as_deref().unwrap_or_default())
}

fn cost(attempt: &AttemptRow) -> Cost {
    Cost { usd: attempt.cost_usd, is_estimated: attempt.cost_is_estimated }
}

fn outcome(attempt: &AttemptRow) -> Markup {
    html! {
        (text::spaced(attempt.outcome.unwrap_or("running")))
        @if let Some(detail) = &attempt.detail { ": " (text::line(detail)) }
        @if let Some(hint) = &attempt.hint { p.hint { (text::line(hint)) } }
        @for note in &attempt.notes { p.hint { (text::line(note)) } }
    }
}

/// Sums attempts by role, in the order in which the roles first occur.
pub fn figures_by_role(attempts: &[AttemptRow]) -> Vec<RoleFigures> {
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

/// The decisions of users, oldest first.
pub fn decisions(decisions: &[PersonDecision]) -> Markup {
    html! {
        ol.history {
            @for decision in decisions {
                li {
                    (badges::timestamp(&decision.at)) " " b { (text::line(&decision.by)) } ": " (decision.what)
                    @if let Some(choice) = &decision.choice { " " (text::line(choice)) }
                    @if let Some(reason) = &decision.reason { " – " (text::line(reason)) }
                }
            }
        }
    }
}

/// The ends of the transcripts, collapsed.
pub fn transcripts(transcripts: &[TranscriptTail], attempts: &[AttemptRow], setting: PageContext) -> Markup {
    let mut names = ElementIds::new(setting, "transcript");
    html! {
        @for transcript in transcripts {
            @let attempt = attempts.iter().find(|attempt| attempt.id == transcript.attempt);
            details.transcript id=(names.next_id(&transcript.attempt)) {
                summary {
                    (text::code(&transcript.attempt)) " " (text::line(&attempt.map(role_and_cycle).unwrap_or_default()))
                }
                (transcript_text(transcript, EMBEDDED_BYTES))
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

/// The last `bytes` bytes of a transcript.
fn transcript_text(transcript: &TranscriptTail, bytes: usize) -> Markup {
    let (before, last) = text::tail(&transcript.tail, bytes);
    html! {
        (text::left_out_note(transcript.left_out + before))
        @if last.trim().is_empty() { p.hint { "The agent printed nothing." } }
        @else { pre.said dir="auto" { (visible(last)) } }
    }
}

/// The page of one transcript.
pub fn page(page: &TranscriptPage) -> String {
    let title = format!("Transcript {} of #{}", page.attempt.id, page.task);
    let body = html! {
        h1 { (text::line(&title)) }
        p { a href={ "/tasks/" (page.task) } { (text::line(&page.title)) } }
        section #transcript data-live aria-label="Transcript" {
            p { (text::line(&role_and_cycle(&page.attempt))) ", " (text::line(&agent(&page.attempt))) ": " (outcome(&page.attempt)) }
            (transcript_text(&page.transcript, PAGE_BYTES))
        }
    };
    PageFrame::new(&title, &page.project, PageSubject::Task(page.task), body).into_string()
}
