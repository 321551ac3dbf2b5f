//! `signoff run PLAN.md`: the tasks of a plan file, one after the other on one branch.

use std::path::Path;

use signoff_core::group::RunPolicy;
use signoff_core::source::{SourceTask, State, TaskFile};
use signoff_core::task::{Origin, PlanText, TaskSpec};
use signoff_engine::dispatcher::Drive;
use signoff_engine::{clock, open};
use signoff_store::Store;

use super::Args;
use crate::console::Console;
use crate::desk::Bench;
use crate::drive::{self, Wanted};
use crate::failure::{Exit, Failure};
use crate::preflight;

/// The preset that the tasks of a plan are worked under.
const PRESET: &str = "plan";

/// Works what is open in a plan.
pub fn run(
    file: &TaskFile,
    (path, text): (&Path, &str),
    args: &Args,
    console: &Console,
) -> Result<Exit, Failure> {
    let bench = Bench::open()?;
    let no_ask = console.no_ask || bench.settings.no_ask();
    let specs = specs(file, (path, text), &bench);
    let Some(first) = specs.first() else {
        console.note("Every task of the plan is done");
        return Ok(Exit::Done);
    };
    let mut workflow = bench.settings.workflow(PRESET)?;
    if let Some(effort) = args.effort {
        workflow = workflow.with_effort(effort);
    }
    preflight::check_workflow(&bench, &workflow, first)?;
    preflight::warn(&bench, console);
    if args.jobs.is_some_and(|jobs| jobs > 1) {
        console.note("The tasks of a plan are worked one after the other, whatever -j says");
    }
    let lease = bench.store.open_run(clock::now())?;
    let numbers = bench.store.reserve_tasks(specs.len())?;
    let tasks = numbers.into_iter().zip(specs).collect();
    let policy = RunPolicy { onto_default: args.land, ..RunPolicy::of(&workflow, 1) };
    let facts = open::chain(lease.run(), (workflow, policy), tasks, no_ask);
    let wanted = Wanted {
        opened: vec![(lease, facts)],
        drive: Drive { no_ask, tick: args.tick, ..Drive::default() },
        ..Wanted::default()
    };
    drive::drive(bench, wanted, console)?.conclude(console, no_ask)
}

/// The open tasks of the file in the order they may be worked.
fn specs(file: &TaskFile, (path, text): (&Path, &str), bench: &Bench) -> Vec<TaskSpec> {
    let root = bench.repository.checkout();
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let shown = full.strip_prefix(root).unwrap_or(&full).display().to_string();
    let order = file.groups();
    let open = order
        .iter()
        .flatten()
        .filter_map(|id| file.task(id))
        .filter(|task| task.state == State::Open || task.state == State::InProgress);
    open.map(|task| task_spec(task, file, (&shown, text))).collect()
}

fn task_spec(task: &SourceTask, file: &TaskFile, (path, text): (&str, &str)) -> TaskSpec {
    TaskSpec {
        title: task.title.clone(),
        description: task.description(),
        auto_review: Some(true),
        plan: Some(PlanText { path: path.to_owned(), text: text.to_owned() }),
        origin: Some(Origin {
            file: path.to_owned(),
            id: task.id.clone(),
            marks: file.marks_to_tick(&task.id),
        }),
        ..TaskSpec::default()
    }
}
