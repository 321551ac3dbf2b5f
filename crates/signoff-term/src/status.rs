//! The text of `signoff status`: a line per task, then the runs and the open questions.

use std::fmt::Write;

use signoff_core::machine::{FinalVerdict, OutcomeKind, Reason};
use signoff_core::view::inbox::{Action, ProjectSnapshot, TaskIndex, waits_for_its_group};
use signoff_core::view::{QuestionRow, RunRow, TaskRow, TaskStatus};

use crate::fit::{columns, count, pad, truncate_line};
use crate::{labels, runs};

/// Default maximum width of a title.
pub const MAX_TITLE_WIDTH: usize = 60;

/// All tasks in a table, the runs with an entry of their own, and the open questions. `title` is the maximum width of a
/// title.
pub fn text(snapshot: &ProjectSnapshot, questions: &[QuestionRow], title: usize) -> String {
    let tasks = snapshot.tasks;
    let listed: Vec<&RunRow> = snapshot.runs.iter().filter(|run| snapshot.lists_run(run)).collect();
    if tasks.is_empty() && questions.is_empty() && listed.is_empty() {
        return "No tasks yet.\n  signoff add \"what is to be done\" -a    adds one, reviewed until approved\n"
            .to_owned();
    }
    let mut out = rows(tasks, title);
    if !listed.is_empty() {
        out.push_str(if tasks.is_empty() { "Runs:\n" } else { "\nRuns:\n" });
        out.extend(listed.iter().map(|run| runs::entry_lines(run, snapshot)));
    }
    if !questions.is_empty() {
        out.push_str("\nQuestions:\n");
        for question in questions {
            out.push_str(&question_lines(question));
        }
    }
    out
}

/// The lines of the tasks, aligned.
pub(crate) fn rows(tasks: &[TaskRow], title: usize) -> String {
    let titles: Vec<String> = tasks.iter().map(|task| truncate_line(&task.title, title.max(1))).collect();
    let widest = titles.iter().map(|title| columns(title)).max().unwrap_or(0);
    let number = tasks.iter().map(|task| task.id.to_string().len()).max().unwrap_or(0);
    let kind = tasks.iter().map(|task| task.kind.into_str().len()).max().unwrap_or(0);
    let all = TaskIndex::new(tasks);
    let mut out = String::with_capacity(tasks.len() * 96);
    for (task, title) in tasks.iter().zip(&titles) {
        let (mark, id, word) = (task.state().mark(), task.id, task.kind.into_str());
        // Writing to a string cannot fail.
        let _ = write!(out, "  {mark} {id:>number$}. {word:kind$} {}    {}", pad(title, widest), status_text(task));
        out.truncate(out.trim_end().len());
        out.push_str(&waits_for(task, &all));
        out.push('\n');
    }
    out
}

/// A question, and the command that answers it.
pub(crate) fn question_lines(question: &QuestionRow) -> String {
    let task_prefix = question.task_id.map(|task| format!(" task {task}:")).unwrap_or_default();
    let text = truncate_line(&question.text, 400);
    format!("  {}{task_prefix} {text}\n      {}\n", question.id, Action::answer(question))
}

/// Status, verdict, cycles and reason: `completed  APPROVED (3 cycles)`, `in_progress (cycle 2/3)`.
fn status_text(task: &TaskRow) -> String {
    let status = task.status.into_str();
    match task.status {
        TaskStatus::InProgress | TaskStatus::Blocked if waits_for_its_group(task) => {
            format!("approved{}, waiting for its group", open_findings(task))
        }
        TaskStatus::Pending => status.to_owned(),
        TaskStatus::Paused => {
            let parts: Vec<_> = [Some(phase_position(task)), paused_for(task)]
                .into_iter()
                .flatten()
                .filter(|part| !part.is_empty())
                .collect();
            format!("{status:<11} {}", parts.join("  ")).trim_end().to_owned()
        }
        TaskStatus::InProgress | TaskStatus::Waiting | TaskStatus::Blocked => {
            format!("{status:<11} {}", phase_position(task)).trim_end().to_owned()
        }
        TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Stuck | TaskStatus::Cancelled => {
            let parts = [verdict(task), reason(task).map(str::to_owned)].into_iter().flatten().collect::<Vec<_>>();
            format!("{status:<9}  {}", parts.join("  ")).trim_end().to_owned()
        }
    }
}

