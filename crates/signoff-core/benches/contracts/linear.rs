//! The time at 10 MB over the time at 5 MB, for every contract on every kind of text.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use signoff_core::contract::Contract;

use crate::{MEGABYTE, ask, input, read};

/// Twice the text may take this much longer.
const STEEPEST: f64 = 2.5;

/// Below this the clock and the caches decide, not the text.
const TOO_SHORT_TO_JUDGE: Duration = Duration::from_millis(2);

const CONTRACTS: [Contract; 7] = [
    Contract::Markdown,
    Contract::Json,
    Contract::Xml,
    Contract::Prefix,
    Contract::Severity,
    Contract::Tool,
    Contract::Auto,
];

/// Prints the table. Fails if any line of it is too steep.
pub fn table() -> ExitCode {
    println!(
        "\n{:<10} {:<14} {:>10} {:>10} {:>8} {:>6}",
        "contract", "text", "5 MB", "10 MB", "MB/s", "ratio"
    );
    let steep = CONTRACTS.into_iter().flat_map(rows).filter(|row| !row).count();
    println!("\n{steep} of the ratios are above {STEEPEST}");
    if steep == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn rows(contract: Contract) -> impl Iterator<Item = bool> {
    let hostile = input::HOSTILE.into_iter().map(move |(name, unit)| {
        row(contract, name, &|megabytes| input::repeated(unit, megabytes * MEGABYTE))
    });
    std::iter::once_with(move || {
        row(contract, "honest", &|megabytes| input::honest(contract, megabytes * MEGABYTE))
    })
    .chain(hostile)
}

/// One line of the table; true unless the ratio is too steep.
fn row(contract: Contract, name: &str, text: &dyn Fn(usize) -> Vec<u8>) -> bool {
    let (five, ten) = (fastest(contract, &text(5)), fastest(contract, &text(10)));
    let ratio = ten.as_secs_f64() / five.as_secs_f64();
    let speed = 10.0 / ten.as_secs_f64();
    let good = ratio <= STEEPEST || ten < TOO_SHORT_TO_JUDGE;
    let mark = if good { "" } else { "  too steep" };
    let contract = format!("{contract:?}").to_lowercase();
    println!("{contract:<10} {name:<14} {five:>10.1?} {ten:>10.1?} {speed:>8.0} {ratio:>6.2}{mark}");
    good
}

/// The best of three, which is the one least disturbed by other work on the machine.
fn fastest(contract: Contract, text: &[u8]) -> Duration {
    let ask = ask();
    (0..3).map(|_| timed(|| read(contract, text, &ask))).min().unwrap_or_default()
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    divan::black_box(work());
    start.elapsed()
}
