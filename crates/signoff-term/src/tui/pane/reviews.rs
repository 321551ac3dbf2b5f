//! The reviews pane: the reviews of one cycle, side by side; and the findings pane: every finding with its history.

use ratatui::style::Style;
use ratatui::text::Line;
use signoff_core::ledger::FindingState;
use signoff_core::machine::ReviewScope;
use signoff_core::merge::MergedReview;
use signoff_core::merge::render::plain_text::location;
use signoff_core::review::Confidence;

use crate::fit::{columns, count, format_duration, pad, truncate, truncate_line, wrap};
use crate::show::{Cycle, LedgerLine, ReviewReport, TaskReport};
use crate::tui::canvas::{Canvas, Theme, span};
use crate::tui::list::{Navigation, Scroll};

/// Minimum width of a reviewer's column.
const MIN_COLUMN_WIDTH: usize = 28;

/// Maximum number of lines of a reviewer's text.
const MAX_TEXT_LINES: usize = 30;

/// The displayed cycle: the selected one, or the newest.
pub fn shown(report: &TaskReport, chosen: Option<usize>) -> Option<(usize, &Cycle)> {
    let last = report.cycles.len().checked_sub(1)?;
    let at = chosen.unwrap_or(last).min(last);
    Some((at, &report.cycles[at]))
}

pub fn draw(canvas: &mut Canvas<'_>, report: &TaskReport, chosen: Option<usize>, scroll: &mut Scroll, theme: Theme) {
    let Some((at, cycle)) = shown(report, chosen) else {
        canvas.line(0, &Line::from(span("no review has ended yet", theme.faint())));
        return;
    };
    canvas.line(0, &heading(cycle, at + 1, report.cycles.len(), theme));
    let width = canvas.width();
    let mut body = canvas.part(1, usize::MAX);
    let reviewers = cycle.reviews.len().max(1);
    let column_width = (width + 3) / reviewers;
    if column_width < MIN_COLUMN_WIDTH + 3 {
        let lines = cycle.reviews.iter().flat_map(|review| review_lines(review, width, theme)).collect();
        return column(&mut body, &lines, scroll, None);
    }
    let texts: Vec<Vec<_>> = cycle.reviews.iter().map(|review| review_lines(review, column_width - 3, theme)).collect();
    let longest = texts.iter().map(Vec::len).max().unwrap_or(0);
    for (index, lines) in texts.iter().enumerate() {
        let mut part = body.column(index * column_width, column_width - 3);
        column(&mut part, lines, scroll, Some(longest));
    }
}

/// `Cycle 2 of 3: CHANGES_REQUESTED  (review, commit c2, 2 findings)`.
fn heading(cycle: &Cycle, at: usize, all: usize, theme: Theme) -> Line<'static> {
    let commit: String = cycle.commit.chars().take(10).collect();
    let found = count(cycle.merged.issues.len() as u64, "finding");
    let scope = if cycle.scope == ReviewScope::Scoped { ", fix only" } else { "" };
    Line::from(vec![
        span(format!("Cycle {at} of {all}: "), theme.bold()),
        span(cycle.verdict.into_str(), theme.round_verdict(cycle.verdict).patch(theme.bold())),
        span(
            format!(
                "  {} {}{scope}, commit {}, {found}",
                truncate_line(&cycle.phase, 40),
                cycle.n,
                truncate_line(&commit, 10)
            ),
            theme.faint(),
        ),
    ])
}

fn column(canvas: &mut Canvas<'_>, lines: &Vec<Line<'static>>, scroll: &mut Scroll, longest: Option<usize>) {
    let first = scroll.first(longest.unwrap_or(lines.len()), canvas.height());
    canvas.lines(lines.iter().skip(first));
}

