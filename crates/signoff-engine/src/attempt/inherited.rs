//! What an agent inherits of the person's environment.

use std::collections::BTreeSet;

use signoff_core::config::{Agent, AgentKind};
use signoff_core::redact::is_secret_name;

use crate::agent::credentials::{fits, is_credential, is_own};

/// What every agent may know: who and where it is, how to reach the network, and where the tools of projects are.
const OPEN: [&str; 7] = [
    "PATH HOME USER LOGNAME USERNAME SHELL HOSTNAME TERM TERMINFO TERMINFO_DIRS COLORTERM NO_COLOR \
     FORCE_COLOR CLICOLOR* TZ TZDIR LANG LANGUAGE LC_* TMPDIR TMP TEMP CI XDG_* EDITOR VISUAL",
    // Signoff's own; where facts are kept is nobody else's business.
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
    // What brings tools along.
    "ASDF_* MISE_* NIX_* HOMEBREW_* SDKMAN_*",
];

/// Not even these, although they begin like others: pipes of a build that is none of theirs, the store's address, and
/// what belongs to a provider and not to the language Go.
const CLOSED: [&str; 3] = ["CARGO_MAKEFLAGS", "SIGNOFF_STORE", "GOOGLE_*"];

/// Whether an agent inherits a variable. `[agents.NAME] pass` can name any.
pub fn inherits(agent: &Agent, name: &str) -> bool {
    if agent.pass.iter().any(|pattern| fits(pattern, name)) || is_own(agent, name) {
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

/// Those of the variables that are set here which an agent inherits.
pub fn inherited(agent: &Agent, set: &BTreeSet<String>) -> BTreeSet<String> {
    set.iter().filter(|name| inherits(agent, name)).cloned().collect()
}

fn is_open(name: &str) -> bool {
    let fits = |pattern: &&str| fits(pattern, name);
    OPEN.iter().flat_map(|names| names.split(' ')).any(|pattern| fits(&pattern))
        && !CLOSED.iter().any(fits)
        && !is_secret_name(name)
}

#[cfg(test)]
mod tests {
    use signoff_core::config::{self, Layer};

    use super::*;

    fn agent(table: &str) -> Agent {
        let text = format!("[agents.it]\n{table}\n");
        let settings = config::read(&[Layer::repository("signoff.toml", text)], &[], &[]).unwrap();
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
    fn each_kind_gets_what_it_needs_and_no_more() {
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
        let mut told = format!("every agent: {}\n", open.join(" "));
        for table in tables {
            let agent = agent(table);
            let more: Vec<_> =
                ALL.into_iter().filter(|name| inherits(&agent, name) && !is_open(name)).collect();
            told += &format!("{}: {}\n", table.replace('\n', ", "), more.join(" "));
        }
        insta::assert_snapshot!(told, @r#"
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
