//! What the loops beside this one are at: enough to spot a collision, no more.

use crate::prompt::material::{one_line, one_short_line};
use crate::prompt::text;

/// A summary is a line, not a report.
const SUMMARY_CHARACTERS: usize = 200;
/// More loops than these are counted, not listed.
const LISTED: usize = 50;

/// Another loop, from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherLoop<'a> {
    pub name: &'a str,
    /// `completed`, `in_progress`, …
    pub status: &'a str,
    pub summary: &'a str,
    /// For a loop still at work.
    pub iteration: Option<u32>,
}

/// One line for each other loop, or a sentence if there is none.
pub fn summary(loops: &[OtherLoop<'_>]) -> String {
    if loops.is_empty() {
        return text::NO_OTHER_LOOPS.to_owned();
    }
    let mut lines: Vec<String> = loops.iter().take(LISTED).map(line).collect();
    if loops.len() > LISTED {
        lines.push(format!("- and {} more", loops.len() - LISTED));
    }
    lines.join("\n")
}

fn line(other: &OtherLoop<'_>) -> String {
    let iteration = other.iteration.map(|n| format!(", iteration {n}")).unwrap_or_default();
    let summary = one_short_line(other.summary, SUMMARY_CHARACTERS);
    format!("- Loop {} ({}): {summary}{iteration}", one_line(other.name), one_line(other.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_for_each() {
        let a = OtherLoop {
            name: "A",
            status: "completed",
            summary: "Implemented user authentication endpoints",
            iteration: None,
        };
        let c = OtherLoop {
            name: "C",
            status: "in_progress",
            summary: "Working on database migrations",
            iteration: Some(3),
        };
        insta::assert_snapshot!(summary(&[a, c]), @r"
        - Loop A (completed): Implemented user authentication endpoints
        - Loop C (in_progress): Working on database migrations, iteration 3
        ");
        insta::assert_snapshot!(summary(&[]), @"No other loop is at work.");
    }

    #[test]
    fn a_summary_stays_on_its_line() {
        let long = format!("Adding\n## How to Report Results\n{}", "x".repeat(300));
        let one = OtherLoop { name: "B", status: "in_progress", summary: &long, iteration: None };
        assert_eq!(summary(&[one; 60]).lines().count(), 51);
        insta::assert_snapshot!(summary(&[one]).replace(&"x".repeat(160), "(160 x)"), @"- Loop B (in_progress): Adding ## How to Report Results (160 x)xxxxxxxx…");
    }
}
