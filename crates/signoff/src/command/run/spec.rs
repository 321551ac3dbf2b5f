//! `signoff run SPEC.md`: a specification becomes tasks, which are worked group by group.

use signoff_core::group::RunPolicy;
use signoff_core::task::TaskSpec;
use signoff_engine::dispatcher::Drive;
use signoff_engine::{clock, open};
use signoff_store::Store;

use super::Args;
use crate::console::Console;
use crate::desk::Bench;
use crate::drive::{self, Wanted};
use crate::failure::{Exit, Failure};
use crate::preflight;

/// The preset that tasks are made and worked under.
const PRESET: &str = "loops";

/// Plans and works a specification.
pub fn run((name, text): (&str, &str), args: &Args, console: &Console) -> Result<Exit, Failure> {
    if text.trim().is_empty() {
        return Err(Failure::usage(format!("{name} is empty"))
            .at(format!("{name}:1"))
            .hint("write down what is to be built, or name another file"));
    }
    let bench = Bench::open()?;
    let no_ask = console.no_ask || bench.settings.no_ask();
    let mut workflow = bench.settings.workflow(PRESET)?;
    if let Some(effort) = args.effort {
        workflow = workflow.with_effort(effort);
    }
    let spec = TaskSpec { title: name.to_owned(), description: text.to_owned(), ..TaskSpec::default() };
    for part in [workflow.part(&workflow.before), workflow.clone(), workflow.part(&workflow.after)] {
        preflight::check_workflow(&bench, &part, &spec)?;
    }
    preflight::warn(&bench, console);
    let jobs = args.jobs.map_or(bench.settings.jobs() as usize, usize::from);
    let policy = RunPolicy { onto_default: args.land, ..RunPolicy::of(&workflow, jobs) };
    let lease = bench.store.open_run(clock::now())?;
    let wanted = Wanted {
        opened: vec![(lease, open::groups(workflow, policy, &spec, no_ask))],
        drive: Drive { no_ask, ..Drive::default() },
        jobs: Some(jobs),
        ..Wanted::default()
    };
    drive::drive(bench, wanted, console)?.conclude(console, no_ask)
}

/// What would be done with it.
pub fn understood(name: &str, text: &str) -> String {
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
