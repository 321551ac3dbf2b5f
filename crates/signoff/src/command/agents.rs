//! `signoff agents`: lists the agents and checks whether they work.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use signoff_core::machine::AttemptFailure;
use signoff_core::redact::Secrets;
use signoff_core::sandbox::SandboxBackend;
use signoff_core::settings::{AgentKind, Sandbox, Settings};
use signoff_engine::agent_check::{AgentCheck, AgentCheckOutcome};
use signoff_engine::attempt::secrets;
use signoff_engine::git::Git;
use signoff_term::agents::{AgentCheckReport, AgentRow, AgentsReport, FailedAnswer};
use tokio::sync::watch::{self, Receiver};

use super::doctor;
use crate::host::{self, TemporaryDirectory};
use crate::preflight::agents::{self, AgentStatus};
use crate::{CliError, CommandExit, Console, Result, preflight, project, run_loop, settings};

/// List the agents, and check whether they work
///
/// Lists every configured agent and every other one whose program is on PATH, with its version, login, model and
/// sandbox. --check sends a one-word prompt to each agent that is configured or named, or to all if none is configured;
/// this costs a few tokens. Exits with 1 if an agent that is configured, named or checked cannot be used.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff agents\n  signoff agents --check\n  signoff agents claude --check")]
pub struct Args {
    /// List only these agents
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Send each agent a one-word prompt
    #[arg(long)]
    check: bool,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    let root = project::main_checkout()?;
    let settings = settings::load(root.as_deref())?;
    let checkout = root.map_or_else(host::current_directory, Ok)?;
    let statuses = select(agents::probe_all(&settings, &checkout)?, &args.names)?;
    if args.check {
        // A check runs in the same sandbox as work, or not at all.
        preflight::check_sandbox(&settings)?;
    }
    let support = preflight::sandbox_support();
    let sandbox = if settings.sandbox() == Sandbox::Off { SandboxBackend::None } else { support.backend };
    let secrets = secrets(&settings, &settings::home().unwrap_or_default());
    let any_configured = statuses.iter().any(|status| status.configured);
    let asked_for = |status: &AgentStatus| status.configured || !any_configured || !args.names.is_empty();
    let is_builtin = |status: &AgentStatus| matches!(status.agent.kind, AgentKind::Checks | AgentKind::Demo);
    let listed = statuses.iter().map(|status| {
        let row = status.row().redacted(&secrets);
        let check = args.check && asked_for(status) && row.problem.is_none() && !is_builtin(status);
        ListedAgent { status, row, check }
    });
    let (program, git) = (host::program()?, Git::new(host::environment()));
    let ctx = CheckContext { settings: &settings, checkout: &checkout, sandbox, secrets: &secrets, program, git };
    let rows = run_loop::runtime()?.block_on(ctx.rows(listed.collect(), console))?;
    let counts = |status: &AgentStatus| status.configured || !args.names.is_empty();
    let ok = statuses.iter().zip(&rows).all(|(status, row)| row.works() || !(counts(status) || row.check.is_some()));
    let text = none_found_text(&rows) + &AgentsReport::text(&doctor::sandbox(&settings, &support));
    console.print(&AgentsReport::new(rows, ok, sandbox), || text)?;
    Ok(if ok { CommandExit::Done } else { CommandExit::Failed })
}

fn none_found_text(rows: &[AgentRow]) -> String {
    if !rows.is_empty() {
        return String::new();
    }
    let programs: Vec<_> = signoff_engine::agent_probe::KNOWN_AGENTS.iter().map(|programs| programs.program).collect();
    format!("no agent is configured or on PATH (looked for {})\n", programs.join(", "))
}

/// Returns the named agents, or all.
fn select(statuses: Vec<AgentStatus>, names: &[String]) -> Result<Vec<AgentStatus>> {
    for name in names {
        if statuses.iter().all(|status| status.agent.name != *name) {
            let names: Vec<_> = statuses.iter().map(|status| status.agent.name.as_str()).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let failure = CliError::usage(format!("there is no agent {name}"));
            return Err(failure.hint(format!("configured or installed: {names}")));
        }
    }
    Ok(statuses.into_iter().filter(|status| names.is_empty() || names.contains(&status.agent.name)).collect())
}

/// Time limit of a check. With the grace period it ends within a minute.
const LIMIT: Duration = Duration::from_secs(50);

/// Number of agents checked in parallel.
const PARALLEL: usize = 4;

/// An agent to list and perhaps to check.
struct ListedAgent<'a> {
    status: &'a AgentStatus,
    row: AgentRow,
    check: bool,
}

