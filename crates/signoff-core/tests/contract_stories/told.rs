//! A review as one line of text, so that a table of answers can be read at a glance.

use signoff_core::contract::{Answer, Ask, Contract, parse};
use signoff_core::ids::{Commit, LoopId, Nonce, ReviewerName};
use signoff_core::review::{Bar, Review, ReviewerKind, Violation};

pub const NONCE: &str = "n-7f3a";
pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

pub fn ask(contract: Contract) -> Ask {
    Ask {
        reviewer: ReviewerName::new("code"),
        kind: ReviewerKind::Code,
        nonce: Some(Nonce::new(NONCE)),
        require_nonce: false,
        fail_on: contract.default_bar(),
        commit: Some(Commit::new(COMMIT)),
        loop_id: None,
        task: None,
    }
}

pub fn spec(contract: Contract) -> Ask {
    Ask { reviewer: ReviewerName::new("spec"), kind: ReviewerKind::Spec, ..ask(contract) }
}

pub fn strict(contract: Contract) -> Ask {
    Ask { require_nonce: true, ..ask(contract) }
}

pub fn looped(contract: Contract) -> Ask {
    Ask { loop_id: Some(LoopId::new("b")), task: Some("12".to_owned()), ..ask(contract) }
}

pub fn barred(contract: Contract, bar: Bar) -> Ask {
    Ask { fail_on: bar, ..ask(contract) }
}

pub fn read(contract: Contract, text: &str, ask: &Ask) -> Result<Review, Violation> {
    parse(contract, Answer { text: text.as_bytes(), tool: None }, ask)
}

/// Tells what the answer was read as, in one line.
pub fn tell(contract: Contract, text: &str, ask: &Ask) -> String {
    told(&read(contract, text, ask))
}

pub fn told(result: &Result<Review, Violation>) -> String {
    match result {
        Ok(review) => told_review(review),
        Err(violation) => format!("! {} @{}: {}", violation.code, violation.offset, violation.message),
    }
}

fn told_review(review: &Review) -> String {
    let place = |file: &Option<String>, line: Option<u32>| match (file, line) {
        (Some(file), Some(line)) => format!("{file}:{line} "),
        (Some(file), None) => format!("{file} "),
        (None, _) => String::new(),
    };
    let mut line = review.verdict.word().to_owned();
    for finding in &review.findings {
        let place = place(&finding.file, finding.line);
        line += &format!(" [{} {}] {place}{:?}", finding.severity.word(), finding.kind, finding.description);
        for more in [&finding.requirement, &finding.suggestion].into_iter().flatten() {
            line += &format!(" ({more})");
        }
    }
    for note in &review.minor {
        line += &format!(" (note) {}{:?}", place(&note.file, note.line), note.description);
    }
    line
}

/// A table: each answer under its title.
pub fn table(contract: Contract, ask: &Ask, answers: &[(&str, &str)]) -> String {
    let rows = answers.iter().map(|(title, text)| format!("{title}\n    {}", tell(contract, text, ask)));
    rows.collect::<Vec<_>>().join("\n")
}
