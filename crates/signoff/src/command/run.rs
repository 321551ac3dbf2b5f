//! `signoff run`: works the tasks of a plan file in order, of a specification in groups, or of a tracker or the queue
//! in slots.

pub mod resume;
mod slots;

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use signoff_core::group::RunPolicy;
use signoff_core::policy::Effort;
use signoff_core::source::{self, SourceState, SourceTask, TaskFile, TaskFormat};
use signoff_core::task::{PlanOrigin, PlanText, TaskSpec};
use signoff_core::workflow::{LOOPS_PRESET, PLAN_PRESET, Workflow};
use signoff_engine::{clock, start_run};
use signoff_store::Store;

use self::slots::SlotArgs;
use crate::run_loop::{self, RunRequest};
use crate::{CliError, CommandExit, Console, Project, Result, host, preflight};

/// Work the tasks of a plan file, a specification, a tracker or the queue
///
/// The tasks of a plan run one after the other on one branch: each is implemented, committed and reviewed by all
/// reviewers in parallel; their findings are fixed and all review again. If a task needs
/// you, later tasks wait until you decide.
///
/// Any other text is a specification: a planner lists its tasks, another one groups them, and both results are
/// reviewed. The tasks of a group run in parallel, each in its own worktree. When all are signed off, they land one by
/// one on the branch signoff/run-ID, and the next group starts there. At the end the whole run is reviewed.
///
/// `beads` and `queue` fill slots: up to N tasks at once, each in its own worktree, each landed on the branch
/// signoff/run-ID as soon as it is signed off.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  signoff run docs/plan.md --dry-run\n  signoff run docs/plan.md\n  signoff run SPEC.md --effort high -j 8\n  signoff run beads -j 4 --review\n  signoff run --resume"
)]
pub struct Args {
    /// A plan file, a specification, `beads`, or `queue`
    #[arg(required_unless_present = "resume")]
    source: Option<PathBuf>,
    /// Resume this run, or all unfinished runs
    #[arg(long, value_name = "RUN", num_args = 0..=1, conflicts_with = "source")]
    resume: Option<Option<u64>>,
    /// Maximum number of tasks in parallel
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// The thoroughness of the reviews
    #[arg(long, value_name = "EFFORT", value_parser = super::name_parser::<Effort>())]
    effort: Option<Effort>,
    /// Read the source as this kind instead of detecting it
    #[arg(long = "as", value_name = "KIND")]
    kind: Option<SourceKind>,
    /// Show the tasks that would run, and start nothing
    #[arg(long)]
    dry_run: bool,
    /// Check off finished tasks in the plan file of your checkout too
    #[arg(long)]
    tick: bool,
    /// Land the run's branch on the default branch when everything is done
    #[arg(long)]
    land: bool,
    #[command(flatten)]
    slots: SlotArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SourceKind {
    Plan,
    Spec,
    Beads,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    match &args.source {
        None => resume::resume(args, console),
        // A file named `queue` needs `--as`.
        Some(source) if source == Path::new("queue") && args.kind.is_none() => slots::queue(args, console),
        Some(source) if source == Path::new("beads") && matches!(args.kind, None | Some(SourceKind::Beads)) => {
            slots::beads(args, console)
        }
        Some(source) => file(source, args, console),
    }
}

impl Args {
    /// The workflow of a preset, with the effort of the command line.
    fn workflow(&self, project: &Project, preset: &str) -> Result<Workflow> {
        let workflow = project.settings.workflow(preset)?;
        Ok(self.effort.map_or_else(|| workflow.clone(), |effort| workflow.clone().with_effort(effort)))
    }

