//! The state machine of a loop, from its first attempt to its end.
//!
//! [`Event`]s go in, [`Effect`]s come out. A transition only changes the state; the effects follow from comparing the
//! state before with the state after. So the effects of a step and the work to resume after a crash are the same by
//! construction.

mod event;
mod fix;
mod gate;
mod land;
mod outcome;
mod outside_findings;
mod person;
mod phases;
mod rate_limits;
mod slots;
mod state;
mod work;

pub use event::{
    AttemptLoss, AttemptRole, CheckReport, Choice, EarlierFindings, Effect, Event, FinalVerdict, ImportedProgress, Job,
    JobActor, JobKind, LandingReport, LimitPlan, NextAgent, WorkReport,
};
pub use fix::independent_groups;
pub use gate::{blocking, overruled, round};
pub use land::CONFLICT;
pub use outcome::{AttemptFailure, Ending, Outcome, OutcomeKind, Reason, RetryAction};
pub use rate_limits::{
    FallbackChain, JobKey, LimitedAgent, PendingRateLimit, RateLimitRefusal, RateLimitState, rate_limit_event,
};
pub use state::{
    AttemptSlot, ExtraAllowance, Fix, FixOrder, FixState, GateEnd, GateRecord, Head, Loop, LoopCounters, Panel,
    PauseReason, Position, Question, QuestionTopic, ResearcherState, ReviewScope, ReviewerState, Stage,
};

use serde::{Deserialize, Serialize};

use crate::ids::AttemptId;
use crate::workflow::{Phase, Workflow};
use rate_limits::LimitNotice;

/// The policy that a loop runs under.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    pub workflow: Workflow,
    /// No person is available: a question ends the loop instead.
    pub no_ask: bool,
    /// A fix starts only after at least one review could be parsed. Logs of earlier versions lack this field, and their
    /// loops keep the earlier rule.
    #[serde(default)]
    pub fix_needs_review: bool,
}

impl Policy {
    pub fn new(workflow: Workflow) -> Self {
        Self { workflow, no_ask: false, fix_needs_review: true }
    }

    fn phase(&self, index: usize) -> Option<&Phase> {
        self.workflow.phases.get(index)
    }
}

/// Applies an event and returns the new state and its effects. Pure, total and synchronous: a report of an attempt
/// that no longer runs, or any other event that does not fit the state, changes nothing.
pub fn step(machine: Loop, event: Event, policy: &Policy) -> (Loop, Vec<Effect>) {
    let running = machine.running_attempts();
    let before = outstanding(&machine, policy);
    let (reported, was_done) = (event.ends_attempt(), machine.is_done());
    let mut next = machine;
    apply(&mut next, event, policy);
    let still = next.running_attempts();
    let killed = running.into_iter().filter(|attempt| !still.contains(attempt) && reported != Some(*attempt));
    let mut effects: Vec<_> = killed.map(|attempt| Effect::Kill { attempt }).collect();
    effects.extend(outstanding(&next, policy).into_iter().filter(|effect| !before.contains(effect)));
    if let (Stage::Done(ending), false) = (&next.stage, was_done) {
        effects.push(Effect::Finish(ending.outcome.clone()));
    }
    (next, effects)
}

/// Returns the state after all events of a log.
pub fn replay(events: impl IntoIterator<Item = Event>, policy: &Policy) -> Loop {
    let mut machine = Loop::default();
    for event in events {
        apply(&mut machine, event, policy);
    }
    machine
}

/// Applies an event without computing effects.
pub(crate) fn apply(machine: &mut Loop, event: Event, policy: &Policy) {
    let settled = rate_limits::finished_job(machine, &event);
    apply_event(machine, event, policy);
    rate_limits::clear_finished(machine, settled);
    if machine.is_done() {
        machine.checkpoint = None;
    }
}

