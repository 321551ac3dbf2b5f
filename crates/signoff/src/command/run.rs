//! `signoff run`: works the tasks of a plan file in order, of a specification in groups, or of a tracker or the queue
//! in slots.

mod file;
pub mod resume;
mod slots;

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use signoff_core::policy::Effort;
use signoff_core::source::{self, TaskFile, TaskFormat};

use self::slots::SlotArgs;
use crate::{CliError, CommandExit, Console, host};

/// Work the tasks of a plan file, a specification, a tracker or the queue
///
/// The tasks of a plan run one after the other on one branch: each is implemented, committed and reviewed by all
/// reviewers in parallel; their findings are fixed and all review again. Later tasks wait for a task that needs you.
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
    #[arg(long, value_name = "EFFORT", value_parser = super::effort_parser())]
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
pub fn run(args: &Args, console: &Console) -> Result<CommandExit, CliError> {
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
    /// Fails if `--tick` is given for a source other than a plan file.
    fn reject_tick(&self) -> Result<(), CliError> {
        let source = self.source.as_deref().filter(|_| self.tick);
        source.map_or(Ok(()), |source| {
            Err(CliError::usage("--tick is for a plan file: only that has boxes to tick")
                .at(source.display().to_string())
                .hint("leave it out"))
        })
    }
}

fn file(path: &Path, args: &Args, console: &Console) -> Result<CommandExit, CliError> {
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
            true if console.json => dry_run(&file, console),
            true => console.text(&file::dry_run_text(&name, &text)).map(|()| CommandExit::Done),
            false => file::run_specification(&name, &text, args, console),
        };
    }
    match args.dry_run {
        true => dry_run(&file, console),
        false => file::run_plan(&file, path, &text, args, console),
    }
}

fn read(path: &Path, args: &Args) -> Result<(TaskFile, String), CliError> {
    let name = path.display().to_string();
    let bytes =
        host::read(path).map_err(|failure| failure.hint("name a plan file, a specification, `beads`, or `queue`"))?;
    let file = match args.kind {
        Some(SourceKind::Spec) => source::read_as(TaskFormat::Text, &name, &bytes, Some(host::now())),
        Some(SourceKind::Beads) => source::read_as(TaskFormat::Beads, &name, &bytes, Some(host::now())),
        Some(SourceKind::Plan) => source::read_plan(&name, &bytes, Some(host::now())),
        None => source::read(&name, &bytes, Some(host::now())),
    };
    let file = file
        .map_err(|error| CliError::from(error).hint("fix the file, or say what it is with --as: plan, spec, beads"))?;
    // A tracker file may be read in the middle of a write and end with an incomplete character.
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let meant_as_plan = args.kind.is_none() && file.format == TaskFormat::Text && is_called_plan(path, &text);
    if meant_as_plan {
        return Err(CliError::usage(format!("{name} is called a plan and contains no tasks"))
            .at(format!("{name}:1"))
            .hint("write them as `### Task 1: …`, or have them made of it with --as spec"));
    }
    if file.format == TaskFormat::Text || file.format == TaskFormat::Beads {
        return Ok((file, text));
    }
    if file.tasks.is_empty() {
        return Err(CliError::usage(format!("{name} contains no tasks"))
            .at(format!("{name}:1"))
            .hint("add a task in the format of the file, or name another file"));
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

fn dry_run(file: &TaskFile, console: &Console) -> Result<CommandExit, CliError> {
    console.print(file, || source::render_text(file))?;
    Ok(CommandExit::Done)
}
