//! Code in colours: what kind of word it is, in the sixteen colours that every terminal has and its user has chosen.

use std::sync::OnceLock;

use ratatui::style::{Color, Style};
use ratatui::text::Span;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxSet};

use crate::tui::sheet::{clean, span};

/// Longer lines are made by programs, and would take longer to understand than a frame may take.
const LONGEST: usize = 400;

/// The languages that are known. They are unpacked once, when the first diff is shown.
fn languages() -> &'static SyntaxSet {
    static LANGUAGES: OnceLock<SyntaxSet> = OnceLock::new();
    LANGUAGES.get_or_init(SyntaxSet::load_defaults_newlines)
}

/// Kinds of words, the more special ones first.
fn kinds() -> &'static [(Scope, Color)] {
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

/// Reads the lines of one text, one after the other.
pub struct Reader {
    state: ParseState,
    stack: ScopeStack,
}

impl Reader {
    /// One for the language of a file; none where it is not known.
    pub fn of(file: &str) -> Option<Self> {
        let name = file.rsplit('/').next().unwrap_or(file);
        let ending = name.rsplit('.').next().unwrap_or(name);
        // TypeScript is not among them; what it shares with JavaScript is most of it.
        let ending = if matches!(ending, "ts" | "tsx" | "jsx" | "mjs" | "cjs") { "js" } else { ending };
        let languages = languages();
        let syntax = languages
            .find_syntax_by_extension(ending)
            .or_else(|| languages.find_syntax_by_extension(name))?;
        Some(Self { state: ParseState::new(syntax), stack: ScopeStack::new() })
    }

    /// One line, cleaned and coloured.
    pub fn line(&mut self, line: &str) -> Vec<Span<'static>> {
        let line = format!("{}\n", clean(line));
        let ops = if line.len() > LONGEST { None } else { self.state.parse_line(&line, languages()).ok() };
        let Some(ops) = ops else { return vec![Span::raw(line.trim_end().to_owned())] };
        let (mut spans, mut from) = (Vec::new(), 0);
        for (at, op) in ops {
            self.push(&mut spans, &line[from..at]);
            from = at;
            // A stack that does not fit the language's own words only costs colours.
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
        let color = |scope: &Scope| kinds().iter().find(|(kind, _)| kind.is_prefix_of(*scope));
        let found = self.stack.as_slice().iter().rev().find_map(color);
        found.map_or_else(Style::new, |(_, color)| Style::new().fg(*color))
    }
}
