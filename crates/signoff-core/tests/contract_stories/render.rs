//! Renders parsed reviews as single lines, so that a test shows a table of answers.

use signoff_core::contract::{Contract, ReviewAnswer, ReviewRequest, parse};
use signoff_core::ids::{Commit, LoopId, Nonce, ReviewerName};
use signoff_core::review::{FailThreshold, Review, ReviewerKind, Violation};

pub const NONCE: &str = "n-7f3a";
pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

pub fn review_request(contract: Contract) -> ReviewRequest {
    ReviewRequest {
        reviewer: ReviewerName::new("code"),
        kind: ReviewerKind::Code,
        nonce: Some(Nonce::new(NONCE)),
        require_nonce: false,
        fail_on: contract.default_threshold(),
        commit: Some(Commit::new(COMMIT)),
        loop_id: None,
        task: None,
    }
}

pub fn spec(contract: Contract) -> ReviewRequest {
    ReviewRequest { reviewer: ReviewerName::new("spec"), kind: ReviewerKind::Spec, ..review_request(contract) }
}

pub fn strict(contract: Contract) -> ReviewRequest {
    ReviewRequest { require_nonce: true, ..review_request(contract) }
}

pub fn looped(contract: Contract) -> ReviewRequest {
    ReviewRequest { loop_id: Some(LoopId::new("b")), task: Some("12".to_owned()), ..review_request(contract) }
}

pub fn barred(contract: Contract, threshold: FailThreshold) -> ReviewRequest {
    ReviewRequest { fail_on: threshold, ..review_request(contract) }
}

pub fn read(contract: Contract, text: &str, request: &ReviewRequest) -> Result<Review, Violation> {
    parse(contract, ReviewAnswer { text: text.as_bytes(), tool: None }, request)
}

/// Parses an answer and renders the result as one line.
pub fn parse_line(contract: Contract, text: &str, request: &ReviewRequest) -> String {
    one_line(&read(contract, text, request))
}

pub fn one_line(result: &Result<Review, Violation>) -> String {
    match result {
        Ok(review) => review_line(review),
        Err(violation) => format!("! {} @{}: {}", violation.code, violation.offset, violation.message),
    }
}

fn review_line(review: &Review) -> String {
    let location = |file: &Option<String>, line: Option<u32>| match (file, line) {
        (Some(file), Some(line)) => format!("{file}:{line} "),
        (Some(file), None) => format!("{file} "),
        (None, _) => String::new(),
    };
    let mut line = review.verdict.into_str().to_owned();
    for finding in &review.findings {
        let location = location(&finding.file, finding.line);
        line += &format!(" [{} {}] {location}{:?}", finding.severity.into_str(), finding.kind, finding.description);
        for more in [&finding.requirement, &finding.suggestion].into_iter().flatten() {
            line += &format!(" ({more})");
        }
    }
    for note in &review.minor {
        line += &format!(" (note) {}{:?}", location(&note.file, note.line), note.description);
    }
    line
}

/// Renders a table: each result below the title of its answer.
pub fn table(contract: Contract, request: &ReviewRequest, answers: &[(&str, &str)]) -> String {
    let rows = answers.iter().map(|(title, text)| format!("{title}\n    {}", parse_line(contract, text, request)));
    rows.collect::<Vec<_>>().join("\n")
}
