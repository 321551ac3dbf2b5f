//! What waits for an answer says what was asked and what to type.

use signoff_core::view::{QuestionRow, Status};
use signoff_term::report::{About, Account, Changes, RunAccount, TaskAccount, junit, markdown};
use signoff_term::show::Folded;

use super::{asking, run, standings};
use crate::rows::row;
use crate::story::id;

fn question(id: &str, task_id: Option<u64>) -> QuestionRow {
    QuestionRow {
        id: id.to_owned(),
        run_id: 3,
        task_id,
        text: "The fixer failed. Retry or stop?".to_owned(),
        choices: ["retry", "stop"].map(str::to_owned).into(),
    }
}

/// A run that nobody drives, with these questions open.
fn waits(questions: &[QuestionRow]) -> Account {
    let folded = Folded::of(&asking().log);
    let report = folded.report(row(30, "Add logout", Status::Waiting), &id(30), Vec::new());
    let tasks = vec![TaskAccount::of(report, "Add logout".to_owned(), Changes::of(""), false)];
    let account =
        RunAccount::of(run(3, "running", "working"), &folded, (&standings(&tasks), questions), false);
    Account::of(About::run(3), String::new(), Some(account), (Vec::new(), tasks))
}

#[test]
fn a_question_is_told_with_its_choices() {
    let account = waits(&[question("q1", Some(30))]);
    insta::assert_snapshot!(account.tasks[0].standing.text, @"Waits for an answer: code gave no usable review; the others did. Retry, proceed without, or stop? Type `signoff answer 30 retry`, or `proceed`, or `stop`, or `restart`");
    let markdown = markdown::markdown(&account);
    let junit = junit::junit(&account);
    for text in [markdown, junit] {
        assert!(
            text.contains("code gave no usable review; the others did. Retry, proceed without, or stop?"),
            "{text}"
        );
        assert!(text.contains("`signoff answer 30 retry`, or `proceed`, or `stop`"), "{text}");
    }
}

#[test]
fn a_run_says_what_it_waits_for() {
    let told = |questions: &[QuestionRow]| waits(questions).standing().text.to_string();
    insta::assert_snapshot!(told(&[question("q1", Some(30))]), @"Task 30 waits for an answer: The fixer failed. Retry or stop? Type `signoff answer 30 retry`, or `stop`; then `signoff run --resume 3` goes on");
    insta::assert_snapshot!(told(&[question("q7", None), question("q8", Some(31))]), @"Waits for an answer: The fixer failed. Retry or stop? Type `signoff answer q7 retry`, or `stop`; 1 question besides; then `signoff run --resume 3` goes on");
    insta::assert_snapshot!(told(&[]), @"Left unfinished (working) with 1 task, and nobody is at work: `signoff run --resume 3` goes on");
}
