//! What a run makes of a fact.

use super::{Picking, Run, RunEvent, RunOutcome, RunPolicy, RunStage, Standing};
use crate::ids::LoopId;
use crate::machine::Outcome;
use crate::workflow::{Arrangement, Landing};

/// Takes a fact in.
pub fn take(this: &mut Run, event: RunEvent, policy: &RunPolicy) {
    match event {
        RunEvent::Started if this.stage == RunStage::Queued => start(this, policy),
        RunEvent::PreparationEnded { outcome } if this.stage == RunStage::Preparing => {
            if !outcome.carries_on() {
                this.stage = RunStage::Done(broken_off(&outcome));
            }
        }
        RunEvent::GroupsPlanned { groups } => plan(this, groups, policy),
        RunEvent::TaskPicked { loop_id } if this.picks > 0 && !this.loops.contains_key(&loop_id) => {
            this.picks -= 1;
            add(this, 0, loop_id);
        }
        RunEvent::NothingToPick if this.picks > 0 => {
            this.picks -= 1;
            this.picking = this.picking.max(Picking::Dry);
        }
        RunEvent::PickingStopped if is_picking(this, policy) => this.picking = Picking::Closed,
        RunEvent::LoopMoved { loop_id, standing } => moved(this, loop_id, standing, policy),
        RunEvent::CheckpointReviewed { loop_id } => checkpoint_reviewed(this, &loop_id),
        RunEvent::FinalReviewEnded { outcome } if this.stage == RunStage::Reviewing => {
            this.stage = looked_at(this, &outcome);
        }
        RunEvent::Cancelled { .. } => cancel(this),
        RunEvent::Started
        | RunEvent::PreparationEnded { .. }
        | RunEvent::TaskPicked { .. }
        | RunEvent::NothingToPick
        | RunEvent::PickingStopped
        | RunEvent::FinalReviewEnded { .. } => {}
    }
}

fn start(this: &mut Run, policy: &RunPolicy) {
    let waits_for_plan = policy.before || policy.arrangement != Arrangement::Slots;
    this.stage = if waits_for_plan { RunStage::Preparing } else { RunStage::Working { group: 0 } };
}

/// What a run is worth whose planning or final review did not get through.
fn broken_off(outcome: &Outcome) -> RunOutcome {
    if *outcome == Outcome::Cancelled { RunOutcome::Cancelled } else { RunOutcome::Failed }
}

fn is_picking(this: &Run, policy: &RunPolicy) -> bool {
    let working = matches!(this.stage, RunStage::Working { .. } | RunStage::Blocked { .. });
    working && policy.arrangement == Arrangement::Slots
}

/// The tasks are known. A plan that comes twice, or names a task twice, changes nothing.
fn plan(this: &mut Run, groups: Vec<Vec<LoopId>>, policy: &RunPolicy) {
    let first = matches!(this.stage, RunStage::Preparing) && this.loops.is_empty();
    let mut names: Vec<_> = groups.iter().flatten().collect();
    names.sort();
    let count = names.len();
    names.dedup();
    if !first || names.len() != count {
        return;
    }
    if count == 0 && !is_independent(policy) {
        // A queue can be empty; a plan that was made and holds nothing is one that went wrong.
        this.stage = RunStage::Done(RunOutcome::Failed);
        return;
    }
    let groups = if policy.arrangement == Arrangement::Chain { one_by_one(groups) } else { groups };
    for (index, group) in groups.into_iter().enumerate() {
        for loop_id in group {
            add(this, index, loop_id);
        }
    }
    this.stage = RunStage::Working { group: 0 };
}

/// In a chain each task builds on the one before, however they were planned together.
fn one_by_one(groups: Vec<Vec<LoopId>>) -> Vec<Vec<LoopId>> {
    groups.into_iter().flatten().map(|loop_id| vec![loop_id]).collect()
}

fn add(this: &mut Run, group: usize, loop_id: LoopId) {
    this.groups.resize(this.groups.len().max(group + 1), Vec::new());
    this.groups[group].push(loop_id.clone());
    this.loops.insert(loop_id, Standing::Queued);
}

fn moved(this: &mut Run, loop_id: LoopId, standing: Standing, policy: &RunPolicy) {
    // A loop that has begun is never queued again.
    if !this.loops.contains_key(&loop_id) || standing == Standing::Queued {
        return;
    }
    this.called.remove(&loop_id);
    let lands = matches!(standing, Standing::Ready | Standing::Landing);
    if this.landing.as_ref() == Some(&loop_id) && !lands {
        this.landing = None;
    }
    if !standing.is_active() {
        this.checkpoint.reviewed(&loop_id);
    }
    if standing.blocks() && !policy.keep_going {
        this.picking = Picking::Closed;
    } else if standing.has_ended() && this.picking == Picking::Dry {
        this.picking = Picking::Open;
    }
    this.loops.insert(loop_id, standing);
}

/// A loop's checkpoint review is in. What waited for it goes on, so it is not due a second time.
fn checkpoint_reviewed(this: &mut Run, loop_id: &LoopId) {
    if !this.checkpoint.waits_for(loop_id) {
        return;
    }
    this.checkpoint.reviewed(loop_id);
    if let Some(standing) = this.loops.get_mut(loop_id).filter(|one| **one == Standing::AtCheckpoint) {
        *standing = Standing::Active;
    }
}

/// The whole was looked at. A loop that a person reopened meanwhile is finished first, then looked at too.
fn looked_at(this: &Run, outcome: &Outcome) -> RunStage {
    let reopened = this.loops.values().any(|standing| !standing.has_ended());
    if reopened && *outcome != Outcome::Cancelled {
        return RunStage::Working { group: this.groups.len().saturating_sub(1) };
    }
    if !outcome.carries_on() {
        return RunStage::Done(broken_off(outcome));
    }
    RunStage::Done(match worth(this) {
        RunOutcome::Approved if *outcome == Outcome::CompletedWithIssues => RunOutcome::Attention,
        worth => worth,
    })
}

