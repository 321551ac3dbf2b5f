//! What there is to know of each kind of agent before it is started, in one table.

use signoff_core::config::AgentKind;

use super::Version;

/// What is known of a kind.
#[derive(Debug)]
pub struct Known {
    pub kind: AgentKind,
    /// What its program is called.
    pub program: &'static str,
    /// What is older does not understand all it is told; none where no such version is known.
    pub least: Option<Version>,
    /// Variables that hold a key or a token: one of them is enough.
    pub keys: &'static [&'static str],
    /// Files below the person's home that are there after a login, and how people call the place.
    pub logins: &'static [(&'static str, &'static str)],
    /// Files below the person's home that may set variables, in lines of `NAME=value`.
    pub variables: &'static [&'static str],
    /// Variables by which it is to work with somebody else's servers, or without a login.
    pub elsewhere: &'static [&'static str],
    /// Whether it can do without anything of this, or keeps it where nobody else can look.
    pub may_need_none: bool,
    /// How a person gets it.
    pub package: &'static str,
}

/// The kinds that are programs of their own, in the order in which they are looked for.
pub const KINDS: [Known; 6] = [
    Known {
        kind: AgentKind::Claude,
        program: "claude",
        // 2.0.42 does not know `--permission-mode dontAsk`.
        least: Some(Version(2, 0, 44)),
        keys: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
        logins: &[(".claude/.credentials.json", "~/.claude")],
        variables: &[],
        elsewhere: &["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"],
        // The keychain.
        may_need_none: cfg!(target_os = "macos"),
        package: "@anthropic-ai/claude-code",
    },
    Known {
        kind: AgentKind::Codex,
        program: "codex",
        // 0.121.0 does not know `--ignore-rules`.
        least: Some(Version(0, 122, 0)),
        keys: &["CODEX_API_KEY"],
        logins: &[(".codex/auth.json", "~/.codex")],
        variables: &[],
        elsewhere: &["OPENAI_BASE_URL"],
        may_need_none: false,
        package: "@openai/codex",
    },
    Known {
        kind: AgentKind::Gemini,
        program: "gemini",
        // 0.39.0 does not know `--skip-trust`.
        least: Some(Version(0, 39, 1)),
        keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        logins: &[
            (".gemini/oauth_creds.json", "~/.gemini"),
            (".gemini/gemini-credentials.json", "~/.gemini"),
        ],
        variables: &[".gemini/.env", ".env"],
        elsewhere: &["GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA", "GOOGLE_APPLICATION_CREDENTIALS"],
        may_need_none: false,
        package: "@google/gemini-cli",
    },
    Known {
        kind: AgentKind::Opencode,
        program: "opencode",
        // 1.17.11 does not know `--auto`.
        least: Some(Version(1, 17, 12)),
        keys: &[],
        logins: &[(".local/share/opencode/auth.json", "~/.local/share/opencode")],
        variables: &[],
        elsewhere: &[],
        // It takes keys of any provider, and some models need none.
        may_need_none: true,
        package: "opencode-ai",
    },
    Known {
        kind: AgentKind::Qwen,
        program: "qwen",
        least: None,
        keys: &["OPENAI_API_KEY", "DASHSCOPE_API_KEY"],
        logins: &[(".qwen/oauth_creds.json", "~/.qwen")],
        variables: &[".qwen/.env", ".env"],
        elsewhere: &[],
        // Its settings may name a provider of their own, with its key.
        may_need_none: true,
        package: "@qwen-code/qwen-code",
    },
    Known {
        kind: AgentKind::Copilot,
        program: "copilot",
        least: None,
        keys: &["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_PROVIDER_API_KEY"],
        logins: &[],
        variables: &[],
        elsewhere: &["COPILOT_PROVIDER_BASE_URL"],
        // The keychain, or the login of `gh`.
        may_need_none: true,
        package: "@github/copilot",
    },
];

/// What is known of a kind; none for those that are no program of their own.
pub fn known(kind: AgentKind) -> Option<&'static Known> {
    KINDS.iter().find(|known| known.kind == kind)
}
