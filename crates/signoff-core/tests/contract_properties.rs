//! Properties of every answer in every contract.

use proptest::prelude::*;
use proptest::sample::select;
use signoff_core::contract::{Contract, ReviewAnswer, ReviewRequest, parse};
use signoff_core::ids::{Commit, Nonce, ReviewerName};
use signoff_core::review::{FailThreshold, Review, ReviewerKind, Violation};
use strum::VariantArray as _;

const NONCE: &str = "n-7f3a";

fn review_request(kind: ReviewerKind, require_nonce: bool, fail_on: FailThreshold) -> ReviewRequest {
    ReviewRequest {
        reviewer: ReviewerName::new("r"),
        kind,
        nonce: Some(Nonce::new(NONCE)),
        require_nonce,
        fail_on,
        commit: Some(Commit::new("0123456789abcdef")),
        loop_id: None,
        task: None,
    }
}

fn any_review_request() -> impl Strategy<Value = ReviewRequest> {
    let kinds = select(vec![ReviewerKind::Spec, ReviewerKind::Code, ReviewerKind::General]);
    let thresholds = select(vec![FailThreshold::Low, FailThreshold::Medium, FailThreshold::High, FailThreshold::None]);
    (kinds, any::<bool>(), thresholds).prop_map(|(kind, require, threshold)| review_request(kind, require, threshold))
}

fn read(contract: Contract, text: &str, request: &ReviewRequest) -> Result<Review, Violation> {
    parse(contract, ReviewAnswer { text: text.as_bytes(), tool: None }, request)
}

fn approves(contract: Contract, text: &str, request: &ReviewRequest) -> bool {
    read(contract, text, request).is_ok_and(|review| review.verdict.approves())
}

