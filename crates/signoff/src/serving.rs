//! What the page shows and does, over the store, git and the files of the agents.

mod changed;
mod diffs;
mod eyes;
mod figures;
mod same;
mod seen;
mod wishes;

pub use same::Same;

use std::path::PathBuf;
use std::sync::Mutex;

use signoff_serve::page::{Home, ReportHead, RunPage, StatsPage, TaskPage, TranscriptPage};
use signoff_serve::web::{self, Done, Refused, Reported, Watcher, Why, Wish};

use crate::failure::{Exit, Failure};
use diffs::Diffs;
use eyes::Eyes;
use figures::Figures;

/// The repository around the working directory. Its store is opened anew for each request: whoever replaces it, or makes it
/// only now, need not tell us.
pub struct Serving {
    root: PathBuf,
    diffs: Diffs,
    figures: Mutex<Figures>,
}

impl Serving {
    pub fn new(root: PathBuf) -> Self {
        Self { root, diffs: Diffs::default(), figures: Mutex::default() }
    }
}

impl web::Desk for Serving {
    fn project(&self) -> String {
        let name = self.root.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    fn home(&self, all: bool) -> Result<Home, Refused> {
        self.seen_home(all).map_err(unseen)
    }

    fn run(&self, run: u64) -> Result<RunPage, Refused> {
        self.seen_run(run).map_err(unseen)
    }

    fn task(&self, task: u64) -> Result<TaskPage, Refused> {
        self.seen_task(task).map_err(unseen)
    }

    fn transcript(&self, task: u64, attempt: u64) -> Result<TranscriptPage, Refused> {
        self.seen_transcript(task, attempt).map_err(unseen)
    }

    fn stats(&self) -> Result<StatsPage, Refused> {
        self.seen_figures().map_err(unseen)
    }

    fn report(&self, of: Reported) -> Result<(ReportHead, Vec<TaskPage>), Refused> {
        self.seen_report(of).map_err(unseen)
    }

    fn fulfil(&self, wish: Wish) -> Result<Done, Refused> {
        wishes::fulfil(wish)
    }

    fn reviews(&self) -> bool {
        wishes::reviews(&self.root)
    }

    fn watcher(&self) -> Box<dyn Watcher> {
        Box::new(Eyes::new(&self.root))
    }
}

/// What cannot be looked at is not there, or broken.
fn unseen(failure: Failure) -> Refused {
    refused(&failure, Why::Unknown)
}

/// What a command would have said. `wrong` is what it means if the person was wrong.
fn refused(failure: &Failure, wrong: Why) -> Refused {
    let why = match failure.exit {
        Exit::Usage => wrong,
        Exit::Done | Exit::Failed | Exit::Attention | Exit::Interrupted => Why::Broken,
    };
    let place = failure.place().map(|place| format!(" ({place})")).unwrap_or_default();
    let hint = failure.next_step().map(str::to_owned);
    Refused { why, message: format!("{}{place}", failure.message()), hint }
}
