//! Converts every error into a message, a location, a hint and an exit code.

use std::fmt;
use std::process::ExitCode;

use signoff_core::command::CommandRefusal;
use signoff_core::ids::Commit;
use signoff_core::settings::ConfigError;
use signoff_core::source::{self, SourceError};
use signoff_engine::custom_prompts::PromptError;
use signoff_engine::error::EngineError;
use signoff_engine::git::GitError;
use signoff_engine::tracker::TrackerError;
use signoff_store::StoreError;

use crate::console::plain_text;

/// The result of what a command does.
pub type Result<T, E = CliError> = std::result::Result<T, E>;

/// How the program exits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum CommandExit {
    /// Everything requested is approved, or done if review was turned off.
    Done = 0,
    /// Something failed: an answer broke its contract, output could not be written.
    Failed = 1,
    /// The command line, or a file it names, is wrong.
    Usage = 2,
    /// Nothing failed, but a task needs the user.
    Attention = 3,
    /// The user interrupted it.
    Interrupted = 130,
}

impl CommandExit {
    /// Converts an exit code.
    pub fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Done,
            2 => Self::Usage,
            3 => Self::Attention,
            130 => Self::Interrupted,
            _ => Self::Failed,
        }
    }
}

impl From<CommandExit> for ExitCode {
    fn from(exit: CommandExit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command failed, and what the user can do about it.
#[derive(Debug)]
pub struct CliError {
    pub exit: CommandExit,
    /// What happened, in one line.
    pub message: String,
    /// Where it happened.
    pub location: Option<String>,
    /// What to do next.
    pub hint: Option<String>,
}

impl CliError {
    /// The command line, or a file it names, is wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(CommandExit::Usage, message)
    }

    /// The work itself failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(CommandExit::Failed, message)
    }

    /// The user interrupted it.
    pub fn interrupted() -> Self {
        Self::new(CommandExit::Interrupted, "interrupted")
    }

    fn new(exit: CommandExit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), location: None, hint: None }
    }

    /// The message and the hint in one line.
    pub fn one_line(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}: {hint}", self.message),
            None => self.message.clone(),
        }
    }

    /// Adds where it happened: `file`, `file:line` or `file:line:column`.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.location = Some(place.into());
        self
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}", plain_text(&self.message))?;
        if let Some(place) = &self.location {
            writeln!(f, "  --> {}", plain_text(place))?;
        }
        if let Some(hint) = &self.hint {
            writeln!(f, "hint: {}", plain_text(hint))?;
        }
        Ok(())
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        let said = error.to_string();
        match error {
            ConfigError::File { file, line, message } => Self::usage(message)
                .at(format!("{file}:{line}"))
                .hint("fix the file, then look at it with `signoff config`"),
            ConfigError::InFlagOrVariable { name, message } => {
                Self::usage(message).at(&name).hint(format!("give {name} another value, or leave it out"))
            }
            ConfigError::WithoutLocation { message } => {
                Self::usage(message).hint("`signoff config` shows every setting, and where it comes from")
            }
            ConfigError::UnknownWorkflow { .. } => {
                Self::usage(said).hint("`signoff workflow list` shows the presets")
            }
            ConfigError::NoAgent => Self::usage(said)
                .hint("install one and run `signoff init` (with `--force` where signoff.toml is there already), or write an [agents.NAME] table into signoff.toml"),
            ConfigError::Unassigned { .. } => {
                Self::usage(said).hint("name one as `implement` in [roles] of signoff.toml")
            }
        }
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        let usage = |hint: &str| Self::usage(error.to_string()).hint(hint);
        let failed = |hint: &str| Self::failed(error.to_string()).hint(hint);
        let in_file = |hint: &str| failed(hint).at(".signoff/signoff.db");
        match &error {
            StoreError::NoRun(_) | StoreError::NoTask(_) => usage("`signoff status` lists what there is"),
            StoreError::TaskTaken(task) => usage(&format!("`signoff show {task}` shows where it stands")),
            StoreError::IssueClaimed { by, .. } => usage(&format!("`signoff show {by}` shows where it stands")),
            StoreError::LeaseHeld(_) | StoreError::Fenced(_) => {
                failed("wait for it to end, or stop it with Ctrl-C where it runs")
            }
            StoreError::DiskFull => failed("make room and type the same again: nothing was lost"),
            StoreError::DatabaseRemoved => in_file(
                "what the agents did is on their branches; put the file back and type the same again, or the next command begins a new one",
            ),
            StoreError::Replaced => {
                in_file("put it back, and type the same again; what the agents did is on their branches")
            }
            StoreError::Busy => failed("try again when it is done"),
            StoreError::NewerVersion { .. } => usage("update signoff"),
            StoreError::Damaged(_) => in_file(
                "`signoff doctor --rebuild` rebuilds the tables; if it fails, put back a copy of the file, or move it away and start again: all branches are still there",
            ),
            StoreError::Unreadable { .. } => in_file("`signoff doctor` says more"),
            StoreError::Other(_) => {
                in_file("check that the file and its directory are writable, then run the same command again")
            }
        }
    }
}

