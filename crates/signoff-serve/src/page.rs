//! The pages people look at: values in, HTML out.
//!
//! Nothing here reads, writes or asks for the time. Pages are whole without script; the one there is only fetches them
//! anew when something has changed. They keep to a content security policy without inline script and style.

mod actions;
mod add;
mod assets;
mod attempts;
mod chart;
mod convergence;
mod cycles;
mod diff;
mod findings;
mod frame;
mod home;
mod progress;
mod question;
mod report;
mod run;
mod setting;
mod sign;
mod stats;
mod task;
mod text;
mod values;

pub use assets::{ASSETS, Asset, asset};
pub use frame::way_back;
pub use values::{
    AddPage, Cost, DiffText, Home, Notice, NoticeKind, ReportHead, ReviewerFigures, RoleFigures, RunPage,
    StatsPage, TaskPage, Transcript, TranscriptPage, Typed, Whole,
};

/// `/`: what needs attention, what runs, what waits, what is done.
pub fn home(page: &Home, notice: Option<&Notice>) -> String {
    home::page(page, notice)
}

/// `/runs/{id}`.
pub fn run(page: &RunPage, notice: Option<&Notice>) -> String {
    run::page(page, notice)
}

/// `/tasks/{id}`.
pub fn task(page: &TaskPage, notice: Option<&Notice>) -> String {
    task::page(page, notice)
}

/// `/tasks/{id}/diff`: the whole diff, with what was found at its lines.
pub fn diff(page: &TaskPage) -> String {
    diff::page(page)
}

/// `/tasks/{id}/transcript/{attempt}`.
pub fn transcript(page: &TranscriptPage) -> String {
    attempts::page(page)
}

/// `/stats`.
pub fn stats(page: &StatsPage) -> String {
    stats::page(page)
}

/// `/add`.
pub fn add(page: &AddPage, notice: Option<&Notice>) -> String {
    add::page(page, notice)
}

/// A request that was not fulfilled, whatever it was for.
pub fn error_page(status: u16, message: &str, hint: Option<&str>) -> String {
    frame::error(status, message, hint)
}

/// One file to keep or to send: a task or the tasks of a run, without script and without the server.
pub fn report_file(head: &ReportHead, tasks: Vec<TaskPage>) -> String {
    report::file(head, tasks)
}
