//! Environment variables of each kind of agent: logins, endpoints and settings; and the user's files with keys
//! and logins, whose secrets are redacted from everything that is kept or shown.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;
use signoff_core::redact::Secrets;
use signoff_core::settings::{AgentConfig, AgentKind};

use super::{AgentSpec, EnvChanges};
use crate::atomic_file;

/// Variables of one kind of agent, as names or as prefixes ending in `*`, separated by spaces.
struct AgentVariables {
    /// Variables with credentials.
    credentials: &'static str,
    /// Variables with endpoints and settings.
    settings: &'static str,
}

const AGENT_KINDS: [AgentKind; 6] =
    [AgentKind::Claude, AgentKind::Codex, AgentKind::Gemini, AgentKind::Opencode, AgentKind::Qwen, AgentKind::Copilot];

fn variables_of(kind: AgentKind) -> AgentVariables {
    match kind {
        AgentKind::Claude => AgentVariables {
            credentials: "ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN CLAUDE_CODE_OAUTH_TOKEN",
            settings: "ANTHROPIC_* CLAUDE_* MAX_THINKING_TOKENS MCP_TIMEOUT IS_SANDBOX",
        },
        AgentKind::Codex => AgentVariables {
            credentials: "OPENAI_API_KEY CODEX_API_KEY CODEX_ACCESS_TOKEN AZURE_OPENAI_API_KEY",
            settings: "OPENAI_* CODEX_*",
        },
        AgentKind::Gemini => AgentVariables {
            credentials: "GEMINI_API_KEY GOOGLE_API_KEY GOOGLE_APPLICATION_CREDENTIALS",
            settings: "GEMINI_* GOOGLE_*",
        },
        AgentKind::Opencode => AgentVariables { credentials: OPENCODE_KEYS, settings: "OPENCODE_*" },
        AgentKind::Qwen => AgentVariables {
            credentials: "DASHSCOPE_API_KEY BAILIAN_CODING_PLAN_API_KEY OPENAI_API_KEY",
            settings: "QWEN_* DASHSCOPE_* OPENAI_BASE_URL OPENAI_MODEL",
        },
        AgentKind::Copilot => {
            AgentVariables { credentials: "COPILOT_GITHUB_TOKEN GH_TOKEN GITHUB_TOKEN", settings: "COPILOT_* GH_HOST" }
        }
        AgentKind::Acp | AgentKind::Command | AgentKind::Checks | AgentKind::Demo => {
            AgentVariables { credentials: "", settings: "" }
        }
    }
}

/// opencode works with any provider, so it uses the credentials of all of them.
const OPENCODE_KEYS: &str = "OPENCODE_API_KEY ANTHROPIC_API_KEY OPENAI_API_KEY GEMINI_API_KEY GOOGLE_API_KEY \
     GOOGLE_GENERATIVE_AI_API_KEY OPENROUTER_API_KEY GROQ_API_KEY DEEPSEEK_API_KEY MISTRAL_API_KEY XAI_API_KEY \
     MOONSHOT_API_KEY ZHIPU_API_KEY DASHSCOPE_API_KEY TOGETHER_API_KEY FIREWORKS_API_KEY CEREBRAS_API_KEY";

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
    own.credentials.split(' ').chain(own.settings.split(' ')).any(|pattern| fits(&pattern))
        && !NESTING_VARIABLES.iter().any(fits)
}

/// Whether a variable is a credential of agents only.
pub fn is_credential(name: &str) -> bool {
    // Other programs use these too.
    let shared = ["GH_TOKEN", "GITHUB_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS"];
    !shared.contains(&name)
        && AGENT_KINDS.iter().any(|kind| variables_of(*kind).credentials.split(' ').any(|known| known == name))
}

/// The kind of an agent. For an agent with a generic protocol, the kind of its program.
pub fn effective_kind(agent: &AgentConfig) -> AgentKind {
    if agent.kind != AgentKind::Acp {
        return agent.kind;
    }
    let names = agent.command.iter().filter_map(|word| word.rsplit('/').next());
    let known = |word: &str| AGENT_KINDS.into_iter().find(|kind| word.split('-').any(|part| part == kind.into_str()));
    names.filter(|word| !word.starts_with('-')).find_map(known).unwrap_or(AgentKind::Acp)
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
    let variables: Vec<_> = texts(&ENV_FILES).flat_map(|text| parse_env(&text)).collect();
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

/// The text of a plain file of at most `max_bytes` bytes.
fn plain_text(file: &Path, max_bytes: u64) -> Option<String> {
    let found = fs::metadata(file).ok()?;
    let plain = found.is_file() && found.len() <= max_bytes;
    let bytes = plain.then(|| atomic_file::read_at_most(file, max_bytes).ok()).flatten()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A variable that no file of the repository may set, and its default value.
pub type GuardedVariable = (&'static str, &'static str);

/// Values for the guarded variables that the agent does not inherit: the user's own, or the defaults.
pub fn guarded_values(
    spec: &AgentSpec<'_>,
    guarded: &[GuardedVariable],
    user_variables: &BTreeMap<String, String>,
) -> EnvChanges {
    let missing = guarded.iter().filter(|(name, _)| !spec.has_variable(name));
    let value = |name: &str, otherwise: &str| user_variables.get(name).cloned().unwrap_or(otherwise.to_owned());
    missing.map(|(name, otherwise)| ((*name).to_owned(), Some(value(name, otherwise)))).collect()
}

/// The user's settings, or the defaults if the file is missing or invalid.
pub fn read_settings<T: DeserializeOwned + Default>(file: &Path) -> T {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    serde_json::from_str(&lines.join("\n")).unwrap_or_default()
}

/// The variables in an env file: one `NAME=value` per line, quoted or not.
pub fn read_env_file(file: &Path) -> BTreeMap<String, String> {
    parse_env(&fs::read_to_string(file).unwrap_or_default())
}

/// Like `read_env_file`, from a text.
pub fn parse_env(text: &str) -> BTreeMap<String, String> {
    text.lines().filter_map(parse_variable).collect()
}

fn parse_variable(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let named = !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    named.then(|| (name.to_owned(), unquote(value).to_owned()))
}

/// The text in quotes, or everything before a comment.
fn unquote(value: &str) -> &str {
    let quoted = |quote: char| value.strip_prefix(quote).and_then(|rest| rest.split_once(quote));
    match quoted('"').or_else(|| quoted('\'')) {
        Some((inside, _)) => inside,
        None => value.split_once(" #").map_or(value, |(before, _)| before.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;

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

    #[test]
    fn env_files_are_parsed() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(".env");
        let text = "# mine\nexport A=1\nB = \"two # words\" # why\nC='3'\nD=four # why\nE=\nno variable\n=5\nF G=6\n";
        fs::write(&file, text).unwrap();
        let read: Vec<String> = read_env_file(&file).iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(read, ["A=1", "B=two # words", "C=3", "D=four", "E="]);
        assert!(read_env_file(&home.path().join("missing")).is_empty());
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct TestSettings {
        theme: Option<String>,
    }

    #[test]
    fn settings_may_have_comments() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("settings.json");
        fs::write(&file, "{\n  // as I like it\n  \"theme\": \"dark\",\n  \"other\": []\n}\n").unwrap();
        assert_eq!(read_settings::<TestSettings>(&file), TestSettings { theme: Some("dark".to_owned()) });
        fs::write(&file, "{").unwrap();
        assert_eq!(read_settings::<TestSettings>(&file), TestSettings::default());
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in ".*") {
            parse_variable(&line);
        }
    }
}
