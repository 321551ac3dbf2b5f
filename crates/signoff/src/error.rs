//! Converts every error into a message, a location, a hint and an exit code.

use std::fmt;
use std::process::ExitCode;

use signoff_core::command::CommandRefusal;
use signoff_core::ids::{Commit, TaskId};
use signoff_core::settings::ConfigError;
use signoff_core::source::{self, SourceError};
use signoff_core::view::inbox::{Action, NextStep};
use signoff_engine::custom_prompts::PromptError;
use signoff_engine::error::EngineError;
use signoff_engine::git::GitError;
use signoff_engine::tracker::TrackerError;
use signoff_store::StoreError;

use crate::console::plain_text;

/// The result of a command.
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
    NeedsUser = 3,
    /// The user interrupted it.
    Interrupted = 130,
}

impl CommandExit {
    /// Converts an exit code.
    pub fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Done,
            2 => Self::Usage,
            3 => Self::NeedsUser,
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

    /// A command does not fit the state of its task.
    pub fn refused(message: String) -> Self {
        Self::usage(message).hint("`signoff show ID` shows the state of the task")
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
    pub fn at(mut self, location: impl Into<String>) -> Self {
        self.location = Some(location.into());
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
        if let Some(location) = &self.location {
            writeln!(f, "  --> {}", plain_text(location))?;
        }
        if let Some(hint) = &self.hint {
            writeln!(f, "hint: {}", plain_text(hint))?;
        }
        Ok(())
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        let text = error.to_string();
        match error {
            ConfigError::File { file, line, message } => Self::usage(message)
                .at(format!("{file}:{line}"))
                .hint("fix the file, then check it with `signoff config`"),
            ConfigError::InFlagOrVariable { name, message } => {
                Self::usage(message).at(&name).hint(format!("give {name} another value, or leave it out"))
            }
            ConfigError::WithoutLocation { message } => {
                Self::usage(message).hint("`signoff config` shows every setting, and where it comes from")
            }
            ConfigError::UnknownWorkflow { .. } => {
                Self::usage(text).hint("`signoff workflow list` shows the presets")
            }
            ConfigError::NoAgent => Self::usage(text)
                .hint("install one and run `signoff init` (`--force` if signoff.toml exists), or write an [agents.NAME] table into signoff.toml"),
            ConfigError::Unassigned { .. } => {
                Self::usage(text).hint("name one as `implement` in [roles] of signoff.toml")
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
            StoreError::NoRun(_) | StoreError::NoTask(_) => usage("`signoff status` lists tasks and runs"),
            StoreError::TaskTaken(task) => usage(&format!("`signoff show {task}` shows its state")),
            StoreError::IssueClaimed { by, .. } => usage(&format!("`signoff show {by}` shows its state")),
            StoreError::LeaseHeld(_) | StoreError::Fenced(_) => {
                failed("wait for it to end, or stop it with Ctrl-C in its terminal")
            }
            StoreError::DiskFull => failed("free disk space and run the command again; nothing was lost"),
            StoreError::DatabaseRemoved => in_file(
                "restore the file and run the command again; otherwise the next command creates an empty store; the agents' commits are on their branches",
            ),
            StoreError::Replaced => in_file(
                "restore the original file and run the command again; the agents' commits are on their branches",
            ),
            StoreError::Busy => failed("run the command again when the other program is done"),
            StoreError::NewerVersion { .. } => usage("update signoff"),
            StoreError::Damaged(_) => in_file(
                "`signoff doctor --rebuild` rebuilds the tables; if it fails, restore a backup of the file, or move it away and start again: all branches are kept",
            ),
            StoreError::Unreadable { .. } => in_file("`signoff doctor` shows details"),
            StoreError::Other(_) => {
                in_file("check that the file and its directory are writable, then run the command again")
            }
        }
    }
}

/// The hint for unapproved work: the next step to an approval, and the command that approves it by hand.
pub fn unapproved_hint(task: TaskId, next: &NextStep) -> String {
    format!("{next}; `{}` approves it in your name", Action::ForceMerge(task.0))
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
                "another task of the same branch is running: `signoff status` shows it; run the command again when it has ended",
            ),
            EngineError::NotLanded { message, hint } => Self::failed(message).hint(hint),
            EngineError::ContainsUnapproved { task, ref next, .. } => {
                Self::failed(error.to_string()).hint(unapproved_hint(task, next))
            }
            EngineError::Io { .. } | EngineError::Internal(_) | EngineError::Log { .. } => {
                Self::failed(error.to_string()).hint("nothing was lost: `signoff work` continues")
            }
        }
    }
}

impl From<PromptError> for CliError {
    fn from(error: PromptError) -> Self {
        Self::usage(error.to_string()).hint(match error {
            PromptError::Missing { .. } | PromptError::NotAFile { .. } => "create it, or name another file",
            PromptError::NotText { .. } => "save it as UTF-8",
            PromptError::Blank { .. } => "write the prompt, or leave it out",
            PromptError::Unreadable { .. } => "check its permissions",
        })
    }
}

