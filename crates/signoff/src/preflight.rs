//! Checks before work starts: reports mistakes that would stop every task.

pub mod agents;

use std::path::Path;

use signoff_core::contract::Contract;
use signoff_core::group::TaskSource;
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::sandbox::SandboxBackend;
use signoff_core::settings::{
    AgentConfig, AgentKind, PhaseContext, Sandbox, SettingOrigin, Settings, TaskFlags, WritablePaths,
};
use signoff_core::task::TaskSpec;
use signoff_core::view::RunState;
use signoff_core::workflow::{PhaseKind, Role, Scheduling, Workflow};
use signoff_engine::agent_probe::{self, AgentLogin};
use signoff_engine::custom_prompts::{self, PromptFile};
use signoff_engine::dispatcher::ready;
use signoff_engine::git::CheckoutHead;
use signoff_engine::sandbox::SandboxSupport;
use signoff_store::Store as _;

use crate::{CliError, Console, Project, Result, host};

/// Checks that these tasks can start.
pub fn check_all(project: &Project, tasks: &[TaskId]) -> Result<()> {
    check_environment_without_flags(project)?;
    for task in tasks {
        if let Some(spec) = project.store.task_spec(*task)? {
            check_task(project, &spec)?;
        }
    }
    Ok(())
}

/// Checks that a task can start.
pub fn check(project: &Project, spec: &TaskSpec) -> Result<()> {
    check_environment_without_flags(project)?;
    check_task(project, spec)
}

fn check_task(project: &Project, spec: &TaskSpec) -> Result<()> {
    let workflow = project.settings.task_workflow(spec, &TaskFlags::default())?;
    check_agents(project, &workflow, spec)
}

/// Checks that a run can continue with its recorded workflows. `again` is a finished loop that restarts. `only` limits
/// the tasks that the run may take from the queue; empty means all.
pub fn check_run(project: &Project, run: RunId, again: Option<&LoopId>, only: &[TaskId]) -> Result<()> {
    check_environment(project)?;
    let run_state = project.store.preload(run)?;
    check_pending_parts(project, &run_state, only)?;
    for (loop_id, loop_state) in &run_state.loops {
        let continues = !loop_state.machine.is_done() || again == Some(loop_id);
        let Some(policy) = run_state.policy(loop_id).filter(|_| continues) else { continue };
        let spec = match loop_state.task {
            Some(task) => project.store.task_spec(task)?,
            None => run_state.subject.as_deref().cloned(),
        };
        check_agents(project, &policy.workflow, &spec.unwrap_or_default())?;
    }
    Ok(())
}

/// Checks the parts of a run that have not started yet.
fn check_pending_parts(project: &Project, run_state: &RunState, only: &[TaskId]) -> Result<()> {
    let Some(policies) = run_state.policies.as_ref().filter(|_| !run_state.machine.is_done()) else {
        return Ok(());
    };
    let (policy, workflow) = (&policies.run, &policies.workflow.workflow);
    if policy.has_planning || policy.has_final_review {
        let subject = run_state.subject.clone().unwrap_or_default();
        let parts = [
            workflow.run_level_workflow(&workflow.before),
            workflow.clone(),
            workflow.run_level_workflow(&workflow.after),
        ];
        return parts.iter().try_for_each(|part| check_agents(project, part, &subject));
    }
    match (policy.scheduling, &policy.task_source) {
        (Scheduling::Slots, TaskSource::Queue) => {
            for task in ready(&*project.store, only, usize::MAX)? {
                let spec = project.store.task_spec(task)?.unwrap_or_default();
                check_agents(project, &project.settings.task_workflow(&spec, &policy.flags)?, &spec)?;
            }
            Ok(())
        }
        (Scheduling::Slots, TaskSource::Program { .. } | TaskSource::File { .. }) => {
            check_agents(project, workflow, &TaskSpec::default())
        }
        // All tasks of the run are already known.
        (Scheduling::Queue | Scheduling::Chain | Scheduling::Groups, _) => Ok(()),
    }
}

/// Checks that a task can start with the given workflow.
pub fn check_workflow(project: &Project, workflow: &Workflow, spec: &TaskSpec) -> Result<()> {
    check_environment(project)?;
    check_agents(project, workflow, spec)
}

/// Checks the repository, the sandbox and the named prompts.
pub fn check_environment(project: &Project) -> Result<()> {
    check_repository(project)?;
    check_sandbox(&project.settings)?;
    check_named(project.repository.root(), project.settings.named_prompts())
}

/// Like `check_environment`, for commands without prompt flags: it also checks the prompts of slots.
fn check_environment_without_flags(project: &Project) -> Result<()> {
    check_environment(project)?;
    check_named(project.repository.root(), project.settings.slot_prompts())
}

