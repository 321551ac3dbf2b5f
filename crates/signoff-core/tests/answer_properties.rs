//! Properties of answers that consist of several blocks, tool calls or formats.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;
use signoff_core::contract::{AnswerBlocks, Contract, JoinedAnswer, ReviewAnswer, ReviewRequest, parse, parse_split};
use signoff_core::ids::{Nonce, ReviewerName};
use signoff_core::review::{FailThreshold, Review, ReviewerKind, Verdict, Violation};

const NONCE: &str = "n-7f3a";

fn review_request(require_nonce: bool) -> ReviewRequest {
    ReviewRequest {
        reviewer: ReviewerName::new("r"),
        kind: ReviewerKind::Code,
        nonce: Some(Nonce::new(NONCE)),
        require_nonce,
        fail_on: FailThreshold::Medium,
        commit: None,
        loop_id: None,
        task: None,
    }
}

fn read(contract: Contract, text: &str, request: &ReviewRequest) -> Result<Review, Violation> {
    parse(contract, ReviewAnswer { text: text.as_bytes(), tool: None }, request)
}

/// How strict a review is. Only an approval lets work pass.
fn strictness(review: &Result<Review, Violation>) -> u8 {
    match review.as_ref().map(|review| &review.verdict) {
        Ok(Verdict::Approved | Verdict::ApprovedWithMinor) => 0,
        Ok(Verdict::ChangesRequested) => 1,
        Ok(Verdict::NeedsDiscussion | Verdict::Inconclusive(_)) | Err(_) => 2,
    }
}

fn approves(review: &Result<Review, Violation>) -> bool {
    strictness(review) == 0
}

