//! `signoff answer`: a person's answer to an open question.

use signoff_core::command::Command;
use signoff_core::ids::{LoopId, RunId};
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

/// An answer that was taken in.
pub struct Answered {
    pub question: QuestionRow,
    pub place: QuestionPlace,
    pub taken: Taken,
}

/// Answers an open question, which is known by its own number or by its task's.
pub fn answer(desk: &Desk, id: &str, choice: &str) -> Result<Answered, Failure> {
    let question = find(desk, id)?;
    if !question.choices.iter().any(|known| known == choice) {
        return Err(Failure::usage(format!("`{choice}` is not a choice of {}", question.id))
            .hint(format!("choose one of {}", question.choices.join(", "))));
    }
    let place = place(desk, &question)?;
    let asked = Some(place.question);
    let wish = Command::Answer { question: asked, choice: choice.to_owned(), by: door::person() };
    let taken = decide(desk, place.run, &place.loop_id, wish)?;
    Ok(Answered { question, place, taken })
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let desk = Desk::find()?.ok_or_else(|| no_question(&args.id))?;
    let Answered { question, place, taken } = answer(&desk, &args.id, &args.choice)?;
    let QuestionPlace { run, loop_id, .. } = place;
    taken.tell(console);
    let recorded = matches!(taken, Taken::Recorded { .. });
    // Whoever drives the run tells it there.
    let ended = if recorded { line::end(&desk.store.log(run)?, &loop_id) } else { Vec::new() };
    if console.json {
        let (id, choice) = (question.id.clone(), args.choice.clone());
        console.json(&AnswerReport { version: VERSION, question: id, task_id: question.task_id, choice })?;
    } else {
        let ended: String = ended.iter().map(|line| format!("{line}\n")).collect();
        console.text(&format!("{} answered: {}\n{ended}", question.id, args.choice))?;
    }
    if let Some(next) = if recorded { next(&desk, (run, &loop_id), &ended)? } else { None } {
        console.note(&next);
    }
    Ok(Exit::Done)
}

/// What goes on with what was answered, where nobody does so by himself: `ended` are the lines that tell its end.
pub fn next(
    desk: &Desk,
    (run, loop_id): (RunId, &LoopId),
    ended: &[String],
) -> Result<Option<String>, Failure> {
    // What a part of a run came to is told to the run when it is taken up.
    if loop_id.serves_the_run() {
        return Ok(Some(format!("`signoff run --resume {run}` goes on")));
    }
    let left = |row: &TaskRow| {
        row.run_id == Some(run.0) && matches!(row.status, Status::Pending | Status::InProgress)
    };
    let goes_on = ended.is_empty() || desk.tasks()?.iter().any(left);
    Ok(goes_on.then(|| "`signoff work` goes on".to_owned()))
}

fn no_question(id: &str) -> Failure {
    Failure::usage(format!("there is no open question {id}"))
        .hint("`signoff status` shows what each task waits for")
}

/// Where a question was asked.
fn place(desk: &Desk, question: &QuestionRow) -> Result<QuestionPlace, Failure> {
    let number = question.id.strip_prefix('q').and_then(|number| number.parse().ok());
    let place = number.map(|number| desk.store.question(number)).transpose()?.flatten();
    place.filter(|place| place.open).ok_or_else(|| no_question(&question.id))
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
        return Err(no_question(id));
    }
    let ids: Vec<&str> = open.iter().map(|row| row.id.as_str()).collect();
    Err(Failure::usage(format!("there is no open question {id}"))
        .hint(format!("open are {}", ids.join(", "))))
}