    /// Fails if `--tick` is given for a source other than a plan file.
    fn reject_tick(&self) -> Result<()> {
        let source = self.source.as_deref().filter(|_| self.tick);
        source.map_or(Ok(()), |source| {
            Err(CliError::usage("--tick is for a plan file: only plan files have check boxes")
                .at(source.display().to_string())
                .hint("leave it out"))
        })
    }
}

fn file(path: &Path, args: &Args, console: &Console) -> Result<CommandExit> {
    let (file, text) = read(path, args)?;
    if file.format == TaskFormat::Beads {
        return slots::file(path, args, console);
    }
    if let Some(flag) = args.slots.first_given() {
        return Err(CliError::usage(format!("{flag} is for the slots of `beads` and `queue`"))
            .at(path.display().to_string())
            .hint("leave it out, or set the same in [gate] of signoff.toml"));
    }
    let name = path.display().to_string();
    if file.format == TaskFormat::Text {
        args.reject_tick()?;
        return match args.dry_run {
            true if console.json => console.print(&file, || source::render_text(&file)),
            true => console.text(&specification_text(&name, &text)).map(|()| CommandExit::Done),
            false => run_specification(&name, &text, args, console),
        };
    }
    match args.dry_run {
        true => console.print(&file, || source::render_text(&file)),
        false => run_plan(&file, path, &text, args, console),
    }
}

fn read(path: &Path, args: &Args) -> Result<(TaskFile, String)> {
    let name = path.display().to_string();
    let bytes =
        host::read(path).map_err(|failure| failure.hint("name a plan file, a specification, `beads`, or `queue`"))?;
    let file = match args.kind {
        Some(SourceKind::Spec) => source::read_as(TaskFormat::Text, &name, &bytes, Some(host::now())),
        Some(SourceKind::Beads) => source::read_as(TaskFormat::Beads, &name, &bytes, Some(host::now())),
        Some(SourceKind::Plan) => source::read_plan(&name, &bytes, Some(host::now())),
        None => source::read(&name, &bytes, Some(host::now())),
    };
    let file =
        file.map_err(|error| CliError::from(error).hint("fix the file, or set its kind with --as: plan, spec, beads"))?;
    // A tracker file may be read in the middle of a write and end with an incomplete character.
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let meant_as_plan = args.kind.is_none() && file.format == TaskFormat::Text && is_called_plan(path, &text);
    if meant_as_plan {
        return Err(CliError::usage(format!("{name} looks like a plan but has no tasks"))
            .at(format!("{name}:1"))
            .hint("write them as `### Task 1: …`, or let a planner derive them with --as spec"));
    }
    if file.format == TaskFormat::Text || file.format == TaskFormat::Beads {
        return Ok((file, text));
    }
    if file.tasks.is_empty() {
        return Err(super::tasks::no_tasks(&name));
    }
    Ok((file, text))
}

/// Whether a file without tasks is called a plan. Its author expects no generated tasks.
fn is_called_plan(path: &Path, text: &str) -> bool {
    let is_plan = |words: &str| {
        let last = words.trim().rsplit(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty());
        last.is_some_and(|word| word.eq_ignore_ascii_case("plan"))
    };
    let heading = text.lines().find_map(|line| line.strip_prefix("# "));
    heading.is_some_and(is_plan) || path.file_stem().is_some_and(|stem| is_plan(&stem.to_string_lossy()))
}

/// Works the open tasks of a plan.
fn run_plan(file: &TaskFile, path: &Path, text: &str, args: &Args, console: &Console) -> Result<CommandExit> {
    let project = Project::open()?;
    let specs = plan_specs(file, path, text, &project);
    let Some(first) = specs.first() else {
        console.note("Every task of the plan is done");
        return Ok(CommandExit::Done);
    };
    let workflow = args.workflow(&project, PLAN_PRESET)?;
    preflight::check_workflow(&project, &workflow, first)?;
    preflight::print_warnings(&project, console);
    if args.jobs.is_some_and(|jobs| jobs > 1) {
        console.note("The tasks of a plan run one after the other; -j is ignored");
    }
    let no_ask = console.no_ask || project.settings.no_ask();
    let lease = project.store.open_run(clock::now())?;
    let numbers = project.store.reserve_tasks(specs.len())?;
    let tasks = numbers.into_iter().zip(specs).map(|(task, spec)| start_run::NumberedTask { task, spec }).collect();
    let policy = RunPolicy { onto_default: args.land, ..RunPolicy::new(&workflow, 1) };
    let facts = start_run::chain(lease.run(), workflow, policy, tasks, no_ask);
    let mut request = RunRequest::open(lease, facts, no_ask);
    request.options.check_off_in_checkout = args.tick;
    run_loop::run(project, request, console)?.print_result(console)
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

/// Plans and works a specification.
fn run_specification(name: &str, text: &str, args: &Args, console: &Console) -> Result<CommandExit> {
    if text.trim().is_empty() {
        return Err(CliError::usage(format!("{name} is empty"))
            .at(format!("{name}:1"))
            .hint("describe what to build, or name another file"));
    }
    let project = Project::open()?;
    let no_ask = console.no_ask || project.settings.no_ask();
    let workflow = args.workflow(&project, LOOPS_PRESET)?;
    let spec = TaskSpec { title: name.to_owned(), description: text.to_owned(), ..TaskSpec::default() };
    for part in
        [workflow.run_level_workflow(&workflow.before), workflow.clone(), workflow.run_level_workflow(&workflow.after)]
    {
        preflight::check_workflow(&project, &part, &spec)?;
    }
    preflight::print_warnings(&project, console);
    let jobs = args.jobs.map_or(project.settings.jobs() as usize, usize::from);
    let policy = RunPolicy { onto_default: args.land, ..RunPolicy::new(&workflow, jobs) };
    let lease = project.store.open_run(clock::now())?;
    let facts = start_run::groups(workflow, policy, &spec, no_ask);
    let request = RunRequest { jobs: Some(jobs), ..RunRequest::open(lease, facts, no_ask) };
    run_loop::run(project, request, console)?.print_result(console)
}

/// The `--dry-run` text for a specification.
fn specification_text(name: &str, text: &str) -> String {
    let lines = match text.lines().count() {
        1 => "1 line".to_owned(),
        lines => format!("{lines} lines"),
    };
    format!(
        "{name}: a specification of {lines}\n\
         A planner lists its tasks, a second one groups them, and signoff runs group by group.\n\
         To read it as a plan, use --as plan.\n"
    )
}
