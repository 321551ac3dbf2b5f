//! `signoff init`: detects agents and checks, and writes `signoff.toml`.

mod file;

use std::path::Path;

use signoff_core::settings::{AgentKind, schema};
use signoff_engine::agent_probe::{self, AgentLogin};
use signoff_engine::detect::{self, DetectedChecks};
use signoff_term::json::{InitReport, ProjectCheck, VERSION};

use crate::host::replace::replace_own_file;
use crate::preflight::agents::{self, AgentStatus};
use crate::{CliError, CommandExit, Console, host, project, settings};

/// Find the agents of this machine and write signoff.toml
///
/// Writes signoff.toml, its schema for editors and .signoff/.gitignore at the root of the repository. A signoff.toml
/// that is there already is not overwritten.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff init")]
pub struct Args {
    /// Replace signoff.toml; a backup of the old one is kept beside it
    #[arg(long)]
    force: bool,
}

/// The contents of `.signoff/.gitignore`: only the prompts are committed.
const GITIGNORE: &str = "*\n!prompts/\n!prompts/**\n";

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit, CliError> {
    let root = project::main_checkout()?
        .ok_or_else(|| CliError::usage("this is not a git repository").hint("run `git init` first"))?;
    let report = prepare(&root, args.force)?;
    console.print(&report, || text(&report))
}

fn prepare(root: &Path, force: bool) -> Result<InitReport, CliError> {
    let seen = agents::installed()?;
    let DetectedChecks { checks, missing } = detect::detect_checks(root, host::is_on_path);
    let checks = checks.into_iter();
    let checks = checks.map(|found| ProjectCheck { name: found.name, command: found.command }).collect();
    let file = root.join(settings::FILE);
    if !force && file.symlink_metadata().is_ok() {
        return Err(CliError::usage("signoff.toml is there already").at(settings::FILE).hint(
            "`signoff config` shows the settings in effect; `signoff init --force` writes a new one and keeps the old one beside it",
        ));
    }
    let agents = usable(&seen);
    let (found, set) = settings::foreign_settings(root)?;
    let backup = if force { host::back_up(&file)? } else { None };
    let mut report = InitReport {
        version: VERSION,
        written: Vec::new(),
        kept: Vec::new(),
        backup: backup.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned())),
        agents,
        checks,
        missing,
        found,
        agent_lines: seen.iter().map(agent_line).collect(),
    };
    let text = file::text(&report.agents, &report.checks, &set);
    for (name, text) in [(settings::FILE, text.as_str()), (".signoff/.gitignore", GITIGNORE)] {
        let list = if host::write_new(&root.join(name), text)? { &mut report.written } else { &mut report.kept };
        list.push(name);
    }
    // The schema must match this version, so it is always replaced.
    replace_own_file(&root.join(file::SCHEMA), &schema_text())?;
    report.written.push(file::SCHEMA);
    Ok(report)
}

/// The usable agents; those known to be logged in come first.
fn usable(seen: &[AgentStatus]) -> Vec<AgentKind> {
    let mut usable: Vec<&AgentStatus> = seen.iter().filter(|one| one.problem().is_none()).collect();
    usable.sort_by_key(|one| !matches!(one.login, AgentLogin::Key(_) | AgentLogin::Stored(_)));
    usable.into_iter().map(|one| one.agent.kind).collect()
}

fn agent_line(seen: &AgentStatus) -> String {
    let row = seen.row();
    let left_out = row.problem.as_ref().map(|problem| format!("{problem}; left out"));
    let version = row.program_version.clone().filter(|_| left_out.is_none());
    let parts: Vec<String> = [version, left_out, row.login()].into_iter().flatten().collect();
    format!("agent {}: {}", row.name, parts.join(", "))
}

/// The JSON Schema of `signoff.toml`.
pub fn schema_text() -> String {
    format!("{:#}\n", schema())
}

fn text(report: &InitReport) -> String {
    let mut lines = Vec::new();
    lines.extend(report.backup.iter().map(|name| format!("kept the old signoff.toml as {name}")));
    lines.extend(report.written.iter().map(|name| format!("wrote {name}")));
    lines.extend(report.kept.iter().map(|name| format!("kept {name}, which was there")));
    lines.extend(report.agent_lines.iter().cloned());
    lines.extend(report.checks.iter().map(|check| format!("check {}: {}", check.name, check.command)));
    lines.extend(report.missing.iter().map(|said| format!("no check: {said}")));
    lines.extend(report.found.iter().map(|name| format!("found {name}, which is read as it is")));
    lines.extend(next(report));
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

/// The next step for the user.
fn next(report: &InitReport) -> Vec<String> {
    if report.agents.is_empty() {
        let known: Vec<_> = agent_probe::KNOWN_AGENTS.iter().map(|known| known.program).collect();
        return vec![
            format!("no agent that can be used was found on PATH, of {}", known.join(", ")),
            "next: install one and run `signoff init --force`, or describe yours in signoff.toml".to_owned(),
        ];
    }
    vec!["next: `signoff agents --check` tries them; `signoff config` shows every setting".to_owned()]
}
