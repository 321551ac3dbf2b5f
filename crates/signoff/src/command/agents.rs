//! `signoff agents`: which agents are here, and whether they work.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use signoff_core::config::{AgentKind, Sandbox, Settings};
use signoff_core::hold::Hold;
use signoff_core::machine::Failure as Missed;
use signoff_core::redact::Secrets;
use signoff_engine::attempt::secrets;
use signoff_engine::git::Git;
use signoff_engine::trial::{Trial, Tried};
use signoff_term::agents::{AgentRow, AgentsReport, Checked};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch::{self, Receiver};

use super::doctor;
use crate::console::Console;
use crate::door::{self, Throwaway};
use crate::failure::{Exit, Failure};
use crate::preflight::agents::{self, Seen};
use crate::{desk, drive, preflight, settings};

/// Show which agents are here, and whether they work
///
/// Shows every agent of the configuration, and every other one whose program is on PATH: its version, whether somebody is
/// logged in as far as can be told, its model, and who holds it to what it may write. With --check each is asked for one
/// word, which costs as much as one word does: those that are configured or named, and all that are here where none is
/// configured. Ends with 1 if one that is configured, named or was tried cannot be used.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  signoff agents\n  signoff agents --check\n  signoff agents claude --check"
)]
pub struct Args {
    /// Only these
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Ask each of them for one word
    #[arg(long)]
    check: bool,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let root = desk::main_checkout()?;
    let settings = settings::load(root.as_deref())?;
    let checkout = root.map_or_else(door::current_directory, Ok)?;
    let seen = wanted(agents::all(&settings, &checkout)?, &args.names)?;
    if args.check {
        // A trial is held as all else is, or there is none.
        preflight::check_sandbox(&settings)?;
    }
    let power = preflight::power();
    let hold = if settings.sandbox() == Sandbox::Off { Hold::Nobody } else { power.by };
    let secrets = secrets(&settings, &settings::home().unwrap_or_default());
    let any_configured = seen.iter().any(|one| one.configured);
    let asked_for = |one: &Seen| one.configured || !any_configured || !args.names.is_empty();
    let looks = seen.iter().map(|one| {
        let row = one.row().without(&secrets);
        let tried = args.check && asked_for(one) && row.problem.is_none() && is_tried(one.agent.kind);
        Look { one, row, tried }
    });
    let (program, git) = (door::program()?, Git::new(door::environment()));
    let bench = Bench { settings: &settings, checkout: &checkout, hold, secrets: &secrets, program, git };
    let rows = drive::runtime()?.block_on(bench.rows(looks.collect(), console))?;
    let counts = |one: &Seen| one.configured || !args.names.is_empty();
    let ok = seen.iter().zip(&rows).all(|(one, row)| row.works() || !(counts(one) || row.check.is_some()));
    if console.json {
        console.json(&AgentsReport::of(rows, ok, hold))?;
    } else {
        console.text(&(nobody(&rows) + &AgentsReport::text(&doctor::sandbox(&settings, &power))))?;
    }
    Ok(if ok { Exit::Done } else { Exit::Failed })
}

fn nobody(rows: &[AgentRow]) -> String {
    if !rows.is_empty() {
        return String::new();
    }
    let known: Vec<_> = signoff_engine::scout::KINDS.iter().map(|known| known.program).collect();
    format!("no agent is configured, and none was found on PATH, of {}\n", known.join(", "))
}

/// Those that were asked for.
fn wanted(seen: Vec<Seen>, names: &[String]) -> Result<Vec<Seen>, Failure> {
    for name in names {
        if seen.iter().all(|one| one.agent.name != *name) {
            let known: Vec<_> = seen.iter().map(|one| one.agent.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let failure = Failure::usage(format!("there is no agent {name}"));
            return Err(failure.hint(format!("configured or installed: {known}")));
        }
    }
    Ok(seen.into_iter().filter(|one| names.is_empty() || names.contains(&one.agent.name)).collect())
}

/// What is part of signoff needs no trial.
fn is_tried(kind: AgentKind) -> bool {
    match kind {
        AgentKind::Checks | AgentKind::Demo => false,
        AgentKind::Claude
        | AgentKind::Codex
        | AgentKind::Gemini
        | AgentKind::Opencode
        | AgentKind::Qwen
        | AgentKind::Copilot
        | AgentKind::Acp
        | AgentKind::Command => true,
    }
}

/// With its grace it is over within a minute.
const LIMIT: Duration = Duration::from_secs(50);

/// So many are tried at once.
const AT_ONCE: usize = 4;

/// An agent that is looked at, and perhaps tried.
struct Look<'a> {
    one: &'a Seen,
    row: AgentRow,
    tried: bool,
}

