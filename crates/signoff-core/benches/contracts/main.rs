//! Measures how fast answers are parsed, and checks that the time grows linearly with their length.
//!
//! First the throughput on valid answers, then a table with every contract on valid and hostile text at
//! 5 MB and at 10 MB. Twice the length may take at most 2.5 times as long, or the benchmark fails.

mod input;
mod linear;

use std::process::ExitCode;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use signoff_core::contract::{Contract, ReviewAnswer, ReviewRequest, parse};
use signoff_core::ids::ReviewerName;
use signoff_core::review::{FailThreshold, ReviewerKind};

const MEGABYTE: usize = 1_000_000;

fn main() -> ExitCode {
    divan::main();
    if filtered() { ExitCode::SUCCESS } else { linear::table() }
}

/// Whether the command line selects only some of the benchmarks.
fn filtered() -> bool {
    std::env::args().skip(1).any(|word| !word.starts_with('-'))
}

#[divan::bench(args = [Contract::Markdown, Contract::Json, Contract::Xml, Contract::Prefix, Contract::Severity,
    Contract::Tool, Contract::Auto], consts = [5, 10], sample_count = 5, sample_size = 1)]
fn honest<const MEGABYTES: usize>(bencher: Bencher<'_, '_>, contract: &Contract) {
    let text = input::honest(*contract, MEGABYTES * MEGABYTE);
    let request = review_request();
    assert!(read(*contract, &text, &request), "{contract:?} does not understand the honest answer");
    bencher.counter(BytesCount::new(text.len())).bench(|| read(*contract, black_box(&text), &request));
}

/// Parses one answer and returns whether it is a review.
fn read(contract: Contract, text: &[u8], request: &ReviewRequest) -> bool {
    let answer = match contract {
        Contract::Tool => ReviewAnswer { text: b"", tool: Some(text) },
        Contract::Markdown
        | Contract::Json
        | Contract::Xml
        | Contract::Prefix
        | Contract::Severity
        | Contract::Auto => ReviewAnswer { text, tool: None },
    };
    black_box(parse(contract, answer, request)).is_ok()
}

fn review_request() -> ReviewRequest {
    ReviewRequest {
        reviewer: ReviewerName::new("code"),
        kind: ReviewerKind::Code,
        nonce: None,
        require_nonce: false,
        fail_on: FailThreshold::Medium,
        commit: None,
        loop_id: None,
        task: None,
    }
}
