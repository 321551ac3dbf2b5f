//! Environment variables of each kind of agent: logins, endpoints and settings; and the user's files with keys
//! and logins, whose secrets are redacted from everything that is kept or shown.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use signoff_core::redact::Secrets;
use signoff_core::settings::{AgentConfig, AgentKind};

use super::user_settings;

/// Variables of one kind of agent, as names or as prefixes ending in `*`.
struct AgentVariables {
    /// Variables with credentials.
    credentials: &'static [&'static str],
    /// Variables with endpoints and settings.
    settings: &'static [&'static str],
}

const CLAUDE: AgentVariables = AgentVariables {
    credentials: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
    settings: &["ANTHROPIC_*", "CLAUDE_*", "MAX_THINKING_TOKENS", "MCP_TIMEOUT", "IS_SANDBOX"],
};

const CODEX: AgentVariables = AgentVariables {
    credentials: &["OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "AZURE_OPENAI_API_KEY"],
    settings: &["OPENAI_*", "CODEX_*"],
};

const GEMINI: AgentVariables = AgentVariables {
    credentials: &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"],
    settings: &["GEMINI_*", "GOOGLE_*"],
};

const QWEN: AgentVariables = AgentVariables {
    credentials: &["DASHSCOPE_API_KEY", "BAILIAN_CODING_PLAN_API_KEY", "OPENAI_API_KEY"],
    settings: &["QWEN_*", "DASHSCOPE_*", "OPENAI_BASE_URL", "OPENAI_MODEL"],
};

const COPILOT: AgentVariables = AgentVariables {
    credentials: &["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"],
    settings: &["COPILOT_*", "GH_HOST"],
};

/// opencode works with any provider, so it uses the credentials of all of them.
const OPENCODE: AgentVariables = AgentVariables {
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

const NONE: AgentVariables = AgentVariables { credentials: &[], settings: &[] };

const AGENT_KINDS: [AgentKind; 6] =
    [AgentKind::Claude, AgentKind::Codex, AgentKind::Gemini, AgentKind::Opencode, AgentKind::Qwen, AgentKind::Copilot];

fn variables_of(kind: AgentKind) -> AgentVariables {
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

/// Variables that agents set for their child processes. An agent that finds its own assumes it is nested.
const NESTING_VARIABLES: [&str; 7] = [
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_CODE_SESSION_ID",
    "CODEX_SANDBOX*",
    "GEMINI_CLI",
    "QWEN_CODE",
];

/// Whether a variable's name equals a pattern, or begins with it if it ends in `*`.
pub fn matches_pattern(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |start| name.starts_with(start))
}

/// Whether a variable belongs to an agent.
pub fn is_agent_variable(agent: &AgentConfig, name: &str) -> bool {
    let own = variables_of(effective_kind(agent));
    let fits = |pattern: &&str| matches_pattern(pattern, name);
    own.credentials.iter().chain(own.settings).any(fits) && !NESTING_VARIABLES.iter().any(fits)
}

/// Whether a variable is a credential of agents only.
pub fn is_credential(name: &str) -> bool {
    // Other programs use these too.
    let shared = ["GH_TOKEN", "GITHUB_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS"];
    !shared.contains(&name) && AGENT_KINDS.iter().any(|kind| variables_of(*kind).credentials.contains(&name))
}

/// The kind of an agent. For an agent with a generic protocol, the kind of its program.
pub fn effective_kind(agent: &AgentConfig) -> AgentKind {
    let named = || {
        let words = agent.command.iter().filter_map(|word| word.rsplit('/').next());
        let known = |word: &str| AGENT_KINDS.into_iter().find(|kind| word.split('-').any(|part| part == kind.as_str()));
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

/// Files below the user's home with keys in variables.
const ENV_FILES: [&str; 3] = [".gemini/.env", ".qwen/.env", ".env"];

/// Files below the user's home with logins or keys.
const LOGIN_FILES: [&str; 9] = [
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".qwen/oauth_creds.json",
    ".qwen/settings.json",
    ".copilot/config.json",
    ".local/share/opencode/auth.json",
    ".config/opencode/opencode.json",
    ".config/opencode/opencode.jsonc",
];

/// Maximum size of a settings file.
const MAX_SETTINGS: u64 = 1024 * 1024;

/// The secrets in the user's files that agents get or read.
pub fn user_secrets(user_home: &Path) -> Secrets {
    // Without an absolute home, the paths would refer to the repository.
    if !user_home.is_absolute() {
        return Secrets::default();
    }
    let texts = |names: &'static [&'static str]| {
        names.iter().filter_map(|name| plain_text(&user_home.join(name), MAX_SETTINGS))
    };
    let variables: Vec<_> = texts(&ENV_FILES).flat_map(|text| user_settings::parse_env(&text)).collect();
    let variables = variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let logins = texts(&LOGIN_FILES).map(|text| Secrets::from_document(&text));
    logins.fold(Secrets::from_variables(variables), |all, one| all.union(&one))
}

/// The login that an agent got as a copy and may have renewed. The agent could have written a large file, so
/// only a short one is read.
pub fn renewed_login_secrets(home: &Path) -> Secrets {
    let login = plain_text(&home.join(".gemini/oauth_creds.json"), 8 * 1024);
    login.map(|text| Secrets::from_document(&text)).unwrap_or_default()
}

/// The text of a plain file of at most `most` bytes.
fn plain_text(file: &Path, max_bytes: u64) -> Option<String> {
    let found = fs::metadata(file).ok()?;
    let mut bytes = Vec::new();
    let plain = found.is_file() && found.len() <= max_bytes;
    plain.then(|| File::open(file).ok()?.take(max_bytes).read_to_end(&mut bytes).ok()).flatten()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_logins_in_a_home_are_found() {
        let home = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = home.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        let mut keys = Vec::new();
        for (number, name) in ENV_FILES.iter().enumerate() {
            keys.push(format!("sk-canary-var-{number}"));
            write(name, &format!("MY_API_KEY={}\nPLAIN=ordinary-words\n", keys[number]));
        }
        for (number, name) in LOGIN_FILES.iter().enumerate() {
            let key = format!("sk-canary-doc-{number}");
            write(name, &format!("{{\"it\": {{\"access_token\": \"{key}\", \"plain\": \"ordinary-words\"}}}}"));
            keys.push(key);
        }
        let secrets = user_secrets(home.path());
        for key in &keys {
            assert_eq!(secrets.redact_text(&format!("<{key}>")), "<[redacted]>");
        }
        assert!(!secrets.occur_in(b"ordinary-words"));
        assert!(user_secrets(Path::new("")).is_empty());
        assert!(renewed_login_secrets(home.path()).occur_in(b"sk-canary-doc-2"));
    }

    #[test]
    fn special_and_large_files_are_not_read() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join(".codex/auth.json")).unwrap();
        fs::create_dir(home.path().join(".qwen")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", home.path().join(".qwen/settings.json")).unwrap();
        fs::write(home.path().join(".env"), format!("KEY=0123456789abcdef\n{}", " ".repeat(1024 * 1024))).unwrap();
        assert!(user_secrets(home.path()).is_empty());
    }
}
