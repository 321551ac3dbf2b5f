//! Requests in a prose review that are not listed as findings.

use super::{Finding, Review};

impl Review {
    /// The summary without the lines that repeat a finding; none if only headings remain.
    pub fn summary_without_findings(&self) -> Option<String> {
        let is_heading = |line: &str| line.starts_with('#') || line.ends_with(':');
        let about = |line: &str| self.findings.iter().any(|finding| repeats_finding(line, finding));
        let lines: Vec<&str> = self.summary.lines().filter(|line| !about(line.trim())).collect();
        let says = lines.iter().map(|line| line.trim()).any(|line| !line.is_empty() && !is_heading(line));
        says.then(|| lines.join("\n").trim().to_owned())
    }
}

/// Whether a line repeats text of a finding.
fn repeats_finding(line: &str, finding: &Finding) -> bool {
    let said = line.trim_start_matches(|c: char| "-*+•".contains(c) || c.is_whitespace());
    let texts = [Some(&finding.description), finding.suggestion.as_ref(), finding.requirement.as_ref()];
    let in_words = |text: &String| text.contains(said) || (!text.is_empty() && said.contains(text.as_str()));
    !said.is_empty() && texts.into_iter().flatten().any(in_words)
}

#[cfg(test)]
mod tests {
    use crate::review::{Finding, Review, ReviewerKind, Severity, Verdict};

    fn beside(summary: &str) -> Option<String> {
        let mut review = Review::new("r".into(), ReviewerKind::General, Verdict::ChangesRequested);
        review.summary = summary.to_owned();
        review.findings = vec![Finding::new(&"r".into(), "bug", Severity::Critical, "It lacks a check")];
        review.summary_without_findings()
    }

    #[test]
    fn lines_about_findings_are_dropped() {
        assert_eq!(beside("## Issues\n\n- a.rs:1 It lacks a check\n"), None);
        assert_eq!(beside("Please change:\n- a.rs:1 It lacks a check"), None);
        let both = "- a.rs:1 It lacks a check\n\nThe manual must say so as well.\n";
        assert_eq!(beside(both).as_deref(), Some("The manual must say so as well."));
        assert_eq!(beside(""), None);
    }
}
