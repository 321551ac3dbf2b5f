//! The reviews pane: the reviews of one cycle, side by side.

use ratatui::style::Style;
use ratatui::text::Line;

use crate::fit::{count, cut, span as time, wrap};
use crate::show::{Cycle, ReviewReport, TaskReport};
use crate::tui::canvas::{Canvas, Theme, span};
use crate::tui::list::Scroll;

/// Minimum width of a reviewer's column.
const NARROWEST: usize = 28;

/// Maximum number of lines of a reviewer's text.
const TEXT: usize = 30;

/// The displayed cycle: the selected one, or the newest.
pub fn shown(report: &TaskReport, chosen: Option<usize>) -> Option<(usize, &Cycle)> {
    let last = report.cycles.len().checked_sub(1)?;
    let at = chosen.unwrap_or(last).min(last);
    Some((at, &report.cycles[at]))
}

pub fn draw(canvas: &mut Canvas<'_>, report: &TaskReport, chosen: Option<usize>, page: &mut Scroll, theme: Theme) {
    let Some((at, cycle)) = shown(report, chosen) else {
        canvas.line(0, &Line::from(span("no review has ended yet", theme.faint())));
        return;
    };
    canvas.line(0, &heading(cycle, at + 1, report.cycles.len(), theme));
    let width = canvas.width();
    let mut body = canvas.part(1, usize::MAX);
    let seats = cycle.reviews.len().max(1);
    let each = (width + 3) / seats;
    if each < NARROWEST + 3 {
        let lines = cycle.reviews.iter().flat_map(|review| review_lines(review, width, theme)).collect();
        return column(&mut body, &lines, page, None);
    }
    let columns: Vec<Vec<_>> = cycle.reviews.iter().map(|review| review_lines(review, each - 3, theme)).collect();
    let longest = columns.iter().map(Vec::len).max().unwrap_or(0);
    for (index, lines) in columns.iter().enumerate() {
        let mut part = body.column(index * each, each - 3);
        column(&mut part, lines, page, Some(longest));
    }
}

/// `Review 2 of 3: CHANGES_REQUESTED  (review, commit c2, 2 findings)`.
fn heading(cycle: &Cycle, at: usize, all: usize, theme: Theme) -> Line<'static> {
    let commit: String = cycle.commit.chars().take(10).collect();
    let found = count(cycle.merged.issues.len() as u64, "finding");
    let scope = if cycle.scope == "scoped" { ", of the fix alone" } else { "" };
    Line::from(vec![
        span(format!("Round {at} of {all}: "), theme.bold()),
        span(cycle.verdict, theme.verdict(cycle.verdict).patch(theme.bold())),
        span(
            format!("  {} {}{scope}, commit {}, {found}", cut(&cycle.phase, 40), cycle.n, cut(&commit, 10)),
            theme.faint(),
        ),
    ])
}

fn column(canvas: &mut Canvas<'_>, lines: &Vec<Line<'static>>, page: &mut Scroll, longest: Option<usize>) {
    let first = page.first(longest.unwrap_or(lines.len()), canvas.height());
    canvas.lines(lines.iter().skip(first));
}

/// The full review of one reviewer, `width` columns wide.
fn review_lines(review: &ReviewReport, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let mut lines = vec![
        Line::from(span(cut(&review.reviewer, width), theme.bold())),
        Line::from(span(cut(review.verdict, width), theme.verdict(review.verdict))),
    ];
    let cost = if review.cost_usd > 0.0 { format!("  ${:.2}", review.cost_usd) } else { String::new() };
    let sure =
        if review.confidence == "unstated" { String::new() } else { format!("  confidence {}", review.confidence) };
    lines.push(Line::from(span(cut(&format!("{}{cost}{sure}", time(review.duration_ms)), width), theme.faint())));
    let mut text = |mark: String, text: &str, style: Style| {
        let room = width.saturating_sub(2);
        let wrapped = wrap(&format!("{mark}{text}"), room, TEXT);
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
        let place = place(finding.file.as_deref(), finding.line);
        text(format!("[{}] {place}", finding.severity), &finding.description, theme.severity(finding.severity));
        if let Some(suggestion) = &finding.suggestion {
            text("  try: ".to_owned(), suggestion, theme.faint());
        }
    }
    for note in &review.minor {
        text(format!("- {}", place(note.file.as_deref(), note.line)), &note.description, theme.faint());
    }
    for checked in &review.checked {
        text("+ ".to_owned(), checked, theme.good());
    }
    lines.push(Line::default());
    lines
}

/// `src/auth.rs:12 `.
pub fn place(file: Option<&str>, line: Option<u32>) -> String {
    let line = line.map(|line| format!(":{line}")).unwrap_or_default();
    file.map(|file| format!("{file}{line} ")).unwrap_or_default()
}
