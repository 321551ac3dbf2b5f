//! `signoff run`: the tasks of a plan file in order, those of a specification group by group, or those of a tracker or
//! the queue in slots.

mod chain;
pub mod resume;
mod slots;
mod spec;

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use signoff_core::policy::Effort;
use signoff_core::source::{self, Format, TaskFile};

use self::slots::SlotArgs;
use super::words;
use crate::console::Console;
use crate::door;
use crate::failure::{Exit, Failure};

/// Work the tasks of a plan file, a specification, a tracker or the queue
///
/// The tasks of a plan follow each other on one branch: each is implemented, committed, and reviewed by all reviewers
/// at once; their findings are fixed and all review again. After a task that needs you, the later ones wait.
///
/// Any other text is a specification: a planner lists its tasks and another puts them into groups, each reviewed.
/// All tasks of a group are worked at once, each in its own worktree; when all are signed off they land one by one on
/// the branch signoff/run-ID, and the next group begins there. In the end the whole is reviewed.
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
    /// Go on with this run, or with whatever is unfinished
    #[arg(long, value_name = "RUN", num_args = 0..=1, conflicts_with = "source")]
    resume: Option<Option<u64>>,
    /// So many tasks at once
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// How thoroughly it is reviewed
    #[arg(long, value_name = "EFFORT", value_parser = words::effort())]
    effort: Option<Effort>,
    /// What the source is, whatever it looks like
    #[arg(long = "as", value_name = "KIND", value_parser = kind())]
    kind: Option<Kind>,
    /// Show what was understood, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Tick what is done in the plan file itself too
    #[arg(long)]
    tick: bool,
    /// Bring the run's branch onto the default branch when all is done
    #[arg(long)]
    land: bool,
    #[command(flatten)]
    slots: SlotArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plan,
    Spec,
    Beads,
}

/// The words for them.
const KINDS: [&str; 3] = ["plan", "spec", "beads"];

fn kind() -> impl TypedValueParser<Value = Kind> {
    PossibleValuesParser::new(KINDS).try_map(|word| match word.as_str() {
        "plan" => Ok(Kind::Plan),
        "spec" => Ok(Kind::Spec),
        "beads" => Ok(Kind::Beads),
        _ => Err("no such kind"),
    })
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    match &args.source {
        None => resume::resume(args, console),
        // A file that is called so is one by saying what is in it.
        Some(source) if source == Path::new("queue") && args.kind.is_none() => slots::queue(args, console),
        Some(source) if source == Path::new("beads") && matches!(args.kind, None | Some(Kind::Beads)) => {
            slots::beads(args, console)
        }
        Some(source) => file(source, args, console),
    }
}

impl Args {
    /// Only a plan has something to tick; elsewhere the flag would be passed over in silence.
    fn tick_nothing(&self) -> Result<(), Failure> {
        let source = self.source.as_deref().filter(|_| self.tick);
        source.map_or(Ok(()), |source| {
            Err(Failure::usage("--tick is for a plan file: only that has boxes to tick")
                .at(source.display().to_string())
                .hint("leave it out"))
        })
    }
}

fn file(path: &Path, args: &Args, console: &Console) -> Result<Exit, Failure> {
    let (file, text) = read(path, args)?;
    if file.format == Format::Beads {
        return slots::file(path, args, console);
    }
    if let Some(flag) = args.slots.given() {
        return Err(Failure::usage(format!("{flag} is for the slots of `beads` and `queue`"))
            .at(path.display().to_string())
            .hint("leave it out, or set the same in [gate] of signoff.toml"));
    }
    let name = path.display().to_string();
    if file.format == Format::Text {
        args.tick_nothing()?;
        return match args.dry_run {
            true if console.json => dry_run(&file, console),
            true => console.text(&spec::understood(&name, &text)).map(|()| Exit::Done),
            false => spec::run((&name, &text), args, console),
        };
    }
    match args.dry_run {
        true => dry_run(&file, console),
        false => chain::run(&file, (path, &text), args, console),
    }
}

fn read(path: &Path, args: &Args) -> Result<(TaskFile, String), Failure> {
    let name = path.display().to_string();
    let bytes = door::read(path)
        .map_err(|failure| failure.hint("name a plan file, a specification, `beads`, or `queue`"))?;
    let file = match args.kind {
        Some(Kind::Spec) => source::read_as(Format::Text, &name, &bytes, Some(door::now())),
        Some(Kind::Beads) => source::read_as(Format::Beads, &name, &bytes, Some(door::now())),
        Some(Kind::Plan) => source::read_plan(&name, &bytes, Some(door::now())),
        None => source::read(&name, &bytes, Some(door::now())),
    };
    let mend = format!("mend the file, or say what it is with --as: {}", KINDS.join(", "));
    let file = file.map_err(|error| Failure::from(error).hint(mend))?;
    // A tracker may be caught while it writes a character; any other file is text to its end.
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let meant_as_plan = args.kind.is_none() && file.format == Format::Text && is_called_plan(path, &text);
    if meant_as_plan {
        return Err(Failure::usage(format!("{name} is called a plan and contains no tasks"))
            .at(format!("{name}:1"))
            .hint("write them as `### Task 1: …`, or have them made of it with --as spec"));
    }
    if file.format == Format::Text || file.format == Format::Beads {
        return Ok((file, text));
    }
    if file.tasks.is_empty() {
        return Err(Failure::usage(format!("{name} contains no tasks"))
            .at(format!("{name}:1"))
            .hint("add a task in the format of the file, or name another file"));
    }
    Ok((file, text))
}

/// Whether a text without tasks was meant to have some: to have them made up would surprise who wrote it.
fn is_called_plan(path: &Path, text: &str) -> bool {
    let is_plan = |words: &str| {
        let last = words.trim().rsplit(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty());
        last.is_some_and(|word| word.eq_ignore_ascii_case("plan"))
    };
    let heading = text.lines().find_map(|line| line.strip_prefix("# "));
    heading.is_some_and(is_plan) || path.file_stem().is_some_and(|stem| is_plan(&stem.to_string_lossy()))
}

fn dry_run(file: &TaskFile, console: &Console) -> Result<Exit, Failure> {
    if console.json {
        console.json(file)?
    } else {
        console.text(&source::render_text(file))?
    }
    Ok(Exit::Done)
}
