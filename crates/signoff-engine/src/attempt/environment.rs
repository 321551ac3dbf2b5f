//! Builds the environment of agents and checks: the variables that they inherit from the user, those of the attempt, and
//! an exception from proxies for the report server.

use std::collections::BTreeSet;
use std::path::Path;

use signoff_core::ids::RunId;
use signoff_core::machine::JobKind;
use signoff_core::redact::{Secrets, is_secret_name};
use signoff_core::settings::{AgentConfig, AgentKind, Settings};

use crate::agent::EnvChanges;
use crate::agent::credentials::{is_agent_variable, is_credential, matches_pattern, user_secrets};
use crate::attempt_spec::AttemptSpec;
use crate::process::{AttemptDir, variables};
use crate::reports::ReportAccess;

/// The nonce and the report access of one attempt.
#[derive(Debug, Default)]
pub struct AttemptCredentials {
    /// The word that a reviewer must repeat in its answer.
    pub nonce: Option<String>,
    /// Where and how it can report.
    pub access: Option<ReportAccess>,
}

/// The variables of an attempt. Those that do not apply are unset, so that none is inherited by accident.
pub fn for_attempt(spec: &AttemptSpec, dir: &AttemptDir, credentials: &AttemptCredentials) -> EnvChanges {
    let access = credentials.access.as_ref();
    let (reviewer, commit) = if let JobKind::Review { reviewer, commit, .. } = &spec.job.kind {
        (Some(reviewer.to_string()), Some(commit.to_string()))
    } else {
        (None, None)
    };
    let review_kind = reviewer.is_some().then(|| spec.review_kind().to_owned());
    let task_id = spec.task_id.map(|task| task.to_string());
    let loop_id = spec.visible_loop().filter(|_| spec.task_id.is_some()).map(ToString::to_string);
    [
        ("SIGNOFF_ROLE", Some(spec.launch.role.clone())),
        ("SIGNOFF_PHASE", Some(spec.phase_name().to_owned())),
        ("SIGNOFF_REVIEWER", reviewer),
        ("SIGNOFF_REVIEW_KIND", review_kind),
        ("SIGNOFF_TASK_ID", task_id),
        ("SIGNOFF_LOOP_ID", loop_id),
        ("SIGNOFF_RUN_ID", Some(spec.run.to_string())),
        ("SIGNOFF_ATTEMPT", Some(spec.job.attempt.0.to_string())),
        ("SIGNOFF_CYCLE", Some(spec.cycle().to_string())),
        ("SIGNOFF_BASE", Some(spec.base().to_string())),
        ("SIGNOFF_COMMIT", commit),
        ("SIGNOFF_NONCE", credentials.nonce.clone()),
        ("SIGNOFF_MCP_URL", access.map(|access| access.url.clone())),
        ("SIGNOFF_MCP_TOKEN", access.map(|access| access.token.clone())),
        ("SIGNOFF_MODEL", spec.launch.model.clone()),
        ("SIGNOFF_USAGE_FILE", Some(dir.usage().display().to_string())),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into_iter()
    .chain(unset_git())
    .collect()
}

/// All variables to set or unset for an agent: those it does not inherit, its adapter's, the configured ones, and the
/// attempt's. Later entries win.
pub fn agent_environment(
    agent: &AgentConfig,
    adapters: EnvChanges,
    attempt: EnvChanges,
    settings: &Settings,
) -> EnvChanges {
    let given = agent.env.iter().map(|(name, value)| (name.clone(), Some(value.clone())));
    let mut all: Vec<_> = withheld(agent, settings).into_iter().chain(adapters).chain(given).chain(attempt).collect();
    bypass_proxies(&mut all);
    all
}

/// The user's variables that an agent does not inherit. A channel's address allows posting to it, so an agent gets it
/// only if its `pass` names it.
fn withheld(agent: &AgentConfig, settings: &Settings) -> EnvChanges {
    let channels = settings.channel_variables();
    let is_withheld_channel = |name: &str| channels.contains(&name) && !agent.pass.iter().any(|passed| passed == name);
    unset(|name| is_withheld_channel(name) || !inherits(agent, name))
}

/// The user's variables that checks do not inherit: keys of agents and addresses of channels.
pub fn withheld_from_checks(settings: &Settings) -> EnvChanges {
    let channels = settings.channel_variables();
    unset(|name| channels.contains(&name) || is_credential(name))
}

fn unset(is_withheld: impl Fn(&str) -> bool) -> EnvChanges {
    variables().into_iter().filter(|(name, _)| is_withheld(name)).map(|(name, _)| (name, None)).collect()
}

/// The secret values of channels.
pub fn channel_secrets(settings: &Settings) -> Vec<String> {
    let variables = variables();
    let value = |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    settings.channel_secrets(value)
}

/// The secrets that agents may see: in the user's variables, in configured variables, of channels, and in the login
/// files below the user's home.
pub fn secrets(settings: &Settings, user_home: &Path) -> Secrets {
    let (variables, agents) = (variables(), settings.agents());
    let given = agents.iter().flat_map(|agent| &agent.env);
    let all = variables.iter().map(|(name, value)| (name, value)).chain(given);
    let set = Secrets::from_variables(all.map(|(name, value)| (name.as_str(), value.as_str())));
    let channels = channel_secrets(settings);
    set.union(&Secrets::from_keys(channels.iter().map(String::as_str))).union(&user_secrets(user_home))
}

/// The variables of checks, which get no credentials.
pub fn check_environment(spec: &AttemptSpec, dir: &AttemptDir) -> EnvChanges {
    for_attempt(spec, dir, &AttemptCredentials::default())
}

/// The variables of checks for a run instead of a task.
pub fn run_environment(run: RunId) -> EnvChanges {
    without_git([("SIGNOFF_ROLE", "land".to_owned()), ("SIGNOFF_RUN_ID", run.to_string())])
}

/// The variables of an agent check, which belongs to no run.
pub fn agent_check_environment(dir: &AttemptDir) -> EnvChanges {
    without_git([
        ("SIGNOFF_ROLE", "trial".to_owned()),
        ("SIGNOFF_USAGE_FILE", dir.usage().display().to_string()),
        ("TMPDIR", dir.temporary().display().to_string()),
    ])
}

/// These variables, without those of git.
fn without_git<const N: usize>(set: [(&str, String); N]) -> EnvChanges {
    let set = set.map(|(name, value)| (name.to_owned(), Some(value)));
    set.into_iter().chain(unset_git()).collect()
}

fn unset_git() -> impl Iterator<Item = (String, Option<String>)> {
    GIT_VARIABLES.into_iter().map(|name| (name.to_owned(), None))
}

/// Git sets these when signoff is started from a hook. An agent's git would then work on the user's repository.
const GIT_VARIABLES: [&str; 9] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_QUARANTINE_PATH",
];

