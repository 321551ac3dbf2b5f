//! `signoff run PLAN.md`: works the tasks of a plan file one after the other on one branch.

use std::path::Path;

use signoff_core::group::RunPolicy;
use signoff_core::source::{SourceState, SourceTask, TaskFile};
use signoff_core::task::{PlanOrigin, PlanText, TaskSpec};
use signoff_engine::dispatcher::DriveOptions;
use signoff_engine::{clock, start_run};
use signoff_store::Store;

use super::Args;
use crate::console::Console;
use crate::error::{CliError, CommandExit};
use crate::preflight;
use crate::project::Project;
use crate::run_loop::{self, RunRequest};

/// The preset for the tasks of a plan.
const PRESET: &str = "plan";

/// Works the open tasks of a plan.
pub fn run(
    file: &TaskFile,
    (path, text): (&Path, &str),
    args: &Args,
    console: &Console,
) -> Result<CommandExit, CliError> {
    let project = Project::open()?;
    let no_ask = console.no_ask || project.settings.no_ask();
    let specs = specs(file, (path, text), &project);
    let Some(first) = specs.first() else {
        console.note("Every task of the plan is done");
        return Ok(CommandExit::Done);
    };
    let mut workflow = project.settings.workflow(PRESET)?;
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
    let facts = start_run::chain(lease.run(), (workflow, policy), tasks, no_ask);
    let request = RunRequest {
        opened: vec![(lease, facts)],
        drive: DriveOptions { no_ask, tick: args.tick, ..DriveOptions::default() },
        ..RunRequest::default()
    };
    run_loop::run(project, request, console)?.print_result(console, no_ask)
}

/// The open tasks of the file in dependency order.
fn specs(file: &TaskFile, (path, text): (&Path, &str), project: &Project) -> Vec<TaskSpec> {
    let root = project.repository.checkout();
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let shown = full.strip_prefix(root).unwrap_or(&full).display().to_string();
    let order = file.groups();
    let open = order
        .iter()
        .flatten()
        .filter_map(|id| file.task(id))
        .filter(|task| task.state == SourceState::Open || task.state == SourceState::InProgress);
    open.map(|task| task_spec(task, file, (&shown, text))).collect()
}

fn task_spec(task: &SourceTask, file: &TaskFile, (path, text): (&str, &str)) -> TaskSpec {
    TaskSpec {
        title: task.title.clone(),
        description: task.description(),
        auto_review: Some(true),
        plan: Some(PlanText { path: path.to_owned(), text: text.to_owned() }),
        origin: Some(PlanOrigin { file: path.to_owned(), id: task.id.clone(), marks: file.marks_to_tick(&task.id) }),
        ..TaskSpec::default()
    }
}
