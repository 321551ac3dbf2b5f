//! `signoff review`: runs one review without fixing anything, e.g. in CI or before a push.

use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::machine::FinalVerdict;
use signoff_core::merge::render::ReviewFormat;
use signoff_core::review::{FailThreshold, Finding};
use signoff_core::settings::TaskFlags;
use signoff_core::task::{TaskSpec, TaskType};
use signoff_core::view::inbox::{Action, ReviewEnd};
use signoff_core::view::{LoopState, RunState, TaskRow, TaskState};
use signoff_core::workflow::{GateKeys, Workflow};
use signoff_engine::dispatcher::loop_id;
use signoff_engine::{artifact, clock, start_run};
use signoff_store::Store;

use super::{edit, improve};
use crate::run_loop::{self, RunRequest, RunResult, task_id};
use crate::{CliError, CommandExit, Console, Project, ReadOnlyProject, Result, preflight};

/// Review a task's work or your checkout, without fixing anything
///
/// Without a task it reviews the current branch with its uncommitted changes, and does not modify them.
/// With a task it writes the task's next review, which `signoff improve` uses; an approval of the same commit becomes
/// void if this review refuses it. Exits with 1 if it finds something at or above --fail-on or is inconclusive, and
/// with 3 if there is no change to review.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff review --base main --format sarif > review.sarif\n  signoff review 29")]
pub struct Args {
    /// The task [default: review the checkout]
    #[arg(value_name = "ID", value_parser = task_id)]
    task: Option<TaskId>,
    /// The commit to compare with [default: where the branch left the default branch]
    #[arg(long, value_name = "REF", conflicts_with = "task")]
    base: Option<String>,
    /// The output format [default: text, or json with --json]
    #[arg(long, value_parser = super::name_parser::<ReviewFormat>())]
    format: Option<ReviewFormat>,
    /// The lowest severity that fails the review
    #[arg(long, value_name = "SEVERITY", ignore_case = true, value_parser = super::name_parser::<FailThreshold>())]
    fail_on: Option<FailThreshold>,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    let project = Project::open()?;
    preflight::check_environment(&project)?;
    let no_ask = true;
    let lease = project.store.open_run(clock::now())?;
    let run = lease.run();
    // Progress goes to stderr, because the review is the output.
    let quiet = console.for_data();
    let spec = match args.task {
        Some(task) => review_spec(&project, task)?,
        None => checkout(&project, args.base.as_deref())?,
    };
    let workflow = args.workflow(&project, &spec)?;
    preflight::check_agents(&project, &workflow, &spec)?;
    let (request, reviewed) = match args.task {
        Some(task) => {
            let own = project.store.reserve_tasks(1)?.into_iter().next().unwrap_or(task);
            let facts = start_run::single(workflow, own, spec, task_branch(&project, task)?, no_ask);
            (RunRequest::open(lease, facts, no_ask), loop_id(own))
        }
        None => {
            let request = RunRequest::open(lease, start_run::review(workflow, no_ask), no_ask);
            (RunRequest { subject: Some(spec), base: args.base.clone(), ..request }, LoopId::checkout())
        }
    };
    preflight::print_warnings(&project, console);
    let mut result = run_loop::run(project, request, &quiet)?;
    let exit = print_review(&mut result, run, &reviewed, args, console);
    result.remove_review_worktree(run);
    exit
}

