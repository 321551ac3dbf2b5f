//! Parses SARIF 2.1.0: a document that is the whole output, or that starts at one of its lines.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::remark::{Remark, RemarkLevel, RemarkList, SourceLocation};

/// Maximum number of texts that look like the start of a document but are not. Each one is parsed as far as
/// possible.
const FALSE_STARTS: usize = 16;

pub(super) enum OutputPiece<'o> {
    Text(&'o str),
    Document(SarifDocument),
}

/// Splits an output into SARIF documents and the text around them.
pub(super) fn pieces(output: &str) -> Vec<OutputPiece<'_>> {
    let mut pieces = Vec::new();
    if !output.contains("\"runs\"") {
        return vec![OutputPiece::Text(output)];
    }
    let (mut text_from, mut at, mut false_starts) = (0, 0, 0);
    while at < output.len() && false_starts < FALSE_STARTS {
        let rest = &output[at..];
        let line_end = rest.find('\n').map_or(output.len(), |end| at + end + 1);
        if !rest.trim_start_matches([' ', '\t']).starts_with('{') {
            at = line_end;
            continue;
        }
        match read(rest) {
            Some((document, length)) if document.is_sarif() => {
                pieces.push(OutputPiece::Text(&output[text_from..at]));
                pieces.push(OutputPiece::Document(document));
                at += length;
                text_from = at;
            }
            Some((_, length)) => at = line_end.max(at + length),
            None => {
                false_starts += 1;
                at = line_end;
            }
        }
    }
    pieces.push(OutputPiece::Text(&output[text_from..]));
    pieces
}

/// Parses the JSON object at the start of the text. Also returns its length.
fn read(text: &str) -> Option<(SarifDocument, usize)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<SarifDocument>();
    let document = values.next()?.ok()?;
    Some((document, values.byte_offset()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SarifDocument {
    version: Option<serde_json::Value>,
    runs: Option<Vec<SarifRun>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SarifRun {
    #[serde(default)]
    tool: SarifTool,
    results: Option<Vec<SarifResult>>,
}

#[derive(Deserialize, Default)]
struct SarifTool {
    #[serde(default)]
    driver: SarifDriver,
}

#[derive(Deserialize, Default)]
struct SarifDriver {
    #[serde(default)]
    rules: Vec<SarifRule>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SarifRule {
    id: String,
    #[serde(default)]
    default_configuration: SarifConfiguration,
}

#[derive(Deserialize, Default)]
struct SarifConfiguration {
    level: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SarifResult {
    rule_id: Option<String>,
    level: Option<String>,
    kind: Option<String>,
    baseline_state: Option<String>,
    #[serde(default)]
    message: SarifMessage,
    #[serde(default)]
    locations: Vec<SarifLocation>,
    #[serde(default)]
    suppressions: Vec<serde_json::Value>,
}

#[derive(Deserialize, Default)]
struct SarifMessage {
    text: Option<String>,
    markdown: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SarifLocation {
    #[serde(default)]
    physical_location: SarifPhysicalLocation,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct SarifPhysicalLocation {
    #[serde(default)]
    artifact_location: SarifArtifact,
    #[serde(default)]
    region: SarifRegion,
}

#[derive(Deserialize, Default)]
struct SarifArtifact {
    uri: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct SarifRegion {
    start_line: Option<u32>,
}

impl SarifDocument {
    fn is_sarif(&self) -> bool {
        let version = self.version.as_ref().and_then(|version| version.as_str());
        self.runs.is_some() && version.is_some_and(|version| version.starts_with("2."))
    }

    pub(super) fn read(&self, found: &mut RemarkList) {
        for run in self.runs.iter().flatten() {
            let rules = run.tool.driver.rules.iter().map(|rule| (rule.id.as_str(), rule)).collect();
            let shown = run.results.iter().flatten().filter(|outcome| outcome.counts());
            found.remarks.extend(shown.map(|outcome| outcome.remark(&rules)));
        }
    }
}

impl SarifResult {
    /// Whether it is a failure of this version that is not suppressed.
    fn counts(&self) -> bool {
        let fails = self.kind.as_deref().is_none_or(|kind| matches!(kind, "fail" | "review" | "open"));
        fails && self.suppressions.is_empty() && self.baseline_state.as_deref() != Some("absent")
    }

    fn remark(&self, rules: &BTreeMap<&str, &SarifRule>) -> Remark {
        let said = self.message.text.as_deref().or(self.message.markdown.as_deref()).unwrap_or_default();
        let message = match &self.rule_id {
            Some(rule) => format!("{said} ({rule})"),
            None => said.to_owned(),
        };
        Remark::new(self.level(rules), self.place(), &message)
    }

    fn level(&self, rules: &BTreeMap<&str, &SarifRule>) -> RemarkLevel {
        let of_rule = || {
            let rule = rules.get(self.rule_id.as_deref()?)?;
            rule.default_configuration.level.as_deref()
        };
        match self.level.as_deref().or_else(of_rule) {
            Some("error") => RemarkLevel::Error,
            Some("note" | "none") => RemarkLevel::Note,
            _ => RemarkLevel::Warning,
        }
    }

    fn place(&self) -> Option<SourceLocation> {
        let physical = &self.locations.first()?.physical_location;
        let uri = physical.artifact_location.uri.as_deref()?;
        Some(SourceLocation::new(&decoded(uri), physical.region.start_line))
    }
}

/// Decodes the `%20` escapes of a path.
fn decoded(uri: &str) -> String {
    let mut bytes = Vec::with_capacity(uri.len());
    let mut rest = uri.as_bytes();
    while let [first, behind @ ..] = rest {
        let code = behind.get(..2).filter(|_| *first == b'%').and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| uri.to_owned())
}
