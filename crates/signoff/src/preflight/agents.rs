//! Which agents are on this machine: those that are configured, and those whose program is on the path.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::thread;

use signoff_core::config::{Agent, Settings};
use signoff_engine::layout::DIRECTORY;
use signoff_engine::scout::{self, Known, Login, Program, Remembered, Unversioned, Version};
use signoff_term::agents::AgentRow;

use crate::door::{self, Throwaway};
use crate::failure::Failure;
use crate::settings;

/// An agent, and what can be told of it without the network.
pub struct Seen {
    pub agent: Agent,
    pub configured: bool,
    /// None for those that are part of signoff.
    pub program: Option<Program>,
    /// What it says of itself, where it was asked.
    pub version: Option<Result<Version, Unversioned>>,
    pub login: Login,
}

/// Looks at every agent that is configured, and at every other one that is installed.
pub fn all(settings: &Settings, checkout: &Path) -> Result<Vec<Seen>, Failure> {
    let configured = settings.agents();
    let other = |known: &&Known| configured.iter().all(|agent| agent.kind != known.kind);
    let installed = scout::KINDS.iter().filter(other).map(|known| scout::plain(known.kind));
    let mut seen: Vec<Seen> = configured.iter().cloned().map(|agent| look(agent, true, checkout)).collect();
    let found = installed.map(|agent| look(agent, false, checkout));
    seen.extend(found.filter(Seen::is_there));
    ask_versions(&mut seen)?;
    remember(&seen, checkout);
    Ok(seen)
}

/// The same for those alone whose program is on the path, whatever is configured.
pub fn installed() -> Result<Vec<Seen>, Failure> {
    let seen = scout::KINDS.iter().map(|known| look(scout::plain(known.kind), false, Path::new("/")));
    let mut seen: Vec<Seen> = seen.filter(Seen::is_there).collect();
    ask_versions(&mut seen)?;
    Ok(seen)
}

fn look(agent: Agent, configured: bool, checkout: &Path) -> Seen {
    let program = scout::program(&agent).map(|program| scout::look_for(program, checkout));
    let login = scout::login(&agent, &variables(), &settings::home().unwrap_or_default());
    Seen { agent, configured, program, version: None, login }
}

/// The names of the variables that have a value here.
pub fn variables() -> BTreeSet<String> {
    let set = door::environment().into_iter().filter(|(_, value)| !value.is_empty());
    set.filter_map(|(name, _)| name.into_string().ok()).collect()
}

/// Asks all at once: some take seconds. Each has a home of its own, so that asking leaves nothing with the person.
fn ask_versions(seen: &mut [Seen]) -> Result<(), Failure> {
    let place = Throwaway::new("agents")?;
    thread::scope(|scope| {
        for (number, one) in seen.iter_mut().enumerate() {
            let Some(program) = one.asked() else { continue };
            let home = place.path().join(number.to_string());
            if std::fs::create_dir(&home).is_ok() {
                scope.spawn(move || one.version = Some(version(&program, &home)));
            }
        }
    });
    Ok(())
}

/// What a program says of itself, unless it cannot be run by the Node.js that is here.
fn version(program: &Path, home: &Path) -> Result<Version, Unversioned> {
    match scout::wants_node(program) {
        Some((least, node)) => by_node(least, scout::asked(&node, home)),
        None => Ok(()),
    }?;
    scout::asked(program, home)
}

