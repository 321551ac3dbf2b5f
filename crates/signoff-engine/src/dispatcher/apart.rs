//! Worktrees beside a loop's own are taken away when nobody needs them any more.

use signoff_core::ids::{LoopId, RunId};
use signoff_core::machine::Stage;

use super::Dispatcher;
use crate::board::Place;
use crate::place::apart::{Beside, Needed, forget_commits, is_possible};

impl Dispatcher<'_> {
    /// Finds what a program left beside a loop's worktree that was killed.
    pub(super) fn look_for_apart(&mut self, run: RunId, loop_id: &LoopId) {
        let Some(driven) = self.runs.get_mut(&run) else { return };
        if driven.board.policy(loop_id).is_some_and(is_possible) {
            driven.apart.insert(loop_id.clone());
            self.clear_apart(run, loop_id);
        }
    }

    /// Takes away what was made beside a loop's worktree, once nobody is at work there and nobody will be.
    pub(super) fn clear_apart(&mut self, run: RunId, loop_id: &LoopId) {
        let Some(driven) = self.runs.get_mut(&run) else { return };
        let at_work = driven.at_work.keys().any(|(other, _)| other == loop_id);
        if at_work || !driven.apart.contains(loop_id) {
            return;
        }
        let Some(worked) = driven.board.loops.get(loop_id) else { return };
        let (needed, place) = (Needed::by(&worked.state.stage), worked.place.clone());
        if needed == Needed::All {
            return;
        }
        driven.apart.remove(loop_id);
        // Those that are there now: soon there may be others.
        let beside = |place: Place| Beside::of(&self.shop.repository, place.worktree.as_ref());
        let left = place.map(beside).unwrap_or_default();
        let has_ended = matches!(worked.state.stage, Stage::Done(_));
        let (shop, loop_id) = (self.shop.clone(), loop_id.clone());
        self.chores.spawn_blocking(move || {
            for one in left {
                match needed {
                    Needed::All => {}
                    Needed::Commits => one.clear(&shop.repository),
                    Needed::Nothing => one.forget(&shop.repository, (run, &loop_id)),
                }
            }
            if needed == Needed::Nothing && has_ended {
                forget_commits(&shop.repository, (run, &loop_id));
            }
        });
    }
}