/// What a paused task waits for.
fn paused_for(task: &TaskRow) -> Option<String> {
    match (task.reason, &task.wait) {
        (_, Some(wait)) => Some(labels::wait(wait)),
        (Some(Reason::RateLimited), None) => Some("waits for its agent (rate limit)".to_owned()),
        (Some(Reason::Budget), None) => Some("waits for budget".to_owned()),
        (Some(_) | None, None) => None,
    }
}

/// The status text without column alignment.
pub fn status_line(task: &TaskRow) -> String {
    status_text(task).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `(cycle 2/3)`, `(iteration 1/10, phase 5/9 code_review, cycle 2/11)`. Names the phase before the first review, and
/// at gates other than `review`.
fn phase_position(task: &TaskRow) -> String {
    let cycle = match (task.review_cycle, task.max_review_cycles) {
        (0, _) => None,
        (cycle, Some(max)) => Some(format!("cycle {cycle}/{}", max.max(cycle))),
        (cycle, None) => Some(format!("cycle {cycle}")),
    };
    let phase = task.phase.as_deref().filter(|phase| cycle.is_none() || *phase != "review");
    let counted =
        task.progress.map(|at| format!("iteration {}/{}, phase {}/{}", at.pass, at.max_passes, at.phase, at.phases));
    let phase = phase.map(|phase| truncate_line(phase, 40));
    let phase = match (counted, phase) {
        (Some(counted), Some(phase)) => Some(format!("{counted} {phase}")),
        (counted, phase) => counted.or(phase),
    };
    let parts: Vec<_> = phase.into_iter().chain(cycle).collect();
    if parts.is_empty() { String::new() } else { format!("({})", parts.join(", ")) }
}

fn verdict(task: &TaskRow) -> Option<String> {
    let cycles = match (task.progress, task.review_cycle) {
        (Some(progress), _) => format!(" ({})", count(progress.pass, "iteration")),
        (None, 0) => String::new(),
        (None, cycles) => format!(" ({})", count(cycles, "cycle")),
    };
    match (task.final_verdict.map(<&str>::from), task.outcome) {
        (Some(verdict), Some(OutcomeKind::Accepted)) => Some(format!("{verdict} (by a person){}", open_findings(task))),
        (Some(verdict), Some(OutcomeKind::Approved)) => Some(format!("{verdict}{cycles}{}", open_findings(task))),
        (Some(verdict), _) => Some(format!("{verdict}{cycles}")),
        (None, None) if task.status == TaskStatus::Completed => Some("not reviewed".to_owned()),
        (None, Some(OutcomeKind::NothingToReview)) => Some("nothing to review".to_owned()),
        (None, Some(OutcomeKind::CompletedWithIssues)) => Some("not approved".to_owned()),
        (None, _) => None,
    }
}

/// The number of open findings of approved work, as text.
fn open_findings(task: &TaskRow) -> String {
    labels::open_findings(u64::from(task.open_findings))
}

/// The reason's code, unless the verdict already says it.
fn reason(task: &TaskRow) -> Option<&'static str> {
    let implied = [
        (FinalVerdict::MaxCyclesReached, Reason::CyclesExhausted),
        (FinalVerdict::NeedsDiscussion, Reason::Discussion),
        (FinalVerdict::Approved, Reason::EditedByPerson),
    ];
    let is_implied = |reason: &Reason| {
        task.final_verdict.is_some_and(|verdict| implied.contains(&(verdict, *reason)))
            || matches!(reason, Reason::CancelledByPerson | Reason::NothingToReview)
    };
    task.reason.filter(|reason| !is_implied(reason)).map(<&str>::from)
}

/// The tasks that a pending task waits for.
fn waits_for(task: &TaskRow, all: &TaskIndex) -> String {
    let ids: Vec<_> = all.unmet_dependencies(task).iter().map(u64::to_string).collect();
    if ids.is_empty() { String::new() } else { format!("     (waits for {})", ids.join(", ")) }
}
