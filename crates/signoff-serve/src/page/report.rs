//! A report to keep or to send: one file, without script, and without the server.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use signoff_core::merge::render::plain_text::visible;
use signoff_core::view::TaskRow;
use signoff_term::fit::{count, cut};
use signoff_term::report::{Changes, Part, Standing, of_report};

use super::findings::Beside;
use super::setting::Setting;
use super::values::{Judged, ReportHead, TaskPage};
use super::{assets, attempts, chart, cycles, diff, findings, run, sign, task, text};

/// Each task is let go as soon as it is written: there may be a thousand of them.
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
                title { (cut(&title, 120)) }
                style { (PreEscaped(assets::STYLE)) }
            }
            body.report {
                main {
                    h1 { (text::line(&title)) }
                    p.hint { (text::line(&head.project)) ", " (sign::moment(&head.made_at.to_string())) " UTC" }
                    (summary(head, &tasks))
                    @for (key, page) in (1..).zip(tasks) { (one_task(&page, key, is_named)) }
                    @for (key, one) in (1 + number..).zip(&head.whole.parts) { (part(one, key)) }
                    (used(head))
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

/// The run, and its tasks in a line each.
fn summary(head: &ReportHead, tasks: &[TaskPage]) -> Markup {
    let rows: Vec<TaskRow> = tasks.iter().map(|page| page.report.task.clone()).collect();
    let whole = &head.whole;
    html! {
        @if let Some(standing) = &whole.standing { (stands(standing)) }
        @if let Some(run) = &head.run { (run::facts(run, &rows, tasks.iter().any(|page| page.driven))) }
        @if let Some(changes) = &whole.changes { (changed(changes)) }
        @if tasks.len() > 1 {
            ul.rows { @for (key, page) in (1..).zip(tasks) { (in_a_line(page, key)) } }
        }
        @if !whole.asked.trim().is_empty() {
            section { h2 { "What was asked" } (text::prose(&whole.asked, "asked")) }
        }
    }
}

fn in_a_line(page: &TaskPage, key: u64) -> Markup {
    let row = &page.report.task;
    let standing = of_report(&page.report, page.driven);
    html! {
        li.row {
            span { (standing.mark) }
            a.title href={ "#t" (key) "-task" } { span.id { "#" (row.id) } " " (text::line(&row.title)) }
            span.standing { (text::line(&standing.text)) }
            span.facts { span { (sign::dollars(sign::cost(row))) } }
        }
    }
}

fn stands(standing: &Standing) -> Markup {
    html! { p.lead { (standing.mark) " " (text::line(&standing.text)) } }
}

fn changed(changes: &Changes) -> Markup {
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

/// What served the run as a whole, as a task is told.
fn part(part: &Part, key: u64) -> Markup {
    let setting = Setting { task: 0, key, is_served: false };
    let judged = Judged { cycles: &part.cycles, ledger: &part.ledger };
    let outcome = text::spaced(part.outcome.unwrap_or("unfinished"));
    html! {
        article.task id=(setting.id("part")) aria-label=(cut(&part.name, 120)) {
            h2 { (text::line(&part.name)) }
            p.lead { (outcome) @if let Some(why) = &part.reason { ": " (text::line(why)) } }
            @if !part.ledger.is_empty() {
                (task::section(setting, "findings", &count(part.ledger.len() as u64, "finding"), findings::all(judged, setting, Beside::default())))
            }
            @if !part.cycles.is_empty() {
                (task::section(setting, "cycles", &count(part.cycles.len() as u64, "cycle"), cycles::all(judged, setting)))
            }
            @if !part.attempts.is_empty() {
                (task::section(setting, "attempts", "Attempts", attempts::table(&part.attempts, setting)))
            }
        }
    }
}

/// What agents of each role used, all tasks together.
fn used(head: &ReportHead) -> Markup {
    let roles = &head.whole.roles;
    html! {
        @if !roles.is_empty() {
            section { h2 { "Cost and time" } div.charts { (chart::roles("roles", roles)) } }
        }
    }
}

fn one_task(page: &TaskPage, key: u64, is_named: bool) -> Markup {
    let mut row = page.report.task.clone();
    // An approval of another commit than the last one approves nothing.
    row.approved_commit = row.approved_commit.filter(|_| page.report.voided.is_none());
    let setting = Setting { task: row.id, key, is_served: false };
    html! {
        article.task id=(setting.id("task")) aria-label={ "Task " (row.id) } {
            @if is_named { h2 { span.id { "#" (row.id) } " " (text::line(&row.title)) } }
            (stands(&of_report(&page.report, page.driven)))
            p { (outcome(page)) }
            (task::facts(&row, page.now))
            @match (&page.changes, &page.diff) {
                (Some(changes), _) => (changed(changes)),
                (None, Some(diff)) => p.stat { (diff::stat(diff, &diff::read(&diff.patch))) },
                (None, None) => {},
            }
            (task::told(page, setting, Beside::default()))
            (task::rest(page, setting))
        }
    }
}

/// `4 findings: 2 fixed, 1 refuted, 1 open`.
fn outcome(page: &TaskPage) -> String {
    let ledger = &page.report.ledger;
    let number = |state: &str| ledger.iter().filter(|line| line.state == state).count();
    let states = ["fixed", "refuted", "deferred", "out_of_scope", "open"];
    let told = states.into_iter().map(|state| (number(state), text::spaced(state)));
    let told: Vec<_> =
        told.filter(|(number, _)| *number > 0).map(|(number, state)| format!("{number} {state}")).collect();
    let all = count(ledger.len() as u64, "finding");
    if told.is_empty() { all } else { format!("{all}: {}", told.join(", ")) }
}
