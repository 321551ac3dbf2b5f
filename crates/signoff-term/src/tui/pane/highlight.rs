//! Syntax highlighting with the sixteen colours of the terminal's palette.

use std::sync::OnceLock;

use ratatui::style::{Color, Style};
use ratatui::text::Span;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxSet};

use crate::tui::canvas::{sanitize, span};

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
