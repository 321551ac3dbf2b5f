use signoff_core::contract::{Ask, Contract, instructions};

use super::told::{ask, looped, read, spec, strict};

#[test]
fn the_words_that_ask() {
    insta::assert_snapshot!("markdown", instructions(Contract::Markdown, &ask(Contract::Markdown)));
    insta::assert_snapshot!("json", instructions(Contract::Json, &ask(Contract::Json)));
    insta::assert_snapshot!("xml_spec", instructions(Contract::Xml, &spec(Contract::Xml)));
    insta::assert_snapshot!("xml_code", instructions(Contract::Xml, &ask(Contract::Xml)));
    insta::assert_snapshot!("prefix_spec", instructions(Contract::Prefix, &spec(Contract::Prefix)));
    insta::assert_snapshot!("prefix_code", instructions(Contract::Prefix, &ask(Contract::Prefix)));
    insta::assert_snapshot!("severity", instructions(Contract::Severity, &ask(Contract::Severity)));
    insta::assert_snapshot!("tool_loop", instructions(Contract::Tool, &looped(Contract::Tool)));
    insta::assert_snapshot!("tool_run", instructions(Contract::Tool, &ask(Contract::Tool)));
    insta::assert_snapshot!("auto", instructions(Contract::Auto, &looped(Contract::Auto)));
}

#[test]
fn without_a_nonce_none_is_asked_for() {
    for contract in Contract::ALL {
        let words = instructions(contract, &Ask { nonce: None, ..looped(contract) });
        assert!(!words.contains("nonce") && !words.contains("signoff:"), "{words}");
        assert!(!words.contains("{nonce"), "{words}");
    }
}

#[test]
fn echoing_the_instructions_is_no_approval() {
    for contract in Contract::ALL {
        for asked in [ask(contract), spec(contract), strict(contract), looped(contract)] {
            let words = instructions(contract, &asked);
            let fence_less: String = words
                .lines()
                .filter(|line| !line.starts_with("```"))
                .map(|line| format!("{line}\n"))
                .collect();
            for reader in Contract::ALL {
                for echo in [&words, &fence_less] {
                    let approved = read(reader, echo, &asked).is_ok_and(|review| review.verdict.approves());
                    assert!(!approved, "{reader:?} reads an approval in {echo}");
                }
            }
        }
    }
}
