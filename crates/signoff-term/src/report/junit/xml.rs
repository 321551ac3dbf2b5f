//! Writes JUnit suites and cases as XML.

use std::borrow::Cow;
use std::io;

use quick_xml::escape::partial_escape;
use quick_xml::events::{BytesDecl, BytesText, Event};
use quick_xml::writer::{ElementWriter, Writer};
use signoff_core::merge::render::plain_text::{escaped_xml, one_line, visible};

use crate::fit::shorten;

/// Maximum length of a name or a message; lists of failures show it in one line.
const NAME: usize = 240;

type XmlWriter = Writer<Vec<u8>>;
type XmlAttributes = Vec<(&'static str, Cow<'static, str>)>;

pub struct Suite {
    pub name: String,
    pub timestamp: Option<String>,
    pub properties: Vec<(&'static str, String)>,
    pub cases: Vec<Case>,
}

pub struct Case {
    pub class: String,
    pub name: String,
    pub file: Option<String>,
    pub took_ms: u64,
    pub outcome: CaseOutcome,
}

/// The result of a case. A passed case may have output.
pub enum CaseOutcome {
    Passed(Option<String>),
    Failed { kind: String, message: String, body: String },
    Error { kind: String, message: String },
    Skipped(String),
}

/// The count attributes of a suite or of the whole document.
#[derive(Default)]
struct SuiteCounts {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
    took_ms: u64,
}

impl SuiteCounts {
    fn new<'a>(cases: impl Iterator<Item = &'a Case>) -> Self {
        let mut counts = Self::default();
        for case in cases {
            counts.tests += 1;
            counts.took_ms += case.took_ms;
            match case.outcome {
                CaseOutcome::Passed(_) => {}
                CaseOutcome::Failed { .. } => counts.failures += 1,
                CaseOutcome::Error { .. } => counts.errors += 1,
                CaseOutcome::Skipped(_) => counts.skipped += 1,
            }
        }
        counts
    }

    fn attributes(&self) -> XmlAttributes {
        let Self { tests, failures, errors, skipped, took_ms } = self;
        let numbers = [("tests", tests), ("failures", failures), ("errors", errors), ("skipped", skipped)];
        let numbers = numbers.map(|(name, number)| (name, number.to_string().into()));
        numbers.into_iter().chain([("time", seconds(*took_ms).into())]).collect()
    }
}

fn seconds(milliseconds: u64) -> String {
    format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000)
}

/// The document, with a final line break.
pub fn document(suites: &[Suite]) -> String {
    let mut out = Writer::new_with_indent(Vec::new(), b' ', 2);
    write(&mut out, suites).expect("writing to memory does not fail");
    escaped_xml(&String::from_utf8_lossy(&out.into_inner())) + "\n"
}

fn write(out: &mut XmlWriter, suites: &[Suite]) -> io::Result<()> {
    out.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let counts = SuiteCounts::new(suites.iter().flat_map(|suite| &suite.cases));
    let attributes = [("name", "signoff".into())].into_iter().chain(counts.attributes()).collect();
    element(out, "testsuites", attributes, |out| suites.iter().try_for_each(|one| suite(out, one)))
}

fn suite(out: &mut XmlWriter, suite: &Suite) -> io::Result<()> {
    let counts = SuiteCounts::new(suite.cases.iter());
    let mut attributes: XmlAttributes = vec![("name", attribute(&suite.name))];
    attributes.extend(counts.attributes());
    attributes.extend(suite.timestamp.as_ref().map(|at| ("timestamp", attribute(at))));
    element(out, "testsuite", attributes, |out| {
        if !suite.properties.is_empty() {
            element(out, "properties", Vec::new(), |out| {
                suite.properties.iter().try_for_each(|(name, value)| {
                    start(out, "property", vec![("name", attribute(name)), ("value", attribute(value))])
                        .write_empty()?;
                    Ok(())
                })
            })?;
        }
        suite.cases.iter().try_for_each(|one| case(out, one))
    })
}

fn case(out: &mut XmlWriter, case: &Case) -> io::Result<()> {
    let mut attributes: XmlAttributes = vec![("classname", attribute(&case.class)), ("name", attribute(&case.name))];
    attributes.extend(case.file.as_ref().map(|file| ("file", attribute(file))));
    attributes.push(("time", seconds(case.took_ms).into()));
    match &case.outcome {
        CaseOutcome::Passed(None) => {
            start(out, "testcase", attributes).write_empty()?;
            Ok(())
        }
        CaseOutcome::Passed(Some(text)) => {
            element(out, "testcase", attributes, |out| leaf(out, "system-out", Vec::new(), text))
        }
        CaseOutcome::Failed { kind, message, body } => element(out, "testcase", attributes, |out| {
            leaf(out, "failure", vec![("message", attribute(message)), ("type", attribute(kind))], body)
        }),
        CaseOutcome::Error { kind, message } => element(out, "testcase", attributes, |out| {
            leaf(out, "error", vec![("message", attribute(message)), ("type", attribute(kind))], "")
        }),
        CaseOutcome::Skipped(message) => {
            element(out, "testcase", attributes, |out| leaf(out, "skipped", vec![("message", attribute(message))], ""))
        }
    }
}

fn element(
    out: &mut XmlWriter,
    name: &'static str,
    attributes: XmlAttributes,
    inner: impl FnOnce(&mut XmlWriter) -> io::Result<()>,
) -> io::Result<()> {
    start(out, name, attributes).write_inner_content(inner)?;
    Ok(())
}

fn leaf(out: &mut XmlWriter, name: &'static str, attributes: XmlAttributes, text: &str) -> io::Result<()> {
    let element = start(out, name, attributes);
    if text.is_empty() {
        element.write_empty()?;
    } else {
        let text = sanitize(text);
        element.write_text_content(BytesText::from_escaped(partial_escape(text.as_str())))?;
    }
    Ok(())
}

fn start<'a>(out: &'a mut XmlWriter, name: &'static str, attributes: XmlAttributes) -> ElementWriter<'a, Vec<u8>> {
    out.create_element(name).with_attributes(attributes)
}

/// The text as one line for an attribute.
fn attribute(text: &str) -> Cow<'static, str> {
    Cow::Owned(shorten(one_line(&sanitize(text)), NAME))
}

/// Replaces control characters and noncharacters, which XML cannot represent even as references.
fn sanitize(text: &str) -> String {
    let is_noncharacter = |c: char| matches!(c, '\u{fffe}' | '\u{ffff}');
    visible(text).chars().map(|c| if is_noncharacter(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}
