//! What each kind of agent has for itself: variables that say who it is logged in as, where it is served and how it is
//! set; and the person's files with keys and logins, which are in nothing that is kept or shown.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use signoff_core::config::{Agent, AgentKind};
use signoff_core::redact::Secrets;

use super::set_up;

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
pub fn kind_of(agent: &Agent) -> AgentKind {
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

/// Where a person has keys in variables, below their home.
const VARIABLES: [&str; 3] = [".gemini/.env", ".qwen/.env", ".env"];

/// Where a person is logged in, or keeps keys among their settings.
const LOGINS: [&str; 9] = [
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

/// Nobody's settings are longer.
const LONGEST: u64 = 1024 * 1024;

/// The secrets in the files of a person that agents are given, or read by themselves.
pub fn at_home(person: &Path) -> Secrets {
    // Who has no home has no such files; those of the current directory are the repository's.
    if !person.is_absolute() {
        return Secrets::default();
    }
    let texts = |names: &'static [&'static str]| {
        names.iter().filter_map(|name| plain_text(&person.join(name), LONGEST))
    };
    let variables: Vec<_> = texts(&VARIABLES).flat_map(|text| set_up::variables_in(&text)).collect();
    let variables = variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let logins = texts(&LOGINS).map(|text| Secrets::of_document(&text));
    logins.fold(Secrets::of_variables(variables), |all, one| all.and(&one))
}

/// The login that an agent was given a copy of, and may have renewed there. It is no longer than a few keys: whoever wrote
/// the file could have made it long.
pub fn renewed(home: &Path) -> Secrets {
    let login = plain_text(&home.join(".gemini/oauth_creds.json"), 8 * 1024);
    login.map(|text| Secrets::of_document(&text)).unwrap_or_default()
}

/// The text of a plain file; none of one that is longer than it may be.
fn plain_text(file: &Path, most: u64) -> Option<String> {
    let found = fs::metadata(file).ok()?;
    let mut bytes = Vec::new();
    let plain = found.is_file() && found.len() <= most;
    plain.then(|| File::open(file).ok()?.take(most).read_to_end(&mut bytes).ok()).flatten()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_logins_of_a_home_are_known() {
        let home = tempfile::tempdir().unwrap();
        let lay = |name: &str, text: &str| {
            let file = home.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        let mut keys = Vec::new();
        for (number, name) in VARIABLES.iter().enumerate() {
            keys.push(format!("sk-canary-var-{number}"));
            lay(name, &format!("MY_API_KEY={}\nPLAIN=ordinary-words\n", keys[number]));
        }
        for (number, name) in LOGINS.iter().enumerate() {
            let key = format!("sk-canary-doc-{number}");
            lay(name, &format!("{{\"it\": {{\"access_token\": \"{key}\", \"plain\": \"ordinary-words\"}}}}"));
            keys.push(key);
        }
        let secrets = at_home(home.path());
        for key in &keys {
            assert_eq!(secrets.redact_text(&format!("<{key}>")), "<[redacted]>");
        }
        assert!(!secrets.are_in(b"ordinary-words"));
        assert!(at_home(Path::new("")).is_empty());
        assert!(renewed(home.path()).are_in(b"sk-canary-doc-2"));
    }

    #[test]
    fn what_is_no_plain_file_or_too_long_is_not_read() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join(".codex/auth.json")).unwrap();
        fs::create_dir(home.path().join(".qwen")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", home.path().join(".qwen/settings.json")).unwrap();
        fs::write(home.path().join(".env"), format!("KEY=0123456789abcdef\n{}", " ".repeat(1024 * 1024)))
            .unwrap();
        assert!(at_home(home.path()).is_empty());
    }
}
