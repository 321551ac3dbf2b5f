//! What an agent is told through its environment.

use std::path::Path;

use signoff_core::config::{Agent, Settings};
use signoff_core::ids::RunId;
use signoff_core::machine::JobKind;
use signoff_core::redact::Secrets;

use super::inherited::inherits;
use super::proxy::past_proxies;
use crate::agent::credentials::{at_home, is_credential};
use crate::assignment::Assignment;
use crate::process::{AttemptDir, variables};
use crate::reports::Access;

/// What one attempt alone is told.
#[derive(Debug, Default)]
pub struct Told {
    /// The word that a reviewer must give back.
    pub nonce: Option<String>,
    /// Where it can report.
    pub access: Option<Access>,
}

/// The variables of an attempt. Those that do not apply are taken away, so that none is inherited by accident.
pub fn of(task: &Assignment, dir: &AttemptDir, told: &Told) -> Vec<(String, Option<String>)> {
    let access = told.access.as_ref();
    let reviewer =
        if let JobKind::Review { reviewer, .. } = &task.job.kind { Some(reviewer.to_string()) } else { None };
    let review_kind = reviewer.is_some().then(|| task.review_kind().to_owned());
    let commit =
        if let JobKind::Review { commit, .. } = &task.job.kind { Some(commit.to_string()) } else { None };
    let task_id = task.task.map(|task| task.to_string());
    let loop_id = task.told_loop().filter(|_| task.task.is_some()).map(ToString::to_string);
    [
        ("SIGNOFF_ROLE", Some(task.launch.role.clone())),
        ("SIGNOFF_PHASE", Some(task.phase_name().to_owned())),
        ("SIGNOFF_REVIEWER", reviewer),
        ("SIGNOFF_REVIEW_KIND", review_kind),
        ("SIGNOFF_TASK_ID", task_id),
        ("SIGNOFF_LOOP_ID", loop_id),
        ("SIGNOFF_RUN_ID", Some(task.run.to_string())),
        ("SIGNOFF_ATTEMPT", Some(task.job.attempt.0.to_string())),
        ("SIGNOFF_CYCLE", Some(task.cycle().to_string())),
        ("SIGNOFF_BASE", Some(task.base().to_string())),
        ("SIGNOFF_COMMIT", commit),
        ("SIGNOFF_NONCE", told.nonce.clone()),
        ("SIGNOFF_MCP_URL", access.map(|access| access.url.clone())),
        ("SIGNOFF_MCP_TOKEN", access.map(|access| access.token.clone())),
        ("SIGNOFF_MODEL", task.launch.model.clone()),
        ("SIGNOFF_USAGE_FILE", Some(dir.usage().display().to_string())),
    ]
    .into_iter()
    .chain(GIT.map(|name| (name, None)))
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// All that is set or taken away for an agent: its adapter's variables between what it does not inherit and what the
/// configuration and the attempt give it. The last one counts.
pub fn around(
    agent: &Agent,
    adapters: Vec<(String, Option<String>)>,
    told: Vec<(String, Option<String>)>,
    settings: &Settings,
) -> Vec<(String, Option<String>)> {
    let given = agent.env.iter().map(|(name, value)| (name.clone(), Some(value.clone())));
    let mut all: Vec<_> =
        withheld(agent, settings).into_iter().chain(adapters).chain(given).chain(told).collect();
    past_proxies(&mut all);
    all
}

/// What an agent does not inherit of the person's variables. Whoever knows the address of a channel can post there, so
/// it goes to those alone whose `pass` names it.
fn withheld(agent: &Agent, settings: &Settings) -> Vec<(String, Option<String>)> {
    let names = variables().into_iter().map(|(name, _)| name);
    let channels = settings.channel_variables();
    let tells = |name: &String| channels.contains(&name.as_str()) && !agent.pass.contains(name);
    names.filter(|name| tells(name) || !inherits(agent, name)).map(|name| (name, None)).collect()
}

/// What the project's own commands do not inherit: the keys of agents, and the addresses of channels.
pub fn withheld_from_checks(settings: &Settings) -> Vec<(String, Option<String>)> {
    let names = variables().into_iter().map(|(name, _)| name);
    let channels = settings.channel_variables();
    let tells = |name: &String| channels.contains(&name.as_str());
    names.filter(|name| tells(name) || is_credential(name)).map(|name| (name, None)).collect()
}

/// What of the channels nobody is to read.
pub fn channel_secrets(settings: &Settings) -> Vec<String> {
    let variables = variables();
    let value =
        |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    settings.channel_secrets(value)
}

/// The secrets that agents may know: of the person's variables, of those that the configuration gives them, of channels,
/// and of the files at the person's home by which they are logged in.
pub fn secrets(settings: &Settings, person: &Path) -> Secrets {
    let (variables, agents) = (variables(), settings.agents());
    let given = agents.iter().flat_map(|agent| &agent.env);
    let all = variables.iter().map(|(name, value)| (name, value)).chain(given);
    let set = Secrets::of_variables(all.map(|(name, value)| (name.as_str(), value.as_str())));
    let channels = channel_secrets(settings);
    set.and(&Secrets::of_keys(channels.iter().map(String::as_str))).and(&at_home(person))
}

/// The variables of checks that run on a merge.
pub fn of_landing(task: &Assignment, dir: &AttemptDir) -> Vec<(String, Option<String>)> {
    of(task, dir, &Told::default())
}

/// The same where no task lands, but something of a run.
pub fn bare(run: RunId) -> Vec<(String, Option<String>)> {
    let known = [("SIGNOFF_ROLE", "land".to_owned()), ("SIGNOFF_RUN_ID", run.to_string())];
    let known = known.into_iter().map(|(name, value)| (name, Some(value)));
    known.chain(GIT.map(|name| (name, None))).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The variables of a trial, which is no part of any run.
pub fn of_trial(dir: &AttemptDir) -> Vec<(String, Option<String>)> {
    let known = [
        ("SIGNOFF_ROLE", "trial".to_owned()),
        ("SIGNOFF_USAGE_FILE", dir.usage().display().to_string()),
        ("TMPDIR", dir.temporary().display().to_string()),
    ];
    let known = known.into_iter().map(|(name, value)| (name, Some(value)));
    known.chain(GIT.map(|name| (name, None))).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Whoever started signoff from a hook has these set, and an agent's git would work on the person's repository.
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
