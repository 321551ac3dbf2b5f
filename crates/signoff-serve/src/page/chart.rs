//! SVG charts, each with the same data as a table, and the statistics page that shows them.
//!
//! They are narrow so that their text is readable on a phone. Colors come from the style sheet.

use maud::{Markup, html};
use signoff_term::fit::{count, dollars, format_duration, truncate_line};
use signoff_term::stats::{Convergence, ReviewerStats, RoleStats, StatsReport};

use super::frame::{PageFrame, PageSubject};

/// The width of every chart.
const CHART_WIDTH: f64 = 360.0;

/// A chart with its title, a text description and a table of its data.
struct Figure {
    id: String,
    title: &'static str,
    description: String,
    height: f64,
    svg: Markup,
    table: Markup,
}

impl Figure {
    fn render(self) -> Markup {
        let (title, desc) = (format!("{}-title", self.id), format!("{}-desc", self.id));
        html! {
            figure.chart {
                svg viewBox={ "0 0 " (CHART_WIDTH) " " (self.height) } role="img" aria-labelledby={ (title) " " (desc) } {
                    title id=(title) { (self.title) }
                    desc id=(desc) { (self.description) }
                    (self.svg)
                }
                figcaption { (self.title) }
                details id={ (self.id) "-figures" } {
                    summary { "As a table" }
                    div.scroll tabindex="0" role="group" aria-label={ (self.title) ", as a table" } { (self.table) }
                }
            }
        }
    }
}

/// New, carried and fixed findings per cycle.
pub fn convergence(id: &str, changes: &[Convergence]) -> Markup {
    let (height, floor) = (150.0, 120.0);
    let most = changes.iter().flat_map(series).map(|(number, _)| number).max().unwrap_or(0).max(1);
    let step = (CHART_WIDTH - 10.0) / changes.len().max(1) as f64;
    let width = (step / 5.0).min(28.0);
    let bar = |cycle: usize, at: usize, number: u32| {
        let x = 5.0 + step * cycle as f64 + step / 2.0 + (at as f64 - 1.5) * (width + 2.0);
        let tall = f64::from(number) / f64::from(most) * (floor - 24.0);
        (round(x), round(floor - tall), round(tall))
    };
    let svg = html! {
        line.axis x1="0" x2=(CHART_WIDTH) y1=(floor) y2=(floor) {}
        @for (cycle, change) in changes.iter().enumerate() {
            @for (at, (number, class)) in series(change).into_iter().enumerate().filter(|(_, (number, _))| *number > 0) {
                @let (x, y, tall) = bar(cycle, at, number);
                rect class=(class) x=(x) y=(y) width=(round(width)) height=(tall) rx="1.5" {}
                text.value x=(round(x + width / 2.0)) y=(round(y - 4.0)) { (number) }
            }
            text.label x=(round(5.0 + step * (cycle as f64 + 0.5))) y=(floor + 16.0) { (cycle + 1) }
        }
        (legend(&[("new or back", "c-new"), ("carried", "c-carried"), ("fixed", "c-fixed")], height - 6.0))
    };
    let description = changes.iter().enumerate().map(|(at, change)| {
        let Convergence { new, carried, fixed, regressed, .. } = change;
        let back = if *regressed > 0 { format!(", {regressed} regressed") } else { String::new() };
        format!("Cycle {}: {new} new, {carried} carried, {fixed} fixed{back}", at + 1)
    });
    let description = description.collect::<Vec<_>>().join(". ");
    let (id, table) = (id.to_owned(), changes_table(changes));
    Figure { id, title: "Findings per cycle", description, height: height + 8.0, svg, table }.render()
}

