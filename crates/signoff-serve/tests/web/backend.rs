//! A backend without data that records the requested actions.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use signoff_serve::page::{HomePage, ReportHead, RunPage, TaskPage, TranscriptPage};
use signoff_serve::web::{
    ActionOutcome, Backend, ChangeSet, ReportSubject, RequestError, RequestErrorKind, Watcher, WebAction,
};
use signoff_term::stats::{StatsCollector, StatsReport};

/// The recorded actions, and a sender for changes.
#[derive(Default)]
pub struct BackendProbe {
    pub actions: Mutex<Vec<WebAction>>,
    /// While this lock is held, statistics block.
    pub counting: Mutex<()>,
    changes: Mutex<Option<Sender<ChangeSet>>>,
}

impl BackendProbe {
    pub fn change(&self, change: ChangeSet) {
        self.changes.lock().expect("a lock").as_ref().expect("a watcher").send(change).expect("a server");
    }
}

pub struct EmptyBackend {
    pub probe: Arc<BackendProbe>,
}

fn unsupported<T>() -> Result<T, RequestError> {
    let hint = Some("`signoff status` lists <b>the</b> tasks".to_owned());
    Err(RequestError { kind: RequestErrorKind::NotFound, message: "there is <i>nothing</i>".to_owned(), hint })
}

impl Backend for EmptyBackend {
    fn project(&self) -> String {
        "bare".to_owned()
    }

    fn home(&self, all: bool) -> Result<HomePage, RequestError> {
        let (tasks, runs, questions, driven) = Default::default();
        let now = jiff::Timestamp::UNIX_EPOCH;
        Ok(HomePage { project: self.project(), tasks, runs, questions, driven, all, now })
    }

    fn auto_review_default(&self) -> bool {
        false
    }

    fn run(&self, _run: u64) -> Result<RunPage, RequestError> {
        unsupported()
    }

    fn task(&self, _task: u64) -> Result<TaskPage, RequestError> {
        unsupported()
    }

    fn transcript(&self, _task: u64, _attempt: u64) -> Result<TranscriptPage, RequestError> {
        unsupported()
    }

    fn stats(&self) -> Result<StatsReport, RequestError> {
        drop(self.probe.counting.lock().expect("a lock"));
        Ok(StatsCollector::default().report())
    }

    fn report(&self, _of: ReportSubject) -> Result<(ReportHead, Vec<TaskPage>), RequestError> {
        let made_at = jiff::Timestamp::UNIX_EPOCH;
        let (parts, roles) = Default::default();
        let head = ReportHead { project: self.project(), run: None, section: None, parts, roles, made_at };
        Ok((head, Vec::new()))
    }

    fn perform(&self, action: WebAction) -> Result<ActionOutcome, RequestError> {
        let added = matches!(action, WebAction::Add(_)).then_some(7);
        let refused = matches!(&action, WebAction::Cancel { task: 9 });
        self.probe.actions.lock().expect("a lock").push(action);
        if refused {
            let message = "task 9 has ended".to_owned();
            return Err(RequestError { kind: RequestErrorKind::Conflict, message, hint: None });
        }
        Ok(ActionOutcome { message: "it is <u>done</u>".to_owned(), hint: None, added_task: added })
    }

    fn watcher(&self) -> Box<dyn Watcher> {
        let (sender, changes) = channel();
        *self.probe.changes.lock().expect("a lock") = Some(sender);
        Box::new(ChannelWatcher { changes })
    }
}

struct ChannelWatcher {
    changes: Receiver<ChangeSet>,
}

impl Watcher for ChannelWatcher {
    fn poll(&mut self) -> ChangeSet {
        self.changes.try_recv().unwrap_or_default()
    }
}
