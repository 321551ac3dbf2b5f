//! Findings inherited from earlier tasks on the same branch.

use super::{FindingState, Ledger, LedgerEntry, Round};
use crate::ids::TaskId;

impl Ledger {
    /// The findings that earlier tasks leave to the next task on a branch: open ones, and those that were refuted,
    /// deferred or put out of scope. `tasks` are in the order they were worked in; the last task with a finding
    /// determines its state.
    pub fn from_earlier_tasks<'a>(tasks: impl IntoIterator<Item = (TaskId, &'a Ledger)>) -> Self {
        let mut left = Self::default();
        for (task, ledger) in tasks {
            for entry in &ledger.entries {
                left.carry(task, entry);
            }
            left.reported_ids.extend(ledger.reported_ids.clone());
        }
        left.entries.retain(|entry| entry.state != FindingState::Fixed);
        let Self { entries, reported_ids: said } = &mut left;
        said.retain(|id, _| entries.iter().any(|entry| entry.finding.id == *id));
        left
    }

    fn carry(&mut self, task: TaskId, entry: &LedgerEntry) {
        let last = entry.seen.last();
        let round = last.map(|round| Round { task: round.task.or(Some(task)), ..round.clone() });
        // Claims name attempts of another loop, so they are dropped.
        let carried = LedgerEntry { seen: round.into_iter().collect(), claims: Vec::new(), ..entry.clone() };
        match self.entries.iter_mut().find(|known| known.finding.id == entry.finding.id) {
            Some(known) => *known = carried,
            None => self.entries.push(carried),
        }
    }

    /// Adds the findings of another ledger. `place` assigns each one to a gate of this loop.
    pub fn inherit(&mut self, left: Self, place: impl Fn(&mut LedgerEntry)) {
        for mut entry in left.entries {
            place(&mut entry);
            if self.get(&entry.finding.id).is_none() {
                self.entries.push(entry);
            }
        }
        self.reported_ids.extend(left.reported_ids);
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
