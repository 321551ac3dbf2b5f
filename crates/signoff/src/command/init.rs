//! `signoff init`: finds agents and checks, and writes what a new project starts with.

mod file;

use std::path::Path;

use signoff_core::config::{self, AgentKind};
use signoff_engine::detect::{self, Found};
use signoff_engine::scout::{self, Login};
use signoff_term::json::{Check, InitReport, VERSION};

use crate::console::Console;
use crate::door::replace::put;
use crate::failure::{Exit, Failure};
use crate::preflight::agents::{self, Seen};
use crate::settings;
use crate::{desk, door};

/// Find the agents of this machine and write signoff.toml
///
/// Writes signoff.toml, its schema for editors and .signoff/.gitignore at the root of the repository. A signoff.toml
/// that is there already is not overwritten.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff init")]
pub struct Args {
    /// Write signoff.toml anew; the old one is kept beside it as a backup
    #[arg(long)]
    force: bool,
}

/// The program's own files are nobody's work; only the prompts are shared.
const IGNORED: &str = "*\n!prompts/\n!prompts/**\n";

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let root = desk::main_checkout()?
        .ok_or_else(|| Failure::usage("this is not a git repository").hint("run `git init` first"))?;
    let report = prepare(&root, args.force)?;
    if console.json {
        console.json(&report)?;
    } else {
        console.text(&told(&report))?;
    }
    Ok(Exit::Done)
}

fn prepare(root: &Path, force: bool) -> Result<InitReport, Failure> {
    let seen = agents::installed()?;
    let Found { checks, missing } = detect::checks(root, door::is_on_path);
    let checks = checks.into_iter();
    let checks = checks.map(|found| Check { name: found.name, command: found.command }).collect();
    let file = root.join(settings::FILE);
    if !force && file.symlink_metadata().is_ok() {
        return Err(Failure::usage("signoff.toml is there already").at(settings::FILE).hint(
            "`signoff config` shows what holds; `signoff init --force` writes it anew and keeps the old one beside it",
        ));
    }
    let agents = usable(&seen);
    let (found, set) = settings::of_other_programs(root)?;
    let backup = if force { door::back_up(&file)? } else { None };
    let mut report = InitReport {
        version: VERSION,
        written: Vec::new(),
        kept: Vec::new(),
        backup: backup.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned())),
        agents,
        checks,
        missing,
        found,
        seen: seen.iter().map(told_of).collect(),
    };
    let text = file::text(&report.agents, &report.checks, &set);
    for (name, text) in [(settings::FILE, text.as_str()), (".signoff/.gitignore", IGNORED)] {
        let list =
            if door::write_new(&root.join(name), text)? { &mut report.written } else { &mut report.kept };
        list.push(name);
    }
    // The schema is that of this program, whatever lay there.
    put(&root.join(file::SCHEMA), &schema_text())?;
    report.written.push(file::SCHEMA);
    Ok(report)
}

/// Those that can be started. Whoever is known to be logged in comes first.
fn usable(seen: &[Seen]) -> Vec<AgentKind> {
    let mut usable: Vec<&Seen> = seen.iter().filter(|one| one.problem().is_none()).collect();
    usable.sort_by_key(|one| !matches!(one.login, Login::Key(_) | Login::Kept(_)));
    usable.into_iter().map(|one| one.agent.kind).collect()
}

fn told_of(seen: &Seen) -> String {
    let row = seen.row();
    let left_out = row.problem.as_ref().map(|problem| format!("{problem}; left out"));
    let version = row.program_version.clone().filter(|_| left_out.is_none());
    let parts: Vec<String> = [version, left_out, row.login()].into_iter().flatten().collect();
    format!("agent {}: {}", row.name, parts.join(", "))
}

/// The schema of a signoff.toml as a file.
pub fn schema_text() -> String {
    format!("{:#}\n", config::schema())
}

fn told(report: &InitReport) -> String {
    let mut lines = Vec::new();
    lines.extend(report.backup.iter().map(|name| format!("kept the old signoff.toml as {name}")));
    lines.extend(report.written.iter().map(|name| format!("wrote {name}")));
    lines.extend(report.kept.iter().map(|name| format!("kept {name}, which was there")));
    lines.extend(report.seen.iter().cloned());
    lines.extend(report.checks.iter().map(|check| format!("check {}: {}", check.name, check.command)));
    lines.extend(report.missing.iter().map(|said| format!("no check: {said}")));
    lines.extend(report.found.iter().map(|name| format!("found {name}, which is read as it is")));
    lines.extend(next(report));
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

/// What a person does now.
fn next(report: &InitReport) -> Vec<String> {
    if report.agents.is_empty() {
        let known: Vec<_> = scout::KINDS.iter().map(|known| known.program).collect();
        return vec![
            format!("no agent that can be used was found on PATH, of {}", known.join(", ")),
            "next: install one and run `signoff init --force`, or describe yours in signoff.toml".to_owned(),
        ];
    }
    vec!["next: `signoff agents --check` tries them; `signoff config` shows every setting".to_owned()]
}
