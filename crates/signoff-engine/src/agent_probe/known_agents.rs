//! Table of the known kinds of agents: programs, versions and logins.

use signoff_core::settings::AgentKind;

use super::AgentVersion;

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
