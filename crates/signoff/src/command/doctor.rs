//! `signoff doctor`: what is wrong here, and how to mend it.

use std::collections::BTreeSet;
use std::path::Path;

use signoff_core::config::{Sandbox, Settings, TaskFlags, Way};
use signoff_core::hold::Hold;
use signoff_core::task::TaskSpec;
use signoff_engine::confine::Power;
use signoff_engine::git::{At, Repository};
use signoff_store::Store;
use signoff_term::json::{DoctorReport, Look};

use crate::console::Console;
use crate::desk::Bench;
use crate::drive::is_over;
use crate::failure::{Exit, Failure};
use crate::preflight;

/// Look whether everything is in order here
///
/// Looks at the repository, the agents, the database and the worktrees. Ends with 1 if something is not in order.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff doctor\n  signoff doctor --rebuild")]
pub struct Args {
    /// Tell all tables again from the log
    #[arg(long)]
    rebuild: bool,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let bench = Bench::open()?;
    let mut looks = vec![repository(&bench), agents(&bench)];
    if args.rebuild {
        let rebuilt = bench.store.rebuild()?;
        looks.push(Look::well(
            "rebuild",
            format!("{} runs, {} facts told again", rebuilt.runs, rebuilt.facts),
        ));
    }
    looks.push(store(&bench)?);
    let power = preflight::power();
    looks.push(sandbox(&bench.settings, &power));
    looks.extend(channels(&bench.settings));
    looks.extend(worktrees(&bench)?);
    let prompts = preflight::check_named_prompts(&bench.settings, bench.repository.root());
    looks.extend(prompts.err().map(|failure| Look::ill("prompts", on_a_line(&failure))));
    looks.extend(preflight::warnings(&bench).into_iter().map(|said| Look::warning("settings", said)));
    looks.extend(
        bench.settings.unknown_tools().iter().map(|said| Look::warning("settings", said.to_string())),
    );
    let held = bench.settings.sandbox() != Sandbox::Off;
    let report = DoctorReport::of(looks, if held { power.by } else { Hold::Nobody });
    if console.json {
        console.json(&report)?;
    } else {
        report.checks.iter().try_for_each(|look| console.text(&line(look)))?;
    }
    Ok(if report.ok { Exit::Done } else { Exit::Failed })
}

fn line(look: &Look) -> String {
    let mark = match (look.ok, look.warning) {
        (true, false) => "✓",
        (true, true) => "!",
        (false, _) => "✗",
    };
    format!("{mark} {}: {}\n", look.what, look.message)
}

fn repository(bench: &Bench) -> Look {
    if let Err(failure) = preflight::check_repository(bench) {
        return Look::ill("repository", on_a_line(&failure));
    }
    match bench.repository.at() {
        Ok(At::Branch { name, .. }) => Look::well("repository", format!("on branch {name}")),
        Ok(At::Detached { commit }) => Look::well("repository", format!("detached at {commit}")),
        Ok(At::Unborn { .. }) => {
            Look::ill("repository", "no commit yet: git commit --allow-empty -m \"Start\"")
        }
        Err(error) => Look::ill("repository", error.to_string()),
    }
}

fn agents(bench: &Bench) -> Look {
    let spec = TaskSpec { auto_review: Some(true), ..TaskSpec::default() };
    let checked = bench
        .settings
        .task_workflow(&spec, &TaskFlags::default())
        .map_err(Failure::from)
        .and_then(|workflow| preflight::check_agents(bench, &workflow, &spec));
    match checked {
        Ok(()) => {
            let names: Vec<String> = bench.settings.agents().into_iter().map(|agent| agent.name).collect();
            Look::well("agents", names.join(", "))
        }
        Err(failure) => Look::ill("agents", on_a_line(&failure)),
    }
}

/// Who is told, where a person configured more than the bell.
fn channels(settings: &Settings) -> Option<Look> {
    let channels = settings.channels().into_iter().filter(|channel| channel.way != Way::Bell);
    let names: Vec<String> = channels.map(|channel| channel.name).collect();
    let message = || format!("{}; `signoff notify` tries them", names.join(", "));
    (!names.is_empty()).then(|| Look::well("notify", message()))
}

