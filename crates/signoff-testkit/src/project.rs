//! A git repository with signoff set up in it, and an agent that follows a script.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

use crate::calls::Calls;
use crate::fake_agent;
use crate::script::Script;
use crate::{Output, TestEnv};

/// A project for one test.
#[derive(Debug)]
pub struct Project {
    pub env: TestEnv,
}

/// What must not change in the person's checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    head: String,
    index: Vec<u8>,
    stash: String,
    status: String,
    branch: String,
}

impl Project {
    /// A repository with one commit and no configuration.
    pub fn new(program: impl AsRef<Path>) -> Self {
        let this = Self { env: TestEnv::new(program) };
        this.env.write("README.md", "# A project\n");
        this.git("init -q -b main");
        this.git("config user.name Ann");
        this.git("config user.email ann@example.org");
        this.commit("Start");
        this
    }

    /// The same, with an agent that does everything and follows this script.
    pub fn with_agent(program: impl AsRef<Path>, script: impl FnOnce(Script) -> Script) -> Self {
        let this = Self::new(program);
        this.set_agent(script);
        this.configure("");
        this
    }

    /// Gives the agent another script.
    pub fn set_agent(&self, script: impl FnOnce(Script) -> Script) {
        script(Script::new(self.state())).save(&self.script());
    }

    /// Writes and commits `signoff.toml`: the scripted agent, and `more`.
    ///
    /// `more` comes first, so that it can set keys that stand outside of any table.
    pub fn configure(&self, more: &str) {
        let (program, script) = (fake_agent::program(), self.script());
        let agent = format!(
            "[agents.scripted]\nkind = \"command\"\ncommand = [{:?}, {:?}]\n",
            program.display().to_string(),
            script.display().to_string(),
        );
        // The scripted agent writes down its calls outside of the worktree, also as a reviewer.
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

    /// What git prints in the checkout.
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

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.env.run(arguments)
    }

    /// Starts the program and goes on.
    pub fn start(&self, arguments: &[&str]) -> Child {
        self.env.start(arguments)
    }

    /// A file of the checkout.
    ///
    /// # Panics
    /// If it is not there.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.env.work().join(name)).expect("a readable file")
    }

    /// What the agent was called for, and what it was told.
    pub fn calls(&self) -> Calls {
        Calls::read(&self.state())
    }

    pub fn state(&self) -> PathBuf {
        self.env.work().with_file_name("agent")
    }

    fn script(&self) -> PathBuf {
        self.env.work().with_file_name("script.json")
    }

    /// The person's checkout as it is, to be compared later.
    pub fn checkout(&self) -> Checkout {
        Checkout {
            head: self.git("rev-parse HEAD"),
            branch: self.git("symbolic-ref HEAD || true"),
            index: fs::read(self.env.work().join(".git/index")).unwrap_or_default(),
            stash: self.git("stash list"),
            status: self.git("--no-optional-locks status --porcelain --untracked-files=all"),
        }
    }

    /// The names of what lies in a directory of the checkout, sorted.
    pub fn list(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.env.work().join(directory)).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}
