//! A channel that is a program of the person's own: JSON on stdin, the most needed of it in its environment.

use std::sync::atomic::AtomicBool;

use signoff_core::notify::Message;

use super::{Surroundings, Undelivered};
use crate::process::{Answer, AskError, Question, ask};

/// Nobody reads what it prints.
const MOST: usize = 1 << 20;

/// Of what it complained about, so much is told.
const TOLD: usize = 200;

pub fn run(
    words: &[String],
    message: &Message,
    (around, recalled): (&Surroundings, &AtomicBool),
) -> Result<(), Undelivered> {
    let (program, arguments) = words.split_first().ok_or(Undelivered::Nowhere)?;
    let input = serde_json::to_string(message).unwrap_or_default() + "\n";
    let (run, task) = (message.run_id.to_string(), message.task_id.map(|task| task.to_string()));
    let question = message.question.as_ref().map_or("", |question| question.id.as_str());
    let end = ask(&Question {
        program,
        arguments: &arguments.iter().map(String::as_str).collect::<Vec<_>>(),
        directory: &around.directory,
        environment: &[
            ("SIGNOFF_EVENT", message.event.word()),
            ("SIGNOFF_RUN_ID", &run),
            ("SIGNOFF_TASK_ID", task.as_deref().unwrap_or_default()),
            ("SIGNOFF_QUESTION_ID", question),
        ],
        input: input.as_bytes(),
        limit: around.manners.answer,
        most: MOST,
        recalled: Some(recalled),
        escort: Some(&around.program),
    });
    let why = match end {
        Ok(answer) if answer.status.success() => return Ok(()),
        Ok(answer) => failed(&answer),
        Err(AskError::Missing) => "is not there: look at `command`".to_owned(),
        Err(error @ (AskError::Stuck(_) | AskError::Recalled | AskError::Flood(_) | AskError::Io(_))) => {
            format!("could not be run to its end: {error}")
        }
    };
    Err(Undelivered::Command { program: program.clone(), why })
}

fn failed(answer: &Answer) -> String {
    let how = match answer.status.code() {
        Some(code) => format!("ended with exit code {code}"),
        None => "was killed by a signal".to_owned(),
    };
    let said = String::from_utf8_lossy(&answer.stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty());
    let last = last.map(|line| format!(": {}", line.trim().chars().take(TOLD).collect::<String>()));
    how + &last.unwrap_or_default()
}
