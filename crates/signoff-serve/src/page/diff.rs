//! A diff with what was found at its lines.

mod patch;

use std::collections::BTreeMap;

use maud::{Markup, html};
use signoff_core::merge::render::plain_text::visible;
use signoff_term::fit::count;
use signoff_term::show::LedgerLine;

use patch::{Change, Hunk, Line, Mark};
pub use patch::{File, read};

use super::frame::{About, Framed};
use super::setting::{Anchors, Names, Setting};
use super::sign::{self, Tone};
use super::text;
use super::values::{DiffText, TaskPage};

/// How many lines a page of its own shows.
const AT_ALL: usize = 20_000;

/// How many lines of one file are unfolded.
const UNFOLDED: usize = 400;

/// How long a line may be: machines write longer ones, and nobody reads them.
const LONGEST: usize = 2_000;

/// What was found in one file, by its line in the file as it is now.
type Notes<'a> = BTreeMap<Option<u32>, Vec<&'a LedgerLine>>;

/// A page with nothing but the diff.
pub fn page(page: &TaskPage) -> String {
    let (task, setting) = (&page.report.task, Setting::served(page.report.task.id));
    let title = format!("Diff of #{} {}", task.id, task.title);
    let body = html! {
        h1 { (text::line(&title)) }
        p { a href={ "/tasks/" (task.id) } { "Back to the task" } }
        section #diff data-live aria-label="Diff" {
            @match &page.diff {
                Some(diff) => (shown(diff, &read(&diff.patch), &page.report.ledger, setting)),
                None => p.hint { "There is nothing to compare." },
            }
        }
    };
    let (project, about) = (page.project.as_str(), About::Task(task.id));
    Framed { title: &title, project, about, notice: None, needs: None, body }.into_string()
}

/// The stat, what was found elsewhere, and the files.
pub fn shown(diff: &DiffText, files: &[File], ledger: &[LedgerLine], setting: Setting) -> Markup {
    let anchors = Anchors::of(ledger, setting);
    let elsewhere: Vec<&LedgerLine> = ledger.iter().filter(|line| !is_in(line, files)).collect();
    let (mut room, mut names) = (AT_ALL, Names::new(setting, "file"));
    html! {
        p.stat { (stat(diff, files)) }
        @if !elsewhere.is_empty() {
            p.hint { "Found, but not in these files:" }
            @for line in elsewhere { (note(line, &anchors)) }
        }
        @for (index, file) in files.iter().enumerate() {
            (one_file(file, &notes(&files[index..], ledger), (&names.of(&file.path), &anchors), &mut room))
        }
        (text::more(diff.left_out))
        (not_shown(diff))
    }
}

/// The files that nobody can read here, each with why.
fn not_shown(diff: &DiffText) -> Markup {
    html! {
        @if !diff.not_shown.is_empty() {
            p.hint { "Changed, but not shown:" }
            ul { @for (path, why) in &diff.not_shown { li { (text::code(path)) " (" (text::line(why)) ")" } } }
        }
    }
}

/// What git says in one line, or what was read where it says nothing.
pub fn stat(diff: &DiffText, files: &[File]) -> Markup {
    if !diff.stat.trim().is_empty() {
        return text::line(&diff.stat);
    }
    let number = |mark| files.iter().map(|file| file.count(mark)).sum::<usize>();
    html! { (count(files.len() as u64, "file")) ", " (number(Mark::Added)) " added, " (number(Mark::Removed)) " removed" }
}

fn is_in(line: &LedgerLine, files: &[File]) -> bool {
    line.finding.file.as_ref().is_some_and(|name| files.iter().any(|file| file.path == *name))
}

/// The findings of the first of these files; those whose line cannot be seen stand under none. One that comes again, as
/// what became something else does, has them where it comes last.
fn notes<'a>(files: &[File], ledger: &'a [LedgerLine]) -> Notes<'a> {
    let mut notes = Notes::new();
    let Some((file, later)) = files.split_first() else { return notes };
    let own = |line: &&LedgerLine| line.finding.file.as_deref() == Some(&file.path);
    for line in ledger.iter().filter(own).filter(|line| !is_in(line, later)) {
        let place = line.finding.line.filter(|number| file.shows(*number));
        notes.entry(place).or_default().push(line);
    }
    notes
}

