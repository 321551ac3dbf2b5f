//! Selects the environment variables that an agent inherits from the user.

use std::collections::BTreeSet;

use signoff_core::redact::is_secret_name;
use signoff_core::settings::{AgentConfig, AgentKind};

use crate::agent::credentials::{is_agent_variable, is_credential, matches_pattern};

/// Variables that every agent inherits: user, locale, network, and the tools of projects.
const OPEN: [&str; 7] = [
    "PATH HOME USER LOGNAME USERNAME SHELL HOSTNAME TERM TERMINFO TERMINFO_DIRS COLORTERM NO_COLOR \
     FORCE_COLOR CLICOLOR* TZ TZDIR LANG LANGUAGE LC_* TMPDIR TMP TEMP CI XDG_* EDITOR VISUAL",
    // Signoff's own, except the address of the store.
    "SIGNOFF_*",
    // The network.
    "HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY FTP_PROXY http_proxy https_proxy all_proxy no_proxy \
     ftp_proxy SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE AWS_CA_BUNDLE",
    // Git.
    "GIT_AUTHOR_* GIT_COMMITTER_* GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG_NOSYSTEM \
     GIT_SSL_CAINFO GIT_TERMINAL_PROMPT",
    // Compilers and linkers.
    "CC CXX AR LD CFLAGS CXXFLAGS CPPFLAGS LDFLAGS CPATH LIBRARY_PATH LD_LIBRARY_PATH DYLD_* \
     PKG_CONFIG* CMAKE_* CCACHE_* SCCACHE_* LLVM_* OPENSSL_*",
    // Languages and their tools.
    "CARGO_* RUST* NODE_* NPM_* npm_config_* NVM_* VOLTA_* FNM_* PNPM_* YARN_* BUN_* COREPACK_* \
     DENO_* PYTHON* PYENV_* VIRTUAL_ENV CONDA_* PIP_* UV_* POETRY_* GO* CGO_* JAVA_* JDK_* MAVEN_* \
     M2_HOME GRADLE_* KOTLIN_* ANDROID_* DOTNET_* NUGET_* RUBY* GEM_* BUNDLE_* RBENV_*",
    // Tool managers.
    "ASDF_* MISE_* NIX_* HOMEBREW_* SDKMAN_*",
];

/// Variables that match `OPEN` but are not inherited: the pipes of an outer cargo build, the address of the store, and
/// Google's variables, which match the Go language's `GO*`.
const CLOSED: [&str; 3] = ["CARGO_MAKEFLAGS", "SIGNOFF_STORE", "GOOGLE_*"];

/// Whether an agent inherits a variable. `[agents.NAME] pass` can name any.
pub fn inherits(agent: &AgentConfig, name: &str) -> bool {
    if agent.pass.iter().any(|pattern| matches_pattern(pattern, name)) || is_agent_variable(agent, name) {
        return true;
    }
    match agent.kind {
        AgentKind::Command | AgentKind::Checks | AgentKind::Demo => !is_credential(name),
        AgentKind::Claude
        | AgentKind::Codex
        | AgentKind::Gemini
        | AgentKind::Opencode
        | AgentKind::Qwen
        | AgentKind::Copilot
        | AgentKind::Acp => is_open(name),
    }
}

/// The variables in `set` that an agent inherits.
pub fn inherited(agent: &AgentConfig, set: &BTreeSet<String>) -> BTreeSet<String> {
    set.iter().filter(|name| inherits(agent, name)).cloned().collect()
}

fn is_open(name: &str) -> bool {
    let fits = |pattern: &&str| matches_pattern(pattern, name);
    OPEN.iter().flat_map(|names| names.split(' ')).any(|pattern| fits(&pattern))
        && !CLOSED.iter().any(fits)
        && !is_secret_name(name)
}

#[cfg(test)]
mod tests {
    use signoff_core::settings::{self, Layer};

    use super::*;

    fn agent(table: &str) -> AgentConfig {
        let text = format!("[agents.it]\n{table}\n");
        let settings = settings::read(&[Layer::repository("signoff.toml", text)], &[], &[]).unwrap();
        settings.agent("it").unwrap()
    }

