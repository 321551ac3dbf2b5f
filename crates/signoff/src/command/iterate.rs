//! `signoff iterate`: the long way, phase by phase, until everybody is content.

use signoff_core::config::TaskFlags;
use signoff_core::ids::TaskId;
use signoff_core::state_v4::{Mode, State};
use signoff_core::task::TaskSpec;
use signoff_core::wire::Fact;
use signoff_core::workflow::Workflow;
use signoff_engine::dispatcher::Drive;
use signoff_engine::{clock, open};
use signoff_store::{Lease, Store};

use super::add;
use crate::console::Console;
use crate::desk::Bench;
use crate::drive::{self, Wanted};
use crate::failure::{Exit, Failure};
use crate::{preflight, settings};

/// The preset that is iterated.
pub const PRESET: &str = "phases";

/// Work one task the long way: think, plan, implement, test, review the whole
///
/// The phases are brainstorm, plan, plan review, implement, code review, test, simplify, final review, and once more a last
/// look. It is one task on a branch of its own, worked at once. Findings in the code are fixed where they are found. What the
/// reviews of the plan and of the whole or the tests find begins the next iteration, at the first phase. Ctrl-C ends the
/// phase at work, twice stops it; `signoff work` goes on.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  signoff iterate \"Add user authentication\" --max-iterations 5\n  signoff iterate --lite - < idea.md"
)]
pub struct Args {
    /// What is to be done; `-` reads it from stdin
    text: String,
    /// Without the last look of another agent; the main agent reviews
    #[arg(long)]
    lite: bool,
    /// Begin at the first phase at most so often
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    max_iterations: Option<u32>,
    /// The model that does the work
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Only queue it, for the next `signoff work`
    #[arg(long)]
    queue: bool,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let spec = args.spec(console)?;
    args.begin(Bench::open()?, spec, console)
}

/// Leaves it as if it were begun and interrupted at once: whoever works next goes on.
fn queue(
    bench: &Bench,
    (lease, facts): (Lease, &[Fact]),
    task: TaskId,
    console: &Console,
) -> Result<Exit, Failure> {
    bench.store.append(&lease, clock::now(), facts)?;
    drop(lease);
    add::added(bench, task, console)
}

/// The branch of a task. What comes from elsewhere may well bring one along with the name it had there.
fn free_branch(bench: &Bench, spec: &TaskSpec, task: TaskId) -> Result<String, Failure> {
    let name = spec.branch(task);
    let mut branch = name.clone();
    let mut number = 1_u32;
    while spec.taken_over.is_some() && bench.repository.has_branch(&branch)? {
        number += 1;
        branch = format!("{name}-{number}");
    }
    Ok(branch)
}

impl Args {
    /// What an iteration is asked for that another program began.
    pub fn taken_over(state: &State, queue: bool) -> Self {
        Self {
            text: String::new(),
            lite: state.mode == Mode::Lite,
            max_iterations: Some(state.max_iterations),
            model: None,
            queue,
        }
    }

    /// Begins it, or leaves it to the next `signoff work`.
    pub fn begin(&self, bench: Bench, spec: TaskSpec, console: &Console) -> Result<Exit, Failure> {
        let workflow = self.workflow(&bench, &spec)?;
        preflight::check_workflow(&bench, &workflow, &spec)?;
        preflight::warn(&bench, console);
        settings::renew(bench.repository.root(), console);
        let no_ask = console.no_ask || bench.settings.no_ask();
        let lease = bench.store.open_run(clock::now())?;
        let numbers = bench.store.reserve_tasks(1)?;
        let task = numbers.into_iter().next().ok_or_else(|| Failure::failed("the task was not kept"))?;
        let branch = free_branch(&bench, &spec, task)?;
        let facts = open::single(workflow, (task, spec), branch, no_ask);
        if self.queue {
            return queue(&bench, (lease, &facts), task, console);
        }
        let drive = Drive { no_ask, ..Drive::default() };
        let wanted = Wanted { opened: vec![(lease, facts)], drive, ..Wanted::default() };
        drive::drive(bench, wanted, console)?.conclude(console, no_ask)
    }

    fn spec(&self, console: &Console) -> Result<TaskSpec, Failure> {
        let spec = TaskSpec::of(&add::text(&self.text, console)?);
        if spec.title.is_empty() {
            return Err(
                Failure::usage("a task needs a text").hint("signoff iterate \"Add user authentication\"")
            );
        }
        Ok(TaskSpec { auto_review: Some(true), model: self.model.clone(), ..spec })
    }

    /// The phases that it goes through.
    pub fn workflow(&self, bench: &Bench, spec: &TaskSpec) -> Result<Workflow, Failure> {
        let flags = TaskFlags { preset: Some(PRESET.to_owned()), ..TaskFlags::default() };
        let mode = if self.lite { "lite" } else { "full" };
        let mut workflow = bench
            .settings
            .task_workflow(spec, &flags)?
            .in_mode(mode)
            .ok_or_else(|| Failure::usage(format!("workflow {PRESET} has no mode {mode}")))?;
        // In this mode the main agent reviews, whoever else is named for it; a model that was said with them is theirs.
        for gate in workflow.phases.iter_mut().filter(|phase| self.lite && phase.is_gate()) {
            gate.prefers = None;
            if gate.agent.take().is_some() | gate.tool.take().is_some() {
                gate.model = None;
            }
        }
        let limits = &mut workflow.limits;
        limits.max_passes = self.max_iterations.unwrap_or(limits.max_passes);
        Ok(workflow)
    }
}