impl From<TrackerError> for CliError {
    fn from(error: TrackerError) -> Self {
        let message = error.to_string();
        match error {
            TrackerError::File(error) => error.into(),
            TrackerError::Unreadable { .. } => Self::usage(message).hint("check the path and its permissions"),
            TrackerError::NotRun { command, .. }
            | TrackerError::Failed { command, .. }
            | TrackerError::Unparsable { command, .. } => {
                // All other tracker commands are started by a run, which can be resumed.
                let again = match command.ends_with(" ready --json") {
                    true => "run the command again, or `signoff run --resume` if a run was started",
                    false => "run `signoff run --resume`",
                };
                Self::failed(message)
                    .hint(format!("run `{command}` in the root of the main checkout; once it works, {again}"))
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
            GitError::Bare(_) => usage("use a non-bare clone"),
            GitError::UnsupportedPath(_) => usage("rename the directory: UTF-8, no line breaks"),
            GitError::NoGit | GitError::TooOld => usage("install git 2.32 or newer"),
            GitError::TooOldToMerge => usage("install git 2.40 or newer"),
            GitError::NoCommits => usage("create the first one: git commit --allow-empty -m \"Start\""),
            GitError::UnknownRevision(_) => usage("`git log --oneline --all` lists commits"),
            GitError::BadBranchName(_) => usage("`git check-ref-format --branch NAME` checks a name"),
            GitError::Locked { file } => {
                failed("wait for the other program; if none runs, remove the file and run the command again")
                    .at(file.display().to_string())
            }
            GitError::DiskFull => failed("free disk space and run the command again; nothing was lost"),
            GitError::BranchTaken { branch, .. } => {
                failed(&format!("rename the other branch, `git branch -m {branch} OTHER`; then run `signoff work`"))
            }
            GitError::OffBranch { branch, .. } => failed(&format!(
                "move the commits you want to keep to {branch} and check it out there; then run `signoff work`"
            )),
            GitError::Unfinished { operation, .. } => {
                failed(&format!("finish or abort the {operation} there; then run `signoff work`"))
            }
            GitError::Linked(_) => failed("remove the link, or set worktree.directory to its target"),
            GitError::BranchGone(branch) => failed(&format!(
                "`git branch {branch} COMMIT` recreates it if git still has its commit; otherwise add the task again"
            )),
            GitError::Dirty { .. } => failed(
                "nothing was changed; commit or stash the changes, or check out another branch, then run the command again",
            ),
            GitError::CheckoutBehind { from, to, files, .. } => {
                let files: Vec<String> = files.iter().map(|file| shell_quote(&file.display().to_string())).collect();
                failed(&format!(
                    "the branch is up to date, but these files still have the old contents, and committing them would \
                     revert the landing; update them with `git diff {from} {to} -- {files} | git apply`, or if that \
                     fails by hand (`git show HEAD:FILE`); then run the command again",
                    from = short_id(from),
                    to = short_id(to),
                    files = files.join(" "),
                ))
            }
            GitError::WouldOverwrite { .. } => {
                failed("nothing was changed; move the file away, then run the command again")
            }
            GitError::BranchMoved(_) => {
                failed("nothing was lost; run the command again when the other program is done")
            }
            GitError::WorktreeGone(_) => failed("`signoff work` recreates it"),
            GitError::NotOurs(_) => failed("move it away, then run `signoff work`"),
            GitError::Incomplete { .. } => failed("`git fsck` shows what is missing; then run `signoff work`"),
            GitError::UncommittedWork(_) => failed("commit or stash it there, then run `signoff work`"),
            GitError::OutsideWorktree(_) => failed("remove the link, then run `signoff work`"),
            GitError::StillChanging(_) => failed("stop the process that writes to it, then run `signoff work`"),
            GitError::TimedOut { .. } | GitError::Failed { .. } => {
                failed("run the git command yourself to find the cause, then run `signoff work`")
            }
            GitError::Io { .. } => failed("check its permissions and the disk, then run `signoff work`"),
        }
    }
}

/// The error outside of a repository.
pub fn not_a_repository() -> CliError {
    CliError::usage("this is not a git repository").hint("cd into a repository, or run `git init`")
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
        Self::refused(refusal.to_string())
    }
}

impl From<SourceError> for CliError {
    fn from(error: SourceError) -> Self {
        let formats: Vec<_> = source::TaskFormat::ALL.iter().map(|format| format.into_str()).collect();
        Self::usage(&error.message)
            .at(format!("{}:{}", error.file, error.line))
            .hint(format!("fix the file, or set its format with --as: {}", formats.join(", ")))
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
