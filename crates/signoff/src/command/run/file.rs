//! `signoff run FILE`: works the tasks of a plan one after the other on one branch, those of a specification group by
//! group.

use std::path::Path;

use signoff_core::group::RunPolicy;
use signoff_core::source::{SourceState, SourceTask, TaskFile};
use signoff_core::task::{PlanOrigin, PlanText, TaskSpec};
use signoff_engine::dispatcher::DriveOptions;
use signoff_engine::{clock, start_run};
use signoff_store::Store;

use super::Args;
use crate::run_loop::{self, RunRequest};
use crate::{CliError, CommandExit, Console, Project, preflight};

/// The preset for the tasks of a plan.
const PLAN_PRESET: &str = "plan";

/// Works the open tasks of a plan.
pub fn run_plan(
    file: &TaskFile,
    path: &Path,
    text: &str,
    args: &Args,
    console: &Console,
) -> Result<CommandExit, CliError> {
    let project = Project::open()?;
    let no_ask = console.no_ask || project.settings.no_ask();
    let specs = plan_specs(file, path, text, &project);
    let Some(first) = specs.first() else {
        console.note("Every task of the plan is done");
        return Ok(CommandExit::Done);
    };
    let mut workflow = project.settings.workflow(PLAN_PRESET)?;
    if let Some(effort) = args.effort {
        workflow = workflow.with_effort(effort);
    }
    preflight::check_workflow(&project, &workflow, first)?;
    preflight::print_warnings(&project, console);
    if args.jobs.is_some_and(|jobs| jobs > 1) {
        console.note("The tasks of a plan are worked one after the other, whatever -j says");
    }
    let lease = project.store.open_run(clock::now())?;
    let numbers = project.store.reserve_tasks(specs.len())?;
    let tasks = numbers.into_iter().zip(specs).collect();
    let policy = RunPolicy { onto_default: args.land, ..RunPolicy::new(&workflow, 1) };
    let facts = start_run::chain(lease.run(), workflow, policy, tasks, no_ask);
    let request = RunRequest {
        opened: vec![(lease, facts)],
        drive: DriveOptions { no_ask, tick: args.tick, ..DriveOptions::default() },
        ..RunRequest::default()
    };
    run_loop::run(project, request, console)?.print_result(console, no_ask)
}

/// The open tasks of the file in dependency order.
fn plan_specs(file: &TaskFile, path: &Path, text: &str, project: &Project) -> Vec<TaskSpec> {
    let root = project.repository.checkout();
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let shown = full.strip_prefix(root).unwrap_or(&full).display().to_string();
    let plan = PlanText { path: shown, text: text.to_owned() };
    let open = file
        .groups
        .iter()
        .flatten()
        .filter_map(|id| file.task(id))
        .filter(|task| task.state == SourceState::Open || task.state == SourceState::InProgress);
    open.map(|task| task_spec(task, file, &plan)).collect()
}

fn task_spec(task: &SourceTask, file: &TaskFile, plan: &PlanText) -> TaskSpec {
    TaskSpec {
        title: task.title.clone(),
        description: task.description(),
        auto_review: Some(true),
        plan: Some(plan.clone()),
        origin: Some(PlanOrigin { file: plan.path.clone(), id: task.id.clone(), marks: file.marks_to_tick(&task.id) }),
        ..TaskSpec::default()
    }
}

/// The preset that tasks are made and worked under.
const SPECIFICATION_PRESET: &str = "loops";

/// Plans and works a specification.
pub fn run_specification(name: &str, text: &str, args: &Args, console: &Console) -> Result<CommandExit, CliError> {
    if text.trim().is_empty() {
        return Err(CliError::usage(format!("{name} is empty"))
            .at(format!("{name}:1"))
            .hint("write down what is to be built, or name another file"));
    }
    let project = Project::open()?;
    let no_ask = console.no_ask || project.settings.no_ask();
    let mut workflow = project.settings.workflow(SPECIFICATION_PRESET)?;
    if let Some(effort) = args.effort {
        workflow = workflow.with_effort(effort);
    }
    let spec = TaskSpec { title: name.to_owned(), description: text.to_owned(), ..TaskSpec::default() };
    for part in [workflow.part(&workflow.before), workflow.clone(), workflow.part(&workflow.after)] {
        preflight::check_workflow(&project, &part, &spec)?;
    }
    preflight::print_warnings(&project, console);
    let jobs = args.jobs.map_or(project.settings.jobs() as usize, usize::from);
    let policy = RunPolicy { onto_default: args.land, ..RunPolicy::new(&workflow, jobs) };
    let lease = project.store.open_run(clock::now())?;
    let request = RunRequest {
        opened: vec![(lease, start_run::groups(workflow, policy, &spec, no_ask))],
        drive: DriveOptions { no_ask, ..DriveOptions::default() },
        jobs: Some(jobs),
        ..RunRequest::default()
    };
    run_loop::run(project, request, console)?.print_result(console, no_ask)
}

/// What would be done with it.
pub fn dry_run_text(name: &str, text: &str) -> String {
    let lines = match text.lines().count() {
        1 => "1 line".to_owned(),
        lines => format!("{lines} lines"),
    };
    format!(
        "{name}: a specification of {lines}\n\
         Its tasks are listed by a planner, put into groups by another, and worked group by group.\n\
         Is it a plan of tasks instead? Say so with --as plan.\n"
    )
}
