//! The findings pane: every finding of a loop with its state, sources and history.

use ratatui::style::Style;
use ratatui::text::Line;
use signoff_core::ledger::FindingState;
use signoff_core::merge::MergedReview;

use super::reviews::place;
use crate::fit::{columns, count, cut, pad, shorten, wrap};
use crate::show::{LedgerLine, TaskReport};
use crate::tui::canvas::{Canvas, Theme, span};
use crate::tui::list::Navigation;

/// Maximum number of lines of a text.
const TEXT: usize = 12;

/// The selection of the pane. It stays on the same finding when others are added.
#[derive(Debug, Default)]
pub struct Findings {
    chosen: Option<String>,
    top: usize,
    page: usize,
}

impl Findings {
    fn position(&self, report: &TaskReport) -> usize {
        let chosen = self.chosen.as_deref();
        report.ledger.iter().position(|line| Some(line.finding.id.as_str()) == chosen).unwrap_or(0)
    }

    pub fn chosen<'r>(&self, report: &'r TaskReport) -> Option<&'r LedgerLine> {
        report.ledger.get(self.position(report))
    }

    pub fn step(&mut self, step: Navigation, report: &TaskReport) {
        let (at, last) = (self.position(report), report.ledger.len().saturating_sub(1));
        let to = match step {
            Navigation::Up => at.saturating_sub(1),
            Navigation::Down => at + 1,
            Navigation::PageUp => at.saturating_sub(self.page.max(1)),
            Navigation::PageDown => at + self.page.max(1),
            Navigation::First => 0,
            Navigation::Last => last,
        };
        self.chosen = report.ledger.get(to.min(last)).map(|line| line.finding.id.clone());
    }

    pub fn draw(&mut self, canvas: &mut Canvas<'_>, report: &TaskReport, theme: Theme) {
        if report.ledger.is_empty() {
            canvas.line(0, &Line::from(span("nothing was found yet", theme.faint())));
            return;
        }
        let (width, height) = (canvas.width(), canvas.height());
        let at = self.position(report);
        let open = report.ledger.iter().filter(|line| line.state == FindingState::Open).count();
        let mut lines = Vec::new();
        let mut chosen = 0..0;
        for (index, line) in report.ledger.iter().enumerate() {
            if index == 0 && open > 0 {
                lines.push(Line::from(span(count(open as u64, "open finding"), theme.bold())));
            } else if index == open {
                lines.push(Line::from(span(format!("{} settled", report.ledger.len() - open), theme.bold())));
            }
            let from = lines.len();
            lines.push(finding_line(line, index == at, theme, width));
            if index == at {
                lines.extend(details(line, report, theme, width));
                chosen = from..lines.len();
            }
        }
        self.page = (height / 2).max(1);
        // Show the selected finding completely if it fits, and at least its first line.
        self.top = self.top.max(chosen.end.saturating_sub(height)).min(chosen.start);
        self.top = self.top.min(lines.len().saturating_sub(height));
        canvas.lines(lines.iter().skip(self.top));
    }
}

/// `> open     critical   src/auth.rs:12 missing input validation`.
fn finding_line(line: &LedgerLine, chosen: bool, theme: Theme, width: usize) -> Line<'static> {
    let finding = &line.finding;
    let base = if chosen { theme.bold() } else { Style::new() };
    let state = pad(&line.state.words(), 12);
    let severity = pad(finding.severity.as_str(), 9);
    let place = place(finding.file.as_deref(), finding.line);
    let room = width.saturating_sub(2 + columns(&state) + 1 + columns(&severity) + 1);
    Line::from(vec![
        span(if chosen { "> " } else { "  " }, base),
        span(format!("{state} "), theme.finding_state(line.state)),
        span(format!("{severity} "), theme.severity(finding.severity)),
        span(cut(&format!("{place}{}", finding.description), room), base),
    ])
}

/// Details of the selected finding.
fn details(line: &LedgerLine, report: &TaskReport, theme: Theme, width: usize) -> Vec<Line<'static>> {
    let finding = &line.finding;
    let mut texts = vec![(finding.description.clone(), Style::new())];
    let by = finding.sources.join(", ");
    texts.push((format!("{} {}, found by {by}", finding.id, finding.kind), theme.faint()));
    texts.extend(finding.requirement.iter().map(|text| (format!("asked for: {text}"), Style::new())));
    texts.extend(finding.suggestion.iter().map(|text| (format!("try: {text}"), Style::new())));
    let seen: Vec<_> = line.seen.iter().map(|seen| format!("{} {}", seen.phase, seen.cycle)).collect();
    texts.push((format!("reported in {}", seen.join(", ")), theme.faint()));
    texts.extend(line.claims.iter().map(|one| {
        let why = if one.evidence.is_empty() { String::new() } else { format!(": {}", one.evidence) };
        (format!("the fixer says {}{why}", one.claim.replace('_', " ")), theme.faint())
    }));
    texts.extend(line.decisions.iter().map(|one| {
        let why = if one.evidence.is_empty() { String::new() } else { format!(": {}", one.evidence) };
        (format!("{} by {}{why}", one.state.words(), one.by), theme.finding_state(one.state))
    }));
    let merged = report.cycles.last().map(|cycle| &cycle.merged);
    texts.extend(merged.into_iter().flat_map(|merged| related(merged, &finding.id)).map(|text| (text, theme.faint())));
    let room = width.saturating_sub(6);
    let lines = texts.into_iter().flat_map(|(text, style)| {
        wrap(&text, room, TEXT)
            .into_iter()
            .map(move |line| Line::from(span(shorten(format!("      {line}"), width), style)))
    });
    lines.collect()
}

/// Related and contradicting findings of other reviewers.
fn related(merged: &MergedReview, id: &str) -> Vec<String> {
    let is_it = |index: usize| merged.issues.get(index).is_some_and(|issue| issue.finding.id.as_str() == id);
    let name = |index: usize| merged.issues.get(index).map(|issue| issue.finding.id.to_string()).unwrap_or_default();
    let groups = merged.groups.iter().filter(|group| group.issues.iter().any(|index| is_it(*index)));
    let related = groups.map(|group| {
        let others: Vec<_> = group.issues.iter().filter(|index| !is_it(**index)).map(|index| name(*index)).collect();
        format!("close to {}", others.join(", "))
    });
    let conflicts = merged.conflicts.iter().filter_map(|conflict| {
        let other = if is_it(conflict.a) { conflict.b } else { conflict.a };
        (is_it(conflict.a) || is_it(conflict.b)).then(|| format!("contradicts {}: {}", name(other), conflict.about))
    });
    related.chain(conflicts).collect()
}
