//! The instructions that ask for each contract, with the nonce and the commit filled in.

use quick_xml::escape::escape;

use super::{Contract, ReviewRequest};
use crate::review::ReviewerKind;

const MARKDOWN: &str = include_str!("text/markdown.md");
const JSON: &str = include_str!("text/json.md");
const XML_SPEC: &str = include_str!("text/xml_spec.md");
const XML_CODE: &str = include_str!("text/xml_code.md");
const PREFIX: &str = include_str!("text/prefix.md");
const SEVERITY: &str = include_str!("text/severity.md");
const TOOL_LOOP: &str = include_str!("text/tool_loop.md");
const TOOL_RUN: &str = include_str!("text/tool_run.md");
const AUTO: &str = include_str!("text/auto.md");

pub(super) fn write(contract: Contract, ask: &ReviewRequest) -> String {
    fill(template(contract, ask), |name| value(name, ask))
}

fn template(contract: Contract, ask: &ReviewRequest) -> &'static str {
    match contract {
        Contract::Markdown => MARKDOWN,
        Contract::Json => JSON,
        Contract::Xml if ask.kind == ReviewerKind::Spec => XML_SPEC,
        Contract::Xml => XML_CODE,
        Contract::Prefix => PREFIX,
        Contract::Severity => SEVERITY,
        Contract::Tool if ask.loop_id.is_some() => TOOL_LOOP,
        Contract::Tool => TOOL_RUN,
        Contract::Auto => AUTO,
    }
}

/// Replaces each `{name}` that has a value. Inserted values are not expanded again.
fn fill(template: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let named = after.split_once('}').and_then(|(name, tail)| Some((value(name)?, tail)));
        rest = match named {
            Some((text, tail)) => {
                filled.push_str(&text);
                tail
            }
            None => {
                filled.push('{');
                after
            }
        };
    }
    filled.push_str(rest);
    filled
}

fn value(name: &str, ask: &ReviewRequest) -> Option<String> {
    let nonce = ask.nonce.as_ref().map(|nonce| nonce.as_str());
    let commit = ask.commit.as_ref().map(|commit| commit.as_str());
    let bound = nonce.is_some();
    match name {
        "nonce_comment" => Some(nonce.map_or(String::new(), |nonce| comment(nonce, commit))),
        "nonce_keys" => Some(keys(nonce, commit)),
        "nonce_attributes" => Some(attributes(nonce, commit)),
        "nonce_line_rule" => Some(when(bound, LINE_RULE)),
        "nonce_key_rule" => Some(when(bound, KEY_RULE)),
        "nonce_attribute_rule" => Some(when(bound, ATTRIBUTE_RULE)),
        "minor_prefix" => Some(when(ask.kind != ReviewerKind::Spec, MINOR_PREFIX)),
        "loop" => Some(quoted(ask.loop_id.as_ref().map_or("", |id| id.as_str()))),
        "task_argument" => {
            Some(ask.task.as_ref().map_or(String::new(), |task| format!("\n  taskId: {},", quoted(task))))
        }
        "markdown" => Some(write(Contract::Markdown, ask)),
        "tool" => Some(write(Contract::Tool, ask)),
        _ => None,
    }
}

const LINE_RULE: &str = "\nThe comment line shows that this answer belongs to this review. Copy it exactly, with nothing but \
     blank lines between it and the verdict.\n";
const KEY_RULE: &str =
    "\nThe `nonce` shows that this answer belongs to this review. Copy it exactly, with every key beside it.\n";
const ATTRIBUTE_RULE: &str =
    "\nThe `nonce` shows that this answer belongs to this review. Copy the attributes of the root exactly.\n";
const MINOR_PREFIX: &str =
    "- `APPROVED_WITH_MINOR:` and a brief assessment, if only remarks are left that need not be fixed\n";

fn when(holds: bool, text: &str) -> String {
    if holds { text.to_owned() } else { String::new() }
}

fn comment(nonce: &str, commit: Option<&str>) -> String {
    match commit {
        Some(commit) => format!("\n<!-- signoff:{nonce} {commit} -->"),
        None => format!("\n<!-- signoff:{nonce} -->"),
    }
}

fn keys(nonce: Option<&str>, commit: Option<&str>) -> String {
    let key = |name: &str, value: Option<&str>| {
        value.map_or(String::new(), |value| format!(", \"{name}\": {}", quoted(value)))
    };
    key("nonce", nonce) + &key("commit", commit.filter(|_| nonce.is_some()))
}

fn attributes(nonce: Option<&str>, commit: Option<&str>) -> String {
    let attribute =
        |name: &str, value: Option<&str>| value.map_or(String::new(), |value| format!(" {name}=\"{}\"", escape(value)));
    attribute("nonce", nonce) + &attribute("commit", commit.filter(|_| nonce.is_some()))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