fn apply_event(machine: &mut Loop, event: Event, policy: &Policy) {
    match event {
        Event::BaseSet { .. } if machine.is_done() => {}
        Event::BaseSet { tree } => machine.base = Some(tree),
        Event::FindingsInherited { ledger } => outside_findings::inherit(machine, ledger, policy),
        Event::Started { head } => work::start(machine, head, policy),
        Event::ItemsPlanned { .. } if machine.is_done() => {}
        Event::Imported { head, position, progress } => {
            outside_findings::import(machine, head, position, progress, policy)
        }
        Event::ItemsPlanned { count } => machine.items = count.max(1),
        Event::WorkEnded { attempt, report } => work::ended(machine, attempt, report, policy),
        Event::FindingsClaimed { attempt, commit, claims } => fix::claimed(machine, attempt, &commit, claims, policy),
        Event::CheckEnded { attempt, report } => gate::check_ended(machine, attempt, report, policy),
        Event::ReviewArrived { attempt, review } => gate::review_arrived(machine, attempt, *review, policy),
        Event::FixesCombined { attempt, head } => fix::combined(machine, attempt, head, policy),
        Event::FixesOverlapped { attempt, kept, head } => fix::overlapped(machine, attempt, &kept, head, policy),
        Event::LandingEnded { attempt, report } => land::ended(machine, attempt, report, policy),
        Event::AttemptFailed { attempt, .. } => attempt_failed(machine, attempt, policy),
        Event::AttemptLost { attempt, loss } => attempt_lost(machine, attempt, loss, policy),
        Event::RateLimited { attempt, plan, error, next_agent } => {
            rate_limited(machine, attempt, LimitNotice { plan, next_agent, error }, policy);
        }
        Event::BudgetReached => machine.pause_agents(PauseReason::Budget),
        Event::BudgetRefused { attempt } => machine.pause(attempt, PauseReason::Budget),
        Event::Resumed { reason: PauseReason::Checkpoint } => {
            outside_findings::checkpoint_ended(machine, Vec::new(), None, policy)
        }
        Event::Resumed { reason } => machine.resume_paused(&reason),
        Event::CheckpointBegan { number } => outside_findings::checkpoint_began(machine, number),
        Event::CheckpointEnded { findings, number } => {
            outside_findings::checkpoint_ended(machine, findings, number, policy)
        }
        Event::LandingGranted => land::landing_granted(machine, policy),
        Event::HeadMoved { head } => land::head_moved(machine, head, policy),
        Event::PersonAnswered { question, choice, .. } => person::answered(machine, question, choice, policy),
        Event::PersonRetried { .. } => person::retried(machine, policy),
        Event::PersonEdited { verdict, by, head, findings, reason: _ } => {
            person::edited(machine, verdict, by, head, policy);
            person::refused(machine, findings, policy);
        }
        Event::FindingDecided { finding, decision } => {
            machine.ledger_mut().decide(&finding, decision);
        }
        Event::Cancelled { .. } => phases::cancel(machine),
    }
}

/// An agent failed: the policy of the current stage decides.
fn attempt_failed(machine: &mut Loop, attempt: AttemptId, policy: &Policy) {
    if !machine.runs(attempt) {
        return;
    }
    machine.reset_losses();
    machine.keep_notes();
    match &machine.stage {
        Stage::Working { .. } => work::failed(machine, policy),
        Stage::Researching { .. } => work::researcher_failed(machine, attempt, policy),
        Stage::Reviewing(_) | Stage::Checking { .. } => gate::failed(machine, attempt, policy),
        Stage::Fixing { .. } => fix::failed(machine, attempt, policy),
        Stage::Combining { .. } => fix::overlapped(machine, attempt, &[], machine.head.clone(), policy),
        Stage::Landing { .. } => land::failed(machine, policy),
        Stage::Queued | Stage::AwaitingLanding { .. } | Stage::Waiting { .. } | Stage::Done(_) => {}
    }
}

/// The program lost an attempt: start the same job again under a new id.
fn attempt_lost(machine: &mut Loop, attempt: AttemptId, loss: AttemptLoss, policy: &Policy) {
    if !machine.runs(attempt) {
        return;
    }
    if loss == AttemptLoss::SessionGone && rate_limits::count_lost_session(machine, attempt, policy) {
        return attempt_failed(machine, attempt, policy);
    }
    // Attempts lost in one crash count as one loss.
    let counted = loss == AttemptLoss::Crashed && !machine.counters.lost_with_crash.remove(&attempt);
    if counted {
        machine.counters.losses += 1;
        machine.counters.lost_with_crash =
            machine.running_attempts().into_iter().filter(|other| *other != attempt).collect();
    }
    if machine.counters.losses > policy.workflow.limits.max_recoveries {
        return phases::end_resumable(machine, Outcome::Failed, Reason::RecoveryExhausted);
    }
    machine.restart_attempt(attempt);
}

/// A rate limit: retry later or with another agent. Too many of them count as a failure.
fn rate_limited(machine: &mut Loop, attempt: AttemptId, limit: LimitNotice, policy: &Policy) {
    if !machine.runs(attempt) {
        return;
    }
    let plan = limit.plan;
    if rate_limits::count_refusal(machine, attempt, limit, policy) {
        return attempt_failed(machine, attempt, policy);
    }
    match plan {
        LimitPlan::FallBack => machine.restart_attempt(attempt),
        LimitPlan::WaitUntil(until) => machine.pause(attempt, PauseReason::RateLimit { until }),
    }
}

/// All effects that the state is waiting for. After a crash these must be carried out again.
pub fn outstanding(machine: &Loop, policy: &Policy) -> Vec<Effect> {
    let mut effects: Vec<_> = machine.jobs(policy).into_iter().map(Effect::Spawn).collect();
    effects.extend(machine.pause_reasons().into_iter().map(|reason| Effect::Wait { reason }));
    if let Stage::Waiting { question, .. } = &machine.stage {
        effects.push(Effect::Ask(question.clone()));
    }
    if let Stage::AwaitingLanding { .. } = &machine.stage {
        let reason = PauseReason::Checkpoint;
        effects.push(if machine.checkpoint.is_some() { Effect::Wait { reason } } else { Effect::AwaitLanding });
    }
    effects
}
