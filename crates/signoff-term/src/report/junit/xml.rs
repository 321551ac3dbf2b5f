//! Suites and cases as XML.

use std::borrow::Cow;
use std::io;

use quick_xml::escape::partial_escape;
use quick_xml::events::{BytesDecl, BytesText, Event};
use quick_xml::writer::{ElementWriter, Writer};
use signoff_core::merge::render::plain_text::{escaped_xml, one_line, visible};

use crate::fit::shorten;

/// How long a name or a message may be: lists of failures show it in one line.
const NAME: usize = 240;

type Out = Writer<Vec<u8>>;
type Attributes = Vec<(&'static str, Cow<'static, str>)>;

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
    pub end: End,
}

/// How a case ended. What passed may say something all the same.
pub enum End {
    Passed(Option<String>),
    Failed { kind: String, message: String, body: String },
    Error { kind: String, message: String },
    Skipped(String),
}

/// The numbers that stand with a suite and with all of them.
#[derive(Default)]
struct Counts {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
    took_ms: u64,
}

impl Counts {
    fn of<'a>(cases: impl Iterator<Item = &'a Case>) -> Self {
        let mut counts = Self::default();
        for case in cases {
            counts.tests += 1;
            counts.took_ms += case.took_ms;
            match case.end {
                End::Passed(_) => {}
                End::Failed { .. } => counts.failures += 1,
                End::Error { .. } => counts.errors += 1,
                End::Skipped(_) => counts.skipped += 1,
            }
        }
        counts
    }

    fn attributes(&self) -> Attributes {
        let Self { tests, failures, errors, skipped, took_ms } = self;
        let numbers = [("tests", tests), ("failures", failures), ("errors", errors), ("skipped", skipped)];
        let numbers = numbers.map(|(name, number)| (name, number.to_string().into()));
        numbers.into_iter().chain([("time", seconds(*took_ms).into())]).collect()
    }
}

fn seconds(milliseconds: u64) -> String {
    format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000)
}

/// The document, with one line break at its end.
pub fn document(suites: &[Suite]) -> String {
    let mut out = Writer::new_with_indent(Vec::new(), b' ', 2);
    write(&mut out, suites).expect("writing to memory does not fail");
    escaped_xml(&String::from_utf8_lossy(&out.into_inner())) + "\n"
}

fn write(out: &mut Out, suites: &[Suite]) -> io::Result<()> {
    out.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let counts = Counts::of(suites.iter().flat_map(|suite| &suite.cases));
    let attributes = [("name", "signoff".into())].into_iter().chain(counts.attributes()).collect();
    element(out, "testsuites", attributes, |out| suites.iter().try_for_each(|one| suite(out, one)))
}

fn suite(out: &mut Out, suite: &Suite) -> io::Result<()> {
    let counts = Counts::of(suite.cases.iter());
    let mut attributes: Attributes = vec![("name", named(&suite.name))];
    attributes.extend(counts.attributes());
    attributes.extend(suite.timestamp.as_ref().map(|at| ("timestamp", named(at))));
    element(out, "testsuite", attributes, |out| {
        if !suite.properties.is_empty() {
            element(out, "properties", Vec::new(), |out| {
                suite.properties.iter().try_for_each(|(name, value)| {
                    start(out, "property", vec![("name", named(name)), ("value", named(value))])
                        .write_empty()?;
                    Ok(())
                })
            })?;
        }
        suite.cases.iter().try_for_each(|one| case(out, one))
    })
}

fn case(out: &mut Out, case: &Case) -> io::Result<()> {
    let mut attributes: Attributes = vec![("classname", named(&case.class)), ("name", named(&case.name))];
    attributes.extend(case.file.as_ref().map(|file| ("file", named(file))));
    attributes.push(("time", seconds(case.took_ms).into()));
    match &case.end {
        End::Passed(None) => {
            start(out, "testcase", attributes).write_empty()?;
            Ok(())
        }
        End::Passed(Some(text)) => {
            element(out, "testcase", attributes, |out| leaf(out, "system-out", Vec::new(), text))
        }
        End::Failed { kind, message, body } => element(out, "testcase", attributes, |out| {
            leaf(out, "failure", vec![("message", named(message)), ("type", named(kind))], body)
        }),
        End::Error { kind, message } => element(out, "testcase", attributes, |out| {
            leaf(out, "error", vec![("message", named(message)), ("type", named(kind))], "")
        }),
        End::Skipped(message) => element(out, "testcase", attributes, |out| {
            leaf(out, "skipped", vec![("message", named(message))], "")
        }),
    }
}

fn element(
    out: &mut Out,
    name: &'static str,
    attributes: Attributes,
    inner: impl FnOnce(&mut Out) -> io::Result<()>,
) -> io::Result<()> {
    start(out, name, attributes).write_inner_content(inner)?;
    Ok(())
}

fn leaf(out: &mut Out, name: &'static str, attributes: Attributes, text: &str) -> io::Result<()> {
    let element = start(out, name, attributes);
    if text.is_empty() {
        element.write_empty()?;
    } else {
        let text = carried(text);
        element.write_text_content(BytesText::from_escaped(partial_escape(text.as_str())))?;
    }
    Ok(())
}

fn start<'a>(out: &'a mut Out, name: &'static str, attributes: Attributes) -> ElementWriter<'a, Vec<u8>> {
    out.create_element(name).with_attributes(attributes)
}

/// One line that an attribute can hold.
fn named(text: &str) -> Cow<'static, str> {
    Cow::Owned(shorten(one_line(&carried(text)), NAME))
}

/// XML has no way to write control characters and those that are none, not even as references.
fn carried(text: &str) -> String {
    let is_none = |c: char| matches!(c, '\u{fffe}' | '\u{ffff}');
    visible(text).chars().map(|c| if is_none(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}
