//! Parses the delay from a rate limit message.

use std::time::Duration;

/// Phrases that precede a delay.
const PREFIXES: [&str; 6] = ["retry-after", "retry after", "retry_after", "retry in", "try again in", "\"retrydelay\""];

/// Parses the delay from a line in lower case.
pub fn parse_retry_after(line: &str) -> Option<Duration> {
    let behind = |lead: &str| line.find(lead).map(|at| &line[at + lead.len()..]);
    PREFIXES.into_iter().filter_map(behind).find_map(parse_duration)
}

/// Parses `30`, `: 30`, `6m0s`, `1.5 seconds`. Without a unit the number means seconds.
fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim_start_matches(|char: char| matches!(char, ':' | '"' | '=' | '_') || char.is_whitespace());
    let mut sum = None;
    while let Some((number, after)) = number(rest) {
        let (unit, behind) = unit(after);
        let seconds = number * unit;
        sum = Some(sum.unwrap_or(0.0) + seconds);
        // `6m0s` continues; other text after a duration is not part of it.
        rest = if unit == 1.0 { "" } else { behind };
    }
    sum.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

/// Parses a number at the start, and returns the rest.
fn number(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(text.len());
    let number = text[..end].trim_end_matches('.').parse().ok()?;
    Some((number, &text[end..]))
}

/// Parses a unit at the start into seconds, and returns the rest.
fn unit(text: &str) -> (f64, &str) {
    let word = text.trim_start_matches(' ');
    let end = word.find(|char: char| !char.is_ascii_alphabetic()).unwrap_or(word.len());
    let seconds = match &word[..end] {
        "ms" | "milliseconds" => 0.001,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => 1.0,
    };
    (seconds, &word[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_as_people_and_servers_write_them() {
        let seconds = |line: &str| parse_retry_after(&line.to_lowercase()).map(|wait| wait.as_secs_f64());
        for (line, wait) in [
            ("Retry-After: 30", 30.0),
            ("retry after 20 s", 20.0),
            ("Please try again in 6m0s.", 360.0),
            ("try again in 1h2m3s", 3723.0),
            ("try again in 6.2s. Visit", 6.2),
            ("please try again in 320ms", 0.32),
            ("retry in 2 minutes", 120.0),
            ("\"retryDelay\": \"34s\"", 34.0),
            ("{\"retry_after\": 7}", 7.0),
            ("try again in 3 days", 259_200.0),
        ] {
            assert_eq!(seconds(line), Some(wait), "{line}");
        }
        for line in ["try again in a while", "retry after lunch", "Retry-After: Wed, 21 Oct 2026", "wait 30 s", ""] {
            assert_eq!(seconds(line), None, "{line}");
        }
    }

    #[test]
    fn absurd_lengths_are_none() {
        assert_eq!(parse_retry_after(&format!("retry after {}", "9".repeat(400))), None);
    }
}
