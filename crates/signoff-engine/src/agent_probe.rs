//! Checks an agent without running a task: its program, its version and its login. Does not use the network.

mod interpreter;
mod login;
mod version;

use std::env;
use std::path::{Path, PathBuf};

use signoff_core::settings::{AgentConfig, AgentKind};

use crate::detect::{is_executable, search_path};

pub use interpreter::required_node;
pub use login::{AgentLogin, find_login};
pub use version::VersionCache;
pub use version::{AgentVersion, VersionError, package_version, query_version};

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

/// Facts about one kind of agent.
#[derive(Debug)]
pub struct KnownAgent {
    pub kind: AgentKind,
    /// Name of its program.
    pub program: &'static str,
    /// Minimum version that understands all our arguments, if known.
    pub min_version: Option<AgentVersion>,
    /// Variables with a key or a token. One of them is enough.
    pub key_variables: &'static [&'static str],
    /// Files below the user's home that exist after a login, with a description for the user.
    pub login_files: &'static [(&'static str, &'static str)],
    /// Files below the user's home that may set variables, in lines of `NAME=value`.
    pub env_files: &'static [&'static str],
    /// Variables that select another provider or make a login unnecessary.
    pub provider_variables: &'static [&'static str],
    /// Whether it may need no login, or stores it where we cannot look.
    pub login_is_unknown: bool,
    /// The npm package that contains it.
    pub package: &'static str,
}

/// The kinds that are separate programs, in search order.
pub const KNOWN_AGENTS: [KnownAgent; 6] = [
    KnownAgent {
        kind: AgentKind::Claude,
        program: "claude",
        // 2.0.42 does not know `--permission-mode dontAsk`.
        min_version: Some(AgentVersion(2, 0, 44)),
        key_variables: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
        login_files: &[(".claude/.credentials.json", "~/.claude")],
        env_files: &[],
        provider_variables: &["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"],
        // The login may be in the keychain.
        login_is_unknown: cfg!(target_os = "macos"),
        package: "@anthropic-ai/claude-code",
    },
    KnownAgent {
        kind: AgentKind::Codex,
        program: "codex",
        // 0.121.0 does not know `--ignore-rules`.
        min_version: Some(AgentVersion(0, 122, 0)),
        key_variables: &["CODEX_API_KEY"],
        login_files: &[(".codex/auth.json", "~/.codex")],
        env_files: &[],
        provider_variables: &["OPENAI_BASE_URL"],
        login_is_unknown: false,
        package: "@openai/codex",
    },
    KnownAgent {
        kind: AgentKind::Gemini,
        program: "gemini",
        // 0.39.0 does not know `--skip-trust`.
        min_version: Some(AgentVersion(0, 39, 1)),
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        login_files: &[(".gemini/oauth_creds.json", "~/.gemini"), (".gemini/gemini-credentials.json", "~/.gemini")],
        env_files: &[".gemini/.env", ".env"],
        provider_variables: &["GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA", "GOOGLE_APPLICATION_CREDENTIALS"],
        login_is_unknown: false,
        package: "@google/gemini-cli",
    },
    KnownAgent {
        kind: AgentKind::Opencode,
        program: "opencode",
        // 1.17.11 does not know `--auto`.
        min_version: Some(AgentVersion(1, 17, 12)),
        key_variables: &[],
        login_files: &[(".local/share/opencode/auth.json", "~/.local/share/opencode")],
        env_files: &[],
        provider_variables: &[],
        // It accepts keys of any provider, and some models need none.
        login_is_unknown: true,
        package: "opencode-ai",
    },
    KnownAgent {
        kind: AgentKind::Qwen,
        program: "qwen",
        min_version: None,
        key_variables: &["OPENAI_API_KEY", "DASHSCOPE_API_KEY"],
        login_files: &[(".qwen/oauth_creds.json", "~/.qwen")],
        env_files: &[".qwen/.env", ".env"],
        provider_variables: &[],
        // Its settings may contain another provider with its key.
        login_is_unknown: true,
        package: "@qwen-code/qwen-code",
    },
    KnownAgent {
        kind: AgentKind::Copilot,
        program: "copilot",
        min_version: None,
        key_variables: &["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_PROVIDER_API_KEY"],
        login_files: &[],
        env_files: &[],
        provider_variables: &["COPILOT_PROVIDER_BASE_URL"],
        // The login may be in the keychain or that of `gh`.
        login_is_unknown: true,
        package: "@github/copilot",
    },
];

/// The facts about a kind. `None` for kinds that are no separate program.
pub fn known_agent(kind: AgentKind) -> Option<&'static KnownAgent> {
    KNOWN_AGENTS.iter().find(|known| known.kind == kind)
}
