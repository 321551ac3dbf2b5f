//! The instructions that a prompt contains for each contract.

use signoff_core::contract::{Contract, ReviewRequest, instructions};
use strum::VariantArray as _;

use super::render::{looped, read, review_request, spec, strict};

#[test]
fn instructions_of_each_contract() {
    insta::assert_snapshot!("markdown", instructions(Contract::Markdown, &review_request(Contract::Markdown)));
    insta::assert_snapshot!("json", instructions(Contract::Json, &review_request(Contract::Json)));
    insta::assert_snapshot!("xml_spec", instructions(Contract::Xml, &spec(Contract::Xml)));
    insta::assert_snapshot!("xml_code", instructions(Contract::Xml, &review_request(Contract::Xml)));
    insta::assert_snapshot!("prefix_spec", instructions(Contract::Prefix, &spec(Contract::Prefix)));
    insta::assert_snapshot!("prefix_code", instructions(Contract::Prefix, &review_request(Contract::Prefix)));
    insta::assert_snapshot!("severity", instructions(Contract::Severity, &review_request(Contract::Severity)));
    insta::assert_snapshot!("tool_loop", instructions(Contract::Tool, &looped(Contract::Tool)));
    insta::assert_snapshot!("tool_run", instructions(Contract::Tool, &review_request(Contract::Tool)));
    insta::assert_snapshot!("auto", instructions(Contract::Auto, &looped(Contract::Auto)));
}

#[test]
fn instructions_without_a_nonce_do_not_mention_one() {
    for &contract in Contract::VARIANTS {
        let words = instructions(contract, &ReviewRequest { nonce: None, ..looped(contract) });
        assert!(!words.contains("nonce") && !words.contains("signoff:"), "{words}");
        assert!(!words.contains("{nonce"), "{words}");
    }
}

#[test]
fn echoing_the_instructions_does_not_approve() {
    for &contract in Contract::VARIANTS {
        for request in [review_request(contract), spec(contract), strict(contract), looped(contract)] {
            let words = instructions(contract, &request);
            let fence_less: String =
                words.lines().filter(|line| !line.starts_with("```")).map(|line| format!("{line}\n")).collect();
            for &reader in Contract::VARIANTS {
                for echo in [&words, &fence_less] {
                    let approved = read(reader, echo, &request).is_ok_and(|review| review.verdict.approves());
                    assert!(!approved, "{reader:?} reads an approval in {echo}");
                }
            }
        }
    }
}