fn one_file(file: &File, notes: &Notes, (id, anchors): (&str, &Anchors), room: &mut usize) -> Markup {
    let fits = file.lines() <= *room;
    *room -= if fits { file.lines() } else { 0 };
    let is_short = file.lines() <= UNFOLDED && (file.lines() > 0 || !notes.is_empty());
    let found: usize = notes.values().map(Vec::len).sum();
    let is_open = if fits { is_short } else { found > 0 };
    html! {
        details.file id=(id) open[is_open] {
            summary {
                (text::code(&file.path)) " " (named(&file.change)) " " (modes(file))
                span.added { "+" (file.count(Mark::Added)) } " " span.removed { "−" (file.count(Mark::Removed)) }
                @if found > 0 { " " (sign::chip(Tone::Warn, &count(found as u64, "finding"))) }
            }
            @for line in notes.get(&None).into_iter().flatten() { (note(line, anchors)) }
            @if file.is_binary { p.hint { "A binary file." } }
            @if fits {
                @if !file.hunks.is_empty() { (lines(file, notes, anchors)) }
            } @else {
                p.hint { "Too long for a page: " (count(file.lines() as u64, "line")) "." }
                @for (place, lines) in notes {
                    @if let Some(number) = place {
                        p.hint { "Line " (number) ":" }
                        @for line in lines { (note(line, anchors)) }
                    }
                }
            }
        }
    }
}

/// What a file is besides its text, where that is new.
fn modes(file: &File) -> Markup {
    let told = match (file.old_mode, file.mode) {
        (Some(old), Some(new)) => format!("mode {} → {}", permissions(old), permissions(new)),
        (None, Some("100755")) if file.change == Change::Added => "executable".to_owned(),
        (None, Some("120000")) => "symlink".to_owned(),
        (None, Some("160000")) => "submodule".to_owned(),
        (_, Some(_) | None) => return html! {},
    };
    html! { (sign::chip(Tone::Quiet, &told)) " " }
}

/// `755` of `100755`.
fn permissions(mode: &str) -> &str {
    mode.strip_prefix("100").unwrap_or(mode)
}

fn named(change: &Change) -> Markup {
    match change {
        Change::Changed => html! {},
        Change::Added => sign::chip(Tone::Quiet, "new"),
        Change::Deleted => sign::chip(Tone::Quiet, "deleted"),
        Change::Renamed { from } => html! { span.hint { "renamed from " (text::code(from)) } },
    }
}

fn lines(file: &File, notes: &Notes, anchors: &Anchors) -> Markup {
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

fn one_hunk(hunk: &Hunk, notes: &Notes, anchors: &Anchors) -> Markup {
    html! {
        tbody {
            tr.hunk { td colspan="3" { "⋯ " bdi { (visible(text::split(hunk.within, 200).0)) } } }
            @for line in &hunk.lines {
                (one_line(line))
                @for found in line.new.and_then(|number| notes.get(&Some(number))).into_iter().flatten() {
                    tr.noted { td colspan="3" { (note(found, anchors)) } }
                }
            }
        }
    }
}

fn one_line(line: &Line) -> Markup {
    let (class, mark) = match line.mark {
        Mark::Kept => (None, " "),
        Mark::Added => (Some("add"), "+"),
        Mark::Removed => (Some("del"), "−"),
        Mark::Remark => (Some("rem"), "\\"),
    };
    let (shown, rest) = text::split(line.text, LONGEST);
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

/// A finding where it was found.
fn note(line: &LedgerLine, anchors: &Anchors) -> Markup {
    let found = &line.finding;
    html! {
        div.note id=(anchors.get(&found.id, "-note")) {
            (sign::chip(Tone::of_state(line.state), line.state)) " "
            (sign::chip(Tone::of_severity(found.severity), found.severity)) " "
            (text::line(&found.description))
            span.hint { " — " (text::line(&found.sources.join(", "))) }
        }
    }
}
