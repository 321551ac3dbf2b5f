//! `signoff run SPEC.md`: a specification becomes tasks, which are worked group by group.

use signoff_core::group::RunPolicy;
use signoff_core::task::TaskSpec;
use signoff_engine::dispatcher::DriveOptions;
use signoff_engine::{clock, start_run};
use signoff_store::Store;

use super::Args;
use crate::console::Console;
use crate::error::{CliError, CommandExit};
use crate::preflight;
use crate::project::Project;
use crate::run_loop::{self, RunRequest};

/// The preset that tasks are made and worked under.
const PRESET: &str = "loops";

/// Plans and works a specification.
pub fn run((name, text): (&str, &str), args: &Args, console: &Console) -> Result<CommandExit, CliError> {
    if text.trim().is_empty() {
        return Err(CliError::usage(format!("{name} is empty"))
            .at(format!("{name}:1"))
            .hint("write down what is to be built, or name another file"));
    }
    let project = Project::open()?;
    let no_ask = console.no_ask || project.settings.no_ask();
    let mut workflow = project.settings.workflow(PRESET)?;
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
