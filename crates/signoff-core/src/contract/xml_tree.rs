//! XML as reviewers write it: read by `quick-xml`, kept as a small tree, bounded in depth and attributes.

use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Reader, XmlVersion, escape};

use crate::review::{Violation, ViolationCode};

/// Answers nest less than this.
const MAX_DEPTH: usize = 32;

/// No element of an answer has more; comparing attribute names pairwise must stay cheap.
const MAX_ATTRIBUTES: usize = 16;

/// The element whose every part is an issue.
pub(super) const ISSUES: &str = "issues";

/// The elements an answer is made of. The text of others belongs to what is around them.
const KNOWN: [&str; 13] = [
    "verdict",
    "confidence",
    "issues",
    "issue",
    "location",
    "description",
    "requirement",
    "fix",
    "minor",
    "note",
    "checked",
    "item",
    "summary",
];

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Element {
    pub name: String,
    pub attributes: Vec<(String, String)>,
    pub children: Vec<Element>,
    pub text: String,
    /// Whether there was an element in it that no answer is made of.
    pub strange: bool,
}

impl Element {
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.trim())
    }

    pub fn children(&self, name: &str) -> impl Iterator<Item = &Element> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// The text of the first child of that name, unless it is blank.
    pub fn child_text(&self, name: &str) -> Option<String> {
        let text = self.children(name).next()?.text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The text of the element and of everything in it.
    pub fn all_text(&self) -> String {
        let inner = self.children.iter().map(Self::all_text);
        let texts = std::iter::once(self.text.trim().to_owned()).chain(inner);
        texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
    }

    /// Whether it is one of the elements an answer is made of.
    pub fn is_known(&self) -> bool {
        KNOWN.contains(&self.name.as_str())
    }

    /// All elements of that name below this one, in order.
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

/// One attempt to read an element from the start of a text.
pub(super) struct Attempt {
    pub root: Result<Element, Violation>,
    /// The root's attributes, also where the rest breaks off.
    pub attributes: Vec<(String, String)>,
    /// How far it was read.
    pub length: usize,
    /// Nothing after it was looked at, although it broke: an answer may be hidden there.
    pub hides: bool,
}

/// The elements of a review.
const ROOTS: [&str; 2] = ["spec-review", "code-review"];

/// How often a text may be read again for the sake of what broken elements swallowed.
const REREADS: usize = 16;

/// Every outermost review element of a text with its offset, whole or broken.
///
/// A broken one may be the mere mention of a tag, so what begins inside it is read as well. Linear: an
/// element breaks at the next one, and those that read past it share a budget.
pub(super) fn scan(text: &str) -> impl Iterator<Item = (usize, Attempt)> {
    let mut from = 0;
    let mut budget = text.len().saturating_mul(REREADS);
    starts(text).into_iter().filter_map(move |start| {
        if start < from {
            return None;
        }
        let mut attempt = read(&text[start..], start);
        let truncated = |violation: &Violation| violation.code == ViolationCode::Truncated;
        let cost = match &attempt.root {
            Err(violation) if truncated(violation) => text.len() - start,
            Ok(_) | Err(_) => attempt.length,
        };
        attempt.hides = attempt.root.is_err() && cost > budget;
        if attempt.root.is_ok() {
            from = start + attempt.length;
        } else if attempt.hides {
            from = text.len();
        } else {
            budget -= cost;
        }
        Some((start, attempt))
    })
}

/// Where an opening tag of either root begins, in order.
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

/// Reads the element that starts `text`, whose first byte is at `offset` of the message.
fn read(text: &str, offset: usize) -> Attempt {
    let mut builder =
        Builder { reader: Reader::from_str(text), offset, open: Vec::new(), attributes: Vec::new() };
    let root = builder.run();
    let length = usize::try_from(builder.reader.buffer_position()).unwrap_or(text.len()).min(text.len());
    Attempt { root, attributes: builder.attributes, length, hides: false }
}

struct Builder<'t> {
    reader: Reader<&'t [u8]>,
    offset: usize,
    open: Vec<Element>,
    attributes: Vec<(String, String)>,
}