/// Whether a script can be run by a Node.js that says this of itself. Whoever says nothing may do.
fn by_node(least: Version, node: Result<Version, Unversioned>) -> Result<(), Unversioned> {
    match node {
        Ok(version) if version < least => {
            let why = format!("it needs Node.js {least} or later, and `node` is {version}");
            Err(Unversioned::NotStarted(why))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Where versions are remembered.
fn remembered(root: &Path) -> Remembered {
    Remembered::at(root.join(DIRECTORY).join("versions.json"))
}

/// What was asked now need not be asked before the next run.
fn remember(seen: &[Seen], root: &Path) {
    let mut remembered = remembered(root);
    for one in seen {
        match (one.asked(), &one.version) {
            (Some(program), Some(Ok(version))) => remembered.remember(&program, Some(*version)),
            (Some(program), Some(Err(Unversioned::Untold(_)))) => remembered.remember(&program, None),
            (Some(_), Some(Err(Unversioned::NotStarted(_))) | None) | (None, _) => {}
        }
    }
}

impl Seen {
    /// Whether its program is on the path, as far as anybody needs to hear of it.
    fn is_there(&self) -> bool {
        matches!(self.program, Some(Program::Startable(_) | Program::Uninterpreted { .. }))
    }

    /// The program that can be asked for its version.
    fn asked(&self) -> Option<PathBuf> {
        match &self.program {
            Some(Program::Startable(path)) if scout::tells_its_version(&self.agent) => Some(path.clone()),
            Some(
                Program::Startable(_)
                | Program::Uninterpreted { .. }
                | Program::NotExecutable(_)
                | Program::Missing,
            )
            | None => None,
        }
    }

    /// Why it cannot be used, and what to do about it.
    pub fn problem(&self) -> Option<(String, String)> {
        match self.program.as_ref()? {
            Program::Startable(path) => match self.version.as_ref()? {
                Ok(version) => too_old(&self.agent, version),
                Err(Unversioned::NotStarted(why)) => Some(cannot_start(&self.agent, path, why)),
                Err(Unversioned::Untold(_)) => None,
            },
            Program::Uninterpreted { path, by } => Some(uninterpreted(&self.agent, path, by)),
            Program::NotExecutable(path) => Some(not_executable(&self.agent, path)),
            Program::Missing => Some(missing(&self.agent)),
        }
    }

    /// The row that people and programs are shown.
    pub fn row(&self) -> AgentRow {
        let (login, login_by) = match &self.login {
            Login::Key(by) | Login::Kept(by) => ("logged_in", Some(by.clone())),
            Login::None => ("not_logged_in", None),
            Login::Unknown => ("unknown", None),
            Login::NotNeeded => ("not_needed", None),
        };
        let (problem, hint) = self.problem().unzip();
        let version = self.version.as_ref().and_then(|version| version.as_ref().ok());
        let least = scout::known(self.agent.kind).and_then(|known| known.least);
        let note = match &self.version {
            Some(Err(Unversioned::Untold(why))) => Some(why.clone()),
            Some(Ok(_) | Err(Unversioned::NotStarted(_))) | None => None,
        };
        AgentRow {
            name: self.agent.name.clone(),
            kind: self.agent.kind,
            configured: self.configured,
            program: match &self.program {
                Some(
                    Program::Startable(path)
                    | Program::Uninterpreted { path, .. }
                    | Program::NotExecutable(path),
                ) => Some(path.display().to_string()),
                Some(Program::Missing) | None => None,
            },
            program_version: version.map(ToString::to_string),
            least_version: least.map(|least| least.to_string()),
            too_old: version.is_some_and(|version| scout::too_old(self.agent.kind, version).is_some()),
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

/// What an agent is called by, where its program is not there.
pub fn missing(agent: &Agent) -> (String, String) {
    let program = scout::program(agent).unwrap_or_default();
    let known = scout::known(agent.kind).filter(|_| agent.command.is_empty());
    let install = known.map_or_else(
        || "install it".to_owned(),
        |known| format!("install it (`npm install -g {}`)", known.package),
    );
    let hint = format!("{install}, or set [agents.{}] command in signoff.toml", agent.name);
    (format!("there is no program {program}"), hint)
}

pub fn not_executable(agent: &Agent, path: &Path) -> (String, String) {
    // People know it by the path that they gave it.
    let given = scout::program(agent).filter(|program| program.contains('/'));
    let path = given.map_or_else(|| path.display().to_string(), str::to_owned);
    (format!("{path} is not executable"), format!("make it so: chmod +x {path}"))
}

pub fn uninterpreted(agent: &Agent, path: &Path, by: &str) -> (String, String) {
    let hint = format!("install {by}, or let PATH lead to it; or set [agents.{}] command", agent.name);
    (format!("{} is run by {by}, which is not there", path.display()), hint)
}

pub fn too_old(agent: &Agent, version: &Version) -> Option<(String, String)> {
    let least = scout::too_old(agent.kind, version)?;
    let package = scout::known(agent.kind).map_or("", |known| known.package);
    let said = format!("version {version} is too old: it must be {least} or later");
    Some((said, format!("update it (`npm install -g {package}@latest`, or as you installed it)")))
}

pub fn cannot_start(agent: &Agent, path: &Path, why: &str) -> (String, String) {
    let hint =
        format!("see what `{} --version` says, or set [agents.{}] command", path.display(), agent.name);
    (format!("it cannot be started: {why}"), hint)
}

/// What is wrong with the version of an agent's program, before a run. A program that did not change is asked once, and one
/// of an npm package not at all. Nobody is refused for what was true yesterday.
pub fn wrong_version(agent: &Agent, program: &Path, root: &Path) -> Option<(String, String)> {
    if !scout::tells_its_version(agent) {
        return None;
    }
    let mut remembered = remembered(root);
    if let Some((least, node)) = scout::wants_node(program)
        && let Err(Unversioned::NotStarted(why)) = by_node(least, recalled(&mut remembered, &node, least))
    {
        return Some(cannot_start(agent, program, &why));
    }
    if let Some(version) = scout::packaged(program) {
        return too_old(agent, &version);
    }
    let least = scout::known(agent.kind).and_then(|known| known.least).unwrap_or(Version(0, 0, 0));
    match recalled(&mut remembered, program, least) {
        Ok(version) => too_old(agent, &version),
        Err(Unversioned::NotStarted(why)) => Some(cannot_start(agent, program, &why)),
        Err(Unversioned::Untold(_)) => None,
    }
}

/// The version of a program that is known to be recent enough, or not to tell; otherwise what it says now.
fn recalled(remembered: &mut Remembered, program: &Path, least: Version) -> Result<Version, Unversioned> {
    match remembered.version(program) {
        Some(Some(version)) if version >= least => return Ok(version),
        Some(None) => return Err(Unversioned::Untold("it did not tell its version before".to_owned())),
        Some(Some(_)) | None => {}
    }
    // Who cannot be asked is started, and tells then.
    let place = Throwaway::new("agents").map_err(|failure| Unversioned::Untold(failure.to_string()))?;
    let asked = scout::asked(program, place.path());
    match &asked {
        Ok(version) => remembered.remember(program, Some(*version)),
        Err(Unversioned::Untold(_)) => remembered.remember(program, None),
        // It may be another day.
        Err(Unversioned::NotStarted(_)) => {}
    }
    asked
}
