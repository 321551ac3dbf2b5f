//! The diff pane: the changes of a task, highlighted on demand, with findings at their lines.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;

use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use signoff_core::patch::{HunkPosition, PatchLineKind, PatchMark, PatchReader};
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxSet};

use super::reviews::source_location;
use crate::fit::truncate_line;
use crate::show::TaskReport;
use crate::tui::canvas::{Canvas, Theme, sanitize, span};
use crate::tui::list::Scroll;

/// Maximum number of lines before a visible line that are parsed for highlighting.
const BEFORE: usize = 400;

#[derive(Debug, Clone)]
struct DiffLine {
    kind: PatchLineKind,
    /// The index in the ledger, if this line is a finding.
    finding: Option<usize>,
    /// The range of its text in the patch, without the sign.
    text: Range<usize>,
    /// Its number in the new file.
    number: Option<u32>,
    /// The index of its file.
    file: usize,
}

/// A parsed diff, with a cache of highlighted lines.
#[derive(Debug, Default)]
pub struct DiffPane {
    patch: String,
    stat: String,
    files: Vec<String>,
    lines: Vec<DiffLine>,
    /// The lines with the findings in between.
    shown: Vec<DiffLine>,
    coloured: BTreeMap<usize, Vec<Span<'static>>>,
    pub page: Scroll,
}

impl DiffPane {
    pub fn new(patch: String, stat: &str) -> Self {
        let (files, read) = parse(&patch);
        let stat = stat.lines().last().map(|line| truncate_line(line, 200)).unwrap_or_default();
        Self { shown: read.clone(), patch, stat, files, lines: read, ..Self::default() }
    }