/// The bars of one cycle. Regressed findings count as new, because the fixer has to fix them again.
fn series(change: &Convergence) -> [(u32, &'static str); 3] {
    [(change.new + change.regressed, "c-new"), (change.carried, "c-carried"), (change.fixed, "c-fixed")]
}

/// Upper bound of a letter's width in a legend; fonts differ.
const MAX_LETTER_WIDTH: f64 = 7.0;

/// The legend entries in one row, each as wide as its text.
fn legend(entries: &[(&str, &str)], y: f64) -> Markup {
    let placed = entries.iter().scan(5.0, |end, (label, class)| {
        let x = *end;
        *end += 23.0 + MAX_LETTER_WIDTH * label.chars().count() as f64;
        Some((x, label, class))
    });
    html! {
        @for (x, label, class) in placed {
            rect class=(class) x=(x) y=(y) width="9" height="9" rx="1.5" {}
            text.key x=(x + 13.0) y=(y + 8.5) { (label) }
        }
    }
}

fn changes_table(changes: &[Convergence]) -> Markup {
    let numbers = |change: &Convergence| [change.new, change.carried, change.fixed, change.regressed];
    let cells = |change: &Convergence| numbers(change).map(|number| number.to_string()).to_vec();
    let rows = changes.iter().enumerate().map(|(at, change)| (html! { (at + 1) }, cells(change)));
    table(&["Cycle", "New", "Carried", "Fixed", "Regressed"], rows)
}

/// A data table: a header row, and a row per name.
fn table(head: &[&str], rows: impl Iterator<Item = (Markup, Vec<String>)>) -> Markup {
    html! {
        table.figures {
            thead { tr { @for name in head { th scope="col" { (name) } } } }
            tbody {
                @for (name, numbers) in rows {
                    tr {
                        th scope="row" { (name) }
                        @for number in numbers { td.number { (number) } }
                    }
                }
            }
        }
    }
}

/// A name from outside in the heading of a row.
fn row_name(name: &str, width: usize) -> Markup {
    html! { bdi { (truncate_line(name, width)) } }
}

/// One horizontal bar.
struct ChartBar {
    name: String,
    /// Segments from left to right, each with its CSS class.
    parts: Vec<(f64, &'static str)>,
    value: String,
}

/// A column of bars, each with its name on the left and its value on the right.
fn bars(bars: &[ChartBar], y: f64) -> Markup {
    let (left, room) = (112.0, CHART_WIDTH - 112.0 - 76.0);
    let sum = |bar: &ChartBar| bar.parts.iter().map(|(part, _)| part).sum::<f64>();
    let most = bars.iter().map(sum).fold(0.0, f64::max);
    let scale = if most > 0.0 { room / most } else { 0.0 };
    html! {
        @for (at, bar) in bars.iter().enumerate() {
            @let top = y + 22.0 * at as f64;
            text.name x=(left - 6.0) y=(top + 11.0) { (truncate_line(&bar.name, 17)) }
            @for (index, (part, class)) in bar.parts.iter().enumerate() {
                @let before: f64 = bar.parts.iter().take(index).map(|(part, _)| part).sum();
                rect class=(class) x=(round(left + before * scale)) y=(top) width=(round(part * scale)) height="14" {}
            }
            text.amount x=(round(left + sum(bar) * scale + 5.0)) y=(top + 11.0) { (bar.value) }
        }
    }
}

/// Cost and time by role.
pub fn roles(id: &str, roles: &[RoleStats]) -> Markup {
    let costs: Vec<ChartBar> = roles
        .iter()
        .map(|role| one_bar(role, role.cost_usd, "c-cost", dollars(role.cost_usd, role.cost_is_estimated)))
        .collect();
    let times: Vec<ChartBar> = roles
        .iter()
        .map(|role| one_bar(role, role.duration_ms as f64, "c-time", format_duration(role.duration_ms)))
        .collect();
    let half = 22.0 * roles.len() as f64 + 26.0;
    let svg = html! {
        text.key x="5" y="12" { "cost" } (bars(&costs, 20.0))
        text.key x="5" y=(half + 12.0) { "time" } (bars(&times, half + 20.0))
    };
    let description = roles.iter().map(|role| {
        format!(
            "{}: {}, {}",
            truncate_line(&role.role, 40),
            dollars(role.cost_usd, role.cost_is_estimated),
            format_duration(role.duration_ms)
        )
    });
    let description = description.collect::<Vec<_>>().join(". ");
    let (id, table) = (id.to_owned(), roles_table(roles));
    Figure { id, title: "Cost and time by role", description, height: 2.0 * half, svg, table }.render()
}

fn one_bar(role: &RoleStats, part: f64, class: &'static str, value: String) -> ChartBar {
    ChartBar { name: role.role.clone(), parts: vec![(part.max(0.0), class)], value }
}

fn roles_table(roles: &[RoleStats]) -> Markup {
    let rows = roles.iter().map(|role| {
        let cost = dollars(role.cost_usd, role.cost_is_estimated);
        (row_name(&role.role, 40), vec![role.attempts.to_string(), format_duration(role.duration_ms), cost])
    });
    table(&["Role", "Attempts", "Time", "Cost"], rows)
}

/// Outcomes of the findings of each reviewer.
pub fn reviewers(id: &str, reviewers: &[ReviewerStats]) -> Markup {
    let all: Vec<ChartBar> = reviewers.iter().map(reviewer_bar).collect();
    let below = 22.0 * reviewers.len() as f64 + 10.0;
    let svg = html! { (bars(&all, 4.0)) (legend(&OUTCOMES, below)) };
    let description = reviewers.iter().map(|reviewer| {
        let outcomes = outcome_counts(reviewer).into_iter().zip(OUTCOMES);
        let outcomes: String = outcomes.map(|(number, (label, _))| format!(", {number} {label}")).collect();
        format!("{}: {} raised{outcomes}", truncate_line(&reviewer.reviewer, 40), reviewer.raised + reviewer.pending)
    });
    let description = description.collect::<Vec<_>>().join(". ");
    let (id, table) = (id.to_owned(), reviewers_table(reviewers));
    Figure { id, title: "Findings by reviewer", description, height: below + 14.0, svg, table }.render()
}

/// The outcomes of a finding, each with its CSS class.
const OUTCOMES: [(&str, &str); 5] = [
    ("upheld", "c-fixed"),
    ("refuted", "c-refuted"),
    ("out of scope", "c-aside"),
    ("open", "c-new"),
    ("pending", "c-carried"),
];

fn outcome_counts(reviewer: &ReviewerStats) -> [u64; 5] {
    [reviewer.upheld, reviewer.refuted, reviewer.out_of_scope, reviewer.open, reviewer.pending]
}

fn reviewer_bar(reviewer: &ReviewerStats) -> ChartBar {
    let parts = outcome_counts(reviewer).into_iter().zip(OUTCOMES);
    let parts = parts.map(|(number, (_, class))| (number as f64, class)).collect();
    ChartBar {
        name: reviewer.reviewer.clone(),
        parts,
        value: format!(
            "{}, {}",
            reviewer.raised + reviewer.pending,
            dollars(reviewer.cost_usd, reviewer.cost_is_estimated)
        ),
    }
}

fn reviewers_table(reviewers: &[ReviewerStats]) -> Markup {
    let share = |reviewer: &ReviewerStats| match reviewer.raised {
        0 => "–".to_owned(),
        settled => format!("{:.0} %", 100.0 * reviewer.upheld as f64 / settled as f64),
    };
    let rows = reviewers.iter().map(|reviewer| {
        let numbers = [reviewer.raised + reviewer.pending].into_iter().chain(outcome_counts(reviewer));
        let cells = numbers.map(|number| number.to_string());
        let cells = cells.chain([share(reviewer), dollars(reviewer.cost_usd, reviewer.cost_is_estimated)]);
        (row_name(&reviewer.reviewer, 40), cells.collect())
    });
    let names = ["Reviewer", "Raised", "Upheld", "Refuted", "Out of scope", "Open", "Pending", "Precision", "Cost"];
    table(&names, rows)
}

/// A labeled count of a bar chart.
struct NamedCount {
    name: String,
    count: u64,
}

/// A bar chart of counts.
fn counts(id: &str, title: &'static str, counts: &[NamedCount]) -> Markup {
    let all = counts.iter().map(|NamedCount { name, count }| ChartBar {
        name: name.clone(),
        parts: vec![(*count as f64, "c-cost")],
        value: count.to_string(),
    });
    let all: Vec<ChartBar> = all.collect();
    let description = counts.iter().map(|NamedCount { name, count }| format!("{}: {count}", truncate_line(name, 60)));
    let description = description.collect::<Vec<_>>().join(". ");
    let (height, svg) = (22.0 * all.len() as f64 + 4.0, bars(&all, 4.0));
    let rows = counts.iter().map(|NamedCount { name, count }| (row_name(name, 60), vec![count.to_string()]));
    let table = table(&["Name", "Count"], rows);
    Figure { id: id.to_owned(), title, description, height, svg, table }.render()
}

/// Rounds to a tenth of a unit; more precision is not visible.
fn round(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

/// `/stats`: the statistics over all tasks.
pub fn stats_page(project: &str, report: &StatsReport) -> String {
    let body = html! {
        h1 { "Statistics" }
        section #stats data-live aria-label="Figures" { (stats_section(report)) }
    };
    PageFrame::new("Statistics", project, PageSubject::Everything, body).into_string()
}

fn stats_section(report: &StatsReport) -> Markup {
    let cycles = report.cycles_to_approval.distribution.iter();
    let cycles = cycles.map(|bucket| NamedCount { name: count(bucket.cycles, "cycle"), count: bucket.tasks });
    let cycles: Vec<NamedCount> = cycles.collect();
    let stops = report.stop_reasons.iter().map(|stop| NamedCount {
        name: super::text::spaced(stop.reason_as_str().unwrap_or(stop.outcome_as_str())),
        count: stop.tasks,
    });
    let stops: Vec<NamedCount> = stops.collect();
    html! {
        p.lead {
            (count(report.tasks.approved, "task")) " approved"
            @if let Some(usd) = report.cost.per_approved_usd { ", " (dollars(usd, report.cost.is_estimated)) " each" }
        }
        @if report.roles.is_empty() && report.reviewers.is_empty() { p.hint { "No task has run yet." } }
        div.charts {
            @if !report.reviewers.is_empty() { (reviewers("reviewers", &report.reviewers)) }
            @if !report.roles.is_empty() { (roles("roles", &report.roles)) }
            @if !cycles.is_empty() { (counts("cycles", "Cycles to approval, by tasks", &cycles)) }
            @if !stops.is_empty() { (counts("stops", "Why tasks stopped", &stops)) }
        }
    }
}
