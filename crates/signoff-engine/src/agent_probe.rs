//! Checks an agent without running a task: its program, its version and its login. Does not use the network.

mod interpreter;
mod known_agents;
mod login;
mod version;
mod version_cache;

use std::env;
use std::path::{Path, PathBuf};

use signoff_core::settings::{AgentConfig, AgentKind};

pub use interpreter::required_node;
pub use known_agents::{KNOWN_AGENTS, KnownAgent, known_agent};
pub use login::{AgentLogin, find_login};
pub use version::{AgentVersion, VersionError, package_version, query_version};
pub use version_cache::VersionCache;

use crate::detect::{is_executable, search_path};

/// Whether a program can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramStatus {
    Startable(PathBuf),
    /// A script whose interpreter is not installed.
    MissingInterpreter {
        path: PathBuf,
        interpreter: String,
    },
    NotExecutable(PathBuf),
    Missing,
}

/// The name or path of an agent's program. `None` for built-in agents.
pub fn program_of(agent: &AgentConfig) -> Option<&str> {
    let usual = || known_agent(agent.kind).map(|known| known.program);
    agent.command.first().map(String::as_str).or_else(usual)
}

/// Searches a program in `PATH`, or at its path. A relative path refers to the checkout.
pub fn find_program(program: &str, checkout: &Path) -> ProgramStatus {
    if program.contains('/') {
        return first_usable([checkout.join(program)]);
    }
    let paths = search_path();
    first_usable(env::split_paths(&paths).map(|directory| directory.join(program)))
}

/// The first executable of these paths, or else the first file.
fn first_usable(places: impl IntoIterator<Item = PathBuf>) -> ProgramStatus {
    let mut there = None;
    for place in places {
        if is_executable(&place) {
            return match interpreter::missing_interpreter(&place) {
                Some(by) => ProgramStatus::MissingInterpreter { path: place, interpreter: by },
                None => ProgramStatus::Startable(place),
            };
        }
        if there.is_none() && place.is_file() {
            there = Some(place);
        }
    }
    there.map_or(ProgramStatus::Missing, ProgramStatus::NotExecutable)
}

/// The minimum version of a kind, if `version` is older. `None` if it is recent enough or no minimum is known.
pub fn required_version(kind: AgentKind, version: &AgentVersion) -> Option<AgentVersion> {
    let least = known_agent(kind)?.min_version?;
    (*version < least).then_some(least)
}

/// Whether an agent is started as the usual program of its kind, so that it understands `--version`. Another
/// command may interpret the flag in any way.
pub fn understands_version_flag(agent: &AgentConfig) -> bool {
    let Some(known) = known_agent(agent.kind) else { return false };
    match agent.command.as_slice() {
        [] => true,
        [program] => Path::new(program).file_name().is_some_and(|name| name == known.program),
        _ => false,
    }
}

/// The default configuration of an agent of a kind.
pub fn default_agent(kind: AgentKind) -> AgentConfig {
    let name = kind.as_str().to_owned();
    let (provider, command, args, pass) = (name.clone(), Vec::new(), Vec::new(), Vec::new());
    let (env, model, timeout, fallback, max_agents) = (Default::default(), None, None, None, None);
    AgentConfig { name, kind, command, args, env, model, timeout, fallback, provider, max_agents, pass }
}
