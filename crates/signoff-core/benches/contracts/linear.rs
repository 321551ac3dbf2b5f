//! Measures the ratio of the time at 10 MB to the time at 5 MB, for every contract and every kind of text.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use signoff_core::contract::Contract;

use crate::{MEGABYTE, input, read, review_request};

/// Maximum ratio of the two times.
const STEEPEST: f64 = 2.5;

/// Shorter times are dominated by the clock and the caches.
const TOO_SHORT_TO_JUDGE: Duration = Duration::from_millis(20);

/// Maximum number of measurements. A ratio above the maximum is measured again, because other load only adds time.
const ROUNDS: usize = 8;

const CONTRACTS: [Contract; 7] = [
    Contract::Markdown,
    Contract::Json,
    Contract::Xml,
    Contract::Prefix,
    Contract::Severity,
    Contract::Tool,
    Contract::Auto,
];

/// Prints the table. Fails if a ratio is above the maximum.
pub fn table() -> ExitCode {
    println!("\n{:<10} {:<14} {:>10} {:>10} {:>8} {:>6}", "contract", "text", "5 MB", "10 MB", "MB/s", "ratio");
    let steep = CONTRACTS.into_iter().flat_map(rows).filter(|row| !row).count();
    println!("\n{steep} of the ratios are above {STEEPEST}");
    if steep == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn rows(contract: Contract) -> impl Iterator<Item = bool> {
    let hostile = input::HOSTILE
        .into_iter()
        .map(move |(name, unit)| row(contract, name, &|megabytes| input::repeated(unit, megabytes * MEGABYTE)));
    std::iter::once_with(move || row(contract, "honest", &|megabytes| input::honest(contract, megabytes * MEGABYTE)))
        .chain(hostile)
}

/// Prints one line of the table. Returns false if the ratio is above the maximum.
fn row(contract: Contract, name: &str, text: &dyn Fn(usize) -> Vec<u8>) -> bool {
    let times = Times::of(contract, &text(5), &text(10));
    let Times { five, ten } = times;
    let (speed, ratio) = (10.0 / ten.as_secs_f64(), times.ratio());
    let mark = if times.good() { "" } else { "  too steep" };
    let contract = format!("{contract:?}").to_lowercase();
    println!("{contract:<10} {name:<14} {five:>10.1?} {ten:>10.1?} {speed:>8.0} {ratio:>6.2}{mark}");
    times.good()
}

/// The fastest run at each length.
struct Times {
    five: Duration,
    ten: Duration,
}

impl Times {
    fn of(contract: Contract, five: &[u8], ten: &[u8]) -> Self {
        let request = review_request();
        let mut times = Self { five: Duration::MAX, ten: Duration::MAX };
        for round in 1..=ROUNDS {
            times.five = times.five.min(timed(|| read(contract, five, &request)));
            times.ten = times.ten.min(timed(|| read(contract, ten, &request)));
            if times.good() && (round > 1 || times.ten > Duration::from_secs(1)) {
                break;
            }
        }
        times
    }

    fn ratio(&self) -> f64 {
        self.ten.as_secs_f64() / self.five.as_secs_f64()
    }

    fn good(&self) -> bool {
        self.ratio() <= STEEPEST || self.ten < TOO_SHORT_TO_JUDGE
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    divan::black_box(work());
    start.elapsed()
}