/// What a check of an agent needs.
struct CheckContext<'a> {
    settings: &'a Settings,
    checkout: &'a Path,
    sandbox: SandboxBackend,
    secrets: &'a Secrets,
    program: PathBuf,
    git: Git,
}

impl CheckContext<'_> {
    /// Returns the rows of all agents. Prints each as soon as it and those before it are done, so that an interrupt
    /// leaves the finished rows on the terminal.
    async fn rows(&self, agents: Vec<ListedAgent<'_>>, console: &Console) -> Result<Vec<AgentRow>> {
        self.announce(&agents, console);
        let interrupted = interrupt_flag()?;
        let rows = stream::iter(agents).map(|listed| self.row(listed, interrupted.clone()));
        let mut rows = pin!(rows.buffered(PARALLEL));
        let mut done = Vec::new();
        while let Some(row) = rows.next().await {
            let Some(row) = row? else { continue };
            if !console.json {
                console.text(&row.text())?;
            }
            done.push(row);
        }
        if *interrupted.borrow() { Err(CliError::interrupted()) } else { Ok(done) }
    }

    fn announce(&self, agents: &[ListedAgent<'_>], console: &Console) {
        let checked: Vec<_> =
            agents.iter().filter(|listed| listed.check).map(|listed| listed.status.agent.name.as_str()).collect();
        let note = format!("Sending a test prompt to {}", checked.join(", "));
        match (checked.is_empty(), console.can_draw()) {
            (true, _) => {}
            (false, true) => console.note(&note),
            (false, false) => console.detail(&note),
        }
    }

    /// Returns the row of one agent; `None` if it was interrupted.
    async fn row(&self, listed: ListedAgent<'_>, interrupted: Receiver<bool>) -> Result<Option<AgentRow>> {
        if !listed.check {
            return Ok(Some(listed.row));
        }
        let check = self.check(&listed, interrupted).await?;
        Ok(check.map(|check| AgentRow { check: Some(check), ..listed.row }.redacted(self.secrets)))
    }

    async fn check(
        &self,
        listed: &ListedAgent<'_>,
        mut interrupted: Receiver<bool>,
    ) -> Result<Option<AgentCheckReport>> {
        let (user_home, variables) = (settings::home().unwrap_or_default(), agents::variables());
        let temp_dir = TemporaryDirectory::new("agent-check")?;
        let limit = host::test_number("SIGNOFF_TEST_AGENT_CHECK_MS").map_or(LIMIT, Duration::from_millis);
        let agent = &listed.status.agent;
        let check = AgentCheck {
            settings: self.settings,
            agent,
            program: &self.program,
            checkout: self.checkout,
            user_home: &user_home,
            variables: &variables,
            sandbox: self.sandbox,
            scratch_dir: temp_dir.path(),
            git: &self.git,
            time_limit: limit,
        };
        let Some(AgentCheckOutcome { answer, usage, duration }) = run_check(&check, &mut interrupted).await? else {
            return Ok(None);
        };
        let command = listed.row.program.as_deref().unwrap_or(agent.kind.into_str());
        let answer = answer.map_err(|failure| {
            let late = if failure == AttemptFailure::TimedOut { format!(" after {limit:?}") } else { String::new() };
            let hint = failure.hint_for_check(&agent.name, command);
            FailedAnswer { message: format!("{failure}{late}"), hint }
        });
        let duration = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Ok(Some(AgentCheckReport::new(answer, usage, duration)))
    }
}

/// Returns a value that becomes true on a termination signal.
fn interrupt_flag() -> Result<Receiver<bool>> {
    let signals = run_loop::termination_signals().map_err(run_loop::cannot_start)?;
    let (sender, flag) = watch::channel(false);
    tokio::spawn(async move {
        run_loop::any_signal(signals).await;
        sender.send_replace(true);
    });
    Ok(flag)
}

/// Runs a check. An interrupt stops the agent before it returns `None`.
async fn run_check(check: &AgentCheck<'_>, interrupted: &mut Receiver<bool>) -> Result<Option<AgentCheckOutcome>> {
    if *interrupted.borrow() {
        return Ok(None);
    }
    let running = check.start().await?;
    let stopper = running.stopper();
    let ended = running.wait();
    tokio::pin!(ended);
    tokio::select! {
        ended = &mut ended => return Ok(Some(check.finish(&ended))),
        _ = interrupted.wait_for(|interrupted| *interrupted) => {}
    }
    stopper.stop();
    ended.await;
    Ok(None)
}
