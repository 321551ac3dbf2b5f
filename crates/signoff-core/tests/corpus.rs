//! Runs the parsers on the reviewer answers in `testdata/contracts`. Its README describes the format of a case.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use signoff_core::contract::{Contract, ParseReport, ReviewAnswer, ReviewRequest, parse};
use signoff_core::ids::{Commit, Nonce, ReviewerName};
use signoff_core::review::{FailThreshold, Review, ReviewerKind, Verdict, Violation, ViolationCode};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/contracts");
const DIRECTORIES: [&str; 3] = ["seed", "hostile", "untidy"];
const TEXT_CONTRACTS: [Contract; 6] =
    [Contract::Markdown, Contract::Json, Contract::Xml, Contract::Prefix, Contract::Severity, Contract::Auto];

/// How an answer was requested, and the expected result.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseSettings {
    why: String,
    contract: Contract,
    role: ReviewerKind,
    nonce: Option<String>,
    require_nonce: bool,
    fail_on: Option<FailThreshold>,
    commit: Option<String>,
    #[serde(default)]
    auto_may_approve: bool,
    expect: Value,
}

struct Case {
    name: String,
    text: Vec<u8>,
    setting: CaseSettings,
}

impl Case {
    fn load(path: &Path) -> Self {
        let read = |path: &Path| fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let setting = path.with_extension("json");
        Self {
            name: path.strip_prefix(CORPUS).expect("a path in the corpus").with_extension("").display().to_string(),
            text: read(path),
            setting: serde_json::from_slice(&read(&setting))
                .unwrap_or_else(|error| panic!("{}: {error}", setting.display())),
        }
    }

    fn review_request(&self) -> ReviewRequest {
        let own_bar =
            if self.setting.contract == Contract::Severity { FailThreshold::Low } else { FailThreshold::Medium };
        ReviewRequest {
            nonce: self.setting.nonce.as_deref().map(Nonce::from),
            require_nonce: self.setting.require_nonce,
            fail_on: self.setting.fail_on.unwrap_or(own_bar),
            commit: self.setting.commit.as_deref().map(Commit::from),
            ..review_request(self.setting.role)
        }
    }

    /// Parses `text` with this case's settings, as the final message or as the tool's arguments.
    fn read(&self, text: &[u8]) -> Result<Review, Violation> {
        parse(self.setting.contract, answer(self.setting.contract, text), &self.review_request())
    }

    /// Whether the case allows no approval.
    fn must_not_approve(&self) -> bool {
        let verdict = &self.setting.expect["verdict"];
        let words = verdict.as_array().map_or(std::slice::from_ref(verdict), Vec::as_slice);
        words.iter().all(|word| !word.as_str().expect("a verdict word").starts_with("approved"))
    }
}

fn review_request(role: ReviewerKind) -> ReviewRequest {
    ReviewRequest {
        reviewer: ReviewerName::from(role.into_str()),
        kind: role,
        nonce: None,
        require_nonce: false,
        fail_on: FailThreshold::Medium,
        commit: None,
        loop_id: None,
        task: None,
    }
}

fn answer(contract: Contract, text: &[u8]) -> ReviewAnswer<'_> {
    if contract == Contract::Tool { ReviewAnswer { text: b"", tool: Some(text) } } else { message(text) }
}

fn message(text: &[u8]) -> ReviewAnswer<'_> {
    ReviewAnswer { text, tool: None }
}

fn approves(result: &Result<Review, Violation>) -> bool {
    result.as_ref().is_ok_and(|review| review.verdict.approves())
}

/// The cases of one directory, sorted by name. A file without its counterpart is an error.
fn cases(directory: &str) -> Vec<Case> {
    let entries = fs::read_dir(Path::new(CORPUS).join(directory)).expect("the corpus");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a file of the corpus").path()).collect();
    paths.sort();
    for path in &paths {
        let partners = path.with_extension("txt").exists() && path.with_extension("json").exists();
        assert!(partners, "{} has no partner", path.display());
    }
    paths.iter().filter(|path| path.extension().is_some_and(|end| end == "txt")).map(|path| Case::load(path)).collect()
}

fn all_cases() -> impl Iterator<Item = Case> {
    DIRECTORIES.into_iter().flat_map(cases)
}

/// Fails with all problems, not only the first.
fn fail_with(problems: &[String]) {
    assert!(problems.is_empty(), "{} of the corpus:\n\n{}", problems.len(), problems.join("\n"));
}