/// Approvals with a nonce, one in each format.
fn approvals(nonce: &str) -> Vec<(Contract, String)> {
    vec![
        (Contract::Markdown, format!("<!-- signoff:{nonce} -->\n**Verdict: APPROVED**")),
        (Contract::Json, format!(r#"{{"verdict":"pass","followUpPrompt":"ok","nonce":"{nonce}"}}"#)),
        (Contract::Xml, format!("<code-review nonce=\"{nonce}\"><verdict>APPROVED</verdict></code-review>")),
        (Contract::Prefix, format!("APPROVED: ok\n<!-- signoff:{nonce} -->")),
        (Contract::Severity, format!("<!-- signoff:{nonce} -->\nNO ISSUES")),
        (Contract::Severity, format!(r#"{{"issues":[],"nonce":"{nonce}"}}"#)),
    ]
}

/// Answers without a nonce that retract an approval.
fn refusals() -> Vec<String> {
    let issue = "<issues><issue severity='critical'><description>no</description></issue></issues>";
    [
        "**Verdict: CHANGES_REQUESTED**",
        "**Verdict: NEEDS_DISCUSSION**",
        "**Verdict: REJECTED**",
        "- [Critical] src/cart.py:6 it loses money",
        "[Critical] it loses money",
        "### Critical\n\n- src/cart.py:6 it loses money",
        "HIGH src/cart.py:6 it loses money",
        "ISSUES: it loses money",
        "Revised verdict: CHANGES_REQUESTED",
        "I reject this.",
        "<div>[Critical] src/cart.py:6 it loses money</div>",
        "- [ ] [Critical] src/cart.py:6 it loses money",
        "- [P0] src/cart.py:6 it loses money",
        r#"{"verdict":"drift","followUpPrompt":"no"}"#,
        r#"{"passed": false}"#,
        r#"[{"severity":"HIGH","message":"no","location":"a.rs:1"}]"#,
        &format!("<code-review><verdict>ISSUES</verdict>{issue}</code-review>"),
    ]
    .map(str::to_owned)
    .to_vec()
}

fn joined(blocks: &[&str]) -> JoinedAnswer {
    let mut all = AnswerBlocks::default();
    blocks.iter().for_each(|block| all.add(block));
    all.join()
}

fn read_split(contract: Contract, answer: &JoinedAnswer, request: &ReviewRequest) -> Result<Review, Violation> {
    let text = ReviewAnswer { text: answer.text.as_bytes(), tool: None };
    parse_split(contract, text, answer.alternatives.iter().map(String::as_bytes), request)
}

/// The parts of a text that is cut at the given offsets.
fn cut<'t>(text: &'t str, offsets: &[usize]) -> Vec<&'t str> {
    let mut offsets: Vec<usize> = offsets.iter().map(|offset| offset % (text.len() + 1)).collect();
    offsets.retain(|offset| text.is_char_boundary(*offset));
    offsets.sort_unstable();
    offsets.dedup();
    let starts = [0].into_iter().chain(offsets.clone());
    let ends = offsets.into_iter().chain([text.len()]);
    starts.zip(ends).map(|(start, end)| &text[start..end]).collect()
}

/// A pseudo-random number generator: the same seed gives the same numbers.
struct Dice(u64);

impl Dice {
    /// Uses the seed of the property tests, so that `scripts/soak` varies these numbers too.
    fn new() -> Self {
        match ProptestConfig::default().rng_seed {
            RngSeed::Fixed(seed) => Self(seed),
            RngSeed::Random => Self(20_261_118),
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }
}

#[test]
fn a_nonce_that_is_present_and_wrong_never_approves() {
    for (contract, answer) in approvals("a0b1c2d3") {
        for required in [false, true] {
            for reader in [contract, Contract::Auto] {
                let result = read(reader, &answer, &review_request(required));
                assert_eq!(result.unwrap_err().code.into_str(), "nonce_mismatch", "{reader:?}: {answer}");
            }
        }
    }
    for (contract, answer) in approvals(NONCE) {
        assert!(approves(&read(contract, &answer, &review_request(true))), "{contract:?}: {answer}");
    }
}

#[test]
fn a_wrong_nonce_beside_the_right_one_never_approves() {
    for (contract, right) in approvals(NONCE) {
        for (_, wrong) in approvals("a0b1c2d3") {
            for answer in [format!("{right}\n\n{wrong}\n"), format!("{wrong}\n\n{right}\n")] {
                for reader in [contract, Contract::Auto] {
                    assert!(!approves(&read(reader, &answer, &review_request(true))), "{reader:?}: {answer}");
                }
            }
        }
    }
    for (_, wrong) in approvals("a0b1c2d3") {
        let answer = ReviewAnswer { text: wrong.as_bytes(), tool: Some(br#"{"passed":true}"#) };
        let refused = parse(Contract::Tool, answer, &review_request(true)).map(|review| review.verdict);
        assert_eq!(refused.map_err(|violation| violation.code.into_str()), Err("nonce_mismatch"), "{wrong}");
    }
}

/// Beside an approval in plain text, a fenced refusal is an example. Beside a fenced approval, or with the
/// nonce, it is an answer.
#[test]
fn a_fenced_refusal_retracts_a_fenced_approval() {
    let fenced = |answer: &str| format!("```\n{answer}\n```\n");
    let issue = "<issues><issue severity='critical'><description>no</description></issue></issues>";
    let refusals = [
        r#"{"verdict":"drift","followUpPrompt":"no"}"#.to_owned(),
        format!("<code-review><verdict>ISSUES</verdict>{issue}</code-review>"),
    ];
    let formats = [Contract::Json, Contract::Xml];
    for (contract, approval) in approvals(NONCE).into_iter().filter(|(one, _)| formats.contains(one)) {
        assert!(approves(&read(contract, &fenced(&approval), &review_request(true))), "{approval}");
        let bound = format!(r#"{{"verdict":"drift","followUpPrompt":"no","nonce":"{NONCE}"}}"#);
        let answer = format!("{approval}\n\n{}", fenced(&bound));
        assert!(!approves(&read(contract, &answer, &review_request(true))), "{answer}");
        for refusal in &refusals {
            let answer = format!("{}\nCorrection:\n\n{}", fenced(&approval), fenced(refusal));
            for reader in [contract, Contract::Auto] {
                assert!(!approves(&read(reader, &answer, &review_request(true))), "{reader:?}: {answer}");
            }
        }
    }
}

#[test]
fn an_answer_without_the_nonce_counts_unless_it_is_required() {
    for (contract, answer) in approvals(NONCE) {
        let without = answer.replace(&format!("<!-- signoff:{NONCE} -->"), "");
        let without = without.replace(&format!(r#","nonce":"{NONCE}""#), "");
        let without = without.replace(&format!(" nonce=\"{NONCE}\""), "");
        assert!(approves(&read(contract, &without, &review_request(false))), "{contract:?}: {without}");
        let refused = read(contract, &without, &review_request(true)).unwrap_err();
        assert_eq!(refused.code.into_str(), "nonce_missing", "{contract:?}: {without}");
    }
}

#[test]
fn a_refusal_in_any_format_retracts_an_approval_without_a_nonce() {
    for (contract, approval) in approvals(NONCE) {
        for refusal in refusals() {
            for required in [false, true] {
                let after = joined(&[&approval, &refusal]);
                assert!(
                    !approves(&read_split(contract, &after, &review_request(required))),
                    "{contract:?}:\n{}",
                    after.text
                );
                let before = joined(&[&refusal, &approval]);
                assert!(
                    !approves(&read_split(contract, &before, &review_request(required))),
                    "{contract:?}:\n{}",
                    before.text
                );
                let auto = read_split(Contract::Auto, &after, &review_request(required));
                assert!(!approves(&auto), "auto:\n{}", after.text);
            }
        }
    }
}

#[test]
fn quoted_refusals_and_commentary_do_not_retract_an_approval() {
    let harmless = [
        "I have read every file.",
        "The old test said `**Verdict: CHANGES_REQUESTED**`.",
        "\n> **Verdict: CHANGES_REQUESTED**\n\n",
        "\n```\n**Verdict: CHANGES_REQUESTED**\n```",
        "\n```json\n{\"verdict\":\"drift\",\"followUpPrompt\":\"no\"}\n```",
        "- [Minor] src/cart.py:6 a longer name would help",
        "I say it again:\n\n**Verdict: APPROVED**\n",
    ];
    for text in harmless {
        for (contract, approval) in approvals(NONCE) {
            // Without a separator, capitals of two blocks can form one word.
            let approval = if approval.ends_with("ISSUES") { approval + "\n" } else { approval };
            let after = joined(&[&approval, text]);
            let result = read_split(contract, &after, &review_request(true));
            assert!(approves(&result), "{contract:?} {result:?}:\n{}", after.text);
            if contract != Contract::Prefix && contract != Contract::Severity {
                let before = joined(&[text, &approval]);
                let result = read_split(contract, &before, &review_request(true));
                assert!(approves(&result), "{contract:?} {result:?}:\n{}", before.text);
            }
        }
    }
}

#[test]
fn a_later_report_or_text_retracts_a_report() {
    let passed: &[u8] = br#"{"passed":true}"#;
    for contract in [Contract::Tool, Contract::Auto] {
        let alone = ReviewAnswer { text: b"REVIEW_COMPLETE\n", tool: Some(passed) };
        assert!(approves(&parse(contract, alone, &review_request(true))));
        for refusal in refusals() {
            let answer = ReviewAnswer { text: refusal.as_bytes(), tool: Some(passed) };
            assert!(!approves(&parse(contract, answer, &review_request(true))), "{contract:?}: {refusal}");
        }
        let answer = ReviewAnswer { text: b"I retract my approval, this loses money.", tool: Some(passed) };
        assert!(!approves(&parse(contract, answer, &review_request(true))), "{contract:?}");
        let retracted: &[u8] = b"{\"passed\":true}\n{\"passed\":false,\"issues\":[{\"description\":\"no\"}]}";
        let answer = ReviewAnswer { text: b"**Verdict: APPROVED**", tool: Some(retracted) };
        let review = parse(contract, answer, &review_request(true)).unwrap();
        assert_eq!(review.verdict, Verdict::ChangesRequested);
        assert_eq!(review.findings[0].description, "no");
    }
}

/// The valid answers of the corpus: those in `seed` and `untidy`.
fn recorded() -> Vec<(Contract, String)> {
    let corpus = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/contracts"));
    let mut paths: Vec<_> = ["seed", "untidy", "hostile"]
        .iter()
        .flat_map(|directory| fs::read_dir(corpus.join(directory)).expect("a readable corpus"))
        .map(|entry| entry.expect("a readable corpus").path())
        .filter(|path| path.extension().is_some_and(|end| end == "txt"))
        .collect();
    paths.sort();
    let case = |path: &std::path::PathBuf| {
        let setting: serde_json::Value =
            serde_json::from_slice(&fs::read(path.with_extension("json")).expect("a readable corpus"))
                .expect("a readable corpus");
        let contract = setting["contract"].as_str()?.parse().ok()?;
        let text = fs::read_to_string(path).ok()?;
        (contract != Contract::Tool).then_some((contract, text))
    };
    paths.iter().filter_map(case).collect()
}

/// The chunks of one block are joined without a boundary.
#[test]
fn an_answer_in_chunks_is_read_as_one_answer() {
    let mut dice = Dice::new();
    for (_, text) in recorded() {
        let offsets: Vec<usize> = (0..8).map(|_| dice.below(text.len() + 1)).collect();
        let mut blocks = AnswerBlocks::default();
        cut(&text, &offsets).iter().for_each(|chunk| blocks.push(chunk));
        assert_eq!(blocks.join(), JoinedAnswer { text, ..JoinedAnswer::default() });
    }
}

/// The number of tests that share the recorded answers, so that they run in parallel.
const SHARES: usize = 4;

/// Splits every fourth recorded answer, from this one on.
fn no_split_of_a_share_makes_it_less_strict(share: usize) {
    let mut dice = Dice::new();
    for (contract, text) in recorded().into_iter().skip(share).step_by(SHARES) {
        for required in [false, true] {
            let whole = read(contract, &text, &review_request(required));
            for round in 0..24 {
                let offsets: Vec<usize> = (0..1 + round % 4).map(|_| dice.below(text.len() + 1)).collect();
                let blocks = cut(&text, &offsets);
                let split = read_split(contract, &joined(&blocks), &review_request(required));
                assert!(approves(&whole) || !approves(&split), "{contract:?} {whole:?}\nbecame looser in {blocks:#?}");
            }
        }
    }
}

#[test]
fn no_split_of_a_recorded_answer_makes_it_less_strict_1() {
    no_split_of_a_share_makes_it_less_strict(0);
}

#[test]
fn no_split_of_a_recorded_answer_makes_it_less_strict_2() {
    no_split_of_a_share_makes_it_less_strict(1);
}

#[test]
fn no_split_of_a_recorded_answer_makes_it_less_strict_3() {
    no_split_of_a_share_makes_it_less_strict(2);
}

#[test]
fn no_split_of_a_recorded_answer_makes_it_less_strict_4() {
    no_split_of_a_share_makes_it_less_strict(3);
}

/// A split at the end of a line does not change the review.
#[test]
fn a_split_between_lines_gives_the_same_review() {
    for (contract, text) in recorded() {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let whole = read(contract, &text, &review_request(false));
        let split = read_split(contract, &joined(&lines), &review_request(false));
        assert!(strictness(&split) >= strictness(&whole), "{contract:?}: {text}");
        assert_eq!(joined(&lines).text, text);
    }
}

/// Parts of answers, combined in any order.
fn parts() -> impl Strategy<Value = String> {
    let mut words: Vec<String> = approvals(NONCE).into_iter().map(|(_, text)| text).collect();
    words.extend(refusals());
    words.extend(
        ["I looked.", "> quoted", "```", "~~~", "`", "~~", "<!--", "-->", "    ", "- ", "+", "@@ -1,2 +1,2 @@"]
            .map(str::to_owned),
    );
    words.extend(["> **Verdict: APPROVED**", "`**Verdict: APPROVED**`", "**Verdict: APPROVED**"].map(str::to_owned));
    let gap = select(vec!["\n", "\n\n", " "]);
    prop::collection::vec((select(words), gap), 1..5)
        .prop_map(|parts| parts.into_iter().map(|(word, gap)| word + gap).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_split_makes_an_answer_less_strict(text in parts(), offsets in prop::collection::vec(any::<usize>(), 1..4), required: bool) {
        let blocks = cut(&text, &offsets);
        let answer = joined(&blocks);
        for contract in [Contract::Markdown, Contract::Json, Contract::Xml, Contract::Prefix, Contract::Severity, Contract::Auto] {
            let whole = read(contract, &text, &review_request(required));
            let split = read_split(contract, &answer, &review_request(required));
            prop_assert!(approves(&whole) || !approves(&split), "{:?} {:?}\n{:#?}\n{}", contract, whole, blocks, answer.text);
        }
    }

    /// The strictest of all reports and texts counts, in any order and number.
    #[test]
    fn the_strictest_of_reports_and_text_counts(
        passed in prop::collection::vec(any::<bool>(), 1..4),
        text in select(vec!["", "Done.", "**Verdict: APPROVED**", "**Verdict: CHANGES_REQUESTED**", "[Critical] a.rs:1 no"]),
    ) {
        let calls: Vec<String> = passed.iter().map(|passed| format!(r#"{{"passed":{passed}}}"#)).collect();
        let calls = calls.join("\n");
        let refuses = text.contains("CHANGES") || text.contains("Critical");
        for contract in [Contract::Tool, Contract::Auto] {
            let review = parse(contract, ReviewAnswer { text: text.as_bytes(), tool: Some(calls.as_bytes()) }, &review_request(true));
            let single = passed == [true] && !refuses;
            prop_assert_eq!(approves(&review), single, "{:?} {} {}", review, calls, text);
            if passed.contains(&false) {
                prop_assert_eq!(review.map(|review| review.verdict), Ok(Verdict::ChangesRequested));
            }
        }
    }
}
