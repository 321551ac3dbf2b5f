//! The overview page: items that need attention, then running, waiting and completed tasks.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use maud::{Markup, html};
use signoff_core::view::inbox::{self, Action, InboxTasks, NextStep, ProjectSnapshot};
use signoff_core::view::{RunRow, RunStatus, TaskRow, TaskState};
use signoff_term::fit::dollars;
use signoff_term::runs::{self, RunEntry};

use super::frame::{PageFrame, PageSubject};
use super::run::RunProgress;
use super::{HomePage, PageNotice, badges, forms, text};

/// Maximum number of completed tasks unless all are requested.
const MAX_DONE: usize = 200;

/// Maximum number of runs.
const MAX_RUNS: usize = 20;

/// Maximum number of attention items with details; the rest are plain rows.
const MAX_DETAILED: usize = 50;

/// `/`.
pub fn page(page: &HomePage, notice: Option<&PageNotice>) -> String {
    let snapshot = ProjectSnapshot { tasks: &page.tasks, runs: &page.runs, driven: &page.driven };
    let sorted = InboxTasks::new(&snapshot);
    let attention_items = AttentionItems::new(page, &snapshot, &sorted);
    let most = if page.all { usize::MAX } else { MAX_DONE };
    let body = html! {
        h1 { "Overview" }
        (counts(&page.tasks))
        (attention_section(page, &snapshot, &attention_items))
        (task_section("running", "Running", &sorted.running, usize::MAX, page.now))
        (task_section("waiting", "Waiting for their turn", &unlisted_tasks(page, &sorted, false), most, page.now))
        (run_list(page))
        (done(page, &sorted))
    };
    PageFrame::new("Overview", &page.project, PageSubject::Everything, body)
        .with_notice(notice)
        .with_attention_count(attention_items.number(page))
        .into_string()
}

/// The number of tasks in each state.
fn counts(tasks: &[TaskRow]) -> Markup {
    let number = |state: TaskState| tasks.iter().filter(|task| task.state() == state).count();
    let counted = TaskState::ALL.iter().map(|state| (number(*state), *state));
    html! {
        p #counts .counts data-live {
            @if tasks.is_empty() { "No tasks yet. " a href="/add" { "Add the first one" } "." }
            @for (number, state) in counted.filter(|(number, _)| *number > 0) {
                span class={ "count " (badges::Tone::from_state(state).into_str()) } {
                    b { (number) } " " (text::spaced(state.into_str()))
                }
                " "
            }
        }
    }
}

/// The runs and tasks that need attention, apart from questions.
struct AttentionItems<'a> {
    runs: Vec<&'a RunRow>,
    tasks: Vec<&'a TaskRow>,
}

impl<'a> AttentionItems<'a> {
    fn new(page: &'a HomePage, snapshot: &ProjectSnapshot, sorted: &InboxTasks<'a>) -> Self {
        let needs = |run: &&RunRow| run.needs_attention() || snapshot.is_run_interrupted(run);
        let runs = page.runs.iter().filter(needs).take(MAX_RUNS).collect();
        Self { runs, tasks: sorted.needs_attention.iter().chain(&sorted.interrupted).copied().collect() }
    }

    fn number(&self, page: &HomePage) -> usize {
        page.questions.len() + self.runs.len() + self.tasks.len()
    }
}

fn attention_section(page: &HomePage, snapshot: &ProjectSnapshot, attention_items: &AttentionItems) -> Markup {
    let number = attention_items.number(page);
    let rest = attention_items.tasks.get(MAX_DETAILED..).unwrap_or_default();
    html! {
        section #attention data-live aria-labelledby="attention-title" {
            h2 #attention-title { "Needs you" (number_of(number)) }
            @if is_idle(page) {
                p.hint { "No process is running: " (text::code(&Action::WorkQueue.to_string())) " starts one." }
            } @else if number == 0 {
                p.hint { @if page.driven.is_empty() { "Nothing." } @else { "Nothing; work is in progress." } }
            }
            @for asked in &page.questions { (forms::question(asked, &page.tasks, "/")) }
            ul.rows {
                @for run in &attention_items.runs { (stopped_run(run, snapshot)) }
                @for task in attention_items.tasks.iter().take(MAX_DETAILED) { (attention_row(task, snapshot, page.now)) }
                @for task in rest { (row(task, page.now)) }
            }
        }
    }
}

/// Whether tasks could start and no process works on them.
fn is_idle(page: &HomePage) -> bool {
    page.driven.is_empty() && page.tasks.iter().any(|task| inbox::can_begin(task, &page.tasks))
}

fn number_of(number: usize) -> Markup {
    html! { @if number > 0 { " " span.number { (number) } } }
}

fn stopped_run(run: &RunRow, snapshot: &ProjectSnapshot) -> Markup {
    let (entry, id) = (RunEntry::new(run, snapshot), run.id);
    html! {
        li.row {
            (badges::state_badge(entry.state, runs::status(run)))
            a.title href={ "/runs/" (id) } { (text::line(&entry.text)) }
            @for next in &entry.next { p.next { (text::line(next)) } }
        }
    }
}

