//! Parses XML answers with `quick-xml` into a small tree, with limits on depth and attributes.

use std::ops::Range;

use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Reader, XmlVersion, escape};

use super::Parsed;
use crate::review::{Violation, ViolationCode};

/// Maximum nesting depth.
const MAX_DEPTH: usize = 32;

/// Maximum attributes per element. Attribute names are compared pairwise.
const MAX_ATTRIBUTES: usize = 16;

/// The element whose children are all issues.
pub(super) const ISSUES: &str = "issues";

/// The elements of an answer. The text of other elements is added to their parent.
const KNOWN_ELEMENTS: &str = "verdict confidence issues issue location description requirement fix minor note \
    checked item summary";

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Element {
    pub name: String,
    pub attributes: Vec<(String, String)>,
    pub children: Vec<Element>,
    pub text: String,
    /// Whether it contained an unknown element.
    pub has_unknown_child: bool,
}

impl Element {
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.trim())
    }

    pub fn children(&self, name: &str) -> impl Iterator<Item = &Element> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// The text of the first child with this name, unless it is blank.
    pub fn child_text(&self, name: &str) -> Option<String> {
        let text = self.children(name).next()?.text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The text of the element and all its descendants.
    pub fn all_text(&self) -> String {
        let inner = self.children.iter().map(Self::all_text);
        let texts = std::iter::once(self.text.trim().to_owned()).chain(inner);
        texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
    }

    /// Whether it is one of the elements of an answer.
    pub fn is_known(&self) -> bool {
        KNOWN_ELEMENTS.split(' ').any(|known| known == self.name)
    }

    /// All descendants with this name, in order.
    pub fn descendants<'e>(&'e self, name: &'e str) -> Vec<&'e Element> {
        let mut found = Vec::new();
        for child in &self.children {
            if child.name == name {
                found.push(child);
            }
            found.extend(child.descendants(name));
        }
        found
    }
}

/// The result of parsing an element from the start of a text.
pub(super) struct ParsedXml {
    pub root: Parsed<Element>,
    /// The attributes of the root, also if the rest is broken.
    pub attributes: Vec<(String, String)>,
    /// Number of bytes read.
    pub length: usize,
    /// Whether the element is broken and the text after it was not searched. An answer may be hidden there.
    pub skipped_rest: bool,
}

/// The root elements of a review.
const ROOTS: [&str; 2] = ["spec-review", "code-review"];

/// How often a text may be parsed again because of broken elements.
const MAX_REREADS: usize = 16;

/// Every outermost review element of a text with its offset, complete or broken.
///
/// A broken element may only be the mention of a tag, so elements that begin inside it are parsed too. Linear: an
/// element breaks at the next one, and those that read past it share a budget.
pub(super) fn scan(text: &str) -> impl Iterator<Item = (usize, ParsedXml)> {
    let mut from = 0;
    let mut budget = text.len().saturating_mul(MAX_REREADS);
    starts(text).into_iter().filter_map(move |start| {
        if start < from {
            return None;
        }
        let mut parsed = read(&text[start..], start);
        let truncated = |violation: &Violation| violation.code == ViolationCode::Truncated;
        let cost = match &parsed.root {
            Err(violation) if truncated(violation) => text.len() - start,
            Ok(_) | Err(_) => parsed.length,
        };
        parsed.skipped_rest = parsed.root.is_err() && cost > budget;
        if parsed.root.is_ok() {
            from = start + parsed.length;
        } else if parsed.skipped_rest {
            from = text.len();
        } else {
            budget -= cost;
        }
        Some((start, parsed))
    })
}

/// The ranges of the complete review elements of a text.
pub(super) fn complete_elements(text: &str) -> impl Iterator<Item = Range<usize>> {
    scan(text).filter(|(_, parsed)| parsed.root.is_ok()).map(|(start, parsed)| start..start + parsed.length)
}

/// The offsets of the opening tags of both roots, in order.
fn starts(text: &str) -> Vec<usize> {
    let opens = |root: &str, at: usize| {
        let rest = &text[at + 1 + root.len()..];
        rest.is_empty() || rest.starts_with(|c: char| c.is_whitespace() || matches!(c, '>' | '/'))
    };
    let mut starts: Vec<usize> = Vec::new();
    for root in ROOTS {
        let tag = format!("<{root}");
        starts.extend(text.match_indices(&tag).map(|(at, _)| at).filter(|at| opens(root, *at)));
    }
    starts.sort_unstable();
    starts
}

/// Parses the element at the start of `text`, which begins at `offset` of the message.
fn read(text: &str, offset: usize) -> ParsedXml {
    let mut builder = XmlBuilder { reader: Reader::from_str(text), offset, open: Vec::new(), attributes: Vec::new() };
    let root = builder.run();
    let length = usize::try_from(builder.reader.buffer_position()).unwrap_or(text.len()).min(text.len());
    ParsedXml { root, attributes: builder.attributes, length, skipped_rest: false }
}

