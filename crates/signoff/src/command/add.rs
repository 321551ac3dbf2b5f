//! `signoff add`: a task for the queue.

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use signoff_core::ids::TaskId;
use signoff_core::policy::Effort;
use signoff_core::task::{PlanText, TaskSpec, TaskType};
use signoff_engine::clock;
use signoff_store::{NewTask, Store};
use signoff_term::json::AddReport;

use super::words;
use crate::console::Console;
use crate::desk::Bench;
use crate::door;
use crate::drive::task_id;
use crate::failure::{Exit, Failure};

/// Add a task to the queue
///
/// The first line of the text is the title. Where a reviewer or a check exists, the work is reviewed and improved until it
/// is approved or the cycles are used up; --no-review turns that off.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  signoff add \"Add user authentication\" --auto-review --max-cycles 3\n  signoff work"
)]
pub struct Args {
    /// What is to be done; `-` reads it from stdin
    text: String,
    /// What kind of work it is
    #[arg(short = 't', long = "type", value_name = "TYPE", default_value = "implement", value_parser = task_type())]
    kind: TaskType,
    /// Review and improve until it is approved, also where no reviewer and no check is configured
    #[arg(short = 'a', long)]
    auto_review: bool,
    /// Do not review it
    #[arg(long, conflicts_with = "auto_review")]
    no_review: bool,
    /// At most so many reviews
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_cycles: Option<u32>,
    /// Work it only after this task; may be repeated
    #[arg(long, value_name = "ID", value_parser = task_id)]
    depends_on: Vec<TaskId>,
    /// How thoroughly it is reviewed
    #[arg(long, value_name = "EFFORT", value_parser = words::effort())]
    effort: Option<Effort>,
    /// A plan the work is compared with
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// The model that does the work
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// A prompt in place of the built-in opening
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,
}

fn task_type() -> impl TypedValueParser<Value = TaskType> {
    PossibleValuesParser::new(TaskType::ALL.map(TaskType::word))
        .try_map(|word| TaskType::from_word(&word).ok_or("no such type"))
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let spec = args.spec(console)?;
    let bench = Bench::open()?;
    check_dependencies(&bench, &spec)?;
    let task = add(&bench, spec)?;
    added(&bench, task, console)
}

/// What a task waits for must be there.
pub fn check_dependencies(bench: &Bench, spec: &TaskSpec) -> Result<(), Failure> {
    for dependency in &spec.depends_on {
        if bench.store.task(*dependency)?.is_none() {
            return Err(Failure::usage(format!("there is no task {dependency} to depend on"))
                .hint("`signoff status` lists the tasks"));
        }
    }
    Ok(())
}

/// Tells what was added.
pub fn added(bench: &Bench, task: TaskId, console: &Console) -> Result<Exit, Failure> {
    let row = bench.store.task(task)?.ok_or_else(|| Failure::failed("the task was not kept"))?;
    if console.json {
        console.json(&AddReport::of(row))?;
    } else {
        let title = row.continues.map_or(row.title, |root| format!("{} #{root}", row.kind.word()));
        console.text(&format!("Added task #{task}: {title}\n"))?;
        console.note("`signoff work` works it");
    }
    Ok(Exit::Done)
}

/// Puts a task into the queue.
pub fn add(bench: &Bench, spec: TaskSpec) -> Result<TaskId, Failure> {
    let expected = bench.settings.expected(&spec)?;
    let (auto_review, max_review_cycles) = (expected.auto_review, expected.max_review_cycles);
    let added = bench.store.add_tasks(clock::now(), &[NewTask { spec, auto_review, max_review_cycles }])?;
    added.into_iter().next().ok_or_else(|| Failure::failed("the task was not kept"))
}

impl Args {
    fn spec(&self, console: &Console) -> Result<TaskSpec, Failure> {
        let spec = TaskSpec::of(&text(&self.text, console)?);
        if spec.title.is_empty() {
            return Err(Failure::usage("a task needs a text").hint("signoff add \"Add user authentication\""));
        }
        if self.kind == TaskType::Plan && self.auto_review {
            return Err(Failure::usage(
                "--auto-review is for tasks that change code, and a plan changes none",
            )
            .hint("leave it out"));
        }
        let plan = self.plan.as_ref().map(|path| plan(path.as_path())).transpose()?;
        let prompt = self.prompt_file.as_ref().map(|path| text_of(path.as_path())).transpose()?;
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

/// What was said; `-` means that it comes on stdin.
pub fn text(said: &str, console: &Console) -> Result<String, Failure> {
    if said != "-" {
        return Ok(said.to_owned());
    }
    let bytes = console.stdin(door::FILE_LIMIT)?;
    door::utf8("stdin", &bytes).map(str::to_owned)
}

fn plan(path: &Path) -> Result<PlanText, Failure> {
    Ok(PlanText { path: path.display().to_string(), text: text_of(path)? })
}

fn text_of(path: &Path) -> Result<String, Failure> {
    let bytes = door::read(path)?;
    door::utf8(&path.display().to_string(), &bytes).map(str::to_owned)
}
