//! Paths of signoff's files in a repository's `.signoff` directory.

use std::io;
use std::path::{Path, PathBuf};

use signoff_core::ids::{AttemptId, LoopId, RunId, TaskId};

/// Name of the directory in the main checkout.
pub const DIRECTORY: &str = ".signoff";

/// Ignores everything below it except for the prompts a team shares.
pub const GITIGNORE: &str = "*\n!prompts/\n!prompts/**\n";

/// The paths below `.signoff`.
#[derive(Debug, Clone)]
pub struct Layout {
    root: PathBuf,
    worktrees: PathBuf,
}

impl Layout {
    /// `root` is the top of the main checkout, `worktrees` the configured worktree directory.
    pub fn new(root: &Path, worktrees: Option<&str>) -> Self {
        let own = root.join(DIRECTORY);
        let worktrees = worktrees.map_or_else(|| own.join("worktrees"), |directory| root.join(directory));
        Self { root: own, worktrees }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Creates the directory with a `.gitignore`, so that git ignores its content.
    pub fn prepare(&self) -> io::Result<()> {
        let ignore = self.root.join(".gitignore");
        if ignore.exists() {
            return Ok(());
        }
        std::fs::create_dir_all(&self.root)?;
        std::fs::write(ignore, GITIGNORE)
    }

    /// Directory of links to the supervised attempts.
    pub fn live_attempts(&self) -> PathBuf {
        self.root.join("live")
    }

    pub fn prompts(&self) -> PathBuf {
        self.root.join("prompts")
    }

    pub fn reviews(&self) -> PathBuf {
        self.root.join("reviews")
    }

    /// Documents written by plan tasks.
    pub fn plans(&self) -> PathBuf {
        self.root.join("plans")
    }

    pub fn task_worktree(&self, task: TaskId) -> PathBuf {
        self.worktrees.join(format!("task-{task}"))
    }

    /// Worktree for the tasks of a chain, which are worked on one after the other.
    pub fn run_worktree(&self, run: RunId) -> PathBuf {
        self.worktrees.join(format!("run-{run}"))
    }

    /// File with the last commit that checks off tasks of a plan in the run's branch.
    pub fn checked_off(&self, run: RunId) -> PathBuf {
        self.root.join("runs").join(run.to_string()).join("ticked")
    }

    /// Worktree in which merges are checked before they land.
    pub fn landing_worktree(&self) -> PathBuf {
        self.worktrees.join("landing")
    }

    /// Worktree in which checks run on the base commit.
    pub fn base_worktree(&self) -> PathBuf {
        self.worktrees.join("base")
    }

    /// Results of checks on base commits, one file for each commit and list of checks.
    pub fn base_checks(&self) -> PathBuf {
        self.root.join("base-checks")
    }

    /// Directory for the checks of a landing, which belongs to no attempt.
    pub fn landing(&self, run: RunId, name: &str) -> PathBuf {
        self.root.join("runs").join(run.to_string()).join("landing").join(name)
    }

    /// A throw-away worktree for a review of the checkout.
    pub fn review_worktree(&self, run: RunId) -> PathBuf {
        self.worktrees.join(format!("review-{run}"))
    }

    /// A throw-away worktree for a read-only stage of a run.
    pub fn part_worktree(&self, run: RunId, part: &LoopId) -> PathBuf {
        self.worktrees.join(format!("run-{run}-{part}"))
    }

    /// Lock file of a worktree, held by the process that works in it.
    pub fn worktree_lock(&self, worktree: &Path) -> PathBuf {
        let name = worktree.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.root.join("leases").join(format!("worktree-{name}"))
    }

    pub fn attempt(&self, run: RunId, loop_id: &LoopId, attempt: AttemptId) -> PathBuf {
        self.attempts(run, loop_id).join(attempt.to_string())
    }

    /// The directory of a loop's attempts.
    pub fn attempts(&self, run: RunId, loop_id: &LoopId) -> PathBuf {
        self.root.join("runs").join(run.to_string()).join(loop_id.as_str())
    }
}
