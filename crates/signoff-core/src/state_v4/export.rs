//! Exports the state of an iteration from its log.

use jiff::Timestamp;

use super::{
    AgentPhase, FINAL_PHASE, Iteration, IterationMode, IterationState, PhaseStates, PhaseStatus, ReviewIssue, VERSION,
    truncate_to_seconds,
};
use crate::ids::LoopId;
use crate::machine::{Event, GateEnd, Loop, Outcome, Position, Stage};
use crate::review::FailThreshold;
use crate::task::TaskSpec;
use crate::view::{LoopTransition, RunState, Transition};
use crate::wire::{Fact, LoopFact, RecordedFact};
use crate::workflow::{Phase, Workflow};

/// A loop without an exportable state: the phases of its workflow are not numbered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("its workflow `{workflow}` does not number its phases from 1 to 9")]
pub struct UnnumberedPhases {
    pub workflow: String,
}

/// Computes the state of a loop from the log of its run.
pub fn export<'a>(
    log: impl IntoIterator<Item = &'a RecordedFact>,
    loop_id: &LoopId,
    spec: &TaskSpec,
) -> Result<IterationState, UnnumberedPhases> {
    let mut export = ExportState::default();
    if let Some(imported) = &spec.imported {
        export.phase9 = imported.state.phase9.clone();
        export.iterations.clone_from(&imported.state.iterations);
        export.started_at = imported.state.started_at;
    }
    let mut run_state = RunState::default();
    for recorded in log {
        if let Fact::Loop(other, _) = &recorded.fact
            && other != loop_id
        {
            continue;
        }
        export.apply(&run_state.apply(recorded.clone()));
    }
    export.into_state(&run_state, loop_id, spec)
}

#[derive(Default)]
struct ExportState {
    started_at: Timestamp,
    iterations: Vec<Iteration>,
    phase9: AgentPhase,
}

impl ExportState {
    fn apply(&mut self, transition: &Transition) {
        let at = transition.event.at;
        if let Fact::Loop(_, LoopFact::Added { .. }) = &transition.event.fact
            && self.iterations.is_empty()
        {
            self.start_iteration(at);
        }
        if let Some(step) = transition.loop_transition() {
            let has_started = transition.before.loop_state.as_ref().is_some_and(|before| before.started.is_some());
            self.apply_event(&step, at, has_started);
        }
    }

    fn start_iteration(&mut self, at: Timestamp) {
        self.started_at = truncate_to_seconds(at);
        self.iterations = vec![Iteration::new(1, at)];
    }

    fn apply_event(&mut self, step: &LoopTransition, at: Timestamp, has_started: bool) {
        let LoopTransition { before, event, after, policy, .. } = step;
        if has_started {
            self.update_issues(step);
            if after.position.pass > before.position.pass {
                self.restarted(before.position, after.position.pass, at, &policy.workflow);
            }
        } else if let Event::Started { .. } = event {
            self.start_iteration(at);
        } else if !matches!(event, Event::Imported { .. }) {
            return;
        }
        self.count_fixes(after, &policy.workflow);
        self.update_statuses(after, &policy.workflow);
    }

    /// Stores the findings of the finished review.
    fn update_issues(&mut self, step: &LoopTransition) {
        let (was, cycle, workflow) = (step.before.position, step.before.counters.cycle, &step.policy.workflow);
        let in_this_round = |round: &crate::ledger::Round| {
            let at = (round.pass, round.phase, round.cycle);
            round.checkpoint.is_none() && at == (was.pass, was.phase, cycle)
        };
        let reported = step.after.ledger.findings_for_fix(FailThreshold::Low).into_iter();
        let reported = reported.filter(|entry| entry.seen.iter().any(in_this_round));
        let issues: Vec<ReviewIssue> = reported.map(|entry| ReviewIssue::from_finding(&entry.finding)).collect();
        let phases = self.iteration(was.pass).map(|iteration| &mut iteration.phases);
        let reviewed = phases.and_then(|phases| phases.reviewed_mut(workflow.number(was.phase)));
        if let Some(reviewed) = reviewed.filter(|_| !issues.is_empty()) {
            reviewed.last_issues = issues;
        }
    }

