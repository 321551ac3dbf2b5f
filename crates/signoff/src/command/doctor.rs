//! `signoff doctor`: what is wrong here, and how to mend it.

use serde::Serialize;
use signoff_core::config::TaskFlags;
use signoff_core::task::TaskSpec;
use signoff_core::view::Status;
use signoff_engine::confine;
use signoff_engine::git::At;
use signoff_store::Store;

use crate::console::Console;
use crate::desk::Bench;
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

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Look {
    what: &'static str,
    ok: bool,
    message: String,
}

impl Look {
    fn well(what: &'static str, message: impl Into<String>) -> Self {
        Self { what, ok: true, message: message.into() }
    }

    fn ill(what: &'static str, message: impl Into<String>) -> Self {
        Self { what, ok: false, message: message.into() }
    }
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
    looks.push(sandbox(&bench));
    looks.extend(worktrees(&bench)?);
    let ok = looks.iter().all(|look| look.ok);
    if console.json {
        console.json(&serde_json::json!({"version": 1, "ok": ok, "checks": looks}))?;
    } else {
        for look in &looks {
            let mark = if look.ok { "✓" } else { "✗" };
            console.text(&format!("{mark} {}: {}\n", look.what, look.message))?;
        }
    }
    Ok(if ok { Exit::Done } else { Exit::Failed })
}

fn repository(bench: &Bench) -> Look {
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
        Err(failure) => Look::ill("agents", failure.to_string().trim_end().replace('\n', "; ")),
    }
}

/// How far reviewers are kept from writing.
fn sandbox(bench: &Bench) -> Look {
    let message = match (bench.settings.sandbox(), confine::is_possible()) {
        (true, true) => "reviewers cannot write (Landlock), and what changes is undone",
        (true, false) => "this system cannot keep reviewers from writing; what they change is undone",
        (false, _) => "switched off; what reviewers change is undone",
    };
    Look::well("sandbox", message)
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

/// Worktrees that tasks in work need and that are gone.
fn worktrees(bench: &Bench) -> Result<Vec<Look>, Failure> {
    let mut gone = Vec::new();
    for row in bench.store.tasks()? {
        let at_work = matches!(row.status, Status::InProgress | Status::Waiting | Status::Paused);
        if let (true, Some(path)) = (at_work, row.worktree)
            && !std::path::Path::new(&path).exists()
        {
            gone.push(format!("of task {} ({path})", row.id));
        }
    }
    if gone.is_empty() {
        return Ok(Vec::new());
    }
    Ok(vec![Look::ill("worktrees", format!("gone: {}; `signoff work` makes them again", gone.join(", ")))])
}
