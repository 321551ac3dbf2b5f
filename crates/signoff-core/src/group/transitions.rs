//! Applies events to the state of a run.

use super::{LoopStatus, Picking, Run, RunEvent, RunOutcome, RunPolicy, RunStage};
use crate::ids::LoopId;
use crate::machine::Outcome;
use crate::workflow::{Landing, Scheduling};

/// Applies an event to a run that has not ended.
pub fn apply(run: &mut Run, event: RunEvent, policy: &RunPolicy) {
    match event {
        RunEvent::Started if run.stage == RunStage::Queued => {
            let waits_for_plan = policy.has_planning || policy.scheduling != Scheduling::Slots;
            run.stage = if waits_for_plan { RunStage::Preparing } else { RunStage::Working { group: 0 } };
        }
        RunEvent::PreparationEnded { outcome } if run.stage == RunStage::Preparing => {
            if !outcome.is_completed() {
                run.stage = RunStage::Done(aborted_outcome(&outcome));
            }
        }
        RunEvent::GroupsPlanned { groups } => plan(run, groups, policy),
        RunEvent::TaskPicked { loop_id } if run.picks > 0 && !run.loops.contains_key(&loop_id) => {
            run.picks -= 1;
            add(run, run.stage.group().unwrap_or(0), loop_id);
        }
        RunEvent::NothingToPick if run.picks > 0 => {
            run.picks -= 1;
            run.picking = run.picking.max(Picking::SourceEmpty);
        }
        RunEvent::PickingStopped if run.stage.group().is_some() && policy.scheduling == Scheduling::Slots => {
            run.picking = Picking::Closed;
        }
        RunEvent::TaskClosed { loop_id } => {
            // That may make others ready.
            if run.unclosed.remove(&loop_id) && run.picking == Picking::SourceEmpty {
                run.picking = Picking::Open;
            }
        }
        RunEvent::LoopStatusChanged { loop_id, status } => loop_changed(run, loop_id, status, policy),
        RunEvent::AttemptSpent { since_checkpoint } => {
            let is_active = |loop_id: &LoopId| run.loops.get(loop_id).is_some_and(LoopStatus::is_active);
            let is_due = |since: u32| policy.checkpoint_interval.is_some_and(|interval| since >= interval);
            if since_checkpoint.iter().any(|(loop_id, since)| is_due(*since) && is_active(loop_id)) {
                run.checkpoint.start(&run.loops);
            }
        }
        RunEvent::CheckpointReviewed { loop_id } => checkpoint_reviewed(run, &loop_id),
        RunEvent::FinalReviewEnded { outcome } if run.stage == RunStage::Reviewing => {
            run.stage = after_final_review(run, &outcome, policy);
        }
        RunEvent::Landed => {
            if let RunStage::Landing(outcome) = run.stage {
                run.stage = reopened(run).unwrap_or(RunStage::Done(outcome));
            }
        }
        RunEvent::Cancelled { .. } => cancel(run),
        RunEvent::Started
        | RunEvent::PreparationEnded { .. }
        | RunEvent::TaskPicked { .. }
        | RunEvent::NothingToPick
        | RunEvent::PickingStopped
        | RunEvent::FinalReviewEnded { .. } => {}
    }
}

/// The outcome of a run whose planning or final review failed.
fn aborted_outcome(outcome: &Outcome) -> RunOutcome {
    if *outcome == Outcome::Cancelled {
        RunOutcome::Cancelled
    } else if *outcome == Outcome::NothingToReview {
        RunOutcome::Attention
    } else {
        RunOutcome::Failed
    }
}

