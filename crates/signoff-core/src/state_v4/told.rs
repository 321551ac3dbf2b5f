//! The state of an iteration, told from its log.

use std::sync::Arc;

use jiff::Timestamp;

use super::{Issue, Iteration, LAST, Mode, Phases, Plain, State, Status, VERSION, seconds};
use crate::ids::LoopId;
use crate::machine::{self, Ending, Event, GateEnd, Loop, Outcome, Policy, Position, Stage};
use crate::policy::OnFailure;
use crate::review::Bar;
use crate::task::TaskSpec;
use crate::wire::{Fact, LoopFact, Recorded, RunFact};
use crate::workflow::{Phase, Workflow};

/// A loop that no state can be told of: people do not count the phases of its workflow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("its workflow `{workflow}` does not number its phases from 1 to 9")]
pub struct NotAnIteration {
    pub workflow: String,
}

/// The state of a loop, from the log of its run.
pub fn told<'a>(
    log: impl IntoIterator<Item = &'a Recorded>,
    loop_id: &LoopId,
    spec: &TaskSpec,
) -> Result<State, NotAnIteration> {
    let mut fold = Fold::default();
    if let Some(taken_over) = &spec.taken_over {
        fold.phase9 = taken_over.state.phase9.clone();
        fold.iterations.clone_from(&taken_over.state.iterations);
        fold.started_at = taken_over.state.started_at;
    }
    for recorded in log {
        fold.take(recorded, loop_id);
    }
    fold.end(spec)
}

#[derive(Default)]
struct Fold {
    policy: Option<Arc<Policy>>,
    state: Loop,
    /// Whether it was placed and set going.
    begun: bool,
    started_at: Timestamp,
    iterations: Vec<Iteration>,
    phase9: Plain,
}

impl Fold {
    fn take(&mut self, recorded: &Recorded, loop_id: &LoopId) {
        match &recorded.fact {
            Fact::Run(RunFact::Opened { workflow, .. }) => self.policy = Some(Arc::new((**workflow).clone())),
            Fact::Loop(own, fact) if own == loop_id => self.loop_fact(fact, recorded.at),
            Fact::Run(RunFact::Specified { .. } | RunFact::Moved(_)) | Fact::Task(..) | Fact::Loop(..) => {}
        }
    }

    fn loop_fact(&mut self, fact: &LoopFact, at: Timestamp) {
        match fact {
            LoopFact::Added { .. } if self.iterations.is_empty() => self.begin(at),
            LoopFact::Governed { policy } => self.policy = Some(Arc::new((**policy).clone())),
            LoopFact::Moved(event) => {
                if let Some(policy) = self.policy.clone() {
                    self.moved(event, at, &policy);
                }
            }
            LoopFact::Added { .. }
            | LoopFact::Placed { .. }
            | LoopFact::AttemptStarted { .. }
            | LoopFact::CheckpointReviewed { .. }
            | LoopFact::Answered { .. }
            | LoopFact::Used { .. }
            | LoopFact::Session { .. }
            | LoopFact::Said { .. }
            | LoopFact::Noted { .. } => {}
        }
    }

    fn begin(&mut self, at: Timestamp) {
        self.started_at = seconds(at);
        self.iterations = vec![Iteration::begun(1, at)];
    }

    fn moved(&mut self, event: &Event, at: Timestamp, policy: &Policy) {
        let (was, cycle) = (self.state.at, self.state.tally.cycle);
        machine::apply(&mut self.state, event.clone(), policy);
        if self.begun {
            self.take_issues(was, cycle, &policy.workflow);
            if self.state.at.pass > was.pass {
                self.restarted(was, at, &policy.workflow);
            }
        } else if let Event::Started { .. } = event {
            self.begun = true;
            self.begin(at);
        } else if let Event::Imported { .. } = event {
            self.begun = true;
        } else {
            return;
        }
        self.count_fixes(&policy.workflow);
        self.settle(&policy.workflow);
    }