/// Checks that every configured prompt file can be read, including those needed only later.
pub fn check_named_prompts(settings: &Settings, root: &Path) -> Result<()> {
    check_named(root, settings.named_prompts())?;
    check_named(root, settings.slot_prompts())
}

fn check_named(root: &Path, prompts: Vec<(&str, &SettingOrigin)>) -> Result<()> {
    prompts.into_iter().try_for_each(|(path, origin)| check_prompt(root, path, &origin.to_string()))
}

/// Probes which sandbox this system supports.
pub fn sandbox_support() -> SandboxSupport {
    let backends = [SandboxBackend::None, SandboxBackend::Bubblewrap, SandboxBackend::Landlock];
    let requested = host::test_string("SIGNOFF_TEST_SANDBOX");
    SandboxSupport::probe(requested.and_then(|name| backends.into_iter().find(|backend| backend.into_str() == name)))
}

/// Fails if the sandbox is required and this system does not support it.
pub fn check_sandbox(settings: &Settings) -> Result<()> {
    if settings.sandbox() != Sandbox::Required {
        return Ok(());
    }
    let Some(missing) = sandbox_support().missing else { return Ok(()) };
    let failure = CliError::usage(format!("sandbox = \"required\", and this system cannot sandbox agents: {missing}"));
    let hint = if cfg!(target_os = "linux") {
        "install bubblewrap, or a kernel from 6.2 on with Landlock switched on; or set sandbox = true: then signoff \
         reverts reviewers' changes"
    } else {
        "work on Linux; or set sandbox = true: then signoff reverts reviewers' changes"
    };
    Err(failure.at(settings.sandbox_origin().to_string()).hint(hint))
}

pub fn check_repository(project: &Project) -> Result<()> {
    let submodules = match project.repository.submodules() {
        Ok(submodules) => submodules,
        Err(error) => return Err(no_commit_error(project).unwrap_or_else(|| error.into())),
    };
    if !submodules.is_empty() {
        return Err(CliError::usage(format!("submodules are not supported yet: {}", submodules.join(", ")))
            .hint("work in a repository without submodules, or vendor them"));
    }
    Ok(())
}

/// The error for a repository without commits.
fn no_commit_error(project: &Project) -> Option<CliError> {
    let CheckoutHead::Unborn { branch } = project.repository.checkout_head().ok()? else { return None };
    let failure = CliError::usage(format!("the repository has no commit yet (branch {branch})"));
    Some(failure.hint("create the first one: git commit --allow-empty -m \"Start\""))
}

pub fn check_agents(project: &Project, workflow: &Workflow, task: &TaskSpec) -> Result<()> {
    let root = project.repository.root();
    for (role, path) in &workflow.prompts {
        check_prompt(root, path, &project.settings.workflow_prompt_origin(role))?;
    }
    let phases = workflow.before.iter().chain(&workflow.phases).chain(&workflow.after);
    for phase in phases.filter(|phase| !phase.is_off()) {
        let context = PhaseContext { workflow, phase, task };
        match &phase.kind {
            PhaseKind::Agent { role, researchers, .. } => {
                check_prompts(project, &[role.into_str()])?;
                check_prompts(project, if *researchers > 0 { &["research"] } else { &[] })?;
                check_agent(project, &project.settings.writer(*role, context, 0)?.agent)?;
            }
            PhaseKind::Gate(gate_policy) => {
                for name in &gate_policy.gate.reviewers {
                    let reviewer = project.settings.reviewer(name, context, 0)?;
                    match project.settings.reviewer_prompt(name) {
                        Some((path, origin)) => check_prompt(root, path, &origin.to_string())?,
                        None => check_prompts(project, &[name.as_str()])?,
                    }
                    check_agent(project, &reviewer.agent)?;
                    if reviewer.contract == Contract::Tool {
                        check_reporting(name.as_str())?;
                    }
                    if reviewer.agent.kind == AgentKind::Checks && project.settings.project_checks().is_empty() {
                        let message = format!("reviewer {name} runs the project's checks, and there are none");
                        let hint = "name them in [checks] of signoff.toml: test = \"make test\"";
                        return Err(CliError::usage(message).hint(hint));
                    }
                }
                check_prompts(project, &["review", "fix"])?;
                check_agent(project, &project.settings.writer(Role::Fix, context, 0)?.agent)?;
            }
            // Checks that are not configured are detected in the work itself, so it is no error to have none here.
            PhaseKind::Check(_) => {
                check_prompts(project, &["fix"])?;
                check_agent(project, &project.settings.writer(Role::Fix, context, 0)?.agent)?;
            }
        }
    }
    Ok(())
}

