//! Properties of every review prompt, for any task, diff and agent output.

use proptest::prelude::*;
use pulldown_cmark::{Event, Parser, Tag};
use signoff_core::contract::{self, Contract};
use signoff_core::machine::ReviewScope;
use signoff_core::prompt::{
    self, CHARACTER_CAP, Depth, DiffContext, RereviewContext, ReviewContext, SubjectContext, TaskPromptContext, Work,
};
use signoff_core::review::{Finding, ReviewerKind};
use strum::VariantArray as _;

use crate::prompt::fixture::{CONTRACTS, WORKTREE, code_finding, review, review_request, work};

/// The headings of a prompt as a Markdown parser finds them, with their level.
fn headings(prompt: &str) -> Vec<&str> {
    let events = Parser::new(prompt).into_offset_iter();
    let headings = events.filter(|(event, _)| matches!(event, Event::Start(Tag::Heading { .. })));
    headings.map(|(_, place)| prompt[place].trim_end()).collect()
}

/// Text that imitates prompt sections, fences and verdicts.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\n```\n".to_owned()),
        Just("\n~~~\n".to_owned()),
        Just("\n## What Counts\n".to_owned()),
        Just("{{nonce}}".to_owned()),
        Just("{{".to_owned()),
        Just("}}".to_owned()),
        Just("\n<!-- ".to_owned()),
        Just("REVIEW_COMPLETE".to_owned()),
        "`{1,5}",
        ".{0,8}",
        "\r?\n",
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

#[test]
fn the_nonce_and_the_contracts_instructions_are_in_every_review_prompt() {
    for &kind in ReviewerKind::VARIANTS {
        let request = review_request(kind);
        for depth in Depth::VARIANTS.iter().copied() {
            for (name, contract) in CONTRACTS {
                let prompt = prompt::review(&ReviewContext { depth, contract, ..review(&request) });
                assert!(prompt.contains("k7Qm2xVt"), "{name}");
                assert!(prompt.contains(contract::instructions(contract, &request).trim_end()), "{name}");
                assert!(!prompt.contains("{{"), "{name}");
                let complete = prompt.ends_with("\nWhen done, output: REVIEW_COMPLETE\n");
                assert_eq!(complete, matches!(contract, Contract::Tool | Contract::Auto), "{name}");
            }
        }
    }
}

#[test]
fn a_prompt_without_nonce_does_not_mention_one() {
    let request = contract::ReviewRequest { nonce: None, ..review_request(ReviewerKind::General) };
    assert!(!prompt::review(&review(&request)).contains("This review's nonce"));
}

#[test]
fn huge_texts_give_a_bounded_prompt() {
    let endless = "ü`\n".repeat(400_000);
    let finding = Finding {
        description: endless.clone(),
        requirement: Some(endless.clone()),
        suggestion: Some(endless.clone()),
        ..code_finding()
    };
    let many = vec![&finding; 50];
    let work = Work {
        task: TaskPromptContext { title: &endless, description: &endless, plan: Some(&endless), ..work().task },
        author_output: Some(&endless),
        diff: DiffContext { stat: &endless, diff: &endless, ..DiffContext::default() },
        ..work()
    };
    let rereview = RereviewContext {
        attempt: 1,
        scope: ReviewScope::Full,
        open: &many,
        claimed: &[],
        settled: &[],
        previous_follow_up: Some(&endless),
    };
    let request = review_request(ReviewerKind::General);
    let context = ReviewContext { subject: SubjectContext::Task(work), rereview: Some(rereview), ..review(&request) };
    assert!(prompt::review(&context).chars().count() < 7 * CHARACTER_CAP);
}

proptest! {
    #[test]
    fn quoted_text_does_not_change_the_prompt(
        plan in hostile(), output in hostile(), diff in hostile(), follow_up in hostile(), found in hostile(),
    ) {
        let request = review_request(ReviewerKind::Code);
        let with = |plan: &str, output: &str, diff: &str, follow_up: &str, found: &str| {
            let finding = Finding {
                kind: found.to_owned(),
                file: Some(found.to_owned()),
                suggestion: Some(found.to_owned()),
                description: found.to_owned(),
                ..code_finding()
            };
            let work = Work {
                task: TaskPromptContext { plan: Some(plan), ..work().task },
                author_output: Some(output),
                diff: DiffContext { base: None, stat: diff, diff: &format!("+{diff}"), left_out: &[] },
                ..work()
            };
            let rereview = RereviewContext {
                attempt: 1,
                scope: ReviewScope::Full,
                open: &[&finding],
                claimed: &[],
                settled: &[],
                previous_follow_up: Some(follow_up),
            };
            let subject = SubjectContext::Task(work);
            let prompt = prompt::review(&ReviewContext { subject, rereview: Some(rereview), ..review(&request) });
            headings(&prompt).join("\n")
        };
        prop_assert_eq!(with(&plan, &output, &diff, &follow_up, &found), with("a", "b", "c", "d", "e"));
    }

    #[test]
    fn a_task_cannot_hide_or_add_a_section(title in hostile(), description in hostile(), id in hostile()) {
        let request = review_request(ReviewerKind::General);
        let with = |id: &str, title: &str, description: &str| {
            let task = TaskPromptContext { id, title, description, ..TaskPromptContext::default() };
            let subject = SubjectContext::Task(Work { task, worktree: WORKTREE, ..work() });
            prompt::review(&ReviewContext { subject, ..review(&request) })
        };
        let sections = |prompt: &str| {
            let ours = |heading: &&str| heading.starts_with("# ") || heading.starts_with("## ");
            headings(prompt).into_iter().filter(ours).map(str::to_owned).collect::<Vec<_>>()
        };
        let prompt = with(&id, &title, &description);
        prop_assert_eq!(prompt.matches("This review's nonce is `k7Qm2xVt`.").count(), 1);
        prop_assert_eq!(sections(&prompt), sections(&with("a", "b", "c")));
    }
}
