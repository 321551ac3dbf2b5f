//! A channel that runs a program of the user: JSON on stdin, the main values in its environment.

use std::sync::atomic::AtomicBool;

use signoff_core::notify::NotificationMessage;

use super::{ChannelContext, DeliveryError};
use crate::process::{CommandError, CommandOutput, ShortCommand, run_command};

/// Maximum bytes of output. The output is ignored.
const MAX_OUTPUT: usize = 1 << 20;

/// Maximum length of a quoted error message, in characters.
const MAX_ERROR: usize = 200;

pub fn run(
    words: &[String],
    message: &NotificationMessage,
    (context, cancelled): (&ChannelContext, &AtomicBool),
) -> Result<(), DeliveryError> {
    let (program, arguments) = words.split_first().ok_or(DeliveryError::Nowhere)?;
    let input = serde_json::to_string(message).unwrap_or_default() + "\n";
    let (run, task) = (message.run_id.to_string(), message.task_id.map(|task| task.to_string()));
    let question = message.question.as_ref().map_or("", |question| question.id.as_str());
    let end = run_command(&ShortCommand {
        program,
        arguments: &arguments.iter().map(String::as_str).collect::<Vec<_>>(),
        directory: &context.directory,
        environment: &[
            ("SIGNOFF_EVENT", message.event.as_str()),
            ("SIGNOFF_RUN_ID", &run),
            ("SIGNOFF_TASK_ID", task.as_deref().unwrap_or_default()),
            ("SIGNOFF_QUESTION_ID", question),
        ],
        input: input.as_bytes(),
        limit: context.timeouts.answer,
        max_stdout: MAX_OUTPUT,
        cancelled: Some(cancelled),
        escort: Some(&context.program),
    });
    let why = match end {
        Ok(answer) if answer.status.success() => return Ok(()),
        Ok(answer) => failed(&answer),
        Err(CommandError::Missing) => "is not there: look at `command`".to_owned(),
        Err(
            error @ (CommandError::TimedOut(_)
            | CommandError::Cancelled
            | CommandError::TooMuchOutput(_)
            | CommandError::Io(_)),
        ) => {
            format!("could not be run to its end: {error}")
        }
    };
    Err(DeliveryError::Command { program: program.clone(), why })
}

fn failed(answer: &CommandOutput) -> String {
    let how = match answer.status.code() {
        Some(code) => format!("ended with exit code {code}"),
        None => "was killed by a signal".to_owned(),
    };
    let said = String::from_utf8_lossy(&answer.stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty());
    let last = last.map(|line| format!(": {}", line.trim().chars().take(MAX_ERROR).collect::<String>()));
    how + &last.unwrap_or_default()
}
