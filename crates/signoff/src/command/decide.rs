//! What `answer`, `retry`, `edit`, `cancel` and `dispute` have in common: a person's decision about a loop.

use signoff_core::command::{self, Command};
use signoff_core::group::{RunEvent, Standing};
use signoff_core::ids::{LoopId, RunId};
use signoff_core::machine;
use signoff_core::wire::{Fact, LoopFact, RunFact};
use signoff_engine::board::Board;
use signoff_engine::clock;
use signoff_store::Store;

use crate::desk::Desk;
use crate::door;
use crate::drive::try_acquire;
use crate::failure::Failure;

/// How a decision was taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It is in the log.
    Recorded,
    /// The program that drives the run has it, and goes on.
    HandedOver,
}

/// Records a decision, or hands it to whoever drives the run.
pub fn decide(desk: &Desk, run: RunId, loop_id: &LoopId, wish: Command) -> Result<Taken, Failure> {
    match try_acquire(&*desk.store, run)? {
        Some(lease) => {
            let board = Board::of(run, &desk.store.log(run)?);
            let facts = facts(&board, loop_id, wish)?;
            desk.store.append(&lease, clock::now(), &facts)?;
            Ok(Taken::Recorded)
        }
        None => hand_over(desk, run, loop_id, &wish),
    }
}

fn facts(board: &Board, loop_id: &LoopId, wish: Command) -> Result<Vec<Fact>, Failure> {
    let known = board.loops.get(loop_id).zip(board.policy(loop_id));
    let Some((worked, policy)) = known else {
        return Err(Failure::failed("the log does not know this task"));
    };
    let event = command::decide(&worked.state, wish, policy)?;
    let (next, _) = machine::step(worked.state.clone(), event.clone(), policy);
    let mut facts = vec![Fact::Loop(loop_id.clone(), LoopFact::Moved(event))];
    let standing = Standing::of(&next);
    if standing != Standing::of(&worked.state) {
        let moved = RunEvent::LoopMoved { loop_id: loop_id.clone(), standing };
        facts.push(Fact::Run(RunFact::Moved(moved)));
    }
    Ok(facts)
}

/// Waits for the other program's answer; it looks for wishes several times a second.
fn hand_over(desk: &Desk, run: RunId, loop_id: &LoopId, wish: &Command) -> Result<Taken, Failure> {
    let request = desk.store.post(run, loop_id, wish)?;
    for _ in 0..PATIENCE {
        match desk.store.answer(request)? {
            Some(Ok(())) => return Ok(Taken::HandedOver),
            Some(Err(refusal)) => return Err(Failure::usage(refusal)),
            None => door::wait_a_moment(),
        }
    }
    Err(Failure::failed("the signoff that works on it did not answer")
        .hint("it will take your decision in when it looks again; `signoff status` shows"))
}

/// How many moments an answer is waited for.
const PATIENCE: usize = 100;
