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
