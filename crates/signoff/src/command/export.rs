//! `signoff export`: writes a task in a format of other programs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::ValueEnum;
use signoff_core::ids::{LoopId, ReviewerName, TaskId};
use signoff_core::ledger::FindingState;
use signoff_core::merge::merge;
use signoff_core::merge::render::{self, render};
use signoff_core::review::{FailThreshold, Finding, Review, ReviewerKind, Verdict};
use signoff_core::state_v4;
use signoff_core::view::LoopState;
use signoff_core::view::inbox::Action;
use signoff_core::wire::{Fact, QUEUE, RecordedFact};
use signoff_store::Store;
use signoff_term::json;

use crate::host::replace::replace;
use crate::run_loop::task_id;
use crate::{CliError, CommandExit, Console, ReadOnlyProject, Result, queries};

/// Export a task for other programs
///
/// state-v4 is the state of an iteration, for `signoff import`; sarif has the open findings of its reviews; jsonl has
/// every recorded event about it, one per line. Writes to stdout, or with --output to a file, which is replaced
/// atomically. A task may be exported while it is worked.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff export 29 --format state-v4 --output state.json\n  \
                        signoff export 29 --format sarif > findings.sarif\n  \
                        signoff export 29 --format jsonl | jq .kind")]
pub struct Args {
    /// The task
    #[arg(value_name = "ID", value_parser = task_id)]
    task: TaskId,
    /// The format to write
    #[arg(long)]
    format: ExportFormat,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    StateV4,
    Sarif,
    #[value(name = "jsonl")]
    JsonLines,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    let project = ReadOnlyProject::for_task(args.task)?;
    let text = match args.format {
        ExportFormat::StateV4 => state(&project, args.task)?,
        ExportFormat::Sarif => sarif(&project, args.task)?,
        ExportFormat::JsonLines => lines(&project, args.task)?,
    };
    match &args.output {
        Some(path) => replace(path, &text)?,
        None => console.data(&text)?,
    }
    Ok(CommandExit::Done)
}

fn state(project: &ReadOnlyProject, task: TaskId) -> Result<String> {
    let (run, loop_id) = project.loop_of(task)?;
    let spec = project.store.task_spec(task)?.unwrap_or_default();
    let exported = state_v4::export(&project.store.log(run)?, &loop_id, &spec);
    let state = exported.map_err(|error| {
        CliError::usage(format!("task {task} is not an iteration: {error}"))
            .hint("--format state-v4 is for tasks of `signoff iterate`; --format jsonl is for every task")
    })?;
    Ok(state.to_json())
}

fn lines(project: &ReadOnlyProject, task: TaskId) -> Result<String> {
    project.task(task)?;
    let mut log = project.store.log(QUEUE)?;
    let own = project.store.loop_for_task(task)?;
    if let Some((run, _)) = own.as_ref().filter(|(run, _)| *run != QUEUE) {
        log.extend(project.store.log(*run)?);
    }
    let about = |recorded: &&RecordedFact| is_about(&recorded.fact, task, own.as_ref().map(|(_, loop_id)| loop_id));
    Ok(log.iter().filter(about).map(|recorded| json::event(recorded) + "\n").collect())
}

/// Whether a fact is about a task, its loop, or a checkpoint review of that loop.
fn is_about(fact: &Fact, task: TaskId, own: Option<&LoopId>) -> bool {
    match fact {
        Fact::Task(id, _) => *id == task,
        Fact::Loop(loop_id, _) => own.is_some_and(|own| {
            loop_id == own || loop_id.checkpoint_target().is_some_and(|(reviewed, _)| reviewed == *own)
        }),
        Fact::Run(_) => false,
    }
}

fn sarif(project: &ReadOnlyProject, task: TaskId) -> Result<String> {
    let (run, loop_id) = project.loop_of(task)?;
    let run_state = queries::run_state(&*project.store, run)?;
    let loop_state = run_state.loops.get(&loop_id).cloned().unwrap_or_default();
    if loop_state.last_round.is_none() && loop_state.machine.ledger.entries().is_empty() {
        return Err(CliError::usage(format!("task {task} has no review yet"))
            .hint(format!("`{} --format sarif` creates one", Action::Review(task.0))));
    }
    Ok(render(&merge(&open_findings(&loop_state), FailThreshold::Low), FailThreshold::Low, render::ReviewFormat::Sarif))
}

/// The open findings as reviews of their reviewers. A reviewer whose last answer was unclear stays unclear.
fn open_findings(loop_state: &LoopState) -> Vec<Review> {
    let mut reviews: BTreeMap<ReviewerName, Review> = BTreeMap::new();
    for review in loop_state.last_round.iter().flat_map(|round| &round.reviews) {
        reviews.insert(review.reviewer.clone(), Review { findings: Vec::new(), ..review.clone() });
    }
    let findings = loop_state.machine.ledger.entries().iter().filter(|entry| entry.state == FindingState::Open);
    for finding in findings.map(|entry| &entry.finding) {
        add_finding(&mut reviews, finding);
    }
    reviews.into_values().collect()
}

fn add_finding(reviews: &mut BTreeMap<ReviewerName, Review>, finding: &Finding) {
    for source in &finding.sources {
        let review = reviews
            .entry(source.clone())
            .or_insert_with(|| Review::new(source.clone(), ReviewerKind::General, Verdict::ChangesRequested));
        review.findings.push(Finding { sources: vec![source.clone()], ..finding.clone() });
        if review.verdict.approves() {
            review.verdict = Verdict::ChangesRequested;
        }
    }
}
