//! What is looked at before anything is started: a mistake that would stop every task is said at once.

pub mod agents;

use std::path::Path;

use signoff_core::config::{Agent, AgentKind, Origin, Place, Sandbox, Settings, TaskFlags, Writable};
use signoff_core::contract::Contract;
use signoff_core::group::Supply;
use signoff_core::hold::Hold;
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::machine::Policy;
use signoff_core::task::TaskSpec;
use signoff_core::workflow::{Arrangement, PhaseKind, Role, Workflow};
use signoff_engine::board::Board;
use signoff_engine::confine::Power;
use signoff_engine::dispatcher::ready;
use signoff_engine::git::At;
use signoff_engine::opening::{self, PromptFile};
use signoff_engine::scout::{self, Login, Program};
use signoff_store::Store as _;

use crate::console::Console;
use crate::desk::Bench;
use crate::door;
use crate::failure::Failure;

/// Whether these tasks can be begun here.
pub fn check_all(bench: &Bench, tasks: &[TaskId]) -> Result<(), Failure> {
    check_place_without_flags(bench)?;
    for task in tasks {
        if let Some(spec) = bench.store.task_spec(*task)? {
            check_task(bench, &spec)?;
        }
    }
    Ok(())
}

/// Whether what was asked for can be begun here.
pub fn check(bench: &Bench, spec: &TaskSpec) -> Result<(), Failure> {
    check_place_without_flags(bench)?;
    check_task(bench, spec)
}

fn check_task(bench: &Bench, spec: &TaskSpec) -> Result<(), Failure> {
    let workflow = bench.settings.task_workflow(spec, &TaskFlags::default())?;
    check_agents(bench, &workflow, spec)
}

/// Whether a run that was begun can go on here, by the workflows it was begun with. `again` is a loop that is over and
/// begins again; `only` are the tasks it may take from the queue, or all.
pub fn check_run(
    bench: &Bench,
    run: RunId,
    (again, only): (Option<&LoopId>, &[TaskId]),
) -> Result<(), Failure> {
    check_place(bench)?;
    let board = Board::of(run, &bench.store.log(run)?);
    check_yet_to_come(bench, &board, only)?;
    for (loop_id, worked) in &board.loops {
        let goes_on = !worked.state.is_done() || again == Some(loop_id);
        let Some(policy) = board.policy(loop_id).filter(|_| goes_on) else { continue };
        let asked = match worked.task {
            Some(task) => bench.store.task_spec(task)?,
            None => board.subject.clone(),
        };
        check_agents(bench, &policy.workflow, &asked.unwrap_or_default())?;
    }
    Ok(())
}

/// What a run has not begun yet, and will.
fn check_yet_to_come(bench: &Bench, board: &Board, only: &[TaskId]) -> Result<(), Failure> {
    let Some((policy, Policy { workflow, .. })) = board.under.as_ref().filter(|_| !board.machine.is_done())
    else {
        return Ok(());
    };
    if policy.before || policy.after {
        let subject = board.subject.clone().unwrap_or_default();
        let parts = [workflow.part(&workflow.before), workflow.clone(), workflow.part(&workflow.after)];
        return parts.iter().try_for_each(|part| check_agents(bench, part, &subject));
    }
    match (policy.arrangement, &policy.supply) {
        (Arrangement::Slots, Supply::Queue) => {
            for task in ready(&*bench.store, only, usize::MAX)? {
                let spec = bench.store.task_spec(task)?.unwrap_or_default();
                check_agents(bench, &bench.settings.task_workflow(&spec, &policy.flags)?, &spec)?;
            }
            Ok(())
        }
        (Arrangement::Slots, Supply::Program { .. } | Supply::File { .. }) => {
            check_agents(bench, workflow, &TaskSpec::default())
        }
        // All its tasks are known.
        (Arrangement::Queue | Arrangement::Chain | Arrangement::Groups, _) => Ok(()),
    }
}

/// The same for tasks that follow a workflow by name.
pub fn check_workflow(bench: &Bench, workflow: &Workflow, spec: &TaskSpec) -> Result<(), Failure> {
    check_place(bench)?;
    check_agents(bench, workflow, spec)
}

