//! `signoff report`: a run or a task in one file, to keep or to attach.

mod changes;

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::view::{QuestionRow, TaskRow};
use signoff_engine::git::Repository;
use signoff_store::Store;
use signoff_term::report::{About, Account, Part, RunAccount, TaskAccount, html, junit, markdown, sarif};
use signoff_term::show::Folded;

use crate::console::Console;
use crate::desk::Desk;
use crate::door;
use crate::door::replace::replace;
use crate::failure::{Exit, Failure};
use crate::look::{artifacts, voided};

/// Write a report about a task or a run
///
/// What was asked, found, fixed and left, by whom, at what cost. A number is a task, run-3 or --run 3 the run with that
/// number. It may be unfinished, or have failed: the report says so. Markdown is made for the body of a pull request,
/// junit and sarif for continuous integration, html and json hold all there is. It goes to stdout, or with --output to a
/// file, which is then there as a whole or as it was.
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
    let account = match (args.subject, args.run) {
        (_, Some(run)) | (Some(Subject::Run(RunId(run))), None) => of_run(RunId(run))?,
        (Some(Subject::Task(task)), None) => of_task(task)?,
        (None, None) => return Err(Failure::usage("a task or a run is missing")),
    };
    let text = written(&account, format);
    match &args.output {
        Some(path) => replace(path, &text)?,
        None => console.data(&text)?,
    }
    Ok(Exit::Done)
}

fn written(account: &Account, format: Format) -> String {
    match format {
        Format::Html => html::html(account),
        Format::Markdown => markdown::markdown(account),
        Format::Json => account.json(),
        Format::Sarif => sarif::sarif(account),
        Format::Junit => junit::junit(account),
    }
}

/// One task, with the looks at it while it was worked.
fn of_task(task: TaskId) -> Result<Account, Failure> {
    let desk = Desk::open(task)?;
    let (row, _) = desk.seen(task)?;
    let Some((run, loop_id)) = desk.store.loop_of(task)? else {
        let held = Held::nothing(&desk)?;
        let loop_id = signoff_engine::dispatcher::loop_id(task);
        let tasks = vec![held.task(&desk, row, &loop_id)?];
        return Ok(Account::of(About::task(task.0), made_at(), None, (Vec::new(), tasks)));
    };
    let held = Held::of(&desk, run)?;
    let tasks = vec![held.task(&desk, row, &loop_id)?];
    let parts = Part::all(&held.folded, Some(&loop_id));
    let run = held.run(&desk, run, &[])?;
    Ok(Account::of(About::task(task.0), made_at(), run, (parts, tasks)))
}

/// A run with all its tasks.
fn of_run(run: RunId) -> Result<Account, Failure> {
    let desk = Desk::find()?.ok_or_else(|| unknown_run(run, None))?;
    if desk.store.run(run)?.is_none() {
        let last = desk.store.last_run()?.map(|row| row.id);
        return Err(unknown_run(run, last));
    }
    let held = Held::of(&desk, run)?;
    let rows: Vec<TaskRow> = desk.tasks()?.into_iter().filter(|row| row.run_id == Some(run.0)).collect();
    let mut tasks = Vec::with_capacity(rows.len());
    for row in &rows {
        let known = desk.store.loop_of(TaskId(row.id))?.filter(|(of, _)| *of == run);
        let own = || signoff_engine::dispatcher::loop_id(TaskId(row.id));
        let loop_id = known.map_or_else(own, |(_, loop_id)| loop_id);
        tasks.push(held.task(&desk, row.clone(), &loop_id)?);
    }
    let parts = Part::all(&held.folded, None);
    Ok(Account::of(About::run(run.0), made_at(), held.run(&desk, run, &rows)?, (parts, tasks)))
}

fn unknown_run(run: RunId, last: Option<RunId>) -> Failure {
    let hint = match last {
        Some(last) => {
            format!("the last one is run {last}: `signoff report run-{last}`; a number alone is a task")
        }
        None => "there are no runs yet: `signoff work` works the tasks".to_owned(),
    };
    Failure::usage(format!("there is no run {run}")).hint(hint)
}

fn made_at() -> String {
    door::now().to_string()
}

/// A run's log, read once.
struct Held {
    folded: Folded,
    /// None where git cannot find it: a report tells what is known.
    repository: Option<Repository>,
    questions: Vec<QuestionRow>,
    /// Whether somebody is at work on it.
    driven: bool,
}

impl Held {
    fn nothing(desk: &Desk) -> Result<Self, Failure> {
        let (repository, questions) = (desk.repository().ok(), desk.store.questions()?);
        Ok(Self { folded: Folded::default(), repository, questions, driven: false })
    }

    fn of(desk: &Desk, run: RunId) -> Result<Self, Failure> {
        let driven = desk.store.is_held(run)?;
        Ok(Self { folded: Folded::of(&desk.store.log(run)?), driven, ..Self::nothing(desk)? })
    }

    fn task(&self, desk: &Desk, row: TaskRow, loop_id: &LoopId) -> Result<TaskAccount, Failure> {
        let task = TaskId(row.id);
        let spec = desk.store.task_spec(task)?.unwrap_or_default();
        let asked = if spec.description.trim().is_empty() { row.title.clone() } else { spec.description };
        let changes = changes::of_task(self.repository.as_ref(), &row, self.folded.view.loop_state(loop_id));
        let voided = voided(desk, &row);
        let mut report = self.folded.report(row, loop_id, artifacts(desk, task));
        report.voided = voided;
        // People know a question by the number it has in the whole repository.
        report.question = self.questions.iter().find(|one| one.task_id == Some(task.0)).cloned();
        Ok(TaskAccount::of(report, asked, changes, self.driven))
    }

    fn run(&self, desk: &Desk, run: RunId, rows: &[TaskRow]) -> Result<Option<RunAccount>, Failure> {
        let Some(row) = desk.store.run(run)? else { return Ok(None) };
        let mut account = RunAccount::of(row.into(), &self.folded, rows.len(), self.driven);
        let together = self.repository.as_ref().zip(account.branch.as_deref());
        account.changes = together.and_then(|(repository, branch)| changes::of_run(repository, branch, rows));
        Ok(Some(account))
    }
}
