//! Measures the time to merge 10,000 findings.

use divan::{Bencher, black_box};
use signoff_core::ids::ReviewerName;
use signoff_core::merge::merge;
use signoff_core::review::{FailThreshold, Finding, Review, ReviewerKind, Severity, Verdict};
use signoff_core::similarity::assign_ids;

const FINDINGS: usize = 10_000;

fn main() {
    divan::main();
}

/// A large change with two reviewers: findings spread over 200 files, with different texts.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn spread_over_200_files(bencher: Bencher<'_, '_>) {
    let reviews = panel(|n| (format!("src/file{}.rs", n % 200), (n as u32).wrapping_mul(7919) % 5000 + 1));
    bencher.bench(|| merge(black_box(&reviews), FailThreshold::Medium));
}

/// The worst case: every finding is related to every other one.
#[divan::bench(sample_count = 3, sample_size = 1)]
fn all_in_one_place(bencher: Bencher<'_, '_>) {
    let reviews = panel(|n| ("src/lib.rs".to_owned(), n as u32 % 5 + 1));
    bencher.bench(|| merge(black_box(&reviews), FailThreshold::Medium));
}

/// A chain: each finding is near the next one, the first is far from the last.
#[divan::bench(sample_count = 3, sample_size = 1)]
fn one_long_chain(bencher: Bencher<'_, '_>) {
    let reviews = panel(|n| ("src/lib.rs".to_owned(), n as u32 * 3 + 1));
    bencher.bench(|| merge(black_box(&reviews), FailThreshold::Medium));
}

/// A spec and a code review with half of the findings each.
fn panel(place: impl Fn(usize) -> (String, u32)) -> [Review; 2] {
    [ReviewerKind::Spec, ReviewerKind::Code].map(|kind| {
        let name = ReviewerName::new(kind.into_str());
        let mut findings: Vec<_> = (0..FINDINGS / 2).map(|n| finding(&name, n, place(n))).collect();
        assign_ids(&mut findings);
        Review { findings, ..Review::new(name, kind, Verdict::ChangesRequested) }
    })
}

fn finding(source: &ReviewerName, n: usize, (file, line): (String, u32)) -> Finding {
    const SUBJECTS: [&str; 7] = ["the parser", "a handler", "this loop", "the cache", "a test", "the writer", "a lock"];
    const FAULTS: [&str; 5] =
        ["drops errors of", "never closes", "reads twice from", "leaks memory in", "ignores the limit of"];
    let (subject, fault) = (SUBJECTS[n % SUBJECTS.len()], FAULTS[n / 7 % FAULTS.len()]);
    Finding {
        id: "".into(),
        sources: vec![source.clone()],
        kind: "bug".to_owned(),
        severity: [Severity::Critical, Severity::Important, Severity::Minor][n % 3],
        file: Some(file),
        line: Some(line),
        description: format!("{subject} {fault} module {}", n / 35),
        requirement: None,
        suggestion: None,
    }
}
