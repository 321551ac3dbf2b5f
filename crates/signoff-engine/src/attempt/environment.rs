//! Builds the environment of agents and checks.

use std::path::Path;

use signoff_core::ids::RunId;
use signoff_core::machine::JobKind;
use signoff_core::redact::Secrets;
use signoff_core::settings::{AgentConfig, Settings};

use super::inherited_env::inherits;
use super::proxy::bypass_proxies;
use crate::agent::credentials::{is_credential, user_secrets};
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
pub fn for_attempt(
    spec: &AttemptSpec,
    dir: &AttemptDir,
    credentials: &AttemptCredentials,
) -> Vec<(String, Option<String>)> {
    let access = credentials.access.as_ref();
    let reviewer =
        if let JobKind::Review { reviewer, .. } = &spec.job.kind { Some(reviewer.to_string()) } else { None };
    let review_kind = reviewer.is_some().then(|| spec.review_kind().to_owned());
    let commit = if let JobKind::Review { commit, .. } = &spec.job.kind { Some(commit.to_string()) } else { None };
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
    .into_iter()
    .chain(GIT.map(|name| (name, None)))
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// All variables to set or unset for an agent: those it does not inherit, its adapter's, the configured ones, and the
/// attempt's. Later entries win.
pub fn for_agent(
    agent: &AgentConfig,
    adapters: Vec<(String, Option<String>)>,
    attempt: Vec<(String, Option<String>)>,
    settings: &Settings,
) -> Vec<(String, Option<String>)> {
    let given = agent.env.iter().map(|(name, value)| (name.clone(), Some(value.clone())));
    let mut all: Vec<_> = withheld(agent, settings).into_iter().chain(adapters).chain(given).chain(attempt).collect();
    bypass_proxies(&mut all);
    all
}

/// The user's variables that an agent does not inherit. A channel's address allows posting to it, so an agent gets it
/// only if its `pass` names it.
fn withheld(agent: &AgentConfig, settings: &Settings) -> Vec<(String, Option<String>)> {
    let names = variables().into_iter().map(|(name, _)| name);
    let channels = settings.channel_variables();
    let tells = |name: &String| channels.contains(&name.as_str()) && !agent.pass.contains(name);
    names.filter(|name| tells(name) || !inherits(agent, name)).map(|name| (name, None)).collect()
}

/// The user's variables that checks do not inherit: keys of agents and addresses of channels.
pub fn withheld_from_checks(settings: &Settings) -> Vec<(String, Option<String>)> {
    let names = variables().into_iter().map(|(name, _)| name);
    let channels = settings.channel_variables();
    let tells = |name: &String| channels.contains(&name.as_str());
    names.filter(|name| tells(name) || is_credential(name)).map(|name| (name, None)).collect()
}

/// The secret values of channels.
pub fn channel_secrets(settings: &Settings) -> Vec<String> {
    let variables = variables();
    let value = |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    settings.channel_secrets(value)
}

/// The secrets that agents may see: in the user's variables, in configured variables, of channels, and in the login
/// files below the user's home.
pub fn secrets(settings: &Settings, person: &Path) -> Secrets {
    let (variables, agents) = (variables(), settings.agents());
    let given = agents.iter().flat_map(|agent| &agent.env);
    let all = variables.iter().map(|(name, value)| (name, value)).chain(given);
    let set = Secrets::from_variables(all.map(|(name, value)| (name.as_str(), value.as_str())));
    let channels = channel_secrets(settings);
    set.union(&Secrets::from_keys(channels.iter().map(String::as_str))).union(&user_secrets(person))
}

/// The variables of checks that run on a merge.
pub fn for_landing(spec: &AttemptSpec, dir: &AttemptDir) -> Vec<(String, Option<String>)> {
    for_attempt(spec, dir, &AttemptCredentials::default())
}

/// The variables of checks for a run instead of a task.
pub fn for_run(run: RunId) -> Vec<(String, Option<String>)> {
    let known = [("SIGNOFF_ROLE", "land".to_owned()), ("SIGNOFF_RUN_ID", run.to_string())];
    let known = known.into_iter().map(|(name, value)| (name, Some(value)));
    known.chain(GIT.map(|name| (name, None))).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The variables of an agent check, which belongs to no run.
pub fn for_agent_check(dir: &AttemptDir) -> Vec<(String, Option<String>)> {
    let known = [
        ("SIGNOFF_ROLE", "trial".to_owned()),
        ("SIGNOFF_USAGE_FILE", dir.usage().display().to_string()),
        ("TMPDIR", dir.temporary().display().to_string()),
    ];
    let known = known.into_iter().map(|(name, value)| (name, Some(value)));
    known.chain(GIT.map(|name| (name, None))).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Git sets these when signoff is started from a hook. An agent's git would then work on the user's repository.
const GIT: [&str; 9] = [
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
