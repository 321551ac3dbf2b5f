//! What is looked at before anything is started: a mistake that would stop every task is said at once.

use std::path::Path;

use signoff_core::config::{Agent, AgentKind, Place, TaskFlags};
use signoff_core::task::TaskSpec;
use signoff_core::workflow::{PhaseKind, Role, Workflow};
use signoff_engine::agent;
use signoff_engine::git::At;

use crate::desk::Bench;
use crate::door;
use crate::failure::Failure;

/// Whether these tasks can be begun here.
pub fn check<'a>(bench: &Bench, specs: impl IntoIterator<Item = &'a TaskSpec>) -> Result<(), Failure> {
    check_repository(bench)?;
    for spec in specs {
        let workflow = bench.settings.task_workflow(spec, &TaskFlags::default())?;
        check_agents(bench, &workflow, spec)?;
    }
    Ok(())
}

/// The same for tasks that follow a workflow by name.
pub fn check_workflow(bench: &Bench, workflow: &Workflow, spec: &TaskSpec) -> Result<(), Failure> {
    check_repository(bench)?;
    check_agents(bench, workflow, spec)
}

fn check_repository(bench: &Bench) -> Result<(), Failure> {
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
    for phase in workflow.phases.iter().filter(|phase| !phase.is_off()) {
        let place = Place { workflow, phase, task };
        match &phase.kind {
            PhaseKind::Agent { role, .. } => check_agent(bench, &bench.settings.writer(*role, place)?.agent)?,
            PhaseKind::Gate(judge) => {
                for name in &judge.gate.reviewers {
                    check_agent(bench, &bench.settings.reviewer(name, place)?.agent)?;
                }
                check_agent(bench, &bench.settings.writer(Role::Fix, place)?.agent)?;
            }
            PhaseKind::Check(_) => {}
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
