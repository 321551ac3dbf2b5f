//! The project's checks, run on a merge before anybody else sees it.

use std::path::Path;
use std::sync::Arc;

use signoff_core::checks::{Ran, against_base};
use signoff_core::ids::{Commit, ReviewerName};
use signoff_core::machine::Failure;
use signoff_core::review::Finding;

use super::bring::{Tell, Told, Wish};
use super::unchecked;
use crate::attempt::base_checks::{self, Base};
use crate::attempt::{self, Workshop};
use crate::error::EngineError;
use crate::failpoint;
use crate::process::{AttemptDir, Launch};

/// What the checks say.
#[derive(Debug)]
pub enum Checked {
    Green,
    Red(Vec<Finding>),
    /// They ended in a way that says nothing about the work.
    Failed(Failure),
    Stopped,
}

/// Runs the checks on a commit, in the worktree reserved for landing. `again` is the number of earlier runs. A failure that
/// the target commit `onto` has too is reported as a note and does not count.
pub async fn run(
    shop: &Arc<Workshop>,
    wish: &Wish,
    (commit, onto, again): (&Commit, &Commit, usize),
    tell: Tell<'_>,
) -> Result<Checked, EngineError> {
    if shop.settings.checks().is_empty() {
        return Ok(Checked::Green);
    }
    // Each time has files of its own; the first ones are where a restart looks for a keeper.
    let directory = &wish.directory;
    let path = if again == 0 { directory.clone() } else { directory.join(format!("again-{again}")) };
    let (dir, preparing) = (AttemptDir::new(path), (shop.clone(), wish.clone(), commit.clone()));
    let prepared = {
        let dir = dir.clone();
        attempt::blocking(move || prepare(&preparing.0, &preparing.1, &preparing.2, &dir)).await?
    };
    let Some(launch) = prepared else { return Ok(Checked::Failed(unchecked("no checks are configured"))) };
    failpoint::pass("land_checks");
    let running = shop.keeper.start(&launch, &dir).await;
    let running = running.map_err(|error| EngineError::io("start the checks in", dir.path(), error))?;
    tell(Told::Stoppable(running.stopper()));
    let ended = running.wait().await;
    Ok(match attempt::checked(&dir, &ended) {
        attempt::Checks::Stopped => Checked::Stopped,
        attempt::Checks::Failed(failure) => Checked::Failed(failure),
        attempt::Checks::Ran(ran) => compared(shop, (wish, onto), (&dir, &ran), tell).await?,
    })
}

/// The failures of a commit that its target does not have.
async fn compared(
    shop: &Arc<Workshop>,
    (wish, onto): (&Wish, &Commit),
    (dir, ran): (&AttemptDir, &[Ran]),
    tell: Tell<'_>,
) -> Result<Checked, EngineError> {
    let timeout = shop.settings.limits().attempt;
    let terms = (timeout, wish.environment.clone());
    let base = match base_checks::of(shop, (dir, ran), (onto, terms), tell).await? {
        Base::Ran(base) => base,
        Base::Unknown => Vec::new(),
        Base::Stopped => return Ok(Checked::Stopped),
    };
    let sorted = against_base(&ReviewerName::new("checks"), ran, &base);
    if let Some(note) = sorted.note(onto.as_str()) {
        tell(Told::Note(note));
    }
    Ok(if sorted.new.is_empty() { Checked::Green } else { Checked::Red(sorted.new) })
}

fn prepare(
    shop: &Workshop,
    wish: &Wish,
    commit: &Commit,
    dir: &AttemptDir,
) -> Result<Option<Launch>, EngineError> {
    attempt::make_directory(dir)?;
    let path = shop.layout.landing_worktree();
    let worktree = shop.repository.integration(&path, commit)?;
    worktree.copy_files(shop.settings.copied_into_worktrees())?;
    let timeout = shop.settings.limits().attempt;
    attempt::checks_launch(shop, dir, Path::new(&path), (timeout, wish.environment.clone()))
}
