//! `signoff stats`: what all runs of a repository tell together.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use signoff_core::workflow::PRESETS;
use signoff_store::Store;
use signoff_term::show::Folded;
use signoff_term::stats::{Filter, Stats, text};

use crate::console::Console;
use crate::desk::Desk;
use crate::door;
use crate::failure::{Exit, Failure};
use crate::look;

/// Show what all runs tell: reviews, reasons, reviewers, costs
///
/// A finding is upheld if it was fixed or deferred, or if it was settled once and came back. Precision is upheld by
/// raised. A phase takes as long as somebody is at work in it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff stats\n  signoff stats --since 30d --preset plan\n  \
                        signoff stats --json | jq .cost")]
pub struct Args {
    /// Only what was begun since: a day (2026-01-29, UTC) or so many days ago (30d)
    #[arg(long, value_name = "DATE|Nd", value_parser = since)]
    since: Option<Since>,
    /// Only runs of this preset
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
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let filter = Filter { since: args.since.map(begin).transpose()?, preset: args.preset.clone() };
    let desk = Desk::find()?;
    let voided = desk.as_ref().map(look::all_voided).transpose()?.unwrap_or_default();
    let mut stats = Stats::new(filter).without(voided);
    let presets = desk.map(|desk| fold(&desk, args, &mut stats)).transpose()?.unwrap_or_default();
    check_preset(args, presets)?;
    if console.json {
        console.json(&stats.report())?;
    } else {
        console.text(&text(&stats.report()))?;
    }
    Ok(Exit::Done)
}

fn begin(since: Since) -> Result<Timestamp, Failure> {
    match since {
        Since::Time(at) => Ok(at),
        Since::Days(days) => {
            let ago = SignedDuration::from_hours(24 * days);
            door::now()
                .checked_sub(ago)
                .map_err(|_| Failure::usage(format!("{days} days ago is before all time")))
        }
    }
}

/// Takes in one run after the other. Gives the presets there are.
fn fold(desk: &Desk, args: &Args, stats: &mut Stats) -> Result<BTreeSet<String>, Failure> {
    let mut presets = BTreeSet::new();
    for row in desk.store.runs()? {
        let is_wanted = args.preset.as_ref().is_none_or(|wanted| *wanted == row.preset);
        presets.insert(row.preset);
        if is_wanted {
            let mut folded = Folded::default();
            look::in_parts(&*desk.store, row.id, |part| folded.go_on_counting(part))?;
            stats.take_run(&folded);
        }
    }
    Ok(presets)
}

/// A name that nobody ever heard is a slip.
fn check_preset(args: &Args, mut presets: BTreeSet<String>) -> Result<(), Failure> {
    presets.extend(PRESETS.iter().map(|name| (*name).to_owned()));
    match &args.preset {
        Some(wanted) if !presets.contains(wanted) => {
            let known = presets.into_iter().collect::<Vec<_>>().join(", ");
            Err(Failure::usage(format!("there is no preset `{wanted}`")).hint(format!("there are {known}")))
        }
        Some(_) | None => Ok(()),
    }
}
