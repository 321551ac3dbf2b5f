//! How much of an answer is kept. The whole of it stays beside the log, word for word.

use crate::review::{Review, Violation, ViolationCode};

/// No review by a reviewer in its senses has more findings, and nobody would fix them one by one.
pub const MOST_FINDINGS: usize = 10_000;

/// No text of a review that people or agents are shown again is longer, in bytes.
pub const LONGEST_TEXT: usize = 64 * 1024;

const CUT: &str = "\n[cut: the whole answer is kept with the review's files]";

/// A violation if a review has too many findings: each one stays in the ledger for good, and is compared with all
/// that come after it.
pub fn within_reason(review: Review) -> Result<Review, Violation> {
    let count = review.findings.len() + review.minor.len();
    if count <= MOST_FINDINGS {
        return Ok(review);
    }
    let message = format!("the answer has {count} findings; at most {MOST_FINDINGS} are taken");
    Err(Violation::new(ViolationCode::TooLarge, 0, message))
}

/// A violation if an answer approves and a part of it could not be read: that part may object.
pub fn unless_unreadable(review: Review, line: Option<&str>) -> Result<Review, Violation> {
    match line.filter(|_| review.verdict.approves()) {
        None => Ok(review),
        Some(line) => {
            let message = format!("the answer approves, and a line of it cannot be read: {line}");
            Err(Violation::new(ViolationCode::Malformed, 0, message))
        }
    }
}

/// Cuts the texts of a review to what is kept, and the list of what was checked.
pub(super) fn cut_texts(review: &mut Review) {
    review.checked.truncate(MOST_FINDINGS);
    let own = [&mut review.summary].into_iter();
    let asides = [&mut review.follow_up_prompt, &mut review.interpreted_intent].into_iter().flatten();
    let findings = review.findings.iter_mut().flat_map(|finding| {
        let more = [&mut finding.requirement, &mut finding.suggestion, &mut finding.file];
        [&mut finding.description, &mut finding.kind].into_iter().chain(more.into_iter().flatten())
    });
    let notes =
        review.minor.iter_mut().flat_map(|note| [&mut note.description].into_iter().chain(&mut note.file));
    own.chain(asides).chain(findings).chain(notes).chain(&mut review.checked).for_each(cut);
}

fn cut(text: &mut String) {
    if text.len() > LONGEST_TEXT {
        let end = (0..=LONGEST_TEXT - CUT.len()).rev().find(|&end| text.is_char_boundary(end));
        text.truncate(end.unwrap_or_default());
        text.push_str(CUT);
        text.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ReviewerName;
    use crate::review::{Finding, ReviewerKind, Severity, Verdict};

    fn review() -> Review {
        Review::of(ReviewerName::new("code"), ReviewerKind::Code, Verdict::ChangesRequested)
    }

    #[test]
    fn what_is_too_long_is_cut_and_says_so() {
        let long = "ü".repeat(LONGEST_TEXT);
        let finding = Finding::of(&ReviewerName::new("code"), &long, Severity::Critical, long.clone());
        let finding = Finding { file: Some(long.clone()), ..finding };
        let checked = vec![long.clone(); 2];
        let mut kept = Review { summary: long, findings: vec![finding], checked, ..review() };
        cut_texts(&mut kept);
        let Finding { kind, file, description, .. } = &kept.findings[0];
        for text in [&kept.summary, description, kind, file.as_ref().unwrap(), &kept.checked[1]] {
            assert!(text.len() <= LONGEST_TEXT && text.len() > LONGEST_TEXT - 4, "{}", text.len());
            assert!(text.ends_with(CUT) && text.starts_with("üü"));
        }
    }

    #[test]
    fn no_more_is_kept_of_what_was_checked_than_of_findings() {
        let mut kept = Review { checked: vec!["a".to_owned(); MOST_FINDINGS + 1], ..review() };
        cut_texts(&mut kept);
        assert_eq!(kept.checked.len(), MOST_FINDINGS);
    }

    #[test]
    fn what_is_not_too_long_stays() {
        let whole = Review { summary: "a".repeat(LONGEST_TEXT), ..review() };
        let mut kept = whole.clone();
        cut_texts(&mut kept);
        assert_eq!(kept, whole);
    }

    #[test]
    fn an_answer_with_an_unreadable_part_never_approves() {
        let line = Some("{\"type\":\"ass");
        let approval = Review { verdict: Verdict::Approved, ..review() };
        assert_eq!(unless_unreadable(approval.clone(), None), Ok(approval.clone()));
        let violation = unless_unreadable(approval, line).unwrap_err();
        assert!(violation.message.ends_with("cannot be read: {\"type\":\"ass"), "{}", violation.message);
        assert_eq!(unless_unreadable(review(), line), Ok(review()));
    }

    #[test]
    fn more_findings_than_anybody_means_are_a_violation() {
        let one = Finding::of(&ReviewerName::new("code"), "bug", Severity::Critical, "wrong");
        let most = Review { findings: vec![one; MOST_FINDINGS], ..review() };
        assert!(within_reason(most.clone()).is_ok());
        let mut more = most;
        more.findings.push(more.findings[0].clone());
        assert_eq!(within_reason(more).unwrap_err().code, ViolationCode::TooLarge);
    }
}
