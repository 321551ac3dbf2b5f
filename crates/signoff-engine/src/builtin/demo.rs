//! `signoff __demo`: an agent without a model, for a run that shows everything and needs no key.
//!
//! It knows the small project it is shown in, two tasks, and what can be wrong with them. What it does follows from
//! the prompt and the files, like with any agent: it reports a flaw because the flaw is there, and fixes what it is
//! told of. In the first task it forgets two things, which the reviewers find; the second one cannot be decided
//! without a person.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

mod answer_format;
mod flaw;
mod story;

use answer_format::AnswerFormat;
use flaw::{Flaw, Reviewer};
use story::Story;

/// The files of the project that are known here, with their texts.
pub type Files = BTreeMap<&'static str, String>;

/// Every file the agent reads or writes.
const KNOWN: [&str; 6] = ["README.md", "bye.sh", "greet.sh", "test.sh", "test_bye.sh", "test_greet.sh"];

/// The files of the repository that the demo is shown in.
pub fn project() -> Vec<(&'static str, &'static str)> {
    vec![
        ("README.md", include_str!("demo/project/README.md")),
        ("greet.sh", include_str!("demo/project/greet.sh")),
        ("test.sh", include_str!("demo/project/test.sh")),
        ("test_greet.sh", include_str!("demo/project/test_greet.sh")),
    ]
}

/// The tasks of the demo, the title on the first line: one that is approved, one that a person must decide.
pub fn tasks() -> Vec<&'static str> {
    Story::ALL.into_iter().map(Story::task).collect()
}

/// The `signoff.toml` of the demo.
pub fn config() -> &'static str {
    include_str!("demo/signoff.toml")
}

/// What the agent is told besides the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment {
    /// `SIGNOFF_ROLE`
    pub role: String,
    /// `SIGNOFF_REVIEWER`
    pub reviewer: String,
    /// `SIGNOFF_NONCE`
    pub nonce: String,
}

/// What the agent says at the end, and the files it has changed by then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub message: String,
    pub changed: Files,
}

/// Why the agent does nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unable {
    #[error("the demo agent cannot `{0}`, only implement, fix and review")]
    Role(String),
    #[error("the demo agent knows only its own two tasks")]
    Task,
}

/// What the agent does: a function of the prompt, the environment and the files.
pub fn answer(prompt: &str, environment: &Environment, files: &Files) -> Result<Answer, Unable> {
    let story = Story::of(prompt).ok_or(Unable::Task)?;
    match environment.role.as_str() {
        "implement" => Ok(story.implement(files)),
        "fix" => Ok(fix(prompt, files)),
        "review" => Ok(Answer { message: review(prompt, environment, files), changed: Files::new() }),
        role => Err(Unable::Role(role.to_owned())),
    }
}

/// Repairs the flaws it is told of; if it recognises none of them, every one it sees itself.
fn fix(prompt: &str, files: &Files) -> Answer {
    let seen = || Flaw::ALL.into_iter().filter(|flaw| flaw.line(files).is_some());
    let told: Vec<_> = seen().filter(|flaw| prompt.contains(flaw.description())).collect();
    let flaws = if told.is_empty() { seen().collect() } else { told };
    let mut changed = Files::new();
    let mut message = String::new();
    for flaw in flaws {
        let now: Files = files.iter().chain(&changed).map(|(name, text)| (*name, text.clone())).collect();
        changed.extend(flaw.repair(&now));
        message += &format!("- {}: fixed. {}\n", flaw.file(), flaw.suggestion());
    }
    if message.is_empty() {
        message = "There is nothing left to fix.\n".to_owned();
    }
    Answer { message, changed }
}

fn review(prompt: &str, environment: &Environment, files: &Files) -> String {
    let reviewer = Reviewer::named(&environment.reviewer);
    let flaws: Vec<_> = Flaw::ALL
        .into_iter()
        .filter(|flaw| flaw.is_business_of(reviewer))
        .filter_map(|flaw| flaw.line(files).map(|line| (flaw, line)))
        .collect();
    AnswerFormat::asked_for(prompt, &environment.nonce).write(&flaws)
}

/// The program: the prompt on stdin, the project in the current directory, the message on stdout.
pub fn run() -> ExitCode {
    match work(Path::new(".")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to tell when stderr is gone.
            let _ = writeln!(io::stderr(), "signoff: {error}");
            ExitCode::FAILURE
        }
    }
}

fn work(directory: &Path) -> io::Result<()> {
    let mut prompt = String::new();
    io::stdin().read_to_string(&mut prompt)?;
    let answer = answer(&prompt, &environment(), &read(directory)?).map_err(io::Error::other)?;
    for (name, text) in &answer.changed {
        fs::write(directory.join(name), text)?;
    }
    let mut stdout = io::stdout();
    stdout.write_all(answer.message.as_bytes())?;
    stdout.flush()
}

#[expect(clippy::disallowed_methods, reason = "the one place where the demo agent reads its environment")]
fn environment() -> Environment {
    let read = |name| env::var(name).unwrap_or_default();
    Environment {
        role: read("SIGNOFF_ROLE"),
        reviewer: read("SIGNOFF_REVIEWER"),
        nonce: read("SIGNOFF_NONCE"),
    }
}

/// The known files that are there.
fn read(directory: &Path) -> io::Result<Files> {
    let mut files = Files::new();
    for name in KNOWN {
        match fs::read_to_string(directory.join(name)) {
            Ok(text) => drop(files.insert(name, text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(files)
}