    /// Inserts findings below their lines, or below the name of their file if the line is not in the diff.
    pub fn mark(&mut self, report: Option<&TaskReport>) {
        self.coloured.clear();
        let mut marks: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, line) in report.into_iter().flat_map(|report| report.ledger.iter().enumerate()) {
            let Some(file) = &line.finding.file else { continue };
            let Some(file) = self.files.iter().position(|name| name == file) else { continue };
            let about = |one: &DiffLine| one.file == file && one.number.is_some() && one.number == line.finding.line;
            let name = |one: &DiffLine| one.file == file && one.kind == PatchLineKind::File;
            let at = self.lines.iter().position(about).or_else(|| self.lines.iter().position(name));
            marks.entry(at.unwrap_or(0)).or_default().push(index);
        }
        self.shown.clear();
        for (at, line) in self.lines.iter().enumerate() {
            self.shown.push(line.clone());
            let found = marks.remove(&at).into_iter().flatten();
            self.shown.extend(found.map(|index| DiffLine {
                kind: PatchLineKind::Other,
                finding: Some(index),
                number: None,
                text: 0..0,
                file: line.file,
            }));
        }
    }

    pub fn draw(&mut self, canvas: &mut Canvas<'_>, report: Option<&TaskReport>, theme: Theme) {
        if self.lines.is_empty() {
            canvas.line(0, &Line::from(span("nothing was changed", theme.faint())));
            return;
        }
        canvas.line(0, &Line::from(span(self.stat.clone(), theme.bold())));
        let mut body = canvas.part(1, usize::MAX);
        let first = self.page.first(self.shown.len(), body.height());
        for y in 0..body.height().min(self.shown.len() - first) {
            let line = self.line(first + y, report, theme, body.width());
            body.line(y, &line);
        }
    }

    fn line(&mut self, at: usize, report: Option<&TaskReport>, theme: Theme, width: usize) -> Line<'static> {
        let line = self.shown[at].clone();
        if let Some(index) = line.finding {
            return finding(report, index, theme, width);
        }
        let text = self.patch.get(line.text.clone()).unwrap_or_default();
        let (sign, style) = match line.kind {
            PatchLineKind::File => {
                let name = self.files.get(line.file).filter(|name| !name.is_empty());
                let style = theme.bold().patch(theme.warning());
                return Line::from(span(sanitize(name.map_or(text, String::as_str)), style));
            }
            PatchLineKind::Content(PatchMark::Kept) => (" ", theme.faint()),
            PatchLineKind::Content(PatchMark::Added) => ("+", theme.good().patch(theme.bold())),
            PatchLineKind::Content(PatchMark::Removed) => ("-", theme.bad().patch(theme.bold())),
            PatchLineKind::Hunk | PatchLineKind::Header(_) | PatchLineKind::Content(_) | PatchLineKind::Other => {
                return Line::from(span(sanitize(text), theme.faint()));
            }
        };
        let number = line.number.map_or_else(|| "     ".to_owned(), |number| format!("{number:>5}"));
        let mut spans = vec![span(format!("{number} "), theme.faint()), span(sign, style)];
        spans.extend(self.code(at, theme));
        Line::from(spans)
    }

    /// The code of a line, highlighted if the theme has colours.
    fn code(&mut self, at: usize, theme: Theme) -> Vec<Span<'static>> {
        if theme == Theme::Plain {
            return vec![Span::raw(sanitize(&self.patch[self.shown[at].text.clone()]))];
        }
        if let Some(known) = self.coloured.get(&at) {
            return known.clone();
        }
        self.highlight(at);
        self.coloured.get(&at).cloned().unwrap_or_default()
    }

    /// Highlights the hunk from its start up to this line, and the next lines in advance.
    fn highlight(&mut self, at: usize) {
        let is_head = |line: &DiffLine| matches!(line.kind, PatchLineKind::File | PatchLineKind::Hunk);
        let begin =
            self.shown[..at].iter().rposition(is_head).map_or(0, |begin| begin + 1).max(at.saturating_sub(BEFORE));
        let file = self.files.get(self.shown[at].file).map(String::as_str).unwrap_or_default();
        let (mut old, mut new) = (Highlighter::for_file(file), Highlighter::for_file(file));
        let lines = self.shown.iter().enumerate().skip(begin).take(at + 100 - begin);
        for (index, line) in lines.take_while(|(_, line)| !is_head(line)) {
            let text = &self.patch[line.text.clone()];
            let plain = || vec![Span::raw(sanitize(text))];
            let PatchLineKind::Content(mark) = line.kind else { continue };
            let spans = match mark {
                PatchMark::Removed => old.as_mut().map_or_else(plain, |reader| reader.line(text)),
                PatchMark::Added => new.as_mut().map_or_else(plain, |reader| reader.line(text)),
                PatchMark::Kept => {
                    old.as_mut().map(|reader| reader.line(text));
                    new.as_mut().map_or_else(plain, |reader| reader.line(text))
                }
                PatchMark::Remark => continue,
            };
            self.coloured.insert(index, spans);
        }
    }
}

/// `      ^ critical, open: missing input validation`.
fn finding(report: Option<&TaskReport>, index: usize, theme: Theme, width: usize) -> Line<'static> {
    let Some(line) = report.and_then(|report| report.ledger.get(index)) else { return Line::default() };
    let found = &line.finding;
    let place = source_location(None, found.line);
    let text = format!("{}, {}: {place}{}", found.severity, line.state.label(), found.description);
    Line::from(span(format!("    ^ {}", truncate_line(&text, width.saturating_sub(6))), theme.severity(found.severity)))
}

/// Parses a patch into file names and lines. Skips git's headers, except for the file name.
fn parse(patch: &str) -> (Vec<String>, Vec<DiffLine>) {
    let (mut files, mut lines) = (Vec::<String>::new(), Vec::new());
    let (mut reader, mut position, mut from) = (PatchReader::default(), HunkPosition::default(), 0);
    for whole in patch.split_inclusive('\n') {
        let line = whole.trim_end_matches(['\n', '\r']);
        let start = from;
        from += whole.len();
        let (kind, prefix) = reader.read(line.as_bytes());
        let (mut text, mut number) = (start + prefix..start + line.len(), None);
        match kind {
            PatchLineKind::File => files.push(name(line)),
            PatchLineKind::Hunk => position = HunkPosition::parse(line).unwrap_or_default().0,
            PatchLineKind::Header("index " | "--- " | "+++ ") => {
                if let (Some(file), Some(path)) = (files.last_mut(), line.strip_prefix("+++ b/")) {
                    path.clone_into(file);
                }
                continue;
            }
            PatchLineKind::Header(_) | PatchLineKind::Content(PatchMark::Remark) => text.start = start,
            PatchLineKind::Content(mark) => number = position.advance(mark).1,
            PatchLineKind::Other => {}
        }
        lines.push(DiffLine { kind, finding: None, text, number, file: files.len().saturating_sub(1) });
    }
    (files, lines)
}

