//! Findings that a task takes over from earlier tasks on the same branch.

use super::{Entry, Ledger, Round, State};
use crate::ids::TaskId;

impl Ledger {
    /// The findings that earlier tasks on a branch leave to the next one: those that are open, and those that were
    /// refuted, deferred or put out of scope. The tasks come in the order they were worked in; the last one that has a
    /// finding decides its state.
    pub fn left_by<'a>(tasks: impl IntoIterator<Item = (TaskId, &'a Ledger)>) -> Self {
        let mut left = Self::default();
        for (task, ledger) in tasks {
            for entry in &ledger.entries {
                left.carry(task, entry);
            }
            left.said.extend(ledger.said.clone());
        }
        left.entries.retain(|entry| entry.state != State::Fixed);
        let Self { entries, said } = &mut left;
        said.retain(|id, _| entries.iter().any(|entry| entry.finding.id == *id));
        left
    }

    fn carry(&mut self, task: TaskId, entry: &Entry) {
        let last = entry.seen.last();
        let round = last.map(|round| Round { task: round.task.or(Some(task)), ..round.clone() });
        // The attempts that claims name are those of another loop.
        let carried = Entry { seen: round.into_iter().collect(), claims: Vec::new(), ..entry.clone() };
        match self.entries.iter_mut().find(|known| known.finding.id == entry.finding.id) {
            Some(known) => *known = carried,
            None => self.entries.push(carried),
        }
    }

    /// Begins with the findings of another ledger. `place` says where in this loop each one belongs.
    pub fn begin_with(&mut self, left: Self, place: impl Fn(&mut Entry)) {
        for mut entry in left.entries {
            place(&mut entry);
            if self.get(&entry.finding.id).is_none() {
                self.entries.push(entry);
            }
        }
        self.said.extend(left.said);
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