fn on_a_line(failure: &Failure) -> String {
    let said = failure.to_string();
    said.strip_prefix("error: ").unwrap_or(&said).trim_end().replace("\n  --> ", "; ").replace('\n', "; ")
}

/// How far agents are kept from writing.
pub fn sandbox(settings: &Settings, power: &Power) -> Look {
    let by = match (power.by, power.landlock) {
        (Hold::Landlock, Some(version)) => format!("Landlock, version {version}"),
        (Hold::Landlock, None) => "Landlock".to_owned(),
        (Hold::Bubblewrap, _) => "bubblewrap".to_owned(),
        (Hold::Nobody, _) => "nobody".to_owned(),
    };
    let writers = if settings.holds_writers() { "writers only to their own work" } else { "writers can" };
    let lacks = power.lacks.as_deref();
    let held = format!("reviewers cannot write, {writers} ({by})");
    match (settings.sandbox(), lacks) {
        (Sandbox::Off, _) => Look::well("sandbox", "switched off; what reviewers change is undone"),
        (Sandbox::On | Sandbox::Required, None) => {
            Look::well("sandbox", format!("{held}, and what reviewers change is undone"))
        }
        (Sandbox::Required, Some(_)) => match preflight::check_sandbox(settings) {
            Err(failure) => Look::ill("sandbox", on_a_line(&failure)),
            Ok(()) => Look::well("sandbox", held),
        },
        (Sandbox::On, Some(lacks)) if power.by == Hold::Nobody => {
            let open = "agents can write anywhere; what reviewers change is undone";
            Look::warning("sandbox", format!("{open} ({lacks})"))
        }
        (Sandbox::On, Some(lacks)) => Look::warning("sandbox", format!("{held}; but {lacks}")),
    }
}

fn store(bench: &Bench) -> Result<Look, Failure> {
    let problems = bench.store.check()?;
    if problems.is_empty() {
        return Ok(Look::well("store", "the log can be read and the tables agree with it"));
    }
    Ok(Look::ill(
        "store",
        format!("{}; `signoff doctor --rebuild` tells the tables again", problems.join("; ")),
    ))
}

/// Whether the worktrees of tasks that are not over are there, each on its branch.
fn worktrees(bench: &Bench) -> Result<Vec<Look>, Failure> {
    let mut wrong = Vec::new();
    let mut there: BTreeSet<String> = BTreeSet::new();
    for row in bench.store.tasks()?.into_iter().filter(|row| !is_over(row.status)) {
        let (Some(path), Some(branch)) = (&row.worktree, &row.branch) else { continue };
        match astray(bench, Path::new(path), branch) {
            Some(problem) => wrong.push(format!("of task {} ({path}): {problem}", row.id)),
            None => drop(there.insert(path.clone())),
        }
    }
    Ok(match (wrong.is_empty(), there.len()) {
        (false, _) => vec![Look::ill("worktrees", wrong.join("; "))],
        (true, 0) => Vec::new(),
        (true, count) => {
            vec![Look::well("worktrees", format!("{count} of tasks that are not over, each on its branch"))]
        }
    })
}

/// What is wrong with a worktree, and how it is mended.
fn astray(bench: &Bench, path: &Path, branch: &str) -> Option<String> {
    let is_there = bench.repository.worktree(path).is_ok_and(|worktree| worktree.is_there());
    if !is_there {
        return Some("gone; `signoff work` makes it again".to_owned());
    }
    let at = Repository::discover(bench.repository.git(), path).and_then(|worktree| worktree.at());
    let is = match at {
        Ok(At::Branch { name, .. }) if name == branch => return None,
        // So it is while a writer is at work that is held to it; the branch follows.
        Ok(At::Detached { commit })
            if bench.repository.is_ancestor(branch, commit.as_str()).unwrap_or(false) =>
        {
            return None;
        }
        Ok(At::Branch { name, .. }) => format!("on branch {name}"),
        Ok(At::Detached { commit }) => format!("detached at {commit}"),
        Ok(At::Unborn { branch }) => format!("on branch {branch}, which has no commit"),
        Err(error) => error.to_string(),
    };
    Some(format!("{is}, not on {branch}; `git -C {} switch {branch}` puts it there", path.display()))
}