/// Where agents are tried.
struct Bench<'a> {
    settings: &'a Settings,
    checkout: &'a Path,
    hold: Hold,
    secrets: &'a Secrets,
    program: PathBuf,
    git: Git,
}

impl Bench<'_> {
    /// The rows of all, each told as soon as it and those before it are done. Whoever interrupts is told what is done.
    async fn rows(&self, looks: Vec<Look<'_>>, console: &Console) -> Result<Vec<AgentRow>, Failure> {
        self.announce(&looks, console);
        let interrupted = interrupted()?;
        let rows = stream::iter(looks).map(|look| self.row(look, interrupted.clone()));
        let mut rows = pin!(rows.buffered(AT_ONCE));
        let mut done = Vec::new();
        while let Some(row) = rows.next().await {
            let Some(row) = row? else { continue };
            if !console.json {
                console.text(&row.text())?;
            }
            done.push(row);
        }
        if *interrupted.borrow() { Err(Failure::interrupted()) } else { Ok(done) }
    }

    fn announce(&self, looks: &[Look<'_>], console: &Console) {
        let tried: Vec<_> =
            looks.iter().filter(|look| look.tried).map(|look| look.one.agent.name.as_str()).collect();
        let said = format!("Asking {} for a word", tried.join(", "));
        match (tried.is_empty(), console.is_live()) {
            (true, _) => {}
            (false, true) => console.note(&said),
            (false, false) => console.detail(&said),
        }
    }

    /// The row of one; none if it was interrupted.
    async fn row(&self, look: Look<'_>, interrupted: Receiver<bool>) -> Result<Option<AgentRow>, Failure> {
        if !look.tried {
            return Ok(Some(look.row));
        }
        let check = self.tried(&look, interrupted).await?;
        Ok(check.map(|check| AgentRow { check: Some(check), ..look.row }.without(self.secrets)))
    }

    async fn tried(
        &self,
        look: &Look<'_>,
        mut interrupted: Receiver<bool>,
    ) -> Result<Option<Checked>, Failure> {
        let (person, variables) = (settings::home().unwrap_or_default(), agents::variables());
        let place = Throwaway::new("trial")?;
        let limit = door::test_number("SIGNOFF_TEST_TRIAL_MS").map_or(LIMIT, Duration::from_millis);
        let agent = &look.one.agent;
        let trial = Trial {
            settings: self.settings,
            agent,
            program: &self.program,
            checkout: self.checkout,
            person: &person,
            variables: &variables,
            hold: self.hold,
            place: place.path(),
            git: &self.git,
            limit,
        };
        let Some(Tried { answer, usage, duration }) = outcome(&trial, &mut interrupted).await? else {
            return Ok(None);
        };
        let by_hand = look.row.program.as_deref().unwrap_or(agent.kind.word());
        let answer = answer.map_err(|failure| {
            let late = if failure == Missed::TimedOut { format!(" after {limit:?}") } else { String::new() };
            (format!("{failure}{late}"), failure.hint_in_trial(&agent.name, by_hand))
        });
        let duration = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Ok(Some(Checked::of(answer, usage, duration)))
    }
}

/// Turns true when somebody wants this to end.
fn interrupted() -> Result<Receiver<bool>, Failure> {
    let listen = |kind| signal(kind).map_err(|error| Failure::failed(format!("cannot start: {error}")));
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut hangup = listen(SignalKind::hangup())?;
    let (tell, told) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
        tell.send_replace(true);
    });
    Ok(told)
}

/// Waits for the end of a trial. Whoever interrupts it ends the agent first.
async fn outcome(trial: &Trial<'_>, interrupted: &mut Receiver<bool>) -> Result<Option<Tried>, Failure> {
    if *interrupted.borrow() {
        return Ok(None);
    }
    let running = trial.start().await?;
    let stopper = running.stopper();
    let ended = running.wait();
    tokio::pin!(ended);
    tokio::select! {
        ended = &mut ended => return Ok(Some(trial.conclude(&ended))),
        _ = interrupted.wait_for(|is| *is) => {}
    }
    stopper.stop();
    ended.await;
    Ok(None)
}
