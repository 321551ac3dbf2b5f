//! A git repository whose agents follow a script: worktrees and landing are real, agents are not.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use signoff_core::ids::Commit;
use signoff_core::machine::Head;
use signoff_core::view::RunState;
use signoff_engine::attempt::EngineContext;
use signoff_engine::attempt_spec::AttemptSpec;
use signoff_engine::executor::{AttemptResult, AttemptSink, Executor, LocalExecutor, RunLandingSink};
use signoff_engine::git::{Git, Repository};

use super::agent_workspaces::{AgentFileChange, AgentWorkspaces, worktree};

/// A repository with one commit on `main`.
pub struct GitProject {
    root: std::path::PathBuf,
}

impl GitProject {
    pub fn new(root: &Path) -> Self {
        let this = Self { root: root.to_owned() };
        fs::write(root.join("README.md"), "# A project\n").expect("a working disk");
        fs::write(root.join(".gitignore"), ".signoff/\n").expect("a working disk");
        this.git(&["init", "-q", "-b", "main"]);
        this.git(&["config", "user.name", "Ann"]);
        this.git(&["config", "user.email", "ann@example.org"]);
        this.git(&["add", "-A"]);
        this.git(&["commit", "-qm", "Start"]);
        this
    }

    pub fn repository(&self) -> Repository {
        Repository::discover(&Git::new(environment(&self.root)), &self.root).expect("a repository")
    }

    /// Runs the user's git and returns its trimmed stdout.
    pub fn git(&self, arguments: &[&str]) -> String {
        self.git_in(&self.root, arguments)
    }

    #[expect(clippy::disallowed_methods, reason = "the only place where the stories spawn the user's git")]
    pub fn git_in(&self, directory: &Path, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(directory).env_clear().envs(environment(&self.root));
        let output = command.output().expect("git");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "git {arguments:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    pub fn tip(&self, branch: &str) -> Commit {
        Commit::new(self.git(&["rev-parse", branch]))
    }

    /// Writes a file of the user's checkout.
    pub fn write(&self, file: &str, text: &str) {
        let path = self.root.join(file);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a working disk");
        fs::write(path, text).expect("a working disk");
    }

    /// Commits a file on top of a branch, in a separate worktree of the user.
    pub fn commit_on(&self, branch: &str, file: &str, text: &str) -> Commit {
        let path = self.root.join(".signoff/by-hand");
        let shown = path.display().to_string();
        self.git(&["worktree", "add", "-q", "--detach", &shown, branch]);
        fs::write(path.join(file), text).expect("a working disk");
        self.git_in(&path, &["add", "-A"]);
        self.git_in(&path, &["commit", "-qm", "By hand"]);
        let commit = self.git_in(&path, &["rev-parse", "HEAD"]);
        self.git(&["worktree", "remove", "--force", &shown]);
        Commit::new(commit)
    }

    /// The names of a branch's files, without those of the first commit.
    pub fn file_names(&self, branch: &str) -> String {
        let names = self.git(&["ls-tree", "-r", "--name-only", branch]);
        names.lines().filter(|name| !["README.md", ".gitignore"].contains(name)).collect::<Vec<_>>().join(" ")
    }

    pub fn file(&self, branch: &str, file: &str) -> String {
        self.git(&["show", &format!("{branch}:{file}")])
    }
}

#[expect(clippy::disallowed_methods, reason = "the stories' one door to the environment")]
pub fn environment(home: &Path) -> Vec<(OsString, OsString)> {
    let path = std::env::var_os("PATH").map(|path| (OsString::from("PATH"), path));
    let home = (OsString::from("HOME"), home.join(".signoff").into_os_string());
    path.into_iter().chain([home, ("GIT_CONFIG_NOSYSTEM".into(), "1".into())]).collect()
}

/// Scripted agents in real worktrees. Their work lands for real.
pub struct GitAgents {
    ctx: Arc<EngineContext>,
    local: LocalExecutor,
}

impl GitAgents {
    pub fn new(ctx: Arc<EngineContext>) -> Self {
        Self { local: LocalExecutor::new(ctx.clone()), ctx }
    }
}

impl AgentWorkspaces for GitAgents {
    fn ensure_worktree(&self, _spec: &AttemptSpec) {}

    fn change(&self, spec: &AttemptSpec, path: &str, change: AgentFileChange) {
        let path = Path::new(&worktree(spec)).join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a working disk");
        let changed = match change {
            AgentFileChange::Write(text) => fs::write(path, text),
            AgentFileChange::Append(text) => {
                let before = fs::read_to_string(&path).unwrap_or_default();
                fs::write(path, before + &text)
            }
            AgentFileChange::Delete => fs::remove_file(path),
        };
        changed.expect("a changed file");
    }

    fn commit(&self, spec: &AttemptSpec, subject: &str) -> Head {
        let worktree = self.ctx.repository.worktree(Path::new(&worktree(spec))).expect("a worktree");
        worktree.commit_all(subject).expect("a commit").head
    }

    fn run_own_job(&self, spec: &AttemptSpec, sink: &AttemptSink) -> Option<AttemptResult> {
        self.local.start(spec.clone(), sink.clone());
        None
    }

    fn land_run(&self, run_state: RunState, sink: RunLandingSink) {
        self.local.land_run(run_state, sink);
    }
}
