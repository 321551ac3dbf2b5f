//! Finds the agents of this machine: the configured ones, and those whose program is on `PATH`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::thread;

use signoff_core::settings::{AgentConfig, Settings};
use signoff_engine::agent_probe::{
    self, AgentLogin, AgentVersion, KnownAgent, ProgramStatus, VersionCache, VersionError,
};
use signoff_engine::layout::DIRECTORY;
use signoff_term::agents::{AgentRow, LoginState};

use crate::host::{self, TemporaryDirectory};
use crate::{Result, settings};

/// An agent and what is known about it without using the network.
pub struct AgentStatus {
    pub agent: AgentConfig,
    pub configured: bool,
    /// `None` for agents built into signoff.
    pub program: Option<ProgramStatus>,
    /// The version it reports, if it was asked.
    pub version: Option<Result<AgentVersion, VersionError>>,
    pub login: AgentLogin,
}

/// Why the program of an agent cannot be used.
pub struct AgentProblem {
    pub message: String,
    pub hint: String,
}

/// Probes every configured agent and every other installed one.
pub fn probe_all(settings: &Settings, checkout: &Path) -> Result<Vec<AgentStatus>> {
    let configured = settings.agents();
    let other = |builtin: &&KnownAgent| configured.iter().all(|agent| agent.kind != builtin.kind);
    let installed =
        agent_probe::KNOWN_AGENTS.iter().filter(other).map(|builtin| agent_probe::default_agent(builtin.kind));
    let mut statuses: Vec<AgentStatus> = configured.iter().cloned().map(|agent| probe(agent, true, checkout)).collect();
    let found = installed.map(|agent| probe(agent, false, checkout));
    statuses.extend(found.filter(AgentStatus::is_installed));
    ask_versions(&mut statuses)?;
    cache_versions(&statuses, checkout);
    Ok(statuses)
}

/// Probes only the agents whose program is on `PATH`, regardless of the configuration.
pub fn installed() -> Result<Vec<AgentStatus>> {
    let statuses = agent_probe::KNOWN_AGENTS
        .iter()
        .map(|builtin| probe(agent_probe::default_agent(builtin.kind), false, Path::new("/")));
    let mut statuses: Vec<AgentStatus> = statuses.filter(AgentStatus::is_installed).collect();
    ask_versions(&mut statuses)?;
    Ok(statuses)
}

fn probe(agent: AgentConfig, configured: bool, checkout: &Path) -> AgentStatus {
    let program = agent_probe::program_of(&agent).map(|program| agent_probe::find_program(program, checkout));
    let login = agent_probe::find_login(&agent, &variables(), &settings::home().unwrap_or_default());
    AgentStatus { agent, configured, program, version: None, login }
}

/// The names of all environment variables with a value.
pub fn variables() -> BTreeSet<String> {
    let set = host::environment().into_iter().filter(|(_, value)| !value.is_empty());
    set.filter_map(|(name, _)| name.into_string().ok()).collect()
}

/// Asks all agents for their version in parallel, because some take seconds. Each runs with its own temporary home, so
/// that it writes nothing into the user's.
fn ask_versions(statuses: &mut [AgentStatus]) -> Result<()> {
    let temp_dir = TemporaryDirectory::new("agents")?;
    thread::scope(|scope| {
        for (number, status) in statuses.iter_mut().enumerate() {
            let Some(program) = status.version_program() else { continue };
            let home = temp_dir.path().join(number.to_string());
            if std::fs::create_dir(&home).is_ok() {
                scope.spawn(move || status.version = Some(version(&program, &home)));
            }
        }
    });
    Ok(())
}

/// Asks a program for its version, unless the installed Node.js is too old to run it.
fn version(program: &Path, home: &Path) -> Result<AgentVersion, VersionError> {
    match agent_probe::required_node(program) {
        Some((least, node)) => check_node(least, agent_probe::query_version(&node, home)),
        None => Ok(()),
    }?;
    agent_probe::query_version(program, home)
}