/// The full review of one reviewer, `width` columns wide.
fn review_lines(review: &ReviewReport, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let mut lines = vec![
        Line::from(span(truncate_line(&review.reviewer, width), theme.bold())),
        Line::from(span(truncate_line(review.verdict.into_str(), width), theme.verdict(review.verdict))),
    ];
    let cost = if review.cost_usd > 0.0 { format!("  ${:.2}", review.cost_usd) } else { String::new() };
    let confidence = if review.confidence == Confidence::Unstated {
        String::new()
    } else {
        format!("  confidence {}", review.confidence.into_str())
    };
    lines.push(Line::from(span(
        truncate_line(&format!("{}{cost}{confidence}", format_duration(review.duration_ms)), width),
        theme.faint(),
    )));
    let mut text = |mark: String, text: &str, style: Style| {
        let room = width.saturating_sub(2);
        let wrapped = wrap(&format!("{mark}{text}"), room, MAX_TEXT_LINES);
        lines.extend(
            wrapped
                .into_iter()
                .enumerate()
                .map(|(at, line)| Line::from(span(format!("{}{line}", if at == 0 { "" } else { "  " }), style))),
        );
    };
    for reason in review.reason.iter().chain(Some(&review.summary)).filter(|text| !text.trim().is_empty()) {
        text(String::new(), reason, Style::new());
    }
    for finding in &review.findings {
        let location = source_location(finding.file.as_deref(), finding.line);
        text(format!("[{}] {location}", finding.severity), &finding.description, theme.severity(finding.severity));
        if let Some(suggestion) = &finding.suggestion {
            text("  try: ".to_owned(), suggestion, theme.faint());
        }
    }
    for note in &review.minor {
        text(format!("- {}", source_location(note.file.as_deref(), note.line)), &note.description, theme.faint());
    }
    for checked in &review.checked {
        text("+ ".to_owned(), checked, theme.good());
    }
    lines.push(Line::default());
    lines
}

/// `src/auth.rs:12 `.
pub fn source_location(file: Option<&str>, line: Option<u32>) -> String {
    file.map(|file| location(file, line) + " ").unwrap_or_default()
}

/// Maximum number of lines of a text about the selected finding.
const MAX_DETAIL_LINES: usize = 12;

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
        self.chosen = report.ledger.get(step.target(at, self.page).min(last)).map(|line| line.finding.id.clone());
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
    let state = pad(&line.state.label(), 12);
    let severity = pad(finding.severity.into_str(), 9);
    let location = source_location(finding.file.as_deref(), finding.line);
    let room = width.saturating_sub(2 + columns(&state) + 1 + columns(&severity) + 1);
    Line::from(vec![
        span(if chosen { "> " } else { "  " }, base),
        span(format!("{state} "), theme.finding_state(line.state)),
        span(format!("{severity} "), theme.severity(finding.severity)),
        span(truncate_line(&format!("{location}{}", finding.description), room), base),
    ])
}

/// Details of the selected finding.
fn details(line: &LedgerLine, report: &TaskReport, theme: Theme, width: usize) -> Vec<Line<'static>> {
    let finding = &line.finding;
    let mut texts = vec![(finding.description.clone(), Style::new())];
    let by = finding.sources.join(", ");
    texts.push((format!("{} {}, found by {by}", finding.id, finding.kind), theme.faint()));
    texts.extend(finding.requirement.iter().map(|text| (format!("requirement: {text}"), Style::new())));
    texts.extend(finding.suggestion.iter().map(|text| (format!("try: {text}"), Style::new())));
    let seen: Vec<_> = line.seen.iter().map(|seen| format!("{} {}", seen.phase, seen.cycle)).collect();
    texts.push((format!("reported in {}", seen.join(", ")), theme.faint()));
    let why = |evidence: &str| if evidence.is_empty() { String::new() } else { format!(": {evidence}") };
    texts.extend(
        line.claims
            .iter()
            .map(|claim| (format!("the fixer says {}{}", claim.claim.into_str(), why(&claim.evidence)), theme.faint())),
    );
    texts.extend(line.decisions.iter().map(|decision| {
        (
            format!("{} by {}{}", decision.state.label(), decision.by, why(&decision.evidence)),
            theme.finding_state(decision.state),
        )
    }));
    let merged = report.cycles.last().map(|cycle| &cycle.merged);
    texts.extend(merged.into_iter().flat_map(|merged| related(merged, &finding.id)).map(|text| (text, theme.faint())));
    let room = width.saturating_sub(6);
    let lines = texts.into_iter().flat_map(|(text, style)| {
        wrap(&text, room, MAX_DETAIL_LINES)
            .into_iter()
            .map(move |line| Line::from(span(truncate(format!("      {line}"), width), style)))
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
        format!("related to {}", others.join(", "))
    });
    let conflicts = merged.conflicts.iter().filter_map(|conflict| {
        let other = if is_it(conflict.a) { conflict.b } else { conflict.a };
        (is_it(conflict.a) || is_it(conflict.b)).then(|| format!("contradicts {}: {}", name(other), conflict.about))
    });
    related.chain(conflicts).collect()
}
