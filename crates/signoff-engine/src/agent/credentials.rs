//! The variables that each kind of agent has for itself: who it is logged in as, where it is served, how it is set.

use signoff_core::config::{Agent, AgentKind};

/// The variables of one kind: names, or how they begin.
struct Own {
    /// By which it is let in.
    credentials: &'static [&'static str],
    /// Where it is served, and how it is set.
    settings: &'static [&'static str],
}

const CLAUDE: Own = Own {
    credentials: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
    settings: &["ANTHROPIC_*", "CLAUDE_*", "MAX_THINKING_TOKENS", "MCP_TIMEOUT", "IS_SANDBOX"],
};

const CODEX: Own = Own {
    credentials: &["OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "AZURE_OPENAI_API_KEY"],
    settings: &["OPENAI_*", "CODEX_*"],
};

const GEMINI: Own = Own {
    credentials: &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"],
    settings: &["GEMINI_*", "GOOGLE_*"],
};

const QWEN: Own = Own {
    credentials: &["DASHSCOPE_API_KEY", "BAILIAN_CODING_PLAN_API_KEY", "OPENAI_API_KEY"],
    settings: &["QWEN_*", "DASHSCOPE_*", "OPENAI_BASE_URL", "OPENAI_MODEL"],
};

const COPILOT: Own = Own {
    credentials: &["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"],
    settings: &["COPILOT_*", "GH_HOST"],
};

/// It speaks to any provider, so what lets one in there is its own.
const OPENCODE: Own = Own {
    credentials: &[
        "OPENCODE_API_KEY",
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "GOOGLE_GENERATIVE_AI_API_KEY",
        "OPENROUTER_API_KEY",
        "GROQ_API_KEY",
        "DEEPSEEK_API_KEY",
        "MISTRAL_API_KEY",
        "XAI_API_KEY",
        "MOONSHOT_API_KEY",
        "ZHIPU_API_KEY",
        "DASHSCOPE_API_KEY",
        "TOGETHER_API_KEY",
        "FIREWORKS_API_KEY",
        "CEREBRAS_API_KEY",
    ],
    settings: &["OPENCODE_*"],
};

const NONE: Own = Own { credentials: &[], settings: &[] };

const DRIVEN: [AgentKind; 6] = [
    AgentKind::Claude,
    AgentKind::Codex,
    AgentKind::Gemini,
    AgentKind::Opencode,
    AgentKind::Qwen,
    AgentKind::Copilot,
];

fn of_kind(kind: AgentKind) -> Own {
    match kind {
        AgentKind::Claude => CLAUDE,
        AgentKind::Codex => CODEX,
        AgentKind::Gemini => GEMINI,
        AgentKind::Opencode => OPENCODE,
        AgentKind::Qwen => QWEN,
        AgentKind::Copilot => COPILOT,
        AgentKind::Acp | AgentKind::Command | AgentKind::Checks | AgentKind::Demo => NONE,
    }
}

/// Set by agents for what they start. One that finds its own marks takes itself for a part of another.
const MARKS: [&str; 7] = [
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_CODE_SESSION_ID",
    "CODEX_SANDBOX*",
    "GEMINI_CLI",
    "QWEN_CODE",
];

/// Whether a variable fits a name, or how it begins.
pub fn fits(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |start| name.starts_with(start))
}

/// Whether a variable is an agent's own.
pub fn is_own(agent: &Agent, name: &str) -> bool {
    let own = of_kind(kind_of(agent));
    let fits = |pattern: &&str| fits(pattern, name);
    own.credentials.iter().chain(own.settings).any(fits) && !MARKS.iter().any(fits)
}

/// Whether a variable lets some kind of agent in, and no other program.
pub fn is_credential(name: &str) -> bool {
    // Others have it for much else than one kind of agent.
    let shared = ["GH_TOKEN", "GITHUB_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS"];
    !shared.contains(&name) && DRIVEN.iter().any(|kind| of_kind(*kind).credentials.contains(&name))
}

/// The kind of an agent; of those that speak a protocol of many, that of its program.
fn kind_of(agent: &Agent) -> AgentKind {
    let named = || {
        let words = agent.command.iter().filter_map(|word| word.rsplit('/').next());
        let known =
            |word: &str| DRIVEN.into_iter().find(|kind| word.split('-').any(|part| part == kind.word()));
        words.filter(|word| !word.starts_with('-')).find_map(known)
    };
    match agent.kind {
        AgentKind::Acp => named().unwrap_or(AgentKind::Acp),
        other @ (AgentKind::Claude
        | AgentKind::Codex
        | AgentKind::Gemini
        | AgentKind::Opencode
        | AgentKind::Qwen
        | AgentKind::Copilot
        | AgentKind::Command
        | AgentKind::Checks
        | AgentKind::Demo) => other,
    }
}