    /// What the review that was under way has found, once it is known.
    fn take_issues(&mut self, was: Position, cycle: u32, workflow: &Workflow) {
        let in_this_round = |round: &crate::ledger::Round| {
            let at = (round.pass, round.phase, round.cycle);
            round.checkpoint.is_none() && at == (was.pass, was.phase, cycle)
        };
        let reported = self.state.ledger.findings_for_fix(Bar::Low).into_iter();
        let reported = reported.filter(|entry| entry.seen.iter().any(in_this_round));
        let issues: Vec<Issue> = reported.map(|entry| Issue::of(&entry.finding)).collect();
        let phases = self.iteration(was.pass).map(|iteration| &mut iteration.phases);
        let reviewed = phases.and_then(|phases| phases.reviewed_mut(workflow.number(was.phase)));
        if let Some(reviewed) = reviewed.filter(|_| !issues.is_empty()) {
            reviewed.last_issues = issues;
        }
    }

    fn iteration(&mut self, pass: u32) -> Option<&mut Iteration> {
        self.iterations.iter_mut().rfind(|iteration| iteration.iteration == pass)
    }

    /// The iteration ended at the phase that sent it back. Restarts are counted over all iterations.
    fn restarted(&mut self, was: Position, at: Timestamp, workflow: &Workflow) {
        let cause = workflow.number(was.phase);
        let Some(iteration) = self.iteration(was.pass) else { return };
        for number in 1..LAST {
            if let Some(status) = iteration.phases.status_mut(number).filter(|_| number >= cause) {
                *status = match number == cause {
                    true => Status::Failed,
                    false => ahead(workflow, number),
                };
            }
        }
        let counted = restarts(workflow, cause).then(|| iteration.phases.retries_mut(cause)).flatten();
        if let Some(retries) = counted {
            *retries = retries.saturating_add(1);
        }
        let before = iteration.phases.clone();
        let mut next = Iteration::begun(self.state.at.pass, at);
        for number in (1..LAST).filter(|number| restarts(workflow, *number)) {
            if let Some((retries, so_far)) = next.phases.retries_mut(number).zip(before.retries(number)) {
                *retries = so_far;
            }
        }
        self.iterations.push(next);
    }

    /// The fixes made at the gate that it stands at.
    fn count_fixes(&mut self, workflow: &Workflow) {
        let Position { pass, phase, .. } = self.state.at;
        let fixes = self.state.tally.fixes;
        let number = workflow.number(phase);
        let judges = workflow.phases.get(phase).is_some_and(|phase| phase.judge().is_some());
        if !judges || restarts(workflow, number) {
            return;
        }
        let retries = self.iteration(pass).and_then(|iteration| iteration.phases.retries_mut(number));
        if let Some(retries) = retries {
            *retries = fixes;
        }
    }

    /// Where each phase of the current iteration stands.
    fn settle(&mut self, workflow: &Workflow) {
        for number in 1..=LAST {
            let status = match number {
                LAST => Some(self.phase9.status),
                _ => self.iterations.last().and_then(|iteration| iteration.phases.status(number)),
            };
            let now = self.status(number, status.unwrap_or_default(), workflow);
            let place = match number {
                LAST => Some(&mut self.phase9.status),
                _ => self.iterations.last_mut().and_then(|iteration| iteration.phases.status_mut(number)),
            };
            if let Some(status) = place {
                *status = now;
            }
        }
    }

    fn status(&self, number: u32, before: Status, workflow: &Workflow) -> Status {
        let through = self.state.at.phase >= workflow.phases.len();
        let here = workflow.number(self.state.at.phase);
        let ending = if let Stage::Done(ending) = &self.state.stage { Some(ending) } else { None };
        if through || number < here {
            self.behind(number, before, workflow)
        } else if number == here {
            ending.map_or(Status::InProgress, ended)
        } else if ending.is_some_and(|ending| matches!(ending.outcome, Outcome::Accepted { .. })) {
            Status::Skipped
        } else {
            ahead(workflow, number)
        }
    }

    /// What became of a phase that is behind it.
    fn behind(&self, number: u32, before: Status, workflow: &Workflow) -> Status {
        let own = self.state.gates.iter().filter(|record| workflow.number(record.phase) == number);
        let unseen = own.map(|record| &record.end).any(|end| match end {
            GateEnd::Unheard | GateEnd::Unchecked => true,
            GateEnd::Approved { .. } | GateEnd::Noted { .. } => false,
        });
        match before {
            Status::Skipped => Status::Skipped,
            Status::Completed => {
                if unseen {
                    Status::Skipped
                } else {
                    Status::Completed
                }
            }
            Status::Pending | Status::InProgress | Status::Failed
                if unseen || is_absent(workflow, number) =>
            {
                Status::Skipped
            }
            Status::Pending | Status::InProgress | Status::Failed => Status::Completed,
        }
    }

