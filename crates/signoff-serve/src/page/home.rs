//! The overview: what needs somebody, what runs, what waits, what is done.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use maud::{Markup, html};
use signoff_core::view::{RunRow, Status, TaskRow, TaskState};
use signoff_term::attention::{self, Scene, Sorted};
use signoff_term::runs::{self, Told};

use super::frame::{About, Framed};
use super::progress::Counted;
use super::values::{Home, Notice};
use super::{actions, question, sign, text};

/// How many of the tasks that are done a page lists before somebody asks for all.
const DONE: usize = 200;

/// How many runs it lists.
const RUNS: usize = 20;

/// How much of what needs attention it tells at length; the rest are rows.
const AT_LENGTH: usize = 50;

pub fn page(page: &Home, notice: Option<&Notice>) -> String {
    let scene = Scene { tasks: &page.tasks, runs: &page.runs, driven: &page.driven };
    let sorted = Sorted::of(&scene);
    let needs = Needs::of(page, &scene, &sorted);
    let body = html! {
        h1 { "Overview" }
        (counts(&page.tasks))
        (needed(page, &scene, &needs))
        (listed("running", "Running", &sorted.running, page.now))
        (waiting(page, &sorted))
        (run_list(page))
        (done(page, &sorted))
    };
    let (title, project, about) = ("Overview", page.project.as_str(), About::Everything);
    Framed { title, project, about, notice, needs: Some(needs.number(page)), body }.into_string()
}

/// How many there are of each kind.
fn counts(tasks: &[TaskRow]) -> Markup {
    let number = |state: TaskState| tasks.iter().filter(|task| task.state() == state).count();
    let counted = TaskState::ALL.into_iter().map(|state| (number(state), state));
    html! {
        p #counts .counts data-live {
            @if tasks.is_empty() { "No tasks yet. " a href="/add" { "Add the first one" } "." }
            @for (number, state) in counted.filter(|(number, _)| *number > 0) {
                span class={ "count " (sign::Tone::of(state).class()) } {
                    b { (number) } " " (text::spaced(state.as_str()))
                }
                " "
            }
        }
    }
}

/// What somebody has to look at, besides the questions.
struct Needs<'a> {
    runs: Vec<&'a RunRow>,
    tasks: Vec<&'a TaskRow>,
}

impl<'a> Needs<'a> {
    fn of(page: &'a Home, scene: &Scene, sorted: &Sorted<'a>) -> Self {
        let needs = |run: &&RunRow| runs::needs_somebody(run) || runs::is_left(run, scene);
        let runs = page.runs.iter().filter(needs).take(RUNS).collect();
        Self { runs, tasks: sorted.troubled.iter().chain(&sorted.left).copied().collect() }
    }

    fn number(&self, page: &Home) -> usize {
        page.questions.len() + self.runs.len() + self.tasks.len()
    }
}

fn needed(page: &Home, scene: &Scene, needs: &Needs) -> Markup {
    let number = needs.number(page);
    let rest = needs.tasks.get(AT_LENGTH..).unwrap_or_default();
    html! {
        section #attention data-live aria-labelledby="attention-title" {
            h2 #attention-title { "Needs you" (number_of(number)) }
            @if is_asleep(page) {
                p.hint { "Nobody is at work: " (text::code("signoff work")) " starts it." }
            } @else if number == 0 {
                p.hint { @if page.driven.is_empty() { "Nothing." } @else { "Nothing. It goes on by itself." } }
            }
            @for asked in &page.questions { (question::asked(asked, &page.tasks, "/")) }
            ul.rows {
                @for run in &needs.runs { (stopped_run(run, scene)) }
                @for task in needs.tasks.iter().take(AT_LENGTH) { (troubled(task, scene, page.now)) }
                @for task in rest { (row(task, page.now)) }
            }
        }
    }
}

/// Whether there is something to do and nobody who does it.
fn is_asleep(page: &Home) -> bool {
    page.driven.is_empty() && page.tasks.iter().any(|task| task.status == Status::Pending)
}

fn number_of(number: usize) -> Markup {
    html! { @if number > 0 { " " span.number { (number) } } }
}

fn stopped_run(run: &RunRow, scene: &Scene) -> Markup {
    let (told, id) = (Told::of(run, scene), run.id);
    html! {
        li.row {
            (sign::sign(told.state, runs::status(run)))
            a.title href={ "/runs/" (id) } { (text::line(&told.standing)) }
            @for next in &told.next { p.next { (text::line(next)) } }
        }
    }
}

fn troubled(task: &TaskRow, scene: &Scene, now: Timestamp) -> Markup {
    html! {
        li.row {
            (cells(task, now))
            div.do {
                @if actions::can_be_retried(task) { (actions::retry(task.id, "/")) }
                p.next { (text::line(&attention::next(task, scene))) }
            }
        }
    }
}

/// A task in a list.
pub fn row(task: &TaskRow, now: Timestamp) -> Markup {
    html! { li.row { (cells(task, now)) } }
}

