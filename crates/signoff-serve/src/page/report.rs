//! The report: one self-contained HTML file without script.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use signoff_core::ledger::FindingState;
use signoff_core::merge::render::plain_text::visible;
use signoff_core::patch::PatchFile;
use signoff_core::view::TaskRow;
use signoff_term::fit::{count, counts, dollars, truncate_line};
use signoff_term::report::{Changes, PartSection, ReportResult, result_of_report};

use super::findings::FindingContext;
use super::frame::PageContext;
use super::{ReportHead, ReviewHistory, TaskPage};
use super::{STYLE, attempts, badges, chart, cycles, diff, findings, run, task, text};

/// A report file of a task, or of all tasks of a run. Each task is dropped as soon as it is rendered, because a run may have a thousand.
pub fn file(head: &ReportHead, tasks: Vec<TaskPage>) -> String {
    let title = title(head, &tasks);
    let (number, is_named) = (tasks.len() as u64, head.run.is_some() || tasks.len() > 1);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (truncate_line(&title, 120)) }
                style { (PreEscaped(STYLE)) }
            }
            body.report {
                main {
                    h1 { (text::line(&title)) }
                    p.hint { (text::line(&head.project)) ", " (badges::timestamp(&head.made_at.to_string())) " UTC" }
                    (summary(head, &tasks))
                    @for (key, page) in (1..).zip(tasks) { (one_task(&page, key, is_named)) }
                    @for (key, section) in (1 + number..).zip(&head.parts) { (part(section, key)) }
                    @if !head.roles.is_empty() {
                        section { h2 { "Cost and time" } div.charts { (chart::roles("roles", &head.roles)) } }
                    }
                }
            }
        }
    };
    page.into_string()
}

fn title(head: &ReportHead, tasks: &[TaskPage]) -> String {
    match (&head.run, tasks) {
        (Some(run), _) => run::name(run),
        (None, [page]) => format!("#{} {}", page.report.task.id, page.report.task.title),
        (None, _) => count(tasks.len() as u64, "task"),
    }
}

/// The run, and one line per task.
fn summary(head: &ReportHead, tasks: &[TaskPage]) -> Markup {
    let rows: Vec<TaskRow> = tasks.iter().map(|page| page.report.task.clone()).collect();
    let section = head.section.as_ref();
    let asked = section.and_then(|run| run.asked.as_deref()).unwrap_or_default();
    html! {
        @if let Some(section) = section { (result_line(&section.result)) }
        @if let Some(run) = &head.run { (run::facts(run, &rows, tasks.iter().any(|page| page.driven))) }
        @if let Some(changes) = section.and_then(|run| run.changes.as_ref()) { (change_stat(changes)) }
        @if tasks.len() > 1 {
            ul.rows { @for (key, page) in (1..).zip(tasks) { (task_row(page, key)) } }
        }
        @if !asked.trim().is_empty() { section { h2 { "What was asked" } (text::prose(asked, "asked")) } }
    }
}

fn task_row(page: &TaskPage, key: u64) -> Markup {
    let row = &page.report.task;
    let result = result_of_report(&page.report, &page.next, page.driven);
    html! {
        li.row {
            span { (result.mark) }
            a.title href={ "#t" (key) "-task" } { span.id { "#" (row.id) } " " (text::line(&row.title)) }
            span.status { (text::line(&result.text)) }
            span.facts { span { (dollars(row.cost_usd, row.cost_is_estimated)) } }
        }
    }
}

fn result_line(result: &ReportResult) -> Markup {
    html! { p.lead { (result.mark) " " (text::line(&result.text)) } }
}

fn change_stat(changes: &Changes) -> Markup {
    let stat = changes.stat.as_deref().unwrap_or_default().trim_end();
    html! {
        p.stat { (text::line(&changes.summary())) }
        @if let (Some(note), Some(_)) = (&changes.note, &changes.stat) { p.hint { (text::line(note)) } }
        @if stat.lines().count() > 1 {
            details.more {
                summary { "Changed files" }
                div.scroll tabindex="0" role="group" aria-label="Changed files" { pre { (visible(stat)) } }
            }
        }
    }
}

/// A loop of the run without a task (planning, checkpoint, final review), shown like a task.
fn part(part: &PartSection, key: u64) -> Markup {
    let context = PageContext { task: 0, key, is_served: false };
    let history = ReviewHistory { cycles: &part.cycles, ledger: &part.ledger };
    let outcome = text::spaced(part.outcome.map_or("unfinished", <&str>::from));
    html! {
        article.task id=(context.id("part")) aria-label=(truncate_line(&part.name, 120)) {
            h2 { (text::line(&part.name)) }
            p.lead { (outcome) @if let Some(why) = &part.reason { ": " (text::line(why)) } }
            @if !part.ledger.is_empty() {
                (task::section(context, "findings", &count(part.ledger.len() as u64, "finding"), findings::all(history, context, FindingContext::default())))
            }
            @if !part.cycles.is_empty() {
                (task::section(context, "cycles", &count(part.cycles.len() as u64, "cycle"), cycles::all(history, context)))
            }
            @if !part.attempts.is_empty() {
                (task::section(context, "attempts", "Attempts", attempts::table(&part.attempts, context)))
            }
        }
    }
}

fn one_task(page: &TaskPage, key: u64, is_named: bool) -> Markup {
    let mut row = page.report.task.clone();
    // A voided approval is not an approval.
    row.approved_commit = row.approved_commit.filter(|_| page.report.voided.is_none());
    let context = PageContext { task: row.id, key, is_served: false };
    html! {
        article.task id=(context.id("task")) aria-label={ "Task " (row.id) } {
            @if is_named { h2 { span.id { "#" (row.id) } " " (text::line(&row.title)) } }
            (result_line(&result_of_report(&page.report, &page.next, page.driven)))
            p { (findings_summary(page)) }
            (task::facts(&row, page.now))
            @match (&page.changes, &page.diff) {
                (Some(changes), _) => (change_stat(changes)),
                (None, Some(diff)) => p.stat { (diff::stat(diff, &PatchFile::parse_all(&diff.patch))) },
                (None, None) => {},
            }
            (task::spec_and_reviews(page, context, FindingContext::default()))
            (task::attempts_and_files(page, context))
        }
    }
}

/// `4 findings: 2 fixed, 1 refuted, 1 open`.
fn findings_summary(page: &TaskPage) -> String {
    let ledger = &page.report.ledger;
    let number = |state: FindingState| ledger.iter().filter(|line| line.state == state).count();
    let states = [
        FindingState::Fixed,
        FindingState::Refuted,
        FindingState::Deferred,
        FindingState::OutOfScope,
        FindingState::Open,
    ];
    let counts = counts(states.map(|state| (number(state), state.label())));
    let all = count(ledger.len() as u64, "finding");
    if counts.is_empty() { all } else { format!("{all}: {counts}") }
}