/// Writes a line for each difference between `actual` and `expected`.
fn compare(path: &str, expected: &Value, actual: &Value, differences: &mut String) {
    match (expected, actual) {
        (Value::Object(wanted), Value::String(text)) if wanted.contains_key("contains") => {
            if !text.contains(wanted["contains"].as_str().expect("a piece of text")) {
                differ(path, expected, actual, differences);
            }
        }
        (Value::Object(wanted), Value::Object(_)) => {
            for (key, value) in wanted {
                compare(&format!("{path}.{key}"), value, &actual[key], differences);
            }
        }
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => {
            for (index, (wanted, found)) in wanted.iter().zip(found).enumerate() {
                compare(&format!("{path}[{index}]"), wanted, found, differences);
            }
        }
        (Value::Array(allowed), Value::String(_)) if allowed.contains(actual) => {}
        (expected, actual) if expected == actual => {}
        (expected, actual) => differ(path, expected, actual, differences),
    }
}

fn differ(path: &str, expected: &Value, actual: &Value, differences: &mut String) {
    *differences += &format!("    {path}\n        expected {expected}\n        actual   {actual}\n");
}

/// Writes a line for each key that is missing in `holder`.
fn demand(holder: &Value, keys: &str, differences: &mut String) {
    for key in keys.split_whitespace().filter(|key| holder.get(key).is_none()) {
        *differences += &format!("    no key `{key}` in {holder}\n");
    }
}

/// Checks what every report must contain: all keys, the role, a violation's offset in the text.
fn check_shape(case: &Case, report: &Value, differences: &mut String) {
    const REVIEW: &str = "verdict confidence findings minor checked summary follow_up_prompt \
                          interpreted_intent intent_satisfied reviewer role";
    const FINDING: &str = "id sources kind severity file line description requirement suggestion";
    compare("report.version", &1.into(), &report["version"], differences);
    if let Some(violation) = report.get("violation").filter(|violation| !violation.is_null()) {
        demand(violation, "code message offset", differences);
        if violation["offset"].as_u64().is_none_or(|offset| offset > case.text.len() as u64) {
            *differences += &format!("    the offset {} is not in the text\n", violation["offset"]);
        }
        return;
    }
    demand(report, REVIEW, differences);
    for finding in report["findings"].as_array().into_iter().flatten() {
        demand(finding, FINDING, differences);
    }
    for key in ["role", "reviewer"] {
        compare(key, &case.setting.role.into_str().into(), &report[key], differences);
    }
}

#[test]
fn every_answer_is_read_as_expected() {
    let mut problems = Vec::new();
    for case in all_cases() {
        let report = serde_json::to_value(ParseReport::new(&case.read(&case.text), &case.review_request())).unwrap();
        let mut differences = String::new();
        compare("report", &case.setting.expect, &report, &mut differences);
        check_shape(&case, &report, &mut differences);
        if !differences.is_empty() {
            let violation = report.get("violation").map_or(String::new(), |why| format!("    read as {why}\n"));
            problems.push(format!("{}: {}\n{violation}{differences}", case.name, case.setting.why));
        }
    }
    fail_with(&problems);
}

#[test]
fn the_corpus_is_large_enough_and_every_case_has_a_reason() {
    let [seed, hostile, untidy] = DIRECTORIES.map(|directory| cases(directory).len());
    println!("seed {seed}, hostile {hostile}, untidy {untidy}");
    assert!(seed >= 40 && hostile >= 40 && untidy >= 20, "seed {seed}, hostile {hostile}, untidy {untidy}");
    let silent: Vec<_> = all_cases().filter(|case| case.setting.why.len() < 10).map(|case| case.name).collect();
    fail_with(&silent);
}

#[test]
fn no_hostile_answer_approves_not_even_under_auto() {
    let mut problems = Vec::new();
    for case in cases("hostile").into_iter().filter(Case::must_not_approve) {
        if approves(&case.read(&case.text)) {
            problems.push(format!("{} approves: {}", case.name, case.setting.why));
        }
        let ways = [answer(case.setting.contract, &case.text), message(&case.text)];
        let approved = ways.into_iter().any(|answer| approves(&parse(Contract::Auto, answer, &case.review_request())));
        if approved && !case.setting.auto_may_approve {
            problems.push(format!("{} approves under auto: {}", case.name, case.setting.why));
        }
    }
    fail_with(&problems);
}

#[test]
fn nothing_approves_without_a_required_nonce() {
    let mut problems = Vec::new();
    for case in all_cases() {
        let nonce = Some(Nonce::from("in-no-file-of-the-corpus"));
        let request = ReviewRequest { nonce, require_nonce: true, ..case.review_request() };
        for contract in TEXT_CONTRACTS {
            if approves(&parse(contract, message(&case.text), &request)) {
                problems.push(format!("{} approves as {contract:?}", case.name));
            }
        }
    }
    fail_with(&problems);
}

/// Only for valid answers: a hostile one may contain an approval first and its retraction later.
#[test]
fn a_request_for_changes_that_is_cut_short_never_approves() {
    let mut problems = Vec::new();
    for case in ["seed", "untidy"].into_iter().flat_map(cases) {
        if case.setting.expect["verdict"] != "changes_requested" {
            continue;
        }
        let cut = (0..case.text.len()).find(|length| approves(&case.read(&case.text[..*length])));
        problems.extend(cut.map(|length| format!("{} approves after {length} bytes", case.name)));
    }
    fail_with(&problems);
}

