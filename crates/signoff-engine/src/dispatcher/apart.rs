//! Worktrees beside a loop's own are taken away when nobody needs them any more.

use signoff_core::ids::{LoopId, RunId};
use signoff_core::wire::{Fact, LoopFact};

use super::{Dispatcher, Notice};
use crate::board::Place;
use crate::error::EngineError;
use crate::place::apart::{Beside, Needed, is_possible, leave};

impl Dispatcher<'_> {
    /// Finds what a program left beside a loop's worktree that was killed.
    pub(super) fn look_for_apart(&mut self, run: RunId, loop_id: &LoopId) -> Result<(), EngineError> {
        let Some(driven) = self.runs.get_mut(&run) else { return Ok(()) };
        if !driven.board.policy(loop_id).is_some_and(is_possible) {
            return Ok(());
        }
        driven.apart.insert(loop_id.clone());
        self.clear_apart(run, loop_id)
    }

    /// Takes away what was made beside a loop's worktree, once nobody is at work there and nobody will be.
    pub(super) fn clear_apart(&mut self, run: RunId, loop_id: &LoopId) -> Result<(), EngineError> {
        let Some(driven) = self.runs.get_mut(&run) else { return Ok(()) };
        let at_work = driven.at_work.keys().any(|(other, _)| other == loop_id);
        if at_work || !driven.apart.contains(loop_id) {
            return Ok(());
        }
        let Some(worked) = driven.board.loops.get(loop_id) else { return Ok(()) };
        let (needed, place) = (Needed::by(&worked.state.stage), worked.place.clone());
        if needed == Needed::All {
            return Ok(());
        }
        driven.apart.remove(loop_id);
        // Those that are there now: soon there may be others.
        let beside = |place: Place| Beside::of(&self.shop.repository, place.worktree.as_ref());
        let left = place.map(beside).unwrap_or_default();
        let shop = self.shop.clone();
        // Before anybody else begins beside it.
        let note = (needed == Needed::Nothing)
            .then(|| leave(&shop.repository, (run, loop_id), &worked.branch))
            .flatten();
        let last = worked.launched.keys().next_back().copied();
        self.chores.spawn_blocking(move || left.iter().for_each(|one| one.clear(&shop.repository)));
        let Some((note, attempt)) = note.zip(last) else { return Ok(()) };
        self.renderer.take(&Notice::Note(&note));
        self.append(run, vec![Fact::Loop(loop_id.clone(), LoopFact::Noted { attempt, note })])
    }
}
