//! Reports of tasks and runs with an open question.

use signoff_core::view::{QuestionRow, TaskStatus};
use signoff_term::report::{Changes, DocumentSubject, ReportDocument, RunSection, junit, markdown};

use super::{asking, run, task_results};
use crate::rows::{row, section};
use crate::story::{history, id};

fn question(id: &str, task_id: Option<u64>) -> QuestionRow {
    QuestionRow {
        id: id.to_owned(),
        run_id: 3,
        task_id,
        text: "The fixer failed. Retry or stop?".to_owned(),
        choices: ["retry", "stop"].map(str::to_owned).into(),
    }
}

/// A run without a process, with these open questions.
fn waits(questions: &[QuestionRow]) -> ReportDocument {
    let folded = history(asking().log);
    let report = folded.report(row(30, "Add logout", TaskStatus::Waiting), &id(30), Vec::new());
    let tasks = vec![section(report, "Add logout", Changes::parse_stat(""))];
    let account = RunSection::new(run(3, "running", "working"), &folded, &task_results(&tasks), questions, false);
    ReportDocument::new(DocumentSubject::run(3), String::new(), Some(account), Vec::new(), tasks)
}

#[test]
fn a_question_is_reported_with_its_choices() {
    let account = waits(&[question("q1", Some(30))]);
    insta::assert_snapshot!(account.tasks[0].result.text, @"Waits for an answer: code gave no usable review; the others did. Retry, proceed without, or stop? Answer with `signoff answer 30 CHOICE (retry, proceed, stop, restart)`");
    let markdown = markdown::markdown(&account);
    let junit = junit::junit(&account);
    for text in [markdown, junit] {
        assert!(
            text.contains("code gave no usable review; the others did. Retry, proceed without, or stop?"),
            "{text}"
        );
        assert!(text.contains("`signoff answer 30 CHOICE (retry, proceed, stop"), "{text}");
    }
}

#[test]
fn a_run_reports_its_open_questions() {
    let text = |questions: &[QuestionRow]| waits(questions).result().text.to_string();
    insta::assert_snapshot!(text(&[question("q1", Some(30))]), @"Task 30 waits for an answer: The fixer failed. Retry or stop? Answer with `signoff answer 30 CHOICE (retry, stop)`; then `signoff run --resume 3` continues");
    insta::assert_snapshot!(text(&[question("q7", None), question("q8", Some(31))]), @"Waits for an answer: The fixer failed. Retry or stop? Answer with `signoff answer q7 CHOICE (retry, stop)`; and 1 more question; then `signoff run --resume 3` continues");
    insta::assert_snapshot!(text(&[]), @"Left unfinished (working) with 1 task, and no process is running: `signoff run --resume 3` continues");
}
