//! Attempts with their outcome and cost, decisions of users, and transcripts.

use maud::{Markup, html};
use signoff_core::merge::render::plain_text::visible;
use signoff_term::fit::{dollars, format_duration};
use signoff_term::show::{AttemptRow, PersonDecision};
use signoff_term::stats::RoleStats;

use super::frame::{ElementIds, PageContext, PageFrame, PageSubject};
use super::{TranscriptPage, TranscriptTail, badges, text};

/// Maximum size of a transcript on the task's page.
const EMBEDDED_BYTES: usize = 8 * 1024;

/// Maximum size of a transcript on its own page.
const PAGE_BYTES: usize = 1024 * 1024;

/// The table of attempts.
pub fn table(attempts: &[AttemptRow], context: PageContext) -> Markup {
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
                tbody { @for attempt in attempts { (row(attempt, context)) } }
            }
        }
    }
}

fn row(attempt: &AttemptRow, context: PageContext) -> Markup {
    let name = html! { (text::code(&attempt.id)) };
    html! {
        tr {
            th scope="row" {
                @if context.is_served {
                    a href={ "/tasks/" (context.task) "/transcript/" (text::segment(&attempt.id)) } { (name) }
                } @else { (name) }
            }
            td { (text::line(&role_and_cycle(attempt))) }
            td { (text::line(&attempt.agent_and_model())) }
            td { (badges::timestamp(&attempt.started_at)) }
            td.number { @if attempt.outcome.is_some() { (format_duration(attempt.duration_ms)) } @else { "…" } }
            td.number { (dollars(attempt.cost_usd, attempt.cost_is_estimated)) }
            td.number { (attempt.input_tokens) " / " (attempt.output_tokens) }
            td { (outcome(attempt)) }
        }
    }
}

/// `review by code, cycle 2`.
fn role_and_cycle(attempt: &AttemptRow) -> String {
    let cycle = if attempt.cycle > 0 { format!(", cycle {}", attempt.cycle) } else { String::new() };
    attempt.role_and_reviewer() + &cycle
}

fn outcome(attempt: &AttemptRow) -> Markup {
    html! {
        (text::spaced(attempt.outcome.map_or("running", <&str>::from)))
        @if let Some(detail) = &attempt.detail { ": " (text::line(detail)) }
        @if let Some(hint) = &attempt.hint { p.hint { (text::line(hint)) } }
        @for note in &attempt.notes { p.hint { (text::line(note)) } }
    }
}

/// Sums attempts by role, in the order in which the roles first occur.
pub fn stats_by_role(attempts: &[AttemptRow]) -> Vec<RoleStats> {
    let mut roles: Vec<RoleStats> = Vec::new();
    for attempt in attempts {
        let at = roles.iter().position(|stats| stats.role == attempt.role).unwrap_or_else(|| {
            roles.push(RoleStats { role: attempt.role.clone(), ..RoleStats::default() });
            roles.len() - 1
        });
        roles[at].add_attempt(attempt);
    }
    roles
}

/// The decisions of users, oldest first.
pub fn decisions(decisions: &[PersonDecision]) -> Markup {
    html! {
        ol.history {
            @for decision in decisions {
                li {
                    (badges::timestamp(&decision.at)) " " b { (text::line(&decision.by)) } ": " (decision.what.into_str())
                    @if let Some(choice) = &decision.choice { " " (text::line(choice)) }
                    @if let Some(reason) = &decision.reason { " – " (text::line(reason)) }
                }
            }
        }
    }
}

/// The ends of the transcripts, collapsed.
pub fn transcripts(transcripts: &[TranscriptTail], attempts: &[AttemptRow], context: PageContext) -> Markup {
    let mut ids = ElementIds::new(context, "transcript");
    html! {
        @for transcript in transcripts {
            @let attempt = attempts.iter().find(|attempt| attempt.id == transcript.attempt);
            details.transcript id=(ids.next_id(&transcript.attempt)) {
                summary {
                    (text::code(&transcript.attempt)) " " (text::line(&attempt.map(role_and_cycle).unwrap_or_default()))
                }
                (transcript_text(transcript, EMBEDDED_BYTES))
                @if context.is_served {
                    p {
                        a href={ "/tasks/" (context.task) "/transcript/" (text::segment(&transcript.attempt)) } {
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
        @else { pre.output dir="auto" { (visible(last)) } }
    }
}

/// `/tasks/{id}/transcript/{attempt}`.
pub fn page(page: &TranscriptPage) -> String {
    let title = format!("Transcript {} of #{}", page.attempt.id, page.task);
    let body = html! {
        h1 { (text::line(&title)) }
        p { a href={ "/tasks/" (page.task) } { (text::line(&page.title)) } }
        section #transcript data-live aria-label="Transcript" {
            p { (text::line(&role_and_cycle(&page.attempt))) ", " (text::line(&page.attempt.agent_and_model())) ": " (outcome(&page.attempt)) }
            (transcript_text(&page.transcript, PAGE_BYTES))
        }
    };
    PageFrame::new(&title, &page.project, PageSubject::Task(page.task), body).into_string()
}