/// Sets the planned tasks. A second plan, or one that names a task twice, changes nothing.
fn plan(run: &mut Run, groups: Vec<Vec<LoopId>>, policy: &RunPolicy) {
    let first = matches!(run.stage, RunStage::Preparing) && run.loops.is_empty();
    let mut names: Vec<_> = groups.iter().flatten().collect();
    names.sort();
    let count = names.len();
    names.dedup();
    if !first || names.len() != count {
        return;
    }
    if count == 0 && !is_independent(policy) {
        // A queue can be empty, but a plan without tasks is an error.
        run.stage = RunStage::Done(RunOutcome::Failed);
        return;
    }
    // In a chain each task builds on the one before, so every group has one task.
    let is_chain = policy.scheduling == Scheduling::Chain;
    let tasks =
        groups.into_iter().enumerate().flat_map(|(group, tasks)| tasks.into_iter().map(move |task| (group, task)));
    for (number, (group, loop_id)) in tasks.enumerate() {
        add(run, if is_chain { number } else { group }, loop_id);
    }
    run.stage = RunStage::Working { group: 0 };
}

fn add(run: &mut Run, group: usize, loop_id: LoopId) {
    run.groups.resize(run.groups.len().max(group + 1), Vec::new());
    run.groups[group].push(loop_id.clone());
    run.loops.insert(loop_id, LoopStatus::Queued);
}

fn loop_changed(run: &mut Run, loop_id: LoopId, status: LoopStatus, policy: &RunPolicy) {
    // A loop that has started is never queued again.
    if !run.loops.contains_key(&loop_id) || status == LoopStatus::Queued {
        return;
    }
    run.starting.remove(&loop_id);
    let lands = matches!(status, LoopStatus::Ready | LoopStatus::Landing);
    if run.landing.as_ref() == Some(&loop_id) && !lands {
        run.landing = None;
    }
    // A checkpoint review includes loops that wait for a person.
    if !status.is_active() && status != LoopStatus::Waiting {
        run.checkpoint.reviewed(&loop_id);
    }
    if status.blocks() && !policy.keep_going {
        run.picking = Picking::Closed;
    } else if status.has_ended() && run.picking == Picking::SourceEmpty {
        run.picking = Picking::Open;
    }
    update_unclosed(run, &loop_id, &status, policy);
    run.loops.insert(loop_id, status);
}

/// Tracks which completed tasks still have to be closed in their tracker.
fn update_unclosed(run: &mut Run, loop_id: &LoopId, status: &LoopStatus, policy: &RunPolicy) {
    let through = |status: &LoopStatus| status.outcome().is_some_and(Outcome::is_completed);
    if !through(status) {
        run.unclosed.remove(loop_id);
    } else if policy.task_source.closes_tasks() && !run.loops.get(loop_id).is_some_and(through) {
        run.unclosed.insert(loop_id.clone());
    }
}

/// Applies an event to a run that has ended. Few events still change it.
pub fn apply_after_end(run: &mut Run, event: RunEvent, policy: &RunPolicy) {
    if let RunEvent::LoopStatusChanged { loop_id, status } = event {
        loop_changed_after_end(run, &loop_id, status, policy);
    } else if let RunEvent::TaskClosed { loop_id } = event {
        run.unclosed.remove(&loop_id);
    }
}

/// A person can reopen loops of a finished run. When all have ended again, the run's outcome and its landing are
/// recomputed. A cancelled run, or one with a final review, keeps its outcome.
fn loop_changed_after_end(run: &mut Run, loop_id: &LoopId, status: LoopStatus, policy: &RunPolicy) {
    if *loop_id == LoopId::final_review() {
        return final_review_changed(run, &status, policy);
    }
    if !run.loops.contains_key(loop_id) {
        return;
    }
    update_unclosed(run, loop_id, &status, policy);
    run.loops.insert(loop_id.clone(), status);
    let own_end = policy.has_final_review || run.stage == RunStage::Done(RunOutcome::Cancelled);
    if !own_end && run.loops.values().all(LoopStatus::has_ended) {
        run.stage = finished(run, run_outcome(run), true, policy);
    }
}

/// A person retried or decided the final review of a finished run. A cancelled run stays cancelled.
fn final_review_changed(run: &mut Run, status: &LoopStatus, policy: &RunPolicy) {
    if !policy.has_final_review || run.stage == RunStage::Done(RunOutcome::Cancelled) {
        return;
    }
    run.stage = match status.outcome() {
        Some(outcome) => after_final_review(run, outcome, policy),
        None => RunStage::Reviewing,
    };
}

