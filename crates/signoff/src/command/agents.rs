//! `signoff agents`: which agents are here, and whether they work.

use std::path::Path;
use std::time::Duration;

use signoff_core::config::{AgentKind, Sandbox, Settings};
use signoff_core::hold::Hold;
use signoff_engine::attempt::secrets;
use signoff_engine::git::Git;
use signoff_engine::trial::{Trial, Tried};
use signoff_term::agents::{AgentRow, AgentsReport, Checked};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

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
/// word, which costs as much as one word does. Ends with 1 if one that is configured cannot be used.
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
    let mut rows: Vec<_> = seen.iter().map(|one| one.row().without(&secrets)).collect();
    if args.check {
        let runtime = drive::runtime()?;
        let any_configured = seen.iter().any(|one| one.configured);
        for (one, row) in seen.iter().zip(&mut rows) {
            let asked_for = one.configured || !any_configured || !args.names.is_empty();
            if asked_for && row.problem.is_none() && is_tried(one.agent.kind) {
                console.detail(&format!("Trying {}", one.agent.name));
                let check = Some(tried(&runtime, one, (&settings, &checkout, hold))?);
                *row = AgentRow { check, ..row.clone() }.without(&secrets);
            }
        }
    }
    let counts = |one: &Seen| one.configured || !args.names.is_empty();
    let ok = seen.iter().zip(&rows).all(|(one, row)| !counts(one) || row.works());
    let report = AgentsReport::of(rows, ok, hold);
    if console.json {
        console.json(&report)?;
    } else {
        console.text(&told(&report, &settings, &power))?;
    }
    Ok(if ok { Exit::Done } else { Exit::Failed })
}

fn told(report: &AgentsReport, settings: &Settings, power: &signoff_engine::confine::Power) -> String {
    let text = report.text(&doctor::sandbox(settings, power));
    if report.agents.is_empty() {
        let known: Vec<_> = signoff_engine::scout::KINDS.iter().map(|known| known.program).collect();
        return format!(
            "no agent is configured, and none was found on PATH, of {}\n{text}",
            known.join(", ")
        );
    }
    text
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

fn tried(
    runtime: &Runtime,
    one: &Seen,
    (settings, checkout, hold): (&Settings, &Path, Hold),
) -> Result<Checked, Failure> {
    let (program, git) = (door::program()?, Git::new(door::environment()));
    let (person, variables) = (settings::home().unwrap_or_default(), agents::variables());
    let place = Throwaway::new("trial")?;
    let limit = door::test_number("SIGNOFF_TEST_TRIAL_MS").map_or(LIMIT, Duration::from_millis);
    let trial = Trial {
        settings,
        agent: &one.agent,
        program: &program,
        checkout,
        person: &person,
        variables: &variables,
        hold,
        place: place.path(),
        git: &git,
        limit,
    };
    let Tried { answer, usage, duration } = runtime.block_on(outcome(&trial))?;
    let answer = answer.map_err(|failure| (failure.to_string(), failure.hint(&one.agent.name)));
    Ok(Checked::of(answer, usage, u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
}

/// Waits for the end of a trial. Whoever interrupts it ends the agent first.
async fn outcome(trial: &Trial<'_>) -> Result<Tried, Failure> {
    let listen = |kind| signal(kind).map_err(|error| Failure::failed(format!("cannot start: {error}")));
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut hangup = listen(SignalKind::hangup())?;
    let running = trial.start().await?;
    let stopper = running.stopper();
    let ended = running.wait();
    tokio::pin!(ended);
    tokio::select! {
        ended = &mut ended => return Ok(trial.conclude(&ended)),
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
    stopper.stop();
    ended.await;
    Err(Failure::interrupted())
}