/// Checks that a named prompt file can be read.
fn check_prompt(root: &Path, path: &str, origin: &str) -> Result<()> {
    let read = PromptFile::at(root, path).read();
    read.map(drop).map_err(|error| CliError::from(error).at(origin))
}

/// Checks that a reviewer with the tool contract has a server to report to.
fn check_reporting(reviewer: &str) -> Result<()> {
    let Err(error) = host::check_loopback() else { return Ok(()) };
    let problem = "reports with a tool, but the report server cannot start: no port on 127.0.0.1 is available";
    let hint = format!("enable the loopback interface, or set [reviewers.{reviewer}] contract = \"markdown\"");
    Err(CliError::usage(format!("reviewer {reviewer} {problem}: {error}")).hint(hint))
}

/// Returns problems with the configuration that do not stop work.
pub fn warnings(project: &Project) -> Vec<String> {
    let mut warnings: Vec<String> =
        project.settings.copied_into_worktrees().iter().filter_map(|name| missing_copy_file(project, name)).collect();
    let written = project.settings.sandbox_write().iter().filter(|_| project.settings.sandboxes_writers());
    warnings.extend(written.filter_map(|path| missing_write_path(path)));
    warnings.extend(project.settings.agents().iter().filter_map(login_warning));
    warnings
}

/// Warns about an agent that is probably not logged in. Only a request to the provider is conclusive, so it is not an
/// error.
fn login_warning(agent: &AgentConfig) -> Option<String> {
    let home = crate::settings::home().unwrap_or_default();
    let name = &agent.name;
    (agent_probe::find_login(agent, &agents::variables(), &home) == AgentLogin::None)
        .then(|| format!("agent {name} is probably not logged in; `signoff agents --check {name}` checks it"))
}

/// Warns about a writable path that does not exist: a sandboxed agent cannot create it.
fn missing_write_path(path: &str) -> Option<String> {
    let file = match path.strip_prefix("~/") {
        Some(below) => crate::settings::home()?.join(below),
        None if path == WritablePaths::CACHES => return None,
        None => Path::new(path).to_owned(),
    };
    let missing = file.symlink_metadata().is_err();
    missing.then(|| format!("sandbox_write: there is no {path}; writers cannot create it"))
}

/// Prints the warnings.
pub fn print_warnings(project: &Project, console: &Console) {
    for warning in warnings(project) {
        console.note(&format!("warning: {warning}"));
    }
}

fn missing_copy_file(project: &Project, name: &str) -> Option<String> {
    match project.repository.checkout().join(name).symlink_metadata() {
        Ok(found) if found.is_dir() => Some(format!("[worktree] copy: {name} is a directory; only files are copied")),
        Ok(_) => None,
        Err(_) => Some(format!("[worktree] copy: there is no {name}; it is not copied")),
    }
}

fn check_prompts(project: &Project, names: &[&str]) -> Result<()> {
    for name in names {
        let Some((file, named)) = custom_prompts::find(&project.settings, project.repository.root(), name) else {
            continue;
        };
        file.read().map_err(|error| match named {
            Some(origin) => CliError::from(error).at(origin.to_string()),
            // The file is used because of its location, so no setting can be named as the origin.
            None => CliError::from(error)
                .at(&file.name)
                .hint("fix it, or remove it: without it the built-in prompt is used"),
        })?;
    }
    Ok(())
}

/// Checks an agent and its fallbacks.
fn check_agent(project: &Project, agent: &AgentConfig) -> Result<()> {
    check_one(project, agent)?;
    project.settings.fallbacks(&agent.name).iter().try_for_each(|agent| check_one(project, agent))
}

fn check_one(project: &Project, agent: &AgentConfig) -> Result<()> {
    if agent.kind == AgentKind::Checks {
        return Ok(());
    }
    let Some(program) = agent_probe::program_of(agent) else { return Ok(()) };
    let program = agent_probe::find_program(program, project.repository.checkout());
    let version = |path: &Path| agents::wrong_version(agent, path, project.repository.root());
    let Some(problem) = agents::program_problem(agent, &program, version) else { return Ok(()) };
    let key = if agent.command.is_empty() { "kind" } else { "command" };
    let failure = CliError::usage(format!("agent {}: {}", agent.name, problem.message)).hint(problem.hint);
    let key = format!("agents.{}.{key}", agent.name);
    // An agent that is named after its kind may have no setting.
    Err(match project.settings.origins().into_iter().find(|row| row.key == key) {
        Some(row) => failure.at(row.origin.to_string()),
        None => failure,
    })
}
