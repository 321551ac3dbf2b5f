//! Lists in prompts: findings, and the other loops of the run.
//!
//! A list of findings is serialized as its length and its text, so that templates can leave out an empty list.

use serde::{Serialize, Serializer};

use crate::ledger::LedgerEntry;
use crate::prompt::template::{CHARACTER_CAP, fenced, one_line, one_short_line};
use crate::review::Finding;
use crate::view::TaskStatus;

/// Maximum length of a settled finding's description and evidence, in characters.
const SHORT_LINE: usize = 200;

/// Maximum length of a fixer's evidence, in characters.
const CLAIM_LINE: usize = 500;

#[derive(Serialize)]
struct FindingList {
    count: usize,
    list: String,
}

/// The findings in full, as a numbered list.
pub(super) fn numbered<S: Serializer>(findings: &[&Finding], serializer: S) -> Result<S::Ok, S::Error> {
    let entries = findings.iter().enumerate().map(|(index, finding)| entry(index + 1, finding));
    FindingList::new(entries).serialize(serializer)
}

/// One line for each settled finding, so that a reviewer recognises it.
pub(super) fn settled<S: Serializer>(entries: &[&LedgerEntry], serializer: S) -> Result<S::Ok, S::Error> {
    FindingList::new(entries.iter().map(|entry| settled_line(entry))).serialize(serializer)
}

/// The fixer's last claim about each of these findings, if it made one.
pub(super) fn claims<S: Serializer>(entries: &[&LedgerEntry], serializer: S) -> Result<S::Ok, S::Error> {
    let lines: Vec<String> = entries.iter().filter_map(|entry| claim_line(entry)).collect();
    FindingList::new(lines.into_iter()).serialize(serializer)
}

/// Pairs of findings that ask for opposite things.
pub(super) fn pairs<S: Serializer>(conflicts: &[(&Finding, &Finding)], serializer: S) -> Result<S::Ok, S::Error> {
    let side = |finding: &Finding| {
        let description = one_short_line(&finding.description, SHORT_LINE);
        let (id, kind) = (one_line(finding.id.as_str()), one_line(&finding.kind));
        format!("{id} ({kind}{}): {description}", sources(finding))
    };
    let pair =
        |(index, (a, b)): (usize, &(&Finding, &Finding))| format!("{}. {}\n   {}\n", index + 1, side(a), side(b));
    FindingList::new(conflicts.iter().enumerate().map(pair)).serialize(serializer)
}

impl FindingList {
    /// Fences the entries. Entries beyond the cap are counted below the fence.
    fn new(mut entries: impl ExactSizeIterator<Item = String>) -> Self {
        let count = entries.len();
        let (mut shown, mut left, mut missing) = (String::new(), CHARACTER_CAP, 0);
        while let Some(entry) = entries.next() {
            let size = entry.chars().count();
            // The first entry is always shown: an empty list would mean that there is nothing to do.
            if size > left && !shown.is_empty() {
                missing = entries.len() + 1;
                break;
            }
            shown += &entry;
            left = left.saturating_sub(size);
        }
        let mut list = fenced(&shown, "");
        if missing > 0 {
            list += &format!("\n\n({missing} more not shown here.)");
        }
        Self { count, list }
    }
}

fn entry(number: usize, finding: &Finding) -> String {
    let mut out = format!(
        "{number}. [{}] {} {} ({}{})\n",
        finding.severity.into_str(),
        one_line(finding.id.as_str()),
        location(finding),
        one_line(&finding.kind),
        sources(finding),
    );
    out += &indented("", &finding.description);
    let requirement = finding.requirement.as_deref().map(|text| indented("Requirement: ", text));
    let suggestion = finding.suggestion.as_deref().map(|text| indented("Suggestion: ", text));
    out.extend([requirement, suggestion].into_iter().flatten());
    out
}

fn location(finding: &Finding) -> String {
    match (&finding.file, finding.line) {
        (Some(file), Some(line)) => format!("{}:{line}", one_line(file)),
        (Some(file), None) => one_line(file),
        (None, Some(_) | None) => "no location given".to_owned(),
    }
}

fn sources(finding: &Finding) -> String {
    let names: Vec<String> = finding.sources.iter().map(|name| one_line(name.as_str())).collect();
    if names.is_empty() { String::new() } else { format!(", reported by {}", names.join(" and ")) }
}

/// The text indented behind the number's column, so that no line looks like the next entry.
fn indented(label: &str, text: &str) -> String {
    let lines = text.split(['\n', '\r']).map(str::trim_end).filter(|line| !line.is_empty());
    lines.enumerate().map(|(index, line)| format!("   {}{line}\n", if index == 0 { label } else { "" })).collect()
}

