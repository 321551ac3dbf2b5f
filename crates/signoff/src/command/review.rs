//! `signoff review`: one gate, no fixing; for a look, for CI and before a push.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use signoff_core::config::TaskFlags;
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::machine::{FinalWord, Outcome, Reason, Stage};
use signoff_core::merge::merge;
use signoff_core::merge::render::{Format, render};
use signoff_core::review::{Bar, Finding};
use signoff_core::task::{TaskSpec, TaskType};
use signoff_core::view::{TaskRow, TaskState};
use signoff_core::workflow::{GateWords, Workflow};
use signoff_engine::board::{Board, Worked};
use signoff_engine::dispatcher::{Drive, loop_id};
use signoff_engine::{artifact, clock, open};
use signoff_store::Store;

use super::{edit, improve, words};
use crate::console::Console;
use crate::desk::{Bench, Desk};
use crate::drive::{self, Came, Wanted, task_id};
use crate::failure::{Exit, Failure};
use crate::preflight;

/// Review a task's work, or your checkout; nothing is fixed
///
/// Without a task it looks at the current branch with its uncommitted changes, and leaves them as they are.
/// With a task it writes the task's next review, from which `signoff improve` goes on; an approval of the same commit is
/// void if this review refuses it. The exit code is 1 if
/// something at or above --fail-on was found, or if the review is inconclusive; 3 if there is no change to review.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  signoff review --base main --format sarif > review.sarif\n  signoff review 29"
)]
pub struct Args {
    /// The task; without one the checkout is reviewed
    #[arg(value_name = "ID", value_parser = task_id)]
    task: Option<TaskId>,
    /// What the changes are counted from [default: where the branch left the default branch]
    #[arg(long, value_name = "REF", conflicts_with = "task")]
    base: Option<String>,
    /// How to show it [default: text, or json with --json]
    #[arg(long, value_parser = format())]
    format: Option<Format>,
    /// The severity from which findings fail the review
    #[arg(long, value_name = "SEVERITY", ignore_case = true, value_parser = words::bar())]
    fail_on: Option<Bar>,
}

fn format() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::WORDS).try_map(|word| Format::from_word(&word).ok_or("no such format"))
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let bench = Bench::open()?;
    preflight::check_place(&bench)?;
    let no_ask = true;
    let lease = bench.store.open_run(clock::now())?;
    let run = lease.run();
    let drive = Drive { no_ask, ..Drive::default() };
    // Progress goes to stderr: what is asked for is the review.
    let quiet = console.for_data();
    let (wanted, reviewed) = match args.task {
        Some(task) => {
            let spec = spec_of(&bench, task)?;
            let workflow = args.workflow(&bench, &spec)?;
            preflight::check_agents(&bench, &workflow, &spec)?;
            let own = bench.store.reserve_tasks(1)?.into_iter().next().unwrap_or(task);
            let facts = open::single(workflow, (own, spec.clone()), branch_of(&bench, task)?, no_ask);
            (Wanted { opened: vec![(lease, facts)], drive, ..Wanted::default() }, loop_id(own))
        }
        None => {
            let spec = checkout(&bench, args.base.as_deref())?;
            let workflow = args.workflow(&bench, &spec)?;
            preflight::check_agents(&bench, &workflow, &spec)?;
            let facts = open::review(workflow, no_ask);
            let base = args.base.clone();
            let wanted = Wanted {
                opened: vec![(lease, facts)],
                drive,
                subject: Some(spec),
                base,
                ..Wanted::default()
            };
            (wanted, LoopId::checkout())
        }
    };
    preflight::warn(&bench, console);
    let mut came = drive::drive(bench, wanted, &quiet)?;
    let end = tell(&mut came, (run, &reviewed), args, console);
    came.clear_away(run);
    end
}

/// Shows the merged review; its ruling is the exit code.
fn tell(
    came: &mut Came,
    (run, loop_id): (RunId, &LoopId),
    args: &Args,
    console: &Console,
) -> Result<Exit, Failure> {
    let board = Board::of(run, &came.store.log(run)?);
    if came.summary.interrupted {
        return Ok(Exit::Interrupted);
    }
    drive::give_up_over(std::mem::take(&mut came.summary.troubles))?;
    let worked = board.loops.get(loop_id).cloned().unwrap_or_default();
    let workflow = board.policy(loop_id).map(|policy| &policy.workflow);
    let bar = args.fail_on.or(workflow.and_then(bar_of)).unwrap_or(Bar::Medium);
    let reviews = worked.last_round.as_ref().map(|round| round.reviews.clone()).unwrap_or_default();
    let format = args.format.unwrap_or(if console.json { Format::Json } else { Format::Text });
    let shown = render(&merge(&reviews, bar), bar, format);
    match format {
        Format::Json | Format::Xml | Format::Sarif => console.data(&shown)?,
        Format::Text | Format::Markdown => console.text(&shown)?,
    }
    if args.task.is_none() && is_inconclusive(&worked) {
        let said = came.bench.layout.attempts(run, loop_id);
        let said = said.strip_prefix(came.bench.repository.root()).unwrap_or(&said).display();
        console.note(&format!(
            "Not every reviewer was understood: what they said is in {said}; type the same again to ask them again"
        ));
    }
    if has_nothing(&worked) {
        console.note("Nothing to review: there is no change against its base");
        return Ok(Exit::Attention);
    }
    if let Some(task) = args.task.filter(|_| !passed(&worked) && !is_inconclusive(&worked)) {
        void_approvals(task, (run, &worked), console)?;
    }
    Ok(if passed(&worked) { Exit::Done } else { Exit::Failed })
}

