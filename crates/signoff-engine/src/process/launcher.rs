//! Starts supervisors.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;

use signoff_core::redact::{Secrets, is_secret_name};

use super::attempt_dir::SupervisorSpec;
use super::supervisor::SECRETS_VARIABLE;
use super::{AttemptDir, ProcessLaunch, RunningAttempt, SUPERVISOR_SUBCOMMAND, system};

/// Starts attempts under supervisors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupervisorLauncher {
    /// The program, which is started with `SUPERVISOR_SUBCOMMAND` and the attempt's directory.
    pub program: PathBuf,
    /// A directory of links to the supervised attempts, for `kill_strays`. Created when needed.
    pub live_dir: PathBuf,
    /// The user's home. Secrets found there are redacted from all output.
    pub user_home: PathBuf,
    /// Further secrets that are redacted from all output.
    pub secrets: Vec<String>,
}

impl SupervisorLauncher {
    /// Starts an attempt whose directory exists and contains its prompt.
    ///
    /// An error means that nothing was started. If the agent cannot be started, the attempt ends with that result.
    pub async fn start(&self, launch: &ProcessLaunch, dir: &AttemptDir) -> io::Result<RunningAttempt> {
        let directory = std::path::absolute(&launch.directory)?;
        let live = std::path::absolute(&self.live_dir)?;
        let environment: BTreeMap<_, _> = launch.environment.iter().cloned().collect();
        // An agent may find a key that it was not given, so the supervisor still needs it for redaction.
        let known: BTreeMap<_, _> = system::variables().into_iter().collect();
        let is_secret = |name: &String| {
            let value = known.get(name).map(|value| (name.as_str(), value.as_str()));
            is_secret_name(name) || !Secrets::from_variables(value).is_empty()
        };
        let is_withheld = |(name, value): &(&String, &Option<String>)| value.is_none() && is_secret(name);
        let withheld = environment.iter().filter(is_withheld).map(|(name, _)| name.clone()).collect();
        let person = self.user_home.clone();
        let spec = SupervisorSpec { launch: ProcessLaunch { directory, ..launch.clone() }, live, withheld, person };
        dir.write_spec(&spec)?;
        let mut command = tokio::process::Command::from(system::command(&self.program));
        command.arg(SUPERVISOR_SUBCOMMAND).arg(dir.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for (name, value) in environment {
            match value {
                Some(value) => command.env(name, value),
                None if spec.withheld.contains(&name) => &mut command,
                None => command.env_remove(name),
            };
        }
        command.env_remove(SECRETS_VARIABLE);
        if !self.secrets.is_empty() {
            command.env(SECRETS_VARIABLE, self.secrets.join("\n"));
        }
        RunningAttempt::new(command.spawn()?, dir.clone())
    }
}
