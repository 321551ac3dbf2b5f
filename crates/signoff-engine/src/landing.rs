//! Landing: signed-off work joins its target branch, one at a time, proven before anything is taken away.
//!
//! The merge is made without a worktree, checked in one of its own, and only then the branch moves. What does not fit
//! becomes a commit on the loop's own branch, with findings, for its fixer. Everything can be done again after a kill.

mod bring;
mod checks;
mod covered;
mod direct;
mod latest;
mod refused;
mod sent_back;
mod turn;
mod whole;

pub use bring::{Brought, Tell, Told};
pub use covered::{Asked, Range, Records, check};
pub use direct::{CommandTurn, Direct, land, land_run, make_ready};
pub use latest::LatestLandings;
pub use refused::Tried;
pub use whole::{OwnWork, approved, final_review_refusal, keep, looked_at};

use std::path::Path;
use std::sync::Arc;

use signoff_core::ids::Commit;
use signoff_core::machine::{Event, Failure, Head, LandReport};
use signoff_core::review::Usage;
use signoff_core::wire::LoopFact;
use tokio::sync::mpsc::UnboundedSender;

use crate::assignment::{self, Assignment};
use crate::attempt::{self, End, Report, Workshop};
use crate::dispatcher::Input;
use crate::error::EngineError;
use crate::failpoint;
use crate::git::{GitError, Uncommitted};
use bring::Wish;
use sent_back::Back;
pub(crate) use turn::Turn;

/// How a landing ended, with what is recorded besides and what people should be told.
struct Landed {
    end: End,
    facts: Vec<LoopFact>,
    notes: Vec<String>,
}

impl Landed {
    fn of(end: End) -> Self {
        Self { end, facts: Vec::new(), notes: Vec::new() }
    }

    fn event(event: Event) -> Self {
        Self::of(End::Event(Box::new(event)))
    }
}

/// Brings a loop's work into its target branch, or sends it back.
pub async fn carry_out(shop: Arc<Workshop>, task: Arc<Assignment>, tell: UnboundedSender<Input>) {
    failpoint::pass("land_turn");
    // Held until the report is on its way, so that landings are recorded in the order in which they happen.
    let (landed, _turn) = match take_turn(&shop, &task, &tell).await {
        Ok(None) => (Ok(Landed::of(End::Stopped)), None),
        Ok(Some(turn)) => (land_loop(&shop, &task, &tell).await, Some(turn)),
        Err(error) => (Err(error), None),
    };
    let Landed { end, facts, notes } = landed.unwrap_or_else(|error| Landed::of(End::Trouble(error)));
    let (run, loop_id, attempt) = (task.run, task.loop_id.clone(), task.job.attempt);
    let report =
        Report { run, loop_id, attempt, end, usage: Usage::default(), notes, facts, stops_picking: false };
    tell.send(Input::Reported(Box::new(report))).ok();
}

/// Waits until no other landing is under way; none if the waiting was stopped.
async fn take_turn(
    shop: &Workshop,
    task: &Assignment,
    tell: &UnboundedSender<Input>,
) -> Result<Option<Turn>, EngineError> {
    Turn::wait(&shop.repository, &|told| pass_on(task, tell, told)).await
}

fn pass_on(task: &Assignment, tell: &UnboundedSender<Input>, told: Told) {
    let (run, loop_id, attempt) = (task.run, task.loop_id.clone(), task.job.attempt);
    let input = match told {
        Told::Stoppable(stopper) => Input::Running { run, loop_id, attempt, stopper },
        Told::Waits => {
            let whose = assignment::whose(run, &loop_id, task.task);
            Input::Note(format!("{whose} waits: another landing is under way"))
        }
        Told::Note(note) => {
            let whose = assignment::whose(run, &loop_id, task.task);
            Input::Note(format!("{whose}: {note}"))
        }
    };
    tell.send(input).ok();
}

