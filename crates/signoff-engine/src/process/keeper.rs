//! Starts keepers.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;

use signoff_core::redact::{Secrets, is_secret_name};

use super::attempt_dir::Order;
use super::keep::HIDDEN;
use super::{AttemptDir, KEEP, Launch, Running, door};

/// How attempts are started: by which program, and where those that live are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keeper {
    /// Started with [`KEEP`] and the attempt's directory; it must then call [`super::keep()`].
    pub program: PathBuf,
    /// A directory of links to the attempts that have a keeper, for [`super::end_strays`]. Made when needed.
    pub live: PathBuf,
    /// The person's home: whatever is a secret there is written down by no keeper.
    pub person: PathBuf,
    /// More that is written down by no keeper, whoever says it.
    pub hidden: Vec<String>,
}

impl Keeper {
    /// Starts an attempt whose directory is there and holds its prompt.
    ///
    /// An error means that nothing was started. An agent that cannot be started is an attempt that ended.
    pub async fn start(&self, launch: &Launch, dir: &AttemptDir) -> io::Result<Running> {
        let directory = std::path::absolute(&launch.directory)?;
        let live = std::path::absolute(&self.live)?;
        let environment: BTreeMap<_, _> = launch.environment.iter().cloned().collect();
        // Whoever is not given a key may come across it all the same.
        let known: BTreeMap<_, _> = door::variables().into_iter().collect();
        let holds_any = |name: &String| {
            let value = known.get(name).map(|value| (name.as_str(), value.as_str()));
            is_secret_name(name) || !Secrets::of_variables(value).is_empty()
        };
        let is_withheld = |(name, value): &(&String, &Option<String>)| value.is_none() && holds_any(name);
        let withheld = environment.iter().filter(is_withheld).map(|(name, _)| name.clone()).collect();
        let person = self.person.clone();
        let order = Order { launch: Launch { directory, ..launch.clone() }, live, withheld, person };
        dir.write_order(&order)?;
        let mut command = tokio::process::Command::from(door::command(&self.program));
        command.arg(KEEP).arg(dir.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for (name, value) in environment {
            match value {
                Some(value) => command.env(name, value),
                None if order.withheld.contains(&name) => &mut command,
                None => command.env_remove(name),
            };
        }
        command.env_remove(HIDDEN);
        if !self.hidden.is_empty() {
            command.env(HIDDEN, self.hidden.join("\n"));
        }
        Running::new(command.spawn()?, dir.clone())
    }
}