    const ALL: [&str; 26] = [
        "PATH",
        "HOME",
        "LC_ALL",
        "XDG_CONFIG_HOME",
        "https_proxy",
        "NODE_EXTRA_CA_CERTS",
        "CARGO_HOME",
        "CARGO_REGISTRY_TOKEN",
        "GOPATH",
        "SIGNOFF_JOBS",
        "SIGNOFF_STORE",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        "CLAUDE_CONFIG_DIR",
        "CLAUDECODE",
        "OPENAI_API_KEY",
        "CODEX_HOME",
        "CODEX_SANDBOX",
        "GEMINI_API_KEY",
        "GOOGLE_CLOUD_PROJECT",
        "GITHUB_TOKEN",
        "DASHSCOPE_API_KEY",
        "OPENROUTER_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "SSH_AUTH_SOCK",
        "MY_TEAM",
    ];

    #[test]
    fn each_kind_inherits_only_its_own_variables() {
        let tables = [
            "kind = \"claude\"",
            "kind = \"codex\"",
            "kind = \"gemini\"",
            "kind = \"opencode\"",
            "kind = \"qwen\"",
            "kind = \"copilot\"",
            "kind = \"acp\"\ncommand = [\"gemini\", \"--acp\"]",
            "kind = \"acp\"\ncommand = [\"./mine\"]",
            "kind = \"claude\"\npass = [\"MY_TEAM\", \"AWS_*\", \"CLAUDECODE\"]",
            "kind = \"command\"\ncommand = [\"./mine\"]",
            "kind = \"command\"\ncommand = [\"./mine\"]\npass = [\"OPENAI_API_KEY\"]",
        ];
        let open: Vec<_> = ALL.into_iter().filter(|name| is_open(name)).collect();
        let mut shown = format!("every agent: {}\n", open.join(" "));
        for table in tables {
            let agent = agent(table);
            let more: Vec<_> = ALL.into_iter().filter(|name| inherits(&agent, name) && !is_open(name)).collect();
            shown += &format!("{}: {}\n", table.replace('\n', ", "), more.join(" "));
        }
        insta::assert_snapshot!(shown, @r#"
        every agent: PATH HOME LC_ALL XDG_CONFIG_HOME https_proxy NODE_EXTRA_CA_CERTS CARGO_HOME GOPATH SIGNOFF_JOBS
        kind = "claude": ANTHROPIC_API_KEY ANTHROPIC_BASE_URL CLAUDE_CONFIG_DIR
        kind = "codex": OPENAI_API_KEY CODEX_HOME
        kind = "gemini": GEMINI_API_KEY GOOGLE_CLOUD_PROJECT
        kind = "opencode": ANTHROPIC_API_KEY OPENAI_API_KEY GEMINI_API_KEY DASHSCOPE_API_KEY OPENROUTER_API_KEY
        kind = "qwen": OPENAI_API_KEY DASHSCOPE_API_KEY
        kind = "copilot": GITHUB_TOKEN
        kind = "acp", command = ["gemini", "--acp"]: GEMINI_API_KEY GOOGLE_CLOUD_PROJECT
        kind = "acp", command = ["./mine"]: 
        kind = "claude", pass = ["MY_TEAM", "AWS_*", "CLAUDECODE"]: ANTHROPIC_API_KEY ANTHROPIC_BASE_URL CLAUDE_CONFIG_DIR CLAUDECODE AWS_SECRET_ACCESS_KEY MY_TEAM
        kind = "command", command = ["./mine"]: CARGO_REGISTRY_TOKEN SIGNOFF_STORE ANTHROPIC_BASE_URL CLAUDE_CONFIG_DIR CLAUDECODE CODEX_HOME CODEX_SANDBOX GOOGLE_CLOUD_PROJECT GITHUB_TOKEN AWS_SECRET_ACCESS_KEY SSH_AUTH_SOCK MY_TEAM
        kind = "command", command = ["./mine"], pass = ["OPENAI_API_KEY"]: CARGO_REGISTRY_TOKEN SIGNOFF_STORE ANTHROPIC_BASE_URL CLAUDE_CONFIG_DIR CLAUDECODE OPENAI_API_KEY CODEX_HOME CODEX_SANDBOX GOOGLE_CLOUD_PROJECT GITHUB_TOKEN AWS_SECRET_ACCESS_KEY SSH_AUTH_SOCK MY_TEAM
        "#);
    }
}
