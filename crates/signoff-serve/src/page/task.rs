//! Everything about one task.

use jiff::Timestamp;
use maud::{Markup, html};
use signoff_core::view::{Status, TaskRow};
use signoff_term::fit::count;
use signoff_term::report::of_report;

use super::diff::{self, File};
use super::findings::Beside;
use super::frame::{About, Framed};
use super::setting::Setting;
use super::values::{DiffText, Judged, Notice, TaskPage, Typed};
use super::{actions, attempts, chart, convergence, cycles, findings, question, sign, text};

/// How many lines of a diff stand on the task's own page; a longer one has a page of its own.
const DIFF: usize = 1_500;

pub fn page(page: &TaskPage, notice: Option<&Notice>) -> String {
    let task = &page.report.task;
    let title = format!("#{} {}", task.id, task.title);
    let setting = Setting::served(task.id);
    let patch = page.diff.as_ref().map(|diff| diff.patch.as_str()).unwrap_or_default();
    let files = diff::read(patch);
    let typed = notice.and_then(|notice| notice.typed.as_ref());
    let body = html! {
        h1 { span.id { "#" (task.id) } " " (text::line(&task.title)) }
        (head(page, typed))
        (told(page, setting, Beside { files: &files, typed }))
        @if let Some(diff) = &page.diff { (changes(page, diff, &files, setting)) }
        (rest(page, setting))
    };
    let (project, about) = (page.project.as_str(), About::Task(task.id));
    Framed { title: &title, project, about, notice, needs: None, body }.into_string()
}

/// A part under its heading, fetched anew when something changes.
pub fn section(setting: Setting, name: &str, title: &str, part: Markup) -> Markup {
    let (id, heading) = (setting.id(name), setting.id(&format!("{name}-title")));
    // In a file with many tasks the same names come again: there they are no landmarks.
    let named = setting.is_served.then_some(&heading);
    html! {
        section id=(id) data-live[setting.is_served] aria-labelledby=[named] {
            h2 id=(heading) { (title) }
            (part)
        }
    }
}

fn head(page: &TaskPage, typed: Option<&Typed>) -> Markup {
    let task = &page.report.task;
    html! {
        section #head data-live aria-label="How it stands" {
            (stands(page))
            @if is_left(page) { p.bad { "Nobody works on it now: it was interrupted." } }
            @if let Some(voided) = &page.report.voided { p.bad { "Not approved any more: " (text::line(voided)) } }
            @if let Some(question) = &page.report.question {
                (question::asked(question, &[], &format!("/tasks/{}", task.id)))
            } @else if !page.next.is_empty() {
                p.next { (text::line(&page.next)) }
            }
            (facts(task, page.now))
            (actions::all(&page.report, typed))
            p.ways {
                @if page.diff.is_some() { a href={ "/tasks/" (task.id) "/diff" } { "Diff" } " " }
                a href={ "/tasks/" (task.id) "/report.html" } { "Report" }
                @if let Some(run) = task.run_id { " " a href={ "/runs/" (run) } { "Run " (run) } }
            }
        }
    }
}

/// The status; and of what stopped by itself why, in words.
fn stands(page: &TaskPage) -> Markup {
    let task = &page.report.task;
    let has_stopped = matches!(task.status, Status::Failed | Status::Stuck);
    let told = of_report(&page.report, page.driven).text;
    let why = told.split_once(": ").map(|(_, why)| why).filter(|_| has_stopped);
    let said =
        page.report.attempts.last().and_then(|attempt| attempt.detail.as_ref()).filter(|_| has_stopped);
    html! {
        p.lead { (sign::badge(task)) " " @if let Some(why) = why { (text::line(why)) } @else { (sign::standing(task)) } }
        @if let Some(said) = said { p.bad { (text::line(said)) } }
    }
}

/// Whether it was taken up, and whoever worked on it is gone.
fn is_left(page: &TaskPage) -> bool {
    page.report.task.status == Status::InProgress && !page.driven
}

