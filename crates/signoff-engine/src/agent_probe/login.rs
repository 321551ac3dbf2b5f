//! Finds an agent's login in files and variables. Only an agent check shows whether the provider accepts it.

use std::collections::BTreeSet;
use std::path::Path;

use signoff_core::settings::{AgentConfig, AgentKind};

use super::{KnownAgent, known_agent};
use crate::agent::credentials;
use crate::attempt::inherits;

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
    match agent.kind {
        AgentKind::Checks | AgentKind::Demo => return AgentLogin::NotNeeded,
        AgentKind::Acp | AgentKind::Command => return AgentLogin::Unknown,
        AgentKind::Claude
        | AgentKind::Codex
        | AgentKind::Gemini
        | AgentKind::Opencode
        | AgentKind::Qwen
        | AgentKind::Copilot => {}
    }
    let Some(known) = known_agent(agent.kind) else { return AgentLogin::Unknown };
    let inherited = |name: &str| set_variables.contains(name) && inherits(agent, name);
    let finds = |name: &&&str| inherited(name) || agent.env.contains_key(**name);
    if let Some(key) = known.key_variables.iter().find(finds) {
        return AgentLogin::Key((*key).to_owned());
    }
    if let Some((_, place)) = known.login_files.iter().find(|(file, _)| user_home.join(file).is_file()) {
        return AgentLogin::Stored((*place).to_owned());
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

    fn agent(kind: AgentKind) -> AgentConfig {
        super::super::default_agent(kind)
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
