//! What a task changed, as a diff: coloured where it is looked at, with findings at their lines.

use std::collections::BTreeMap;
use std::ops::Range;

use ratatui::text::{Line, Span};

use super::colour::Reader;
use super::reviews::place;
use super::scroll::Page;
use crate::fit::cut;
use crate::show::Report;
use crate::tui::ink::Ink;
use crate::tui::sheet::{Sheet, clean, span};

/// How far back in a piece of a file the colours are made from: nobody waits for what they do not see.
const BEFORE: usize = 400;

/// What a line of a diff is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Hunk,
    Same,
    Added,
    Removed,
    Other,
    /// A finding, by its place in the ledger.
    Finding(usize),
}

#[derive(Debug, Clone)]
struct DiffLine {
    kind: Kind,
    /// Where its text is in the patch, without its sign.
    text: Range<usize>,
    /// Its number in the new file.
    number: Option<u32>,
    /// The index of its file.
    file: usize,
}

/// A diff, read once; the lines that were shown are kept in colours.
#[derive(Debug, Default)]
pub struct Diff {
    patch: String,
    stat: String,
    files: Vec<String>,
    read: Vec<DiffLine>,
    /// The lines with the findings between them.
    shown: Vec<DiffLine>,
    coloured: BTreeMap<usize, Vec<Span<'static>>>,
    pub page: Page,
}

impl Diff {
    pub fn of(patch: String, stat: &str) -> Self {
        let (files, read) = read(&patch);
        let stat = stat.lines().last().map(|line| cut(line, 200)).unwrap_or_default();
        Self { shown: read.clone(), patch, stat, files, read, ..Self::default() }
    }

    /// Puts findings beneath the lines that they are about; those about other lines beneath the name of their file.
    pub fn mark(&mut self, report: Option<&Report>) {
        self.coloured.clear();
        let mut marks: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, line) in report.into_iter().flat_map(|report| report.ledger.iter().enumerate()) {
            let Some(file) = &line.finding.file else { continue };
            let Some(file) = self.files.iter().position(|name| name == file) else { continue };
            let about =
                |one: &DiffLine| one.file == file && one.number.is_some() && one.number == line.finding.line;
            let name = |one: &DiffLine| one.file == file && one.kind == Kind::File;
            let at = self.read.iter().position(about).or_else(|| self.read.iter().position(name));
            marks.entry(at.unwrap_or(0)).or_default().push(index);
        }
        self.shown.clear();
        for (at, line) in self.read.iter().enumerate() {
            self.shown.push(line.clone());
            let found = marks.remove(&at).into_iter().flatten();
            self.shown.extend(found.map(|index| DiffLine {
                kind: Kind::Finding(index),
                number: None,
                text: 0..0,
                file: line.file,
            }));
        }
    }

    pub fn draw(&mut self, sheet: &mut Sheet<'_>, report: Option<&Report>, ink: Ink) {
        if self.read.is_empty() {
            sheet.line(0, &Line::from(span("nothing was changed", ink.faint())));
            return;
        }
        sheet.line(0, &Line::from(span(self.stat.clone(), ink.bold())));
        let mut body = sheet.part(1, usize::MAX);
        let first = self.page.first(self.shown.len(), body.height());
        for y in 0..body.height().min(self.shown.len() - first) {
            let line = self.line(first + y, report, ink, body.width());
            body.line(y, &line);
        }
    }

    fn line(&mut self, at: usize, report: Option<&Report>, ink: Ink, width: usize) -> Line<'static> {
        let line = self.shown[at].clone();
        let text = self.patch.get(line.text.clone()).unwrap_or_default();
        let number = line.number.map_or_else(|| "     ".to_owned(), |number| format!("{number:>5}"));
        let signed = |sign: &'static str, style, code: Vec<Span<'static>>| {
            let mut spans = vec![span(format!("{number} "), ink.faint()), span(sign, style)];
            spans.extend(code);
            Line::from(spans)
        };
        match line.kind {
            Kind::File => {
                let name = self.files.get(line.file).filter(|name| !name.is_empty());
                Line::from(span(clean(name.map_or(text, String::as_str)), ink.bold().patch(ink.warning())))
            }
            Kind::Hunk | Kind::Other => Line::from(span(clean(text), ink.faint())),
            Kind::Finding(index) => finding(report, index, ink, width),
            Kind::Same => signed(" ", ink.faint(), self.code(at, ink)),
            Kind::Added => signed("+", ink.good().patch(ink.bold()), self.code(at, ink)),
            Kind::Removed => signed("-", ink.bad().patch(ink.bold()), self.code(at, ink)),
        }
    }

    /// The code of a line, in colours where there are some.
    fn code(&mut self, at: usize, ink: Ink) -> Vec<Span<'static>> {
        if ink == Ink::Plain {
            return vec![Span::raw(clean(&self.patch[self.shown[at].text.clone()]))];
        }
        if let Some(known) = self.coloured.get(&at) {
            return known.clone();
        }
        self.colour(at);
        self.coloured.get(&at).cloned().unwrap_or_default()
    }

    /// Colours the piece around a line, up to that line and a little further: the next ones are looked at next.
    fn colour(&mut self, at: usize) {
        let is_head = |line: &DiffLine| matches!(line.kind, Kind::File | Kind::Hunk);
        let begin = self.shown[..at]
            .iter()
            .rposition(is_head)
            .map_or(0, |begin| begin + 1)
            .max(at.saturating_sub(BEFORE));
        let file = self.files.get(self.shown[at].file).map(String::as_str).unwrap_or_default();
        let (mut old, mut new) = (Reader::of(file), Reader::of(file));
        let lines = self.shown.iter().enumerate().skip(begin).take(at + 100 - begin);
        for (index, line) in lines.take_while(|(_, line)| !is_head(line)) {
            let text = &self.patch[line.text.clone()];
            let plain = || vec![Span::raw(clean(text))];
            let spans = match line.kind {
                Kind::Removed => old.as_mut().map_or_else(plain, |reader| reader.line(text)),
                Kind::Added => new.as_mut().map_or_else(plain, |reader| reader.line(text)),
                Kind::Same => {
                    old.as_mut().map(|reader| reader.line(text));
                    new.as_mut().map_or_else(plain, |reader| reader.line(text))
                }
                Kind::File | Kind::Hunk | Kind::Other | Kind::Finding(_) => continue,
            };
            self.coloured.insert(index, spans);
        }
    }
}

