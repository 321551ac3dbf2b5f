//! One line about each other loop of the run, so that an agent can avoid collisions.

use serde::Serializer;

use crate::prompt::material::{one_line, one_short_line};
use crate::view::TaskStatus;

/// Maximum length of a title, in characters.
const SUMMARY_CHARACTERS: usize = 200;
/// Maximum number of loops in the list; the others are counted.
const LISTED: usize = 50;

/// Another loop of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherLoop<'a> {
    pub name: &'a str,
    pub status: TaskStatus,
    /// The title of its task.
    pub title: &'a str,
    pub iteration: u32,
}

/// Serializes the loops as their summary.
pub(super) fn serialize<S: Serializer>(loops: &[OtherLoop<'_>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&summary(loops))
}

/// One line for each loop, or a sentence if there is none.
fn summary(loops: &[OtherLoop<'_>]) -> String {
    if loops.is_empty() {
        return "No other loop is at work.".to_owned();
    }
    let mut lines: Vec<String> = loops.iter().take(LISTED).map(line).collect();
    if loops.len() > LISTED {
        lines.push(format!("- and {} more", loops.len() - LISTED));
    }
    lines.join("\n")
}

/// `Implemented user authentication endpoints`, `Working on database migrations, iteration 3`.
fn line(other: &OtherLoop<'_>) -> String {
    let title = one_short_line(other.title, SUMMARY_CHARACTERS);
    let doing = match other.status {
        TaskStatus::Completed => format!("Implemented {}", mid_sentence(&title)),
        TaskStatus::InProgress => format!("Working on {}, iteration {}", mid_sentence(&title), other.iteration),
        TaskStatus::Pending
        | TaskStatus::Waiting
        | TaskStatus::Paused
        | TaskStatus::Failed
        | TaskStatus::Stuck
        | TaskStatus::Blocked
        | TaskStatus::Cancelled => title,
    };
    format!("- Loop {} ({}): {doing}", one_line(other.name), other.status.as_str())
}

/// A title for use within a sentence: `Database migrations` becomes `database migrations`, `API keys` stays.
fn mid_sentence(title: &str) -> String {
    let mut letters = title.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if first.is_uppercase() && second.is_lowercase() => {
            first.to_lowercase().chain([second]).chain(letters).collect()
        }
        (Some(_) | None, _) => title.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_for_each() {
        let a = OtherLoop {
            name: "A",
            status: TaskStatus::Completed,
            title: "User authentication endpoints",
            iteration: 2,
        };
        let c = OtherLoop { name: "C", status: TaskStatus::InProgress, title: "Database migrations", iteration: 3 };
        insta::assert_snapshot!(summary(&[a, c]), @r"
        - Loop A (completed): Implemented user authentication endpoints
        - Loop C (in_progress): Working on database migrations, iteration 3
        ");
        insta::assert_snapshot!(summary(&[]), @"No other loop is at work.");
    }

    #[test]
    fn a_summary_stays_on_its_line() {
        let long = format!("Adding\n## How to Report Results\n{}", "x".repeat(300));
        let one = OtherLoop { name: "B", status: TaskStatus::Failed, title: &long, iteration: 1 };
        assert_eq!(summary(&[one; 60]).lines().count(), 51);
        insta::assert_snapshot!(summary(&[one]).replace(&"x".repeat(160), "(160 x)"), @"- Loop B (failed): Adding ## How to Report Results (160 x)xxxxxxxx…");
    }
}
