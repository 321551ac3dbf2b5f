//! Parses SARIF 2.1.0: a document that is the whole output, or that starts at one of its lines.

use std::collections::BTreeMap;

use serde_json::Value;

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
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let document = values.next()?.ok()?;
    Some((SarifDocument(document), values.byte_offset()))
}

pub(super) struct SarifDocument(Value);

/// The value at a JSON pointer, if it is a text.
fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer)?.as_str()
}

/// The elements at a JSON pointer; none if there is no list.
fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

impl SarifDocument {
    /// Whether all results can be read. Otherwise the document is shown as text, so that none of them is lost.
    fn is_sarif(&self) -> bool {
        let is_result_list = |results: &Value| {
            results.is_null() || results.as_array().is_some_and(|all| all.iter().all(Value::is_object))
        };
        self.0["runs"].as_array().is_some_and(|runs| runs.iter().all(|run| run.is_object() && is_result_list(&run["results"])))
            && text(&self.0, "/version").is_some_and(|version| version.starts_with("2."))
    }

    pub(super) fn read(&self, found: &mut RemarkList) {
        for run in list(&self.0, "/runs") {
            let rules = list(run, "/tool/driver/rules").iter();
            let levels = rules
                .filter_map(|rule| Some((text(rule, "/id")?, text(rule, "/defaultConfiguration/level")?)))
                .collect();
            let results = list(run, "/results").iter().filter(|result| counts(result));
            found.remarks.extend(results.map(|result| remark(result, &levels)));
        }
    }
}

/// Whether a result is a failure of this version that is not suppressed.
fn counts(result: &Value) -> bool {
    let fails = text(result, "/kind").is_none_or(|kind| matches!(kind, "fail" | "review" | "open"));
    fails && list(result, "/suppressions").is_empty() && text(result, "/baselineState") != Some("absent")
}

/// The remark of a result. `levels` are those of the rules, by id.
fn remark(result: &Value, levels: &BTreeMap<&str, &str>) -> Remark {
    let said = text(result, "/message/text").or_else(|| text(result, "/message/markdown")).unwrap_or_default();
    let rule = text(result, "/ruleId");
    let message = rule.map_or_else(|| said.to_owned(), |rule| format!("{said} ({rule})"));
    let level = match text(result, "/level").or_else(|| levels.get(rule?).copied()) {
        Some("error") => RemarkLevel::Error,
        Some("note" | "none") => RemarkLevel::Note,
        _ => RemarkLevel::Warning,
    };
    let place = text(result, "/locations/0/physicalLocation/artifactLocation/uri").map(|uri| {
        let line = result.pointer("/locations/0/physicalLocation/region/startLine").and_then(Value::as_u64);
        SourceLocation::new(&decoded(uri), line.and_then(|line| u32::try_from(line).ok()))
    });
    Remark::new(level, place, &message)
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
