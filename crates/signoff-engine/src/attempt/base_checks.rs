//! The project's checks on the commit that work is based on, so that work is not blamed for what fails there.
//!
//! They run only when checks of the work failed, once for each base commit and list of checks. The result is kept below
//! `.signoff`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use signoff_core::checks::Ran;
use signoff_core::hex::hex;
use signoff_core::ids::Commit;
use signoff_core::machine::JobKind;
use signoff_core::policy::Span;
use tokio::sync::mpsc::UnboundedSender;

use super::check_results::{Checks, checked, ran};
use super::checks::launch_of;
use super::conclude::stdout;
use super::{Workshop, blocking, environment, make_directory};
use crate::assignment::Assignment;
use crate::builtin::checks::Check;
use crate::clear;
use crate::dispatcher::Input;
use crate::draft::{self, Care};
use crate::error::EngineError;
use crate::git::Uncommitted;
use crate::landing::{Tell, Told, Turn};
use crate::process::{AttemptDir, Ended, Exit, Launch};

/// What is known of the checks on a base.
#[derive(Debug)]
pub enum Base {
    Ran(Vec<Ran>),
    /// They could not be run there, or not to their end.
    Unknown,
    Stopped,
}

/// How long checks may take, and the environment they get.
type Terms = (Span, Vec<(String, Option<String>)>);

/// How the checks of an attempt went on a base, if that is kept.
pub fn known(shop: &Workshop, base: &Commit, dir: &AttemptDir) -> Option<Vec<Ran>> {
    serde_json::from_slice(&fs::read(kept_at(shop, base, &listed(dir)?)).ok()?).ok()
}

/// Runs the checks of an attempt on its base if they failed on its head. False if the person stopped that.
pub async fn before_conclusion(
    shop: &Arc<Workshop>,
    task: &Assignment,
    (dir, ended): (&AttemptDir, &Ended),
    tell: &UnboundedSender<Input>,
) -> Result<bool, EngineError> {
    let reads = matches!(task.job.kind, JobKind::Review { .. } | JobKind::Check);
    if !reads || ended.exit != Exit::Code(0) || listed(dir).is_none() {
        return Ok(true);
    }
    let Ok(ran) = ran(&stdout(dir)) else { return Ok(true) };
    let told = |told: Told| {
        if let Told::Stoppable(stopper) = told {
            let (run, loop_id, attempt) = (task.run, task.loop_id.clone(), task.job.attempt);
            tell.send(Input::Running { run, loop_id, attempt, stopper }).ok();
        }
    };
    let gate = task.gate().and_then(|gate| gate.review_timeout);
    let terms = (gate.unwrap_or(shop.settings.limits().attempt), environment::bare(task.run));
    match of(shop, (dir, &ran), (task.base(), terms), &told).await? {
        Base::Ran(_) | Base::Unknown => Ok(true),
        Base::Stopped => Ok(false),
    }
}

/// How the checks that were run in `dir` go on a base. It is asked for only where one of them failed.
pub async fn of(
    shop: &Arc<Workshop>,
    (dir, ran): (&AttemptDir, &[Ran]),
    (base, terms): (&Commit, Terms),
    tell: Tell<'_>,
) -> Result<Base, EngineError> {
    if ran.iter().all(Ran::passed) {
        return Ok(Base::Unknown);
    }
    if let Some(ran) = known(shop, base, dir) {
        return Ok(Base::Ran(ran));
    }
    let lock = shop.layout.worktree_lock(&shop.layout.base_worktree());
    let waits = |told: Told| {
        if let Told::Stoppable(_) = told {
            tell(told);
        }
    };
    let Some(_turn) = Turn::wait_for(lock, &waits).await? else { return Ok(Base::Stopped) };
    match known(shop, base, dir) {
        // Another attempt ran them while this one waited for the lock.
        Some(ran) => Ok(Base::Ran(ran)),
        None => run(shop, dir, (base, terms), tell).await,
    }
}

/// Runs them in a worktree that is removed afterwards.
async fn run(
    shop: &Arc<Workshop>,
    dir: &AttemptDir,
    (base, terms): (&Commit, Terms),
    tell: Tell<'_>,
) -> Result<Base, EngineError> {
    let Some(list) = listed(dir) else { return Ok(Base::Unknown) };
    let own = AttemptDir::new(dir.path().join("base"));
    let preparing = (shop.clone(), own.clone(), base.clone(), list.clone());
    let launch =
        blocking(move || prepare(&preparing.0, &preparing.1, (&preparing.2, &preparing.3), terms)).await?;
    let running = shop.keeper.start(&launch, &own).await;
    let running = running.map_err(|error| EngineError::io("start the checks in", own.path(), error))?;
    tell(Told::Stoppable(running.stopper()));
    let ended = running.wait().await;
    let (ending, at) = (shop.clone(), kept_at(shop, base, &list));
    blocking(move || {
        let came = match checked(&own, &ended) {
            Checks::Stopped => Base::Stopped,
            Checks::Failed(_) => Base::Unknown,
            Checks::Ran(ran) => {
                keep(&at, &ran)?;
                Base::Ran(ran)
            }
        };
        // If this fails, the next run reuses the worktree and checks out its own base there.
        ending.repository.remove_worktree(&ending.layout.base_worktree(), Uncommitted::Discard).ok();
        Ok(came)
    })
    .await
}

fn prepare(
    shop: &Workshop,
    dir: &AttemptDir,
    (base, list): (&Commit, &[Check]),
    terms: Terms,
) -> Result<Launch, EngineError> {
    // A killed process may have left files there.
    clear::remove(dir.path()).ok();
    make_directory(dir)?;
    let path = shop.layout.base_worktree();
    let worktree = shop.repository.integration(&path, base)?;
    worktree.copy_files(shop.settings.copied_into_worktrees())?;
    let list: Vec<_> = list.iter().map(|check| (check.name.clone(), check.command.clone())).collect();
    launch_of(shop, dir, (&path, &list), terms)
}

/// The checks that were run in a directory of an attempt.
fn listed(dir: &AttemptDir) -> Option<Vec<Check>> {
    serde_json::from_slice(&fs::read(dir.path().join("checks.json")).ok()?).ok()
}

fn kept_at(shop: &Workshop, base: &Commit, list: &[Check]) -> PathBuf {
    let mut digest = Sha256::new();
    for check in list {
        for word in [&check.name, &check.command] {
            digest.update((word.len() as u64).to_le_bytes());
            digest.update(word.as_bytes());
        }
    }
    let digest = hex(&digest.finalize());
    shop.layout.base_checks().join(format!("{base}-{}.json", digest.get(..16).unwrap_or(&digest)))
}

fn keep(path: &Path, ran: &[Ran]) -> Result<(), EngineError> {
    let failed = |error| EngineError::io("write", path, error);
    fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).map_err(failed)?;
    let text = serde_json::to_vec(ran).map_err(|error| failed(error.into()))?;
    draft::write(path, &text, Care::Private).map_err(failed)
}
