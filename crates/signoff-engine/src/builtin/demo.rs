//! `signoff __demo`: an agent without a model, for a complete run that needs no key.
//!
//! It knows one small project, two tasks and their possible flaws. Like any agent it works from the prompt and
//! the files: it reports a flaw that exists, and fixes what the prompt mentions. In the first task it forgets
//! two things, which the reviewers find. The second task needs a person's decision.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

mod answer_format;
mod demo_task;
mod flaw;

use answer_format::AnswerFormat;
use demo_task::DemoTask;
use flaw::{DemoReviewer, Flaw};

/// The project's known files with their texts.
pub type DemoFiles = BTreeMap<&'static str, String>;

/// Every file the agent reads or writes.
const KNOWN_FILES: [&str; 6] = ["README.md", "bye.sh", "greet.sh", "test.sh", "test_bye.sh", "test_greet.sh"];

/// The files of the demo repository.
pub fn project_files() -> Vec<(&'static str, &'static str)> {
    vec![
        ("README.md", include_str!("demo/project/README.md")),
        ("greet.sh", include_str!("demo/project/greet.sh")),
        ("test.sh", include_str!("demo/project/test.sh")),
        ("test_greet.sh", include_str!("demo/project/test_greet.sh")),
    ]
}

/// The tasks of the demo, with the title on the first line: one that gets approved, one that needs a decision.
pub fn tasks() -> Vec<&'static str> {
    DemoTask::ALL.into_iter().map(DemoTask::text).collect()
}

/// The `signoff.toml` of the demo.
pub fn config() -> &'static str {
    include_str!("demo/signoff.toml")
}

/// The agent's input besides the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DemoEnvironment {
    /// `SIGNOFF_ROLE`
    pub role: String,
    /// `SIGNOFF_REVIEWER`
    pub reviewer: String,
    /// `SIGNOFF_NONCE`
    pub nonce: String,
}

/// The agent's final message and the files it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoAnswer {
    pub message: String,
    pub changed: DemoFiles,
}

/// Why the agent does nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DemoError {
    #[error("the demo agent cannot `{0}`, only implement, fix and review")]
    Role(String),
    #[error("the demo agent knows only its own two tasks")]
    Task,
}

/// Computes the agent's answer from the prompt, the environment and the files.
pub fn answer(prompt: &str, environment: &DemoEnvironment, files: &DemoFiles) -> Result<DemoAnswer, DemoError> {
    let story = DemoTask::from_prompt(prompt).ok_or(DemoError::Task)?;
    match environment.role.as_str() {
        "implement" => Ok(story.implement(files)),
        "fix" => Ok(fix(prompt, files)),
        "review" => Ok(DemoAnswer { message: review(prompt, environment, files), changed: DemoFiles::new() }),
        role => Err(DemoError::Role(role.to_owned())),
    }
}

/// Repairs the flaws the prompt mentions, or every flaw if it mentions none of them.
fn fix(prompt: &str, files: &DemoFiles) -> DemoAnswer {
    let present = || Flaw::ALL.into_iter().filter(|flaw| flaw.line(files).is_some());
    let mentioned: Vec<_> = present().filter(|flaw| prompt.contains(flaw.description())).collect();
    let flaws = if mentioned.is_empty() { present().collect() } else { mentioned };
    let mut changed = DemoFiles::new();
    let mut message = String::new();
    for flaw in flaws {
        let now: DemoFiles = files.iter().chain(&changed).map(|(name, text)| (*name, text.clone())).collect();
        changed.extend(flaw.repair(&now));
        message += &format!("- {}: fixed. {}\n", flaw.file(), flaw.suggestion());
    }
    if message.is_empty() {
        message = "There is nothing left to fix.\n".to_owned();
    }
    DemoAnswer { message, changed }
}

fn review(prompt: &str, environment: &DemoEnvironment, files: &DemoFiles) -> String {
    let reviewer = DemoReviewer::from_name(&environment.reviewer);
    let flaws: Vec<_> = Flaw::ALL
        .into_iter()
        .filter(|flaw| flaw.is_checked_by(reviewer))
        .filter_map(|flaw| flaw.line(files).map(|line| (flaw, line)))
        .collect();
    AnswerFormat::from_prompt(prompt, &environment.nonce).write(&flaws)
}

/// Runs the program: the prompt on stdin, the project in the current directory, the message on stdout.
pub fn run() -> ExitCode {
    match work(Path::new(".")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If stderr is closed, the error is lost.
            let _ = writeln!(io::stderr(), "signoff: {error}");
            ExitCode::FAILURE
        }
    }
}

fn work(directory: &Path) -> io::Result<()> {
    let mut prompt = String::new();
    io::stdin().read_to_string(&mut prompt)?;
    let answer = answer(&prompt, &environment(), &read_files(directory)?).map_err(io::Error::other)?;
    for (name, text) in &answer.changed {
        fs::write(directory.join(name), text)?;
    }
    let mut stdout = io::stdout();
    stdout.write_all(answer.message.as_bytes())?;
    stdout.flush()
}

#[expect(clippy::disallowed_methods, reason = "the one place where the demo agent reads its environment")]
fn environment() -> DemoEnvironment {
    let read = |name| env::var(name).unwrap_or_default();
    DemoEnvironment { role: read("SIGNOFF_ROLE"), reviewer: read("SIGNOFF_REVIEWER"), nonce: read("SIGNOFF_NONCE") }
}

/// Reads the known files that exist.
fn read_files(directory: &Path) -> io::Result<DemoFiles> {
    let mut files = DemoFiles::new();
    for name in KNOWN_FILES {
        match fs::read_to_string(directory.join(name)) {
            Ok(text) => drop(files.insert(name, text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(files)
}
