//! The page of one task.

use jiff::Timestamp;
use maud::{Markup, html};
use signoff_core::ledger::FindingState;
use signoff_core::patch::PatchFile;
use signoff_core::view::{TaskRow, inbox};
use signoff_term::fit::{count, dollars};
use signoff_term::report::result_of_report;

use super::diff;
use super::findings::FindingContext;
use super::frame::{PageContext, PageFrame, PageSubject};
use super::{DiffText, PageNotice, ReviewHistory, TaskPage, TypedFields};
use super::{attempts, badges, chart, cycles, findings, forms, text};

/// Maximum number of diff lines on the task's page; a longer diff is only linked.
const MAX_INLINE_DIFF_LINES: usize = 1_500;

/// `/tasks/{id}`.
pub fn page(page: &TaskPage, notice: Option<&PageNotice>) -> String {
    let task = &page.report.task;
    let title = format!("#{} {}", task.id, task.title);
    let context = PageContext::served(task.id);
    let patch = page.diff.as_ref().map(|diff| diff.patch.as_str()).unwrap_or_default();
    let files = PatchFile::parse_all(patch);
    let typed = notice.and_then(|notice| notice.typed.as_ref());
    let body = html! {
        h1 { span.id { "#" (task.id) } " " (text::line(&task.title)) }
        (head(page, typed))
        (spec_and_reviews(page, context, FindingContext { files: &files, typed }))
        @if let Some(diff) = &page.diff { (changes(page, diff, &files, context)) }
        (attempts_and_files(page, context))
    };
    PageFrame::new(&title, &page.project, PageSubject::Task(task.id), body).with_notice(notice).into_string()
}

/// A section with its heading. On a served page it is refreshed on changes.
pub fn section(context: PageContext, name: &str, title: &str, part: Markup) -> Markup {
    let (id, heading) = (context.id(name), context.id(&format!("{name}-title")));
    // In a report with many tasks the names repeat, so sections are no landmarks there.
    let named = context.is_served.then_some(&heading);
    html! {
        section id=(id) data-live[context.is_served] aria-labelledby=[named] {
            h2 id=(heading) { (title) }
            (part)
        }
    }
}

fn head(page: &TaskPage, typed: Option<&TypedFields>) -> Markup {
    let task = &page.report.task;
    html! {
        section #head data-live aria-label="Status" {
            (status_line(page))
            @if inbox::is_interrupted(task, page.driven) { p.bad { "No process works on it now: it was interrupted." } }
            @if let Some(voided) = &page.report.voided { p.bad { "Not approved any more: " (text::line(voided)) } }
            @if let Some(question) = &page.report.question {
                (forms::question(question, &[], &format!("/tasks/{}", task.id)))
            } @else {
                p.next { (text::line(&page.next.to_string())) }
            }
            (facts(task, page.now))
            (forms::actions(&page.report, typed))
            p.ways {
                @if page.diff.is_some() { a href={ "/tasks/" (task.id) "/diff" } { "Diff" } " " }
                a href={ "/tasks/" (task.id) "/report.html" } { "Report" }
                @if let Some(run) = task.run_id { " " a href={ "/runs/" (run) } { "Run " (run) } }
            }
        }
    }
}

/// The status, with the reason if the task failed.
fn status_line(page: &TaskPage) -> Markup {
    let task = &page.report.task;
    let has_failed = task.status.is_failure();
    let result_text = result_of_report(&page.report, &page.next, page.driven).text;
    let why = result_text.split_once(": ").map(|(_, why)| why).filter(|_| has_failed);
    let last_error = page.report.attempts.last().and_then(|attempt| attempt.detail.as_ref()).filter(|_| has_failed);
    html! {
        p.lead { (badges::task_badge(task)) " " @if let Some(why) = why { (text::line(why)) } @else { (badges::status_details(task)) } }
        @if let Some(error) = last_error { p.bad { (text::line(error)) } }
    }
}

