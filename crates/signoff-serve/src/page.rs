//! The pages people look at: values in, HTML out.
//!
//! Nothing here reads, writes or asks for the time. Pages are whole without script; the one there is only fetches them
//! anew when something has changed. They keep to a content security policy without inline script and style.

mod assets;
mod frame;
mod values;

pub use assets::{ASSETS, Asset, asset};
pub use frame::way_back;
pub use values::{
    AddPage, Cost, DiffText, Home, Notice, NoticeKind, ReportHead, ReviewerFigures, RoleFigures, RunPage,
    StatsPage, TaskPage, Transcript, TranscriptPage,
};

/// `/`: what needs attention, what runs, what waits, what is done.
pub fn home(page: &Home, notice: Option<&Notice>) -> String {
    frame::page("Overview", &page.project, notice)
}

/// `/runs/{id}`.
pub fn run(page: &RunPage, notice: Option<&Notice>) -> String {
    frame::page("Run", &page.project, notice)
}

/// `/tasks/{id}`.
pub fn task(page: &TaskPage, notice: Option<&Notice>) -> String {
    frame::page("Task", &page.project, notice)
}

/// `/tasks/{id}/diff`: the whole diff, with what was found at its lines.
pub fn diff(page: &TaskPage) -> String {
    frame::page("Diff", &page.project, None)
}

/// `/tasks/{id}/transcript/{attempt}`.
pub fn transcript(page: &TranscriptPage) -> String {
    frame::page("Transcript", &page.project, None)
}

/// `/stats`.
pub fn stats(page: &StatsPage) -> String {
    frame::page("Statistics", &page.project, None)
}

/// `/add`.
pub fn add(page: &AddPage, notice: Option<&Notice>) -> String {
    frame::page("Add a task", &page.project, notice)
}

/// A request that was not fulfilled, whatever it was for.
pub fn error_page(status: u16, message: &str, hint: Option<&str>) -> String {
    let notice =
        Notice { kind: NoticeKind::Refused, message: message.to_owned(), hint: hint.map(str::to_owned) };
    frame::page(&status.to_string(), "", Some(&notice))
}

/// One file to keep or to send: a task or the tasks of a run, without script and without the server.
pub fn report_file(head: &ReportHead, tasks: &[TaskPage]) -> String {
    let _ = tasks;
    frame::page("Report", &head.project, None)
}
