//! The workspaces of loops in a repository in memory.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use signoff_core::ids::{Commit, LoopId, RunId, Tree};
use signoff_core::machine::Head;
use signoff_core::view::Workspace;
use signoff_core::wire::LoopFact;
use signoff_engine::attempt::PlanLocation;
use signoff_engine::attempt_spec::AttemptSpec;
use signoff_engine::dispatcher::PreparedWorkspace;
use signoff_engine::error::EngineError;
use signoff_engine::workspace::{WorkspaceRequest, Workspaces, approved};
use signoff_store::Store;

use super::memory_repository::{MAIN, MemoryRepository};

/// Shared access to a repository in memory.
#[derive(Clone)]
pub struct MemoryWorkspaces {
    repository: Arc<Mutex<MemoryRepository>>,
    store: Arc<dyn Store>,
}

impl MemoryWorkspaces {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { repository: Arc::new(Mutex::new(MemoryRepository::new())), store }
    }

    pub fn repository(&self) -> MutexGuard<'_, MemoryRepository> {
        self.repository.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The commit that a task starts at: the work that it depends on, or the default branch.
    fn start_of(&self, request: &WorkspaceRequest) -> Result<Commit, EngineError> {
        let main = self.repository().tip(MAIN).expect("the default branch");
        if request.lands {
            return Ok(self.repository().ensure_branch(&request.run.branch(), &main));
        }
        let mut start = main;
        for task in &request.spec.depends_on {
            let branch = self.store.task(*task)?.and_then(|row| row.branch);
            let end = match approved(&*self.store, *task)? {
                Some(commit) => Some(commit),
                None => branch.and_then(|branch| self.repository().tip(&branch)),
            };
            start = end.unwrap_or(start);
        }
        Ok(start)
    }

    /// The base of a task that continues on an existing branch.
    fn continued_base(&self, request: &WorkspaceRequest) -> Result<Option<Commit>, EngineError> {
        let row = request.spec.continues.map(|before| self.store.task(before)).transpose()?.flatten();
        Ok(row.and_then(|row| row.base).map(Commit::new))
    }
}

impl Workspaces for MemoryWorkspaces {
    fn path(&self, request: &WorkspaceRequest) -> PathBuf {
        let run = request.run;
        if request.loop_id == LoopId::final_review() || request.is_chain {
            return PathBuf::from(format!("/memory/run-{run}"));
        }
        match request.task_id.filter(|_| !request.loop_id.is_run_level()) {
            Some(task) => PathBuf::from(format!("/memory/task-{}", request.spec.continues.unwrap_or(task))),
            None => PathBuf::from(format!("/memory/run-{run}-{}", request.loop_id)),
        }
    }

    fn create(&self, request: &WorkspaceRequest) -> Result<PreparedWorkspace, EngineError> {
        let path = self.path(request).display().to_string();
        let (start, continued) = (self.start_of(request)?, self.continued_base(request)?);
        let mut repository = self.repository();
        let (commit, base) = if let Some(reviewed) = &request.reviewed_workspace {
            let parent = reviewed.base.clone();
            (repository.commit_worktree(&reviewed.worktree, &parent, "Snapshot"), parent)
        } else if request.loop_id == LoopId::final_review() {
            let branch = request.run.branch();
            let tip = repository.ensure_branch(&branch, &start);
            (tip.clone(), repository.base_of(&branch).unwrap_or(tip))
        } else if request.branch.is_empty() {
            (start.clone(), start)
        } else {
            let tip = repository.ensure_branch(&request.branch, &start);
            let own = if request.is_chain { Some(tip.clone()) } else { repository.base_of(&request.branch) };
            (tip.clone(), continued.or(own).unwrap_or(tip))
        };
        repository.ensure_worktree(&path, &commit);
        let base_tree = (request.loop_id != LoopId::planning()).then(|| repository.tree(&base));
        let workspace = Workspace { base, worktree: path };
        Ok(PreparedWorkspace { workspace, head: repository.head(&commit), base_tree, note: None })
    }

    fn remove(&self, worktree: &Path) {
        self.repository().remove_worktree(&worktree.display().to_string());
    }

    fn remove_reviewer_copies(&self, _worktree: &str) {}

    fn head_of(&self, branch: &str) -> Result<Option<Head>, EngineError> {
        Ok(self.repository().head_of(branch))
    }

    fn tree_of(&self, commit: &Commit) -> Result<Tree, EngineError> {
        Ok(self.repository().tree(commit))
    }

    fn parallel_worktrees(&self, _worktree: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    fn remove_parallel(&self, _worktree: &Path) {}

    fn keep_unused_fixes(&self, _run: RunId, _loop_id: &LoopId, _branch: &str) -> Option<String> {
        None
    }

    fn reread_plan(
        &self,
        _spec: &AttemptSpec,
        _place: PlanLocation,
    ) -> Result<(Vec<LoopFact>, Option<String>), EngineError> {
        Ok((Vec::new(), None))
    }
}
