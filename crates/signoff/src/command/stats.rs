//! `signoff stats`: prints statistics over all runs of a repository.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use signoff_core::workflow::PRESETS;
use signoff_store::Store;
use signoff_term::show::RunHistory;
use signoff_term::stats::{Filter, StatsCollector, text};

use crate::{CliError, CommandExit, Console, ReadOnlyProject, Result, host, queries};

/// Show statistics over all runs: reviews, stop reasons, reviewers, cost
///
/// A finding is upheld if it was fixed or deferred, or if it was settled and came back. Precision is upheld findings
/// divided by raised ones. The duration of a phase counts only the time in which an agent is running.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff stats\n  signoff stats --since 30d --preset plan\n  \
                        signoff stats --json | jq .cost")]
pub struct Args {
    /// Count only what started since a day (2026-01-29, UTC) or within a number of days (30d)
    #[arg(long, value_name = "DATE|Nd", value_parser = since)]
    since: Option<Since>,
    /// Count only runs of this preset
    #[arg(long, value_name = "PRESET")]
    preset: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Since {
    Time(Timestamp),
    Days(i64),
}

fn since(text: &str) -> Result<Since, String> {
    let days = text.strip_suffix('d').and_then(|digits| digits.parse::<u32>().ok());
    let day = || format!("{text}T00:00:00Z").parse::<Timestamp>().ok();
    let time = || text.parse().ok().or_else(day).map(Since::Time);
    let since = days.map(|days| Since::Days(i64::from(days))).or_else(time);
    since.ok_or_else(|| format!("`{text}` is neither a day, as 2026-01-29, nor a number of days, as 30d"))
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    let filter = Filter { since: args.since.map(start_time).transpose()?, preset: args.preset.clone() };
    let project = ReadOnlyProject::find()?;
    let voided = project.as_ref().map(queries::tasks_with_void_approval).transpose()?.unwrap_or_default();
    let mut stats = StatsCollector::new(filter).with_voided(voided);
    let presets = project.map(|project| count_runs(&project, args, &mut stats)).transpose()?.unwrap_or_default();
    check_preset(args, presets)?;
    let report = stats.report();
    console.print(&report, || text(&report))
}

fn start_time(since: Since) -> Result<Timestamp> {
    match since {
        Since::Time(at) => Ok(at),
        Since::Days(days) => {
            let ago = SignedDuration::from_hours(24 * days);
            host::now().checked_sub(ago).map_err(|_| CliError::usage(format!("{days} days ago is out of range")))
        }
    }
}

/// Counts one run after the other. Returns the presets of all runs.
fn count_runs(project: &ReadOnlyProject, args: &Args, stats: &mut StatsCollector) -> Result<BTreeSet<String>> {
    let mut presets = BTreeSet::new();
    for row in project.store.runs()? {
        let is_wanted = args.preset.as_ref().is_none_or(|wanted| *wanted == row.preset);
        presets.insert(row.preset);
        if is_wanted {
            let mut history = RunHistory::default();
            queries::for_each_chunk(&*project.store, row.id, 0, |part| history.extend_attempts(&part))?;
            stats.add_run(&history);
        }
    }
    Ok(presets)
}

/// Fails if the preset is neither built in nor used by a run.
fn check_preset(args: &Args, mut presets: BTreeSet<String>) -> Result<()> {
    presets.extend(PRESETS.iter().map(|name| (*name).to_owned()));
    match &args.preset {
        Some(wanted) if !presets.contains(wanted) => {
            let known = presets.into_iter().collect::<Vec<_>>().join(", ");
            Err(CliError::usage(format!("there is no preset `{wanted}`")).hint(format!("known presets: {known}")))
        }
        Some(_) | None => Ok(()),
    }
}
