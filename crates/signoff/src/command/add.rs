//! `signoff add`: adds a task to the queue.

use std::path::PathBuf;

use signoff_core::ids::TaskId;
use signoff_core::policy::Effort;
use signoff_core::task::{PlanText, TaskSpec, TaskType};
use signoff_core::view::inbox::Action;
use signoff_engine::clock;
use signoff_store::{NewTask, Store};
use signoff_term::json::AddReport;

use crate::run_loop::task_id;
use crate::{CliError, CommandExit, Console, Project, Result, host};

/// Add a task to the queue
///
/// The first line of the text is the title. If a reviewer or a check is configured, the work is reviewed and improved
/// until it is approved or the maximum number of reviews is reached; --no-review turns that off.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  signoff add \"Add user authentication\" --auto-review --max-cycles 3\n  signoff work"
)]
pub struct Args {
    /// The description of the task; `-` reads it from stdin
    text: String,
    /// The type of the task
    #[arg(short = 't', long = "type", value_name = "TYPE", default_value = "implement", value_parser = super::name_parser::<TaskType>())]
    kind: TaskType,
    /// Review and improve until it is approved, even if no reviewer or check is configured
    #[arg(short = 'a', long)]
    auto_review: bool,
    /// Do not review the task
    #[arg(long, conflicts_with = "auto_review")]
    no_review: bool,
    /// Maximum number of reviews
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_cycles: Option<u32>,
    /// Start only after this task has passed; may be repeated
    #[arg(long, value_name = "ID", value_parser = task_id)]
    depends_on: Vec<TaskId>,
    /// The thoroughness of the reviews
    #[arg(long, value_name = "EFFORT", value_parser = super::name_parser::<Effort>())]
    effort: Option<Effort>,
    /// The plan file that reviewers compare the work with
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// The model that does the work
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// A prompt file that replaces the built-in prompt
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    let spec = args.spec(console)?;
    let project = Project::open()?;
    check_dependencies(&project, &spec)?;
    let task = add(&project, spec)?;
    print_added(&project, task, console)
}

/// Checks that every task it depends on exists.
pub fn check_dependencies(project: &Project, spec: &TaskSpec) -> Result<()> {
    for dependency in &spec.depends_on {
        if project.store.task(*dependency)?.is_none() {
            return Err(CliError::usage(format!("there is no task {dependency} to depend on"))
                .hint("`signoff status` lists the tasks"));
        }
    }
    Ok(())
}

/// Prints the added task.
pub fn print_added(project: &Project, task: TaskId, console: &Console) -> Result<CommandExit> {
    let row = project.store.task(task)?.ok_or_else(no_task_id)?;
    if console.json {
        console.json(&AddReport::new(row))?;
    } else {
        let title = row.continues.map_or(row.title, |root| format!("{} #{root}", row.kind.into_str()));
        console.text(&format!("Added task #{task}: {title}\n"))?;
        console.note(&format!("`{}` starts it", Action::WorkQueue));
    }
    Ok(CommandExit::Done)
}

/// Adds a task to the queue.
pub fn add(project: &Project, spec: TaskSpec) -> Result<TaskId> {
    let expected = project.settings.expected(&spec)?;
    let (auto_review, max_review_cycles) = (expected.auto_review, expected.max_review_cycles);
    let added = project.store.add_tasks(clock::now(), &[NewTask { spec, auto_review, max_review_cycles }])?;
    added.into_iter().next().ok_or_else(no_task_id)
}

/// The error if the store reserves no task id.
pub fn no_task_id() -> CliError {
    CliError::failed("the store returned no task id").hint("`signoff doctor` checks the store")
}

impl Args {
    fn spec(&self, console: &Console) -> Result<TaskSpec> {
        let spec = TaskSpec::from_text(&text_or_stdin(&self.text, console)?);
        if spec.title.is_empty() {
            return Err(CliError::usage("a task needs a text").hint("signoff add \"Add user authentication\""));
        }
        if self.kind == TaskType::Plan && self.auto_review {
            return Err(CliError::usage("--auto-review is for tasks that change code, and a plan changes none")
                .hint("leave it out"));
        }
        let text = self.plan.as_deref().map(host::read_text).transpose()?;
        let plan = self.plan.as_ref().zip(text);
        let plan = plan.map(|(path, text)| PlanText { path: path.display().to_string(), text });
        let prompt = self.prompt_file.as_deref().map(host::read_text).transpose()?;
        Ok(TaskSpec {
            kind: self.kind,
            auto_review: (self.auto_review || self.no_review).then_some(self.auto_review),
            max_review_cycles: self.max_cycles,
            effort: self.effort,
            model: self.model.clone(),
            depends_on: self.depends_on.clone(),
            plan,
            prompt,
            ..spec
        })
    }
}

/// Returns the text, read from stdin if it is `-`.
pub fn text_or_stdin(text: &str, console: &Console) -> Result<String> {
    if text != "-" {
        return Ok(text.to_owned());
    }
    let bytes = console.stdin(host::FILE_LIMIT)?;
    host::utf8("stdin", &bytes).map(str::to_owned)
}