/// Prints the merged review and returns its exit code.
fn print_review(
    result: &mut RunResult,
    run: RunId,
    loop_id: &LoopId,
    args: &Args,
    console: &Console,
) -> Result<CommandExit> {
    let run_state = result.summary.states.remove(&run).unwrap_or_else(|| RunState::new(run));
    if result.summary.interrupted {
        return Ok(CommandExit::Interrupted);
    }
    run_loop::fail_with(std::mem::take(&mut result.summary.errors))?;
    let loop_state = run_state.loops.get(loop_id).cloned().unwrap_or_default();
    let workflow = run_state.policy(loop_id).map(|policy| &policy.workflow);
    let threshold = args.fail_on.or(workflow.and_then(gate_fail_on)).unwrap_or(FailThreshold::Medium);
    let reviews = loop_state.last_round.as_ref().map(|round| round.reviews.clone()).unwrap_or_default();
    super::print_merged(&reviews, threshold, args.format, console)?;
    let end = ReviewEnd::for_loop(&loop_state.machine);
    if args.task.is_none() && end == ReviewEnd::Inconclusive {
        let attempts = result.ctx.layout.attempts(run, loop_id);
        let attempts = attempts.strip_prefix(result.ctx.repository.root()).unwrap_or(&attempts).display();
        console.note(&format!(
            "Not every reviewer gave a usable review: their output is in {attempts}; run the command again to repeat the review"
        ));
    }
    match (end, args.task) {
        (ReviewEnd::NothingToReview, _) => console.note("Nothing to review: there is no change since its base"),
        (ReviewEnd::NotApproved, Some(task)) => revoke_approvals(task, run, &loop_state, console)?,
        (ReviewEnd::Approved | ReviewEnd::NotApproved | ReviewEnd::Inconclusive, _) => {}
    }
    Ok(match end {
        ReviewEnd::Approved => CommandExit::Done,
        ReviewEnd::NotApproved | ReviewEnd::Inconclusive => CommandExit::Failed,
        ReviewEnd::NothingToReview => CommandExit::NeedsUser,
    })
}

/// Revokes the approval of tasks that were approved at the commit this review refuses.
fn revoke_approvals(task: TaskId, run: RunId, loop_state: &LoopState, console: &Console) -> Result<()> {
    let project = ReadOnlyProject::for_task(task)?;
    let (branch, commit) = (project.task(task)?.branch, loop_state.machine.head.commit.as_str());
    let is_approved = |row: &TaskRow| {
        let here = row.branch == branch && row.approved_commit.as_deref() == Some(commit);
        here && row.state() == TaskState::Approved
    };
    for row in project.tasks()?.iter().filter(|row| is_approved(row)) {
        let (id, by) = (row.id, format!("the review of run {run}"));
        let reason = format!("it refuses the approved commit:\n{}", findings(loop_state));
        let verdict = FinalVerdict::ChangesRequested;
        edit::edit(&project, TaskId(id), verdict, by, &reason)?.print_note(console);
        console
            .note(&format!("Task #{id} is no longer approved; {} fixes what this review found", Action::Improve(id)));
    }
    Ok(())
}

/// The findings of the last round, one line each.
fn findings(loop_state: &LoopState) -> String {
    let reviews = loop_state.last_round.iter().flat_map(|round| &round.reviews);
    let line = |finding: &Finding| match (&finding.file, finding.line) {
        (Some(file), Some(line)) => format!("- {file}:{line} {}", finding.description),
        (Some(file), None) => format!("- {file} {}", finding.description),
        (None, _) => format!("- {}", finding.description),
    };
    reviews.flat_map(|review| review.findings.iter().map(line)).collect::<Vec<_>>().join("\n")
}

fn gate_fail_on(workflow: &Workflow) -> Option<FailThreshold> {
    workflow.phases.iter().find_map(|phase| phase.policy()).map(|gate_policy| gate_policy.gate.fail_on)
}

impl Args {
    fn workflow(&self, project: &Project, spec: &TaskSpec) -> Result<Workflow> {
        let gate = GateKeys { fail_on: self.fail_on, ..GateKeys::default() };
        let flags = TaskFlags { review: Some(true), gate, ..TaskFlags::default() };
        Ok(project.settings.task_workflow(spec, &flags)?)
    }
}

/// The spec of a review of a task's work; it gets the task's next review number.
fn review_spec(project: &Project, task: TaskId) -> Result<TaskSpec> {
    let row = improve::continuable_task(project, task)?;
    let root = TaskId(row.continues.unwrap_or(row.id));
    let before = project.store.task_spec(root)?.unwrap_or_default();
    let number = artifact::last_number(&project.layout.reviews(), root) + 1;
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

fn task_branch(project: &Project, task: TaskId) -> Result<String> {
    project.store.task(task)?.and_then(|row| row.branch).ok_or_else(|| {
        CliError::failed(format!("task {task} has no branch"))
            .hint(format!("`{}` shows its state", Action::Show(task.0)))
    })
}

/// The spec of a review of the checkout, described by its commits.
fn checkout(project: &Project, base: Option<&str>) -> Result<TaskSpec> {
    let repository = &project.repository;
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
