//! One run: how far it is, what it asks, its tasks.

use std::collections::BTreeSet;

use maud::{Markup, html};
use signoff_core::view::{RunRow, TaskRow};
use signoff_term::attention::Scene;
use signoff_term::runs::{self, Told};

use super::frame::{About, Framed};
use super::progress::Counted;
use super::values::{Cost, Notice, RunPage};
use super::{home, question, sign, text};

pub fn page(page: &RunPage, notice: Option<&Notice>) -> String {
    let title = name(&page.run);
    let back = format!("/runs/{}", page.run.id);
    let body = html! {
        (head(page))
        section #questions data-live aria-label="Questions" {
            @for asked in &page.questions { (question::asked(asked, &page.tasks, &back)) }
        }
        section #tasks data-live aria-labelledby="tasks-title" {
            h2 #tasks-title { "Tasks" }
            @if page.tasks.is_empty() { p.hint { "None yet." } }
            ul.rows { @for task in &page.tasks { (home::row(task, page.now)) } }
        }
        p { a href={ "/runs/" (page.run.id) "/report.html" } { "Report of this run" } }
    };
    let (project, about) = (page.project.as_str(), About::Run(page.run.id));
    Framed { title: &title, project, about, notice, needs: None, body }.into_string()
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
    let told = Told::of(run, &Scene { tasks: &page.tasks, runs, driven: &driven });
    html! {
        h1 { (text::line(&name(run))) }
        section #head data-live aria-label="How it stands" {
            p.lead {
                (sign::sign(state, runs::status(run))) " "
                @if run.groups.is_some() { (text::line(&told.standing)) }
            }
            @for next in &told.next { p.next { (text::line(next)) } }
            (facts(run, &page.tasks, page.driven))
        }
    }
}

/// What there is to know of a run besides its tasks.
pub fn facts(run: &RunRow, tasks: &[TaskRow], driven: bool) -> Markup {
    let counted = Counted::of(tasks);
    html! {
        @if !tasks.is_empty() { div.progress { (counted.bar()) p { (counted.words(driven)) } } }
        dl.facts {
            div { dt { "Preset" } dd { (text::line(&run.preset)) } }
            @if let Some((group, all)) = run.group.zip(run.groups) { div { dt { "Group" } dd { (group) " of " (all) } } }
            @if let Some(branch) = &run.branch { div { dt { "Branch" } dd { (text::code(branch)) } } }
            div { dt { "Cost" } dd { (sign::dollars(cost(run))) } }
        }
    }
}
