//! Starting an agent: its command line with its environment and its files.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::Path;
use std::time::Duration;

use signoff_core::config::Agent;
use signoff_core::policy::Span;

use super::environment::{self, Told};
use super::inherited::inherited;
use super::{Unstarted, Workshop, carried, pushes};
use crate::agent::{self, CommandLine, Duty, Hold, Laid, Order, Reporting};
use crate::assignment::Assignment;
use crate::draft::{Care, Draft};
use crate::process::{AttemptDir, Launch, Limits};

/// How an agent is started for an attempt; its files are laid.
pub(super) fn launch(
    shop: &Workshop,
    task: &Assignment,
    dir: &AttemptDir,
    (agent, model, duty): (&Agent, Option<&str>, Duty),
    (timeout, told): (Span, &Told),
) -> Result<Launch, Unstarted> {
    let Some(adapter) = agent::of(agent.kind) else {
        return Err(Unstarted::Failed(format!(
            "agent {} is of a kind that cannot be driven here",
            agent.name
        )));
    };
    let program = shop.program.display().to_string();
    let (home, person) = (dir.home(), shop.person.as_path());
    let reporting = told.access.as_ref();
    let reporting = reporting.map(|access| Reporting { url: &access.url, variable: "SIGNOFF_MCP_TOKEN" });
    let mut line = adapter.command_line(&Order {
        agent,
        model,
        program: &program,
        duty,
        worktree: Path::new(&task.place.worktree),
        repository: shop.repository.root(),
        checkout: shop.repository.checkout(),
        home: &home,
        person,
        inherits: &inherited(agent, &shop.variables),
        reporting,
        resumes: task.launch.resumes.as_ref().map(|resumed| resumed.session.as_str()),
        hold: task.launch.hold.unwrap_or(Hold::Nobody),
        root: rustix::process::geteuid().is_root(),
    });
    if let Some(resumed) = &task.launch.resumes {
        let earlier = AttemptDir::new(shop.layout.attempt(task.run, &task.loop_id, resumed.attempt));
        carried::carry(adapter.keeps(), &earlier.home(), &home);
    }
    lay(&line.files)
        .map_err(|error| Unstarted::Failed(format!("its files could not be written: {error}")))?;
    line.environment =
        environment::around(agent, line.environment, environment::of(task, dir, told), &shop.settings);
    let no_pushes = pushes::forbid(dir, shop.repository.root(), &line.environment);
    let no_pushes =
        no_pushes.map_err(|error| Unstarted::Failed(format!("its git could not be configured: {error}")))?;
    line.environment.extend(no_pushes);
    Ok(assemble(shop, Path::new(&task.place.worktree), line, timeout))
}

/// Puts the files where the agent looks for them, for nobody else to read.
pub(crate) fn lay(files: &[Laid]) -> io::Result<()> {
    for file in files {
        let (Laid::Text { path, .. } | Laid::Copy { path, .. } | Laid::Link { path, .. }) = file;
        let directory = path.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        match file {
            Laid::Text { path, text } => Draft::write(path, text.as_bytes(), Care::Private)?.put()?,
            Laid::Copy { path, of } if of.is_file() => drop(fs::copy(of, path)?),
            Laid::Link { path, of } if of.exists() => link(path, of)?,
            Laid::Copy { .. } | Laid::Link { .. } => {}
        }
    }
    Ok(())
}

/// An attempt that is prepared again finds what it laid before.
fn link(path: &Path, of: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => symlink(of, path),
    }
}

pub(super) fn assemble(shop: &Workshop, directory: &Path, line: CommandLine, timeout: Span) -> Launch {
    let CommandLine { program, arguments, environment, files: _ } = line;
    let limits = shop.settings.limits();
    Launch {
        program,
        arguments,
        directory: directory.to_owned(),
        environment,
        held: None,
        limits: Limits {
            time: Some(duration(timeout)),
            silence: Some(duration(limits.silence)),
            grace: duration(limits.grace),
        },
    }
}

fn duration(span: Span) -> Duration {
    Duration::from_secs(span.seconds)
}
