//! Checks an agent without running a task: its program, its version and its login. Does not use the network.

mod version;

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};

use signoff_core::settings::{AgentConfig, AgentKind};
pub use version::{AgentVersion, VersionCache, VersionError, package_version, query_version};

use crate::agent::credentials;
use crate::atomic_file;
use crate::attempt::inherits;
use crate::detect::{is_executable, is_installed, search_path};

/// Whether a program can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramStatus {
    /// It can be started.
    Startable(PathBuf),
    /// A script whose interpreter is not installed.
    MissingInterpreter { path: PathBuf, interpreter: String },
    /// A file that may not be executed.
    NotExecutable(PathBuf),
    /// There is no such file.
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
fn first_usable(paths: impl IntoIterator<Item = PathBuf>) -> ProgramStatus {
    let mut there = None;
    for path in paths {
        if is_executable(&path) {
            return match missing_interpreter(&path) {
                Some(by) => ProgramStatus::MissingInterpreter { path, interpreter: by },
                None => ProgramStatus::Startable(path),
            };
        }
        if there.is_none() && path.is_file() {
            there = Some(path);
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
    let name = kind.into_str().to_owned();
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
        // 2.0.42 does not support `--permission-mode dontAsk`.
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
        // 0.121.0 does not support `--ignore-rules`.
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
        // 0.39.0 does not support `--skip-trust`.
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
        // 1.17.11 does not support `--auto`.
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

/// Maximum length of a first line that systems read.
const MAX_FIRST_LINE: u64 = 256;

/// The interpreter in a script's first line: a path, or a name that `env` searches. `None` if it is not a script.
fn interpreter(program: &Path) -> Option<String> {
    let start = atomic_file::read_at_most(program, MAX_FIRST_LINE).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = str::from_utf8(line).ok()?;
    let mut arguments = line.split_whitespace();
    let path = arguments.next()?;
    let is_env = Path::new(path).file_name().is_some_and(|name| name == "env");
    let named = arguments.find(|argument| !argument.starts_with('-') && !argument.contains('='));
    Some(named.filter(|_| is_env).unwrap_or(path).to_owned())
}

/// The interpreter of a script, if it is not installed.
fn missing_interpreter(program: &Path) -> Option<String> {
    let interpreter = interpreter(program)?;
    let there =
        if interpreter.contains('/') { is_executable(Path::new(&interpreter)) } else { is_installed(&interpreter) };
    (!there).then_some(interpreter)
}

/// The minimum Node.js version of an npm package's script, and the Node.js that would run it.
pub fn required_node(program: &Path) -> Option<(AgentVersion, PathBuf)> {
    let interpreter = interpreter(program).filter(|name| Path::new(name).ends_with("node"))?;
    let least = version::min_node_version(program)?;
    match find_program(&interpreter, Path::new("/")) {
        ProgramStatus::Startable(node) => Some((least, node)),
        ProgramStatus::MissingInterpreter { .. } | ProgramStatus::NotExecutable(_) | ProgramStatus::Missing => None,
    }
}

/// The login of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentLogin {
    /// A key in this variable.
    Key(String),
    /// A stored login at this path, written for the user.
    Stored(String),
    None,
    /// It may have a login where we cannot look, or need none.
    Unknown,
    /// It needs no login.
    NotNeeded,
}

/// Searches a login in the inherited environment, the configuration and the user's home.
pub fn find_login(agent: &AgentConfig, set_variables: &BTreeSet<String>, user_home: &Path) -> AgentLogin {
    let Some(known) = known_agent(agent.kind) else {
        let needs_none = matches!(agent.kind, AgentKind::Checks | AgentKind::Demo);
        return if needs_none { AgentLogin::NotNeeded } else { AgentLogin::Unknown };
    };
    let inherited = |name: &str| set_variables.contains(name) && inherits(agent, name);
    let finds = |name: &&&str| inherited(name) || agent.env.contains_key(**name);
    if let Some(key) = known.key_variables.iter().find(finds) {
        return AgentLogin::Key((*key).to_owned());
    }
    if let Some((_, path)) = known.login_files.iter().find(|(file, _)| user_home.join(file).is_file()) {
        return AgentLogin::Stored((*path).to_owned());
    }
    if let Some(file) = known.env_files.iter().find(|file| sets_key(known, &user_home.join(file))) {
        return AgentLogin::Stored(format!("~/{file}"));
    }
    // The user selected another provider, whose login is unknown.
    let elsewhere = known.provider_variables.iter().any(|name| finds(&name)) || !agent.args.is_empty();
    if elsewhere || known.login_is_unknown { AgentLogin::Unknown } else { AgentLogin::None }
}

fn sets_key(known: &KnownAgent, file: &Path) -> bool {
    let set = credentials::read_env_file(file);
    known.key_variables.iter().any(|key| set.get(*key).is_some_and(|value| !value.is_empty()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_shebang_names_the_interpreter() {
        let directory = tempfile::tempdir().unwrap();
        let run_by = |text: &str| {
            let file = directory.path().join("program");
            fs::write(&file, text).unwrap();
            interpreter(&file)
        };
        for (text, name) in [
            ("#!/usr/bin/env node\nx", Some("node")),
            ("#!/usr/bin/env -S node --no-warnings=DEP0040\n", Some("node")),
            ("#!/usr/bin/env -S FORCE=1 node\n", Some("node")),
            ("#! /bin/sh -e\n", Some("/bin/sh")),
            ("#!/usr/bin/python3", Some("/usr/bin/python3")),
            ("#!/usr/bin/env\n", Some("/usr/bin/env")),
            ("#!\n", None),
            ("\u{7f}ELF", None),
            ("", None),
        ] {
            assert_eq!(run_by(text).as_deref(), name, "{text}");
        }
        let script = directory.path().join("program");
        fs::write(&script, "#!/usr/bin/env no-such-program\n").unwrap();
        assert_eq!(missing_interpreter(&script).as_deref(), Some("no-such-program"));
        fs::write(&script, "#!/bin/sh\n").unwrap();
        assert_eq!(missing_interpreter(&script), None);
        assert_eq!(missing_interpreter(&directory.path().join("nothing")), None);
    }

    fn agent(kind: AgentKind) -> AgentConfig {
        default_agent(kind)
    }

    #[test]
    fn a_key_takes_precedence_over_a_file() {
        let home = tempfile::tempdir().unwrap();
        let mut claude = agent(AgentKind::Claude);
        let nothing = BTreeSet::new();
        let found = |agent: &AgentConfig, inherits: &BTreeSet<String>| find_login(agent, inherits, home.path());
        if !cfg!(target_os = "macos") {
            assert_eq!(found(&claude, &nothing), AgentLogin::None);
        }
        fs::create_dir(home.path().join(".claude")).unwrap();
        fs::write(home.path().join(".claude/.credentials.json"), "{}").unwrap();
        assert_eq!(found(&claude, &nothing), AgentLogin::Stored("~/.claude".to_owned()));
        let inherits = BTreeSet::from(["CLAUDE_CODE_OAUTH_TOKEN".to_owned()]);
        assert_eq!(found(&claude, &inherits), AgentLogin::Key("CLAUDE_CODE_OAUTH_TOKEN".to_owned()));
        claude.env.insert("ANTHROPIC_API_KEY".to_owned(), "k".to_owned());
        assert_eq!(found(&claude, &nothing), AgentLogin::Key("ANTHROPIC_API_KEY".to_owned()));
    }

    #[test]
    fn another_provider_may_need_no_login() {
        let home = tempfile::tempdir().unwrap();
        let nothing = BTreeSet::new();
        let mut codex = agent(AgentKind::Codex);
        assert_eq!(find_login(&codex, &nothing, home.path()), AgentLogin::None);
        codex.args = vec!["-c".to_owned(), "model_provider=mine".to_owned()];
        assert_eq!(find_login(&codex, &nothing, home.path()), AgentLogin::Unknown);
        assert_eq!(find_login(&agent(AgentKind::Opencode), &nothing, home.path()), AgentLogin::Unknown);
        assert_eq!(find_login(&agent(AgentKind::Command), &nothing, home.path()), AgentLogin::Unknown);
        assert_eq!(find_login(&agent(AgentKind::Demo), &nothing, home.path()), AgentLogin::NotNeeded);
    }

    #[test]
    fn an_env_file_may_hold_the_key() {
        let home = tempfile::tempdir().unwrap();
        let gemini = agent(AgentKind::Gemini);
        fs::create_dir(home.path().join(".gemini")).unwrap();
        fs::write(home.path().join(".gemini/.env"), "GEMINI_API_KEY=\n").unwrap();
        assert_eq!(find_login(&gemini, &BTreeSet::new(), home.path()), AgentLogin::None);
        fs::write(home.path().join(".gemini/.env"), "GEMINI_API_KEY=k\n").unwrap();
        assert_eq!(find_login(&gemini, &BTreeSet::new(), home.path()), AgentLogin::Stored("~/.gemini/.env".to_owned()));
    }
}
