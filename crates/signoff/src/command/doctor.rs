//! `signoff doctor`: checks the setup and says how to repair it.

use std::collections::BTreeSet;
use std::path::Path;

use signoff_core::sandbox::SandboxBackend;
use signoff_core::settings::{ChannelTarget, Sandbox, Settings, TaskFlags};
use signoff_core::task::TaskSpec;
use signoff_core::view::inbox::Action;
use signoff_engine::git::{CheckoutHead, Repository};
use signoff_engine::sandbox::SandboxSupport;
use signoff_store::Store;
use signoff_term::fit;
use signoff_term::json::{DoctorCheck, DoctorReport};

use crate::{CliError, CommandExit, Console, Project, Result, preflight};

/// Check the repository, agents, store and sandbox
///
/// Also checks notification channels, prompts and worktrees. Exits with 1 if a check fails.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff doctor\n  signoff doctor --rebuild")]
pub struct Args {
    /// Rebuild all tables from the event log
    #[arg(long)]
    rebuild: bool,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    let project = Project::open()?;
    let mut checks = vec![repository(&project), agents(&project)];
    if args.rebuild {
        let rebuilt = project.store.rebuild()?;
        checks
            .push(DoctorCheck::passed("rebuild", format!("{} runs, {} events replayed", rebuilt.runs, rebuilt.facts)));
    }
    checks.push(store(&project)?);
    let support = preflight::sandbox_support();
    checks.push(sandbox(&project.settings, &support));
    checks.extend(channels(&project.settings));
    checks.extend(worktrees(&project)?);
    let prompts = preflight::check_named_prompts(&project.settings, project.repository.root());
    checks.extend(prompts.err().map(|failure| DoctorCheck::failed("prompts", one_line(&failure))));
    checks.extend(preflight::warnings(&project).into_iter().map(|text| DoctorCheck::warning("settings", text)));
    checks
        .extend(project.settings.unknown_tools().iter().map(|text| DoctorCheck::warning("settings", text.to_string())));
    let sandboxed = project.settings.sandbox() != Sandbox::Off;
    let report = DoctorReport::new(checks, if sandboxed { support.backend } else { SandboxBackend::None });
    if console.json {
        console.json(&report)?;
    } else {
        report.checks.iter().try_for_each(|check| console.text(&check_line(check)))?;
    }
    Ok(if report.ok { CommandExit::Done } else { CommandExit::Failed })
}

fn check_line(check: &DoctorCheck) -> String {
    let mark = match (check.ok, check.warning) {
        (true, false) => "✓",
        (true, true) => "!",
        (false, _) => "✗",
    };
    format!("{mark} {}: {}\n", check.what, check.message)
}

fn repository(project: &Project) -> DoctorCheck {
    if let Err(failure) = preflight::check_repository(project) {
        return DoctorCheck::failed("repository", one_line(&failure));
    }
    match project.repository.checkout_head() {
        Ok(CheckoutHead::Branch { name, .. }) => DoctorCheck::passed("repository", format!("on branch {name}")),
        Ok(CheckoutHead::Detached { commit }) => DoctorCheck::passed("repository", format!("detached at {commit}")),
        Ok(CheckoutHead::Unborn { .. }) => {
            DoctorCheck::failed("repository", "no commit yet: git commit --allow-empty -m \"Start\"")
        }
        Err(error) => DoctorCheck::failed("repository", error.to_string()),
    }
}

fn agents(project: &Project) -> DoctorCheck {
    let spec = TaskSpec { auto_review: Some(true), ..TaskSpec::default() };
    let checked = project
        .settings
        .task_workflow(&spec, &TaskFlags::default())
        .map_err(CliError::from)
        .and_then(|workflow| preflight::check_agents(project, &workflow, &spec));
    match checked {
        Ok(()) => {
            let names: Vec<String> = project.settings.agents().into_iter().map(|agent| agent.name).collect();
            DoctorCheck::passed("agents", names.join(", "))
        }
        Err(failure) => DoctorCheck::failed("agents", one_line(&failure)),
    }
}

/// The notification channels, if more than the bell is configured.
fn channels(settings: &Settings) -> Option<DoctorCheck> {
    let channels = settings.channels().into_iter().filter(|channel| channel.target != ChannelTarget::Bell);
    let names: Vec<String> = channels.map(|channel| channel.name).collect();
    let message = || format!("{}; `signoff notify` tests them", names.join(", "));
    (!names.is_empty()).then(|| DoctorCheck::passed("notify", message()))
}