/// A loop's checkpoint review arrived. The loop continues, so that it is not due a second time.
fn checkpoint_reviewed(run: &mut Run, loop_id: &LoopId) {
    if !run.checkpoint.waits_for(loop_id) {
        return;
    }
    run.checkpoint.reviewed(loop_id);
    if let Some(status) = run.loops.get_mut(loop_id).filter(|one| **one == LoopStatus::AtCheckpoint) {
        *status = LoopStatus::Active;
    }
}

/// The final review ended. If a person reopened a loop meanwhile, the run first finishes that loop.
fn after_final_review(run: &Run, outcome: &Outcome, policy: &RunPolicy) -> RunStage {
    if let Some(stage) = reopened(run).filter(|_| *outcome != Outcome::Cancelled) {
        return stage;
    }
    if !outcome.is_completed() {
        return RunStage::Done(aborted_outcome(outcome));
    }
    let loop_outcome = run_outcome(run);
    let has_review_notes = loop_outcome == RunOutcome::Approved && *outcome == Outcome::CompletedWithIssues;
    let outcome_with_review = if has_review_notes { RunOutcome::Attention } else { loop_outcome };
    finished(run, outcome_with_review, outcome.is_approval(), policy)
}

/// The stage of a run that seemed finished, if a person reopened one of its loops.
fn reopened(run: &Run) -> Option<RunStage> {
    let open = run.loops.values().any(|status| !status.has_ended());
    open.then(|| RunStage::Working { group: run.groups.len().saturating_sub(1) })
}

/// The run is finished. It lands if the policy says so and all its work was approved, apart from cancelled tasks.
/// `final_review_clean` is whether the final review left nothing open.
fn finished(run: &Run, outcome: RunOutcome, final_review_clean: bool, policy: &RunPolicy) -> RunStage {
    let approved = |status: &LoopStatus| status.outcome().is_some_and(Outcome::is_approval);
    let is_cancelled = |status: &LoopStatus| status.outcome() == Some(&Outcome::Cancelled);
    let all = run.loops.values().all(|status| approved(status) || is_cancelled(status));
    let goes_on = policy.onto_default && final_review_clean && all && run.loops.values().any(approved);
    if goes_on { RunStage::Landing(outcome) } else { RunStage::Done(outcome) }
}

fn cancel(run: &mut Run) {
    run.stage = RunStage::Done(RunOutcome::Cancelled);
    run.starting.clear();
    run.landing = None;
    run.picks = 0;
    run.checkpoint = super::CheckpointRound::default();
}

/// Advances the run as far as its state allows.
pub fn advance(run: &mut Run, policy: &RunPolicy) {
    while let RunStage::Working { group } | RunStage::Blocked { group, .. } = run.stage {
        let open = open_loops(run, group, policy);
        if run.loops.values().any(|status| *status == LoopStatus::AtCheckpoint) {
            run.checkpoint.start(&run.loops);
        }
        start_loops(run, &open, policy);
        request_tasks(run, policy);
        grant_landing(run, &open, policy);
        if !open.is_empty() || !is_complete(run, policy) || !run.unclosed.is_empty() {
            run.stage = stage_of(run, group, &open, policy);
            return;
        }
        run.landing_begun = false;
        run.stage = next_stage(run, group, policy);
    }
}

/// The unfinished loops of the group, after reopened loops of earlier groups.
fn open_loops(run: &Run, group: usize, policy: &RunPolicy) -> Vec<LoopId> {
    let (earlier, rest) = run.groups.split_at(group.min(run.groups.len()));
    let begun = |status: &LoopStatus| *status != LoopStatus::Queued && !is_finished(status, policy);
    let reopened = run.loops.iter().filter(|(_, status)| begun(status)).map(|(loop_id, _)| loop_id);
    let reopened = reopened.filter(|loop_id| earlier.iter().flatten().any(|other| other == *loop_id));
    let present = rest.first().into_iter().flatten();
    let waited = |loop_id: &&LoopId| !run.loops.get(*loop_id).is_some_and(|one| is_finished(one, policy));
    reopened.chain(present.filter(waited)).cloned().collect()
}