fn attention_row(task: &TaskRow, snapshot: &ProjectSnapshot, now: Timestamp) -> Markup {
    html! {
        li.row {
            (cells(task, now))
            div.do {
                @if inbox::can_be_retried(task) { (forms::retry(task.id, "/")) }
                p.next { (text::line(&NextStep::for_task(task, snapshot).to_string())) }
            }
        }
    }
}

/// A task in a list.
pub fn row(task: &TaskRow, now: Timestamp) -> Markup {
    html! { li.row { (cells(task, now)) } }
}

fn cells(task: &TaskRow, now: Timestamp) -> Markup {
    let status = badges::status_details(task);
    let open = task.open_findings;
    html! {
        (badges::task_badge(task))
        a.title href={ "/tasks/" (task.id) } { span.id { "#" (task.id) } " " (text::line(&task.title)) }
        span.status { @if status.is_empty() { (task.kind.into_str()) } @else { (status) } }
        span.facts {
            @if open > 0 { span { (open) " open" } }
            @if task.cost_usd > 0.0 { span { (dollars(task.cost_usd, task.cost_is_estimated)) } }
            @if let Some(elapsed) = badges::elapsed(task, now) { (elapsed) }
            @if let Some(ended) = &task.ended_at { span { (badges::ago(ended, now)) } }
        }
    }
}

/// A list of at most `most` tasks with its heading; hidden if empty.
fn task_section(id: &str, title: &str, tasks: &[&TaskRow], most: usize, now: Timestamp) -> Markup {
    html! {
        section id=(id) data-live aria-label=(title) {
            @if !tasks.is_empty() {
                h2 { (title) (number_of(tasks.len())) }
                ul.rows { @for task in tasks.iter().take(most) { (row(task, now)) } }
                (show_all(tasks.len().saturating_sub(most)))
            }
        }
    }
}

/// Tasks that no other section lists: the finished ones if `over`, else the unfinished ones.
fn unlisted_tasks<'a>(page: &'a HomePage, sorted: &InboxTasks, over: bool) -> Vec<&'a TaskRow> {
    let listed = sorted.needs_attention.iter().chain(&sorted.interrupted).chain(&sorted.running).map(|task| task.id);
    let with_question = page.questions.iter().filter_map(|question| question.task_id);
    let listed: BTreeSet<u64> = listed.chain(with_question).collect();
    page.tasks.iter().filter(|task| task.status.is_over() == over && !listed.contains(&task.id)).collect()
}

fn show_all(rest: usize) -> Markup {
    html! { @if rest > 0 { p { a href="/?all=1" { "Show " (rest) " more" } } } }
}

/// Completed tasks, latest first.
fn done(page: &HomePage, sorted: &InboxTasks) -> Markup {
    let mut tasks = unlisted_tasks(page, sorted, true);
    tasks.sort_by(|a, b| (&b.ended_at, b.id).cmp(&(&a.ended_at, a.id)));
    let shown = if page.all { tasks.len() } else { MAX_DONE };
    let rest = tasks.len().saturating_sub(shown);
    html! {
        section #done data-live aria-label="Done" {
            @if !tasks.is_empty() {
                h2 { "Done" (number_of(tasks.len())) }
                details #done-list open[tasks.len() <= MAX_RUNS || page.all] {
                    summary { "The latest first" }
                    ul.rows { @for task in tasks.iter().take(shown) { (row(task, page.now)) } }
                    (show_all(rest))
                }
            }
        }
    }
}

/// Runs with their progress, latest first.
fn run_list(page: &HomePage) -> Markup {
    let mut counted: BTreeMap<u64, RunProgress> = BTreeMap::new();
    for task in &page.tasks {
        if let Some(run) = task.run_id {
            counted.entry(run).or_default().add(task);
        }
    }
    let mut runs: Vec<&RunRow> = page.runs.iter().collect();
    runs.sort_by_key(|run| (!matches!(run.status, RunStatus::Running | RunStatus::Blocked), u64::MAX - run.id));
    let rest = runs.len().saturating_sub(MAX_RUNS);
    html! {
        section #runs data-live aria-label="Runs" {
            @if !runs.is_empty() {
                h2 { "Runs" (number_of(runs.len())) }
                ul.rows {
                    @for run in runs.iter().take(MAX_RUNS) { (run_row(run, counted.get(&run.id), page)) }
                }
                @if rest > 0 { p.hint { "… and " (rest) " earlier ones" } }
            }
        }
    }
}

fn run_row(run: &RunRow, counted: Option<&RunProgress>, page: &HomePage) -> Markup {
    let driven = page.driven.contains(&run.id);
    let state = run.state(&page.tasks);
    html! {
        li.row {
            (badges::state_badge(state, runs::status(run)))
            a.title href={ "/runs/" (run.id) } {
                span.id { "run " (run.id) } " " (text::line(run.specification.as_deref().unwrap_or(&run.preset)))
            }
            span.status { @if let Some(counted) = counted { (counted.summary(driven)) } }
            span.facts { @if run.cost_usd > 0.0 { span { (dollars(run.cost_usd, run.cost_is_estimated)) } } }
            @if let Some(counted) = counted { (counted.bar()) }
        }
    }
}
