//! The text of `signoff status`: a line for each task, then what people are asked.

use std::collections::BTreeMap;
use std::fmt::Write;

use signoff_core::view::{QuestionRow, RunRow, Status, TaskRow};

use crate::attention::Scene;
use crate::fit::{columns, count, cut, pad};
use crate::{runs, words};

/// The widest a title may be where nobody says otherwise.
pub const TITLE: usize = 60;

/// All tasks in columns, titles cut at so many columns, the runs that are more than their tasks, and the open questions.
pub fn text(scene: &Scene, questions: &[QuestionRow], title: usize) -> String {
    let tasks = scene.tasks;
    let told: Vec<&RunRow> = scene.runs.iter().filter(|run| runs::is_listed(run, scene)).collect();
    if tasks.is_empty() && questions.is_empty() && told.is_empty() {
        return "No tasks yet.\n  signoff add \"what is to be done\" -a    adds one, reviewed until approved\n"
            .to_owned();
    }
    let mut out = rows(tasks, title);
    if !told.is_empty() {
        out.push_str(if tasks.is_empty() { "Runs:\n" } else { "\nRuns:\n" });
        out.extend(told.iter().map(|run| runs::told(run, scene)));
    }
    if !questions.is_empty() {
        out.push_str("\nQuestions:\n");
        for question in questions {
            out.push_str(&asked(question));
        }
    }
    out
}

/// The tasks' lines, aligned with each other.
pub(crate) fn rows(tasks: &[TaskRow], title: usize) -> String {
    let titles: Vec<String> = tasks.iter().map(|task| cut(&task.title, title.max(1))).collect();
    let widest = titles.iter().map(|title| columns(title)).max().unwrap_or(0);
    let number = tasks.iter().map(|task| task.id.to_string().len()).max().unwrap_or(0);
    let kind = tasks.iter().map(|task| task.kind.word().len()).max().unwrap_or(0);
    let open: BTreeMap<u64, Status> = tasks.iter().map(|task| (task.id, task.status)).collect();
    let mut out = String::with_capacity(tasks.len() * 96);
    for (task, title) in tasks.iter().zip(&titles) {
        let (mark, id, word) = (task.state().mark(), task.id, task.kind.word());
        // Writing to a string cannot fail.
        let _ =
            write!(out, "  {mark} {id:>number$}. {word:kind$} {}    {}", pad(title, widest), standing(task));
        out.truncate(out.trim_end().len());
        out.push_str(&waits_for(task, &open));
        out.push('\n');
    }
    out
}

/// A question with what to type.
pub(crate) fn asked(question: &QuestionRow) -> String {
    let id = question.task_id.map_or_else(|| question.id.clone(), |task| task.to_string());
    let whose = question.task_id.map(|task| format!(" task {task}:")).unwrap_or_default();
    let text = cut(&question.text, 400);
    let choices = question.choices.join(", ");
    format!("  {}{whose} {text}\n      signoff answer {id} CHOICE    ({choices})\n", question.id)
}

/// Status, verdict, cycles and reason: `completed  APPROVED (3 cycles)`, `in_progress (cycle 2/3)`.
fn standing(task: &TaskRow) -> String {
    let status = task.status.word();
    match task.status {
        Status::InProgress | Status::Blocked if waits_for_its_group(task) => {
            format!("approved{}, waiting for its group", open(task))
        }
        Status::Pending => status.to_owned(),
        Status::Paused => {
            let parts: Vec<_> = [Some(place(task)), paused_for(task)]
                .into_iter()
                .flatten()
                .filter(|part| !part.is_empty())
                .collect();
            format!("{status:<11} {}", parts.join("  ")).trim_end().to_owned()
        }
        Status::InProgress | Status::Waiting | Status::Blocked => {
            format!("{status:<11} {}", place(task)).trim_end().to_owned()
        }
        Status::Completed | Status::Failed | Status::Stuck | Status::Cancelled => {
            let parts =
                [verdict(task), reason(task).map(str::to_owned)].into_iter().flatten().collect::<Vec<_>>();
            format!("{status:<9}  {}", parts.join("  ")).trim_end().to_owned()
        }
    }
}

