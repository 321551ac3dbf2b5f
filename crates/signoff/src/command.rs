//! The commands, one module each, named after the subcommand.

pub mod add;
pub mod agents;
pub mod answer;
pub mod cancel;
pub mod completions;
pub mod config;
pub mod configure;
pub mod decide;
pub mod demo;
pub mod diff;
pub mod dispute;
pub mod doctor;
pub mod edit;
pub mod export;
pub mod import;
pub mod improve;
pub mod init;
pub mod iterate;
pub mod land;
pub mod landing;
pub mod logs;
pub mod mcp;
pub mod merge;
pub mod merge_reviews;
pub mod notify;
pub mod parse;
pub mod replay;
pub mod report;
pub mod retry;
pub mod review;
pub mod run;
pub mod serve;
pub mod show;
pub mod stats;
pub mod status;
pub mod tasks;
pub mod watch;
pub mod work;
pub mod workflow;

use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use signoff_core::ids::{RunId, TaskId};
use signoff_core::merge::merge;
use signoff_core::merge::render::{ReviewFormat, render};
use signoff_core::review::{FailThreshold, Review};
use signoff_core::source::TaskFormat;
use signoff_term::json::{AddReport, RunReport};
use strum::VariantNames;

use crate::{CommandExit, Console, ReadOnlyProject, Result, queries};

/// Prints a line about a task; with `--json` the task itself.
fn print_task(project: &ReadOnlyProject, task: TaskId, text: &str, console: &Console) -> Result<CommandExit> {
    console.print(&AddReport::new(project.task(task)?), || text.to_owned())
}

/// Prints a merged review in the format of `--format`, or with `--json` as JSON.
fn print_merged(
    reviews: &[Review],
    threshold: FailThreshold,
    format: Option<ReviewFormat>,
    console: &Console,
) -> Result<()> {
    let format = format.unwrap_or(if console.json { ReviewFormat::Json } else { ReviewFormat::Text });
    let shown = render(&merge(reviews, threshold), threshold, format);
    match format {
        ReviewFormat::Json | ReviewFormat::Xml | ReviewFormat::Sarif => console.data(&shown),
        ReviewFormat::Text | ReviewFormat::Markdown => console.text(&shown),
    }
}

/// Prints a line about a run; with `--json` the run with its tasks.
fn print_run(project: &ReadOnlyProject, run: RunId, text: &str, console: &Console) -> Result<CommandExit> {
    if console.json {
        let run_state = queries::run_state(&*project.store, run)?;
        let mut tasks = project.tasks()?;
        tasks.retain(|row| row.run_id == Some(run.0));
        console.json(&RunReport::new(Some(run.0), Some(&run_state.machine.stage), tasks, Vec::new()))?;
    } else {
        console.text(text)?;
    }
    Ok(CommandExit::Done)
}

/// Parses one of the names of an enum.
fn name_parser<T>() -> impl TypedValueParser<Value = T>
where
    T: FromStr + VariantNames + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(T::VARIANTS).try_map(|name| name.parse().map_err(|_| "unknown name"))
}

/// Parses the format of a plan file; accepts common aliases.
fn task_format_parser() -> impl TypedValueParser<Value = TaskFormat> {
    let words = TaskFormat::ALL.iter().map(|format| PossibleValue::new(format.into_str()).aliases(aliases(*format)));
    PossibleValuesParser::new(words).try_map(|word| {
        let means = |format: &TaskFormat| format.into_str() == word || aliases(*format).contains(&word.as_str());
        TaskFormat::ALL.iter().copied().find(means).ok_or("no such format")
    })
}

fn aliases(format: TaskFormat) -> &'static [&'static str] {
    match format {
        TaskFormat::PlanMarkdown => &["plan", "plan-markdown"],
        TaskFormat::SpecKit => &["spec-kit", "speckit"],
        TaskFormat::OpenSpec => &["open-spec", "openspec"],
        TaskFormat::TaskMaster => &["task-master", "taskmaster"],
        TaskFormat::Text => &["spec", "specification"],
        TaskFormat::Kiro | TaskFormat::Bmad | TaskFormat::Beads => &[],
    }
}
