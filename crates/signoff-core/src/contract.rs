//! The formats in which reviewers answer. Each contract parses answers into a `Review` and writes the instructions
//! that ask for its format. The policy decides what happens after a broken answer.
//!
//! A contract finds every *candidate* answer in the final message. The `candidates` module decides which candidates
//! count and whether they agree, so the rules about nonces, commits, quoting and contradiction are implemented once
//! for all contracts.

use minijinja::context;
use minijinja::value::Serde;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use crate::ids::{Commit, LoopId, Nonce, ReviewerName};
use crate::prompt::template;
use crate::review::{FailThreshold, Review, ReviewerKind, Severity, Violation, ViolationCode};
use crate::settings::reader::either;
use message::FinalMessage;

mod candidates;
mod inline_severity;
mod item;
mod json;
mod json_value;
mod location;
mod markdown;
mod markdown_structure;
mod message;
mod objection;
mod prefix;
mod reader;
mod report;
mod retraction;
mod severity;
mod tool;
mod wording;
mod xml;
mod xml_tree;

pub(crate) use candidates::clip;
pub(crate) use json_value::{missing, optional, optional_text, wrong_type};
pub use message::{AnswerBlocks, JoinedAnswer, MAX_BYTES};
pub use report::{ParseReport, ReportError};

/// The result of parsing an answer or a part of it.
type Parsed<T> = Result<T, Violation>;

/// The answer formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, EnumString, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[derive(strum::VariantArray, strum::VariantNames)]
#[strum(const_into_str, serialize_all = "lowercase")]
pub enum Contract {
    Markdown,
    Json,
    Xml,
    Prefix,
    Severity,
    Tool,
    Auto,
}

impl Contract {
    /// The threshold used if none is configured: `low` for severity reviews, `medium` for the others.
    pub fn default_threshold(self) -> FailThreshold {
        match self {
            Self::Severity => FailThreshold::Low,
            Self::Markdown | Self::Json | Self::Xml | Self::Prefix | Self::Tool | Self::Auto => FailThreshold::Medium,
        }
    }
}

/// The parts of a review request that are needed to parse the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewRequest {
    pub reviewer: ReviewerName,
    pub kind: ReviewerKind,
    pub nonce: Option<Nonce>,
    /// Whether an answer without the nonce is rejected.
    pub require_nonce: bool,
    pub fail_on: FailThreshold,
    /// The commit under review. An answer bound to another commit is rejected.
    pub commit: Option<Commit>,
    /// Used by the instructions of the tool contract. `task` is `None` for checkpoint reviews.
    pub loop_id: Option<LoopId>,
    pub task: Option<String>,
}

/// A reviewer's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReviewAnswer<'a> {
    /// The text after the last tool use, joined by [`AnswerBlocks`].
    pub text: &'a [u8],
    /// The argument objects of all calls of the reporting tool, concatenated.
    pub tool: Option<&'a [u8]>,
}

/// Parses an answer. Any bytes give a review or a violation, in linear time.
///
/// An approval is returned only if nothing else in the answer objects to it. A refusing verdict in any format is an
/// objection, and so is a blocking finding. Both count with or without the nonce, except inside quotes and code.
pub fn parse(contract: Contract, answer: ReviewAnswer<'_>, request: &ReviewRequest) -> Result<Review, Violation> {
    if contract == Contract::Tool || (contract == Contract::Auto && answer.tool.is_some()) {
        return objection::check_objections_to_report(tool::parse(answer.tool, request)?, answer.text, request);
    }
    message::read(answer.text, &|message| {
        candidates::check_nonces(message, request)?;
        objection::check_objections(review(contract, message, request)?, message, request)
    })
}

/// Parses an answer that came in blocks. An approval is returned only if none of `others` objects or is broken, see
/// `JoinedAnswer::alternatives`.
pub fn parse_split<'a>(
    contract: Contract,
    answer: ReviewAnswer<'_>,
    others: impl IntoIterator<Item = &'a [u8]>,
    request: &ReviewRequest,
) -> Result<Review, Violation> {
    let review = parse(contract, answer, request)?;
    others.into_iter().try_fold(review, |review, text| {
        if review.verdict.approves()
            && let Err(violation) = parse(contract, ReviewAnswer { text, ..answer }, request)
            && !matches!(violation.code, ViolationCode::NoVerdict | ViolationCode::NonceMissing)
        {
            return Err(violation);
        }
        objection::check_objections_in_text(review, text, request)
    })
}