/// Type, branch, cost, time.
pub fn facts(task: &TaskRow, now: Timestamp) -> Markup {
    let tokens = format!("{} tokens in, {} out", task.input_tokens, task.output_tokens);
    let depends_on: Vec<_> = task.depends_on.iter().map(|id| format!("#{id}")).collect();
    html! {
        dl.facts {
            div { dt { "Type" } dd { (task.kind.into_str()) } }
            @if let Some(branch) = &task.branch { div { dt { "Branch" } dd { (text::code(branch)) } } }
            @if let Some(base) = &task.base { div { dt { "Base" } dd { (text::commit(base)) } } }
            @if let Some(commit) = &task.approved_commit { div { dt { "Approved" } dd { (text::commit(commit)) } } }
            div { dt { "Cost" } dd { (dollars(task.cost_usd, task.cost_is_estimated)) span.hint { " " (tokens) } } }
            @if let Some(elapsed) = badges::elapsed(task, now) { div { dt { "Time" } dd { (elapsed) } } }
            div { dt { "Added" } dd { (badges::timestamp(&task.added_at)) } }
            @if !depends_on.is_empty() { div { dt { "After" } dd { (depends_on.join(", ")) } } }
        }
    }
}

/// The specification, the findings and the review cycles.
pub fn spec_and_reviews(page: &TaskPage, context: PageContext, finding_context: FindingContext) -> Markup {
    let report = &page.report;
    let open = report.ledger.iter().filter(|line| line.state == FindingState::Open).count();
    let title = match (open, report.ledger.len()) {
        (0, all) => count(all as u64, "finding"),
        (open, all) => format!("{}, {open} open", count(all as u64, "finding")),
    };
    html! {
        @if !page.spec.trim().is_empty() { (section(context, "spec", "What was asked", text::prose(&page.spec, &context.id("spec-all")))) }
        (section(context, "findings", &title, html! {
            @if report.ledger.is_empty() { p.hint { "Nothing was found." } }
            (findings::all(ReviewHistory::from_report(report), context, finding_context))
        }))
        (section(context, "cycles", &count(report.cycles.len() as u64, "cycle"), html! {
            @if report.cycles.is_empty() { p.hint { "It has not been reviewed yet." } }
            (cycles::all(ReviewHistory::from_report(report), context))
        }))
    }
}

fn changes(page: &TaskPage, diff: &DiffText, files: &[PatchFile], context: PageContext) -> Markup {
    let lines: usize = files.iter().map(PatchFile::lines).sum();
    let part = html! {
        @if lines > MAX_INLINE_DIFF_LINES {
            p { (diff::stat(diff, files)) }
            p { a href={ "/tasks/" (context.task) "/diff" } { "The diff with its findings" } " (" (count(lines as u64, "line")) ")" }
        } @else { (diff::diff_view(diff, files, &page.report.ledger, context)) }
    };
    section(context, "diff", "Diff", part)
}

/// Charts, attempts, decisions, transcripts and files.
pub fn attempts_and_files(page: &TaskPage, context: PageContext) -> Markup {
    let report = &page.report;
    let roles = attempts::stats_by_role(&report.attempts);
    let is_reviewed = !report.cycles.is_empty();
    html! {
        @if !report.attempts.is_empty() {
            (section(context, "figures", "Figures", html! {
                div.charts {
                    @if is_reviewed { (chart::convergence(&context.id("convergence"), &report.cycles.iter().map(|cycle| cycle.convergence).collect::<Vec<_>>())) }
                    (chart::roles(&context.id("roles"), &roles))
                }
            }))
            (section(context, "attempts", "Attempts", attempts::table(&report.attempts, context)))
        }
        @if !report.decisions.is_empty() {
            (section(context, "decisions", "Decisions of people", attempts::decisions(&report.decisions)))
        }
        // Reports are made to be shared, so they contain no transcripts.
        @if context.is_served && !page.transcripts.is_empty() {
            (section(context, "transcripts", "Transcripts", attempts::transcripts(&page.transcripts, &report.attempts, context)))
        }
        @if !report.artifacts.is_empty() {
            (section(context, "artifacts", "Files kept", html! {
                ul { @for path in &report.artifacts { li { (text::code(path)) } } }
            }))
        }
    }
}
