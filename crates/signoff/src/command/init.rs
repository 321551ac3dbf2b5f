//! `signoff init`: finds agents and checks, and writes what a new project starts with.

mod file;

use std::path::Path;

use signoff_core::config::{self, AgentKind};
use signoff_engine::detect::{self, Found};
use signoff_term::json::{Check, InitReport, VERSION};

use crate::console::Console;
use crate::door::replace::put;
use crate::failure::{Exit, Failure};
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

/// The agents we look for, by the name of their program.
const PROGRAMS: [AgentKind; 6] = [
    AgentKind::Claude,
    AgentKind::Codex,
    AgentKind::Gemini,
    AgentKind::Opencode,
    AgentKind::Qwen,
    AgentKind::Copilot,
];

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
    let agents: Vec<_> = PROGRAMS.into_iter().filter(|agent| door::is_on_path(agent.word())).collect();
    let Found { checks, missing } = detect::checks(root, door::is_on_path);
    let checks = checks.into_iter();
    let checks = checks.map(|found| Check { name: found.name, command: found.command }).collect();
    let file = root.join(settings::FILE);
    if !force && file.symlink_metadata().is_ok() {
        return Err(Failure::usage("signoff.toml is there already").at(settings::FILE).hint(
            "`signoff config` shows what holds; `signoff init --force` writes it anew and keeps the old one beside it",
        ));
    }
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

/// The schema of a signoff.toml as a file.
pub fn schema_text() -> String {
    format!("{:#}\n", config::schema())
}

fn told(report: &InitReport) -> String {
    let mut lines = Vec::new();
    lines.extend(report.backup.iter().map(|name| format!("kept the old signoff.toml as {name}")));
    lines.extend(report.written.iter().map(|name| format!("wrote {name}")));
    lines.extend(report.kept.iter().map(|name| format!("kept {name}, which was there")));
    let agents: Vec<_> = report.agents.iter().map(|agent| agent.word()).collect();
    lines.extend((!agents.is_empty()).then(|| format!("agents: {}", agents.join(", "))));
    lines.extend(report.checks.iter().map(|check| format!("check {}: {}", check.name, check.command)));
    lines.extend(report.missing.iter().map(|said| format!("no check: {said}")));
    lines.extend(report.found.iter().map(|name| format!("found {name}, which is read as it is")));
    lines.extend(next(report));
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

/// What a person does now.
fn next(report: &InitReport) -> Vec<String> {
    if report.agents.is_empty() {
        let known = PROGRAMS.map(AgentKind::word).join(", ");
        return vec![
            format!("no agent was found on PATH, of {known}"),
            "next: install one and run `signoff init --force`, or describe yours in signoff.toml".to_owned(),
        ];
    }
    vec!["next: look at signoff.toml; `signoff config` shows every setting".to_owned()]
}