struct XmlBuilder<'t> {
    reader: Reader<&'t [u8]>,
    offset: usize,
    open: Vec<Element>,
    attributes: Vec<(String, String)>,
}

impl XmlBuilder<'_> {
    fn run(&mut self) -> Parsed<Element> {
        loop {
            let event = self.reader.read_event().map_err(|error| self.syntax(&error))?;
            if let Some(root) = self.handle(event)? {
                return Ok(root);
            }
        }
    }

    fn handle(&mut self, event: Event<'_>) -> Parsed<Option<Element>> {
        match event {
            Event::Start(start) => self.start(&start).map(|()| None),
            Event::Empty(start) => self.start(&start).map(|()| self.end()),
            Event::End(_) => Ok(self.end()),
            Event::Text(text) => Ok(self.text(&text.xml10_content())),
            Event::CData(text) => Ok(self.text(&text.xml10_content())),
            Event::GeneralRef(reference) => self.resolve_entity(&reference).map(|text| self.text(&text)),
            Event::Comment(_) => Ok(None),
            Event::DocType(_) => Err(self.broken(ViolationCode::Malformed, "a document type is not allowed")),
            Event::Decl(_) | Event::PI(_) => {
                Err(self.broken(ViolationCode::Malformed, "a processing instruction is not allowed"))
            }
            Event::Eof => Err(self.broken(ViolationCode::Truncated, "it ends before its closing tag")),
        }
    }

    fn start(&mut self, start: &BytesStart<'_>) -> Parsed<()> {
        if self.open.len() >= MAX_DEPTH {
            return Err(self.broken(ViolationCode::TooDeep, "its elements are nested too deep"));
        }
        let name = start.name().as_ref().to_owned();
        if name.ends_with("-review") && !self.open.is_empty() {
            return Err(self.broken(ViolationCode::Malformed, "a second review begins before it ends"));
        }
        let attributes = self.attributes_of(start)?;
        if self.open.is_empty() {
            self.attributes.clone_from(&attributes);
        }
        self.open.push(Element { name, attributes, ..Element::default() });
        Ok(())
    }

    fn attributes_of(&self, start: &BytesStart<'_>) -> Parsed<Vec<(String, String)>> {
        let mut attributes = Vec::new();
        for attribute in start.attributes() {
            let attribute = attribute.map_err(|error| self.broken(ViolationCode::Malformed, &error.to_string()))?;
            if attributes.len() >= MAX_ATTRIBUTES {
                return Err(self.broken(ViolationCode::Malformed, "an element has too many attributes"));
            }
            let value = attribute.normalized_value(XmlVersion::Implicit1_0).map_err(|error| self.syntax(&error))?;
            attributes.push((attribute.key.as_ref().to_owned(), value.into_owned()));
        }
        Ok(attributes)
    }

    /// Closes the innermost element. Returns it if it was the root.
    fn end(&mut self) -> Option<Element> {
        let element = self.open.pop()?;
        let Some(parent) = self.open.last_mut() else { return Some(element) };
        if element.is_known() {
            parent.children.push(element);
            return None;
        }
        parent.has_unknown_child = true;
        let verdict = element.children("verdict").next().is_some();
        if parent.name == ISSUES || element.attribute("severity").is_some() || verdict {
            // An unknown element may be an issue or hold another verdict, so the review must see it.
            parent.children.push(element);
        } else {
            // Unknown markup inside a text becomes part of the text.
            parent.text.push_str(&element.text);
            parent.children.extend(element.children);
        }
        None
    }

    fn text(&mut self, text: &str) -> Option<Element> {
        if let Some(element) = self.open.last_mut() {
            element.text.push_str(text);
        }
        None
    }

    /// Resolves the five predefined entities and character references. No other entities are expanded.
    fn resolve_entity(&self, reference: &BytesRef<'_>) -> Parsed<String> {
        if let Some(character) = reference.resolve_char_ref().map_err(|error| self.syntax(&error))? {
            return Ok(character.to_string());
        }
        let known = escape::resolve_xml_entity(reference.as_ref());
        known.map(str::to_owned).ok_or_else(|| self.broken(ViolationCode::Malformed, "it uses an unknown entity"))
    }

    /// quick-xml reports syntax errors at the end of the text. Other errors can be anywhere.
    fn syntax(&self, error: &quick_xml::Error) -> Violation {
        let truncated = matches!(error, quick_xml::Error::Syntax(_));
        let code = if truncated { ViolationCode::Truncated } else { ViolationCode::Malformed };
        self.broken(code, &error.to_string())
    }

    fn broken(&self, code: ViolationCode, reason: &str) -> Violation {
        let at = usize::try_from(self.reader.buffer_position()).unwrap_or_default();
        let reason = super::candidates::clip(reason);
        Violation::new(code, self.offset + at, format!("the XML answer is broken: {reason}"))
    }
}
