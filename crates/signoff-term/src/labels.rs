//! Labels and sentences for the codes of the core: reasons, failures, verdicts, phases and roles.

use jiff::Timestamp;
use signoff_core::machine::{AttemptFailure, Reason};
use signoff_core::review::{Inconclusive, Verdict};
use signoff_core::view::{LoopRow, RateLimitWait};
use signoff_core::workflow::Role;

use crate::fit::{capitalized, count, truncate_line};

/// `, 1 open finding`, appended to the label of approved work; empty if none is open.
pub fn open_findings(open: u64) -> String {
    if open == 0 { String::new() } else { format!(", {}", count(open, "open finding")) }
}

/// `, 1 finding overruled by a person`, appended to the label of approved work; empty if there is none.
pub fn overruled(findings: u64) -> String {
    if findings == 0 { String::new() } else { format!(", {} overruled by a person", count(findings, "finding")) }
}

/// A reason as part of a sentence.
pub fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::CyclesExhausted => "the review cycles are used up",
        Reason::PassesExhausted => "the maximum number of passes is reached",
        Reason::AttemptsExhausted => "the attempts are used up",
        Reason::SameFinding => "the same finding keeps coming back",
        Reason::NoopFix => "the fix changed nothing",
        Reason::RecoveryExhausted => "too many attempts were lost to crashes",
        Reason::ConflictUnresolved => "the conflict could not be resolved",
        Reason::LandingChecksFailed => "the checks fail on the target branch",
        Reason::UnclearReview => "a review could not be parsed",
        Reason::ReviewerFailed => "a reviewer or check failed",
        Reason::FixerFailed => "the fixer failed",
        Reason::ImplementerFailed => "the implementer failed",
        Reason::LandingFailed => "it could not be landed",
        Reason::GateFailed => "the review found something",
        Reason::Discussion => "a reviewer asks for a discussion",
        Reason::TaskStuck => "the agent reports that it is stuck",
        Reason::NoOneToAsk => "a question was open with --no-ask",
        Reason::StoppedByPerson => "a person stopped it",
        Reason::CancelledByPerson => "a person cancelled it",
        Reason::EditedByPerson => "a person set the verdict",
        Reason::ReviewSkipped => "not every reviewer answered",
        Reason::FindingsNoted => "findings were noted and left open",
        Reason::ChangedAfterReview => "something was committed after the review",
        Reason::NothingToCheck => "there was nothing to check",
        Reason::NothingToReview => "there is no change to review",
        Reason::NoWorkLeft => "the agent reports no work left",
        Reason::RateLimited => "rate limited by the agent's provider",
        Reason::Budget => "the budget is used up",
    }
}

/// `the fixer failed (fixer_failed)`: the sentence, and the code to search for.
pub fn reason_with_code(reason: Reason) -> String {
    format!("{} ({})", self::reason(reason), reason.into_str())
}

/// `: the fixer failed (fixer_failed)`; empty without a reason.
pub fn reason_suffix(reason: Option<Reason>) -> String {
    reason.map(|reason| format!(": {}", reason_with_code(reason))).unwrap_or_default()
}

/// `waits for claude until 12:31:08 UTC (rate limit: what it says), codex was rate limited too`.
pub fn wait(wait: &RateLimitWait) -> String {
    let agent = if wait.agent.is_empty() { "its agent".to_owned() } else { truncate_line(&wait.agent, 40) };
    let what = if wait.overloaded { "overload" } else { "rate limit" };
    let why = wait.why.as_deref().map(|why| format!(": {}", truncate_line(why, 80))).unwrap_or_default();
    let fallbacks = wait.fallbacks.join(" and ");
    let verb = if wait.fallbacks.len() == 1 { "was" } else { "were" };
    let fallback_text = if fallbacks.is_empty() {
        fallbacks
    } else {
        format!("; {} {verb} rate limited too", truncate_line(&fallbacks, 40))
    };
    format!("waits for {agent} until {} ({what}{why}{fallback_text})", utc_time(wait.until))
}

/// `12:31 UTC`, or `12:31:08 UTC`: the time given by a provider is a full minute; our own backoff needs the seconds.
pub fn utc_time(time: Timestamp) -> String {
    time.strftime(if time.as_second() % 60 == 0 { "%H:%M UTC" } else { "%H:%M:%S UTC" }).to_string()
}

/// Maximum width of the description of a failure.
const MAX_FAILURE_WIDTH: usize = 230;

/// Why an attempt failed.
pub fn failure(failure: &AttemptFailure) -> String {
    truncate_line(&failure.to_string(), MAX_FAILURE_WIDTH)
}

/// Why a review is inconclusive; `None` if it has a verdict.
pub fn inconclusive_reason(verdict: &Verdict) -> Option<String> {
    match verdict {
        Verdict::Inconclusive(Inconclusive::Missing(why)) if why.is_empty() => Some("no answer".to_owned()),
        Verdict::Inconclusive(Inconclusive::Missing(why)) => Some(truncate_line(why, MAX_FAILURE_WIDTH)),
        Verdict::Inconclusive(
            Inconclusive::Unparsable(violation)
            | Inconclusive::Contradictory(violation)
            | Inconclusive::Truncated(violation)
            | Inconclusive::Unbound(violation),
        ) => Some(violation.message.clone()),
        Verdict::Approved | Verdict::ApprovedWithMinor | Verdict::ChangesRequested | Verdict::NeedsDiscussion => None,
    }
}

/// A phase's name as a heading: `Plan Review`.
pub fn phase(name: &str) -> String {
    truncate_line(&name.split(['_', '-']).map(capitalized).collect::<Vec<_>>().join(" "), 40)
}

/// The activity of an agent with this role.
pub fn role_activity(role: Role) -> &'static str {
    match role {
        Role::Implement => "Implementing",
        Role::Fix => "Improving",
        Role::Enumerate => "Listing the tasks",
        Role::Plan => "Planning",
        Role::Brainstorm => "Brainstorming",
        Role::Simplify => "Simplifying",
    }
}

/// The product of an agent with this role.
pub fn role_product(role: Role) -> &'static str {
    match role {
        Role::Implement => "Implementation",
        Role::Fix => "Improvement",
        Role::Enumerate => "Task list",
        Role::Plan => "Plan",
        Role::Brainstorm => "Brainstorm",
        Role::Simplify => "Simplification",
    }
}

/// `Task #29`, or the title of a loop without a task.
pub fn subject(row: &LoopRow) -> String {
    match row.task {
        Some(task) => format!("Task #{task}{}", bracketed_id(row)),
        None if row.title.is_empty() => truncate_line(&capitalized(row.id.as_str()), 60),
        None => truncate_line(&row.title, 60),
    }
}

/// ` (b-1)` for a task of a tracker.
pub fn bracketed_id(row: &LoopRow) -> String {
    row.tracker_id.as_ref().map(|id| format!(" ({})", truncate_line(id, MAX_TRACKER_ID_WIDTH))).unwrap_or_default()
}

/// Maximum width of a tracker's id.
pub const MAX_TRACKER_ID_WIDTH: usize = 40;

/// Lower-cases the first letter, for use within a sentence.
pub fn lowercase_first(title: &str) -> String {
    let mut chars = title.chars();
    chars.next().into_iter().flat_map(char::to_lowercase).chain(chars).collect()
}
