//! `signoff iterate`: works one task through the nine phases of the preset `phases`.

use signoff_core::ids::TaskId;
use signoff_core::settings::TaskFlags;
use signoff_core::state_v4::{IterationMode, IterationState};
use signoff_core::task::TaskSpec;
use signoff_core::workflow::{PHASES_PRESET, Workflow};
use signoff_engine::{clock, start_run};
use signoff_store::Store;

use super::add;
use crate::run_loop::{self, RunRequest};
use crate::{CliError, CommandExit, Console, Project, Result, preflight, settings};

/// Work one task in nine phases: plan, implement, test and review
///
/// The phases are brainstorm, plan, plan review, implement, code review, test, simplify, final review and a last review
/// by another agent. It is one task on its own branch and starts at once. Findings of the code review are fixed in that
/// phase. Findings of the plan review, the tests or the final review start the next iteration at the first phase.
/// Ctrl-C lets running agents finish, a second one stops them; `signoff work` continues.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  signoff iterate \"Add user authentication\" --max-iterations 5\n  signoff iterate --lite - < idea.md"
)]
pub struct Args {
    /// The description of the task; `-` reads it from stdin
    text: String,
    /// Skip the last review by another agent; the main agent reviews
    #[arg(long)]
    lite: bool,
    /// Maximum number of iterations
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    max_iterations: Option<u32>,
    /// The model that does the work
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Add it to the queue for the next `signoff work` instead of starting it
    #[arg(long)]
    queue: bool,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    let spec = args.spec(console)?;
    args.begin(Project::open()?, spec, console)
}

/// Returns the branch of a task. An imported task gets an unused name, because its old branch may exist here too.
fn free_branch(project: &Project, spec: &TaskSpec, task: TaskId) -> Result<String> {
    let name = spec.branch(task);
    let mut branch = name.clone();
    let mut number = 1_u32;
    while spec.imported.is_some() && project.repository.has_branch(&branch)? {
        number += 1;
        branch = format!("{name}-{number}");
    }
    Ok(branch)
}

impl Args {
    /// The arguments for an iteration that another program began.
    pub fn for_import(state: &IterationState, queue: bool) -> Self {
        Self {
            text: String::new(),
            lite: state.mode == IterationMode::Lite,
            max_iterations: Some(state.max_iterations),
            model: None,
            queue,
        }
    }

    /// Starts the iteration, or queues it for the next `signoff work`.
    pub fn begin(&self, project: Project, spec: TaskSpec, console: &Console) -> Result<CommandExit> {
        let workflow = self.workflow(&project, &spec)?;
        preflight::check_workflow(&project, &workflow, &spec)?;
        preflight::print_warnings(&project, console);
        settings::migrate_files(project.repository.root(), console);
        let no_ask = console.no_ask || project.settings.no_ask();
        let lease = project.store.open_run(clock::now())?;
        let numbers = project.store.reserve_tasks(1)?;
        let task = numbers.into_iter().next().ok_or_else(add::no_task_id)?;
        let branch = free_branch(&project, &spec, task)?;
        let facts = start_run::single(workflow, task, spec, branch, no_ask);
        if self.queue {
            // Record the run as if it had been interrupted at once. The next `signoff work` continues it.
            project.store.append(&lease, clock::now(), &facts)?;
            drop(lease);
            return add::print_added(&project, task, console);
        }
        run_loop::run(project, RunRequest::open(lease, facts, no_ask), console)?.print_result(console)
    }

    fn spec(&self, console: &Console) -> Result<TaskSpec> {
        let spec = TaskSpec::from_text(&add::text_or_stdin(&self.text, console)?);
        if spec.title.is_empty() {
            return Err(CliError::usage("a task needs a text").hint("signoff iterate \"Add user authentication\""));
        }
        Ok(TaskSpec { auto_review: Some(true), model: self.model.clone(), ..spec })
    }

    /// The workflow with its phases.
    pub fn workflow(&self, project: &Project, spec: &TaskSpec) -> Result<Workflow> {
        let flags = TaskFlags { preset: Some(PHASES_PRESET.to_owned()), ..TaskFlags::default() };
        let mode = if self.lite { "lite" } else { "full" };
        let mut workflow = project
            .settings
            .task_workflow(spec, &flags)?
            .in_mode(mode)
            .ok_or_else(|| CliError::usage(format!("workflow {PHASES_PRESET} has no mode {mode}")))?;
        // In lite mode the main agent reviews. A model configured together with another reviewer agent is dropped too.
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
