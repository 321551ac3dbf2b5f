//! A diff with findings at their lines.

use std::collections::BTreeMap;

use maud::{Markup, html};
use signoff_core::merge::render::plain_text::visible;
use signoff_core::patch::{PatchChange, PatchFile, PatchHunk, PatchLine, PatchMark};
use signoff_term::fit::count;
use signoff_term::show::LedgerLine;

use super::badges::{self, Tone};
use super::frame::{Anchors, ElementIds, PageContext, PageFrame, PageSubject};
use super::text;
use super::{DiffText, TaskPage};

/// Maximum number of lines on the diff page.
const MAX_LINES: usize = 20_000;

/// Files with more lines are collapsed.
const MAX_EXPANDED_LINES: usize = 400;

/// Maximum length of a line. Longer ones are generated, not written for readers.
const MAX_LINE_BYTES: usize = 2_000;

/// The findings of one file by line of the new version; `None` for lines that the diff does not show.
type FileNotes<'a> = BTreeMap<Option<u32>, Vec<&'a LedgerLine>>;

/// `/tasks/{id}/diff`.
pub fn page(page: &TaskPage) -> String {
    let (task, context) = (&page.report.task, PageContext::served(page.report.task.id));
    let title = format!("Diff of #{} {}", task.id, task.title);
    let body = html! {
        h1 { (text::line(&title)) }
        p { a href={ "/tasks/" (task.id) } { "Back to the task" } }
        section #diff data-live aria-label="Diff" {
            @match &page.diff {
                Some(diff) => (diff_view(diff, &PatchFile::parse_all(&diff.patch), &page.report.ledger, context)),
                None => p.hint { "There is nothing to compare." },
            }
        }
    };
    PageFrame::new(&title, &page.project, PageSubject::Task(task.id), body).into_string()
}

/// The stat line, findings in other files, and the changed files.
pub fn diff_view(diff: &DiffText, files: &[PatchFile], ledger: &[LedgerLine], context: PageContext) -> Markup {
    let anchors = Anchors::new(ledger, context);
    let elsewhere: Vec<&LedgerLine> = ledger.iter().filter(|line| !is_in(line, files)).collect();
    let (mut room, mut names) = (MAX_LINES, ElementIds::new(context, "file"));
    html! {
        p.stat { (stat(diff, files)) }
        @if !elsewhere.is_empty() {
            p.hint { "Found, but not in these files:" }
            @for line in elsewhere { (note(line, &anchors)) }
        }
        @for (index, file) in files.iter().enumerate() {
            (one_file(file, &notes(&files[index..], ledger), &names.next_id(&file.path), &anchors, &mut room))
        }
        (text::left_out_note(diff.left_out))
        (not_shown(diff))
    }
}

/// The files that are left out, each with the reason.
fn not_shown(diff: &DiffText) -> Markup {
    html! {
        @if !diff.not_shown.is_empty() {
            p.hint { "Changed, but not shown:" }
            ul { @for file in &diff.not_shown { li { (text::code(&file.path)) " (" (text::line(&file.reason)) ")" } } }
        }
    }
}

/// The stat line of git, or one computed from the parsed patch.
pub fn stat(diff: &DiffText, files: &[PatchFile]) -> Markup {
    if !diff.stat.trim().is_empty() {
        return text::line(&diff.stat);
    }
    let number = |mark| files.iter().map(|file| file.count(mark)).sum::<usize>();
    html! { (count(files.len() as u64, "file")) ", " (number(PatchMark::Added)) " added, " (number(PatchMark::Removed)) " removed" }
}

fn is_in(line: &LedgerLine, files: &[PatchFile]) -> bool {
    line.finding.file.as_ref().is_some_and(|name| files.iter().any(|file| file.path == *name))
}

/// The findings of the first of these files. A path can occur twice, when its type changed; findings are then shown at
/// its last occurrence.
fn notes<'a>(files: &[PatchFile], ledger: &'a [LedgerLine]) -> FileNotes<'a> {
    let mut notes = FileNotes::new();
    let Some((file, later)) = files.split_first() else { return notes };
    let own = |line: &&LedgerLine| line.finding.file.as_deref() == Some(&file.path);
    for line in ledger.iter().filter(own).filter(|line| !is_in(line, later)) {
        let line_number = line.finding.line.filter(|number| file.shows(*number));
        notes.entry(line_number).or_default().push(line);
    }
    notes
}

