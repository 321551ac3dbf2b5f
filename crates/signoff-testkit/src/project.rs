//! A git repository for tests, with signoff and a scripted agent.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

use crate::agent_script::AgentScript;
use crate::calls::AgentCalls;
use crate::fake_agent;
use crate::git_template::GitTemplate;
use crate::{ProgramOutput, TestEnv};

/// A repository with one commit and no configuration.
const TEMPLATE: GitTemplate = GitTemplate {
    files: &[("README.md", "# A project\n")],
    commands: &[
        &["init", "-q", "-b", "main"],
        &["config", "user.name", "Ann"],
        &["config", "user.email", "ann@example.org"],
        &["add", "-A"],
        &["commit", "-q", "-m", "Start"],
    ],
};

/// A repository for one test.
#[derive(Debug)]
pub struct TestProject {
    pub env: TestEnv,
}

/// A snapshot of the user's checkout, to check that it did not change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckoutSnapshot {
    head: String,
    index: Vec<u8>,
    stash: String,
    status: String,
    branch: String,
}

impl TestProject {
    /// Creates a repository with one commit and no configuration.
    pub fn new(program: impl AsRef<Path>) -> Self {
        Self::in_env(TestEnv::new(program))
    }

    /// The same outside of shared memory, which sandboxed agents may write to.
    pub fn outside_shared_memory(program: impl AsRef<Path>) -> Self {
        Self::in_env(TestEnv::outside_shared_memory(program))
    }

    fn in_env(env: TestEnv) -> Self {
        TEMPLATE.copy_to(&env.work());
        Self { env }
    }

    /// Creates a repository with a scripted agent for all roles.
    pub fn with_agent(program: impl AsRef<Path>, script: impl FnOnce(AgentScript) -> AgentScript) -> Self {
        let this = Self::new(program);
        this.set_agent(script);
        this.configure("");
        this
    }

    /// Replaces the agent's script.
    pub fn set_agent(&self, script: impl FnOnce(AgentScript) -> AgentScript) {
        script(AgentScript::new(self.state())).save(&self.script());
    }

    /// Writes and commits `signoff.toml`: the scripted agent, and `more`.
    ///
    /// `more` comes first, so that it can set top-level keys.
    pub fn configure(&self, more: &str) {
        let (program, script) = (fake_agent::program(), self.script());
        let agent = format!(
            "[agents.scripted]\nkind = \"command\"\ncommand = [{:?}, {:?}]\n",
            program.display().to_string(),
            script.display().to_string(),
        );
        // The scripted agent logs its calls outside the worktree, also as a reviewer.
        let sandbox = match (more.contains("sandbox ="), more.contains("sandbox_writers =")) {
            (false, _) => "sandbox = false\n",
            (true, false) => "sandbox_writers = false\n",
            (true, true) => "",
        };
        // Most tests expect reviewers to work in the loop's own worktree.
        let shared = if more.contains("review_workspace =") { "" } else { "review_workspace = \"shared\"\n" };
        self.env.write("signoff.toml", format!("{sandbox}{shared}{more}\n{agent}"));
        self.commit("Configure");
    }

    /// Commits everything in the checkout.
    pub fn commit(&self, message: &str) {
        self.git(&format!("add -A && git commit -q --allow-empty -m '{message}'"));
    }

    /// Runs git in the checkout and returns its stdout.
    ///
    /// # Panics
    /// If git fails.
    pub fn git(&self, words: &str) -> String {
        let output = self.env.shell(&format!("git {words}"));
        assert_eq!(output.code, Some(0), "git {words}: {}", output.stderr);
        output.stdout
    }

    /// The subjects of a branch's commits since `main`, oldest first.
    pub fn subjects(&self, branch: &str) -> String {
        self.git(&format!("log --reverse --format=%s main..{branch}"))
    }

    pub fn run(&self, arguments: &[&str]) -> ProgramOutput {
        self.env.run(arguments)
    }

    /// Starts the program without waiting for it.
    pub fn start(&self, arguments: &[&str]) -> Child {
        self.env.start(arguments)
    }

    /// Reads a file of the checkout.
    ///
    /// # Panics
    /// If it does not exist.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.env.work().join(name)).expect("a readable file")
    }

    /// The calls of the agent, with their prompts.
    pub fn calls(&self) -> AgentCalls {
        AgentCalls::read(&self.state())
    }

    pub fn state(&self) -> PathBuf {
        self.env.work().with_file_name("agent")
    }

    fn script(&self) -> PathBuf {
        self.env.work().with_file_name("script.json")
    }

    /// Takes a snapshot of the user's checkout.
    pub fn checkout(&self) -> CheckoutSnapshot {
        CheckoutSnapshot {
            head: self.git("rev-parse HEAD"),
            branch: self.git("symbolic-ref HEAD || true"),
            index: fs::read(self.env.work().join(".git/index")).unwrap_or_default(),
            stash: self.git("stash list"),
            status: self.git("--no-optional-locks status --porcelain --untracked-files=all"),
        }
    }

    /// The sorted names of the entries of a directory in the checkout.
    pub fn list(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.env.work().join(directory)).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}
