//! Looks up what the screen shows of one task: report, diff and transcript.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use signoff_core::ids::TaskId;
use signoff_engine::executor::AttemptKey;
use signoff_engine::git::Repository;
use signoff_engine::transcript::TranscriptReader;
use signoff_term::tui::{DataRequest, TuiData};

use super::ScreenSender;
use crate::command::diff::task_diff;
use crate::project::user_git;
use crate::{CliError, ReadOnlyProject, queries};

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
    /// Cloned into the part that is on its way to the screen.
    pending: Arc<()>,
}

/// Handles lookups until the channel closes.
pub fn run(root: &Path, errands: &Receiver<DataRequest>, sender: &ScreenSender) {
    let mut followed = None;
    loop {
        let first = if followed.is_some() {
            errands.recv_timeout(POLL_INTERVAL)
        } else {
            errands.recv().map_err(|_| RecvTimeoutError::Disconnected)
        };
        match first {
            Ok(first) => {
                for errand in deduplicated(first, errands) {
                    if let Err(failure) = handle(root, errand, sender, &mut followed) {
                        sender.note(&failure.one_line());
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
fn deduplicated(first: DataRequest, errands: &Receiver<DataRequest>) -> Vec<DataRequest> {
    let mut all = vec![first];
    for errand in errands.try_iter() {
        if !all.contains(&errand) {
            all.push(errand);
        }
    }
    all
}

fn handle(
    root: &Path,
    errand: DataRequest,
    sender: &ScreenSender,
    followed: &mut Option<FollowedTranscript>,
) -> Result<(), CliError> {
    let Some(project) = ReadOnlyProject::open_at(root.to_owned())? else { return Ok(()) };
    match errand {
        DataRequest::Report(task) => {
            let (report, _) = queries::task_report(&project, task)?;
            sender.supply(TuiData::Report { task, report: Box::new(report) });
        }
        DataRequest::Diff(task) => {
            let diff = diff(&project, task);
            let nothing = TuiData::Diff { task, patch: String::new(), stat: String::new() };
            // Send an empty diff on error, so that the screen stops waiting.
            sender.supply(diff.as_ref().ok().cloned().unwrap_or(nothing));
            diff?;
        }
        DataRequest::Transcript { run, loop_id, attempt } => {
            *followed = Some(follow(&project, AttemptKey { run, loop_id, attempt })?);
        }
    }
    Ok(())
}

fn diff(project: &ReadOnlyProject, task: TaskId) -> Result<TuiData, CliError> {
    let repository = Repository::discover(&user_git(), &project.root)?;
    let diff = task_diff(&repository, &*project.store, task)?.diff;
    Ok(TuiData::Diff { task, patch: diff.patch, stat: diff.stat })
}

fn follow(project: &ReadOnlyProject, attempt: AttemptKey) -> Result<FollowedTranscript, CliError> {
    let kinds = queries::AgentKinds::load(project);
    let view = queries::run_state(project, attempt.run)?;
    let over = !queries::running_attempts(&view, &attempt.loop_id).contains(&attempt.attempt);
    let dir = queries::attempt_dir(project, &attempt);
    let transcript = TranscriptReader::tail(&dir, kinds.kind(&view, &attempt.loop_id, attempt.attempt), MAX_SHOWN);
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
        sender.supply_part(TuiData::Transcript { run, loop_id, attempt, text }, &followed.pending);
    }
    !(last && followed.ended)
}
