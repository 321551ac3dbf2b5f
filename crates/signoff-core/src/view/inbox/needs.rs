//! What loops and runs need from a person, for notifications: they are sent when it changes.

use crate::group::{RunOutcome, RunStage};
use crate::ids::{LoopId, QuestionId};
use crate::machine::{Loop, Reason, Stage};
use crate::view::RunState;

/// What a loop needs from a person, for notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoopNeeds {
    pub question: Option<QuestionId>,
    /// It failed or is stuck, and no person ended it.
    pub stuck: bool,
    pub over_budget: bool,
}

impl LoopNeeds {
    pub fn for_loop(machine: Option<&Loop>) -> Self {
        let Some(machine) = machine else { return Self::default() };
        let stuck =
            matches!(&machine.stage, Stage::Done(ending) if ending.outcome.is_failure()) && !ended_by_person(machine);
        Self { question: machine.open_question(), stuck, over_budget: machine.pause_cause() == Some(Reason::Budget) }
    }
}

/// Whether a person ended the loop. That person needs no notification.
fn ended_by_person(machine: &Loop) -> bool {
    matches!(&machine.stage, Stage::Done(ending) if ending.reason.is_some_and(Reason::is_by_person))
}

/// What a run needs from a person, beside what its loops do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunNeeds {
    /// The loops that block their group but did not fail. Failed ones were reported when they failed.
    pub blockers: Vec<LoopId>,
    /// Whether the run is finished. A person can reopen a loop of a finished run.
    pub is_over: bool,
}

impl RunNeeds {
    pub fn for_run(run: &RunState) -> Self {
        let by = if let RunStage::Blocked { by, .. } = run.stage() { by.as_slice() } else { &[] };
        let is_reported = |loop_id: &&LoopId| LoopNeeds::for_loop(run.loop_state(loop_id)).stuck;
        let stopped = |loop_id: &&LoopId| run.loop_state(loop_id).is_some_and(ended_by_person);
        let blockers = by.iter().filter(|loop_id| !is_reported(loop_id) && !stopped(loop_id)).cloned().collect();
        let is_over = matches!(run.stage(), RunStage::Done(_)) && run.overview().tasks.open() == 0;
        Self { blockers, is_over }
    }
}

/// Whether the end of a run is news: no person cancelled it, and it was not reported as the end of its only loop.
pub fn end_is_news(run: &RunState) -> bool {
    let rows = run.rows();
    let by_person = matches!(rows.as_slice(), [only] if only.reason.is_some_and(Reason::is_by_person));
    match run.stage().outcome() {
        Some(RunOutcome::Approved | RunOutcome::Attention) => !by_person,
        Some(RunOutcome::Failed) => rows.len() > 1,
        Some(RunOutcome::Cancelled) | None => false,
    }
}
