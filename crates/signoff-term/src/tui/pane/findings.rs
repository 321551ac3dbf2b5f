//! Every finding of a loop over all cycles: where it stands, who said so, and what became of it.

use ratatui::style::Style;
use ratatui::text::Line;
use signoff_core::merge::Merged;

use super::reviews::place;
use crate::fit::{columns, count, cut, pad, shorten, wrap};
use crate::show::{LedgerLine, Report};
use crate::tui::ink::Ink;
use crate::tui::list::Step;
use crate::tui::sheet::{Sheet, span};

/// How many lines a text may take.
const TEXT: usize = 12;

/// Which finding is chosen. It stays the same one when others come.
#[derive(Debug, Default)]
pub struct Findings {
    chosen: Option<String>,
    top: usize,
    page: usize,
}

impl Findings {
    fn position(&self, report: &Report) -> usize {
        let chosen = self.chosen.as_deref();
        report.ledger.iter().position(|line| Some(line.finding.id.as_str()) == chosen).unwrap_or(0)
    }

    pub fn chosen<'r>(&self, report: &'r Report) -> Option<&'r LedgerLine> {
        report.ledger.get(self.position(report))
    }

    pub fn step(&mut self, step: Step, report: &Report) {
        let (at, last) = (self.position(report), report.ledger.len().saturating_sub(1));
        let to = match step {
            Step::Up => at.saturating_sub(1),
            Step::Down => at + 1,
            Step::PageUp => at.saturating_sub(self.page.max(1)),
            Step::PageDown => at + self.page.max(1),
            Step::First => 0,
            Step::Last => last,
        };
        self.chosen = report.ledger.get(to.min(last)).map(|line| line.finding.id.clone());
    }

    pub fn draw(&mut self, sheet: &mut Sheet<'_>, report: &Report, ink: Ink) {
        if report.ledger.is_empty() {
            sheet.line(0, &Line::from(span("nothing was found yet", ink.faint())));
            return;
        }
        let (width, height) = (sheet.width(), sheet.height());
        let at = self.position(report);
        let open = report.ledger.iter().filter(|line| line.state == "open").count();
        let mut lines = Vec::new();
        let mut chosen = 0..0;
        for (index, line) in report.ledger.iter().enumerate() {
            if index == 0 && open > 0 {
                lines.push(Line::from(span(count(open as u64, "open finding"), ink.bold())));
            } else if index == open {
                lines.push(Line::from(span(format!("{} settled", report.ledger.len() - open), ink.bold())));
            }
            let from = lines.len();
            lines.push(one(line, index == at, ink, width));
            if index == at {
                lines.extend(about(line, report, ink, width));
                chosen = from..lines.len();
            }
        }
        self.page = (height / 2).max(1);
        // All of the chosen one is shown where there is room, and its first line in any case.
        self.top = self.top.max(chosen.end.saturating_sub(height)).min(chosen.start);
        self.top = self.top.min(lines.len().saturating_sub(height));
        sheet.lines(lines.iter().skip(self.top));
    }
}

/// `> open     critical   src/auth.rs:12 missing input validation`.
fn one(line: &LedgerLine, chosen: bool, ink: Ink, width: usize) -> Line<'static> {
    let finding = &line.finding;
    let base = if chosen { ink.bold() } else { Style::new() };
    let state = pad(&line.state.replace('_', " "), 12);
    let severity = pad(finding.severity, 9);
    let place = place(finding.file.as_deref(), finding.line);
    let room = width.saturating_sub(2 + columns(&state) + 1 + columns(&severity) + 1);
    Line::from(vec![
        span(if chosen { "> " } else { "  " }, base),
        span(format!("{state} "), ink.verdict(line.state)),
        span(format!("{severity} "), ink.severity(finding.severity)),
        span(cut(&format!("{place}{}", finding.description), room), base),
    ])
}

/// What is known of the chosen one.
fn about(line: &LedgerLine, report: &Report, ink: Ink, width: usize) -> Vec<Line<'static>> {
    let finding = &line.finding;
    let mut told = vec![(finding.description.clone(), Style::new())];
    let by = finding.sources.join(", ");
    told.push((format!("{} {}, found by {by}", finding.id, finding.kind), ink.faint()));
    told.extend(finding.requirement.iter().map(|text| (format!("asked for: {text}"), Style::new())));
    told.extend(finding.suggestion.iter().map(|text| (format!("try: {text}"), Style::new())));
    let seen: Vec<_> = line.seen.iter().map(|seen| format!("{} {}", seen.phase, seen.cycle)).collect();
    told.push((format!("reported in {}", seen.join(", ")), ink.faint()));
    told.extend(line.claims.iter().map(|one| {
        let why = if one.evidence.is_empty() { String::new() } else { format!(": {}", one.evidence) };
        (format!("the fixer says {}{why}", one.claim.replace('_', " ")), ink.faint())
    }));
    told.extend(line.decisions.iter().map(|one| {
        let why = if one.evidence.is_empty() { String::new() } else { format!(": {}", one.evidence) };
        (format!("{} by {}{why}", one.state.replace('_', " "), one.by), ink.verdict(one.state))
    }));
    let merged = report.cycles.last().map(|cycle| &cycle.merged);
    told.extend(
        merged.into_iter().flat_map(|merged| beside(merged, &finding.id)).map(|text| (text, ink.faint())),
    );
    let room = width.saturating_sub(6);
    let lines = told.into_iter().flat_map(|(text, style)| {
        wrap(&text, room, TEXT)
            .into_iter()
            .map(move |line| Line::from(span(shorten(format!("      {line}"), width), style)))
    });
    lines.collect()
}

/// What others said about the same lines.
fn beside(merged: &Merged, id: &str) -> Vec<String> {
    let is_it = |index: usize| merged.issues.get(index).is_some_and(|issue| issue.finding.id.as_str() == id);
    let name =
        |index: usize| merged.issues.get(index).map(|issue| issue.finding.id.to_string()).unwrap_or_default();
    let groups = merged.groups.iter().filter(|group| group.issues.iter().any(|index| is_it(*index)));
    let related = groups.map(|group| {
        let others: Vec<_> =
            group.issues.iter().filter(|index| !is_it(**index)).map(|index| name(*index)).collect();
        format!("close to {}", others.join(", "))
    });
    let conflicts = merged.conflicts.iter().filter_map(|conflict| {
        let other = if is_it(conflict.a) { conflict.b } else { conflict.a };
        (is_it(conflict.a) || is_it(conflict.b))
            .then(|| format!("contradicts {}: {}", name(other), conflict.about))
    });
    related.chain(conflicts).collect()
}