/// Returns the review that a message states in a text contract.
fn review(contract: Contract, message: &FinalMessage<'_>, request: &ReviewRequest) -> Result<Review, Violation> {
    let (candidates, nothing) = match contract {
        Contract::Markdown => (markdown::candidates(message, request)?, markdown::NO_ANSWER_MESSAGE),
        Contract::Json => (json::candidates(message, request)?, json::NO_ANSWER_MESSAGE),
        Contract::Xml => (xml::candidates_or_prefix(message, request)?, xml::NO_ANSWER_MESSAGE),
        Contract::Prefix => (prefix::candidates(message, request)?, prefix::NO_ANSWER_MESSAGE),
        Contract::Severity => (severity::candidates(message, request)?, severity::NO_ANSWER_MESSAGE),
        Contract::Tool | Contract::Auto => {
            let candidates = vec![
                xml::candidates_or_prefix(message, request)?,
                markdown::candidates(message, request)?,
                json::candidates(message, request)?,
                severity::candidates(message, request)?,
            ];
            return candidates::select_across(candidates, request);
        }
    };
    candidates::resolve(candidates::filter_by_nonce(candidates, request)?, request, nothing)
}

/// Returns the first duplicate key in an object of a JSON text. JSON parsers differ in which of the two values they
/// keep.
pub fn duplicate_key(text: &str) -> Option<String> {
    json_value::read(text).seen.duplicate.map(|key| clip(&key))
}

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
    let message = format!("the answer has {count} findings; the maximum is {MAX_FINDINGS}");
    Err(Violation::new(ViolationCode::TooLarge, 0, message))
}

/// Returns a violation if an answer approves but a part of it could not be parsed: that part may object.
pub fn reject_unreadable_approval(review: Review, line: Option<&str>) -> Result<Review, Violation> {
    let Some(line) = line.filter(|_| review.verdict.approves()) else { return Ok(review) };
    let message = format!("the answer approves, and a line of it cannot be read: {line}");
    Err(Violation::new(ViolationCode::Malformed, 0, message))
}

/// Truncates the texts of a review and its list of checked items.
fn truncate_texts(review: &mut Review) {
    review.checked.truncate(MAX_FINDINGS);
    let own = [&mut review.summary].into_iter();
    let optional = [&mut review.follow_up_prompt, &mut review.interpreted_intent].into_iter().flatten();
    let findings = review.findings.iter_mut().flat_map(|finding| {
        let more = [&mut finding.requirement, &mut finding.suggestion, &mut finding.file];
        [&mut finding.description, &mut finding.kind].into_iter().chain(more.into_iter().flatten())
    });
    let notes = review.minor.iter_mut().flat_map(|note| [&mut note.description].into_iter().chain(&mut note.file));
    own.chain(optional).chain(findings).chain(notes).chain(&mut review.checked).for_each(truncate);
}

fn truncate(text: &mut String) {
    if text.len() > MAX_TEXT_BYTES {
        let end = (0..=MAX_TEXT_BYTES - TRUNCATION_NOTE.len()).rev().find(|&end| text.is_char_boundary(end));
        text.truncate(end.unwrap_or_default());
        text.push_str(TRUNCATION_NOTE);
        text.shrink_to_fit();
    }
}

/// Returns the instructions that ask a reviewer for this contract.
pub fn instructions(contract: Contract, request: &ReviewRequest) -> String {
    let name = match contract {
        Contract::Xml if request.kind == ReviewerKind::Spec => "xml_spec",
        Contract::Xml => "xml_code",
        Contract::Tool if request.loop_id.is_some() => "tool_loop",
        Contract::Tool => "tool_run",
        Contract::Markdown | Contract::Json | Contract::Prefix | Contract::Severity | Contract::Auto => {
            contract.into_str()
        }
    };
    let values = context! {
        nonce => request.nonce.as_ref().map(|nonce| nonce.as_str()),
        commit => request.commit.as_ref().map(|commit| commit.as_str()),
        loop_id => request.loop_id.as_ref().map(|loop_id| loop_id.as_str()),
        task => request.task.as_deref(),
        has_minor => request.kind != ReviewerKind::Spec,
        severities => Serde(SeverityWords::new()),
    };
    template::render(&format!("contracts/{name}.md"), values)
}

/// The words for severities in the instructions, most severe first.
#[derive(Serialize)]
struct SeverityWords {
    /// The number of severities, as a word.
    count: &'static str,
    /// `HIGH | MEDIUM | LOW`.
    levels: String,
    /// `[Critical]`, `[Important]` or `[Minor]`, as code.
    brackets: String,
    /// The severities of findings that have to be fixed by default: `critical | important`.
    issues: String,
    /// The title of the most severe one.
    worst: &'static str,
    /// The title of the least severe one that has to be fixed by default.
    blocking: &'static str,
}

impl SeverityWords {
    fn new() -> Self {
        let all = Severity::ALL;
        let [worst, ..] = all;
        let issues: Vec<_> = all.into_iter().filter(|one| FailThreshold::Medium.is_reached_by(*one)).collect();
        let brackets = all.map(|one| format!("`[{}]`", one.title()));
        Self {
            count: ["no", "one", "two", "three", "four", "five"].get(all.len()).unwrap_or(&"known"),
            levels: all.map(Severity::level).join(" | "),
            brackets: either(&brackets.each_ref().map(String::as_str)),
            issues: issues.iter().map(|one| one.into_str()).collect::<Vec<_>>().join(" | "),
            worst: worst.title(),
            blocking: issues.last().unwrap_or(&worst).title(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::{Finding, Verdict};

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
