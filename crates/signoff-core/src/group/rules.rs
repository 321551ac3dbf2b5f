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
                this.stage = RunStage::Done(RunOutcome::Failed);
            }
        }
        RunEvent::GroupsPlanned { groups } => plan(this, groups),
        RunEvent::TaskPicked { loop_id } if this.picks > 0 && !this.loops.contains_key(&loop_id) => {
            this.picks -= 1;
            add(this, 0, loop_id);
        }
        RunEvent::NothingToPick => {
            this.picks = this.picks.saturating_sub(1);
            this.picking = Picking::Closed;
        }
        RunEvent::PickingStopped => this.picking = Picking::Closed,
        RunEvent::LoopMoved { loop_id, standing } => moved(this, loop_id, standing, policy),
        RunEvent::CheckpointReviewed { loop_id } => this.checkpoint.reviewed(&loop_id),
        RunEvent::FinalReviewEnded { outcome } if this.stage == RunStage::Reviewing => {
            this.stage = RunStage::Done(if outcome.carries_on() { worth(this) } else { RunOutcome::Failed });
        }
        RunEvent::Cancelled { .. } => cancel(this),
        RunEvent::Started
        | RunEvent::PreparationEnded { .. }
        | RunEvent::TaskPicked { .. }
        | RunEvent::FinalReviewEnded { .. } => {}
    }
}

fn start(this: &mut Run, policy: &RunPolicy) {
    let waits_for_plan = policy.before || policy.arrangement != Arrangement::Slots;
    this.stage = if waits_for_plan { RunStage::Preparing } else { RunStage::Working { group: 0 } };
}

/// The tasks are known. A plan that comes twice, or names a task twice, changes nothing.
fn plan(this: &mut Run, groups: Vec<Vec<LoopId>>) {
    let first = matches!(this.stage, RunStage::Preparing) && this.loops.is_empty();
    let mut names: Vec<_> = groups.iter().flatten().collect();
    names.sort();
    let count = names.len();
    names.dedup();
    if !first || names.len() != count {
        return;
    }
    for (index, group) in groups.into_iter().enumerate() {
        for loop_id in group {
            add(this, index, loop_id);
        }
    }
    this.stage = RunStage::Working { group: 0 };
}

fn add(this: &mut Run, group: usize, loop_id: LoopId) {
    this.groups.resize(this.groups.len().max(group + 1), Vec::new());
    this.groups[group].push(loop_id.clone());
    this.loops.insert(loop_id, Standing::Queued);
}

fn moved(this: &mut Run, loop_id: LoopId, standing: Standing, policy: &RunPolicy) {
    if !this.loops.contains_key(&loop_id) {
        return;
    }
    if standing != Standing::Queued {
        this.called.remove(&loop_id);
    }
    let lands = matches!(standing, Standing::Ready | Standing::Landing);
    if this.landing.as_ref() == Some(&loop_id) && !lands {
        this.landing = None;
    }
    if !standing.is_active() {
        this.checkpoint.reviewed(&loop_id);
    }
    if standing.blocks() && !policy.keep_going {
        this.picking = Picking::Closed;
    }
    this.loops.insert(loop_id, standing);
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
        let members = this.groups.get(group).cloned().unwrap_or_default();
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
        if busy < policy.jobs && this.loops.get(loop_id) == Some(&Standing::Queued) {
            this.called.insert(loop_id.clone());
        }
    }
}

/// Asks for a task for every free slot, all at once.
fn pick(this: &mut Run, policy: &RunPolicy) {
    if policy.arrangement != Arrangement::Slots {
        return;
    }
    this.picks = match this.picking {
        Picking::Open => policy.jobs.saturating_sub(this.active() + this.called.len()),
        Picking::Closed => this.picks.min(policy.jobs),
    };
}

/// Lets the next loop land, one at a time, once the whole group is signed off.
fn land(this: &mut Run, members: &[LoopId], policy: &RunPolicy) {
    let signed_off = members.iter().all(|loop_id| is_resolved(this, loop_id));
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

/// Whether nothing of this group is left to do.
fn is_through(this: &Run, members: &[LoopId], policy: &RunPolicy) -> bool {
    let ended = |loop_id: &LoopId| matches!(this.loops.get(loop_id), Some(Standing::Ended(_)));
    let independent = is_independent(policy);
    let closed = policy.arrangement != Arrangement::Slots || this.picking == Picking::Closed;
    let through = |loop_id: &LoopId| ended(loop_id) && (independent || is_resolved(this, loop_id));
    closed && this.picks == 0 && members.iter().all(through)
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
