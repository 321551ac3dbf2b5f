//! Stories of the slots preset.

use crate::machine::builders::reviewed;
use crate::machine::story::Story;

fn story() -> Story {
    Story::new(reviewed("slots"))
}

#[test]
fn pass_lands() {
    insta::assert_snapshot!(story().works().approves("general").lands().transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general approves                   → a3 land
    it lands                           → END approved, APPROVED
    ");
}

#[test]
fn a_contract_violation_fails_the_slot_and_nothing_is_fixed() {
    insta::assert_snapshot!(story().works().unreadable("general").transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general is not understood          → END failed (unclear_review), no verdict
    ");
}

#[test]
fn a_reviewer_that_fails_fails_the_slot() {
    insta::assert_snapshot!(story().works().times_out("general").transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general times out                  → END failed (reviewer_failed), CHANGES_REQUESTED
    ");
}

#[test]
fn a_fixer_that_fails_fails_the_slot() {
    insta::assert_snapshot!(story().works().objects("general", &["a.rs"]).writer_fails().transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general objects to a.rs            → a3 fix 1 (a.rs) [review]
    the agent fails                    → END failed (fixer_failed), CHANGES_REQUESTED
    ");
}

#[test]
fn an_implementation_that_fails_is_not_reviewed() {
    insta::assert_snapshot!(story().writer_fails().transcript(), @"
    started                            → a1 implement [implement]
    the agent fails                    → END failed (implementer_failed), no verdict
    ");
}

#[test]
fn drift_after_five_fixes_fails_the_slot() {
    let mut story = story().works();
    for _ in 0..5 {
        story = story.objects("general", &["a.rs"]).works();
    }
    insta::assert_snapshot!(story.objects("general", &["a.rs"]).transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general objects to a.rs            → a3 fix 1 (a.rs) [review]
    the agent completes its work       → a4 review 2 of c2 by general [review]
    general objects to a.rs            → a5 fix 2 (a.rs) [review]
    the agent completes its work       → a6 review 3 of c3 by general [review]
    general objects to a.rs            → a7 fix 3 (a.rs) [review]
    the agent completes its work       → a8 review 4 of c4 by general [review]
    general objects to a.rs            → a9 fix 4 (a.rs) [review]
    the agent completes its work       → a10 review 5 of c5 by general [review]
    general objects to a.rs            → a11 fix 5 (a.rs) [review]
    the agent completes its work       → a12 review 6 of c6 by general [review]
    general objects to a.rs            → END failed (cycles_exhausted), CHANGES_REQUESTED
    ");
}
