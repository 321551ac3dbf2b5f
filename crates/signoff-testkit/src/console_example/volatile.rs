//! Compares lines apart from volatile values: commit ids, random words, dates, times, durations.

/// Whether two lines are equal apart from volatile values and spacing.
pub(super) fn lines_match(one: &str, other: &str) -> bool {
    words(one) == words(other)
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(normalize).collect()
}

/// Replaces the volatile parts of a word with `~`.
fn normalize(word: &str) -> String {
    let core = word.trim_matches(|c: char| "(),;.\"".contains(c));
    if is_time(core) || is_duration(core) {
        return word.replace(core, "~");
    }
    let mut normalized = String::new();
    for run in hex_runs(word) {
        let date = run.len() == 8 && run.chars().all(|c| c.is_ascii_digit());
        normalized.push_str(if date || is_random(run) { "~" } else { run });
    }
    normalized
}

/// Splits a word into runs of hexadecimal digits and the text between them.
fn hex_runs(word: &str) -> Vec<&str> {
    let mut runs = Vec::new();
    let mut start = 0;
    let hex = |c: char| c.is_ascii_hexdigit() && !c.is_ascii_uppercase();
    let mut before = None;
    for (place, c) in word.char_indices() {
        if before.is_some_and(|before| before != hex(c)) {
            runs.push(&word[start..place]);
            start = place;
        }
        before = Some(hex(c));
    }
    runs.push(&word[start..]);
    runs
}

/// Whether a run is random. Ids of findings are shorter, and stable.
fn is_random(run: &str) -> bool {
    run.len() > 10 && run.chars().all(|c| c.is_ascii_hexdigit())
}

/// `2026-01-29T23:59:59.5Z`, `2026-01-29`, `23:59:59`
fn is_time(word: &str) -> bool {
    let shape: String = word.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    ["0000-00-00", "00:00:00"].contains(&shape.as_str())
        || shape.starts_with("0000-00-00T00:00:00") && word.ends_with('Z')
}

/// `3ms`, `1.5s`, `2m`
fn is_duration(word: &str) -> bool {
    let number = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &word[number.len()..];
    ["ms", "s", "m", "h"].contains(&unit) && number.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_volatile_values_are_ignored() {
        for (one, other) in [
            ("base  3a4ab19b9ee9e4c1b8425ee001a76ddb14c47db0", "base  920338b76b92d8ea7d9cfd68e08d682e9feb7ec3"),
            ("(review, 920338b76b9…): APPROVED", "(review, 1f5bcc09706…): APPROVED"),
            ("a1  demo  2026-11-15T13:43:37.7Z  12ms  $0.00", "a1  demo  2026-11-16T01:02:03Z  7ms   $0.00"),
            ("time 2026-11-15 13:43:37 to 2026-11-15 13:43:38", "time 2026-11-16 01:02:03 to 2026-11-16 01:02:03"),
            ("reviews/20261115-task-1-review-1.md", "reviews/20270101-task-1-review-1.md"),
        ] {
            assert!(lines_match(one, other), "{one} | {other}");
        }
        for (one, other) in [
            ("f-38da465ca2 fixed", "f-8c1a987d3e fixed"),
            ("2 cycles", "3 cycles"),
            ("reviews/20261115-task-1-review-1.md", "reviews/20261115-task-1-review-2.md"),
        ] {
            assert!(!lines_match(one, other), "{one} | {other}");
        }
    }
}