/// What has to hold whatever is begun.
pub fn check_place(bench: &Bench) -> Result<(), Failure> {
    check_repository(bench)?;
    check_sandbox(&bench.settings)?;
    check_named(bench.repository.root(), bench.settings.named_prompts())
}

/// The same where no flag can name another prompt.
fn check_place_without_flags(bench: &Bench) -> Result<(), Failure> {
    check_repository(bench)?;
    check_sandbox(&bench.settings)?;
    check_named_prompts(&bench.settings, bench.repository.root())
}

/// Every prompt that is named can be read, also one that is needed only later.
pub fn check_named_prompts(settings: &Settings, root: &Path) -> Result<(), Failure> {
    check_named(root, settings.named_prompts())?;
    check_named(root, settings.slot_prompts())
}

fn check_named(root: &Path, prompts: Vec<(&str, &Origin)>) -> Result<(), Failure> {
    prompts.into_iter().try_for_each(|(path, origin)| {
        let read = PromptFile::at(root, path).read();
        read.map(drop).map_err(|error| Failure::from(error).at(origin.to_string()))
    })
}

/// What this system can do about agents that write where they should not.
pub fn power() -> Power {
    let ways = [Hold::Nobody, Hold::Bubblewrap, Hold::Landlock];
    let wanted = door::test_word("SIGNOFF_TEST_HOLD");
    Power::probe(wanted.and_then(|word| ways.into_iter().find(|way| way.word() == word)))
}

