//! What a person can do about a task or a run, as a command to type.

use std::fmt;

/// One command of the program about a task or a run. `Display` is its command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Show(u64),
    Diff(u64),
    FollowLog(u64),
    Work(u64),
    Retry(u64),
    Improve(u64),
    Review(u64),
    /// Approves the task in the person's name.
    Accept(u64),
    /// The same, with the reason that some tasks require.
    AcceptWithReason(u64),
    Cancel(u64),
    Merge(u64),
    /// Merges a branch that was not reviewed.
    GitMerge {
        branch: Option<String>,
    },
    /// Resumes a run; the last one if it has no number.
    ResumeRun(Option<u64>),
    /// Repeats the final review of a run.
    RetryRun(u64),
    /// Approves a run in the person's name.
    AcceptRun(u64),
    Status,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Show(task) => write!(f, "signoff show {task}"),
            Self::Diff(task) => write!(f, "signoff diff {task}"),
            Self::FollowLog(task) => write!(f, "signoff logs {task} -f"),
            Self::Work(task) => write!(f, "signoff work {task}"),
            Self::Retry(task) => write!(f, "signoff retry {task}"),
            Self::Improve(task) => write!(f, "signoff improve {task} --review"),
            Self::Review(task) => write!(f, "signoff review {task}"),
            Self::Accept(task) => write!(f, "signoff edit {task} --verdict APPROVED"),
            Self::AcceptWithReason(task) => write!(f, "signoff edit {task} --verdict APPROVED --reason TEXT"),
            Self::Cancel(task) => write!(f, "signoff cancel {task}"),
            Self::Merge(task) => write!(f, "signoff merge {task}"),
            Self::GitMerge { branch } => write!(f, "git merge {}", branch.as_deref().unwrap_or("its branch")),
            Self::ResumeRun(Some(run)) => write!(f, "signoff run --resume {run}"),
            Self::ResumeRun(None) => f.write_str("signoff run --resume"),
            Self::RetryRun(run) => write!(f, "signoff retry run-{run}"),
            Self::AcceptRun(run) => write!(f, "signoff edit run-{run} --verdict APPROVED --reason TEXT"),
            Self::Status => f.write_str("signoff status"),
        }
    }
}

/// `A`, `A or B`, `A, B, or C`.
pub(super) fn alternatives(actions: &[Action]) -> String {
    match actions {
        [] => String::new(),
        [one] => one.to_string(),
        [one, other] => format!("{one} or {other}"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(Action::to_string).collect();
            format!("{}, or {last}", first.join(", "))
        }
    }
}