fn one_file(file: &PatchFile, notes: &FileNotes, id: &str, anchors: &Anchors, room: &mut usize) -> Markup {
    let fits = file.lines() <= *room;
    *room -= if fits { file.lines() } else { 0 };
    let is_short = file.lines() <= MAX_EXPANDED_LINES && (file.lines() > 0 || !notes.is_empty());
    let found: usize = notes.values().map(Vec::len).sum();
    let is_open = if fits { is_short } else { found > 0 };
    html! {
        details.file id=(id) open[is_open] {
            summary {
                (text::code(&file.path)) " " (change_label(&file.change)) " " (modes(file))
                span.added { "+" (file.count(PatchMark::Added)) } " " span.removed { "−" (file.count(PatchMark::Removed)) }
                @if found > 0 { " " (badges::chip(Tone::Warn, &count(found as u64, "finding"))) }
            }
            @for line in notes.get(&None).into_iter().flatten() { (note(line, anchors)) }
            @if file.is_binary { p.hint { "A binary file." } }
            @if fits {
                @if !file.hunks.is_empty() { (lines(file, notes, anchors)) }
            } @else {
                p.hint { "Too long for a page: " (count(file.lines() as u64, "line")) "." }
                @for (line_number, lines) in notes {
                    @if let Some(number) = line_number {
                        p.hint { "Line " (number) ":" }
                        @for line in lines { (note(line, anchors)) }
                    }
                }
            }
        }
    }
}

/// The file mode, if it is new or changed.
fn modes(file: &PatchFile) -> Markup {
    let label = match (file.old_mode, file.mode) {
        (Some(old), Some(new)) => format!("mode {} → {}", permissions(old), permissions(new)),
        (None, Some("100755")) if file.change == PatchChange::Added => "executable".to_owned(),
        (None, Some("120000")) => "symlink".to_owned(),
        (None, Some("160000")) => "submodule".to_owned(),
        (_, Some(_) | None) => return html! {},
    };
    html! { (badges::chip(Tone::Quiet, &label)) " " }
}

/// `755` of `100755`.
fn permissions(mode: &str) -> &str {
    mode.strip_prefix("100").unwrap_or(mode)
}

fn change_label(change: &PatchChange) -> Markup {
    match change {
        PatchChange::Changed => html! {},
        PatchChange::Added => badges::chip(Tone::Quiet, "new"),
        PatchChange::Deleted => badges::chip(Tone::Quiet, "deleted"),
        PatchChange::Renamed { from } => html! { span.hint { "renamed from " (text::code(from)) } },
    }
}

fn lines(file: &PatchFile, notes: &FileNotes, anchors: &Anchors) -> Markup {
    html! {
        table.diff {
            thead {
                tr {
                    th.n scope="col" { span.unseen { "Old line" } } th.n scope="col" { span.unseen { "New line" } }
                    th scope="col" { span.unseen { "Text" } }
                }
            }
            @for hunk in &file.hunks { (one_hunk(hunk, notes, anchors)) }
        }
    }
}

fn one_hunk(hunk: &PatchHunk, notes: &FileNotes, anchors: &Anchors) -> Markup {
    html! {
        tbody {
            tr.hunk { td colspan="3" { "⋯ " bdi { (visible(text::split_at_char(hunk.context, 200).0)) } } }
            @for line in &hunk.lines {
                (one_line(line))
                @for found in line.new.and_then(|number| notes.get(&Some(number))).into_iter().flatten() {
                    tr.noted { td colspan="3" { (note(found, anchors)) } }
                }
            }
        }
    }
}

fn one_line(line: &PatchLine) -> Markup {
    let (class, mark) = match line.mark {
        PatchMark::Kept => (None, " "),
        PatchMark::Added => (Some("add"), "+"),
        PatchMark::Removed => (Some("del"), "−"),
        PatchMark::Remark => (Some("rem"), "\\"),
    };
    let (shown, rest) = text::split_at_char(line.text, MAX_LINE_BYTES);
    html! {
        tr class=[class] {
            td.n { (number(line.old)) } td.n { (number(line.new)) }
            td.c { (mark) bdi { (visible(shown)) @if !rest.is_empty() { "…" } } }
        }
    }
}

fn number(number: Option<u32>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

/// A finding at its line.
fn note(line: &LedgerLine, anchors: &Anchors) -> Markup {
    let found = &line.finding;
    html! {
        div.note id=(anchors.get(&found.id, "-note")) {
            (badges::chip(Tone::from_finding_state(line.state), line.state.into_str())) " "
            (badges::chip(Tone::from_severity(found.severity), found.severity.into_str())) " "
            (text::line(&found.description))
            span.hint { " — " (text::line(&found.sources.join(", "))) }
        }
    }
}
