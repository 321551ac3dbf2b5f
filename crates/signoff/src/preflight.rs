//! What is looked at before anything is started: a mistake that would stop every task is said at once.

use std::path::Path;

use signoff_core::config::{Agent, AgentKind, Place, TaskFlags};
use signoff_core::ids::TaskId;
use signoff_core::task::TaskSpec;
use signoff_core::workflow::{PhaseKind, Role, Workflow};
use signoff_engine::agent;
use signoff_engine::git::At;
use signoff_store::Store as _;

use crate::console::Console;
use crate::desk::Bench;
use crate::door;
use crate::failure::Failure;

/// Whether these tasks can be begun here.
pub fn check_all(bench: &Bench, tasks: &[TaskId]) -> Result<(), Failure> {
    check_repository(bench)?;
    for task in tasks {
        if let Some(spec) = bench.store.task_spec(*task)? {
            check_task(bench, &spec)?;
        }
    }
    Ok(())
}

/// Whether what was asked for can be begun here.
pub fn check(bench: &Bench, spec: &TaskSpec) -> Result<(), Failure> {
    check_repository(bench)?;
    check_task(bench, spec)
}

fn check_task(bench: &Bench, spec: &TaskSpec) -> Result<(), Failure> {
    let workflow = bench.settings.task_workflow(spec, &TaskFlags::default())?;
    check_agents(bench, &workflow, spec)
}

/// The same for tasks that follow a workflow by name.
pub fn check_workflow(bench: &Bench, workflow: &Workflow, spec: &TaskSpec) -> Result<(), Failure> {
    check_repository(bench)?;
    check_agents(bench, workflow, spec)
}

pub fn check_repository(bench: &Bench) -> Result<(), Failure> {
    let submodules = match bench.repository.submodules() {
        Ok(submodules) => submodules,
        Err(error) => return Err(unborn(bench).unwrap_or_else(|| error.into())),
    };
    if !submodules.is_empty() {
        return Err(Failure::usage(format!("submodules are not supported yet: {}", submodules.join(", ")))
            .hint("work in a repository without submodules, or vendor them"));
    }
    Ok(())
}

/// What to say of a repository in which there is nothing to start from.
fn unborn(bench: &Bench) -> Option<Failure> {
    let At::Unborn { branch } = bench.repository.at().ok()? else { return None };
    let failure = Failure::usage(format!("the repository has no commit yet (branch {branch})"));
    Some(failure.hint("make the first one: git commit --allow-empty -m \"Start\""))
}

pub fn check_agents(bench: &Bench, workflow: &Workflow, task: &TaskSpec) -> Result<(), Failure> {
    for (role, path) in &workflow.prompts {
        check_prompt(bench, path, bench.settings.laid_prompt_origin(role))?;
    }
    let phases = workflow.before.iter().chain(&workflow.phases).chain(&workflow.after);
    for phase in phases.filter(|phase| !phase.is_off()) {
        let place = Place { workflow, phase, task };
        match &phase.kind {
            PhaseKind::Agent { role, .. } => {
                check_prompts(bench, &[role.word()])?;
                check_agent(bench, &bench.settings.writer(*role, place)?.agent)?;
            }
            PhaseKind::Gate(judge) => {
                for name in &judge.gate.reviewers {
                    let reviewer = bench.settings.reviewer(name, place)?;
                    if let Some((path, origin)) = bench.settings.reviewer_prompt(name) {
                        check_prompt(bench, path, origin.to_string())?;
                    }
                    check_agent(bench, &reviewer.agent)?;
                    if reviewer.agent.kind == AgentKind::Checks {
                        check_checks(bench, &format!("reviewer {name}"))?;
                    }
                }
                check_prompts(bench, &["review", "fix"])?;
                check_agent(bench, &bench.settings.writer(Role::Fix, place)?.agent)?;
            }
            // Where no checks are configured they are looked for in the work, and none is said to be none.
            PhaseKind::Check(_) => {
                check_prompts(bench, &["fix"])?;
                check_agent(bench, &bench.settings.writer(Role::Fix, place)?.agent)?;
            }
        }
    }
    Ok(())
}

/// A prompt that is named must be there, before anything is spent on the work it is for.
fn check_prompt(bench: &Bench, path: &str, place: String) -> Result<(), Failure> {
    let full = bench.repository.root().join(path);
    if full.is_file() {
        return Ok(());
    }
    Err(Failure::usage(format!("there is no prompt {path}")).at(place).hint("write it, or name another file"))
}

/// Who runs the project's checks needs some.
fn check_checks(bench: &Bench, who: &str) -> Result<(), Failure> {
    if !bench.settings.checks().is_empty() {
        return Ok(());
    }
    Err(Failure::usage(format!("{who} runs the project's checks, and there are none"))
        .hint("name them in [checks] of signoff.toml: test = \"make test\""))
}

/// What is not as the configuration wants it, though it stops nobody.
pub fn warnings(bench: &Bench) -> Vec<String> {
    let mut said: Vec<String> =
        bench.settings.copied_into_worktrees().iter().filter_map(|name| not_copied(bench, name)).collect();
    if bench.settings.wants_review_copies() {
        let workspace =
            "review_workspace = \"copy\" is not supported yet: reviewers work in the task's worktree";
        said.push(workspace.to_owned());
    }
    said
}

/// Says it once, before anything is started.
pub fn warn(bench: &Bench, console: &Console) {
    for said in warnings(bench) {
        console.note(&format!("warning: {said}"));
    }
}

fn not_copied(bench: &Bench, name: &str) -> Option<String> {
    match bench.repository.checkout().join(name).symlink_metadata() {
        Ok(found) if found.is_dir() => {
            Some(format!("[worktree] copy: {name} is a directory; only files are copied"))
        }
        Ok(_) => None,
        Err(_) => Some(format!("[worktree] copy: there is no {name}; it is not copied")),
    }
}

fn check_prompts(bench: &Bench, names: &[&str]) -> Result<(), Failure> {
    for name in names {
        if let Some((path, origin)) = bench.settings.prompt(name) {
            check_prompt(bench, path, origin.to_string())?;
        }
    }
    Ok(())
}

fn check_agent(bench: &Bench, agent: &Agent) -> Result<(), Failure> {
    if agent.kind == AgentKind::Checks {
        return Ok(());
    }
    if agent::of(agent.kind).is_none() {
        return Err(Failure::usage(format!(
            "agent {} is of kind {}, which cannot be driven yet",
            agent.name,
            agent.kind.word()
        ))
        .hint("use an agent of kind \"command\" in signoff.toml"));
    }
    let Some(program) = agent.command.first() else { return Ok(()) };
    if is_there(program, bench.repository.checkout()) {
        return Ok(());
    }
    Err(Failure::usage(format!("agent {}: there is no program {program}", agent.name))
        .hint(format!("install it, or set [agents.{}] command in signoff.toml", agent.name)))
}

/// Whether a program is on the path, or where its own path says.
fn is_there(program: &str, checkout: &Path) -> bool {
    if program.contains('/') {
        return checkout.join(program).is_file();
    }
    door::is_on_path(program)
}