/// Type, branch, cost, time.
pub fn facts(task: &TaskRow, now: Timestamp) -> Markup {
    let tokens = format!("{} tokens in, {} out", task.input_tokens, task.output_tokens);
    html! {
        dl.facts {
            div { dt { "Type" } dd { (task.kind.word()) } }
            @if let Some(branch) = &task.branch { div { dt { "Branch" } dd { (text::code(branch)) } } }
            @if let Some(base) = &task.base { div { dt { "Base" } dd { (text::commit(base)) } } }
            @if let Some(commit) = &task.approved_commit { div { dt { "Approved" } dd { (text::commit(commit)) } } }
            div { dt { "Cost" } dd { (sign::dollars(sign::cost(task))) span.hint { " " (tokens) } } }
            @if let Some(elapsed) = sign::elapsed(task, now) { div { dt { "Time" } dd { (elapsed) } } }
            div { dt { "Added" } dd { (sign::moment(&task.added_at)) } }
            @if !task.depends_on.is_empty() { div { dt { "After" } dd { (numbers(&task.depends_on)) } } }
        }
    }
}

fn numbers(ids: &[u64]) -> String {
    ids.iter().map(|id| format!("#{id}")).collect::<Vec<_>>().join(", ")
}

/// What was asked, what was found, and how it converged.
pub fn told(page: &TaskPage, setting: Setting, beside: Beside) -> Markup {
    let report = &page.report;
    let open = report.ledger.iter().filter(|line| line.state == "open").count();
    let title = match (open, report.ledger.len()) {
        (0, all) => count(all as u64, "finding"),
        (open, all) => format!("{}, {open} open", count(all as u64, "finding")),
    };
    html! {
        @if !page.spec.trim().is_empty() { (section(setting, "spec", "What was asked", text::prose(&page.spec, &setting.id("spec-all")))) }
        (section(setting, "findings", &title, html! {
            @if report.ledger.is_empty() { p.hint { "Nothing was found." } }
            (findings::all(Judged::of(report), setting, beside))
        }))
        (section(setting, "cycles", &count(report.cycles.len() as u64, "cycle"), html! {
            @if report.cycles.is_empty() { p.hint { "Nobody has reviewed it yet." } }
            (cycles::all(Judged::of(report), setting))
        }))
    }
}

fn changes(page: &TaskPage, diff: &DiffText, files: &[File], setting: Setting) -> Markup {
    let lines: usize = files.iter().map(File::lines).sum();
    let part = html! {
        @if lines > DIFF {
            p { (diff::stat(diff, files)) }
            p { a href={ "/tasks/" (setting.task) "/diff" } { "The diff with what was found in it" } " (" (count(lines as u64, "line")) ")" }
        } @else { (diff::shown(diff, files, &page.report.ledger, setting)) }
    };
    section(setting, "diff", "Diff", part)
}

/// Attempts, what they used, what people decided, what agents said.
pub fn rest(page: &TaskPage, setting: Setting) -> Markup {
    let report = &page.report;
    let roles = attempts::by_role(&report.attempts);
    let is_reviewed = !report.cycles.is_empty();
    html! {
        @if !report.attempts.is_empty() {
            (section(setting, "figures", "Figures", html! {
                div.charts {
                    @if is_reviewed { (chart::convergence(&setting.id("convergence"), &convergence::changes(Judged::of(report)))) }
                    (chart::roles(&setting.id("roles"), &roles))
                }
            }))
            (section(setting, "attempts", "Attempts", attempts::table(&report.attempts, setting)))
        }
        @if !report.decisions.is_empty() {
            (section(setting, "decisions", "Decisions of people", attempts::decisions(&report.decisions)))
        }
        // What agents said stays where it was said: a report is made to be sent.
        @if setting.is_served && !page.transcripts.is_empty() {
            (section(setting, "transcripts", "What agents said", attempts::transcripts(&page.transcripts, &report.attempts, setting)))
        }
        @if !report.artifacts.is_empty() {
            (section(setting, "artifacts", "Files kept", html! {
                ul { @for path in &report.artifacts { li { (text::code(path)) } } }
            }))
        }
    }
}
