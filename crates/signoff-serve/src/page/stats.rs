//! The statistics page over all tasks.

use maud::{Markup, html};
use signoff_term::fit::count;

use super::frame::{PageFrame, PageSubject};
use super::values::StatsPage;
use super::{badges, chart};

pub fn page(page: &StatsPage) -> String {
    let body = html! {
        h1 { "Statistics" }
        section #stats data-live aria-label="Figures" { (figures(page)) }
    };
    let (project, about) = (page.project.as_str(), PageSubject::Everything);
    PageFrame { title: "Statistics", project, subject: about, notice: None, attention_count: None, body }.into_string()
}

fn figures(page: &StatsPage) -> Markup {
    let cycles: Vec<(String, u64)> =
        page.cycles.iter().map(|(cycles, tasks)| (count(*cycles, "cycle"), *tasks)).collect();
    let stops: Vec<(String, u64)> =
        page.stops.iter().map(|(reason, tasks)| (super::text::spaced(reason), *tasks)).collect();
    html! {
        p.lead {
            (count(page.approved, "task")) " approved"
            @if let Some(cost) = page.cost_per_approved { ", " (badges::dollars(cost)) " each" }
        }
        @if page.roles.is_empty() && page.reviewers.is_empty() { p.hint { "No task has run yet." } }
        div.charts {
            @if !page.reviewers.is_empty() { (chart::reviewers("reviewers", &page.reviewers)) }
            @if !page.roles.is_empty() { (chart::roles("roles", &page.roles)) }
            @if !cycles.is_empty() { (chart::counts("cycles", "Cycles to approval, by tasks", &cycles)) }
            @if !stops.is_empty() { (chart::counts("stops", "Why tasks stopped", &stops)) }
        }
    }
}
