//! Performs the actions of the web pages with the same code as the commands of the same names.

use std::path::Path;

use signoff_core::command::parse_verdict;
use signoff_core::ids::TaskId;
use signoff_core::task::{TaskSpec, TaskType};
use signoff_core::view::inbox::Action;
use signoff_engine::git::Repository;
use signoff_serve::web::{ActionOutcome, AddTask, RequestError, RequestErrorKind, WebAction};

use super::{find_project, project_of, request_error};
use crate::command::decide::DecisionResult;
use crate::command::{add, answer, cancel, dispute, edit, retry};
use crate::history_cache::SharedStore;
use crate::project::{user_git, with_checks};
use crate::{CliError, Project, ReadOnlyProject, Result, host, queries, settings};

/// Performs an action.
pub fn perform(store: &SharedStore, action: WebAction) -> Result<ActionOutcome, RequestError> {
    let conflict = |failure: CliError| request_error(&failure, RequestErrorKind::Conflict);
    match action {
        WebAction::Answer { question, choice } => answer_question(store, &question, &choice).map_err(conflict),
        WebAction::Retry { task } => retry_task(&open_project(store, task)?, task).map_err(conflict),
        WebAction::Cancel { task } => cancel_task(&open_project(store, task)?, task).map_err(conflict),
        WebAction::Edit { task, verdict, reason } => {
            edit_verdict(&open_project(store, task)?, task, &verdict, &reason).map_err(conflict)
        }
        WebAction::Dispute { finding, task, reason } => {
            dispute_finding(store, &finding, task, &reason).map_err(conflict)
        }
        WebAction::Add(new) => add_task(new).map_err(|failure| request_error(&failure, RequestErrorKind::Invalid)),
    }
}

/// Opens the project of a task that must exist.
fn open_project(store: &SharedStore, task: u64) -> Result<ReadOnlyProject, RequestError> {
    let found = project_of(store, TaskId(task)).and_then(|project| project.task(TaskId(task)).map(|_| project));
    found.map_err(|failure| request_error(&failure, RequestErrorKind::NotFound))
}

fn done(message: String, hint: Option<String>) -> ActionOutcome {
    ActionOutcome { message, hint, added_task: None }
}

fn answer_question(store: &SharedStore, question: &str, choice: &str) -> Result<ActionOutcome> {
    let none = || CliError::usage("there is no open question").hint("`signoff status` shows what each task waits for");
    let project = find_project(store)?.ok_or_else(none)?;
    let answer::RecordedAnswer { question, question_ref, result } = answer::answer(&project, question, choice)?;
    let message = format!("{} answered: {choice}", question.id);
    let hint = match &result {
        DecisionResult::HandedOver => None,
        DecisionResult::Recorded { note } => {
            let run_state = queries::run_state(&*project.store, question_ref.run)?;
            let next = answer::next_step(&project, &run_state, &question_ref.loop_id)?;
            joined(note.iter().cloned().chain(next.map(|next| format!("`{next}` continues"))))
        }
    };
    Ok(done(message, hint))
}

fn retry_task(project: &ReadOnlyProject, task: u64) -> Result<ActionOutcome> {
    let result = retry::retry(project, TaskId(task))?;
    let hint = match result {
        DecisionResult::HandedOver => None,
        // No process is driving the task.
        DecisionResult::Recorded { note } => {
            joined(note.into_iter().chain([format!("`{}` starts it", Action::Work(task))]))
        }
    };
    Ok(done(format!("Task #{task} continues"), hint))
}

fn cancel_task(project: &ReadOnlyProject, task: u64) -> Result<ActionOutcome> {
    let notes = cancel::cancel(project, TaskId(task))?;
    Ok(done(format!("Task #{task} cancelled"), joined(notes.into_iter())))
}

fn edit_verdict(project: &ReadOnlyProject, task: u64, verdict: &str, reason: &str) -> Result<ActionOutcome> {
    let verdict = parse_verdict(verdict)?;
    let result = edit::edit(project, TaskId(task), verdict, host::user_name(), reason)?;
    let message = format!("Task #{task} is {} by {}", verdict.into_str(), host::user_name());
    Ok(done(message, result.note().map(str::to_owned)))
}

fn dispute_finding(store: &SharedStore, finding: &str, task: Option<u64>, reason: &str) -> Result<ActionOutcome> {
    let project = find_project(store)?.ok_or_else(|| dispute::unknown_finding(finding))?;
    let (finding_ref, result) = dispute::dispute(&project, finding, task.map(TaskId), reason)?;
    let message = format!("Finding {} is refuted by {}", finding_ref.finding, host::user_name());
    Ok(done(message, result.note().map(str::to_owned)))
}

fn add_task(new: AddTask) -> Result<ActionOutcome> {
    let spec = spec(new)?;
    let (project, title) = (Project::open()?, spec.title.clone());
    // Store no choice that equals the default.
    let default = project.settings.expected(&TaskSpec { auto_review: None, ..spec.clone() })?.auto_review;
    let spec = TaskSpec { auto_review: spec.auto_review.filter(|auto_review| *auto_review != default), ..spec };
    add::check_dependencies(&project, &spec)?;
    let task = add::add(&project, spec)?;
    Ok(ActionOutcome {
        message: format!("Added task #{task}: {title}"),
        hint: Some(format!("`{}` starts it", Action::WorkQueue)),
        added_task: Some(task.0),
    })
}

/// Whether tasks are reviewed by default: the initial state of the checkbox for new tasks.
pub fn reviews_by_default(root: &Path) -> bool {
    let settings = settings::load(Some(root)).map(|settings| match Repository::discover(&user_git(), root) {
        Ok(repository) => with_checks(&repository, settings),
        Err(_) => settings,
    });
    let expected = settings.and_then(|settings| Ok(settings.expected(&TaskSpec::default())?));
    // Errors in the settings are reported when the task is added.
    expected.is_ok_and(|expected| expected.auto_review)
}

fn spec(new: AddTask) -> Result<TaskSpec> {
    let kind = match new.kind.as_str() {
        "" => TaskType::default(),
        word => word.parse::<TaskType>().map_err(|_| {
            let known = <TaskType as strum::VariantNames>::VARIANTS.join(", ");
            CliError::usage(format!("there is no type `{word}`")).hint(format!("known types: {known}"))
        })?,
    };
    if new.max_cycles == Some(0) {
        return Err(CliError::usage("a task needs at least one review").hint("leave the number out, or write 1"));
    }
    Ok(TaskSpec {
        kind,
        auto_review: Some(new.auto_review),
        max_review_cycles: new.max_cycles,
        depends_on: new.depends_on.into_iter().map(TaskId).collect(),
        ..TaskSpec::from_text(&new.text)
    })
}

fn joined(notes: impl Iterator<Item = String>) -> Option<String> {
    let all: Vec<String> = notes.collect();
    (!all.is_empty()).then(|| all.join("; "))
}