fn cells(task: &TaskRow, now: Timestamp) -> Markup {
    let standing = sign::standing(task);
    let open = task.open_findings;
    html! {
        (sign::badge(task))
        a.title href={ "/tasks/" (task.id) } { span.id { "#" (task.id) } " " (text::line(&task.title)) }
        span.standing { @if standing.is_empty() { (task.kind.word()) } @else { (standing) } }
        span.facts {
            @if open > 0 { span { (open) " open" } }
            @if task.cost_usd > 0.0 { span { (sign::dollars(sign::cost(task))) } }
            @if let Some(elapsed) = sign::elapsed(task, now) { (elapsed) }
            @if let Some(ended) = &task.ended_at { span { (sign::ago(ended, now)) } }
        }
    }
}

/// A list under its heading; nothing at all where it is empty.
fn listed(id: &str, title: &str, tasks: &[&TaskRow], now: Timestamp) -> Markup {
    html! {
        section id=(id) data-live aria-label=(title) {
            @if !tasks.is_empty() {
                h2 { (title) (number_of(tasks.len())) }
                ul.rows { @for task in tasks { (row(task, now)) } }
            }
        }
    }
}

/// What needs nobody and is not worked on.
fn waiting(page: &Home, sorted: &Sorted) -> Markup {
    let tasks = unsaid(page, sorted, false);
    let shown = if page.all { tasks.len() } else { DONE };
    let rest = tasks.len().saturating_sub(shown);
    html! {
        section #waiting data-live aria-label="Waiting for their turn" {
            @if !tasks.is_empty() {
                h2 { "Waiting for their turn" (number_of(tasks.len())) }
                ul.rows { @for task in tasks.iter().take(shown) { (row(task, page.now)) } }
                (show_all(rest))
            }
        }
    }
}

/// Tasks that stand nowhere else: those that are over, or those that are not.
fn unsaid<'a>(page: &'a Home, sorted: &Sorted, over: bool) -> Vec<&'a TaskRow> {
    let told = sorted.troubled.iter().chain(&sorted.left).chain(&sorted.running).map(|task| task.id);
    let asked = page.questions.iter().filter_map(|question| question.task_id);
    let told: BTreeSet<u64> = told.chain(asked).collect();
    let is_over = |task: &TaskRow| match task.status {
        Status::Completed | Status::Failed | Status::Stuck | Status::Cancelled => true,
        Status::Pending | Status::InProgress | Status::Waiting | Status::Paused | Status::Blocked => false,
    };
    page.tasks.iter().filter(|task| is_over(task) == over && !told.contains(&task.id)).collect()
}

fn show_all(rest: usize) -> Markup {
    html! { @if rest > 0 { p { a href="/?all=1" { "Show " (rest) " more" } } } }
}

/// The latest first.
fn done(page: &Home, sorted: &Sorted) -> Markup {
    let mut tasks = unsaid(page, sorted, true);
    tasks.sort_by(|a, b| (&b.ended_at, b.id).cmp(&(&a.ended_at, a.id)));
    let shown = if page.all { tasks.len() } else { DONE };
    let rest = tasks.len().saturating_sub(shown);
    html! {
        section #done data-live aria-label="Done" {
            @if !tasks.is_empty() {
                h2 { "Done" (number_of(tasks.len())) }
                details #done-list open[tasks.len() <= RUNS || page.all] {
                    summary { "The latest first" }
                    ul.rows { @for task in tasks.iter().take(shown) { (row(task, page.now)) } }
                    (show_all(rest))
                }
            }
        }
    }
}

/// Runs with how far they are, the latest first.
fn run_list(page: &Home) -> Markup {
    let mut counted: BTreeMap<u64, Counted> = BTreeMap::new();
    for task in &page.tasks {
        if let Some(run) = task.run_id {
            counted.entry(run).or_default().add(task);
        }
    }
    let mut runs: Vec<&RunRow> = page.runs.iter().collect();
    runs.sort_by_key(|run| (run.status != "running" && run.status != "blocked", u64::MAX - run.id));
    let rest = runs.len().saturating_sub(RUNS);
    html! {
        section #runs data-live aria-label="Runs" {
            @if !runs.is_empty() {
                h2 { "Runs" (number_of(runs.len())) }
                ul.rows {
                    @for run in runs.iter().take(RUNS) { (run_row(run, counted.get(&run.id), page)) }
                }
                @if rest > 0 { p.hint { "… and " (rest) " earlier ones" } }
            }
        }
    }
}

fn run_row(run: &RunRow, counted: Option<&Counted>, page: &Home) -> Markup {
    let driven = page.driven.contains(&run.id);
    let state = runs::state(run, &page.tasks);
    html! {
        li.row {
            (sign::sign(state, runs::status(run)))
            a.title href={ "/runs/" (run.id) } {
                span.id { "run " (run.id) } " " (text::line(run.specification.as_deref().unwrap_or(&run.preset)))
            }
            span.standing { @if let Some(counted) = counted { (counted.words(driven)) } }
            span.facts { @if run.cost_usd > 0.0 { span { (sign::dollars(super::run::cost(run))) } } }
            @if let Some(counted) = counted { (counted.bar()) }
        }
    }
}
