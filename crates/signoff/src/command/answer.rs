//! `signoff answer`: answers an open question.

use signoff_core::command::{LoopCommand, parse_choice};
use signoff_core::ids::LoopId;
use signoff_core::machine::Loop;
use signoff_core::view::inbox::Action;
use signoff_core::view::{QuestionRow, RunState};
use signoff_store::{QuestionRef, Store};
use signoff_term::json::{AnswerReport, VERSION};
use signoff_term::line;

use super::decide::{DecisionResult, decide};
use crate::{CliError, CommandExit, Console, ReadOnlyProject, Result, host, queries};

/// Answer an open question
///
/// A running signoff continues at once; otherwise `signoff work` or `signoff run --resume` does.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff answer 29 retry\n  signoff answer q3 proceed")]
pub struct Args {
    /// The number of the task or of the question
    #[arg(value_name = "ID")]
    id: String,
    /// The choice
    choice: String,
}

/// A recorded answer.
pub struct RecordedAnswer {
    pub question: QuestionRow,
    pub question_ref: QuestionRef,
    pub result: DecisionResult,
}

/// Answers an open question, identified by its own number or that of its task.
pub fn answer(project: &ReadOnlyProject, id: &str, choice: &str) -> Result<RecordedAnswer> {
    let question = open_question(project, id)?;
    if !question.choices.iter().any(|offered| offered == choice) {
        return Err(CliError::usage(format!("`{choice}` is not a choice of {}", question.id))
            .hint(format!("choose one of {}", question.choices.join(", "))));
    }
    let question_ref = find_question(project, &question)?;
    let question_id = Some(question_ref.question);
    let choice = parse_choice(choice, &question)?;
    let command = LoopCommand::Answer { question: question_id, choice, by: host::user_name() };
    let result = decide(project, question_ref.run, &question_ref.loop_id, command)?;
    Ok(RecordedAnswer { question, question_ref, result })
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    let project = ReadOnlyProject::find()?.ok_or_else(|| no_question(&args.id))?;
    let RecordedAnswer { question, question_ref, result } = answer(&project, &args.id, &args.choice)?;
    let QuestionRef { run, loop_id, .. } = question_ref;
    result.print_note(console);
    // Otherwise the process that drives the run prints what follows.
    let recorded = matches!(result, DecisionResult::Recorded { .. });
    let run_state = recorded.then(|| queries::run_state(&*project.store, run)).transpose()?;
    let (id, choice) = (question.id.clone(), args.choice.clone());
    console.print(&AnswerReport { version: VERSION, question: id, task_id: question.task_id, choice }, || {
        let ended = run_state.iter().flat_map(|run_state| line::ending_lines(run_state, &loop_id));
        let ended: String = ended.map(|line| format!("{line}\n")).collect();
        format!("{} answered: {}\n{ended}", question.id, args.choice)
    })?;
    let next = run_state.as_ref().map(|run_state| next_step(&project, run_state, &loop_id)).transpose()?;
    if let Some(next) = next.flatten() {
        console.note(&format!("`{next}` continues"));
    }
    Ok(CommandExit::Done)
}

/// The command that continues after an answer, if no process is driving the run.
pub fn next_step(project: &ReadOnlyProject, run_state: &RunState, loop_id: &LoopId) -> Result<Option<Action>> {
    let has_ended = run_state.loop_state(loop_id).is_some_and(Loop::is_done);
    Ok(Action::after_answer(run_state.run, loop_id, has_ended, &project.tasks()?))
}

fn no_question(id: &str) -> CliError {
    CliError::usage(format!("there is no open question {id}")).hint("`signoff status` shows what each task waits for")
}

/// Looks up the loop that asked a question.
fn find_question(project: &ReadOnlyProject, question: &QuestionRow) -> Result<QuestionRef> {
    let number = question.id.strip_prefix('q').and_then(|number| number.parse().ok());
    let question_ref = number.map(|number| project.store.question(number)).transpose()?.flatten();
    question_ref.filter(|question| question.open).ok_or_else(|| no_question(&question.id))
}

/// Finds an open question by its number or that of its task.
fn open_question(project: &ReadOnlyProject, id: &str) -> Result<QuestionRow> {
    let open = project.store.questions()?;
    let task = crate::run_loop::task_id(id).ok();
    let own = |row: &&QuestionRow| row.id == id || task.is_some_and(|task| row.task_id == Some(task.0));
    if let Some(row) = open.iter().find(own) {
        return Ok(row.clone());
    }
    if open.is_empty() {
        return Err(no_question(id));
    }
    let ids: Vec<&str> = open.iter().map(|row| row.id.as_str()).collect();
    Err(CliError::usage(format!("there is no open question {id}")).hint(format!("open questions: {}", ids.join(", "))))
}