fn one_line(failure: &CliError) -> String {
    let text = failure.to_string();
    text.strip_prefix("error: ").unwrap_or(&text).trim_end().replace("\n  --> ", "; ").replace('\n', "; ")
}

/// Describes what the sandbox prevents agents from writing.
pub fn sandbox(settings: &Settings, support: &SandboxSupport) -> DoctorCheck {
    let by = match (support.backend, support.landlock) {
        (SandboxBackend::Landlock, Some(version)) => format!("Landlock, version {version}"),
        (SandboxBackend::Landlock, None) => "Landlock".to_owned(),
        (SandboxBackend::Bubblewrap, _) => "bubblewrap".to_owned(),
        (SandboxBackend::None, _) => "no sandbox".to_owned(),
    };
    let writers = if settings.sandboxes_writers() { "own worktree only" } else { "anywhere" };
    let missing = support.missing.as_deref();
    let restrictions = format!("reviewers: read-only; writers: {writers} ({by})");
    match (settings.sandbox(), missing) {
        (Sandbox::Off, _) => DoctorCheck::passed("sandbox", "switched off; signoff reverts reviewers' changes"),
        (Sandbox::On | Sandbox::Required, None) => {
            DoctorCheck::passed("sandbox", format!("{restrictions}; signoff reverts reviewers' changes"))
        }
        (Sandbox::Required, Some(_)) => match preflight::check_sandbox(settings) {
            Err(failure) => DoctorCheck::failed("sandbox", one_line(&failure)),
            Ok(()) => DoctorCheck::passed("sandbox", restrictions),
        },
        (Sandbox::On, Some(missing)) if support.backend == SandboxBackend::None => {
            let open = "agents can write anywhere; signoff reverts reviewers' changes";
            DoctorCheck::warning("sandbox", format!("{open} ({missing})"))
        }
        (Sandbox::On, Some(missing)) => DoctorCheck::warning("sandbox", format!("{restrictions}; but {missing}")),
    }
}

fn store(project: &Project) -> Result<DoctorCheck> {
    let problems = project.store.check()?;
    if problems.is_empty() {
        return Ok(DoctorCheck::passed("store", "the log is readable and the tables match it"));
    }
    Ok(DoctorCheck::failed("store", format!("{}; `signoff doctor --rebuild` rebuilds the tables", problems.join("; "))))
}

/// Checks that the worktree of every unfinished task exists and is on its branch.
fn worktrees(project: &Project) -> Result<Vec<DoctorCheck>> {
    let mut problems = Vec::new();
    let mut existing: BTreeSet<String> = BTreeSet::new();
    for row in project.store.tasks()?.into_iter().filter(|row| !row.status.is_over()) {
        let (Some(path), Some(branch)) = (&row.worktree, &row.branch) else { continue };
        match worktree_problem(project, Path::new(path), branch) {
            Some(problem) => problems.push(format!("task {} ({path}): {problem}", row.id)),
            None => drop(existing.insert(path.clone())),
        }
    }
    Ok(match (problems.is_empty(), existing.len()) {
        (false, _) => vec![DoctorCheck::failed("worktrees", problems.join("; "))],
        (true, 0) => Vec::new(),
        (true, count) => {
            let worktrees = fit::count(count as u64, "worktree");
            vec![DoctorCheck::passed("worktrees", format!("{worktrees} of unfinished tasks, each on its branch"))]
        }
    })
}

/// Returns the problem of a worktree and how to repair it.
fn worktree_problem(project: &Project, path: &Path, branch: &str) -> Option<String> {
    let is_there = project.repository.worktree(path).is_ok_and(|worktree| worktree.exists());
    if !is_there {
        return Some(format!("missing; `{}` recreates it", Action::WorkQueue));
    }
    let at = Repository::discover(project.repository.git(), path).and_then(|worktree| worktree.checkout_head());
    let actual = match at {
        Ok(CheckoutHead::Branch { name, .. }) if name == branch => return None,
        // A sandboxed writer works on a detached head; the branch follows when it ends.
        Ok(CheckoutHead::Detached { commit })
            if project.repository.is_ancestor(branch, commit.as_str()).unwrap_or(false) =>
        {
            return None;
        }
        Ok(CheckoutHead::Branch { name, .. }) => format!("on branch {name}"),
        Ok(CheckoutHead::Detached { commit }) => format!("detached at {commit}"),
        Ok(CheckoutHead::Unborn { branch }) => format!("on branch {branch}, which has no commit"),
        Err(error) => error.to_string(),
    };
    Some(format!("{actual}, not on {branch}; `git -C {} switch {branch}` puts it there", path.display()))
}
