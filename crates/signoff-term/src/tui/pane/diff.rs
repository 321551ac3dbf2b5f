//! The diff pane: the changes of a task, highlighted on demand, with findings at their lines.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use signoff_core::patch::{PatchFile, PatchMark};
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxSet};

use super::reviews::source_location;
use crate::fit::truncate_line;
use crate::show::TaskReport;
use crate::tui::canvas::{Canvas, Theme, sanitize, span};
use crate::tui::list::Scroll;

/// Maximum number of lines before a visible line that are parsed for highlighting.
const BEFORE: usize = 400;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiffLineKind {
    File,
    Header,
    Hunk,
    Content(PatchMark),
    Finding,
}

#[derive(Debug, Clone)]
struct DiffLine {
    kind: DiffLineKind,
    /// The index in the ledger, if this line is a finding.
    finding: Option<usize>,
    /// Its text, without the sign.
    text: String,
    /// Its number in the new file.
    number: Option<u32>,
    /// The index of its file.
    file: usize,
}

/// A parsed diff, with a cache of highlighted lines.
#[derive(Debug, Default)]
pub struct DiffPane {
    stat: String,
    files: Vec<String>,
    lines: Vec<DiffLine>,
    /// The lines with the findings in between.
    shown: Vec<DiffLine>,
    coloured: BTreeMap<usize, Vec<Span<'static>>>,
    pub scroll: Scroll,
}

impl DiffPane {
    pub fn new(patch: &str, stat: &str) -> Self {
        let (files, lines) = paths_and_lines(patch);
        let stat = stat.lines().last().map(|line| truncate_line(line, 200)).unwrap_or_default();
        Self { shown: lines.clone(), stat, files, lines, ..Self::default() }
    }

    /// Inserts findings below their lines, or below the name of their file if the line is not in the diff.
    pub fn mark(&mut self, report: Option<&TaskReport>) {
        self.coloured.clear();
        let mut marks: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, line) in report.into_iter().flat_map(|report| report.ledger.iter().enumerate()) {
            let Some(file) = &line.finding.file else { continue };
            let Some(file) = self.files.iter().position(|name| name == file) else { continue };
            let on_line = |diff_line: &DiffLine| {
                diff_line.file == file && diff_line.number.is_some() && diff_line.number == line.finding.line
            };
            let is_file_name = |diff_line: &DiffLine| diff_line.file == file && diff_line.kind == DiffLineKind::File;
            let at = self.lines.iter().position(on_line).or_else(|| self.lines.iter().position(is_file_name));
            marks.entry(at.unwrap_or(0)).or_default().push(index);
        }
        self.shown.clear();
        for (at, line) in self.lines.iter().enumerate() {
            self.shown.push(line.clone());
            let found = marks.remove(&at).into_iter().flatten();
            self.shown.extend(found.map(|index| DiffLine {
                kind: DiffLineKind::Finding,
                finding: Some(index),
                number: None,
                text: String::new(),
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
        let first = self.scroll.first(self.shown.len(), body.height());
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
        let (sign, style) = match line.kind {
            DiffLineKind::File => {
                return Line::from(span(sanitize(&line.text), theme.bold().patch(theme.warning())));
            }
            DiffLineKind::Content(PatchMark::Kept) => (" ", theme.faint()),
            DiffLineKind::Content(PatchMark::Added) => ("+", theme.good().patch(theme.bold())),
            DiffLineKind::Content(PatchMark::Removed) => ("-", theme.bad().patch(theme.bold())),
            DiffLineKind::Content(PatchMark::Remark) => {
                return Line::from(span(format!("\\{}", sanitize(&line.text)), theme.faint()));
            }
            DiffLineKind::Hunk | DiffLineKind::Header | DiffLineKind::Finding => {
                return Line::from(span(sanitize(&line.text), theme.faint()));
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
            return vec![Span::raw(sanitize(&self.shown[at].text))];
        }
        if let Some(spans) = self.coloured.get(&at) {
            return spans.clone();
        }
        self.highlight(at);
        self.coloured.get(&at).cloned().unwrap_or_default()
    }

    /// Highlights the hunk from its start up to this line, and the next lines in advance.
    fn highlight(&mut self, at: usize) {
        let is_head = |line: &DiffLine| matches!(line.kind, DiffLineKind::File | DiffLineKind::Hunk);
        let begin =
            self.shown[..at].iter().rposition(is_head).map_or(0, |begin| begin + 1).max(at.saturating_sub(BEFORE));
        let file = self.files.get(self.shown[at].file).map(String::as_str).unwrap_or_default();
        let (mut old, mut new) = (Highlighter::for_file(file), Highlighter::for_file(file));
        let lines = self.shown.iter().enumerate().skip(begin).take(at + 100 - begin);
        for (index, line) in lines.take_while(|(_, line)| !is_head(line)) {
            let text = &line.text;
            let plain = || vec![Span::raw(sanitize(text))];
            let DiffLineKind::Content(mark) = line.kind else { continue };
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
    let location = source_location(None, found.line);
    let text = format!("{}, {}: {location}{}", found.severity, line.state.label(), found.description);
    Line::from(span(format!("    ^ {}", truncate_line(&text, width.saturating_sub(6))), theme.severity(found.severity)))
}

/// The paths and the lines of a patch. Skips git's headers that repeat the path or name blobs.
fn paths_and_lines(patch: &str) -> (Vec<String>, Vec<DiffLine>) {
    let (mut paths, mut lines) = (Vec::new(), Vec::new());
    for (index, file) in PatchFile::parse_all(patch).into_iter().enumerate() {
        let line =
            |kind, text: &str, number| DiffLine { kind, finding: None, text: text.to_owned(), number, file: index };
        lines.push(line(DiffLineKind::File, &file.path, None));
        lines.extend(file.headers.iter().map(|header| line(DiffLineKind::Header, header, None)));
        for hunk in &file.hunks {
            lines.push(line(DiffLineKind::Hunk, hunk.header, None));
            lines.extend(
                hunk.lines
                    .iter()
                    .map(|hunk_line| line(DiffLineKind::Content(hunk_line.mark), hunk_line.text, hunk_line.new)),
            );
        }
        paths.push(file.path);
    }
    (paths, lines)
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
    let colors = [
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
        let colors = colors.into_iter().filter_map(|(name, color)| Some((Scope::new(name).ok()?, color)));
        colors.collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_paths_are_unquoted() {
        let path = r#"\303\244.txt"#;
        let patch = format!(
            "diff --git \"a/{path}\" \"b/{path}\"\nindex 1..2 100644\n--- \"a/{path}\"\n+++ \"b/{path}\"\n@@ -3 +3 @@\n-a\n+b\n"
        );
        let (paths, lines) = paths_and_lines(&patch);
        assert_eq!(paths, ["ä.txt"]);
        assert!(lines.iter().any(|line| line.file == 0 && line.number == Some(3) && line.text == "b"));
    }
}