/// Who insists on the sandbox gets it, or nothing at all.
pub fn check_sandbox(settings: &Settings) -> Result<(), Failure> {
    if settings.sandbox() != Sandbox::Required {
        return Ok(());
    }
    let Some(lacks) = power().lacks else { return Ok(()) };
    let failure =
        Failure::usage(format!("sandbox = \"required\", and this system cannot hold agents: {lacks}"));
    let hint = if cfg!(target_os = "linux") {
        "install bubblewrap, or a kernel from 6.2 on with Landlock switched on; or set sandbox = true: then what reviewers \
         change is undone"
    } else {
        "work on Linux; or set sandbox = true: then what reviewers change is undone"
    };
    Err(failure.at(settings.sandbox_origin().to_string()).hint(hint))
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
        check_prompt(bench, path, &bench.settings.laid_prompt_origin(role))?;
    }
    let phases = workflow.before.iter().chain(&workflow.phases).chain(&workflow.after);
    for phase in phases.filter(|phase| !phase.is_off()) {
        let place = Place { workflow, phase, task };
        match &phase.kind {
            PhaseKind::Agent { role, researchers, .. } => {
                check_prompts(bench, &[role.word()])?;
                check_prompts(bench, if *researchers > 0 { &["research"] } else { &[] })?;
                check_agent(bench, &bench.settings.writer(*role, place)?.agent)?;
            }
            PhaseKind::Gate(judge) => {
                for name in &judge.gate.reviewers {
                    let reviewer = bench.settings.reviewer(name, place)?;
                    match bench.settings.reviewer_prompt(name) {
                        Some((path, origin)) => check_prompt(bench, path, &origin.to_string())?,
                        None => check_prompts(bench, &[name.as_str()])?,
                    }
                    check_agent(bench, &reviewer.agent)?;
                    if reviewer.contract == Contract::Tool {
                        check_reporting(name.as_str())?;
                    }
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

/// A prompt that is named can be read, before anything is spent on the work it is for.
fn check_prompt(bench: &Bench, path: &str, place: &str) -> Result<(), Failure> {
    let read = PromptFile::at(bench.repository.root(), path).read();
    read.map(drop).map_err(|error| Failure::from(error).at(place))
}

/// Who reports with a tool, and in no other way, needs a server to report to.
fn check_reporting(reviewer: &str) -> Result<(), Failure> {
    let Err(error) = door::can_serve() else { return Ok(()) };
    let said = "reports with a tool, and agents cannot be served: no port of 127.0.0.1 is to be had";
    let hint =
        format!("see to the loopback interface, or set [reviewers.{reviewer}] contract = \"markdown\"");
    Err(Failure::usage(format!("reviewer {reviewer} {said}: {error}")).hint(hint))
}

/// Who runs the project's checks needs some.
fn check_checks(bench: &Bench, who: &str) -> Result<(), Failure> {
    if !bench.settings.project_checks().is_empty() {
        return Ok(());
    }
    Err(Failure::usage(format!("{who} runs the project's checks, and there are none"))
        .hint("name them in [checks] of signoff.toml: test = \"make test\""))
}

/// What is not as the configuration wants it, though it stops nobody.
pub fn warnings(bench: &Bench) -> Vec<String> {
    let mut said: Vec<String> =
        bench.settings.copied_into_worktrees().iter().filter_map(|name| not_copied(bench, name)).collect();
    let written = bench.settings.sandbox_write().iter().filter(|_| bench.settings.holds_writers());
    said.extend(written.filter_map(|path| not_writable(path)));
    said.extend(bench.settings.agents().iter().filter_map(not_logged_in));
    said
}

/// Only its provider knows for sure, so nobody is stopped by it.
fn not_logged_in(agent: &Agent) -> Option<String> {
    let home = crate::settings::home().unwrap_or_default();
    let name = &agent.name;
    (scout::login(agent, &agents::variables(), &home) == Login::None).then(|| {
        format!(
            "agent {name} is not logged in, as far as can be told; `signoff agents --check {name}` tries it"
        )
    })
}

/// What is not there when an agent starts, it cannot make either.
fn not_writable(path: &str) -> Option<String> {
    let place = match path.strip_prefix("~/") {
        Some(below) => crate::settings::home()?.join(below),
        None if path == Writable::CACHES => return None,
        None => Path::new(path).to_owned(),
    };
    let missing = place.symlink_metadata().is_err();
    missing.then(|| format!("sandbox_write: there is no {path}; writers cannot make it"))
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
        let Some((file, named)) = opening::find(&bench.settings, bench.repository.root(), name) else {
            continue;
        };
        file.read().map_err(|error| match named {
            Some(origin) => Failure::from(error).at(origin.to_string()),
            // Its place alone makes it count.
            None => Failure::from(error)
                .at(&file.name)
                .hint("mend it, or remove it: without it the built-in prompt holds"),
        })?;
    }
    Ok(())
}

/// An agent, and those who fall in for it while it is refused.
fn check_agent(bench: &Bench, agent: &Agent) -> Result<(), Failure> {
    check_one(bench, agent)?;
    bench.settings.stand_ins(&agent.name).iter().try_for_each(|agent| check_one(bench, agent))
}

fn check_one(bench: &Bench, agent: &Agent) -> Result<(), Failure> {
    if agent.kind == AgentKind::Checks {
        return Ok(());
    }
    let Some(program) = scout::program(agent) else { return Ok(()) };
    let checkout = bench.repository.checkout();
    let (wrong, hint) = match scout::look_for(program, checkout) {
        Program::Startable(path) => match agents::wrong_version(agent, &path, bench.repository.root()) {
            Some(wrong) => wrong,
            None => return Ok(()),
        },
        Program::Missing => agents::missing(agent),
        Program::NotExecutable(path) => agents::not_executable(agent, &path),
        Program::Uninterpreted { path, by } => agents::uninterpreted(agent, &path, &by),
    };
    let key = if agent.command.is_empty() { "kind" } else { "command" };
    let failure = Failure::usage(format!("agent {}: {wrong}", agent.name)).hint(hint);
    Err(located(bench, failure, (agent, key)))
}

/// Adds where something about an agent is written. An agent whose name says its kind needs no word about it.
fn located(bench: &Bench, failure: Failure, (agent, key): (&Agent, &str)) -> Failure {
    let key = format!("agents.{}.{key}", agent.name);
    match bench.settings.origins().into_iter().find(|row| row.key == key) {
        Some(row) => failure.at(row.origin.to_string()),
        None => failure,
    }
}
