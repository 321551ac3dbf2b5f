//! Names and numbers that must not be mixed up.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
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
    };
}

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

text_id!(
    /// One task being carried through its workflow, in one worktree on one branch.
    LoopId
);
text_id!(
    /// A reviewer's name as configured: `spec`, `code`, `security`, …
    ReviewerName
);
text_id!(
    /// A commit, as git prints it.
    Commit
);
text_id!(
    /// The content hash of a tree: two equal ones hold the same files.
    Tree
);
text_id!(
    /// The word a reviewer must give back, so that its answer cannot be planted beforehand.
    Nonce
);
text_id!(
    /// A finding's fingerprint. It does not depend on the line, so it survives code that moves.
    FindingId
);
text_id!(
    /// A file kept beside the log: a raw answer, a transcript, a diff.
    Artifact
);
number_id!(
    /// One unit of work, as people number them.
    TaskId, ""
);
number_id!(
    /// One invocation over a set of tasks.
    RunId, ""
);
number_id!(
    /// One start of one agent process, counted per loop. A lost attempt is never continued under its id.
    AttemptId, "a"
);
number_id!(
    /// An open question to a person, counted per loop.
    QuestionId, "q"
);

/// The loops of a run that belong to no task.
const PLANNING: &str = "plan";
const WHOLE: &str = "final";
const CHECKPOINT: &str = ".checkpoint-";
/// This one carries no task, and the run is there for it alone.
const CHECKOUT: &str = "review";

impl LoopId {
    /// The loop in which a run's tasks are found and arranged.
    pub fn planning() -> Self {
        Self::new(PLANNING)
    }

    /// The loop in which all that a run changed is looked at in the end.
    pub fn whole() -> Self {
        Self::new(WHOLE)
    }

    /// The loop in which a person's checkout is looked at.
    pub fn checkout() -> Self {
        Self::new(CHECKOUT)
    }

    /// The loop in which this one is looked at while it is at work, the how manieth time.
    pub fn checkpoint(&self, number: u32) -> Self {
        Self(format!("{self}{CHECKPOINT}{number}"))
    }

    /// The loop that this one looks at, and the how manieth time it does, if it is a checkpoint's.
    pub fn of_checkpoint(&self) -> Option<(Self, u32)> {
        let (of, number) = self.0.rsplit_once(CHECKPOINT)?;
        Some((Self::new(of), number.parse().ok()?))
    }

    /// The loop whose task pays for this one: the loop that a checkpoint looks at, else itself.
    pub fn paid_by(&self) -> Self {
        self.of_checkpoint().map_or_else(|| self.clone(), |(of, _)| of)
    }

    /// Whether a change of this loop's state can change the run's state. True for a task's loop and for the final review,
    /// which a person may reopen.
    pub fn moves_the_run(&self) -> bool {
        !self.serves_the_run() || self.0 == WHOLE
    }

    /// Whether it serves the run and carries no task of its own.
    pub fn serves_the_run(&self) -> bool {
        self.0 == PLANNING || self.0 == WHOLE || self.of_checkpoint().is_some()
    }
}

/// How the branches of runs are called.
const RUN_BRANCH: &str = "signoff/run-";

impl RunId {
    /// The branch on which the tasks of a run follow each other.
    pub fn branch(self) -> String {
        format!("{RUN_BRANCH}{self}")
    }

    /// The run whose branch this is, if it is one.
    pub fn of_branch(branch: &str) -> Option<Self> {
        branch.strip_prefix(RUN_BRANCH)?.parse().ok().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_knows_what_it_looks_at() {
        let one = LoopId::new("7");
        assert_eq!(one.checkpoint(2).of_checkpoint(), Some((one.clone(), 2)));
        assert!(!one.serves_the_run() && one.checkpoint(1).serves_the_run());
        assert!(LoopId::planning().serves_the_run() && LoopId::whole().serves_the_run());
        assert_eq!(LoopId::new("7.checkpoint-x").of_checkpoint(), None);
    }

    #[test]
    fn a_task_pays_for_its_checkpoints() {
        let one = LoopId::new("7");
        assert_eq!((one.paid_by(), one.checkpoint(2).paid_by()), (one.clone(), one));
        assert_eq!(LoopId::planning().paid_by(), LoopId::planning());
    }
}
