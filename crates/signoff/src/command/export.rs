//! `signoff export`: a task in the words of other programs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use signoff_core::ids::{LoopId, ReviewerName, RunId, TaskId};
use signoff_core::ledger::State;
use signoff_core::merge::merge;
use signoff_core::merge::render::{self, render};
use signoff_core::review::{Bar, Finding, Review, ReviewerKind, Verdict};
use signoff_core::state_v4;
use signoff_core::wire::{Fact, QUEUE, Recorded};
use signoff_engine::board::{Board, Worked};
use signoff_store::Store;
use signoff_term::json;

use crate::console::Console;
use crate::desk::{Desk, not_started};
use crate::door::replace::replace;
use crate::drive::task_id;
use crate::failure::{Exit, Failure};

/// Write a task down for other programs
///
/// state-v4 is where an iteration stands, as `signoff import` reads it; sarif what its reviews found that is still open;
/// jsonl all that was recorded about it, a fact a line. It goes to stdout, or with --output to a file, which is then
/// there as a whole or as it was. A task may be exported while it is worked.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff export 29 --format state-v4 --output state.json\n  \
                        signoff export 29 --format sarif > findings.sarif\n  \
                        signoff export 29 --format jsonl | jq .kind")]
pub struct Args {
    /// The task
    #[arg(value_name = "ID", value_parser = task_id)]
    task: TaskId,
    /// What to write
    #[arg(long, value_parser = format())]
    format: Format,
    /// Where to write it
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    StateV4,
    Sarif,
    JsonLines,
}

fn format() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(["state-v4", "sarif", "jsonl"]).try_map(|word| match word.as_str() {
        "state-v4" => Ok(Format::StateV4),
        "sarif" => Ok(Format::Sarif),
        "jsonl" => Ok(Format::JsonLines),
        _ => Err("no such format"),
    })
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let desk = Desk::open(args.task)?;
    let text = match args.format {
        Format::StateV4 => state(&desk, args.task)?,
        Format::Sarif => sarif(&desk, args.task)?,
        Format::JsonLines => lines(&desk, args.task)?,
    };
    match &args.output {
        Some(path) => replace(path, &text)?,
        None => console.data(&text)?,
    }
    Ok(Exit::Done)
}

fn state(desk: &Desk, task: TaskId) -> Result<String, Failure> {
    let row = desk.task(task)?;
    let (run, loop_id) = desk.store.loop_of(task)?.ok_or_else(|| not_started(&row))?;
    let spec = desk.store.task_spec(task)?.unwrap_or_default();
    let told = state_v4::told(&desk.store.log(run)?, &loop_id, &spec);
    let state = told.map_err(|error| {
        Failure::usage(format!("task {task} is no iteration: {error}"))
            .hint("--format state-v4 is for what `signoff iterate` began; --format jsonl is for every task")
    })?;
    Ok(state.to_json())
}

fn lines(desk: &Desk, task: TaskId) -> Result<String, Failure> {
    desk.task(task)?;
    let mut log = desk.store.log(QUEUE)?;
    let own = desk.store.loop_of(task)?;
    if let Some((run, _)) = own.as_ref().filter(|(run, _)| *run != QUEUE) {
        log.extend(desk.store.log(*run)?);
    }
    let about = |recorded: &&Recorded| is_about(&recorded.fact, task, own.as_ref());
    Ok(log.iter().filter(about).map(|recorded| json::event(recorded) + "\n").collect())
}

/// Whether a fact is about a task, its loop, or a look at that.
fn is_about(fact: &Fact, task: TaskId, own: Option<&(RunId, LoopId)>) -> bool {
    match fact {
        Fact::Task(id, _) => *id == task,
        Fact::Loop(loop_id, _) => own.is_some_and(|(_, own)| {
            loop_id == own || loop_id.of_checkpoint().is_some_and(|(of, _)| of == *own)
        }),
        Fact::Run(_) => false,
    }
}

fn sarif(desk: &Desk, task: TaskId) -> Result<String, Failure> {
    let row = desk.task(task)?;
    let (run, loop_id) = desk.store.loop_of(task)?.ok_or_else(|| not_started(&row))?;
    let board = Board::of(run, &desk.store.log(run)?);
    let worked = board.loops.get(&loop_id).cloned().unwrap_or_default();
    if worked.last_round.is_none() && worked.state.ledger.entries().is_empty() {
        return Err(Failure::usage(format!("task {task} has no review yet"))
            .hint(format!("`signoff review {task} --format sarif` makes one")));
    }
    Ok(render(&merge(&open(&worked), Bar::Low), Bar::Low, render::Format::Sarif))
}

/// What is open, as if each reviewer said it now. Who was not understood in the last round still is not.
fn open(worked: &Worked) -> Vec<Review> {
    let mut reviews: BTreeMap<ReviewerName, Review> = BTreeMap::new();
    for review in worked.last_round.iter().flat_map(|round| &round.reviews) {
        reviews.insert(review.reviewer.clone(), Review { findings: Vec::new(), ..review.clone() });
    }
    let findings = worked.state.ledger.entries().iter().filter(|entry| entry.state == State::Open);
    for finding in findings.map(|entry| &entry.finding) {
        take(&mut reviews, finding);
    }
    reviews.into_values().collect()
}

fn take(reviews: &mut BTreeMap<ReviewerName, Review>, finding: &Finding) {
    for source in &finding.sources {
        let review = reviews
            .entry(source.clone())
            .or_insert_with(|| Review::of(source.clone(), ReviewerKind::General, Verdict::ChangesRequested));
        review.findings.push(Finding { sources: vec![source.clone()], ..finding.clone() });
        if review.verdict.approves() {
            review.verdict = Verdict::ChangesRequested;
        }
    }
}