impl Builder<'_> {
    fn run(&mut self) -> Result<Element, Violation> {
        loop {
            let event = self.reader.read_event().map_err(|error| self.syntax(&error))?;
            if let Some(root) = self.take(event)? {
                return Ok(root);
            }
        }
    }

    fn take(&mut self, event: Event<'_>) -> Result<Option<Element>, Violation> {
        match event {
            Event::Start(start) => {
                self.start(&start)?;
                Ok(None)
            }
            Event::Empty(start) => {
                self.start(&start)?;
                Ok(self.end())
            }
            Event::End(_) => Ok(self.end()),
            Event::Text(text) => Ok(self.text(&text.xml10_content())),
            Event::CData(text) => Ok(self.text(&text.xml10_content())),
            Event::GeneralRef(reference) => {
                let text = self.resolved(&reference)?;
                Ok(self.text(&text))
            }
            Event::Comment(_) => Ok(None),
            Event::DocType(_) => Err(self.broken(ViolationCode::Malformed, "a document type is not allowed")),
            Event::Decl(_) | Event::PI(_) => {
                Err(self.broken(ViolationCode::Malformed, "a processing instruction is not allowed"))
            }
            Event::Eof => Err(self.broken(ViolationCode::Truncated, "it ends before its closing tag")),
        }
    }

    fn start(&mut self, start: &BytesStart<'_>) -> Result<(), Violation> {
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

    fn attributes_of(&self, start: &BytesStart<'_>) -> Result<Vec<(String, String)>, Violation> {
        let mut attributes = Vec::new();
        for attribute in start.attributes() {
            let attribute =
                attribute.map_err(|error| self.broken(ViolationCode::Malformed, &error.to_string()))?;
            if attributes.len() >= MAX_ATTRIBUTES {
                return Err(self.broken(ViolationCode::Malformed, "an element has too many attributes"));
            }
            let value =
                attribute.normalized_value(XmlVersion::Implicit1_0).map_err(|error| self.syntax(&error))?;
            attributes.push((attribute.key.as_ref().to_owned(), value.into_owned()));
        }
        Ok(attributes)
    }

    /// Closes the innermost element. Returns it if it was the root.
    fn end(&mut self) -> Option<Element> {
        let element = self.open.pop()?;
        let Some(parent) = self.open.last_mut() else { return Some(element) };
        if KNOWN.contains(&element.name.as_str()) {
            parent.children.push(element);
            return None;
        }
        parent.strange = true;
        let verdict = element.children("verdict").next().is_some();
        if parent.name == ISSUES || element.attribute("severity").is_some() || verdict {
            // Not ours, but it may be an issue or hold another verdict: whoever reads the review must see it.
            parent.children.push(element);
        } else {
            // Markup inside a text stays part of the text.
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

    /// The five predefined entities and numbered characters. There are no others to expand.
    fn resolved(&self, reference: &BytesRef<'_>) -> Result<String, Violation> {
        if let Some(character) = reference.resolve_char_ref().map_err(|error| self.syntax(&error))? {
            return Ok(character.to_string());
        }
        let known = escape::resolve_xml_entity(reference.as_ref());
        known
            .map(str::to_owned)
            .ok_or_else(|| self.broken(ViolationCode::Malformed, "it uses an unknown entity"))
    }

    /// Grammar errors are what the reader meets at the end of the text; the others can be anywhere.
    fn syntax(&self, error: &quick_xml::Error) -> Violation {
        let truncated = matches!(error, quick_xml::Error::Syntax(_));
        let code = if truncated { ViolationCode::Truncated } else { ViolationCode::Malformed };
        self.broken(code, &error.to_string())
    }

    fn broken(&self, code: ViolationCode, reason: &str) -> Violation {
        let at = usize::try_from(self.reader.buffer_position()).unwrap_or_default();
        let reason = super::binding::clip(reason);
        Violation::new(code, self.offset + at, format!("the XML answer is broken: {reason}"))
    }
}
