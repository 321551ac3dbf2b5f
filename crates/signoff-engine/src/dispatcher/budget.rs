//! The money for a launch is promised before it starts: what several attempts expect to use is never promised twice.

use signoff_core::ids::{AttemptId, LoopId, RunId};
use signoff_core::policy::{Budget, Refusal, Reservation};
use signoff_core::review::Usage;

use super::{Dispatcher, Driven};
use crate::board::Worked;

impl Dispatcher<'_> {
    /// Which cap forbids one more launch, of the task or of the run.
    pub(super) fn over_budget(&self, run: RunId, loop_id: &LoopId, attempt: AttemptId) -> Option<Refusal> {
        let driven = self.runs.get(&run)?;
        let worked = driven.board.loops.get(loop_id)?;
        let limits = self.shop.settings.limits();
        let of_task = account([(loop_id, worked)], driven).reserve(attempt, expected(worked), &limits.task);
        let fresh = AttemptId(u64::MAX);
        let of_run = || account(&driven.board.loops, driven).reserve(fresh, expected(worked), &limits.run);
        of_task.and_then(|()| of_run()).err()
    }
}

/// What these loops have used, and what is promised to those of their attempts that are at work.
fn account<'a>(loops: impl IntoIterator<Item = (&'a LoopId, &'a Worked)>, driven: &Driven) -> Budget {
    let mut budget = Budget::default();
    let mut number = 0;
    let mut next = || {
        number += 1;
        AttemptId(number)
    };
    for (loop_id, worked) in loops {
        worked.usage.values().for_each(|usage| budget.settle(next(), *usage));
        let at_work = driven.at_work.keys().filter(|(other, _)| other == loop_id).count();
        for _ in 0..at_work {
            // Without caps nothing is refused: this only notes the promise.
            budget.reserve(next(), expected(worked), &Default::default()).ok();
        }
    }
    budget
}

/// What one more attempt is expected to use: as much as the dearest so far.
fn expected(worked: &Worked) -> Reservation {
    let dearest = worked.usage.values().copied().max_by_key(|usage| usage.cost_micro_usd);
    // How long it takes is bounded by its own limit.
    Usage { duration_ms: 0, ..dearest.unwrap_or_default() }.into()
}