/// The landing itself. The caller has the turn.
async fn land_loop(
    shop: &Arc<Workshop>,
    task: &Arc<Assignment>,
    tell: &UnboundedSender<Input>,
) -> Result<Landed, EngineError> {
    let looking = (shop.clone(), task.clone());
    let looked = attempt::blocking(move || {
        let mut notes = Vec::new();
        before(&looking.0, &looking.1, &mut notes).map(|before| (before, notes))
    });
    let (before, notes) = looked.await?;
    for note in notes {
        tell.send(Input::Note(note)).ok();
    }
    let wish = match before {
        Before::Ready(wish) => wish,
        Before::Ended(landed) => return Ok(landed),
    };
    let brought = bring::bring(shop, &wish, &|told| pass_on(task, tell, told)).await?;
    let ending = (shop.clone(), task.clone());
    attempt::blocking(move || after(&ending.0, &ending.1, (&wish.target, brought))).await
}

/// Whether there is something to land.
enum Before {
    Ready(Wish),
    /// No: this is to be said instead.
    Ended(Landed),
}

/// Looks whether the branch is as it was approved.
fn before(shop: &Workshop, task: &Assignment, notes: &mut Vec<String>) -> Result<Before, EngineError> {
    shop.repository.finish_forward()?;
    let tip = tip(shop, task)?;
    let back = Back::read(shop, task);
    if tip.commit != task.state.head.commit {
        return Ok(Before::Ended(match back.filter(|back| back.head.commit == tip.commit) {
            // Killed after the branch was moved: what followed is done again.
            Some(back) => give_back(shop, task, &back)?,
            None => Landed::event(Event::HeadMoved { head: by_hand(shop, task)?.unwrap_or(tip) }),
        }));
    }
    notes.extend(keep_target(shop, task)?);
    let unresolved = back.map(|back| back.unresolved(shop, &tip.commit)).transpose()?;
    match unresolved.filter(|findings| !findings.is_empty()) {
        None => {
            let wish = Wish::of(shop, task)?;
            check_covered(shop, task, &wish)?;
            Ok(Before::Ready(wish))
        }
        Some(findings) => {
            let report = LandReport::SentBack { head: tip, findings };
            Ok(Before::Ended(Landed::event(Event::LandingEnded { attempt: task.job.attempt, report })))
        }
    }
}

/// Makes sure that the run's branch has what landed before; in words what else happened to it.
///
/// The assignment was made before the turn came, so others may have landed since.
fn keep_target(shop: &Workshop, task: &Assignment) -> Result<Option<String>, EngineError> {
    let Some(target) = &task.target else { return Ok(None) };
    let (by, latest) = (shop.settings.landing(), shop.latest_landings.get(task.run));
    let heads = &task.landing_heads;
    match latest.as_ref().or(task.last_landed.as_ref()) {
        Some(landed) => whole::keep(&shop.repository, target, OwnWork { landed, heads, by }),
        None => whole::before_the_first(&shop.repository, target, (heads, by)),
    }
}

/// What a loop brings to the default branch must be reviewed, all of it.
fn check_covered(shop: &Workshop, task: &Assignment, wish: &Wish) -> Result<(), EngineError> {
    if task.target.is_some() {
        return Ok(());
    }
    let what = task.task.map_or_else(|| format!("run {}", task.run), |task| format!("task {task}"));
    let tip = task.state.signed_off_commit();
    let own = tip.map(|tip| Range { base: task.place.base.clone(), tip: tip.clone() });
    let (run, commit, own) = (task.run, &wish.commit, own.as_ref());
    let asked = Asked { what: &what, run, commit, own, asks_again: true };
    covered::check(Records::of(shop), &wish.target, asked)
}

/// Where the loop's branch is. One that somebody deleted goes on where it was.
fn tip(shop: &Workshop, task: &Assignment) -> Result<Head, EngineError> {
    // Mostly nothing has happened to it, and git need not be asked.
    if shop.repository.is_at(&task.branch, &task.state.head.commit) {
        return Ok(task.state.head.clone());
    }
    shop.revive_branch(task)?;
    let tip = shop.repository.head_of(&task.branch)?;
    Ok(tip.ok_or_else(|| GitError::BranchGone(task.branch.clone()))?)
}