fn cancel(this: &mut Run) {
    this.stage = RunStage::Done(RunOutcome::Cancelled);
    this.called.clear();
    this.landing = None;
    this.picks = 0;
    this.checkpoint = super::Checkpoint::default();
}

/// Brings the run as far as its facts allow.
pub fn settle(this: &mut Run, policy: &RunPolicy) {
    while let RunStage::Working { group } | RunStage::Blocked { group, .. } = this.stage {
        // With those of earlier groups: a person may have reopened one.
        let members: Vec<_> = this.groups.iter().take(group + 1).flatten().cloned().collect();
        this.checkpoint.begin(&this.loops);
        call(this, &members, policy);
        pick(this, policy);
        land(this, &members, policy);
        if !is_through(this, &members, policy) {
            this.stage = stage_of(this, group, &members, policy);
            return;
        }
        this.stage = after(this, group, policy);
    }
}

/// Starts loops of the group while jobs are free.
fn call(this: &mut Run, members: &[LoopId], policy: &RunPolicy) {
    for loop_id in members {
        let busy = this.active() + this.called.len();
        if busy < policy.jobs.max(1) && this.loops.get(loop_id) == Some(&Standing::Queued) {
            this.called.insert(loop_id.clone());
        }
    }
}

/// Asks for a task for every free slot, all at once. What was asked for is not taken back: the task may be
/// claimed already.
fn pick(this: &mut Run, policy: &RunPolicy) {
    if policy.arrangement == Arrangement::Slots && this.picking == Picking::Open {
        let free = policy.jobs.max(1).saturating_sub(this.active() + this.called.len());
        this.picks = this.picks.max(free);
    }
}

/// Lets the next loop land, one at a time, once the whole group is signed off.
fn land(this: &mut Run, members: &[LoopId], policy: &RunPolicy) {
    let independent = is_independent(policy);
    let over = |loop_id: &LoopId| is_resolved(this, loop_id) || (independent && has_ended(this, loop_id));
    let signed_off = is_complete(this, policy) && members.iter().all(over);
    let begun = members.iter().any(|loop_id| this.loops.get(loop_id) == Some(&Standing::Landing));
    if policy.landing != Landing::Group || this.landing.is_some() || begun || !signed_off {
        return;
    }
    let ready = |loop_id: &&LoopId| this.loops.get(*loop_id) == Some(&Standing::Ready);
    this.landing = members.iter().find(ready).cloned();
}

fn is_resolved(this: &Run, loop_id: &LoopId) -> bool {
    this.loops.get(loop_id).is_some_and(Standing::is_resolved)
}

fn has_ended(this: &Run, loop_id: &LoopId) -> bool {
    this.loops.get(loop_id).is_some_and(Standing::has_ended)
}

/// Whether no task can join any more.
fn is_complete(this: &Run, policy: &RunPolicy) -> bool {
    let closed = policy.arrangement != Arrangement::Slots || this.picking != Picking::Open;
    closed && this.picks == 0
}

/// Whether nothing of this group is left to do.
fn is_through(this: &Run, members: &[LoopId], policy: &RunPolicy) -> bool {
    let independent = is_independent(policy);
    let through = |loop_id: &LoopId| has_ended(this, loop_id) && (independent || is_resolved(this, loop_id));
    is_complete(this, policy) && members.iter().all(through)
}

/// Tasks that do not build on each other do not wait for each other either.
fn is_independent(policy: &RunPolicy) -> bool {
    match policy.arrangement {
        Arrangement::Queue | Arrangement::Slots => true,
        Arrangement::Chain | Arrangement::Groups => false,
    }
}

/// A group is blocked when nobody works in it any more and somebody ended badly.
fn stage_of(this: &Run, group: usize, members: &[LoopId], policy: &RunPolicy) -> RunStage {
    let standing = |loop_id: &LoopId| this.loops.get(loop_id);
    let by: Vec<_> =
        members.iter().filter(|loop_id| standing(loop_id).is_some_and(Standing::blocks)).cloned().collect();
    let over = |loop_id: &LoopId| {
        standing(loop_id).is_some_and(|standing| standing.blocks() || standing.is_resolved())
    };
    let landing = this.landing.is_some();
    if by.is_empty() || is_independent(policy) || landing || !members.iter().all(over) {
        return RunStage::Working { group };
    }
    RunStage::Blocked { group, by }
}

fn after(this: &Run, group: usize, policy: &RunPolicy) -> RunStage {
    if group + 1 < this.groups.len() {
        RunStage::Working { group: group + 1 }
    } else if policy.after
        && this.loops.values().any(|standing| *standing != Standing::Ended(Outcome::Cancelled))
    {
        RunStage::Reviewing
    } else {
        RunStage::Done(worth(this))
    }
}

/// The worst of its loops.
fn worth(this: &Run) -> RunOutcome {
    let outcomes = || {
        this.loops.values().filter_map(|standing| match standing {
            Standing::Ended(outcome) => Some(outcome),
            Standing::Queued
            | Standing::Active
            | Standing::AtCheckpoint
            | Standing::Waiting
            | Standing::Ready
            | Standing::Landing => None,
        })
    };
    if outcomes().any(|outcome| matches!(outcome, Outcome::Failed | Outcome::Stuck)) {
        RunOutcome::Failed
    } else if outcomes().all(|outcome| matches!(outcome, Outcome::Approved { .. } | Outcome::Accepted { .. }))
    {
        RunOutcome::Approved
    } else {
        RunOutcome::Attention
    }
}
