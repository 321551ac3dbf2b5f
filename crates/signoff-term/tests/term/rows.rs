//! Sample store rows.

use std::collections::BTreeSet;
use std::str::FromStr;

use signoff_core::task::TaskType;
use signoff_core::view::inbox::{NextStep, ProjectSnapshot};
use signoff_core::view::{QuestionRow, TaskRow, TaskStatus};
use signoff_term::report::{Changes, TaskSection};
use signoff_term::show::{self, TaskReport};

pub fn row(id: u64, title: &str, status: TaskStatus) -> TaskRow {
    TaskRow {
        run_id: Some(3),
        max_review_cycles: Some(3),
        branch: Some(format!("signoff/task-{id}")),
        base: Some("c0ffee".to_owned()),
        worktree: Some(format!(".signoff/worktrees/{id}")),
        iteration: 1,
        cost_usd: 0.36,
        input_tokens: 2_700,
        output_tokens: 240,
        added_at: "2026-01-29T09:59:00Z".to_owned(),
        started_at: Some("2026-01-29T10:00:00Z".to_owned()),
        ..TaskRow::new(id, title, status)
    }
}

/// An ended task: outcome, final verdict, reason, cycles.
pub fn ended(row: TaskRow, outcome: &str, verdict: &str, reason: &str, cycles: u32) -> TaskRow {
    let ended_at = Some("2026-01-29T10:12:30Z".to_owned());
    TaskRow {
        outcome: parsed(outcome),
        final_verdict: parsed(verdict),
        reason: parsed(reason),
        review_cycle: cycles,
        ended_at,
        ..row
    }
}

/// The value of a word; none for an empty word.
pub fn parsed<T: FromStr>(word: &str) -> Option<T> {
    (!word.is_empty()).then(|| word.parse().unwrap_or_else(|_| panic!("unknown word: {word}")))
}

pub fn question(id: &str, task: u64) -> QuestionRow {
    QuestionRow {
        id: id.to_owned(),
        run_id: 3,
        task_id: Some(task),
        text: "3 reviews did not lead to approval. One more fix and review, proceed with the findings open, or stop?"
            .to_owned(),
        choices: ["continue", "proceed", "stop"].map(str::to_owned).to_vec(),
    }
}

/// A task in every state.
pub fn all() -> Vec<TaskRow> {
    use TaskStatus::*;
    let cycle = |row: TaskRow, review_cycle| TaskRow { review_cycle, phase: Some("review".into()), ..row };
    vec![
        ended(row(29, "Add feature X", Completed), "approved", "APPROVED", "", 3),
        ended(row(30, "Add feature Y", Completed), "exhausted", "MAX_CYCLES_REACHED", "cycles_exhausted", 3),
        cycle(row(31, "Add feature Z", InProgress), 2),
        TaskRow {
            phase: Some("implement".into()),
            ..row(32, "Add a very long feature that nobody reads to its end, ever", InProgress)
        },
        cycle(row(33, "Ask about it", Waiting), 3),
        cycle(row(34, "Wait for money", Paused), 1),
        ended(row(35, "Break\x1b[31m it", Failed), "failed", "CHANGES_REQUESTED", "reviewer_failed", 1),
        ended(row(36, "Never begun well", Failed), "failed", "", "implementer_failed", 0),
        ended(row(37, "Give up", Stuck), "stuck", "", "task_stuck", 0),
        cycle(row(38, "Wait for 37", Blocked), 1),
        ended(row(39, "Call off", Cancelled), "cancelled", "", "cancelled_by_person", 0),
        TaskRow {
            auto_review: false,
            kind: TaskType::Plan,
            ..ended(row(40, "Not reviewed", Completed), "", "", "", 0)
        },
        ended(row(41, "Accepted", Completed), "accepted", "APPROVED", "edited_by_person", 2),
        ended(row(42, "Talk", Completed), "discussion", "NEEDS_DISCUSSION", "discussion", 1),
        ended(row(43, "Skip", Completed), "completed_with_issues", "", "review_skipped", 1),
        ended(row(44, "Again", Completed), "exhausted", "CHANGES_REQUESTED", "same_finding", 2),
        TaskRow { depends_on: vec![29, 37], ..row(45, "Later", Pending) },
        TaskRow { kind: TaskType::Improve, max_review_cycles: None, ..cycle(row(104, "漢字の題", InProgress), 4) },
    ]
}

/// What to do next about a task that no process works on.
pub fn next_step(task: &TaskRow) -> NextStep {
    NextStep::for_task(task, &ProjectSnapshot { tasks: &[], runs: &[], driven: &BTreeSet::new() })
}

/// The section of a task that no process works on.
pub fn section(report: TaskReport, asked: &str, changes: Changes) -> TaskSection {
    let next = next_step(&report.task);
    TaskSection::new(report, asked.to_owned(), changes, next, false)
}

/// A report while a process works on its run.
pub fn shown(report: &TaskReport) -> String {
    let driven = report.task.run_id.into_iter().collect();
    show::text(report, &ProjectSnapshot { tasks: &[], runs: &[], driven: &driven })
}