impl From<EngineError> for CliError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Store(error) => error.into(),
            EngineError::Git(error) => error.into(),
            EngineError::Config(error) => error.into(),
            EngineError::Tracker(error) => error.into(),
            EngineError::Prompt(error) => error.into(),
            EngineError::WorktreeInUse { .. } => Self::failed(error.to_string()).hint(
                "another task of the same branch is at work: `signoff status` shows it; try again when it is done",
            ),
            EngineError::NotLanded { message, hint } => Self::failed(message).hint(hint),
            EngineError::Io { .. } | EngineError::Internal(_) | EngineError::Log { .. } => {
                Self::failed(error.to_string()).hint("nothing was lost: `signoff work` goes on")
            }
        }
    }
}

impl From<PromptError> for CliError {
    fn from(error: PromptError) -> Self {
        Self::usage(error.to_string()).hint(match error {
            PromptError::Missing { .. } | PromptError::NotAFile { .. } => "write it, or name another file",
            PromptError::NotText { .. } => "save it as UTF-8",
            PromptError::Blank { .. } => "write the prompt, or leave it out",
            PromptError::Unreadable { .. } => "check that you may read it",
        })
    }
}

impl From<TrackerError> for CliError {
    fn from(error: TrackerError) -> Self {
        let message = error.to_string();
        match error {
            TrackerError::File(error) => error.into(),
            TrackerError::Unreadable { .. } => Self::usage(message).hint("check the path, and that you may read it"),
            TrackerError::NotRun { command, .. }
            | TrackerError::Failed { command, .. }
            | TrackerError::Unparsable { command, .. } => {
                // All other tracker commands are started by a run, which can be resumed.
                let again = match command.ends_with(" ready --json") {
                    true => "type the same again, or `signoff run --resume` where a run was begun",
                    false => "`signoff run --resume` goes on",
                };
                Self::failed(message)
                    .hint(format!("type `{command}` yourself at the top of the main checkout; once it works, {again}"))
            }
        }
    }
}

