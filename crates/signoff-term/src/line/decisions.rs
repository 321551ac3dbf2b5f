//! Lines about decisions of people.

use signoff_core::ledger::{DecidedBy, FindingState};
use signoff_core::machine::Event;

use crate::fit::{SENTENCE, cut};

/// An answer, an edited verdict or a decided finding, with the name of the person.
pub fn decision_text(event: &Event) -> Option<String> {
    if let Event::PersonAnswered { choice, by, .. } = event {
        return Some(format!("{} answers: {}", cut(by, 40), choice.as_str()));
    }
    if let Event::PersonEdited { verdict, by, reason, .. } = event {
        let reason = if reason.trim().is_empty() { String::new() } else { format!(" - {}", cut(reason, SENTENCE)) };
        return Some(format!("Verdict set to {} by {}{reason}", verdict.as_str(), cut(by, 40)));
    }
    let Event::FindingDecided { finding, decision } = event else { return None };
    let evidence = cut(&decision.evidence, SENTENCE);
    let evidence = if evidence.is_empty() { evidence } else { format!(" - {evidence}") };
    let (id, by) = (cut(finding.as_str(), 40), decider(&decision.by));
    Some(format!("Finding {id} {} by {by}{evidence}", state(decision.state)))
}

/// The name of the decider.
pub fn decider(by: &DecidedBy) -> String {
    match by {
        DecidedBy::Reviewer(name) => cut(name.as_str(), 40),
        DecidedBy::Person(name) | DecidedBy::Check(name) => cut(name, 40),
    }
}

/// The new state of a finding, as a verb.
fn state(state: FindingState) -> &'static str {
    match state {
        FindingState::Open => "opened",
        FindingState::Fixed => "called fixed",
        FindingState::Refuted => "refuted",
        FindingState::Deferred => "deferred",
        FindingState::OutOfScope => "put out of scope",
    }
}