/// `      ^ critical, open: missing input validation`.
fn finding(report: Option<&Report>, index: usize, ink: Ink, width: usize) -> Line<'static> {
    let Some(line) = report.and_then(|report| report.ledger.get(index)) else { return Line::default() };
    let found = &line.finding;
    let place = place(None, found.line);
    let text = format!("{}, {}: {place}{}", found.severity, line.state.replace('_', " "), found.description);
    Line::from(span(format!("    ^ {}", cut(&text, width.saturating_sub(6))), ink.severity(found.severity)))
}

/// The names of the files, and the lines.
fn read(patch: &str) -> (Vec<String>, Vec<DiffLine>) {
    let (mut files, mut lines) = (Vec::<String>::new(), Vec::new());
    let (mut number, mut in_hunk, mut from) = (0, false, 0);
    for whole in patch.split_inclusive('\n') {
        let line = whole.trim_end_matches(['\n', '\r']);
        let start = from;
        from += whole.len();
        let (kind, skip) = kind(line, in_hunk);
        match kind {
            Kind::File => {
                in_hunk = false;
                files.push(name(line));
            }
            Kind::Hunk => (in_hunk, number) = (true, begins_at(line)),
            Kind::Same | Kind::Added | Kind::Removed | Kind::Other | Kind::Finding(_) => {}
        }
        if let (Some(file), Some(path)) = (files.last_mut(), line.strip_prefix("+++ b/").filter(|_| !in_hunk))
        {
            path.clone_into(file);
        }
        // What git says about a file besides its name and its lines is left out.
        if kind == Kind::Other && !in_hunk && is_about_a_file(line) {
            continue;
        }
        let counted = matches!(kind, Kind::Same | Kind::Added);
        let text = start + skip..start + line.len();
        lines.push(DiffLine {
            kind,
            text,
            number: counted.then_some(number),
            file: files.len().saturating_sub(1),
        });
        number += u32::from(counted);
    }
    (files, lines)
}

fn kind(line: &str, in_hunk: bool) -> (Kind, usize) {
    match line.as_bytes().first() {
        Some(b'd') if line.starts_with("diff --git ") => (Kind::File, "diff --git ".len()),
        Some(b'@') if line.starts_with("@@ ") => (Kind::Hunk, 0),
        Some(b'+') if in_hunk => (Kind::Added, 1),
        Some(b'-') if in_hunk => (Kind::Removed, 1),
        Some(b' ') if in_hunk => (Kind::Same, 1),
        None if in_hunk => (Kind::Same, 0),
        Some(_) | None => (Kind::Other, 0),
    }
}

fn is_about_a_file(line: &str) -> bool {
    ["index ", "--- ", "+++ "].iter().any(|start| line.starts_with(start))
}

/// The name in `diff --git a/NAME b/NAME`, as far as that can be told.
fn name(line: &str) -> String {
    line.rsplit_once(" b/").map(|(_, name)| name.to_owned()).unwrap_or_default()
}

/// The first line of the new file in `@@ -1,2 +3,4 @@`.
fn begins_at(line: &str) -> u32 {
    let new = line.split(' ').find_map(|part| part.strip_prefix('+'));
    new.and_then(|part| part.split(',').next()?.parse().ok()).unwrap_or(0)
}
