//! Where signoff keeps its things: the directory `.signoff` of a repository, room by room.

use std::io;
use std::path::{Path, PathBuf};

use signoff_core::ids::{AttemptId, LoopId, RunId, TaskId};

/// The directory beside the main checkout's files.
pub const DIRECTORY: &str = ".signoff";

/// Everything below it is ours, but for the prompts a team shares.
pub const GITIGNORE: &str = "*\n!prompts/\n!prompts/**\n";

/// The paths below `.signoff`.
#[derive(Debug, Clone)]
pub struct Layout {
    root: PathBuf,
    worktrees: PathBuf,
}

impl Layout {
    /// `root` is the top of the main checkout; `worktrees` a directory of the person's choice.
    pub fn new(root: &Path, worktrees: Option<&str>) -> Self {
        let own = root.join(DIRECTORY);
        let worktrees = worktrees.map_or_else(|| own.join("worktrees"), |directory| root.join(directory));
        Self { root: own, worktrees }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes the directory, so that git never sees what is in it.
    pub fn prepare(&self) -> io::Result<()> {
        let ignore = self.root.join(".gitignore");
        if ignore.exists() {
            return Ok(());
        }
        std::fs::create_dir_all(&self.root)?;
        std::fs::write(ignore, GITIGNORE)
    }

    pub fn live(&self) -> PathBuf {
        self.root.join("live")
    }

    /// What got through to the channels of `[notify]`.
    pub fn notified(&self) -> PathBuf {
        self.root.join("notified")
    }

    pub fn prompts(&self) -> PathBuf {
        self.root.join("prompts")
    }

    pub fn reviews(&self) -> PathBuf {
        self.root.join("reviews")
    }

    /// What plan tasks came to.
    pub fn plans(&self) -> PathBuf {
        self.root.join("plans")
    }

    pub fn task_worktree(&self, task: TaskId) -> PathBuf {
        self.worktrees.join(format!("task-{task}"))
    }

    /// Where the tasks of a chain are worked one after the other.
    pub fn run_worktree(&self, run: RunId) -> PathBuf {
        self.worktrees.join(format!("run-{run}"))
    }

    /// Names the last commit that ticks tasks of a plan in the run's branch.
    pub fn ticked(&self, run: RunId) -> PathBuf {
        self.root.join("runs").join(run.to_string()).join("ticked")
    }

    /// Where merges are checked before they land.
    pub fn landing_worktree(&self) -> PathBuf {
        self.worktrees.join("landing")
    }

    /// Where checks are run on the base of some work.
    pub fn base_worktree(&self) -> PathBuf {
        self.worktrees.join("base")
    }

    /// How checks went on the bases of work, a file for each commit and list of checks.
    pub fn base_checks(&self) -> PathBuf {
        self.root.join("base-checks")
    }

    /// Where the checks of a landing keep their files that belongs to no attempt.
    pub fn landing(&self, run: RunId, name: &str) -> PathBuf {
        self.root.join("runs").join(run.to_string()).join("landing").join(name)
    }

    /// A throw-away copy for a review of the checkout.
    pub fn review_worktree(&self, run: RunId) -> PathBuf {
        self.worktrees.join(format!("review-{run}"))
    }

    /// A throw-away copy for a part of a run that only looks.
    pub fn part_worktree(&self, run: RunId, part: &LoopId) -> PathBuf {
        self.worktrees.join(format!("run-{run}-{part}"))
    }

    /// Locked by whoever works in a worktree, in whatever program.
    pub fn worktree_lock(&self, worktree: &Path) -> PathBuf {
        let name = worktree.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.root.join("leases").join(format!("worktree-{name}"))
    }

    pub fn attempt(&self, run: RunId, loop_id: &LoopId, attempt: AttemptId) -> PathBuf {
        self.attempts(run, loop_id).join(attempt.to_string())
    }

    /// The directory that holds a loop's attempts.
    pub fn attempts(&self, run: RunId, loop_id: &LoopId) -> PathBuf {
        self.root.join("runs").join(run.to_string()).join(loop_id.as_str())
    }
}
