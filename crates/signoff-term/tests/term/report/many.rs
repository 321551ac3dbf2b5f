//! Reports of runs with more tasks than fit in a pull request.

use signoff_core::view::TaskStatus;
use signoff_term::report::markdown::{LIMIT, markdown};
use signoff_term::report::{Changes, DocumentSubject, MAX_COUNTED_TASKS, ReportDocument, RunSection, TaskSection};

use super::{run, stopped, task_results};
use crate::rows::{self, ended, row};
use crate::story::id;

/// A run in which only this task failed.
fn failed_at(failed: u64, tasks: u64) -> ReportDocument {
    let folded = stopped();
    let section = |number: u64| {
        let title = format!("Add feature {number} to what people see of it in every form there is");
        let (row, of) = if number == failed {
            (ended(row(number, &title, TaskStatus::Failed), "failed", "CHANGES_REQUESTED", "fixer_failed", 1), 30)
        } else {
            (ended(row(number, &title, TaskStatus::Completed), "approved", "APPROVED", "", 1), 29)
        };
        let changes =
            if of == 29 && tasks > MAX_COUNTED_TASKS as u64 { Changes::uncounted() } else { Changes::parse_stat("") };
        rows::section(folded.report(row, &id(of), Vec::new()), &title, changes)
    };
    let tasks: Vec<TaskSection> = (1..=tasks).map(section).collect();
    let run = RunSection::new(run(3, "failed", "done"), &folded, &task_results(&tasks), &[], false);
    ReportDocument::new(DocumentSubject::run(3), "2026-01-29T11:00:00Z".to_owned(), Some(run), Vec::new(), tasks)
}

#[test]
fn failed_tasks_come_first_and_in_full() {
    let markdown = markdown(&failed_at(777, 1_000));
    assert!(markdown.len() <= LIMIT, "{}", markdown.len());
    let lines: Vec<&str> = markdown.lines().collect();
    assert!(lines[2].starts_with("**Failed: 1 of 1000 tasks did not pass (1 failed or stopped)**"), "{}", lines[2]);
    let at = |words: &str| {
        lines.iter().position(|line| line.contains(words)).unwrap_or_else(|| panic!("{words}:\n{markdown}"))
    };
    let first_row = at("|--:|---|---|--:|--:|---|") + 1;
    assert!(lines[first_row].starts_with("| 777 |"), "{}", lines[first_row]);
    assert!(at("| 777 | the session stays open") < at("Task 777: What was asked"));
    assert!(at("Task 777: Attempts (5)") < at("Task 1: What was asked"));
    assert!(at("Cost and time: ") < at("**Left out**"), "what it cost is never left out");
}

#[test]
fn the_note_about_uncounted_changes_is_printed_once() {
    let markdown = markdown(&failed_at(777, 1_000));
    assert_eq!(markdown.matches("not counted in a run of more than 200 tasks").count(), 1, "{markdown}");
    let rows = markdown.lines().filter(|line| line.contains("✓ Approved after 1 review")).count();
    assert!((50..300).contains(&rows), "{rows} rows of approved tasks");
    let left = markdown.lines().find(|line| line.starts_with("**Left out**")).expect("not all has room");
    assert!(left.contains(&format!("tasks ({})", 999 - rows)), "{left}");
}

#[test]
fn the_text_fits_however_many_tasks_there_are() {
    for tasks in [1, 40, 200, 201, 600] {
        let markdown = markdown(&failed_at(tasks, tasks));
        assert!(markdown.len() <= LIMIT, "{} for {tasks} tasks", markdown.len());
        assert!(markdown.contains(&format!("| {tasks} | Add feature {tasks} ")), "{markdown}");
        assert!(markdown.contains(&format!("Task {tasks}: Findings in full (2)")), "{markdown}");
    }
}
