//! The backend of `signoff serve`: page values and actions from the store, git and the agents' files.

mod actions;
mod affected;
mod changes;
mod diffs;
mod pages;
mod stats;
mod store_id;

pub use store_id::StoreId;

use std::path::PathBuf;
use std::sync::Mutex;

use signoff_serve::page::{Home, ReportHead, RunPage, TaskPage, TranscriptPage};
use signoff_serve::web::{self, ActionOutcome, ReportSubject, RequestError, RequestErrorKind, Watcher, WebAction};
use signoff_term::stats::StatsReport;

use crate::error::{CliError, CommandExit};
use changes::ChangeWatcher;
use diffs::DiffCache;
use stats::StatsCache;

/// Serves the repository around the working directory. The store is opened for each request, so a store that is created
/// or replaced later is picked up.
pub struct WebBackend {
    root: PathBuf,
    diffs: DiffCache,
    stats: Mutex<StatsCache>,
}

impl WebBackend {
    pub fn new(root: PathBuf) -> Self {
        Self { root, diffs: DiffCache::default(), stats: Mutex::default() }
    }
}

impl web::Backend for WebBackend {
    fn project(&self) -> String {
        let name = self.root.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    fn home(&self, all: bool) -> Result<Home, RequestError> {
        self.home_page(all).map_err(page_error)
    }

    fn run(&self, run: u64) -> Result<RunPage, RequestError> {
        self.run_page(run).map_err(page_error)
    }

    fn task(&self, task: u64) -> Result<TaskPage, RequestError> {
        self.task_page(task).map_err(page_error)
    }

    fn transcript(&self, task: u64, attempt: u64) -> Result<TranscriptPage, RequestError> {
        self.transcript_page(task, attempt).map_err(page_error)
    }

    fn stats(&self) -> Result<StatsReport, RequestError> {
        self.stats_report().map_err(page_error)
    }

    fn report(&self, of: ReportSubject) -> Result<(ReportHead, Vec<TaskPage>), RequestError> {
        self.report_pages(of).map_err(page_error)
    }

    fn perform(&self, action: WebAction) -> Result<ActionOutcome, RequestError> {
        actions::perform(action)
    }

    fn auto_review_default(&self) -> bool {
        actions::reviews_by_default(&self.root)
    }

    fn watcher(&self) -> Box<dyn Watcher> {
        Box::new(ChangeWatcher::new(&self.root))
    }
}

/// Converts an error of a page query: a usage error means that the page does not exist.
fn page_error(failure: CliError) -> RequestError {
    request_error(&failure, RequestErrorKind::NotFound)
}

/// Converts the error of a command into a refusal. `wrong` is the reason to give for a usage error.
fn request_error(failure: &CliError, wrong: RequestErrorKind) -> RequestError {
    let why = match failure.exit {
        CommandExit::Usage => wrong,
        CommandExit::Done | CommandExit::Failed | CommandExit::Attention | CommandExit::Interrupted => {
            RequestErrorKind::Internal
        }
    };
    let place = failure.location().map(|place| format!(" ({place})")).unwrap_or_default();
    let hint = failure.next_step().map(str::to_owned);
    RequestError { kind: why, message: format!("{}{place}", failure.message()), hint }
}
