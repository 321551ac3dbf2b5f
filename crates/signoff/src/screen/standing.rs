//! Who works on what, and what needs somebody by the rule of `signoff` alone: a screen must not say anything else.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use signoff_core::ids::RunId;
use signoff_core::view::Status;
use signoff_store::Store;
use signoff_term::attention::Scene;
use signoff_term::tui::Standings;

use crate::desk::Desk;
use crate::door;
use crate::failure::Failure;

/// How often it is looked who works, and whether something was recorded.
const OFTEN: SignedDuration = SignedDuration::from_millis(300);

/// How often it is looked at everything anew: branches move without a record.
const SELDOM: SignedDuration = SignedDuration::from_secs(5);

/// Looks now and then, and tells what is different.
#[derive(Debug, Default)]
pub struct Standing {
    looked_at: Option<Timestamp>,
    read_at: Option<Timestamp>,
    version: Option<u64>,
    /// The runs in which something is left to do, and those of them that somebody works on.
    open: BTreeSet<RunId>,
    held: BTreeSet<RunId>,
    told: Option<Standings>,
}

impl Standing {
    /// How things stand, where that is different from when it was last asked. What was recorded must be read after this:
    /// whoever does not work any more has recorded all of it.
    pub fn news(&mut self, desk: &Desk) -> Result<Option<Standings>, Failure> {
        let now = door::now();
        if is_fresh(self.looked_at, now, OFTEN) {
            return Ok(None);
        }
        self.looked_at = Some(now);
        let (version, held) = (desk.store.version()?, held(desk, &self.open)?);
        let same = self.version == Some(version) && self.held == held;
        if same && is_fresh(self.read_at, now, SELDOM) {
            return Ok(None);
        }
        (self.version, self.read_at) = (Some(version), Some(now));
        let standings = self.read(desk)?;
        let told = self.told.replace(standings.clone());
        Ok(Some(standings).filter(|standings| told.as_ref() != Some(standings)))
    }

    fn read(&mut self, desk: &Desk) -> Result<Standings, Failure> {
        let (tasks, runs) = (desk.rows()?, desk.runs()?);
        let is_taken_up = |status: Status| matches!(status, Status::InProgress | Status::Paused);
        let taken_up = tasks.iter().filter(|row| is_taken_up(row.status)).filter_map(|row| row.run_id);
        let open = runs.iter().filter(|run| !run.failed_as_a_whole()).map(|run| run.id);
        self.open = taken_up.chain(open).map(RunId).collect();
        self.held = held(desk, &self.open)?;
        let left = self.open.difference(&self.held).copied().collect();
        let driven = self.held.iter().map(|run| run.0).collect();
        Ok(Standings::of(&Scene { tasks: &tasks, runs: &runs, driven: &driven }, left))
    }
}

fn is_fresh(at: Option<Timestamp>, now: Timestamp, longest: SignedDuration) -> bool {
    at.is_some_and(|at| now.duration_since(at).abs() < longest)
}

/// Those that some program works on now.
fn held(desk: &Desk, runs: &BTreeSet<RunId>) -> Result<BTreeSet<RunId>, Failure> {
    let mut held = BTreeSet::new();
    for run in runs {
        if desk.store.is_held(*run)? {
            held.insert(*run);
        }
    }
    Ok(held)
}
