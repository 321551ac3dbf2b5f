//! What the screen shows of one task: reports, diffs, what an agent says.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use signoff_core::ids::{AttemptId, LoopId, RunId, TaskId};
use signoff_engine::git::Repository;
use signoff_engine::transcript::Transcript;
use signoff_term::tui::{Errand, Material};

use super::Teller;
use crate::command::diff::changed;
use crate::desk::{Desk, persons_git};
use crate::failure::Failure;
use crate::look;

/// How often it is looked whether an agent has said more. What is wished for meanwhile waits so long at most, and is
/// looked up once.
const MOMENT: Duration = Duration::from_millis(150);

/// Of a longer transcript the end is shown.
const SHOWN: u64 = 1 << 20;

/// A transcript that is followed.
struct Followed {
    of: (RunId, LoopId, AttemptId),
    transcript: Transcript,
    /// Nobody writes to it any more.
    over: bool,
    /// Held by the piece that is on its way to the screen.
    unheard: Arc<()>,
}

/// Looks things up until nobody wishes for any more.
pub fn until_told_off(root: &Path, errands: &Receiver<Errand>, teller: &Teller) {
    let mut followed = None;
    loop {
        let first = if followed.is_some() {
            errands.recv_timeout(MOMENT)
        } else {
            errands.recv().map_err(|_| RecvTimeoutError::Disconnected)
        };
        match first {
            Ok(first) => {
                for errand in without_repetition(first, errands) {
                    if let Err(failure) = fulfil(root, errand, teller, &mut followed) {
                        teller.note(&failure.in_a_line());
                    }
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if followed.as_mut().is_some_and(|followed| !tell_more(followed, teller)) {
            followed = None;
        }
    }
}

/// What was wished for several times meanwhile is wished for once.
fn without_repetition(first: Errand, errands: &Receiver<Errand>) -> Vec<Errand> {
    let mut all = vec![first];
    for errand in errands.try_iter() {
        if !all.contains(&errand) {
            all.push(errand);
        }
    }
    all
}

fn fulfil(
    root: &Path,
    errand: Errand,
    teller: &Teller,
    followed: &mut Option<Followed>,
) -> Result<(), Failure> {
    let Some(desk) = Desk::at(root.to_owned())? else { return Ok(()) };
    match errand {
        Errand::Report(task) => {
            let (report, _) = look::task(&desk, task)?;
            teller.supply(Material::Report { task, report: Box::new(report) });
        }
        Errand::Diff(task) => {
            let diff = diff(&desk, task);
            let nothing = Material::Diff { task, patch: String::new(), stat: String::new() };
            // Whoever waits for it need not wait for ever.
            teller.supply(diff.as_ref().ok().cloned().unwrap_or(nothing));
            diff?;
        }
        Errand::Transcript { run, loop_id, attempt } => {
            *followed = Some(follow(&desk, (run, loop_id, attempt))?);
        }
    }
    Ok(())
}

fn diff(desk: &Desk, task: TaskId) -> Result<Material, Failure> {
    let repository = Repository::discover(&persons_git(), &desk.root)?;
    let diff = changed(&repository, &*desk.store, task)?.diff;
    Ok(Material::Diff { task, patch: diff.patch, stat: diff.stat })
}

fn follow(desk: &Desk, of: (RunId, LoopId, AttemptId)) -> Result<Followed, Failure> {
    let (run, loop_id, attempt) = &of;
    let kinds = look::Kinds::of(desk);
    let view = look::view(desk, *run)?;
    let over = !look::under_way(&view, loop_id).contains(attempt);
    let dir = look::attempt(desk, (*run, loop_id), *attempt);
    let transcript = Transcript::tail(&dir, kinds.kind(&view, loop_id, *attempt), SHOWN);
    Ok(Followed { of, transcript, over, unheard: Arc::default() })
}

/// Tells the next piece, if the last one was taken in. False if there is nothing more to come.
fn tell_more(followed: &mut Followed, teller: &Teller) -> bool {
    if Arc::strong_count(&followed.unheard) > 1 {
        return true;
    }
    followed.transcript.keep_up(SHOWN);
    // What cannot be read cannot be shown; it may be written later.
    let mut lines = followed.transcript.more().unwrap_or_default();
    let last = lines.is_empty();
    if last && followed.over {
        lines = followed.transcript.rest();
    }
    if !lines.is_empty() {
        let (run, loop_id, attempt) = followed.of.clone();
        let text = lines.iter().map(|line| format!("{line}\n")).collect();
        teller.supply_slowly(Material::Transcript { run, loop_id, attempt, text }, &followed.unheard);
    }
    !(last && followed.over)
}
