//! What can be told of an agent before it is asked for anything: its program, which version it is, whether somebody is
//! logged in. Nothing here reaches the network.

mod interpreter;
mod known;
mod login;
mod remembered;
mod version;

use std::env;
use std::path::{Path, PathBuf};

use signoff_core::config::{Agent, AgentKind};

pub use interpreter::wants_node;
pub use known::{KINDS, Known, known};
pub use login::{Login, login};
pub use remembered::Remembered;
pub use version::{Unversioned, Version, asked, packaged};

use crate::detect::{is_executable, search_path};

/// What lies where a program is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    Startable(PathBuf),
    /// A script, and what runs it is not there.
    Uninterpreted {
        path: PathBuf,
        by: String,
    },
    NotExecutable(PathBuf),
    Missing,
}

/// The name or path that an agent is started by; none for those that are part of this program.
pub fn program(agent: &Agent) -> Option<&str> {
    let usual = || known(agent.kind).map(|known| known.program);
    agent.command.first().map(String::as_str).or_else(usual)
}

/// A program is on the path, or where its own path says; one that does not begin at the root is the checkout's.
pub fn look_for(program: &str, checkout: &Path) -> Program {
    if program.contains('/') {
        return judged([checkout.join(program)]);
    }
    let paths = search_path();
    judged(env::split_paths(&paths).map(|directory| directory.join(program)))
}

/// The first that may be started; otherwise the first that is there.
fn judged(places: impl IntoIterator<Item = PathBuf>) -> Program {
    let mut there = None;
    for place in places {
        if is_executable(&place) {
            return match interpreter::missing(&place) {
                Some(by) => Program::Uninterpreted { path: place, by },
                None => Program::Startable(place),
            };
        }
        if there.is_none() && place.is_file() {
            there = Some(place);
        }
    }
    there.map_or(Program::Missing, Program::NotExecutable)
}

/// What a version that is too old lacks; none where it is recent enough, or nobody knows.
pub fn too_old(kind: AgentKind, version: &Version) -> Option<Version> {
    let least = known(kind)?.least?;
    (*version < least).then_some(least)
}

/// Whether an agent is started as the program that its kind is called after, so that `--version` is understood. What stands
/// behind another command may take it for anything.
pub fn tells_its_version(agent: &Agent) -> bool {
    let Some(known) = known(agent.kind) else { return false };
    match agent.command.as_slice() {
        [] => true,
        [program] => Path::new(program).file_name().is_some_and(|name| name == known.program),
        _ => false,
    }
}

/// An agent of a kind as it is where nobody configured it.
pub fn plain(kind: AgentKind) -> Agent {
    let name = kind.word().to_owned();
    let (provider, command, args, pass) = (name.clone(), Vec::new(), Vec::new(), Vec::new());
    let (env, model, timeout, fallback, max_agents) = (Default::default(), None, None, None, None);
    Agent { name, kind, command, args, env, model, timeout, fallback, provider, max_agents, pass }
}