/// Whether a task is approved and lands when all of its group are.
pub fn waits_for_its_group(task: &TaskRow) -> bool {
    task.status != Status::Completed && task.state().is_approved()
}

/// What a paused task waits for.
fn paused_for(task: &TaskRow) -> Option<String> {
    match (task.reason.as_deref(), &task.wait) {
        (_, Some(wait)) => Some(words::wait(wait)),
        (Some("rate_limited"), None) => Some("waits for its agent (rate limit)".to_owned()),
        (Some("budget"), None) => Some("waits for money (budget)".to_owned()),
        (Some(_) | None, None) => None,
    }
}

/// The same without columns.
pub fn in_words(task: &TaskRow) -> String {
    standing(task).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `(cycle 2/3)`, `(iteration 1/10, phase 5/9 code_review, cycle 2/11)`; before the first review, and at other gates than `review`, the phase.
fn place(task: &TaskRow) -> String {
    let cycle = match (task.review_cycle, task.max_review_cycles) {
        (0, _) => None,
        (cycle, Some(max)) => Some(format!("cycle {cycle}/{}", max.max(cycle))),
        (cycle, None) => Some(format!("cycle {cycle}")),
    };
    let phase = task.phase.as_deref().filter(|phase| cycle.is_none() || *phase != "review");
    let counted = task.place.map(|place| {
        format!("iteration {}/{}, phase {}/{}", place.pass, place.max_passes, place.phase, place.phases)
    });
    let phase = phase.map(|phase| cut(phase, 40));
    let phase = match (counted, phase) {
        (Some(counted), Some(phase)) => Some(format!("{counted} {phase}")),
        (counted, phase) => counted.or(phase),
    };
    let parts: Vec<_> = phase.into_iter().chain(cycle).collect();
    if parts.is_empty() { String::new() } else { format!("({})", parts.join(", ")) }
}

fn verdict(task: &TaskRow) -> Option<String> {
    let cycles = match (task.place, task.review_cycle) {
        (Some(place), _) => format!(" ({})", count(place.pass, "iteration")),
        (None, 0) => String::new(),
        (None, cycles) => format!(" ({})", count(cycles, "cycle")),
    };
    match (&task.final_verdict, task.outcome.as_deref()) {
        (Some(verdict), Some("accepted")) => Some(format!("{verdict} (by a person){}", open(task))),
        (Some(verdict), Some("approved")) => Some(format!("{verdict}{cycles}{}", open(task))),
        (Some(verdict), _) => Some(format!("{verdict}{cycles}")),
        (None, None) if task.status == Status::Completed => Some("not reviewed".to_owned()),
        (None, Some("nothing_to_review")) => Some("nothing to review".to_owned()),
        (None, Some("completed_with_issues")) => Some("not approved".to_owned()),
        (None, _) => None,
    }
}

/// What is left open of approved work.
fn open(task: &TaskRow) -> String {
    words::open_findings(u64::from(task.open_findings))
}

/// The reason's code, where the verdict does not say it already.
fn reason(task: &TaskRow) -> Option<&str> {
    let said = [
        ("MAX_CYCLES_REACHED", "cycles_exhausted"),
        ("NEEDS_DISCUSSION", "discussion"),
        ("APPROVED", "edited_by_person"),
    ];
    let verdict = task.final_verdict.as_deref().unwrap_or_default();
    let known = |reason: &&str| {
        said.contains(&(verdict, *reason)) || matches!(*reason, "cancelled_by_person" | "nothing_to_review")
    };
    task.reason.as_deref().filter(|reason| !known(reason))
}

/// What a pending task depends on and is not there yet.
fn waits_for(task: &TaskRow, all: &BTreeMap<u64, Status>) -> String {
    if task.status != Status::Pending {
        return String::new();
    }
    let open = |id: &&u64| match all.get(id) {
        // A run goes on past what was cancelled.
        Some(Status::Cancelled) => task.run_id.is_none(),
        Some(status) => *status != Status::Completed,
        None => false,
    };
    let ids: Vec<_> = task.depends_on.iter().filter(open).map(u64::to_string).collect();
    if ids.is_empty() { String::new() } else { format!("     (waits for {})", ids.join(", ")) }
}
