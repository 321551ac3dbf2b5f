//! A desk with nothing on it, that writes down what it was asked to do.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use signoff_serve::page::{Home, ReportHead, RunPage, StatsPage, TaskPage, TranscriptPage, Whole};
use signoff_serve::web::{Change, Desk, Done, Refused, Reported, Watcher, Why, Wish};

/// What it was asked to do, and how it hears of changes.
#[derive(Default)]
pub struct Told {
    pub wishes: Mutex<Vec<Wish>>,
    /// Who holds it keeps everybody from counting.
    pub counting: Mutex<()>,
    changes: Mutex<Option<Sender<Change>>>,
}

impl Told {
    pub fn change(&self, change: Change) {
        self.changes.lock().expect("a lock").as_ref().expect("a watcher").send(change).expect("a server");
    }
}

pub struct Bare {
    pub told: Arc<Told>,
}

fn nothing<T>() -> Result<T, Refused> {
    let hint = Some("`signoff status` lists <b>the</b> tasks".to_owned());
    Err(Refused { why: Why::Unknown, message: "there is <i>nothing</i>".to_owned(), hint })
}

impl Desk for Bare {
    fn project(&self) -> String {
        "bare".to_owned()
    }

    fn home(&self, all: bool) -> Result<Home, Refused> {
        let (tasks, runs, questions, driven) = Default::default();
        let now = jiff::Timestamp::UNIX_EPOCH;
        Ok(Home { project: self.project(), tasks, runs, questions, driven, all, now })
    }

    fn reviews(&self) -> bool {
        false
    }

    fn run(&self, _run: u64) -> Result<RunPage, Refused> {
        nothing()
    }

    fn task(&self, _task: u64) -> Result<TaskPage, Refused> {
        nothing()
    }

    fn transcript(&self, _task: u64, _attempt: u64) -> Result<TranscriptPage, Refused> {
        nothing()
    }

    fn stats(&self) -> Result<StatsPage, Refused> {
        drop(self.told.counting.lock().expect("a lock"));
        Ok(StatsPage::default())
    }

    fn report(&self, _of: Reported) -> Result<(ReportHead, Vec<TaskPage>), Refused> {
        let made_at = jiff::Timestamp::UNIX_EPOCH;
        let head = ReportHead { project: self.project(), run: None, whole: Whole::default(), made_at };
        Ok((head, Vec::new()))
    }

    fn fulfil(&self, wish: Wish) -> Result<Done, Refused> {
        let added = matches!(wish, Wish::Add(_)).then_some(7);
        let refused = matches!(&wish, Wish::Cancel { task: 9 });
        self.told.wishes.lock().expect("a lock").push(wish);
        if refused {
            let message = "task 9 has ended".to_owned();
            return Err(Refused { why: Why::Unfitting, message, hint: None });
        }
        Ok(Done { message: "it is <u>done</u>".to_owned(), hint: None, added })
    }

    fn watcher(&self) -> Box<dyn Watcher> {
        let (sender, changes) = channel();
        *self.told.changes.lock().expect("a lock") = Some(sender);
        Box::new(Hearing { changes })
    }
}

struct Hearing {
    changes: Receiver<Change>,
}

impl Watcher for Hearing {
    fn look(&mut self) -> Change {
        self.changes.try_recv().unwrap_or_default()
    }
}
