//! The project's own commands, run by signoff itself under the same keeper as any agent.

use std::fs;
use std::path::Path;

use signoff_core::config::{AssignedReviewer, ReviewWorkspace};
use signoff_core::ids::Commit;
use signoff_core::policy::Span;

use super::environment::{self, Told};
use super::held::{Room, held};
use super::launch::assemble;
use super::prepare::{Memo, Prepared, write_prompt};
use super::{Unstarted, Workshop, copied};
use crate::agent::CommandLine;
use crate::assignment::Assignment;
use crate::detect::{self, Found};
use crate::error::EngineError;
use crate::process::{AttemptDir, Launch};

/// The checks of a phase: those that are configured, or else those that are found in the worktree.
pub fn of_phase(shop: &Workshop, task: &Assignment, dir: AttemptDir) -> Result<Prepared, EngineError> {
    let list: Vec<(String, String)> = match shop.settings.checks() {
        known if known.is_empty() => {
            let Found { checks, missing } = detected(Path::new(&task.place.worktree));
            if checks.is_empty() {
                return Ok(Err(Unstarted::NothingToCheck { missing }));
            }
            checks.into_iter().map(|one| (one.name, one.command)).collect()
        }
        known => known.into_iter().map(|(name, command)| (name.to_owned(), command.to_owned())).collect(),
    };
    let (directory, terms) = (Path::new(&task.place.worktree), terms(shop, task, &dir));
    let launch = launch_of(shop, &dir, (directory, &list), terms)?;
    Ok(Ok((launch, dir)))
}

/// The checks that are found in a worktree.
pub fn detected(worktree: &Path) -> Found {
    detect::checks(worktree, detect::is_installed)
}

/// The project's own commands, run by signoff itself under the same keeper: in the loop's worktree, or held to a copy.
pub fn of_reviewer(
    shop: &Workshop,
    task: &Assignment,
    (reviewer, commit): (&AssignedReviewer, &Commit),
    dir: AttemptDir,
) -> Result<Prepared, EngineError> {
    let list = of_base(shop, task)?;
    if list.is_empty() {
        let none = "no checks are configured: name them in [checks] of signoff.toml";
        return Ok(Err(Unstarted::Failed(none.to_owned())));
    }
    let terms = (reviewer.timeout, environment::of(task, &dir, &Told::default()));
    let launch = match reviewer.workspace.unwrap_or(ReviewWorkspace::Shared) {
        ReviewWorkspace::Shared => launch_of(shop, &dir, (Path::new(&task.place.worktree), &list), terms)?,
        ReviewWorkspace::Copy => {
            let (_, copy) = copied::make(shop, task, (&reviewer.name, commit))?;
            let launch = launch_of(shop, &dir, (copy.path(), &list), terms)?;
            held(shop, launch, (&dir, task.launch.hold), &Room::Worktree(&copy))?
        }
    };
    Ok(Ok((launch, dir)))
}

/// The checks of the project: the configured ones, or else those detected in the base commit. Files that the work itself
/// changed have no influence. If the base commit has no checks, those detected at the start of signoff apply.
fn of_base(shop: &Workshop, task: &Assignment) -> Result<Vec<(String, String)>, EngineError> {
    if shop.settings.checks().is_empty() {
        let found = detect::checks_at(&shop.repository, &task.place.base, detect::is_installed)?;
        if !found.checks.is_empty() {
            return Ok(found.checks.into_iter().map(|one| (one.name, one.command)).collect());
        }
    }
    let known = shop.settings.project_checks().into_iter();
    Ok(known.map(|(name, command)| (name.to_owned(), command.to_owned())).collect())
}

/// How long checks may take, and what they are told.
fn terms(shop: &Workshop, task: &Assignment, dir: &AttemptDir) -> (Span, Vec<(String, Option<String>)>) {
    let attempt = shop.settings.limits().attempt;
    let timeout = task.job_place().map_or(attempt, |place| shop.settings.checking_time(place));
    (timeout, environment::of(task, dir, &Told::default()))
}

/// How the project's checks are started in a directory; none if there are none.
pub fn checks_launch(
    shop: &Workshop,
    dir: &AttemptDir,
    directory: &Path,
    (timeout, environment): (Span, Vec<(String, Option<String>)>),
) -> Result<Option<Launch>, EngineError> {
    let list: Vec<_> = shop
        .settings
        .checks()
        .into_iter()
        .map(|(name, command)| (name.to_owned(), command.to_owned()))
        .collect();
    if list.is_empty() {
        return Ok(None);
    }
    launch_of(shop, dir, (directory, &list), (timeout, environment)).map(Some)
}

/// How these commands are started in a directory.
pub fn launch_of(
    shop: &Workshop,
    dir: &AttemptDir,
    (directory, list): (&Path, &[(String, String)]),
    (timeout, environment): (Span, Vec<(String, Option<String>)>),
) -> Result<Launch, EngineError> {
    let list: Vec<_> =
        list.iter().map(|(name, command)| serde_json::json!({"name": name, "command": command})).collect();
    let path = dir.path().join("checks.json");
    let text = serde_json::Value::from(list).to_string();
    fs::write(&path, text).map_err(|error| EngineError::io("write", &path, error))?;
    write_prompt(shop, dir, "", &Memo::default())?;
    // Whatever the work made of these commands, they have no business with the keys of agents or the addresses of channels.
    let environment =
        environment::withheld_from_checks(&shop.settings).into_iter().chain(environment).collect();
    let line = CommandLine {
        program: shop.program.display().to_string(),
        arguments: vec!["__checks".to_owned(), path.display().to_string()],
        environment,
        ..CommandLine::default()
    };
    Ok(assemble(shop, directory, line, timeout))
}