/// Starts loops of the group while jobs are free.
fn start_loops(run: &mut Run, open: &[LoopId], policy: &RunPolicy) {
    let free = policy.jobs.max(1).saturating_sub(run.active() + run.starting.len());
    let waits =
        |loop_id: &&LoopId| run.loops.get(*loop_id) == Some(&LoopStatus::Queued) && !run.starting.contains(*loop_id);
    let next: Vec<_> = open.iter().filter(waits).take(free).cloned().collect();
    run.starting.extend(next);
}

/// Requests a task for every free slot. A request is not withdrawn, as the task may be claimed already.
fn request_tasks(run: &mut Run, policy: &RunPolicy) {
    if policy.scheduling == Scheduling::Slots && run.picking == Picking::Open {
        let free = policy.jobs.max(1).saturating_sub(run.active() + run.starting.len());
        run.picks = run.picks.max(free);
    }
}

/// Grants the landing to one loop at a time, once the whole group is signed off. After that a loop that is sent back
/// lands later, and the others do not wait for it.
fn grant_landing(run: &mut Run, open: &[LoopId], policy: &RunPolicy) {
    if policy.landing != Landing::Group || run.landing.is_some() || !is_complete(run, policy) {
        return;
    }
    let ready = |loop_id: &LoopId| run.loops.get(loop_id) == Some(&LoopStatus::Ready);
    if run.landing_begun || open.iter().all(ready) {
        run.landing = open.iter().find(|loop_id| ready(loop_id)).cloned();
        run.landing_begun |= run.landing.is_some();
    }
}

/// Whether no further task can join the group.
fn is_complete(run: &Run, policy: &RunPolicy) -> bool {
    let closed = policy.scheduling != Scheduling::Slots || run.picking != Picking::Open;
    closed && run.picks == 0
}

/// Whether the group no longer waits for this loop.
fn is_finished(status: &LoopStatus, policy: &RunPolicy) -> bool {
    status.has_ended() && (is_independent(policy) || status.is_resolved())
}

/// Tasks that do not build on each other do not wait for each other.
fn is_independent(policy: &RunPolicy) -> bool {
    matches!(policy.scheduling, Scheduling::Queue | Scheduling::Slots)
}

/// A group is blocked when all its loops have stopped and one of them failed.
fn stage_of(run: &Run, group: usize, open: &[LoopId], policy: &RunPolicy) -> RunStage {
    let is = |loop_id: &LoopId, what: fn(&LoopStatus) -> bool| run.loops.get(loop_id).is_some_and(what);
    let over = |loop_id: &LoopId| is(loop_id, LoopStatus::blocks) || is(loop_id, LoopStatus::is_resolved);
    let by: Vec<_> = open.iter().filter(|loop_id| is(loop_id, LoopStatus::blocks)).cloned().collect();
    if by.is_empty() || is_independent(policy) || run.landing.is_some() || !open.iter().all(over) {
        return RunStage::Working { group };
    }
    RunStage::Blocked { group, by }
}

fn next_stage(run: &Run, group: usize, policy: &RunPolicy) -> RunStage {
    if group + 1 < run.groups.len() {
        RunStage::Working { group: group + 1 }
    } else if policy.has_final_review
        && run.loops.values().any(|status| *status != LoopStatus::Ended(Outcome::Cancelled))
    {
        RunStage::Reviewing
    } else {
        finished(run, run_outcome(run), true, policy)
    }
}

/// The worst outcome of the run's loops.
fn run_outcome(run: &Run) -> RunOutcome {
    let outcomes = || run.loops.values().filter_map(LoopStatus::outcome);
    if outcomes().any(|outcome| matches!(outcome, Outcome::Failed | Outcome::Stuck)) {
        RunOutcome::Failed
    } else if outcomes().all(Outcome::is_approval) {
        RunOutcome::Approved
    } else {
        RunOutcome::Attention
    }
}
