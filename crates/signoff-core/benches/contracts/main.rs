//! How fast answers are read, and that the time grows no faster than their length.
//!
//! First the honest answers, as throughput; then a table with every contract on honest and hostile text at
//! 5 MB and at 10 MB. Twice the length may take at most 2.5 times as long, or the benchmark fails.

mod input;
mod linear;

use std::process::ExitCode;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use signoff_core::contract::{Answer, Ask, Contract, parse};
use signoff_core::ids::ReviewerName;
use signoff_core::review::{Bar, ReviewerKind};

const MEGABYTE: usize = 1_000_000;

fn main() -> ExitCode {
    divan::main();
    if filtered() { ExitCode::SUCCESS } else { linear::table() }
}

/// Whether only some of the benchmarks were asked for.
fn filtered() -> bool {
    std::env::args().skip(1).any(|word| !word.starts_with('-'))
}

#[divan::bench(args = [Contract::Markdown, Contract::Json, Contract::Xml, Contract::Prefix, Contract::Severity,
    Contract::Tool, Contract::Auto], consts = [5, 10], sample_count = 5, sample_size = 1)]
fn honest<const MEGABYTES: usize>(bencher: Bencher<'_, '_>, contract: &Contract) {
    let text = input::honest(*contract, MEGABYTES * MEGABYTE);
    let ask = ask();
    assert!(read(*contract, &text, &ask), "{contract:?} does not understand the honest answer");
    bencher.counter(BytesCount::new(text.len())).bench(|| read(*contract, black_box(&text), &ask));
}

/// Reads one answer; says whether it is a review.
fn read(contract: Contract, text: &[u8], ask: &Ask) -> bool {
    let answer = match contract {
        Contract::Tool => Answer { text: b"", tool: Some(text) },
        Contract::Markdown
        | Contract::Json
        | Contract::Xml
        | Contract::Prefix
        | Contract::Severity
        | Contract::Auto => Answer { text, tool: None },
    };
    black_box(parse(contract, answer, ask)).is_ok()
}

fn ask() -> Ask {
    Ask {
        reviewer: ReviewerName::new("code"),
        kind: ReviewerKind::Code,
        nonce: None,
        require_nonce: false,
        fail_on: Bar::Medium,
        commit: None,
        loop_id: None,
        task: None,
    }
}