impl From<GitError> for CliError {
    fn from(error: GitError) -> Self {
        let usage = |hint: &str| Self::usage(error.to_string()).hint(hint);
        let failed = |hint: &str| Self::failed(error.to_string()).hint(hint);
        match &error {
            GitError::NotARepository(_) => not_a_repository(),
            GitError::Bare(_) => usage("work in a clone with files"),
            GitError::UnsupportedPath(_) => usage("give the directory another name"),
            GitError::NoGit | GitError::TooOld => usage("install git 2.32 or newer"),
            GitError::TooOldToMerge => usage("install git 2.40 or newer"),
            GitError::NoCommits => usage("make the first one: git commit --allow-empty -m \"Start\""),
            GitError::UnknownRevision(_) => usage("`git log --oneline --all` lists commits"),
            GitError::BadBranchName(_) => Self::usage(error.to_string()),
            GitError::Locked { file } => {
                failed("wait for the other program; if none runs, remove the file and type the same again")
                    .at(file.display().to_string())
            }
            GitError::DiskFull => failed("make room and type the same again: nothing was lost"),
            GitError::BranchTaken { branch, .. } => failed(&format!(
                "give it another name, `git branch -m {branch} OTHER`; then `signoff work` goes on where it was"
            )),
            GitError::OffBranch { branch, .. } => failed(&format!(
                "put there what you want to keep, on {branch}; then `signoff work` goes on where it was"
            )),
            GitError::Unfinished { operation, .. } => {
                failed(&format!("end the {operation} there or give it up; then `signoff work` goes on where it was"))
            }
            GitError::Linked(_) => failed("remove the link, or name the directory it leads to as worktree.directory"),
            GitError::BranchGone(branch) => failed(&format!(
                "`git branch {branch} COMMIT` makes it again, where git still has a commit of it; else add the task anew"
            )),
            GitError::Dirty { .. } => {
                failed("nothing was changed. Commit or stash them, or be on another branch; then type the same again")
            }
            GitError::CheckoutBehind { from, to, files, .. } => {
                let files: Vec<String> = files.iter().map(|file| shell_quote(&file.display().to_string())).collect();
                failed(&format!(
                    "what landed is safe on the branch, but a commit of these files as they are would undo it in them. \
                     `git diff {from} {to} -- {files} | git apply` brings it into them, and where it \
                     does not fit `git show HEAD:FILE` shows it; then type the same again",
                    from = short_id(from),
                    to = short_id(to),
                    files = files.join(" "),
                ))
            }
            GitError::WouldOverwrite { .. } => {
                failed("nothing was changed. Move the file away, then type the same again")
            }
            GitError::BranchMoved(_) => failed("nothing was lost: type the same again when it is quiet"),
            GitError::WorktreeGone(_)
            | GitError::NotOurs(_)
            | GitError::Incomplete { .. }
            | GitError::UncommittedWork(_)
            | GitError::OutsideWorktree(_)
            | GitError::StillChanging(_)
            | GitError::TimedOut { .. }
            | GitError::Failed { .. }
            | GitError::Io { .. } => failed("fix it, then `signoff work` goes on where it was"),
        }
    }
}

/// The error outside of a repository.
pub fn not_a_repository() -> CliError {
    CliError::usage("this is not a git repository").hint("go to one, or make one with `git init`")
}

/// The abbreviated id of a commit.
fn short_id(commit: &Commit) -> &str {
    commit.as_str().get(..12).unwrap_or(commit.as_str())
}

/// Quotes a word for a shell.
fn shell_quote(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte);
    if word.bytes().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

impl From<CommandRefusal> for CliError {
    fn from(refusal: CommandRefusal) -> Self {
        Self::usage(refusal.to_string()).hint("`signoff show ID` shows the state of the task")
    }
}

impl From<SourceError> for CliError {
    fn from(error: SourceError) -> Self {
        let formats: Vec<_> = source::TaskFormat::ALL.iter().map(|format| format.as_str()).collect();
        Self::usage(&error.message)
            .at(format!("{}:{}", error.file, error.line))
            .hint(format!("fix the file, or say what it is with --as: {}", formats.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_its_location_and_a_hint() {
        let failure = CliError::usage("a plan without tasks").at("plan.md:1").hint("write one");
        insta::assert_snapshot!(failure, @r"
        error: a plan without tasks
          --> plan.md:1
        hint: write one
        ");
    }

    #[test]
    fn an_error_contains_no_terminal_control_characters() {
        let failure = CliError::usage("no \u{1b}[31mred\u{1b}[0m file");
        insta::assert_snapshot!(failure, @"error: no [31mred[0m file");
    }
}