    fn iteration(&mut self, pass: u32) -> Option<&mut Iteration> {
        self.iterations.iter_mut().rfind(|iteration| iteration.iteration == pass)
    }

    /// Ends the iteration at the phase that restarted it. Restarts are counted over all iterations.
    fn restarted(&mut self, was: Position, pass: u32, at: Timestamp, workflow: &Workflow) {
        let cause = workflow.number(was.phase);
        let Some(iteration) = self.iteration(was.pass) else { return };
        for number in 1..FINAL_PHASE {
            if let Some(status) = iteration.phases.status_mut(number).filter(|_| number >= cause) {
                let is_cause = number == cause;
                *status = if is_cause { PhaseStatus::Failed } else { upcoming_status(workflow, number) };
            }
        }
        let counted = restarts(workflow, cause).then(|| iteration.phases.retries_mut(cause)).flatten();
        if let Some(retries) = counted {
            *retries = retries.saturating_add(1);
        }
        let before = iteration.phases.clone();
        let mut next = Iteration::new(pass, at);
        for number in (1..FINAL_PHASE).filter(|number| restarts(workflow, *number)) {
            if let Some((retries, so_far)) = next.phases.retries_mut(number).zip(before.retries(number)) {
                *retries = so_far;
            }
        }
        self.iterations.push(next);
    }

    /// Stores the number of fixes at the current gate.
    fn count_fixes(&mut self, machine: &Loop, workflow: &Workflow) {
        let Position { pass, phase, .. } = machine.position;
        let fixes = machine.counters.fixes;
        let number = workflow.number(phase);
        let judges = workflow.phases.get(phase).is_some_and(|phase| phase.policy().is_some());
        if !judges || restarts(workflow, number) {
            return;
        }
        let retries = self.iteration(pass).and_then(|iteration| iteration.phases.retries_mut(number));
        if let Some(retries) = retries {
            *retries = fixes;
        }
    }

    /// Updates the status of each phase of the current iteration.
    fn update_statuses(&mut self, machine: &Loop, workflow: &Workflow) {
        for number in 1..=FINAL_PHASE {
            let before = self.status_mut(number).copied().unwrap_or_default();
            let now = status(machine, number, before, workflow);
            if let Some(status) = self.status_mut(number) {
                *status = now;
            }
        }
    }

    /// The status of a phase in the current iteration.
    fn status_mut(&mut self, number: u32) -> Option<&mut PhaseStatus> {
        match number {
            FINAL_PHASE => Some(&mut self.phase9.status),
            _ => self.iterations.last_mut()?.phases.status_mut(number),
        }
    }

    fn into_state(
        mut self,
        run_state: &RunState,
        loop_id: &LoopId,
        spec: &TaskSpec,
    ) -> Result<IterationState, UnnumberedPhases> {
        let unknown = || UnnumberedPhases { workflow: String::new() };
        let policy = run_state.policy(loop_id).ok_or_else(unknown)?;
        let loop_state = run_state.loops.get(loop_id).cloned().unwrap_or_default();
        let (machine, has_started) = (&loop_state.machine, loop_state.started.is_some());
        let workflow = &policy.workflow;
        if !is_numbered(workflow) {
            return Err(UnnumberedPhases { workflow: workflow.name.clone() });
        }
        if let Some(imported) = spec.imported.as_ref().filter(|_| !has_started) {
            return Ok(imported.state.clone());
        }
        if !has_started {
            for number in 1..=FINAL_PHASE {
                if let Some(status) = self.status_mut(number) {
                    *status = upcoming_status(workflow, number);
                }
            }
        }
        let task = spec.imported.as_ref().map_or(&spec.description, |imported| &imported.state.task);
        let mut state = IterationState {
            version: VERSION,
            task: task.clone(),
            mode: mode(workflow),
            max_iterations: workflow.limits.max_passes.saturating_add(machine.counters.granted.passes),
            current_iteration: machine.position.pass,
            current_phase: workflow.number(machine.position.phase),
            started_at: self.started_at,
            iterations: self.iterations,
            phase9: self.phase9,
        };
        if machine.position.phase >= workflow.phases.len() {
            let ran = |number: &u32| state.status(*number).is_some_and(|status| status != PhaseStatus::Skipped);
            state.current_phase = (1..=FINAL_PHASE).rev().find(ran).unwrap_or(state.current_phase);
        }
        Ok(state)
    }
}