    fn end(mut self, spec: &TaskSpec) -> Result<State, NotAnIteration> {
        let unknown = || NotAnIteration { workflow: String::new() };
        let policy = self.policy.clone().ok_or_else(unknown)?;
        let workflow = &policy.workflow;
        if !is_numbered(workflow) {
            return Err(NotAnIteration { workflow: workflow.name.clone() });
        }
        if let Some(taken_over) = spec.taken_over.as_ref().filter(|_| !self.begun) {
            return Ok(taken_over.state.clone());
        }
        if !self.begun {
            self.settle_before(workflow);
        }
        let task = spec.taken_over.as_ref().map_or(&spec.description, |taken_over| &taken_over.state.task);
        let mut state = State {
            version: VERSION,
            task: task.clone(),
            mode: mode(workflow),
            max_iterations: workflow.limits.max_passes.saturating_add(self.state.tally.granted.passes),
            current_iteration: self.state.at.pass,
            current_phase: workflow.number(self.state.at.phase),
            started_at: self.started_at,
            iterations: self.iterations,
            phase9: self.phase9,
        };
        if self.state.at.phase >= workflow.phases.len() {
            let ran = |number: &u32| state.status(*number).is_some_and(|status| status != Status::Skipped);
            state.current_phase = (1..=LAST).rev().find(ran).unwrap_or(state.current_phase);
        }
        Ok(state)
    }

    /// Nothing has begun: all that will come is ahead.
    fn settle_before(&mut self, workflow: &Workflow) {
        self.phase9.status = ahead(workflow, LAST);
        for phases in self.iterations.iter_mut().map(|iteration| &mut iteration.phases) {
            for number in 1..LAST {
                if let Some(status) = phases.status_mut(number) {
                    *status = ahead(workflow, number);
                }
            }
        }
    }
}

impl Iteration {
    fn begun(iteration: u32, at: Timestamp) -> Self {
        Self { iteration, started_at: seconds(at), phases: Phases::default() }
    }
}

/// The phase at which a loop ended.
fn ended(ending: &Ending) -> Status {
    if ending.outcome.carries_on() { Status::Completed } else { Status::Failed }
}

fn ahead(workflow: &Workflow, number: u32) -> Status {
    if is_absent(workflow, number) { Status::Skipped } else { Status::Pending }
}

/// Whether a workflow passes over a number: it has no such phase, or what it has is switched off.
fn is_absent(workflow: &Workflow, number: u32) -> bool {
    of_number(workflow, number).all(Phase::is_off)
}

fn of_number(workflow: &Workflow, number: u32) -> impl Iterator<Item = &Phase> {
    let numbered = workflow.phases.iter().enumerate();
    numbered.filter(move |(index, _)| workflow.number(*index) == number).map(|(_, phase)| phase)
}

/// Whether what fails at a number begins anew.
fn restarts(workflow: &Workflow, number: u32) -> bool {
    let mut judges = of_number(workflow, number).filter_map(Phase::judge);
    judges.any(|judge| judge.gate.on_failure == OnFailure::Restart)
}

fn is_numbered(workflow: &Workflow) -> bool {
    let numbers: Vec<u32> = (0..workflow.phases.len()).map(|index| workflow.number(index)).collect();
    workflow.phases.iter().any(|phase| phase.number.is_some())
        && numbers.iter().all(|number| (1..=LAST).contains(number))
        && numbers.is_sorted()
}

/// A workflow that knows a short way and has none of the phases of the long one is on the short way.
fn mode(workflow: &Workflow) -> Mode {
    let has = |mode: Mode| workflow.phases.iter().any(|phase| phase.mode.as_deref() == Some(mode.word()));
    let knows_lite = workflow.modes.iter().any(|known| known == Mode::Lite.word());
    if knows_lite && !has(Mode::Full) { Mode::Lite } else { Mode::Full }
}
