//! The pages of the web UI: values in, HTML out.
//!
//! Nothing here does I/O or reads the clock. Pages work without JavaScript; the one script only refreshes them when
//! something has changed. They comply with a content security policy without inline script and style.

mod attempts;
mod badges;
mod chart;
mod cycles;
mod diff;
mod findings;
mod forms;
mod frame;
mod home;
mod report;
mod run;
mod task;
mod text;
mod values;

pub use frame::return_path;
pub use values::{
    AddPage, Cost, DiffText, Home, NoticeKind, PageNotice, ReportHead, ReportOverview, ReviewerFigures, RoleFigures,
    RunPage, StatsPage, TaskPage, TranscriptPage, TranscriptTail, TypedFields,
};

/// `/`: the overview of all tasks and runs.
pub fn home(page: &Home, notice: Option<&PageNotice>) -> String {
    home::page(page, notice)
}

/// `/runs/{id}`.
pub fn run(page: &RunPage, notice: Option<&PageNotice>) -> String {
    run::page(page, notice)
}

/// `/tasks/{id}`.
pub fn task(page: &TaskPage, notice: Option<&PageNotice>) -> String {
    task::page(page, notice)
}

/// `/tasks/{id}/diff`: the full diff, with findings at their lines.
pub fn diff(page: &TaskPage) -> String {
    diff::page(page)
}

/// `/tasks/{id}/transcript/{attempt}`.
pub fn transcript(page: &TranscriptPage) -> String {
    attempts::page(page)
}

/// `/stats`.
pub fn stats(page: &StatsPage) -> String {
    chart::stats_page(page)
}

/// `/add`.
pub fn add(page: &AddPage, notice: Option<&PageNotice>) -> String {
    forms::add_page(page, notice)
}

/// The page for a failed request.
pub fn error_page(status: u16, message: &str, hint: Option<&str>) -> String {
    frame::error(status, message, hint)
}

/// A self-contained report file of a task or of all tasks of a run.
pub fn report_file(head: &ReportHead, tasks: Vec<TaskPage>) -> String {
    report::file(head, tasks)
}

/// A file that is served as `/assets/NAME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asset {
    pub name: &'static str,
    pub content_type: &'static str,
    pub text: &'static str,
}

const STYLE: &str = include_str!("../assets/style.css");

/// The style sheet, script and icon of the pages, built into the program.
pub const ASSETS: [Asset; 3] = [
    Asset { name: "style.css", content_type: "text/css; charset=utf-8", text: STYLE },
    Asset { name: "live.js", content_type: "text/javascript; charset=utf-8", text: include_str!("../assets/live.js") },
    Asset { name: "icon.svg", content_type: "image/svg+xml", text: include_str!("../assets/icon.svg") },
];

/// The asset with this name.
pub fn asset(name: &str) -> Option<Asset> {
    ASSETS.into_iter().find(|asset| asset.name == name)
}
