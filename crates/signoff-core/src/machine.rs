//! The machine: one loop carried from its first attempt to its end.
//!
//! Facts come in as [`Event`]s, wishes go out as [`Effect`]s. A transition only changes the state; what has
//! to be done follows from comparing the state before with the state after. So what a step asks for and what
//! a crash must resume are the same by construction.

mod checkpoint;
mod event;
mod failure;
mod finish;
mod fix;
mod independent;
mod inherited;
mod jobs;
mod judge;
mod land;
mod limit;
mod outcome;
mod person;
mod slots;
mod state;
mod verdict;
mod work;

pub use event::{
    CheckReport, Choice, Earlier, Effect, Event, FinalWord, Job, JobKind, LandReport, Left, LimitPlan, Loss,
    Subject, Turn, WorkReport,
};
pub use failure::Failure;
pub use independent::independent_groups;
pub use judge::{blocking, overruled, round};
pub use land::CONFLICT;
pub use limit::{Busy, Chain, Duty, Limited, Refusal, Waited, refused};
pub use outcome::{Again, Ending, Outcome, Reason};
pub use state::{
    Asked, Fix, FixState, GateEnd, GateRecord, Granted, Head, Hold, Loop, Order, Panel, Position, Question,
    Researcher, Scope, Seat, Slot, Stage, Tally,
};

use serde::{Deserialize, Serialize};

use crate::heard::Trouble;
use crate::ids::AttemptId;
use crate::workflow::{Phase, Workflow};

/// What a loop is run under.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    pub workflow: Workflow,
    /// Nobody is there to answer: a question ends the loop instead.
    pub no_ask: bool,
    /// A fix starts only after signoff could read at least one review. Logs of earlier versions lack this field, and their
    /// loops keep the earlier rule.
    #[serde(default)]
    pub fix_needs_review: bool,
}

impl Policy {
    pub fn of(workflow: Workflow) -> Self {
        Self { workflow, no_ask: false, fix_needs_review: true }
    }

    fn phase(&self, index: usize) -> Option<&Phase> {
        self.workflow.phases.get(index)
    }
}

/// One fact in; the new state and what is to be done out. Pure, total and synchronous: a report from an
/// attempt that is no longer running, or any other event that does not fit, changes nothing.
pub fn step(this: Loop, event: Event, policy: &Policy) -> (Loop, Vec<Effect>) {
    let running = running_attempts(&this);
    let before = outstanding(&this, policy);
    let reported = event.ends_attempt();
    let mut next = this;
    let was_done = next.is_done();
    apply(&mut next, event, policy);
    let effects = difference(&next, policy, Before { running, outstanding: before, reported, was_done });
    (next, effects)
}

/// The state after a log, from its first event on.
pub fn replay(events: impl IntoIterator<Item = Event>, policy: &Policy) -> Loop {
    let mut this = Loop::default();
    for event in events {
        apply(&mut this, event, policy);
    }
    this
}

/// What a fact makes of a loop, for those who only look.
pub(crate) fn apply(this: &mut Loop, event: Event, policy: &Policy) {
    let settled = limit::settled(this, &event);
    take(this, event, policy);
    limit::forget(this, settled);
    if this.is_done() {
        this.checkpoint = None;
    }
}

fn take(this: &mut Loop, event: Event, policy: &Policy) {
    match event {
        Event::BaseSet { .. } if this.is_done() => {}
        Event::BaseSet { tree } => this.base = Some(tree),
        Event::FindingsInherited { left } => inherited::begin(this, left, policy),
        Event::Started { head } => work::start(this, head, policy),
        Event::ItemsPlanned { .. } if this.is_done() => {}
        Event::Imported { head, at, left } => work::import(this, head, at, left, policy),
        Event::ItemsPlanned { count } => this.items = count.max(1),
        Event::WorkEnded { attempt, report } => work::ended(this, attempt, report, policy),
        Event::FindingsClaimed { attempt, commit, claims } => {
            fix::claimed(this, attempt, (&commit, claims), policy);
        }
        Event::CheckEnded { attempt, report } => judge::check_ended(this, attempt, report, policy),
        Event::ReviewArrived { attempt, review } => judge::review_arrived(this, attempt, *review, policy),
        Event::FixesCombined { attempt, head } => fix::combined(this, attempt, head, policy),
        Event::FixesOverlapped { attempt, kept, head } => fix::overlapped(this, attempt, &kept, head, policy),
        Event::LandingEnded { attempt, report } => land::ended(this, attempt, report, policy),
        Event::AttemptFailed { attempt, .. } => failed(this, attempt, policy),
        Event::AttemptLost { attempt, loss } => lost(this, attempt, loss, policy),
        Event::RateLimited { attempt, plan, why, turn } => limited(this, attempt, (plan, turn, why), policy),
        Event::BudgetReached => this.hold_agents(Hold::Budget),
        Event::BudgetRefused { attempt } => this.hold(attempt, Hold::Budget),
        Event::Resumed { hold: Hold::Checkpoint } => checkpoint::ended(this, Vec::new(), None, policy),
        Event::Resumed { hold } => this.release(&hold),
        Event::CheckpointBegan { number } => checkpoint::began(this, number),
        Event::CheckpointEnded { findings, number } => checkpoint::ended(this, findings, number, policy),
        Event::LandingGranted => land::granted(this, policy),
        Event::HeadMoved { head } => land::head_moved(this, head, policy),
        Event::PersonAnswered { question, choice, .. } => person::answered(this, question, choice, policy),
        Event::PersonRetried { .. } => person::retried(this, policy),
        Event::PersonEdited { verdict, by, head, findings, reason: _ } => {
            person::edited(this, (verdict, by), head, policy);
            person::refused(this, findings, policy);
        }
        Event::FindingDecided { finding, decision } => {
            this.ledger.decide(&finding, decision);
        }
        Event::Cancelled { .. } => finish::cancel(this),
    }
}

