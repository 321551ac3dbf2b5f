//! `signoff report`: writes a report about a task or a run.

mod data;

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use signoff_core::ids::RunId;
use signoff_serve::page;
use signoff_term::report::{junit, markdown, sarif};

use crate::host::replace::replace;
use crate::run_loop::{TaskOrRun, task_id};
use crate::{CliError, CommandExit, Console, ReadOnlyProject, Result};
pub use data::{ReportData, for_run, for_task, unknown_run};

/// Write a report about a task or a run
///
/// It lists the request, the findings, the fixes, what is open, the agents and the cost. A number is a task; run-3 or
/// --run 3 is a run. An unfinished or failed task can be reported too. Markdown fits the body of a pull request, junit
/// and sarif fit continuous integration, html and json contain everything. Writes to stdout, or with --output to a
/// file, which is replaced atomically; - is stdout.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff report 29 | gh pr create --title \"Add login\" --body-file -\n  \
                        signoff report run-3 --format html --output report.html\n  \
                        signoff report --run 3 --format junit --output junit.xml")]
pub struct Args {
    /// The task, such as 29, or the run, such as run-3
    #[arg(value_name = "ID|run-N", value_parser = subject, required_unless_present = "run")]
    subject: Option<TaskOrRun>,
    /// The run
    #[arg(long, value_name = "N", conflicts_with = "subject")]
    run: Option<u64>,
    /// The format to write [default: markdown]
    #[arg(long)]
    format: Option<ReportFormat>,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn subject(text: &str) -> Result<TaskOrRun, String> {
    if let Some(number) = text.strip_prefix("run-").and_then(|digits| digits.parse().ok()) {
        return Ok(TaskOrRun::Run(RunId(number)));
    }
    let task = task_id(text);
    task.map(TaskOrRun::Task).map_err(|_| format!("`{text}` is neither a task, as 29, nor a run, as run-3"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    Html,
    Markdown,
    Json,
    Sarif,
    Junit,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    let format = match (args.format, console.json) {
        (None, false) => ReportFormat::Markdown,
        (None | Some(ReportFormat::Json), true) => ReportFormat::Json,
        (Some(format), false) => format,
        (Some(_), true) => {
            return Err(CliError::usage("--json is --format json, and another --format was given")
                .hint("leave one of them out"));
        }
    };
    let output = args.output.as_deref().filter(|path| *path != Path::new("-"));
    output.map(check_directory).transpose()?;
    let data = match (args.subject, args.run) {
        (_, Some(run)) | (Some(TaskOrRun::Run(RunId(run))), None) => report_on_run(RunId(run))?,
        (Some(TaskOrRun::Task(task)), None) => for_task(&ReadOnlyProject::for_task(task)?, task)?,
        (None, None) => {
            return Err(
                CliError::usage("a task or a run is missing").hint("signoff report 29, or signoff report run-3")
            );
        }
    };
    let text = render(data, format);
    match output {
        Some(path) => replace(path, &text)?,
        None => console.data(&text)?,
    }
    Ok(CommandExit::Done)
}

fn report_on_run(run: RunId) -> Result<ReportData> {
    for_run(&ReadOnlyProject::find()?.ok_or_else(|| unknown_run(run, None))?, run)
}

/// Fails if the directory does not exist: it is probably a typo, so it is not created.
fn check_directory(path: &Path) -> Result<()> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    let Some(missing) = directory.filter(|directory| !directory.is_dir()).map(Path::display) else { return Ok(()) };
    Err(CliError::usage(format!("there is no directory {missing}"))
        .hint(format!("`mkdir -p {missing}` creates it; or name another file with --output")))
}

fn render(data: ReportData, format: ReportFormat) -> String {
    let document = &data.document;
    match format {
        ReportFormat::Html => {
            let (head, tasks) = data.pages();
            page::report_file(&head, tasks)
        }
        ReportFormat::Markdown => markdown::markdown(document),
        ReportFormat::Json => document.json(),
        ReportFormat::Sarif => sarif::sarif(document),
        ReportFormat::Junit => junit::junit(document),
    }
}
