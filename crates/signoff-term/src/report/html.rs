//! One HTML page that needs nothing else: no script, no font, no picture from anywhere.

use signoff_core::merge::render::plain_text::visible;

use super::{Account, Changes, Part, TaskAccount};
use crate::fit::{count, span};
use crate::show::{Cycle, LedgerLine};

const STYLE: &str = include_str!("html/style.css");

/// The whole account.
pub fn html(account: &Account) -> String {
    let title = text(&account.title());
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"
    );
    out.push_str(&head(account));
    account.tasks.iter().for_each(|one| out.push_str(&task(one)));
    account.parts.iter().for_each(|one| out.push_str(&part(one)));
    out.push_str(&format!(
        "<footer>Written by signoff at {}</footer>\n</main>\n</body>\n</html>\n",
        text(&account.made_at)
    ));
    out
}

fn head(account: &Account) -> String {
    let (standing, totals) = (account.standing(), &account.totals);
    let found = totals.findings.words();
    let found = if found.is_empty() { "no findings".to_owned() } else { format!("findings: {found}") };
    let time = totals.passed_ms.map(|passed| format!(", {}", span(passed))).unwrap_or_default();
    let cycles = count(totals.cycles, "review cycle");
    let changes = account.run.as_ref().and_then(|run| run.changes.as_ref()).map(changes).unwrap_or_default();
    format!(
        "<h1>{}</h1>\n<p class=\"{}\">{} {}</p>\n<p>{cycles}, {}. {}{time}.</p>\n{changes}",
        text(&account.title()),
        standing.kind,
        standing.mark(),
        text(&standing.text),
        text(&found),
        text(&totals.cost()),
    )
}

fn task(task: &TaskAccount) -> String {
    let (row, report) = (task.row(), &task.report);
    format!(
        "<section>\n<h2>Task {}: {}</h2>\n<p class=\"{}\">{} {}</p>\n<h3>What was asked</h3>\n<pre>{}</pre>\n{}{}{}</section>\n",
        row.id,
        text(&row.title),
        task.standing.kind,
        task.standing.mark(),
        text(&task.standing.text),
        text(&task.asked),
        findings(&report.ledger),
        cycles(&report.cycles),
        changes(&task.changes),
    )
}

fn part(part: &Part) -> String {
    format!(
        "<section>\n<h2>{}</h2>\n<p>{}</p>\n{}{}</section>\n",
        text(&part.name),
        text(part.outcome.unwrap_or("unfinished")),
        findings(&part.ledger),
        cycles(&part.cycles),
    )
}

fn findings(ledger: &[LedgerLine]) -> String {
    let row = |line: &LedgerLine| {
        let finding = &line.finding;
        let file = finding.file.clone().unwrap_or_default();
        let place = finding.line.map_or_else(|| file.clone(), |line| format!("{file}:{line}"));
        let history: String = line
            .decisions
            .iter()
            .map(|one| format!("\n{} by {}: {}", one.state, one.by, one.evidence))
            .collect();
        cells(&[
            &line.state.replace('_', " "),
            finding.severity,
            &place,
            &format!("{}{history}", finding.description),
            &finding.sources.join(", "),
        ])
    };
    table("Findings", &["State", "Severity", "Where", "What", "By"], ledger.iter().map(row))
}

fn cycles(cycles: &[Cycle]) -> String {
    let row = |cycle: &Cycle, review: &crate::show::ReviewLine| {
        cells(&[
            &format!("{} {}", cycle.phase, cycle.n),
            cycle.verdict,
            &review.reviewer,
            &review.verdict.replace('_', " "),
            &span(review.duration_ms),
            &format!("${:.2}", review.cost_usd),
            review.reason.as_deref().unwrap_or(&review.summary),
        ])
    };
    let rows = cycles.iter().flat_map(|cycle| cycle.reviews.iter().map(move |review| row(cycle, review)));
    table("Reviews", &["Cycle", "Ruling", "Reviewer", "Verdict", "Time", "Cost", "Summary"], rows)
}

fn changes(changes: &Changes) -> String {
    let note = changes.note.as_ref().map(|note| format!("<p>{}</p>\n", text(note))).unwrap_or_default();
    let stat = changes.stat.as_ref().map(|stat| format!("<pre>{}</pre>\n", text(stat))).unwrap_or_default();
    format!("<h3>Changes</h3>\n{note}{stat}")
}

fn table(title: &str, head: &[&str], rows: impl Iterator<Item = String>) -> String {
    let rows: String = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    let head: String = head.iter().map(|word| format!("<th scope=\"col\">{word}</th>")).collect();
    format!(
        "<h3>{title}</h3>\n<div class=\"wide\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
    )
}

fn cells(cells: &[&str]) -> String {
    let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", text(cell))).collect();
    format!("<tr>{cells}</tr>\n")
}

/// Text that no browser takes for anything else.
pub fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}