fn settled_line(entry: &LedgerEntry) -> String {
    let finding = &entry.finding;
    let evidence = entry.decisions.last().map(|decision| one_short_line(&decision.evidence, SHORT_LINE));
    let because = evidence.filter(|text| !text.is_empty()).map(|text| format!(" | {text}"));
    format!(
        "- {} {} {}: {}{}\n",
        one_line(finding.id.as_str()),
        entry.state.label(),
        location(finding),
        one_short_line(&finding.description, SHORT_LINE),
        because.unwrap_or_default(),
    )
}

fn claim_line(entry: &LedgerEntry) -> Option<String> {
    let claim = entry.claims.last()?;
    let evidence = match one_short_line(&claim.evidence, CLAIM_LINE) {
        text if text.is_empty() => " (no evidence given)".to_owned(),
        text => format!(": {text}"),
    };
    Some(format!("- {} {}{evidence}\n", one_line(entry.finding.id.as_str()), claim.kind.into_str()))
}

/// Another loop of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OtherLoop<'a> {
    pub name: &'a str,
    pub status: TaskStatus,
    /// The title of its task.
    pub title: &'a str,
    pub iteration: u32,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::FindingId;
    use crate::prompt::template::render;
    use crate::review::Severity;

    fn finding(id: &str, description: &str) -> Finding {
        Finding {
            id: FindingId::new(id),
            sources: vec!["spec".into(), "code".into()],
            kind: "bug".to_owned(),
            severity: Severity::Critical,
            file: Some("src/auth.ts".to_owned()),
            line: Some(45),
            description: description.to_owned(),
            requirement: None,
            suggestion: None,
        }
    }

    fn list(findings: &[&Finding]) -> String {
        let list = numbered(findings, serde_json::value::Serializer).unwrap();
        assert_eq!(list["count"], findings.len());
        list["list"].as_str().unwrap().to_owned()
    }

    #[test]
    fn all_fields_of_a_finding_are_rendered() {
        let full = Finding {
            requirement: Some("Support OAuth 2.0 login".to_owned()),
            suggestion: Some("Call `begin_flow`\nbefore the redirect".to_owned()),
            ..finding("f1", "Missing OAuth flow implementation\n\n2. [minor] not an entry")
        };
        let bare = Finding { sources: Vec::new(), file: None, ..finding("f2", "Too slow") };
        insta::assert_snapshot!(list(&[&full, &bare]), @r"
        ```
        1. [critical] f1 src/auth.ts:45 (bug, reported by spec and code)
           Missing OAuth flow implementation
           2. [minor] not an entry
           Requirement: Support OAuth 2.0 login
           Suggestion: Call `begin_flow`
           before the redirect
        2. [critical] f2 no location given (bug)
           Too slow
        ```
        ");
    }

    #[test]
    fn omitted_entries_are_counted() {
        let long = finding("f1", &"x".repeat(60_000));
        let shown = list(&[&long, &finding("f2", "second"), &finding("f3", "third")]);
        let filler = "x".repeat(49_000);
        insta::assert_snapshot!(shown.replace(&filler, "(49000 x)").replace(&"x".repeat(900), "(900 x)"), @r"
        ```
        1. [critical] f1 src/auth.ts:45 (bug, reported by spec and code)
           (49000 x)(900 x)xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
        ```

        (Cut: these are the first 50000 characters, 10069 more are not shown.)

        (2 more not shown here.)
        ");
    }

    proptest! {
        #[test]
        fn no_text_poses_as_an_entry(
            texts in prop::collection::vec("([0-9]\\. \\[|\n|\r|`{1,4}|.){0,12}", 1..6),
        ) {
            let findings: Vec<Finding> = texts.iter().map(|text| Finding {
                kind: text.clone(),
                file: Some(text.clone()),
                requirement: Some(text.clone()),
                ..finding(text, text)
            }).collect();
            let list = list(&findings.iter().collect::<Vec<_>>());
            let numbers = list.split(['\n', '\r']).filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
            prop_assert_eq!(numbers.count(), findings.len());
        }
    }

    fn summary(other_loops: &[OtherLoop<'_>]) -> String {
        let context = minijinja::context! { other_loops => minijinja::value::Serde(other_loops) };
        render("parts/other_loops.md", context)
    }

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
        insta::assert_snapshot!(summary(&[one]).trim_end().replace(&"x".repeat(160), "(160 x)"), @"- Loop B (failed): Adding ## How to Report Results (160 x)xxxxxxxx…");
    }
}
