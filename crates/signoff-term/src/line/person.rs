//! What people decide.

use signoff_core::ledger::{DecidedBy, State};
use signoff_core::machine::Event;

use crate::fit::{SENTENCE, cut};

/// An answer, an edited verdict or a decided finding, with who said so.
pub fn decided(event: &Event) -> Option<String> {
    if let Event::PersonAnswered { choice, by, .. } = event {
        return Some(format!("{} answers: {}", cut(by, 40), choice.word()));
    }
    if let Event::PersonEdited { verdict, by, reason, .. } = event {
        let reason =
            if reason.trim().is_empty() { String::new() } else { format!(" - {}", cut(reason, SENTENCE)) };
        return Some(format!("Verdict set to {} by {}{reason}", verdict.word(), cut(by, 40)));
    }
    let Event::FindingDecided { finding, decision } = event else { return None };
    let evidence = cut(&decision.evidence, SENTENCE);
    let evidence = if evidence.is_empty() { evidence } else { format!(" - {evidence}") };
    let (id, by) = (cut(finding.as_str(), 40), decider(&decision.by));
    Some(format!("Finding {id} {} by {by}{evidence}", state(decision.state)))
}

/// Who decided.
pub fn decider(by: &DecidedBy) -> String {
    match by {
        DecidedBy::Reviewer(name) => cut(name.as_str(), 40),
        DecidedBy::Person(name) | DecidedBy::Check(name) => cut(name, 40),
    }
}

/// A state as something done to a finding.
fn state(state: State) -> &'static str {
    match state {
        State::Open => "opened",
        State::Fixed => "called fixed",
        State::Refuted => "refuted",
        State::Deferred => "deferred",
        State::OutOfScope => "put out of scope",
    }
}
