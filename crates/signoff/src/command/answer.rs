//! `signoff answer`: a person's answer to an open question.

use signoff_core::command::Command;
use signoff_core::view::{QuestionRow, Status, TaskRow};
use signoff_store::{QuestionPlace, Store};
use signoff_term::json::{AnswerReport, VERSION};
use signoff_term::line;

use super::decide::{Taken, decide};
use crate::console::Console;
use crate::desk::Desk;
use crate::door;
use crate::failure::{Exit, Failure};

/// Answer an open question
///
/// A running signoff goes on at once; otherwise the next `signoff work` or `signoff run --resume` does.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff answer 29 retry\n  signoff answer q3 proceed")]
pub struct Args {
    /// The task, or the question
    #[arg(value_name = "ID")]
    id: String,
    /// One of the question's choices
    choice: String,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let desk = Desk::find()?.ok_or_else(no_question)?;
    let question = find(&desk, &args.id)?;
    if !question.choices.contains(&args.choice) {
        return Err(Failure::usage(format!("`{}` is not a choice of {}", args.choice, question.id))
            .hint(format!("choose one of {}", question.choices.join(", "))));
    }
    let QuestionPlace { run, loop_id, question: asked, .. } = place(&desk, &question)?;
    let wish = Command::Answer { question: Some(asked), choice: args.choice.clone(), by: door::person() };
    let taken = decide(&desk, run, &loop_id, wish, console)?;
    // Whoever drives the run tells it there.
    let ended =
        if taken == Taken::Recorded { line::end(&desk.store.log(run)?, &loop_id) } else { Vec::new() };
    if console.json {
        let (id, choice) = (question.id.clone(), args.choice.clone());
        console.json(&AnswerReport { version: VERSION, question: id, task_id: question.task_id, choice })?;
    } else {
        let ended: String = ended.iter().map(|line| format!("{line}\n")).collect();
        console.text(&format!("{} answered: {}\n{ended}", question.id, args.choice))?;
    }
    // What a part of a run came to is told to the run when it is taken up.
    if taken == Taken::Recorded && loop_id.serves_the_run() {
        console.note(&format!("`signoff run --resume {run}` goes on"));
        return Ok(Exit::Done);
    }
    let left = |row: &TaskRow| {
        row.run_id == Some(run.0) && matches!(row.status, Status::Pending | Status::InProgress)
    };
    if taken == Taken::Recorded && (ended.is_empty() || desk.tasks()?.iter().any(left)) {
        console.note("`signoff work` goes on");
    }
    Ok(Exit::Done)
}

fn no_question() -> Failure {
    Failure::usage("there is no open question").hint("`signoff status` shows what each task waits for")
}

/// Where a question was asked.
fn place(desk: &Desk, question: &QuestionRow) -> Result<QuestionPlace, Failure> {
    let number = question.id.strip_prefix('q').and_then(|number| number.parse().ok());
    let place = number.map(|number| desk.store.question(number)).transpose()?.flatten();
    place.filter(|place| place.open).ok_or_else(no_question)
}

/// The open question of this number, or of this task.
fn find(desk: &Desk, id: &str) -> Result<QuestionRow, Failure> {
    let open = desk.store.questions()?;
    let task = crate::drive::task_id(id).ok();
    let own = |row: &&QuestionRow| row.id == id || task.is_some_and(|task| row.task_id == Some(task.0));
    if let Some(row) = open.iter().find(own) {
        return Ok(row.clone());
    }
    if open.is_empty() {
        return Err(no_question());
    }
    let ids: Vec<&str> = open.iter().map(|row| row.id.as_str()).collect();
    Err(Failure::usage(format!("there is no open question {id}"))
        .hint(format!("open are {}", ids.join(", "))))
}
