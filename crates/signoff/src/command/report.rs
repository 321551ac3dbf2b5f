//! `signoff report`: a run or a task in one file, to keep or to attach.

mod changes;
mod gathered;
mod pages;

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use signoff_core::ids::{RunId, TaskId};
use signoff_serve::page;
use signoff_term::report::{junit, markdown, sarif};

use crate::console::Console;
use crate::door::replace::replace;
use crate::failure::{Exit, Failure};
pub use gathered::{Gathered, of_run, of_task};

/// Write a report about a task or a run
///
/// What was asked, found, fixed and left, by whom, at what cost. A number is a task, run-3 or --run 3 the run with that
/// number. It may be unfinished, or have failed: the report says so. Markdown is made for the body of a pull request,
/// junit and sarif for continuous integration, html and json hold all there is. It goes to stdout, or with --output to a
/// file, which is then there as a whole or as it was; - is stdout.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  signoff report 29 | gh pr create --title \"Add login\" --body-file -\n  \
                        signoff report run-3 --format html --output report.html\n  \
                        signoff report --run 3 --format junit --output junit.xml"
)]
pub struct Args {
    /// The task, as 29; or the run, as run-3
    #[arg(value_name = "ID|run-N", value_parser = subject, required_unless_present = "run")]
    subject: Option<Subject>,
    /// The run
    #[arg(long, value_name = "N", conflicts_with = "subject")]
    run: Option<u64>,
    /// What to write [default: markdown]
    #[arg(long, value_parser = format())]
    format: Option<Format>,
    /// Where to write it
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Task(TaskId),
    Run(RunId),
}

fn subject(text: &str) -> Result<Subject, String> {
    if let Some(number) = text.strip_prefix("run-").and_then(|digits| digits.parse().ok()) {
        return Ok(Subject::Run(RunId(number)));
    }
    let task = crate::drive::task_id(text);
    task.map(Subject::Task).map_err(|_| format!("`{text}` is neither a task, as 29, nor a run, as run-3"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Html,
    Markdown,
    Json,
    Sarif,
    Junit,
}

fn format() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(["html", "markdown", "json", "sarif", "junit"]).try_map(|word| {
        match word.as_str() {
            "html" => Ok(Format::Html),
            "markdown" => Ok(Format::Markdown),
            "json" => Ok(Format::Json),
            "sarif" => Ok(Format::Sarif),
            "junit" => Ok(Format::Junit),
            _ => Err("no such format"),
        }
    })
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let format = match (args.format, console.json) {
        (None, false) => Format::Markdown,
        (None | Some(Format::Json), true) => Format::Json,
        (Some(format), false) => format,
        (Some(_), true) => {
            return Err(Failure::usage("--json is --format json, and another --format was given")
                .hint("leave one of them out"));
        }
    };
    let output = args.output.as_deref().filter(|path| *path != Path::new("-"));
    output.map(check_directory).transpose()?;
    let gathered = match (args.subject, args.run) {
        (_, Some(run)) | (Some(Subject::Run(RunId(run))), None) => of_run(RunId(run))?,
        (Some(Subject::Task(task)), None) => of_task(task)?,
        (None, None) => return Err(Failure::usage("a task or a run is missing")),
    };
    let text = written(gathered, format);
    match output {
        Some(path) => replace(path, &text)?,
        None => console.data(&text)?,
    }
    Ok(Exit::Done)
}

/// A directory that is not there is a slip: none is made for a report.
fn check_directory(path: &Path) -> Result<(), Failure> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    match directory {
        Some(directory) if !directory.is_dir() => {
            let shown = directory.display();
            let failure = Failure::usage(format!("there is no directory {shown}"));
            Err(failure.hint(format!("`mkdir -p {shown}` makes it; or name another file with --output")))
        }
        Some(_) | None => Ok(()),
    }
}

fn written(gathered: Gathered, format: Format) -> String {
    let account = &gathered.account;
    match format {
        Format::Html => {
            let (head, tasks) = gathered.pages();
            page::report_file(&head, tasks)
        }
        Format::Markdown => markdown::markdown(account),
        Format::Json => account.json(),
        Format::Sarif => sarif::sarif(account),
        Format::Junit => junit::junit(account),
    }
}
