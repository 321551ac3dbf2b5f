//! Whether somebody is logged in, as far as files and variables tell. Whether a provider agrees, only a trial tells.

use std::collections::BTreeSet;
use std::path::Path;

use signoff_core::config::{Agent, AgentKind};

use super::{Known, known};
use crate::agent::set_up;
use crate::attempt::inherits;

/// What can be told of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// A key is there, in this variable.
    Key(String),
    /// A login is kept there, as people write it.
    Kept(String),
    None,
    /// It may be logged in where nobody else can look, or need no login.
    Unknown,
    /// It has nobody to log in to.
    NotNeeded,
}

/// Looks whether an agent would find a login: in what it inherits, in what it is configured with, at the person's home.
pub fn login(agent: &Agent, set: &BTreeSet<String>, person: &Path) -> Login {
    match agent.kind {
        AgentKind::Checks | AgentKind::Demo => return Login::NotNeeded,
        AgentKind::Acp | AgentKind::Command => return Login::Unknown,
        AgentKind::Claude
        | AgentKind::Codex
        | AgentKind::Gemini
        | AgentKind::Opencode
        | AgentKind::Qwen
        | AgentKind::Copilot => {}
    }
    let Some(known) = known(agent.kind) else { return Login::Unknown };
    let inherited = |name: &str| set.contains(name) && inherits(agent, name);
    let finds = |name: &&&str| inherited(name) || agent.env.contains_key(**name);
    if let Some(key) = known.keys.iter().find(finds) {
        return Login::Key((*key).to_owned());
    }
    if let Some((_, place)) = known.logins.iter().find(|(file, _)| person.join(file).is_file()) {
        return Login::Kept((*place).to_owned());
    }
    if let Some(file) = known.variables.iter().find(|file| sets_a_key(known, &person.join(file))) {
        return Login::Kept(format!("~/{file}"));
    }
    // Who names another provider knows what that one wants.
    let elsewhere = known.elsewhere.iter().any(|name| finds(&name)) || !agent.args.is_empty();
    if elsewhere || known.may_need_none { Login::Unknown } else { Login::None }
}

fn sets_a_key(known: &Known, file: &Path) -> bool {
    let set = set_up::variables(file);
    known.keys.iter().any(|key| set.get(*key).is_some_and(|value| !value.is_empty()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn agent(kind: AgentKind) -> Agent {
        super::super::plain(kind)
    }

    #[test]
    fn a_key_counts_before_a_file() {
        let home = tempfile::tempdir().unwrap();
        let mut claude = agent(AgentKind::Claude);
        let nothing = BTreeSet::new();
        let told = |agent: &Agent, inherits: &BTreeSet<String>| login(agent, inherits, home.path());
        if !cfg!(target_os = "macos") {
            assert_eq!(told(&claude, &nothing), Login::None);
        }
        fs::create_dir(home.path().join(".claude")).unwrap();
        fs::write(home.path().join(".claude/.credentials.json"), "{}").unwrap();
        assert_eq!(told(&claude, &nothing), Login::Kept("~/.claude".to_owned()));
        let inherits = BTreeSet::from(["CLAUDE_CODE_OAUTH_TOKEN".to_owned()]);
        assert_eq!(told(&claude, &inherits), Login::Key("CLAUDE_CODE_OAUTH_TOKEN".to_owned()));
        claude.env.insert("ANTHROPIC_API_KEY".to_owned(), "k".to_owned());
        assert_eq!(told(&claude, &nothing), Login::Key("ANTHROPIC_API_KEY".to_owned()));
    }

    #[test]
    fn who_works_with_another_provider_may_need_nothing() {
        let home = tempfile::tempdir().unwrap();
        let nothing = BTreeSet::new();
        let mut codex = agent(AgentKind::Codex);
        assert_eq!(login(&codex, &nothing, home.path()), Login::None);
        codex.args = vec!["-c".to_owned(), "model_provider=mine".to_owned()];
        assert_eq!(login(&codex, &nothing, home.path()), Login::Unknown);
        assert_eq!(login(&agent(AgentKind::Opencode), &nothing, home.path()), Login::Unknown);
        assert_eq!(login(&agent(AgentKind::Command), &nothing, home.path()), Login::Unknown);
        assert_eq!(login(&agent(AgentKind::Demo), &nothing, home.path()), Login::NotNeeded);
    }

    #[test]
    fn a_file_of_variables_may_hold_the_key() {
        let home = tempfile::tempdir().unwrap();
        let gemini = agent(AgentKind::Gemini);
        fs::create_dir(home.path().join(".gemini")).unwrap();
        fs::write(home.path().join(".gemini/.env"), "GEMINI_API_KEY=\n").unwrap();
        assert_eq!(login(&gemini, &BTreeSet::new(), home.path()), Login::None);
        fs::write(home.path().join(".gemini/.env"), "GEMINI_API_KEY=k\n").unwrap();
        assert_eq!(login(&gemini, &BTreeSet::new(), home.path()), Login::Kept("~/.gemini/.env".to_owned()));
    }
}
