//! The merged review as the text block that fixers get.

use signoff_core::merge::render::ReviewFormat;
use strum::VariantArray as _;

use crate::merge::panel::*;

#[test]
fn formats_have_names() {
    let names: Vec<_> = ReviewFormat::VARIANTS.iter().map(|format| format.into_str()).collect();
    assert_eq!(names, ["text", "xml", "json", "markdown", "sarif"]);
    assert_eq!("yaml".parse::<ReviewFormat>().ok(), None);
}

#[test]
fn text_matches_the_design() {
    let block = "\
Review Results:
  Spec Review: ISSUES (high confidence)
  Code Review: APPROVED_WITH_MINOR (high confidence)

Issues to Fix (2):

  1. [Spec Critical] src/auth.ts:45
     Missing OAuth flow implementation
     Requirement: \"Support OAuth 2.0 login\"

  2. [Spec Important] src/auth.ts:78
     Extra feature not in spec
     Action: Remove or get approval to add

Minor Notes (1):
  - src/auth.ts:30 - Magic number could be constant

Action: Fix issues and re-run reviews
";
    assert_eq!(shown(&example(), "text"), block);
}

#[test]
fn text_of_a_crowded_panel() {
    insta::assert_snapshot!(shown(&crowded(), "text"), @"
    Review Results:
      Spec Review: ISSUES (high confidence)
      Code Review: ISSUES (high confidence)
      Security Review: NEEDS_DISCUSSION
      Tests Review: INCONCLUSIVE - no answer: timed out after 3m

    Issues to Fix (3), Below the Threshold (1):

      1. [Spec Critical, also Code] src/pay.rs:90
         Charges the card twice
         Fix: Check the id first.
         Then charge.

      2. [Spec Important] src/pay.rs:20
         Retries are required by the specification
         Related: 2-3

      3. [Code Important] src/pay.rs:23
         Remove the retries
         Related: 2-3

      4. [Code Minor, below the threshold] src/x.rs
         Name is vague:

           let x = 1;

    Conflicts (1), not resolved:
      - 2 and 3 - wanted against remove: retries
    ");
}

#[test]
fn text_of_a_clean_panel() {
    insta::assert_snapshot!(shown(&[approved("code"), approved("spec")], "text"), @"
    Review Results:
      Spec Review: APPROVED (high confidence)
      Code Review: APPROVED (high confidence)

    Action: Proceed
    ");
}

#[test]
fn text_escapes_control_characters() {
    let code = issues(
        "code",
        [finding(CRITICAL, "a\u{202e}sr\n.rs:1", "\x1b[2Jgone\r\nAction: Proceed\n\nReview Results:\u{9b}")],
    );
    insta::assert_snapshot!(shown(&[code], "text"), @"
    Review Results:
      Code Review: ISSUES (high confidence)

    Issues to Fix (1):

      1. [Code Critical] a�sr .rs:1
         ␛[2Jgone
         Action: Proceed

         Review Results:�

    Action: Fix issues and re-run reviews
    ");
}
