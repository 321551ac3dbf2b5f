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
            add(this, present(this), loop_id);
        }
        RunEvent::NothingToPick if this.picks > 0 => {
            this.picks -= 1;
            this.picking = this.picking.max(Picking::Dry);
        }
        RunEvent::PickingStopped if is_picking(this, policy) => this.picking = Picking::Closed,
        RunEvent::TaskClosed { loop_id } => closed(this, &loop_id),
        RunEvent::LoopMoved { loop_id, standing } => moved(this, loop_id, standing, policy),
        RunEvent::AttemptSpent { since_checkpoint } => {
            let due = |(loop_id, since): (&LoopId, &u32)| {
                let active = this.loops.get(loop_id).is_some_and(Standing::is_active);
                active && policy.checkpoint_interval.is_some_and(|interval| *since >= interval)
            };
            if since_checkpoint.iter().any(due) {
                this.checkpoint.call(&this.loops);
            }
        }
        RunEvent::CheckpointReviewed { loop_id } => checkpoint_reviewed(this, &loop_id),
        RunEvent::FinalReviewEnded { outcome } if this.stage == RunStage::Reviewing => {
            this.stage = looked_at(this, &outcome, policy);
        }
        RunEvent::Landed => {
            if let RunStage::Landing(outcome) = this.stage {
                this.stage = reopened(this).unwrap_or(RunStage::Done(outcome));
            }
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
    match outcome {
        Outcome::Cancelled => RunOutcome::Cancelled,
        Outcome::NothingToReview => RunOutcome::Attention,
        Outcome::Approved { .. }
        | Outcome::Accepted { .. }
        | Outcome::Unreviewed
        | Outcome::CompletedWithIssues
        | Outcome::Exhausted
        | Outcome::Discussion
        | Outcome::Failed
        | Outcome::Stuck => RunOutcome::Failed,
    }
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

/// The index of the group that is being worked.
fn present(this: &Run) -> usize {
    match this.stage {
        RunStage::Working { group } | RunStage::Blocked { group, .. } => group,
        RunStage::Queued
        | RunStage::Preparing
        | RunStage::Reviewing
        | RunStage::Landing(_)
        | RunStage::Done(_) => 0,
    }
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
    // A checkpoint review also looks at a loop that waits for a person; its findings wait there.
    if !standing.is_active() && standing != Standing::Waiting {
        this.checkpoint.reviewed(&loop_id);
    }
    if standing.blocks() && !policy.keep_going {
        this.picking = Picking::Closed;
    } else if standing.has_ended() && this.picking == Picking::Dry {
        this.picking = Picking::Open;
    }
    owe_the_tracker(this, &loop_id, &standing, policy);
    this.loops.insert(loop_id, standing);
}

/// A task that is through is closed where it came from.
fn owe_the_tracker(this: &mut Run, loop_id: &LoopId, standing: &Standing, policy: &RunPolicy) {
    let through = |standing: &Standing| matches!(standing, Standing::Ended(outcome) if outcome.carries_on());
    if !through(standing) {
        this.unclosed.remove(loop_id);
    } else if policy.supply.is_told() && !this.loops.get(loop_id).is_some_and(through) {
        this.unclosed.insert(loop_id.clone());
    }
}

/// A task that is closed may make others ready.
fn closed(this: &mut Run, loop_id: &LoopId) {
    if this.unclosed.remove(loop_id) && this.picking == Picking::Dry {
        this.picking = Picking::Open;
    }
}

/// After the end little is taken in.
pub fn take_after_the_end(this: &mut Run, event: RunEvent, policy: &RunPolicy) {
    match event {
        RunEvent::LoopMoved { loop_id, standing } => moved_after_the_end(this, &loop_id, standing, policy),
        RunEvent::TaskClosed { loop_id } => {
            this.unclosed.remove(&loop_id);
        }
        RunEvent::Started
        | RunEvent::PreparationEnded { .. }
        | RunEvent::GroupsPlanned { .. }
        | RunEvent::TaskPicked { .. }
        | RunEvent::NothingToPick
        | RunEvent::PickingStopped
        | RunEvent::AttemptSpent { .. }
        | RunEvent::CheckpointReviewed { .. }
        | RunEvent::FinalReviewEnded { .. }
        | RunEvent::Landed
        | RunEvent::Cancelled { .. } => {}
    }
}

/// Loops can still be reopened by a person. What the run is worth follows from them once they have ended again, and
/// whether it lands; a run that was called off, or whose whole was looked at, keeps its own end.
fn moved_after_the_end(this: &mut Run, loop_id: &LoopId, standing: Standing, policy: &RunPolicy) {
    if *loop_id == LoopId::whole() {
        return final_review_moved(this, &standing, policy);
    }
    if !this.loops.contains_key(loop_id) {
        return;
    }
    owe_the_tracker(this, loop_id, &standing, policy);
    this.loops.insert(loop_id.clone(), standing);
    let own_end = policy.after || this.stage == RunStage::Done(RunOutcome::Cancelled);
    if !own_end && this.loops.values().all(Standing::has_ended) {
        this.stage = finished(this, worth(this), true, policy);
    }
}

/// A person retried the final review of a run that was over, or decided it. A cancelled run stays cancelled.
fn final_review_moved(this: &mut Run, standing: &Standing, policy: &RunPolicy) {
    if !policy.after || this.stage == RunStage::Done(RunOutcome::Cancelled) {
        return;
    }
    this.stage = match standing {
        Standing::Ended(outcome) => looked_at(this, outcome, policy),
        Standing::Queued
        | Standing::Active
        | Standing::AtCheckpoint
        | Standing::Waiting
        | Standing::Ready
        | Standing::Landing => RunStage::Reviewing,
    };
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
fn looked_at(this: &Run, outcome: &Outcome, policy: &RunPolicy) -> RunStage {
    if let Some(stage) = reopened(this).filter(|_| *outcome != Outcome::Cancelled) {
        return stage;
    }
    if !outcome.carries_on() {
        return RunStage::Done(broken_off(outcome));
    }
    let worth = worth(this);
    let noted = worth == RunOutcome::Approved && *outcome == Outcome::CompletedWithIssues;
    let seen = if noted { RunOutcome::Attention } else { worth };
    finished(this, seen, outcome.is_approval(), policy)
}

/// Where a run goes on that seemed to be through, if a person reopened one of its loops.
fn reopened(this: &Run) -> Option<RunStage> {
    let open = this.loops.values().any(|standing| !standing.has_ended());
    open.then(|| RunStage::Working { group: this.groups.len().saturating_sub(1) })
}

/// All is done. Where that is wanted it goes further, if all that is in it was approved and there is anything: what was
/// called off is not in it. `whole` tells whether the last look at it left nothing open.
fn finished(this: &Run, outcome: RunOutcome, whole: bool, policy: &RunPolicy) -> RunStage {
    let approved =
        |standing: &Standing| matches!(standing, Standing::Ended(outcome) if outcome.is_approval());
    let off = |standing: &Standing| *standing == Standing::Ended(Outcome::Cancelled);
    let all = this.loops.values().all(|standing| approved(standing) || off(standing));
    let goes_on = policy.onto_default && whole && all && this.loops.values().any(approved);
    if goes_on { RunStage::Landing(outcome) } else { RunStage::Done(outcome) }
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
        let open = open(this, group, policy);
        this.checkpoint.begin(&this.loops);
        call(this, &open, policy);
        pick(this, policy);
        land(this, &open, policy);
        if !open.is_empty() || !is_complete(this, policy) || !this.unclosed.is_empty() {
            this.stage = stage_of(this, group, &open, policy);
            return;
        }
        this.landing_begun = false;
        this.stage = after(this, group, policy);
    }
}

/// What the group waits for: those of its loops that are not through, after those of earlier groups that a
/// person reopened.
fn open(this: &Run, group: usize, policy: &RunPolicy) -> Vec<LoopId> {
    let (earlier, rest) = this.groups.split_at(group.min(this.groups.len()));
    let begun = |standing: &Standing| *standing != Standing::Queued && !is_through(standing, policy);
    let reopened = this.loops.iter().filter(|(_, standing)| begun(standing)).map(|(loop_id, _)| loop_id);
    let reopened = reopened.filter(|loop_id| earlier.iter().flatten().any(|other| other == *loop_id));
    let present = rest.first().into_iter().flatten();
    let waited = |loop_id: &&LoopId| !this.loops.get(*loop_id).is_some_and(|one| is_through(one, policy));
    reopened.chain(present.filter(waited)).cloned().collect()
}

/// Starts loops of the group while jobs are free.
fn call(this: &mut Run, open: &[LoopId], policy: &RunPolicy) {
    let free = policy.jobs.max(1).saturating_sub(this.active() + this.called.len());
    let waits = |loop_id: &&LoopId| {
        this.loops.get(*loop_id) == Some(&Standing::Queued) && !this.called.contains(*loop_id)
    };
    let next: Vec<_> = open.iter().filter(waits).take(free).cloned().collect();
    this.called.extend(next);
}

/// Asks for a task for every free slot, all at once. What was asked for is not taken back: the task may be
/// claimed already.
fn pick(this: &mut Run, policy: &RunPolicy) {
    if policy.arrangement == Arrangement::Slots && this.picking == Picking::Open {
        let free = policy.jobs.max(1).saturating_sub(this.active() + this.called.len());
        this.picks = this.picks.max(free);
    }
}

/// Lets the next loop land, one at a time, once the whole group is signed off. From then on the queue moves:
/// who is sent back lands later, the others do not wait for it.
fn land(this: &mut Run, open: &[LoopId], policy: &RunPolicy) {
    if policy.landing != Landing::Group || this.landing.is_some() || !is_complete(this, policy) {
        return;
    }
    let ready = |loop_id: &LoopId| this.loops.get(loop_id) == Some(&Standing::Ready);
    if this.landing_begun || open.iter().all(ready) {
        this.landing = open.iter().find(|loop_id| ready(loop_id)).cloned();
        this.landing_begun |= this.landing.is_some();
    }
}

/// Whether no task can join any more.
fn is_complete(this: &Run, policy: &RunPolicy) -> bool {
    let closed = policy.arrangement != Arrangement::Slots || this.picking != Picking::Open;
    closed && this.picks == 0
}

/// Whether nobody waits for such a loop any more.
fn is_through(standing: &Standing, policy: &RunPolicy) -> bool {
    standing.has_ended() && (is_independent(policy) || standing.is_resolved())
}

/// Tasks that do not build on each other do not wait for each other either.
fn is_independent(policy: &RunPolicy) -> bool {
    match policy.arrangement {
        Arrangement::Queue | Arrangement::Slots => true,
        Arrangement::Chain | Arrangement::Groups => false,
    }
}

/// A group is blocked when nobody works in it any more and somebody ended badly.
fn stage_of(this: &Run, group: usize, open: &[LoopId], policy: &RunPolicy) -> RunStage {
    let is = |loop_id: &LoopId, what: fn(&Standing) -> bool| this.loops.get(loop_id).is_some_and(what);
    let over = |loop_id: &LoopId| is(loop_id, Standing::blocks) || is(loop_id, Standing::is_resolved);
    let by: Vec<_> = open.iter().filter(|loop_id| is(loop_id, Standing::blocks)).cloned().collect();
    if by.is_empty() || is_independent(policy) || this.landing.is_some() || !open.iter().all(over) {
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
        finished(this, worth(this), true, policy)
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
    } else if outcomes().all(Outcome::is_approval) {
        RunOutcome::Approved
    } else {
        RunOutcome::Attention
    }
}