/// The name in `diff --git a/NAME b/NAME`; empty if it cannot be parsed.
fn name(line: &str) -> String {
    line.rsplit_once(" b/").map(|(_, name)| name.to_owned()).unwrap_or_default()
}

/// Maximum length of a highlighted line. Longer lines are generated code and take too long to parse.
const LONGEST: usize = 400;

/// The known languages. They are unpacked once, when the first diff is shown.
fn languages() -> &'static SyntaxSet {
    static LANGUAGES: OnceLock<SyntaxSet> = OnceLock::new();
    LANGUAGES.get_or_init(SyntaxSet::load_defaults_newlines)
}

/// Scopes and their colours, more specific ones first.
fn scope_colors() -> &'static [(Scope, Color)] {
    static KINDS: OnceLock<Vec<(Scope, Color)>> = OnceLock::new();
    let known = [
        ("comment", Color::DarkGray),
        ("string", Color::Green),
        ("constant", Color::Cyan),
        ("entity.name.function", Color::Blue),
        ("support.function", Color::Blue),
        ("entity.name", Color::Yellow),
        ("support", Color::Yellow),
        ("storage", Color::Magenta),
        ("keyword", Color::Magenta),
        ("markup.heading", Color::Blue),
    ];
    KINDS.get_or_init(|| {
        let known = known.into_iter().filter_map(|(name, color)| Some((Scope::new(name).ok()?, color)));
        known.collect()
    })
}

/// Highlights the lines of one file in order.
pub struct Highlighter {
    state: ParseState,
    stack: ScopeStack,
}

impl Highlighter {
    /// A highlighter for the language of a file, if it is known.
    pub fn for_file(file: &str) -> Option<Self> {
        let name = file.rsplit('/').next().unwrap_or(file);
        let ending = name.rsplit('.').next().unwrap_or(name);
        // There is no TypeScript syntax; JavaScript covers most of it.
        let ending = if matches!(ending, "ts" | "tsx" | "jsx" | "mjs" | "cjs") { "js" } else { ending };
        let languages = languages();
        let syntax = languages.find_syntax_by_extension(ending).or_else(|| languages.find_syntax_by_extension(name))?;
        Some(Self { state: ParseState::new(syntax), stack: ScopeStack::new() })
    }

    /// Cleans and highlights one line.
    pub fn line(&mut self, line: &str) -> Vec<Span<'static>> {
        let line = format!("{}\n", sanitize(line));
        let ops = if line.len() > LONGEST { None } else { self.state.parse_line(&line, languages()).ok() };
        let Some(ops) = ops else { return vec![Span::raw(line.trim_end().to_owned())] };
        let (mut spans, mut from) = (Vec::new(), 0);
        for (at, op) in ops {
            self.push(&mut spans, &line[from..at]);
            from = at;
            // A mismatched scope only affects the colours.
            let _ = self.stack.apply(&op);
        }
        self.push(&mut spans, &line[from..]);
        spans
    }

    fn push(&self, spans: &mut Vec<Span<'static>>, text: &str) {
        let text = text.trim_end_matches('\n');
        if !text.is_empty() {
            spans.push(span(text, self.style()));
        }
    }

    fn style(&self) -> Style {
        let color = |scope: &Scope| scope_colors().iter().find(|(kind, _)| kind.is_prefix_of(*scope));
        let found = self.stack.as_slice().iter().rev().find_map(color);
        found.map_or_else(Style::new, |(_, color)| Style::new().fg(*color))
    }
}