/// Takes their approval from the tasks of a branch that were approved at the commit this review refuses.
fn void_approvals(task: TaskId, (run, worked): (RunId, &Worked), console: &Console) -> Result<(), Failure> {
    let desk = Desk::open(task)?;
    let (branch, commit) = (desk.task(task)?.branch, worked.state.head.commit.as_str());
    let is_approved = |row: &TaskRow| {
        let here = row.branch == branch && row.approved_commit.as_deref() == Some(commit);
        here && row.state() == TaskState::Approved
    };
    for row in desk.tasks()?.iter().filter(|row| is_approved(row)) {
        let (id, by) = (row.id, format!("the review of run {run}"));
        let reason = format!("it refuses the approved commit:\n{}", findings(worked));
        let verdict = FinalWord::ChangesRequested.word();
        edit::edit(&desk, TaskId(id), (verdict, by), &reason)?.tell(console);
        console.note(&format!(
            "Task #{id} is not approved any more; signoff improve {id} --review fixes what this review found"
        ));
    }
    Ok(())
}

/// What the last round found, a line each.
fn findings(worked: &Worked) -> String {
    let reviews = worked.last_round.iter().flat_map(|round| &round.reviews);
    let line = |finding: &Finding| match (&finding.file, finding.line) {
        (Some(file), Some(line)) => format!("- {file}:{line} {}", finding.description),
        (Some(file), None) => format!("- {file} {}", finding.description),
        (None, _) => format!("- {}", finding.description),
    };
    reviews.flat_map(|review| review.findings.iter().map(line)).collect::<Vec<_>>().join("\n")
}

fn has_nothing(worked: &Worked) -> bool {
    matches!(&worked.state.stage, Stage::Done(ending) if ending.outcome == Outcome::NothingToReview)
}

fn is_inconclusive(worked: &Worked) -> bool {
    let Stage::Done(ending) = &worked.state.stage else { return false };
    matches!(ending.reason, Some(Reason::UnclearReview | Reason::ReviewerFailed))
}

fn passed(worked: &Worked) -> bool {
    matches!(&worked.state.stage, Stage::Done(ending) if matches!(ending.outcome, Outcome::Approved { .. }))
}

fn bar_of(workflow: &Workflow) -> Option<Bar> {
    workflow.phases.iter().find_map(|phase| phase.judge()).map(|judge| judge.gate.fail_on)
}

impl Args {
    fn workflow(&self, bench: &Bench, spec: &TaskSpec) -> Result<Workflow, Failure> {
        let gate = GateWords { fail_on: self.fail_on, ..GateWords::default() };
        let flags = TaskFlags { review: Some(true), gate, ..TaskFlags::default() };
        Ok(bench.settings.task_workflow(spec, &flags)?)
    }
}

/// A review of a task's work, which counts among its reviews.
fn spec_of(bench: &Bench, task: TaskId) -> Result<TaskSpec, Failure> {
    let row = improve::continued(bench, task)?;
    let root = TaskId(row.continues.unwrap_or(row.id));
    let before = bench.store.task_spec(root)?.unwrap_or_default();
    let number = artifact::last_number(&bench.layout.reviews(), root) + 1;
    Ok(TaskSpec {
        kind: TaskType::Review,
        auto_review: Some(true),
        max_review_cycles: Some(1),
        continues: Some(root),
        first_review: Some(number),
        title: before.title,
        description: before.description,
        effort: before.effort,
        model: before.model,
        plan: before.plan,
        ..TaskSpec::default()
    })
}

fn branch_of(bench: &Bench, task: TaskId) -> Result<String, Failure> {
    bench
        .store
        .task(task)?
        .and_then(|row| row.branch)
        .ok_or_else(|| Failure::failed(format!("task {task} has no branch")))
}

/// What the checkout is about, told from its commits.
fn checkout(bench: &Bench, base: Option<&str>) -> Result<TaskSpec, Failure> {
    let repository = &bench.repository;
    let head = repository.resolve("HEAD")?;
    let base = match base {
        Some(base) => repository.resolve(base)?,
        None => repository.base()?,
    };
    let subjects = repository.log_subjects(&base, &head)?;
    let title = subjects.first().cloned().unwrap_or_else(|| "Uncommitted changes".to_owned());
    let description = subjects.iter().map(|subject| format!("- {subject}")).collect::<Vec<_>>().join("\n");
    Ok(TaskSpec {
        title,
        description,
        kind: TaskType::Review,
        auto_review: Some(true),
        max_review_cycles: Some(1),
        ..TaskSpec::default()
    })
}
