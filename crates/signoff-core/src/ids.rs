//! Newtypes for names and numbers that must not be mixed up.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! text_ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }
    )*};
}

macro_rules! number_ids {
    ($($(#[$doc:meta])* $name:ident, $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    )*};
}

text_ids! {
    /// A loop: one task going through its workflow, in one worktree on one branch.
    LoopId;
    /// A reviewer's configured name: `spec`, `code`, `security`, …
    ReviewerName;
    /// A commit, as git prints it.
    Commit;
    /// The content hash of a tree. Equal hashes mean equal files.
    Tree;
    /// A token that the reviewer must repeat, so that its answer cannot be planted beforehand.
    Nonce;
    /// A finding's fingerprint. It does not depend on the line number, so it survives moved code.
    FindingId;
    /// A file stored next to the event log: a raw answer, a transcript, a diff.
    Artifact;
}

number_ids! {
    /// A task, with the number that users see.
    TaskId, "";
    /// A run: one invocation over a set of tasks.
    RunId, "";
    /// One start of one agent process, counted per loop. A lost attempt is never resumed under the same id.
    AttemptId, "a";
    /// An open question to a person, counted per loop.
    QuestionId, "q";
}

/// Ids of loops that belong to no task.
const PLANNING: &str = "plan";
const FINAL_REVIEW: &str = "final";
const CHECKPOINT: &str = ".checkpoint-";
/// The loop of a checkout review. It has no task; the run consists of this loop alone.
const CHECKOUT: &str = "review";

impl LoopId {
    /// The loop that finds and arranges a run's tasks.
    pub fn planning() -> Self {
        Self::new(PLANNING)
    }

    /// The loop that reviews all changes of a run at its end.
    pub fn final_review() -> Self {
        Self::new(FINAL_REVIEW)
    }

    /// The loop that reviews a person's checkout.
    pub fn checkout() -> Self {
        Self::new(CHECKOUT)
    }

    /// The loop of checkpoint review `number` of this loop.
    pub fn checkpoint(&self, number: u32) -> Self {
        Self(format!("{self}{CHECKPOINT}{number}"))
    }

    /// The loop that this checkpoint reviews and the number of the review, if this is a checkpoint's loop.
    pub fn checkpoint_target(&self) -> Option<(Self, u32)> {
        let (of, number) = self.0.rsplit_once(CHECKPOINT)?;
        Some((Self::new(of), number.parse().ok()?))
    }

    /// The loop whose task is charged for this one: the reviewed loop for a checkpoint, else itself.
    pub fn budget_owner(&self) -> Self {
        self.checkpoint_target().map_or_else(|| self.clone(), |(of, _)| of)
    }

    /// Whether a change of this loop's state can change the run's state. True for a task's loop and for the final
    /// review, which a person may reopen.
    pub fn affects_run_state(&self) -> bool {
        !self.is_run_level() || self.0 == FINAL_REVIEW
    }

    /// Whether this loop belongs to the run as a whole: planning, checkpoint or final review.
    pub fn is_run_level(&self) -> bool {
        self.0 == PLANNING || self.0 == FINAL_REVIEW || self.checkpoint_target().is_some()
    }
}

/// The prefix of run branch names.
const RUN_BRANCH: &str = "signoff/run-";

impl RunId {
    /// The branch that the tasks of a run share.
    pub fn branch(self) -> String {
        format!("{RUN_BRANCH}{self}")
    }

    /// The run that owns this branch, if it is a run branch.
    pub fn from_branch(branch: &str) -> Option<Self> {
        branch.strip_prefix(RUN_BRANCH)?.parse().ok().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoint_ids_name_their_target() {
        let one = LoopId::new("7");
        assert_eq!(one.checkpoint(2).checkpoint_target(), Some((one.clone(), 2)));
        assert!(!one.is_run_level() && one.checkpoint(1).is_run_level());
        assert!(LoopId::planning().is_run_level() && LoopId::final_review().is_run_level());
        assert_eq!(LoopId::new("7.checkpoint-x").checkpoint_target(), None);
    }

    #[test]
    fn checkpoints_are_billed_to_their_task() {
        let one = LoopId::new("7");
        assert_eq!((one.budget_owner(), one.checkpoint(2).budget_owner()), (one.clone(), one));
        assert_eq!(LoopId::planning().budget_owner(), LoopId::planning());
    }
}
