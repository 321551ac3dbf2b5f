//! A trial: an agent is asked for one word, as somebody who only reads, in an empty repository. It tells whether its program,
//! its login and its model work together, before any work depends on it.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use signoff_core::config::{Agent, Settings};
use signoff_core::contract::MAX_BYTES;
use signoff_core::hold::Hold;
use signoff_core::machine::Failure;
use signoff_core::review::Usage;

use crate::agent::{self, Duty, Order};
use crate::attempt::{
    Priced, channel_secrets, environment_around, failure, inherited, lay, listen, start_of, told_usage,
    trial_environment,
};
use crate::confine::Held;
use crate::error::EngineError;
use crate::git::{Git, Repository};
use crate::process::{AttemptDir, Ended, Exit, Keeper, Launch, Limits, Running};

/// What it is asked.
const PROMPT: &str = "Answer with the one word ready. Use no tools.\n";

/// Between asking it to end and killing it.
const GRACE: Duration = Duration::from_secs(5);

/// Whom to try out, and where.
#[derive(Debug, Clone, Copy)]
pub struct Trial<'a> {
    /// What things cost.
    pub settings: &'a Settings,
    pub agent: &'a Agent,
    /// signoff itself.
    pub program: &'a Path,
    /// What a relative program is looked up from.
    pub checkout: &'a Path,
    /// The home of the person, who may be logged in there.
    pub person: &'a Path,
    /// The names of the variables that are set here.
    pub variables: &'a BTreeSet<String>,
    pub hold: Hold,
    /// A directory that is there, empty, and thrown away by the caller.
    pub place: &'a Path,
    pub git: &'a Git,
    /// How long it may take, until it is asked to end.
    pub limit: Duration,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// Its answer; why there is none.
    pub answer: Result<String, Failure>,
    pub usage: Usage,
    pub duration: Duration,
}

impl Trial<'_> {
    /// Starts it. Whoever drops what is given ends the agent.
    pub async fn start(&self) -> Result<Running, EngineError> {
        let dir = self.directory();
        let failed = |error| EngineError::io("prepare a trial in", self.place, error);
        let launch = self.prepare(&dir).map_err(failed)??;
        let (program, person) = (self.program.to_owned(), self.person.to_owned());
        let keeper =
            Keeper { program, live: self.place.join("live"), person, hidden: channel_secrets(self.settings) };
        keeper.start(&launch, &dir).await.map_err(failed)
    }

    fn directory(&self) -> AttemptDir {
        AttemptDir::new(self.place.join("attempt"))
    }

    fn repository(&self) -> PathBuf {
        self.place.join("empty")
    }

    fn prepare(&self, dir: &AttemptDir) -> io::Result<Result<Launch, EngineError>> {
        let own = [dir.temporary(), dir.home(), dir.usage_directory()];
        for directory in own.iter().chain([&self.repository()]) {
            DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        fs::write(dir.prompt(), PROMPT)?;
        fs::write(self.repository().join("README.md"), "Nothing is here.\n")?;
        if let Err(error) = Repository::make(self.git, &self.repository(), "Empty") {
            return Ok(Err(error.into()));
        }
        let Some(adapter) = agent::of(self.agent.kind) else {
            let why = format!("agents of kind {} cannot be driven", self.agent.kind.word());
            return Ok(Err(EngineError::Broken(why)));
        };
        let line = adapter.command_line(&Order {
            agent: self.agent,
            model: self.agent.model.as_deref(),
            program: &self.program.display().to_string(),
            duty: Duty::Read,
            worktree: &self.repository(),
            repository: &self.repository(),
            checkout: self.checkout,
            home: &dir.home(),
            person: self.person,
            inherits: &inherited(self.agent, self.variables),
            reporting: None,
            resumes: None,
            hold: self.hold,
            root: rustix::process::geteuid().is_root(),
        });
        lay(&line.files)?;
        let environment =
            environment_around(self.agent, line.environment, trial_environment(dir), self.settings);
        let held = match self.hold {
            Hold::Nobody => None,
            by @ (Hold::Landlock | Hold::Bubblewrap) => Some(Held { by, writable: own.into(), ports: None }),
        };
        let limits = Limits { time: Some(self.limit), silence: None, grace: GRACE };
        let (program, arguments, directory) = (line.program, line.arguments, self.repository());
        Ok(Ok(Launch { program, arguments, directory, environment, held, limits }))
    }

    /// What its end came to.
    pub fn conclude(&self, ended: &Ended) -> Tried {
        let dir = self.directory();
        let adapter = agent::of(self.agent.kind).filter(|agent| !agent.is_plain());
        let duration = Duration::from_millis(ended.duration_ms);
        let priced = Priced { settings: self.settings, model: self.agent.model.as_deref() };
        let Some(adapter) = adapter else {
            let message = start_of(&dir.stdout(), MAX_BYTES as u64);
            let answer = match failure(&ended.exit) {
                Some(failure) => Err(failure),
                None => said(&String::from_utf8_lossy(&message)),
            };
            return Tried { answer, usage: told_usage(priced, &dir), duration };
        };
        let account = listen(adapter.as_ref(), &dir, (ended, false));
        let usage = priced.all(&account.heard.spent);
        // What we did to it comes first, then its own word; its exit code alone says nothing.
        let answer =
            match (&ended.exit, account.heard.trouble) {
                (Exit::Code(_) | Exit::Signal(_), Some(trouble)) => Err(Failure::Trouble(trouble)),
                (Exit::Code(_) | Exit::Signal(_), None) => said(&account.message),
                (
                    Exit::TimedOut
                    | Exit::Silent
                    | Exit::Stopped
                    | Exit::Orphaned
                    | Exit::Unkept { .. }
                    | Exit::NotStarted { .. },
                    _,
                ) => Err(failure(&ended.exit)
                    .unwrap_or(Failure::Unusable { message: "it was stopped".to_owned() })),
            };
        Tried { answer, usage, duration }
    }
}

/// An answer is a word at least; which one is the model's affair.
fn said(message: &str) -> Result<String, Failure> {
    match message.trim() {
        "" => Err(Failure::BadAnswer { message: "it ended well and answered nothing".to_owned() }),
        answer => Ok(answer.to_owned()),
    }
}
