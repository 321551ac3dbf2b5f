//! Background threads of the screen: one looks up what it shows of a task, one records decisions like the commands of
//! the same names. Both may be slow.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use signoff_core::ids::TaskId;
use signoff_core::view::inbox::Action;
use signoff_engine::executor::AttemptKey;
use signoff_engine::transcript::TranscriptReader;
use signoff_term::question_queue::QuestionDecision;
use signoff_term::tui::{DataRequest, TaskDecision, TuiData, TuiRequest};

use super::work_handler::answer;
use super::{ScreenMessage, ScreenSender};
use crate::command::decide::{DecisionResult, decide};
use crate::command::diff::diff_of_row;
use crate::command::{answer, cancel, dispute, edit, retry};
use crate::history_cache::SharedStore;
use crate::{ReadOnlyProject, Result, host, queries};

/// The two background threads, which share what they read. Decisions need their own connection to the store: the
/// dispatcher does not notice requests that its own connection posts.
pub struct BackgroundWorker {
    lookups: Sender<DataRequest>,
    decisions: Sender<TuiRequest>,
}

impl BackgroundWorker {
    /// Starts the threads. The store is that of the dispatcher or of the watching thread, if there is one, because it has
    /// cached the states of the runs.
    pub fn new(store: impl Into<Arc<SharedStore>>, sender: &ScreenSender) -> Self {
        let ((lookups, lookup_requests), (decisions, decision_requests)) = (mpsc::channel(), mpsc::channel());
        let lookup_store = store.into();
        let (decision_store, decision_sender) = (lookup_store.clone(), sender.clone());
        let lookup_sender = sender.clone();
        std::thread::spawn(move || look_up(&lookup_store, &lookup_requests, &lookup_sender));
        std::thread::spawn(move || record_decisions(&decision_store, &decision_requests, &decision_sender));
        Self { lookups, decisions }
    }

    /// Handles a request. The result is sent to the screen.
    pub fn handle(&self, request: TuiRequest) {
        match request {
            TuiRequest::Load(request) => self.lookups.send(request).ok(),
            TuiRequest::QuestionDecided(_) | TuiRequest::Decide(..) => self.decisions.send(request).ok(),
            TuiRequest::Quit | TuiRequest::Interrupt | TuiRequest::Replay(_) => None,
        };
    }
}

/// Records decisions until the channel closes.
fn record_decisions(store: &SharedStore, decisions: &Receiver<TuiRequest>, sender: &ScreenSender) {
    for decision in decisions {
        let note = record(store, decision).unwrap_or_else(|failure| Some(failure.one_line()));
        if let Some(note) = note {
            sender.send(ScreenMessage::Note(note));
        }
    }
}

/// Records a decision and returns the note to show.
fn record(store: &SharedStore, decision: TuiRequest) -> Result<Option<String>> {
    let Some(project) = store.project()? else { return Ok(None) };
    let project = project.reconnect()?;
    Ok(match decision {
        TuiRequest::QuestionDecided(QuestionDecision::Answer { run, loop_id, question, choice }) => {
            let text = format!("Answered {}", choice.into_str());
            let result = decide(&project, run, &loop_id, answer(question, choice))?;
            let next = match &result {
                DecisionResult::HandedOver => None,
                DecisionResult::Recorded { .. } => {
                    answer::next_step(&project, &queries::run_state(&*project.store, run)?, &loop_id)?
                }
            };
            Some(with_next_step(&result, text, next))
        }
        TuiRequest::Decide(task, TaskDecision::Retry) => {
            let text = format!("Task #{task} continues");
            Some(with_next_step(&retry::retry(&project, task)?, text, Some(Action::WorkQueue)))
        }
        TuiRequest::Decide(task, TaskDecision::Cancel) => {
            let title = [format!("Task #{task} cancelled")];
            Some([&title[..], &cancel::cancel(&project, task)?].concat().join("; "))
        }
        TuiRequest::Decide(task, TaskDecision::Edit { verdict, reason }) => {
            let result = edit::edit(&project, task, verdict, host::user_name(), &reason)?;
            let note = result.note().map(|note| format!("; {note}")).unwrap_or_default();
            Some(format!("Task #{task} is {} by {}{note}", verdict.into_str(), host::user_name()))
        }
        TuiRequest::Decide(task, TaskDecision::Dispute { finding, reason }) => {
            let (finding_ref, _) = dispute::dispute(&project, finding.as_str(), Some(task), &reason)?;
            Some(format!("Finding {} is refuted by {}", finding_ref.finding, host::user_name()))
        }
        // The question stays open; the screen has shown how to answer it later.
        TuiRequest::QuestionDecided(QuestionDecision::Later { .. }) => None,
        TuiRequest::Load(_) | TuiRequest::Quit | TuiRequest::Interrupt | TuiRequest::Replay(_) => None,
    })
}

