//! A report to keep or to send: one file, without script, and without the server.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use signoff_core::view::TaskRow;
use signoff_term::fit::{count, cut};

use super::diff;
use super::setting::Setting;
use super::values::{ReportHead, TaskPage};
use super::{assets, run, sign, task, text};

pub fn file(head: &ReportHead, tasks: &[TaskPage]) -> String {
    let title = title(head, tasks);
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
                    (summary(head, tasks))
                    @for (key, page) in (1..).zip(tasks) { (one_task(page, key, tasks.len() > 1)) }
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
    html! {
        @if let Some(run) = &head.run { (run::facts(run, &rows)) }
        @if tasks.len() > 1 {
            ul.rows {
                @for (key, row) in (1..).zip(&rows) {
                    li.row {
                        (sign::badge(row))
                        a.title href={ "#t" (key) "-task" } { span.id { "#" (row.id) } " " (text::line(&row.title)) }
                        span.standing { (sign::standing(row)) }
                        span.facts { span { (sign::dollars(sign::cost(row))) } }
                    }
                }
            }
        }
    }
}

fn one_task(page: &TaskPage, key: u64, is_named: bool) -> Markup {
    let row = &page.report.task;
    let setting = Setting { task: row.id, key, is_served: false };
    html! {
        article.task id=(setting.id("task")) aria-label={ "Task " (row.id) } {
            @if is_named { h2 { span.id { "#" (row.id) } " " (text::line(&row.title)) } }
            p.lead { (sign::badge(row)) " " (sign::standing(row)) }
            @if let Some(voided) = &page.report.voided { p.bad { "Not approved any more: " (text::line(voided)) } }
            p { (outcome(page)) }
            (task::facts(row, page.now))
            @if let Some(diff) = &page.diff { p.stat { (diff::stat(diff, &diff::read(&diff.patch))) } }
            (task::told(page, setting, &[]))
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