/// Checks that a Node.js version is recent enough for a script. An unknown version passes.
fn check_node(least: AgentVersion, node: Result<AgentVersion, VersionError>) -> Result<(), VersionError> {
    match node {
        Ok(version) if version < least => {
            let why = format!("it needs Node.js {least} or later, and `node` is {version}");
            Err(VersionError::NotStarted(why))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The cache of program versions.
fn version_cache(root: &Path) -> VersionCache {
    VersionCache::open(root.join(DIRECTORY).join("versions.json"))
}

/// Stores the versions in the cache, so that the next run need not ask again.
fn cache_versions(statuses: &[AgentStatus], root: &Path) {
    let mut cache = version_cache(root);
    for status in statuses {
        if let (Some(program), Some(version)) = (status.version_program(), &status.version) {
            cache_version(&mut cache, &program, version);
        }
    }
}

fn cache_version(versions: &mut VersionCache, program: &Path, version: &Result<AgentVersion, VersionError>) {
    match version {
        Ok(version) => versions.insert(program, Some(*version)),
        Err(VersionError::NotReported(_)) => versions.insert(program, None),
        // Not cached: it may start next time.
        Err(VersionError::NotStarted(_)) => {}
    }
}

impl AgentStatus {
    /// Whether its program was found.
    fn is_installed(&self) -> bool {
        matches!(self.program, Some(ProgramStatus::Startable(_) | ProgramStatus::MissingInterpreter { .. }))
    }

    /// The program to ask for its version, if it reports one.
    fn version_program(&self) -> Option<PathBuf> {
        let Some(ProgramStatus::Startable(path)) = &self.program else { return None };
        agent_probe::understands_version_flag(&self.agent).then(|| path.clone())
    }

    /// Why it cannot be used.
    pub fn problem(&self) -> Option<AgentProblem> {
        program_problem(&self.agent, self.program.as_ref()?, |path| {
            version_problem(&self.agent, path, self.version.as_ref()?)
        })
    }

    /// The row for `signoff agents`.
    pub fn row(&self) -> AgentRow {
        let (login, login_by) = match &self.login {
            AgentLogin::Key(by) | AgentLogin::Stored(by) => (LoginState::LoggedIn, Some(by.clone())),
            AgentLogin::None => (LoginState::NotLoggedIn, None),
            AgentLogin::Unknown => (LoginState::Unknown, None),
            AgentLogin::NotNeeded => (LoginState::NotNeeded, None),
        };
        let (problem, hint) = self.problem().map(|problem| (problem.message, problem.hint)).unzip();
        let version = self.version.as_ref().and_then(|version| version.as_ref().ok());
        let least = agent_probe::known_agent(self.agent.kind).and_then(|agent| agent.min_version);
        let note = match &self.version {
            Some(Err(VersionError::NotReported(why))) => Some(why.clone()),
            Some(Ok(_) | Err(VersionError::NotStarted(_))) | None => None,
        };
        AgentRow {
            name: self.agent.name.clone(),
            kind: self.agent.kind,
            configured: self.configured,
            program: match &self.program {
                Some(
                    ProgramStatus::Startable(path)
                    | ProgramStatus::MissingInterpreter { path, .. }
                    | ProgramStatus::NotExecutable(path),
                ) => Some(path.display().to_string()),
                Some(ProgramStatus::Missing) | None => None,
            },
            program_version: version.map(ToString::to_string),
            least_version: least.map(|least| least.to_string()),
            too_old: version.is_some_and(|version| agent_probe::required_version(self.agent.kind, version).is_some()),
            login,
            login_by,
            model: self.agent.model.clone(),
            problem,
            hint,
            note,
            check: None,
        }
    }
}

/// The problem of an agent's program. `version` looks for a problem of a program that can be started.
pub fn program_problem(
    agent: &AgentConfig,
    program: &ProgramStatus,
    version: impl FnOnce(&Path) -> Option<AgentProblem>,
) -> Option<AgentProblem> {
    match program {
        ProgramStatus::Startable(path) => version(path),
        ProgramStatus::Missing => Some(missing(agent)),
        ProgramStatus::NotExecutable(path) => {
            // Show the path as it is configured.
            let given = agent_probe::program_of(agent).filter(|program| program.contains('/'));
            let path = given.map_or_else(|| path.display().to_string(), str::to_owned);
            Some(AgentProblem { message: format!("{path} is not executable"), hint: format!("run `chmod +x {path}`") })
        }
        ProgramStatus::MissingInterpreter { path, interpreter } => {
            let hint = format!("install {interpreter}, or put it on PATH; or set [agents.{}] command", agent.name);
            let message = format!("{} needs the interpreter {interpreter}, which was not found", path.display());
            Some(AgentProblem { message, hint })
        }
    }
}

fn missing(agent: &AgentConfig) -> AgentProblem {
    let program = agent_probe::program_of(agent).unwrap_or_default();
    let known_agent = agent_probe::known_agent(agent.kind).filter(|_| agent.command.is_empty());
    let install = known_agent.map_or_else(
        || "install it".to_owned(),
        |known_agent| format!("install it (`npm install -g {}`)", known_agent.package),
    );
    let hint = format!("{install}, or set [agents.{}] command in signoff.toml", agent.name);
    AgentProblem { message: format!("program {program} was not found"), hint }
}

/// The problem of a program whose version cannot be used.
fn version_problem(
    agent: &AgentConfig,
    path: &Path,
    version: &Result<AgentVersion, VersionError>,
) -> Option<AgentProblem> {
    match version {
        Ok(version) => {
            let least = agent_probe::required_version(agent.kind, version)?;
            let package = agent_probe::known_agent(agent.kind).map_or("", |agent| agent.package);
            let message = format!("version {version} is too old: it must be {least} or later");
            let hint = format!("update it (`npm install -g {package}@latest`, or with your package manager)");
            Some(AgentProblem { message, hint })
        }
        Err(VersionError::NotStarted(why)) => {
            let hint =
                format!("check the output of `{} --version`, or set [agents.{}] command", path.display(), agent.name);
            Some(AgentProblem { message: format!("it cannot be started: {why}"), hint })
        }
        Err(VersionError::NotReported(_)) => None,
    }
}

/// Returns the problem if the version of an agent's program is unusable. An unchanged program is asked only
/// once, and a program of an npm package not at all. A cached version that is too old is checked again.
pub fn wrong_version(agent: &AgentConfig, program: &Path, root: &Path) -> Option<AgentProblem> {
    if !agent_probe::understands_version_flag(agent) {
        return None;
    }
    let mut cache = version_cache(root);
    if let Some((least, node)) = agent_probe::required_node(program)
        && let Err(why) = check_node(least, cached_version(&mut cache, &node, least))
    {
        return version_problem(agent, program, &Err(why));
    }
    if let Some(version) = agent_probe::package_version(program) {
        return version_problem(agent, program, &Ok(version));
    }
    let least =
        agent_probe::known_agent(agent.kind).and_then(|agent| agent.min_version).unwrap_or(AgentVersion(0, 0, 0));
    version_problem(agent, program, &cached_version(&mut cache, program, least))
}

/// Returns the cached version if it is recent enough, or if the program reports none; otherwise asks the program.
fn cached_version(cache: &mut VersionCache, program: &Path, least: AgentVersion) -> Result<AgentVersion, VersionError> {
    match cache.get(program) {
        Some(Some(version)) if version >= least => return Ok(version),
        Some(None) => {
            return Err(VersionError::NotReported("it did not report its version before".to_owned()));
        }
        Some(Some(_)) | None => {}
    }
    // If there is no directory to run it in, the agent is started without the check.
    let temp_dir =
        TemporaryDirectory::new("agents").map_err(|failure| VersionError::NotReported(failure.to_string()))?;
    let version = agent_probe::query_version(program, temp_dir.path());
    cache_version(cache, program, &version);
    version
}