/// Adds how to continue if no process is driving the run.
fn with_next_step(result: &DecisionResult, text: String, next: Option<Action>) -> String {
    match result {
        DecisionResult::HandedOver => format!("{text}; the task continues"),
        DecisionResult::Recorded { note } => {
            let note = note.as_ref().map(|note| format!("; {note}")).unwrap_or_default();
            let next = next.map(|next| format!("; run `{next}` to continue")).unwrap_or_default();
            format!("{text}{next}{note}")
        }
    }
}

/// Poll interval for the followed transcript. Requests wait at most this long, and repeated ones are handled once.
const POLL_INTERVAL: Duration = Duration::from_millis(150);

/// Maximum number of bytes shown of a transcript, counted from its end.
const MAX_SHOWN: u64 = 1 << 20;

/// A transcript that is being followed.
struct FollowedTranscript {
    attempt: AttemptKey,
    transcript: TranscriptReader,
    /// The attempt has ended.
    ended: bool,
    /// Cloned into the part that was sent to the screen and is not consumed yet.
    pending: Arc<()>,
}

/// Handles lookups until the channel closes.
fn look_up(store: &SharedStore, requests: &Receiver<DataRequest>, sender: &ScreenSender) {
    let mut followed = None;
    loop {
        let first = if followed.is_some() {
            requests.recv_timeout(POLL_INTERVAL)
        } else {
            requests.recv().map_err(|_| RecvTimeoutError::Disconnected)
        };
        match first {
            Ok(first) => {
                for request in deduplicated(first, requests) {
                    let result = store.project().and_then(|project| match project {
                        Some(project) => handle(&project, request, sender, &mut followed),
                        None => Ok(()),
                    });
                    if let Err(failure) = result {
                        sender.send(ScreenMessage::Note(failure.one_line()));
                    }
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if followed.as_mut().is_some_and(|followed| !send_more(followed, sender)) {
            followed = None;
        }
    }
}

/// Collects the pending requests without duplicates.
fn deduplicated(first: DataRequest, requests: &Receiver<DataRequest>) -> Vec<DataRequest> {
    let mut all = vec![first];
    for request in requests.try_iter() {
        if !all.contains(&request) {
            all.push(request);
        }
    }
    all
}

fn handle(
    project: &ReadOnlyProject,
    request: DataRequest,
    sender: &ScreenSender,
    followed: &mut Option<FollowedTranscript>,
) -> Result<()> {
    match request {
        DataRequest::Report(task) => {
            let (report, _) = queries::task_report(project, task)?;
            sender.send_data(TuiData::Report { task, report: Box::new(report) }, &Arc::default());
        }
        DataRequest::Diff(task) => {
            let diff = diff(project, task);
            let nothing = TuiData::Diff { task, patch: String::new(), stat: String::new() };
            // Send an empty diff on error, so that the screen stops waiting.
            sender.send_data(diff.as_ref().ok().cloned().unwrap_or(nothing), &Arc::default());
            diff?;
        }
        DataRequest::Transcript { run, loop_id, attempt } => {
            *followed = Some(follow(project, AttemptKey { run, loop_id, attempt })?);
        }
    }
    Ok(())
}

fn diff(project: &ReadOnlyProject, task: TaskId) -> Result<TuiData> {
    let diff = diff_of_row(&project.repository()?, &project.task(task)?)?;
    Ok(TuiData::Diff { task, patch: diff.patch, stat: diff.stat })
}

fn follow(project: &ReadOnlyProject, attempt: AttemptKey) -> Result<FollowedTranscript> {
    let kinds = queries::AgentKinds::load(project);
    let run_state = queries::run_state(&*project.store, attempt.run)?;
    let over = !queries::running_attempts(&run_state, &attempt.loop_id).contains(&attempt.attempt);
    let dir = queries::attempt_dir(project, &attempt);
    let transcript = TranscriptReader::tail(&dir, kinds.kind(&run_state, &attempt.loop_id, attempt.attempt), MAX_SHOWN);
    Ok(FollowedTranscript { attempt, transcript, ended: over, pending: Arc::default() })
}

/// Sends the next part if the previous one was consumed. Returns false at the end of the transcript.
fn send_more(followed: &mut FollowedTranscript, sender: &ScreenSender) -> bool {
    if Arc::strong_count(&followed.pending) > 1 {
        return true;
    }
    followed.transcript.skip_to_tail(MAX_SHOWN);
    // A file that cannot be read may be written later.
    let mut lines = followed.transcript.read_more().unwrap_or_default();
    let last = lines.is_empty();
    if last && followed.ended {
        lines = followed.transcript.finish();
    }
    if !lines.is_empty() {
        let AttemptKey { run, loop_id, attempt } = followed.attempt.clone();
        let text = lines.iter().map(|line| format!("{line}\n")).collect();
        sender.send_data(TuiData::Transcript { run, loop_id, attempt, text }, &followed.pending);
    }
    !(last && followed.ended)
}