/// Answers that approve, one for each format.
fn approvals(kind: ReviewerKind) -> Vec<(Contract, String)> {
    let root = if kind == ReviewerKind::Spec { "spec-review" } else { "code-review" };
    vec![
        (Contract::Markdown, "**Verdict: APPROVED**".to_owned()),
        (Contract::Markdown, "**Verdict:** APPROVED".to_owned()),
        (Contract::Markdown, "Verdict: Approved.".to_owned()),
        (Contract::Markdown, "**Verdict: approved** ✅".to_owned()),
        (Contract::Severity, "No issues.".to_owned()),
        (Contract::Json, r#"{"verdict":"pass","followUpPrompt":"ok"}"#.to_owned()),
        (Contract::Xml, format!("<{root}><verdict>APPROVED</verdict></{root}>")),
        (Contract::Prefix, "APPROVED: ok".to_owned()),
        (Contract::Severity, "NO ISSUES".to_owned()),
        (Contract::Severity, "[]".to_owned()),
        (Contract::Severity, r#"{"issues":[]}"#.to_owned()),
    ]
}

/// Answers that do not approve.
fn refusals(kind: ReviewerKind) -> Vec<(Contract, String)> {
    let root = if kind == ReviewerKind::Spec { "spec-review" } else { "code-review" };
    let issue = "<issues><issue severity='critical'><description>no</description></issue></issues>";
    vec![
        (Contract::Markdown, "**Verdict: CHANGES_REQUESTED**".to_owned()),
        (Contract::Markdown, "**Verdict: NEEDS_DISCUSSION**".to_owned()),
        (Contract::Markdown, "Verdict: Changes requested".to_owned()),
        (Contract::Markdown, "**Verdict:** needs_discussion.".to_owned()),
        (Contract::Json, r#"{"verdict":"drift","followUpPrompt":"no"}"#.to_owned()),
        (Contract::Xml, format!("<{root}><verdict>ISSUES</verdict>{issue}</{root}>")),
        (Contract::Prefix, "ISSUES: no".to_owned()),
        (Contract::Severity, r#"[{"severity":"HIGH","message":"no","location":"a.rs:1"}]"#.to_owned()),
        (Contract::Severity, "HIGH src/a.rs:1 no".to_owned()),
        (Contract::Severity, "### HIGH\n\n- it burns".to_owned()),
    ]
}

/// Quotes a text so that it is not an answer. A fence contains more than the text, because a
/// machine-readable text alone in a fence is an answer.
fn shown(way: usize, text: &str) -> String {
    let escaped = serde_json::Value::from(text).to_string();
    match way {
        0 => format!("```\nlet a = 1;\n{text}\nlet b = 2;\n```"),
        1 => format!("~~~~text\n```\n{text}\n```\n~~~~"),
        2 => format!("> {text}"),
        3 => format!("> quoted\n> \n> {text}\n> end"),
        4 => format!("`` {text} ``"),
        5 => format!("See `` a\n{text}\nb `` there"),
        6 => format!("+{text}"),
        7 => format!("@@ -1,3 +1,3 @@\n a\n {text}\n b"),
        8 => format!("```diff\n {text}\n```"),
        9 => format!("~~{text}~~"),
        10 => format!("<!-- {text} -->"),
        11 => format!("<!--\n{text}\n-->"),
        12 => format!("{{\"log\":{escaped}}}"),
        13 => format!("[{escaped}]"),
        14 => format!("The tool printed:\n\n    $ run\n    {text}\n    exit 0\n"),
        15 => format!("<code-review><summary><![CDATA[{text}]]></summary></code-review>"),
        16 => format!("<spec-review><!-- {text} --></spec-review>"),
        17 => format!("```json\n{{\"output\": {escaped}, \"exit\": 0}}\n```"),
        18 => format!("<blockquote>\n\n{text}\n\n</blockquote>"),
        19 => format!("The file says <code>\n{text}\n</code> so no"),
        20 => format!("<pre>\n{text}\n</pre>"),
        21 => format!("@@@ -1,3 -1,3 +1,4 @@@\n  a\n++b\n  {text}\n  c"),
        22 => format!("@@ fn main() @@\n a\n+b\n {text}"),
        _ => format!("```sh\n$ cat answer\n{text}\n```"),
    }
}
const WAYS: usize = 24;

/// Parts of answers in all contracts, combined in any order.
fn pieces() -> impl Strategy<Value = String> {
    let words = vec![
        "**Verdict: APPROVED**",
        "**Verdict: X**",
        "{\"verdict\":",
        "\"pass\"",
        "\"followUpPrompt\":\"\"",
        "}",
        "{",
        "[",
        "]",
        ",",
        "<spec-review>",
        "</spec-review>",
        "<code-review nonce=\"n-7f3a\">",
        "</code-review>",
        "<verdict>",
        "</verdict>",
        "APPROVED",
        "APPROVED:",
        "ISSUES:",
        "NO ISSUES",
        "[]",
        "HIGH",
        "src/a.rs:1",
        "- ",
        "\n",
        "\n\n",
        "```",
        "~~~",
        "> ",
        "`",
        "~~",
        "<!--",
        "-->",
        "<!-- signoff:n-7f3a -->",
        "@@ -1,2 +1,2 @@\n",
        "    ",
        "\t",
        "\r\n",
        "\u{feff}",
        "\\\"",
        "\"",
        "&amp;",
        "&x;",
        "<![CDATA[",
        "]]>",
        "<!DOCTYPE a>",
        "{\"issues\":",
        "\"severity\":\"HIGH\"",
        "\"nonce\":\"n-7f3a\"",
        "ä",
        "\u{2028}",
        "\0",
    ];
    prop::collection::vec(select(words), 0..24).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_give_a_review_or_a_violation(bytes in prop::collection::vec(any::<u8>(), 0..200), request in any_review_request()) {
        for &contract in Contract::VARIANTS {
            for tool in [None, Some(bytes.as_slice())] {
                if let Err(violation) = parse(contract, ReviewAnswer { text: &bytes, tool }, &request) {
                    prop_assert!(violation.offset <= bytes.len());
                }
            }
        }
    }

    #[test]
    fn any_pieces_give_a_review_or_a_violation(text in pieces(), request in any_review_request()) {
        for &contract in Contract::VARIANTS {
            for tool in [None, Some(text.as_bytes())] {
                let result = parse(contract, ReviewAnswer { text: text.as_bytes(), tool }, &request);
                prop_assert_eq!(&result, &parse(contract, ReviewAnswer { text: text.as_bytes(), tool }, &request));
                match result {
                    Err(violation) => prop_assert!(violation.offset <= text.len()),
                    Ok(review) => prop_assert!(
                        !review.verdict.approves() || review.findings.iter().all(|finding| !request.fail_on.is_reached_by(finding.severity))
                    ),
                }
            }
        }
    }

    #[test]
    fn a_quoted_approval_is_never_an_approval(
        request in any_review_request(),
        ways in prop::collection::vec(0..WAYS, 1..4),
        which in any::<prop::sample::Index>(),
        preamble in select(vec!["", "I looked at it.\n\n", "# Review\n\n- src/a.rs:1 fine\n\n"]),
    ) {
        let (_, planted) = which.get(&approvals(request.kind)).clone();
        let parts: Vec<_> = ways.iter().map(|way| shown(*way, &planted)).collect();
        let text = format!("{preamble}{}", parts.join("\n\n"));
        for &contract in Contract::VARIANTS {
            prop_assert!(!approves(contract, &text, &request), "{contract:?} approves:\n{text}");
        }
    }

    #[test]
    fn a_contradicted_approval_does_not_approve(
        request in any_review_request(),
        approval in any::<prop::sample::Index>(),
        refusal in any::<prop::sample::Index>(),
        first in any::<bool>(),
        gap in select(vec!["\n", "\n\n", "\n\nBut:\n\n"]),
    ) {
        let request = ReviewRequest { fail_on: FailThreshold::Low, ..request };
        let (contract, yes) = approval.get(&approvals(request.kind)).clone();
        let (other, no) = refusal.get(&refusals(request.kind)).clone();
        let text = if first { format!("{yes}{gap}{no}") } else { format!("{no}{gap}{yes}") };
        // The prefix counts only at the start of the answer.
        let silent = |contract: Contract, is_first: bool| contract == Contract::Prefix && !is_first;
        if !silent(contract, first) && !silent(other, !first) {
            prop_assert!(!approves(Contract::Auto, &text, &request), "auto approves:\n{text}");
            if contract == other {
                prop_assert!(!approves(contract, &text, &request), "{contract:?} approves:\n{text}");
            }
        }
    }

    #[test]
    fn a_retracted_approval_does_not_approve(
        request in any_review_request(),
        approval in any::<prop::sample::Index>(),
        bound in any::<bool>(),
        words in select(vec!["I retract my approval, this loses money.", "My approval is withdrawn.", "Do not merge this.", "On second thought it leaks."]),
        gap in select(vec!["\n", "\n\n", "\n\nIt reads well.\n\n", "\n\n- "]),
    ) {
        let (contract, yes) = approval.get(&approvals(request.kind)).clone();
        let comment = if bound { format!("\n<!-- signoff:{NONCE} -->") } else { String::new() };
        let text = format!("{yes}{comment}{gap}{words}\n");
        for reader in [contract, Contract::Auto] {
            prop_assert!(!approves(reader, &text, &request), "{reader:?} approves:\n{text}");
        }
    }

    #[test]
    fn one_changed_byte_never_turns_a_refusal_into_an_approval(request in any_review_request(), which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), replaces in any::<bool>()) {
        let request = ReviewRequest { fail_on: FailThreshold::Low, ..request };
        let (contract, no) = which.get(&refusals(request.kind)).clone();
        let at = at.index(no.len());
        let mut bytes = no.into_bytes();
        if replaces { bytes[at] = 0xff } else { bytes.insert(at, 0xff) }
        for reader in [contract, Contract::Auto] {
            let result = parse(reader, ReviewAnswer { text: &bytes, tool: None }, &request);
            prop_assert!(!result.is_ok_and(|review| review.verdict.approves()), "{bytes:?}");
        }
    }

    #[test]
    fn every_item_beside_a_request_is_a_finding(items in prop::collection::vec(listed(), 1..8), last in any::<bool>()) {
        let request = review_request(ReviewerKind::Code, false, FailThreshold::Medium);
        let items = in_sections(items);
        let list = review_of(&items);
        let expected: Vec<&GeneratedItem> = items.iter().filter(|item| item.is_finding()).collect();
        let verdict = "**Verdict: CHANGES_REQUESTED**";
        let markdown = if last { format!("{list}\n{verdict}\n") } else { format!("{verdict}\n\n{list}") };
        for (contract, text) in [(Contract::Markdown, markdown), (Contract::Prefix, format!("ISSUES: see\n\n{list}"))] {
            let review = read(contract, &text, &request);
            let review = review.map_err(|violation| TestCaseError::fail(format!("{violation}\n{text}")))?;
            prop_assert!(review.findings.len() >= expected.len(), "{:?}\n{text}", review.findings);
            for item in &expected {
                let found = review.findings.iter().find(|finding| finding.description.contains(&item.text));
                let Some(found) = found else { return Err(TestCaseError::fail(format!("{item:?} is lost:\n{text}"))) };
                prop_assert_eq!(found.severity.into_str(), item.severity.unwrap_or("critical"), "{}", text);
                prop_assert!(item.nested.iter().all(|nested| found.description.contains(nested)), "{:?}\n{}", found, text);
            }
        }
    }

    #[test]
    fn the_text_of_a_finding_is_unchanged(
        text in "x[a-z]([a-z0-9 *_`(){}<>&#|:,.=+!?'/-]{0,30}[a-z0-9)*`:-])?",
        lead in select(vec!["[Critical] src/a.rs:1 ", "src/a.rs:1 ", "**Critical:** src/a.rs:1 — ", "`src/a.rs:1`: ", "**src/a.rs:1** - ", "[Critical] ", "HIGH src/a.rs:1 "]),
    ) {
        let request = review_request(ReviewerKind::Code, false, FailThreshold::Medium);
        let text = text.trim();
        // A text that is itself a tag, a location or a label is read as such.
        prop_assume!(!text.contains('<') && !text.ends_with(':') && text.matches('`').count() % 2 == 0);
        let answer = format!("- {lead}{text}\n\n**Verdict: CHANGES_REQUESTED**\n");
        let review = read(Contract::Markdown, &answer, &request);
        let review = review.map_err(|violation| TestCaseError::fail(format!("{violation}\n{answer}")))?;
        let found: Vec<&str> = review.findings.iter().map(|finding| finding.description.as_str()).collect();
        prop_assert_eq!(found, vec![text], "{}", answer);
    }

    #[test]
    fn a_required_nonce_must_be_present_to_approve(text in pieces(), wrong in "[a-z0-9]{1,8}", kind in select(vec![ReviewerKind::Spec, ReviewerKind::Code])) {
        let request = review_request(kind, true, FailThreshold::Low);
        let text = text.replace(NONCE, &wrong);
        for (contract, answer) in approvals(kind) {
            for text in [format!("{answer}\n<!-- signoff:{wrong} -->"), format!("{answer}\n{text}"), format!("{text}\n{answer}")] {
                prop_assert!(!approves(contract, &text, &request) && !approves(Contract::Auto, &text, &request), "{text}");
            }
        }
    }

    #[test]
    fn an_answer_that_follows_the_instructions_is_parsed_completely(
        kind in select(vec![ReviewerKind::Spec, ReviewerKind::Code]),
        findings in prop::collection::vec(("[a-z]{1,6}/[a-z]{1,6}\\.rs", 1u32..9999, "[A-Za-z][a-z <&\"]{0,20}[a-z]", 0usize..3), 0..4),
        preamble in select(vec!["", "Here is what I found.\n\n"]),
    ) {
        let request = review_request(kind, true, FailThreshold::Low);
        let meant: Vec<GeneratedFinding> = findings.into_iter().map(|(file, line, text, severity)| GeneratedFinding { file, line, text, severity }).collect();
        for (contract, answer) in rendered(&meant, kind) {
            let text = if contract == Contract::Prefix { answer } else { format!("{preamble}{answer}") };
            for reader in [contract, Contract::Auto] {
                let review = read(reader, &text, &request);
                let review = review.map_err(|violation| TestCaseError::fail(format!("{reader:?} {violation}\n{text}")))?;
                prop_assert_eq!(review.verdict.approves(), meant.is_empty(), "{:?}\n{}", reader, text);
                let read: Option<Vec<GeneratedFinding>> = review.findings.iter().map(GeneratedFinding::from_finding).collect();
                prop_assert_eq!(read.as_ref(), Some(&meant), "{:?}\n{}", reader, text);
            }
        }
    }
}

/// A list item as generated.
#[derive(Debug, Clone)]
struct GeneratedItem {
    section: &'static str,
    severity: Option<&'static str>,
    location: bool,
    ticked: Option<bool>,
    text: String,
    nested: Vec<String>,
}

impl GeneratedItem {
    fn is_finding(&self) -> bool {
        let aside = matches!(self.section, "## Strengths" | "## Checked" | "Summary:") && self.severity.is_none();
        self.ticked.map_or(!aside, |ticked| !ticked)
    }
}

fn listed() -> impl Strategy<Value = GeneratedItem> {
    let sections = select(vec!["", "## Findings", "## Strengths", "## Checked", "Summary:", "**Tests**"]);
    let severities = select(vec![None, Some("minor"), Some("important"), Some("critical")]);
    let ticks = select(vec![None, None, None, Some(true), Some(false)]);
    // A number makes each text unique.
    let text =
        (0u32..1_000_000, "[a-z]{1,8}( [a-z]{1,8}){0,3}").prop_map(|(number, words)| format!("x{number} {words} end"));
    let nested = prop::collection::vec(text.clone(), 0..3);
    (sections, severities, any::<bool>(), ticks, text, nested).prop_map(
        |(section, severity, location, ticked, text, nested)| GeneratedItem {
            section,
            severity,
            location,
            ticked,
            text,
            nested,
        },
    )
}

/// An item without a section belongs to the section of the item before it.
fn in_sections(mut items: Vec<GeneratedItem>) -> Vec<GeneratedItem> {
    let mut section = "";
    for item in &mut items {
        if item.section.is_empty() {
            item.section = section;
        }
        section = item.section;
    }
    items
}

fn review_of(items: &[GeneratedItem]) -> String {
    let mut out = String::new();
    let mut section = "";
    for item in items {
        if item.section != section && !item.section.is_empty() {
            out += &format!("\n{}\n\n", item.section);
            section = item.section;
        }
        let tick = item.ticked.map_or("", |ticked| if ticked { "[x] " } else { "[ ] " });
        let severity = item.severity.map_or(String::new(), |word| format!("[{word}] "));
        let location = if item.location { "src/a.rs:1 " } else { "" };
        out += &format!("- {tick}{severity}{location}{}\n", item.text);
        out.extend(item.nested.iter().map(|nested| format!("  - {nested}\n")));
    }
    out
}

/// A finding as generated.
#[derive(Debug, Clone, PartialEq, Eq)]
struct GeneratedFinding {
    file: String,
    line: u32,
    text: String,
    severity: usize,
}

const WORDS: [(&str, &str); 3] = [("Minor", "LOW"), ("Important", "MEDIUM"), ("Critical", "HIGH")];

impl GeneratedFinding {
    /// Returns `None` for a finding without a location. Every generated finding has one.
    fn from_finding(finding: &signoff_core::review::Finding) -> Option<Self> {
        let severity = WORDS.iter().position(|(title, _)| *title == finding.severity.title())?;
        let (file, line) = (finding.file.clone()?, finding.line?);
        Some(Self { file, line, text: finding.description.clone(), severity })
    }

    /// The text as it appears in one line of Markdown.
    fn plain(&self) -> String {
        self.text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// The review in each contract that transmits complete findings, in the form that its instructions request.
fn rendered(meant: &[GeneratedFinding], kind: ReviewerKind) -> Vec<(Contract, String)> {
    let comment = format!("<!-- signoff:{NONCE} 0123456789abcdef -->");
    let plain = meant.iter().all(|finding| finding.plain() == finding.text && !finding.text.contains(['<', '&', '"']));
    let items: String = meant
        .iter()
        .map(|finding| {
            format!("- [{}] {}:{} {}\n", WORDS[finding.severity].0, finding.file, finding.line, finding.text)
        })
        .collect();
    let word = if meant.is_empty() { "APPROVED" } else { "CHANGES_REQUESTED" };
    let prefix = if meant.is_empty() { "APPROVED: ok" } else { "ISSUES:" };
    let mut answers = vec![(Contract::Xml, xml(meant, kind)), (Contract::Severity, severity(meant))];
    if plain {
        answers.push((Contract::Markdown, format!("{items}\n**Verdict: {word}**\n{comment}\n")));
        answers.push((Contract::Prefix, format!("{prefix}\n{comment}\n{items}")));
    }
    answers
}

fn xml(meant: &[GeneratedFinding], kind: ReviewerKind) -> String {
    let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
    let root = if kind == ReviewerKind::Spec { "spec-review" } else { "code-review" };
    let issues: String = meant
        .iter()
        .map(|finding| {
            let severity = WORDS[finding.severity].0.to_lowercase();
            let location = format!("<location file=\"{}\" line=\"{}\"/>", finding.file, finding.line);
            format!(
                "<issue type=\"bug\" severity=\"{severity}\">{location}<description>{}</description></issue>\n",
                escape(&finding.text)
            )
        })
        .collect();
    let word = if meant.is_empty() { "APPROVED" } else { "ISSUES" };
    format!("<{root} nonce=\"{NONCE}\">\n<verdict>{word}</verdict>\n<issues>{issues}</issues>\n</{root}>\n")
}

fn severity(meant: &[GeneratedFinding]) -> String {
    let issues: Vec<_> = meant
        .iter()
        .map(|finding| {
            let location = format!("{}:{}", finding.file, finding.line);
            serde_json::json!({"severity": WORDS[finding.severity].1, "message": finding.text, "location": location})
        })
        .collect();
    format!("```json\n{}\n```\n", serde_json::json!({"issues": issues, "nonce": NONCE}))
}

#[test]
fn a_message_over_ten_megabytes_is_not_read() {
    let text = vec![b' '; signoff_core::contract::MAX_BYTES + 1];
    for &contract in Contract::VARIANTS {
        let answer =
            ReviewAnswer { text: &text, tool: Some(&text).filter(|_| contract == Contract::Tool).map(Vec::as_slice) };
        let violation =
            parse(contract, answer, &review_request(ReviewerKind::Code, false, FailThreshold::Low)).unwrap_err();
        assert_eq!(violation.code.into_str(), "too_large", "{contract:?}");
    }
}