/// Variables that every agent inherits: user, locale, network, and the tools of projects.
const INHERITED_VARIABLES: [&str; 7] = [
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

/// Variables that match `INHERITED_VARIABLES` but are not inherited: the pipes of an outer cargo build, the address of the store, and
/// Google's variables, which match the Go language's `GO*`.
const NOT_INHERITED: [&str; 3] = ["CARGO_MAKEFLAGS", "SIGNOFF_STORE", "GOOGLE_*"];

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
    INHERITED_VARIABLES.iter().flat_map(|names| names.split(' ')).any(|pattern| fits(&pattern))
        && !NOT_INHERITED.iter().any(fits)
        && !is_secret_name(name)
}

/// Variables that name a proxy, and variables that list hosts to reach without it.
const PROXIES: [&str; 6] = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
const NO_PROXY_VARIABLES: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// The host of the report server.
const LOOPBACK: &str = "127.0.0.1";

/// Adds this machine to `NO_PROXY` if the agent uses a proxy.
fn bypass_proxies(environment: &mut EnvChanges) {
    let more = no_proxy_variables(&variables(), environment);
    environment.extend(more);
}

/// The `NO_PROXY` variables to add, given the inherited and the configured variables.
fn no_proxy_variables(inherited: &[(String, String)], given: &[(String, Option<String>)]) -> EnvChanges {
    let value = |name: &str| {
        let given = given.iter().rev().find(|(one, _)| one == name);
        let inherits = || inherited.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str());
        given.map_or_else(inherits, |(_, value)| value.as_deref()).filter(|value| !value.is_empty())
    };
    if PROXIES.iter().all(|name| value(name).is_none()) {
        return Vec::new();
    }
    let either = NO_PROXY_VARIABLES.iter().find_map(|name| value(name));
    let variable = |name: &str| (name.to_owned(), Some(with_this_machine(value(name).or(either))));
    NO_PROXY_VARIABLES.map(variable).into()
}