/// An agent ended badly: the policy of the place it worked in decides.
fn failed(this: &mut Loop, attempt: AttemptId, policy: &Policy) {
    if !this.runs(attempt) {
        return;
    }
    this.accounted_for();
    this.keep_notes();
    match &this.stage {
        Stage::Working { .. } => work::failed(this, policy),
        Stage::Researching { .. } => work::researcher_failed(this, attempt, policy),
        Stage::Reviewing(_) | Stage::Checking { .. } => judge::failed(this, attempt, policy),
        Stage::Fixing { .. } => fix::failed(this, attempt, policy),
        Stage::Combining { .. } => fix::overlapped(this, attempt, &[], this.head.clone(), policy),
        Stage::Landing { .. } => land::failed(this, policy),
        Stage::Queued | Stage::AwaitingLanding { .. } | Stage::Waiting { .. } | Stage::Done(_) => {}
    }
}

/// The program itself lost sight of an attempt: the same job again, under a new id.
fn lost(this: &mut Loop, attempt: AttemptId, loss: Loss, policy: &Policy) {
    if !this.runs(attempt) {
        return;
    }
    if loss == Loss::SessionGone && limit::count_gone(this, attempt, policy) {
        return failed(this, attempt, policy);
    }
    // All that was lost in one crash counts as one.
    let counted = loss == Loss::Crashed && !this.tally.survivors.remove(&attempt);
    if counted {
        this.tally.losses += 1;
        this.tally.survivors = running_attempts(this).into_iter().filter(|other| *other != attempt).collect();
    }
    if this.tally.losses > policy.workflow.limits.max_recoveries {
        let again = finish::resume(this);
        return finish::end(this, Outcome::Failed, Reason::RecoveryExhausted, again);
    }
    this.renew(attempt);
}

/// Its provider refused an agent: again later, or with another one. Once too often is a failure.
fn limited(
    this: &mut Loop,
    attempt: AttemptId,
    (plan, turn, why): (LimitPlan, Option<Turn>, Option<Trouble>),
    policy: &Policy,
) {
    if !this.runs(attempt) {
        return;
    }
    if limit::count(this, attempt, (plan, turn, why), policy) {
        return failed(this, attempt, policy);
    }
    match plan {
        LimitPlan::FallBack => this.renew(attempt),
        LimitPlan::WaitUntil(until) => this.hold(attempt, Hold::RateLimit { until }),
    }
}

/// Everything the state is waiting for somebody else to do. After a crash this is what must be done.
pub fn outstanding(this: &Loop, policy: &Policy) -> Vec<Effect> {
    let mut wishes: Vec<_> = this.jobs(policy).into_iter().map(Effect::Spawn).collect();
    wishes.extend(this.holds().into_iter().map(|hold| Effect::Wait { hold }));
    if let Stage::Waiting { question, .. } = &this.stage {
        wishes.push(Effect::Ask(question.clone()));
    }
    if let Stage::AwaitingLanding { .. } = &this.stage {
        let hold = Hold::Checkpoint;
        wishes.push(if this.checkpoint.is_some() { Effect::Wait { hold } } else { Effect::AwaitLanding });
    }
    wishes
}

/// What held before a step.
struct Before {
    running: Vec<AttemptId>,
    outstanding: Vec<Effect>,
    reported: Option<AttemptId>,
    was_done: bool,
}

fn difference(next: &Loop, policy: &Policy, before: Before) -> Vec<Effect> {
    let still = running_attempts(next);
    let ended = |attempt: &AttemptId| !still.contains(attempt) && before.reported != Some(*attempt);
    let mut effects: Vec<_> =
        before.running.iter().copied().filter(ended).map(|attempt| Effect::Kill { attempt }).collect();
    let new = outstanding(next, policy).into_iter().filter(|wish| !before.outstanding.contains(wish));
    effects.extend(new);
    if let (Stage::Done(ending), false) = (&next.stage, before.was_done) {
        effects.push(Effect::Finish(ending.outcome.clone()));
    }
    effects
}

fn running_attempts(this: &Loop) -> Vec<AttemptId> {
    this.slots().into_iter().filter_map(Slot::attempt).collect()
}
