//! The page of one run: progress, questions and tasks.

use std::collections::BTreeSet;

use maud::{Markup, html};
use signoff_core::view::inbox::ProjectSnapshot;
use signoff_core::view::{RunRow, TaskRow};
use signoff_term::runs::{self, RunEntry};

use super::frame::{PageFrame, PageSubject};
use super::progress::RunProgress;
use super::values::{Cost, PageNotice, RunPage};
use super::{badges, home, question, text};

pub fn page(page: &RunPage, notice: Option<&PageNotice>) -> String {
    let title = name(&page.run);
    let back = format!("/runs/{}", page.run.id);
    let body = html! {
        (head(page))
        section #questions data-live aria-label="Questions" {
            @for asked in &page.questions { (question::form(asked, &page.tasks, &back)) }
        }
        section #tasks data-live aria-labelledby="tasks-title" {
            h2 #tasks-title { "Tasks" }
            @if page.tasks.is_empty() { p.hint { "None yet." } }
            ul.rows { @for task in &page.tasks { (home::row(task, page.now)) } }
        }
        p { a href={ "/runs/" (page.run.id) "/report.html" } { "Report of this run" } }
    };
    let (project, about) = (page.project.as_str(), PageSubject::Run(page.run.id));
    PageFrame { title: &title, project, subject: about, notice, attention_count: None, body }.into_string()
}

/// `Run 3 SPEC.md`.
pub fn name(run: &RunRow) -> String {
    let of = run.specification.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    format!("Run {}{of}", run.id)
}

pub fn cost(run: &RunRow) -> Cost {
    Cost { usd: run.cost_usd, is_estimated: run.cost_is_estimated }
}

fn head(page: &RunPage) -> Markup {
    let run = &page.run;
    let state = runs::state(run, &page.tasks);
    let driven: BTreeSet<u64> = page.driven.then_some(run.id).into_iter().collect();
    let runs = std::slice::from_ref(run);
    let run_status = RunEntry::new(run, &ProjectSnapshot { tasks: &page.tasks, runs, driven: &driven });
    html! {
        h1 { (text::line(&name(run))) }
        section #head data-live aria-label="How it stands" {
            p.lead {
                (badges::state_badge(state, runs::status(run))) " "
                @if run.groups.is_some() { (text::line(&run_status.text)) }
            }
            @for next in &run_status.next { p.next { (text::line(next)) } }
            (facts(run, &page.tasks, page.driven))
        }
    }
}

/// The progress bar and the facts about a run.
pub fn facts(run: &RunRow, tasks: &[TaskRow], driven: bool) -> Markup {
    let counted = RunProgress::from_tasks(tasks);
    html! {
        @if !tasks.is_empty() { div.progress { (counted.bar()) p { (counted.summary(driven)) } } }
        dl.facts {
            div { dt { "Preset" } dd { (text::line(&run.preset)) } }
            @if let Some((group, all)) = run.group.zip(run.groups) { div { dt { "Group" } dd { (group) " of " (all) } } }
            @if let Some(branch) = &run.branch { div { dt { "Branch" } dd { (text::code(branch)) } } }
            div { dt { "Cost" } dd { (badges::dollars(cost(run))) } }
        }
    }
}