/// What follows from how the work and its target went together.
fn after(
    shop: &Workshop,
    task: &Assignment,
    (target, brought): (&str, Brought),
) -> Result<Landed, EngineError> {
    let attempt = task.job.attempt;
    match brought {
        Brought::In { commit, .. } => {
            failpoint::pass("landed");
            if task.target.is_some() {
                shop.latest_landings.set(task.run, commit.clone());
            }
            let notes = clean_up(shop, task);
            let report = LandReport::Landed { commit };
            Ok(Landed { notes, ..Landed::event(Event::LandingEnded { attempt, report }) })
        }
        Brought::Conflicting { onto, head, files } => {
            let back = Back::of_conflict((shop, task), target, (onto, head), &files)?;
            send_back(shop, task, &back)
        }
        Brought::Different { onto, head } => send_back(shop, task, &Back::to_look_at(onto, head)),
        Brought::Red { onto, head, findings } => {
            send_back(shop, task, &Back::of_checks(&task.place.base, (onto, head), findings))
        }
        Brought::Unchecked(failure) => Ok(Landed::event(Event::AttemptFailed { attempt, failure })),
        Brought::Stopped => Ok(Landed::of(End::Stopped)),
    }
}

/// What somebody did in the loop's worktree: committed, so that it is reviewed with the rest, and no reader undoes it.
fn by_hand(shop: &Workshop, task: &Assignment) -> Result<Option<Head>, EngineError> {
    match shop.repository.worktree(Path::new(&task.place.worktree)) {
        Ok(worktree) if worktree.is_there() => Ok(Some(worktree.commit_all("Changes by hand")?.head)),
        Ok(_) | Err(GitError::WorktreeGone(_) | GitError::NotOurs(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Makes the merge the head of the loop's branch.
fn send_back(shop: &Workshop, task: &Assignment, back: &Back) -> Result<Landed, EngineError> {
    if let Some(head) = by_hand(shop, task)?.filter(|head| *head != task.state.head) {
        return Ok(Landed::event(Event::HeadMoved { head }));
    }
    back.write(shop, task)?;
    failpoint::pass("sent_back");
    if !shop.repository.advance(&task.branch, &task.state.head.commit, &back.head.commit)? {
        let gone = || GitError::BranchGone(task.branch.clone());
        let head: Head = shop.repository.head_of(&task.branch)?.ok_or_else(gone)?;
        return Ok(Landed::event(Event::HeadMoved { head }));
    }
    failpoint::pass("given_back");
    give_back(shop, task, back)
}

/// The branch is where it is to be: the files follow, and the loop is told.
fn give_back(shop: &Workshop, task: &Assignment, back: &Back) -> Result<Landed, EngineError> {
    let place = &task.place;
    if let Ok(worktree) = shop.repository.worktree(Path::new(&place.worktree)) {
        worktree.follow_branch(&back.head.commit)?;
        shop.readings.writing(&worktree);
    }
    // From here on reviewers are shown what this loop adds to what landed before it.
    let placed = LoopFact::Placed { base: back.onto.clone(), worktree: place.worktree.clone() };
    let base = Event::BaseSet { tree: shop.repository.tree_of(&back.onto)? };
    let (head, findings) = (back.head.clone(), back.findings.clone());
    let event = if findings.is_empty() {
        Event::HeadMoved { head }
    } else {
        Event::LandingEnded { attempt: task.job.attempt, report: LandReport::SentBack { head, findings } }
    };
    Ok(Landed { facts: vec![placed, LoopFact::Moved(base)], ..Landed::event(event) })
}

/// Takes the loop's worktree away; its branch stays. What cannot be taken away is no reason to fail.
fn clean_up(shop: &Workshop, task: &Assignment) -> Vec<String> {
    Back::forget(shop, task);
    let worktree = Path::new(&task.place.worktree);
    // What is as its reviewers left it holds nothing that is not on the branch.
    let own = shop.repository.worktree(worktree).ok();
    let reviewed = own.is_some_and(|own| shop.readings.is_as_read(&own, &task.state.head.commit));
    let uncommitted = if reviewed { Uncommitted::Discard } else { Uncommitted::Keep };
    shop.readings.forget(worktree);
    match shop.repository.remove_worktree(worktree, uncommitted) {
        Err(error @ (GitError::UncommittedWork(_) | GitError::Astray { .. })) => {
            vec![format!("{error}; it did not land, and stays there")]
        }
        Ok(()) | Err(_) => Vec::new(),
    }
}

/// An attempt at landing that did not get so far as to tell whether it fits.
fn unchecked(message: impl Into<String>) -> Failure {
    Failure::NotStarted { message: message.into() }
}

/// How a commit is shown in a sentence.
fn short(commit: &Commit) -> &str {
    commit.as_str().get(..12).unwrap_or(commit.as_str())
}