fn with_this_machine(direct: Option<&str>) -> String {
    match direct {
        None => LOOPBACK.to_owned(),
        Some(all) if all.split(',').any(|one| matches!(one.trim(), "*" | LOOPBACK)) => all.to_owned(),
        Some(some) => format!("{some},{LOOPBACK}"),
    }
}

#[cfg(test)]
mod tests {
    use signoff_core::settings::{self, AGENT_VARIABLES, Layer};

    use super::*;
    use crate::process::ATTEMPT_VARIABLE;

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
    fn the_settings_list_the_variables_of_agents() {
        let source = include_str!("environment.rs").split("#[cfg(test)]").next().unwrap();
        let is_name = |word: &&str| word.starts_with("SIGNOFF_") && !["SIGNOFF_*", "SIGNOFF_STORE"].contains(word);
        let names = source.split('"').filter(is_name).chain([ATTEMPT_VARIABLE]);
        assert_eq!(names.collect::<BTreeSet<_>>(), BTreeSet::from(AGENT_VARIABLES));
    }

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

    fn added_variables(inherited: &[(&str, &str)], given: &[(&str, Option<&str>)]) -> String {
        let inherited: Vec<_> =
            inherited.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let given: Vec<_> = given.iter().map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned))).collect();
        let added = no_proxy_variables(&inherited, &given).into_iter();
        added.map(|(name, value)| format!("{name}={}", value.unwrap_or_default())).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn without_a_proxy_nothing_is_added() {
        assert_eq!(added_variables(&[], &[]), "");
        assert_eq!(added_variables(&[("NO_PROXY", "intern")], &[("HTTP_PROXY", Some(""))]), "");
        assert_eq!(added_variables(&[("HTTP_PROXY", "http://proxy")], &[("HTTP_PROXY", None)]), "");
    }

    #[test]
    fn loopback_is_added_to_no_proxy() {
        let proxy = ("https_proxy", "http://proxy");
        assert_eq!(added_variables(&[proxy], &[]), "NO_PROXY=127.0.0.1 no_proxy=127.0.0.1");
        assert_eq!(added_variables(&[], &[("ALL_PROXY", Some("socks5://p"))]), "NO_PROXY=127.0.0.1 no_proxy=127.0.0.1");
        let with_no_proxy = |direct| added_variables(&[proxy, ("no_proxy", direct)], &[]);
        assert_eq!(with_no_proxy("intern"), "NO_PROXY=intern,127.0.0.1 no_proxy=intern,127.0.0.1");
        assert_eq!(with_no_proxy("a, 127.0.0.1"), "NO_PROXY=a, 127.0.0.1 no_proxy=a, 127.0.0.1");
        assert_eq!(with_no_proxy("*"), "NO_PROXY=* no_proxy=*");
        let both = added_variables(&[proxy, ("no_proxy", "a")], &[("NO_PROXY", Some("b"))]);
        assert_eq!(both, "NO_PROXY=b,127.0.0.1 no_proxy=a,127.0.0.1");
    }
}
