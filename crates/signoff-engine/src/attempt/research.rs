//! Helpers that look into a phase's question before its own agent does: readers, whose reports it is given.

use std::fs;

use signoff_core::config::{Assigned, Place};
use signoff_core::ids::{AttemptId, ReviewerName};
use signoff_core::machine::{Event, Failure, WorkReport};
use signoff_core::prompt::CHARACTER_CAP;
use signoff_core::workflow::Role;

use super::conclude::{failed, start_of};
use super::environment::Told;
use super::hear::{closed, message};
use super::held::{Room, held};
use super::launch::launch;
use super::material::{opening, restarted};
use super::prepare::{Memo, Prepared, write_prompt};
use super::reviewed::{Reading, undo};
use super::{End, Unstarted, Workshop};
use crate::agent::Duty;
use crate::assignment::Assignment;
use crate::brief::{self, Material};
use crate::error::EngineError;
use crate::process::{AttemptDir, Ended};

/// What a helper found out, kept with its attempt.
const REPORT: &str = "report.md";

/// Writes down all that the keeper needs.
pub fn prepare(
    shop: &Workshop,
    task: &Assignment,
    (place, role, number): (Place<'_>, Role, usize),
    dir: AttemptDir,
) -> Result<Prepared, EngineError> {
    let Assigned { agent, model, timeout } = match shop.settings.researcher_in_turn(role, place, task.turn())
    {
        Ok(assigned) => assigned,
        Err(error) => return Ok(Err(Unstarted::Failed(error.to_string()))),
    };
    let opening = opening(shop, &["research"])?;
    let (head, base) = (&task.state.head.commit, &task.place.base);
    shop.readings.begin(&shop.worktree(task)?, (head, base), &name(number))?;
    let material = Material { opening, ..restarted(shop, task)? };
    let memo = Memo { reads: true, ..Memo::default() };
    let prompt = brief::researcher(task, &material, number);
    write_prompt(shop, &dir, &brief::resumed(task, prompt), &memo)?;
    let who = (&agent, model.as_deref(), Duty::Read);
    match launch(shop, task, &dir, who, (timeout, &Told::default())) {
        Ok(launch) => Ok(Ok((held(shop, launch, (&dir, task.launch.hold), &Room::None)?, dir))),
        Err(unstarted) => Ok(Err(unstarted)),
    }
}

fn name(number: usize) -> ReviewerName {
    ReviewerName::new(format!("researcher {}", number + 1))
}

/// Keeps the report, and puts back what was changed.
pub fn conclude(
    shop: &Workshop,
    task: &Assignment,
    (dir, ended): (&AttemptDir, &Ended),
    (number, notes): (usize, &mut Vec<String>),
) -> Result<End, EngineError> {
    let head = &task.state.head;
    undo(
        shop,
        &shop.worktree(task)?,
        (&head.commit, Reading::Research, task.launch.hold),
        (&name(number), notes),
    )?;
    if let Some(end) = closed(shop, task, dir, ended).end(task) {
        return Ok(end);
    }
    let said = message(dir);
    if said.trim_ascii().is_empty() {
        return Ok(failed(task, Failure::BadAnswer { message: "the report is empty".to_owned() }));
    }
    let path = dir.path().join(REPORT);
    fs::write(&path, said).map_err(|error| EngineError::io("write", &path, error))?;
    let report = WorkReport::Complete { head: head.clone() };
    Ok(End::Event(Box::new(Event::WorkEnded { attempt: task.job.attempt, report })))
}

/// What the helpers of the phase at hand found out, each as much as a prompt can show.
pub fn reports(shop: &Workshop, task: &Assignment) -> Vec<String> {
    let read = |attempt: &AttemptId| {
        let dir = AttemptDir::new(shop.layout.attempt(task.run, &task.loop_id, *attempt));
        start_of(&dir.path().join(REPORT), 4 * CHARACTER_CAP as u64 + 4)
    };
    let mut came_back = task.researched.clone();
    came_back.sort_unstable();
    let texts = came_back.iter().map(read).filter(|text| !text.is_empty());
    texts.map(|text| String::from_utf8_lossy(&text).into_owned()).collect()
}