impl Iteration {
    fn new(iteration: u32, at: Timestamp) -> Self {
        Self { iteration, started_at: truncate_to_seconds(at), phases: PhaseStates::default() }
    }
}

/// The status of a phase in the current iteration.
fn status(machine: &Loop, number: u32, before: PhaseStatus, workflow: &Workflow) -> PhaseStatus {
    let through = machine.position.phase >= workflow.phases.len();
    let here = workflow.number(machine.position.phase);
    let ending = if let Stage::Done(ending) = &machine.stage { Some(ending) } else { None };
    if through || number < here {
        passed_status(machine, number, before, workflow)
    } else if number == here {
        match ending {
            None => PhaseStatus::InProgress,
            Some(ending) if ending.outcome.is_completed() => PhaseStatus::Completed,
            Some(_) => PhaseStatus::Failed,
        }
    } else if ending.is_some_and(|ending| matches!(ending.outcome, Outcome::Accepted { .. })) {
        PhaseStatus::Skipped
    } else {
        upcoming_status(workflow, number)
    }
}

/// The status of a phase before the current one.
fn passed_status(machine: &Loop, number: u32, before: PhaseStatus, workflow: &Workflow) -> PhaseStatus {
    let own = machine.gates.iter().filter(|record| workflow.number(record.phase) == number);
    let is_unseen = own.map(|record| &record.end).any(|end| match end {
        GateEnd::ReviewersMissing | GateEnd::Unchecked => true,
        GateEnd::Approved { .. } | GateEnd::LeftFindings { .. } => false,
    });
    let is_off = before != PhaseStatus::Completed && is_skipped(workflow, number);
    if before == PhaseStatus::Skipped || is_unseen || is_off { PhaseStatus::Skipped } else { PhaseStatus::Completed }
}

fn upcoming_status(workflow: &Workflow, number: u32) -> PhaseStatus {
    if is_skipped(workflow, number) { PhaseStatus::Skipped } else { PhaseStatus::Pending }
}

/// Whether a workflow has no enabled phase with this number.
fn is_skipped(workflow: &Workflow, number: u32) -> bool {
    phases_with_number(workflow, number).all(Phase::is_off)
}

fn phases_with_number(workflow: &Workflow, number: u32) -> impl Iterator<Item = &Phase> {
    let numbered = workflow.phases.iter().enumerate();
    numbered.filter(move |(index, _)| workflow.number(*index) == number).map(|(_, phase)| phase)
}

/// Whether a failure at this number restarts the workflow.
fn restarts(workflow: &Workflow, number: u32) -> bool {
    let mut judges = phases_with_number(workflow, number).filter_map(Phase::policy);
    judges.any(|gate_policy| gate_policy.gate.on_failure.restarts())
}

fn is_numbered(workflow: &Workflow) -> bool {
    let numbers: Vec<u32> = (0..workflow.phases.len()).map(|index| workflow.number(index)).collect();
    workflow.phases.iter().any(|phase| phase.number.is_some())
        && numbers.iter().all(|number| (1..=FINAL_PHASE).contains(number))
        && numbers.is_sorted()
}

/// The mode: lite if the workflow has a lite mode and no phase of the full mode.
fn mode(workflow: &Workflow) -> IterationMode {
    let has = |mode: IterationMode| workflow.phases.iter().any(|phase| phase.mode.as_deref() == Some(mode.into_str()));
    let knows_lite = workflow.modes.iter().any(|known| known == IterationMode::Lite.into_str());
    if knows_lite && !has(IterationMode::Full) { IterationMode::Lite } else { IterationMode::Full }
}