#[test]
fn answers_that_are_nested_too_deeply_are_violations() {
    let lists = "[".repeat(10_000) + &"]".repeat(10_000);
    let elements = "<a>".repeat(10_000) + &"</a>".repeat(10_000);
    let review = format!("<code-review><verdict>APPROVED</verdict><summary>{elements}</summary></code-review>");
    let answers = [
        (Contract::Json, format!(r#"{{"verdict":"pass","followUpPrompt":"","more":{lists}}}"#)),
        (Contract::Json, format!(r#"{{"more":{lists},"verdict":"pass","followUpPrompt":""}}"#)),
        (Contract::Tool, format!(r#"{{"passed":true,"more":{lists}}}"#)),
        (Contract::Severity, format!(r#"{{"issues":[],"more":{lists}}}"#)),
        (Contract::Xml, review),
    ];
    for (contract, text) in answers {
        let result = parse(contract, answer(contract, text.as_bytes()), &review_request(ReviewerKind::Code));
        assert_eq!(result.unwrap_err().code, ViolationCode::TooDeep, "{contract:?}: {}...", &text[..40]);
    }
}

#[test]
fn answers_over_ten_megabytes_are_violations() {
    let answers = [
        (Contract::Markdown, "**Verdict: APPROVED**\n\n"),
        (Contract::Json, r#"{"verdict":"pass","followUpPrompt":""}"#),
        (Contract::Xml, "<code-review><verdict>APPROVED</verdict></code-review>"),
        (Contract::Prefix, "APPROVED: fine"),
        (Contract::Severity, "NO ISSUES\n"),
        (Contract::Auto, "**Verdict: APPROVED**\n\n"),
        (Contract::Tool, r#"{"passed":true}"#),
    ];
    let reviewing = " reviewing".repeat(1_100_000);
    for (contract, approval) in answers {
        let text = format!("{approval}{reviewing}");
        let result = parse(contract, answer(contract, text.as_bytes()), &review_request(ReviewerKind::Code));
        assert_eq!(result.unwrap_err().code, ViolationCode::TooLarge, "{contract:?}");
    }
}

/// Opening delimiters without closing ones. A parser that searches for each end separately would be quadratic.
#[test]
fn unclosed_delimiters_are_parsed_in_linear_time_and_never_approve() {
    const OPENERS: &str = "{ [ < ` * ~ > - + # \" {\"verdict\": <code-review> <!-- <![CDATA[ <?xml &#65; [x]( [x]: \
                           ``` **Verdict: {\"issues\":[ HIGH a.rs:1 \
                           <code-review><!-- <code-review/x=\" <code-review><![CDATA[ {\"a\": {' {verdict: [{\"a\":1, HIGH:";
    let mut problems = Vec::new();
    for opener in OPENERS.split(' ').flat_map(|word| [word.to_owned(), format!("{word} "), format!("{word}\n")]) {
        let text = opener.repeat(50_000 / opener.len());
        for contract in TEXT_CONTRACTS.into_iter().chain([Contract::Tool]) {
            if approves(&parse(contract, answer(contract, text.as_bytes()), &review_request(ReviewerKind::Code))) {
                problems.push(format!("{opener:?} approves as {contract:?}"));
            }
        }
    }
    fail_with(&problems);
}

#[test]
fn the_stricter_of_a_tool_report_and_the_final_message_counts() {
    for contract in [Contract::Auto, Contract::Tool] {
        let failed = br#"{"loopId": "b", "passed": false, "issues": [{"description": "it leaks"}]}"#;
        let answer = ReviewAnswer { text: b"**Verdict: APPROVED**\n", tool: Some(failed) };
        let review = parse(contract, answer, &review_request(ReviewerKind::Code)).unwrap();
        assert_eq!(review.verdict, Verdict::ChangesRequested);

        let passed = br#"{"loopId": "b", "passed": true}"#;
        let answer = ReviewAnswer { text: b"**Verdict: CHANGES_REQUESTED**\n", tool: Some(passed) };
        let violation = parse(contract, answer, &review_request(ReviewerKind::Code)).unwrap_err();
        assert_eq!(violation.code, ViolationCode::Disagreement);
    }
}

#[test]
fn a_reviewer_that_never_calls_the_tool_gives_no_review() {
    for text in ["REVIEW_COMPLETE\n", "**Verdict: APPROVED**\n", r#"{"loopId": "b", "passed": true}"#] {
        let result = parse(Contract::Tool, message(text.as_bytes()), &review_request(ReviewerKind::Code));
        assert!(result.is_err(), "{text} gives {result:?}");
    }
}
