//! SARIF 2.1.0: a document that is the whole output, or that starts at one of its lines.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::place::Place;
use super::remark::{Found, Level, Remark};

/// Texts that look like the start of a document and are none. Each is read as far as it goes, so their number is
/// bounded.
const FALSE_STARTS: usize = 16;

pub(super) enum Piece<'o> {
    Text(&'o str),
    Document(Document),
}

/// Cuts an output into SARIF documents and the text around them.
pub(super) fn pieces(output: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    if !output.contains("\"runs\"") {
        return vec![Piece::Text(output)];
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
                pieces.push(Piece::Text(&output[text_from..at]));
                pieces.push(Piece::Document(document));
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
    pieces.push(Piece::Text(&output[text_from..]));
    pieces
}

/// The JSON object at the start of the text, and how long it is.
fn read(text: &str) -> Option<(Document, usize)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Document>();
    let document = values.next()?.ok()?;
    Some((document, values.byte_offset()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Document {
    version: Option<serde_json::Value>,
    runs: Option<Vec<Run>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    #[serde(default)]
    tool: Tool,
    results: Option<Vec<Outcome>>,
}

#[derive(Deserialize, Default)]
struct Tool {
    #[serde(default)]
    driver: Driver,
}

#[derive(Deserialize, Default)]
struct Driver {
    #[serde(default)]
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    id: String,
    #[serde(default)]
    default_configuration: Configuration,
}

#[derive(Deserialize, Default)]
struct Configuration {
    level: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    rule_id: Option<String>,
    level: Option<String>,
    kind: Option<String>,
    baseline_state: Option<String>,
    #[serde(default)]
    message: Message,
    #[serde(default)]
    locations: Vec<Location>,
    #[serde(default)]
    suppressions: Vec<serde_json::Value>,
}

#[derive(Deserialize, Default)]
struct Message {
    text: Option<String>,
    markdown: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    #[serde(default)]
    physical_location: Physical,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Physical {
    #[serde(default)]
    artifact_location: Artifact,
    #[serde(default)]
    region: Region,
}

#[derive(Deserialize, Default)]
struct Artifact {
    uri: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: Option<u32>,
}

impl Document {
    fn is_sarif(&self) -> bool {
        let version = self.version.as_ref().and_then(|version| version.as_str());
        self.runs.is_some() && version.is_some_and(|version| version.starts_with("2."))
    }

    pub(super) fn read(&self, found: &mut Found) {
        for run in self.runs.iter().flatten() {
            let rules = run.tool.driver.rules.iter().map(|rule| (rule.id.as_str(), rule)).collect();
            let shown = run.results.iter().flatten().filter(|outcome| outcome.counts());
            found.remarks.extend(shown.map(|outcome| outcome.remark(&rules)));
        }
    }
}

impl Outcome {
    /// Whether it is a failure, of this version, that nobody has waved through.
    fn counts(&self) -> bool {
        let fails = self.kind.as_deref().is_none_or(|kind| matches!(kind, "fail" | "review" | "open"));
        fails && self.suppressions.is_empty() && self.baseline_state.as_deref() != Some("absent")
    }

    fn remark(&self, rules: &BTreeMap<&str, &Rule>) -> Remark {
        let said = self.message.text.as_deref().or(self.message.markdown.as_deref()).unwrap_or_default();
        let message = match &self.rule_id {
            Some(rule) => format!("{said} ({rule})"),
            None => said.to_owned(),
        };
        Remark::of(self.level(rules), self.place(), &message)
    }

    fn level(&self, rules: &BTreeMap<&str, &Rule>) -> Level {
        let of_rule = || {
            let rule = rules.get(self.rule_id.as_deref()?)?;
            rule.default_configuration.level.as_deref()
        };
        match self.level.as_deref().or_else(of_rule) {
            Some("error") => Level::Error,
            Some("note" | "none") => Level::Note,
            _ => Level::Warning,
        }
    }

    fn place(&self) -> Option<Place> {
        let physical = &self.locations.first()?.physical_location;
        let uri = physical.artifact_location.uri.as_deref()?;
        Some(Place::of(&decoded(uri), physical.region.start_line))
    }
}

/// A path without its `%20`.
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
