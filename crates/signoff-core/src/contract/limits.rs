//! Limits on a parsed review. The full answer is kept in a file beside the log.

use crate::review::{Review, Violation, ViolationCode};

/// Maximum findings per review.
pub const MAX_FINDINGS: usize = 10_000;

/// Maximum length of a text in a review, in bytes.
pub const MAX_TEXT_BYTES: usize = 64 * 1024;

const TRUNCATION_NOTE: &str = "\n[cut: the whole answer is kept with the review's files]";

/// Returns a violation if a review has too many findings. Every finding stays in the ledger and is compared with
/// all later ones.
pub fn check_finding_count(review: Review) -> Result<Review, Violation> {
    let count = review.findings.len() + review.minor.len();
    if count <= MAX_FINDINGS {
        return Ok(review);
    }
    let message = format!("the answer has {count} findings; at most {MAX_FINDINGS} are taken");
    Err(Violation::new(ViolationCode::TooLarge, 0, message))
}

/// Returns a violation if an answer approves but a part of it could not be parsed: that part may object.
pub fn reject_unreadable_approval(review: Review, line: Option<&str>) -> Result<Review, Violation> {
    match line.filter(|_| review.verdict.approves()) {
        None => Ok(review),
        Some(line) => {
            let message = format!("the answer approves, and a line of it cannot be read: {line}");
            Err(Violation::new(ViolationCode::Malformed, 0, message))
        }
    }
}

/// Truncates the texts of a review and its list of checked items.
pub(super) fn truncate_texts(review: &mut Review) {
    review.checked.truncate(MAX_FINDINGS);
    let own = [&mut review.summary].into_iter();
    let asides = [&mut review.follow_up_prompt, &mut review.interpreted_intent].into_iter().flatten();
    let findings = review.findings.iter_mut().flat_map(|finding| {
        let more = [&mut finding.requirement, &mut finding.suggestion, &mut finding.file];
        [&mut finding.description, &mut finding.kind].into_iter().chain(more.into_iter().flatten())
    });
    let notes = review.minor.iter_mut().flat_map(|note| [&mut note.description].into_iter().chain(&mut note.file));
    own.chain(asides).chain(findings).chain(notes).chain(&mut review.checked).for_each(truncate);
}

fn truncate(text: &mut String) {
    if text.len() > MAX_TEXT_BYTES {
        let end = (0..=MAX_TEXT_BYTES - TRUNCATION_NOTE.len()).rev().find(|&end| text.is_char_boundary(end));
        text.truncate(end.unwrap_or_default());
        text.push_str(TRUNCATION_NOTE);
        text.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ReviewerName;
    use crate::review::{Finding, ReviewerKind, Severity, Verdict};

    fn review() -> Review {
        Review::new(ReviewerName::new("code"), ReviewerKind::Code, Verdict::ChangesRequested)
    }

    #[test]
    fn long_texts_are_cut_and_marked() {
        let long = "ü".repeat(MAX_TEXT_BYTES);
        let finding = Finding::new(&ReviewerName::new("code"), &long, Severity::Critical, long.clone());
        let finding = Finding { file: Some(long.clone()), ..finding };
        let checked = vec![long.clone(); 2];
        let mut kept = Review { summary: long, findings: vec![finding], checked, ..review() };
        truncate_texts(&mut kept);
        let Finding { kind, file, description, .. } = &kept.findings[0];
        for text in [&kept.summary, description, kind, file.as_ref().unwrap(), &kept.checked[1]] {
            assert!(text.len() <= MAX_TEXT_BYTES && text.len() > MAX_TEXT_BYTES - 4, "{}", text.len());
            assert!(text.ends_with(TRUNCATION_NOTE) && text.starts_with("üü"));
        }
    }

    #[test]
    fn the_list_of_checks_is_limited_like_findings() {
        let mut kept = Review { checked: vec!["a".to_owned(); MAX_FINDINGS + 1], ..review() };
        truncate_texts(&mut kept);
        assert_eq!(kept.checked.len(), MAX_FINDINGS);
    }

    #[test]
    fn short_texts_are_unchanged() {
        let whole = Review { summary: "a".repeat(MAX_TEXT_BYTES), ..review() };
        let mut kept = whole.clone();
        truncate_texts(&mut kept);
        assert_eq!(kept, whole);
    }

    #[test]
    fn an_answer_with_an_unreadable_part_never_approves() {
        let line = Some("{\"type\":\"ass");
        let approval = Review { verdict: Verdict::Approved, ..review() };
        assert_eq!(reject_unreadable_approval(approval.clone(), None), Ok(approval.clone()));
        let violation = reject_unreadable_approval(approval, line).unwrap_err();
        assert!(violation.message.ends_with("cannot be read: {\"type\":\"ass"), "{}", violation.message);
        assert_eq!(reject_unreadable_approval(review(), line), Ok(review()));
    }

    #[test]
    fn too_many_findings_are_a_violation() {
        let one = Finding::new(&ReviewerName::new("code"), "bug", Severity::Critical, "wrong");
        let most = Review { findings: vec![one; MAX_FINDINGS], ..review() };
        assert!(check_finding_count(most.clone()).is_ok());
        let mut more = most;
        more.findings.push(more.findings[0].clone());
        assert_eq!(check_finding_count(more).unwrap_err().code, ViolationCode::TooLarge);
    }
}
