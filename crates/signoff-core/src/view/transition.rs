//! One event, with the state before and after it.

use std::sync::{Arc, LazyLock};

use super::{LoopState, RunInfo};
use crate::ids::LoopId;
use crate::machine::{Event, Loop, Policy};
use crate::wire::{Fact, Launch, LoopFact, RecordedFact};

/// One applied event, with the state of its run and of its loop before and after it.
///
/// The snapshots share their content with the run's state, so a transition is cheap to clone and to send to another
/// thread.
#[derive(Debug, Clone)]
pub struct Transition {
    pub before: Snapshot,
    pub event: Arc<RecordedFact>,
    pub after: Snapshot,
}

/// The parts of a run's state that one event can change.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub run: Arc<RunInfo>,
    /// The loop of the event; none for events of the run and of tasks, and before the loop exists.
    pub loop_state: Option<Arc<LoopState>>,
    pub(super) question_count: u64,
}

/// An event of a loop's state machine, with the state of the machine before and after it.
#[derive(Debug, Clone, Copy)]
pub struct LoopTransition<'a> {
    pub before: &'a Loop,
    pub event: &'a Event,
    pub after: &'a Loop,
    pub policy: &'a Policy,
    /// How the attempt that this event ends was started.
    pub launch: Option<&'a Launch>,
}

/// The state machine of a loop without events.
static NEW_LOOP: LazyLock<Loop> = LazyLock::new(Loop::default);

impl Transition {
    /// The loop of the event.
    pub fn loop_id(&self) -> Option<&LoopId> {
        if let Fact::Loop(loop_id, _) = &self.event.fact { Some(loop_id) } else { None }
    }

    /// The transition of the loop's state machine; none for events that do not reach it.
    pub fn loop_transition(&self) -> Option<LoopTransition<'_>> {
        let Fact::Loop(_, LoopFact::Transitioned(event)) = &self.event.fact else { return None };
        let after = self.after.loop_state.as_deref()?;
        let started = event.ends_attempt().and_then(|attempt| after.attempt_starts.get(&attempt));
        Some(LoopTransition {
            before: self.before.loop_state.as_deref().map_or(&*NEW_LOOP, |before| &before.machine),
            event,
            after: &after.machine,
            policy: self.after.policy()?,
            launch: started.map(|start| &start.launch),
        })
    }
}

impl Snapshot {
    /// The policy of the loop: its own, or the run's.
    pub fn policy(&self) -> Option<&Policy> {
        let own = self.loop_state.as_ref().and_then(|state| state.policy.as_deref());
        own.or(self.run.policies.as_ref().map(|policies| &policies.workflow))
    }
}
