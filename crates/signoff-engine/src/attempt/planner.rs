//! The end of a planner: its answer, reported with tools or said in its final message, is read, checked and put on
//! record; whatever it changed is put back.

use sha2::{Digest, Sha256};
use signoff_core::hex::hex;
use signoff_core::ids::{ReviewerName, Tree};
use signoff_core::machine::{Event, Failure, Head, WorkReport};
use signoff_core::review::Violation;
use signoff_core::source::planner::{Planned, read_groups, read_tasks};
use signoff_core::wire::LoopFact;
use signoff_core::workflow::Role;

use super::conclude::failed;
use super::hear::{closed, message};
use super::reviewed::listed;
use super::{End, Workshop};
use crate::assignment::{Assignment, Part};
use crate::error::EngineError;
use crate::process::{AttemptDir, Ended};

/// Makes an event of a planner's end, with its answer.
pub fn conclude(
    shop: &Workshop,
    task: &Assignment,
    (dir, ended): (&AttemptDir, &Ended),
    notes: &mut Vec<String>,
) -> Result<(End, Vec<LoopFact>), EngineError> {
    put_back(shop, task, notes)?;
    if let Some(end) = closed(shop, task, dir, ended).end(task) {
        return Ok((end, Vec::new()));
    }
    let attempt = task.job.attempt;
    let text = shop.reports.of(dir, &task.launch.role, notes).unwrap_or_else(|| message(dir));
    Ok(match answer(task, &text) {
        Ok(answer) => {
            let report = WorkReport::Complete { head: head(task, &answer) };
            let ended = End::Event(Box::new(Event::WorkEnded { attempt, report }));
            (ended, vec![LoopFact::Answered { attempt, answer }])
        }
        Err(violation) => (failed(task, Failure::BadAnswer { message: violation.to_string() }), Vec::new()),
    })
}

fn answer(task: &Assignment, text: &[u8]) -> Result<Planned, Violation> {
    match (&task.part, task.launch.role == Role::Enumerate.word()) {
        (Some(Part::Planning { tasks, .. }), false) => read_groups(text, tasks).map(Planned::Groups),
        (_, _) => read_tasks(text).map(Planned::Tasks),
    }
}

/// No file changes with an answer; what it says is what is judged.
fn head(task: &Assignment, answer: &Planned) -> Head {
    let tree = Tree::new(hex(&Sha256::digest(answer.shown())));
    Head { commit: task.state.head.commit.clone(), tree }
}

/// A planner answers, and changes nothing.
fn put_back(shop: &Workshop, task: &Assignment, notes: &mut Vec<String>) -> Result<(), EngineError> {
    let who = ReviewerName::new(&*task.launch.role);
    let undone = shop.readings.end(&shop.worktree(task)?, &task.place.base, &who)?;
    if !undone.changes.is_empty() {
        let changes: Vec<_> = undone.changes.iter().collect();
        notes.push(format!("{who} changed files while planning; undone: {}", listed(&changes)));
    }
    Ok(())
}
